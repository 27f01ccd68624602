//! `#[derive(Data)]` and `#[derive(Key)]` of the library `nvcaracal`, which exports and explains
//! them.

mod attributes;
mod data;
mod key;
mod shape;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Derives `nvcaracal::Data`: see there.
#[proc_macro_derive(Data, attributes(data))]
pub fn derive_data(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    data::derive(input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Derives `nvcaracal::Key`: see there.
#[proc_macro_derive(Key)]
pub fn derive_key(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    key::derive(input).unwrap_or_else(syn::Error::into_compile_error).into()
}
