//! `#[derive(Key)]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DeriveInput, Result};

use crate::shape::{self, Part, Parts, Shape, Variant, plain};

pub(crate) fn derive(input: DeriveInput) -> Result<TokenStream> {
    let name = &input.ident;
    let body = match shape::of(&input)? {
        Shape::Newtype(part) => newtype(&part),
        Shape::Struct(parts) => record(&plain(name), &parts),
        Shape::Enum(variants) => choice(&plain(name), &variants),
    };
    let generics = shape::bounded(
        &input.generics,
        |of| quote!(::nvcaracal::Key<Owned = #of> + ::core::marker::Send + 'static),
    );
    let (for_generics, of_generics, clause) = generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #for_generics ::nvcaracal::Key for #name #of_generics #clause {
            type Owned = Self;
            #body
        }
    })
}

fn bytes(parts: &Parts) -> TokenStream {
    let types = parts.fields.iter().map(Part::ty);
    quote!(::nvcaracal::derived::sum(&[#(<#types as ::nvcaracal::Key>::BYTES),*]))
}

fn described(parts: &Parts) -> TokenStream {
    parts.described(|part| {
        let ty = part.ty();
        quote!(<#ty as ::nvcaracal::Key>::describe())
    })
}

/// The same as its field in every respect.
fn newtype(part: &Part) -> TokenStream {
    let ty = part.ty();
    let of = quote!(<#ty as ::nvcaracal::Key>);
    quote! {
        const BYTES: ::core::option::Option<usize> = #of::BYTES;

        fn describe() -> ::std::string::String {
            #of::describe()
        }

        #[inline]
        fn encode(&self, into: &mut ::nvcaracal::KeyBuffer) {
            #of::encode(&self.0, into)
        }

        fn decode(from: &mut &[u8]) -> ::core::option::Option<Self> {
            #of::decode(from).map(Self)
        }

        #[inline]
        fn with_key<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
            #of::with_key(&self.0, then)
        }

        fn from_key(bytes: &[u8]) -> ::core::option::Option<Self> {
            #of::from_key(bytes).map(Self)
        }
    }
}

fn record(name: &str, parts: &Parts) -> TokenStream {
    let bytes = bytes(parts);
    let fields = described(parts);
    let describe = if parts.are_named {
        quote!(::nvcaracal::derived::describe_struct(#name, #fields))
    } else {
        quote!(::nvcaracal::derived::describe_tuple(#fields))
    };
    let members = parts.fields.iter().map(|part| &part.member).collect::<Vec<_>>();
    let types = parts.fields.iter().map(Part::ty).collect::<Vec<_>>();
    quote! {
        const BYTES: ::core::option::Option<usize> = #bytes;

        fn describe() -> ::std::string::String {
            #describe
        }

        #[inline]
        fn encode(&self, into: &mut ::nvcaracal::KeyBuffer) {
            let _ = &into;
            #(<#types as ::nvcaracal::Key>::encode(&self.#members, into);)*
        }

        fn decode(from: &mut &[u8]) -> ::core::option::Option<Self> {
            let _ = &from;
            ::core::option::Option::Some(Self {
                #(#members: <#types as ::nvcaracal::Key>::decode(from)?),*
            })
        }
    }
}

/// One byte, the number of the variant, then its fields: the order that `Ord` derives.
fn choice(name: &str, variants: &[Variant]) -> TokenStream {
    let lengths = variants.iter().map(|Variant { parts, .. }| bytes(parts));
    let words = variants.iter().map(|Variant { name, parts }| {
        let (text, are_named, fields) = (plain(name), parts.are_named, described(parts));
        quote!(::nvcaracal::derived::describe_variant(#text, #are_named, #fields))
    });
    let writes = variants.iter().enumerate().map(|(number, Variant { name, parts })| {
        let (number, pattern) = (number as u8, parts.pattern());
        let bound = parts.fields.iter().map(|part| &part.bound);
        let types = parts.fields.iter().map(Part::ty);
        quote! {
            Self::#name #pattern => {
                into.push(&[#number]);
                #(<#types as ::nvcaracal::Key>::encode(#bound, into);)*
            }
        }
    });
    let reads = variants.iter().enumerate().map(|(number, Variant { name, parts })| {
        let number = number as u8;
        let members = parts.fields.iter().map(|part| &part.member);
        let types = parts.fields.iter().map(Part::ty);
        quote! {
            #number => Self::#name {
                #(#members: <#types as ::nvcaracal::Key>::decode(from)?),*
            },
        }
    });
    quote! {
        const BYTES: ::core::option::Option<usize> =
            ::nvcaracal::derived::variants(&[#(#lengths),*]);

        fn describe() -> ::std::string::String {
            ::nvcaracal::derived::describe_enum(#name, &[#(#words),*])
        }

        #[inline]
        fn encode(&self, into: &mut ::nvcaracal::KeyBuffer) {
            match self {
                #(#writes)*
            }
        }

        fn decode(from: &mut &[u8]) -> ::core::option::Option<Self> {
            ::core::option::Option::Some(match <u8 as ::nvcaracal::Key>::decode(from)? {
                #(#reads)*
                _ => return ::core::option::Option::None,
            })
        }
    }
}
