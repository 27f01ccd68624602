//! `#[derive(Data)]`, `#[derive(Key)]` and `#[procedure]` of the library `nvcaracal`, which exports
//! and explains them.

#![forbid(unsafe_code)]

mod attributes;
mod coding;
mod data;
mod key;
mod procedure;
mod shape;

use proc_macro::TokenStream;
use syn::{DeriveInput, ItemFn, parse_macro_input};

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

/// Makes a procedure of a function: see `nvcaracal::procedure`.
#[proc_macro_attribute]
pub fn procedure(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let function = parse_macro_input!(item as ItemFn);
    procedure::expand(attribute.into(), function)
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}
