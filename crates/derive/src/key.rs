//! `#[derive(Key)]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DeriveInput, Result};

use crate::coding::Coding;
use crate::shape::{self, Part, Shape, plain};

pub(crate) fn derive(input: DeriveInput) -> Result<TokenStream> {
    let (name, shape) = (&input.ident, shape::of(&input)?);
    let of = quote!(::nvcaracal::Key);
    let coding = Coding { of: of.clone(), buffer: quote!(::nvcaracal::KeyBuffer), code, encode };
    let body = coding.implement(&plain(name), &shape)?;
    let whole = match &shape {
        Shape::Newtype(part) => Some(whole(part)),
        _ => None,
    };
    let reads_back = parts(&shape).into_iter().map(code).collect::<Result<Vec<_>>>()?;
    let bound = |name: &_| quote!(#of<Owned = #name> + ::core::marker::Send + 'static);
    let generics = shape::bounded(&input.generics, bound);
    let (for_generics, of_generics, clause) = generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #for_generics #of for #name #of_generics #clause {
            type Owned = Self;
            const READS_BACK: bool = true #(&& #reads_back::READS_BACK)*;
            #body
            #whole
        }
    })
}

/// All fields, of all variants.
fn parts(shape: &Shape) -> Vec<&Part> {
    match shape {
        Shape::Newtype(part) => vec![&**part],
        Shape::Struct(parts) => parts.fields.iter().collect(),
        Shape::Enum(variants) => {
            variants.iter().flat_map(|variant| &variant.parts.fields).collect()
        }
    }
}

fn encode(_: &Part) -> Result<TokenStream> {
    Ok(quote!(encode))
}

fn code(part: &Part) -> Result<TokenStream> {
    let ty = part.ty();
    Ok(quote!(<#ty as ::nvcaracal::Key>))
}

/// What the field of a newtype has of its own for whole keys.
fn whole(part: &Part) -> TokenStream {
    let ty = part.ty();
    quote! {
        #[inline]
        fn with_key<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
            ::nvcaracal::Key::with_key(&self.0, then)
        }

        fn from_key(bytes: &[u8]) -> ::core::option::Option<Self> {
            <#ty as ::nvcaracal::Key>::from_key(bytes).map(Self)
        }
    }
}
