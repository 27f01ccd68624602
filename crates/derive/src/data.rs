//! `#[derive(Data)]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DeriveInput, Result, Type};

use crate::attributes;
use crate::shape::{self, Part, Parts, Shape, Variant, plain};

pub(crate) fn derive(input: DeriveInput) -> Result<TokenStream> {
    let was = attributes::was(&input.attrs)?;
    let before = was.map(|before| {
        quote! {
            const BEFORE: ::core::option::Option<::nvcaracal::Before<Self>> =
                ::core::option::Option::Some(::nvcaracal::Before::new::<#before>());
        }
    });
    let name = &input.ident;
    let body = match shape::of(&input)? {
        Shape::Newtype(part) => newtype(&part)?,
        Shape::Struct(parts) => record(&plain(name), &parts)?,
        Shape::Enum(variants) => choice(&plain(name), &variants)?,
    };
    let generics = shape::bounded(&input.generics, |_| quote!(::nvcaracal::Data));
    let (for_generics, of_generics, clause) = generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #for_generics ::nvcaracal::Data for #name #of_generics #clause {
            #before
            #body
        }
    })
}

/// The path of what writes and reads a field: that of its type, or what stands for a type that has
/// no `Data`.
fn coded(part: &Part) -> Result<TokenStream> {
    let ty = part.ty();
    if attributes::serde(&part.field.attrs)? {
        return Ok(quote!(<::nvcaracal::derived::BySerde<#ty> as ::nvcaracal::derived::Code>));
    }
    Ok(match ty {
        Type::Array(array) => {
            let (item, len) = (&array.elem, &array.len);
            quote!(<::nvcaracal::derived::Array<#item, { #len }> as ::nvcaracal::derived::Code>)
        }
        _ => quote!(<#ty as ::nvcaracal::Data>),
    })
}

fn all_coded(parts: &Parts) -> Result<Vec<TokenStream>> {
    parts.fields.iter().map(coded).collect()
}

fn bytes(codes: &[TokenStream]) -> TokenStream {
    quote!(::nvcaracal::derived::sum(&[#(#codes::BYTES),*]))
}

fn described(parts: &Parts) -> Result<TokenStream> {
    all_coded(parts)?; // for its errors
    Ok(parts.described(|part| {
        let code = coded(part).expect("it was made before");
        quote!(#code::describe())
    }))
}

/// The same as its field in every respect.
fn newtype(part: &Part) -> Result<TokenStream> {
    let (of, ty) = (coded(part)?, part.ty());
    let whole = matches!(ty, Type::Array(_)) || attributes::serde(&part.field.attrs)?;
    let whole = (!whole).then(|| {
        quote! {
            const IS_OPEN: bool = <#ty as ::nvcaracal::Data>::IS_OPEN;

            fn with_bytes<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
                ::nvcaracal::Data::with_bytes(&self.0, then)
            }

            fn from_bytes(bytes: &[u8]) -> ::core::option::Option<Self> {
                <#ty as ::nvcaracal::Data>::from_bytes(bytes).map(Self)
            }
        }
    });
    Ok(quote! {
        const BYTES: ::core::option::Option<usize> = #of::BYTES;

        fn describe() -> ::std::string::String {
            ::nvcaracal::derived::describe_once::<Self>(#of::describe)
        }

        fn encode(&self, into: &mut ::std::vec::Vec<u8>) {
            #of::encode(&self.0, into)
        }

        fn decode(from: &mut &[u8]) -> ::core::option::Option<Self> {
            #of::decode(from).map(Self)
        }

        #whole
    })
}

fn record(name: &str, parts: &Parts) -> Result<TokenStream> {
    let codes = all_coded(parts)?;
    let bytes = bytes(&codes);
    let fields = described(parts)?;
    let describe = if parts.are_named {
        quote!(::nvcaracal::derived::describe_struct(#name, #fields))
    } else {
        quote!(::nvcaracal::derived::describe_tuple(#fields))
    };
    let members = parts.fields.iter().map(|part| &part.member).collect::<Vec<_>>();
    Ok(quote! {
        const BYTES: ::core::option::Option<usize> = #bytes;

        fn describe() -> ::std::string::String {
            ::nvcaracal::derived::describe_once::<Self>(|| #describe)
        }

        fn encode(&self, into: &mut ::std::vec::Vec<u8>) {
            let _ = &into;
            #(#codes::encode(&self.#members, into);)*
        }

        fn decode(from: &mut &[u8]) -> ::core::option::Option<Self> {
            let _ = &from;
            ::core::option::Option::Some(Self {
                #(#members: #codes::decode(from)?),*
            })
        }
    })
}

/// One byte, the number of the variant, then its fields.
fn choice(name: &str, variants: &[Variant]) -> Result<TokenStream> {
    let mut lengths = Vec::new();
    let mut words = Vec::new();
    let mut writes = Vec::new();
    let mut reads = Vec::new();
    for (number, Variant { name, parts }) in variants.iter().enumerate() {
        let codes = all_coded(parts)?;
        let number = number as u8;
        let (text, are_named, fields) = (plain(name), parts.are_named, described(parts)?);
        let pattern = parts.pattern();
        let bound = parts.fields.iter().map(|part| &part.bound);
        let members = parts.fields.iter().map(|part| &part.member);
        lengths.push(bytes(&codes));
        words.push(quote! {
            ::nvcaracal::derived::describe_variant(#text, #are_named, #fields)
        });
        writes.push(quote! {
            Self::#name #pattern => {
                into.push(#number);
                #(#codes::encode(#bound, into);)*
            }
        });
        reads.push(quote! {
            #number => Self::#name {
                #(#members: #codes::decode(from)?),*
            },
        });
    }
    Ok(quote! {
        const BYTES: ::core::option::Option<usize> =
            ::nvcaracal::derived::variants(&[#(#lengths),*]);

        fn describe() -> ::std::string::String {
            ::nvcaracal::derived::describe_once::<Self>(|| {
                ::nvcaracal::derived::describe_enum(#name, &[#(#words),*])
            })
        }

        fn encode(&self, into: &mut ::std::vec::Vec<u8>) {
            match self {
                #(#writes)*
            }
        }

        fn decode(from: &mut &[u8]) -> ::core::option::Option<Self> {
            ::core::option::Option::Some(match <u8 as ::nvcaracal::Data>::decode(from)? {
                #(#reads)*
                _ => return ::core::option::Option::None,
            })
        }
    })
}
