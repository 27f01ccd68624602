//! What both derives write: fields one after the other, and an enum's number before them.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Member, Result};

use crate::shape::{Part, Parts, Shape, Variant, plain};

/// How the bytes of a trait are written and read.
pub(crate) struct Coding {
    /// The trait.
    pub(crate) of: TokenStream,
    /// What bytes are appended to.
    pub(crate) buffer: TokenStream,
    /// The path of what writes and reads a field.
    pub(crate) code: fn(&Part) -> Result<TokenStream>,
    /// The name of the function that writes a field.
    pub(crate) encode: fn(&Part) -> Result<TokenStream>,
}

/// The parts of an implementation.
struct Functions {
    bytes: TokenStream,
    words: TokenStream,
    encode: TokenStream,
    /// The value; ends the function with `None` if there is none.
    decode: TokenStream,
}

impl Coding {
    /// The length, the words, and the two functions of a type.
    pub(crate) fn implement(&self, name: &str, shape: &Shape) -> Result<TokenStream> {
        let Functions { bytes, words, encode, decode } = match shape {
            Shape::Newtype(part) => self.newtype(part)?,
            Shape::Struct(parts) => self.record(name, parts)?,
            Shape::Enum(variants) => self.choice(name, variants)?,
        };
        let buffer = &self.buffer;
        Ok(quote! {
            const BYTES: ::core::option::Option<usize> = #bytes;

            fn describe() -> ::std::string::String {
                ::nvcaracal::derived::describe_once::<Self>(|| #words)
            }

            #[inline]
            fn encode(&self, into: &mut #buffer) {
                let _ = &into; // of a type without fields nothing is written
                #encode
            }

            #[inline]
            fn decode(from: &mut &[u8]) -> ::core::option::Option<Self> {
                let _ = &from;
                ::core::option::Option::Some(#decode)
            }
        })
    }

    /// The same as its field.
    fn newtype(&self, part: &Part) -> Result<Functions> {
        let (code, write) = ((self.code)(part)?, (self.encode)(part)?);
        Ok(Functions {
            bytes: quote!(#code::BYTES),
            words: quote!(#code::describe()),
            encode: quote!(#code::#write(&self.0, into);),
            decode: quote!(Self(#code::decode(from)?)),
        })
    }

    fn record(&self, name: &str, parts: &Parts) -> Result<Functions> {
        let (codes, written) = (self.codes(parts)?, self.encodes(parts)?);
        let fields = words(parts, &codes);
        let members: Vec<_> = parts.fields.iter().map(|part| &part.member).collect();
        Ok(Functions {
            bytes: bytes(&codes),
            words: match parts.are_named {
                true => quote!(::nvcaracal::derived::describe_struct(#name, #fields)),
                false => quote!(::nvcaracal::derived::describe_tuple(#fields)),
            },
            encode: quote!(#(#codes::#written(&self.#members, into);)*),
            decode: quote!(Self { #(#members: #codes::decode(from)?),* }),
        })
    }

    /// One byte, the number of the variant, then its fields: for keys the order that `Ord` derives.
    fn choice(&self, name: &str, variants: &[Variant]) -> Result<Functions> {
        let of = &self.of;
        let (mut lengths, mut all, mut writes, mut reads) = (vec![], vec![], vec![], vec![]);
        for (number, Variant { name, parts }) in variants.iter().enumerate() {
            let (codes, written) = (self.codes(parts)?, self.encodes(parts)?);
            let (number, text, fields) = (number as u8, plain(name), words(parts, &codes));
            let bound = parts.fields.iter().map(|part| &part.bound);
            let members: Vec<_> = parts.fields.iter().map(|part| &part.member).collect();
            let pattern = parts.pattern();
            lengths.push(bytes(&codes));
            all.push(quote!(::nvcaracal::derived::describe_variant(#text, #fields)));
            writes.push(quote! {
                Self::#name #pattern => {
                    <u8 as #of>::encode(&#number, into);
                    #(#codes::#written(#bound, into);)*
                }
            });
            reads.push(quote! {
                #number => Self::#name { #(#members: #codes::decode(from)?),* },
            });
        }
        Ok(Functions {
            bytes: quote!(::nvcaracal::derived::variants(&[#(#lengths),*])),
            words: quote!(::nvcaracal::derived::describe_enum(#name, &[#(#all),*])),
            encode: quote!(match self { #(#writes)* }),
            decode: quote! {
                match <u8 as #of>::decode(from)? {
                    #(#reads)*
                    _ => return ::core::option::Option::None,
                }
            },
        })
    }

    fn codes(&self, parts: &Parts) -> Result<Vec<TokenStream>> {
        parts.fields.iter().map(self.code).collect()
    }

    fn encodes(&self, parts: &Parts) -> Result<Vec<TokenStream>> {
        parts.fields.iter().map(self.encode).collect()
    }
}

fn bytes(codes: &[TokenStream]) -> TokenStream {
    quote!(::nvcaracal::derived::sum(&[#(#codes::BYTES),*]))
}

/// The fields in words, with the names of those that have one.
fn words(parts: &Parts, codes: &[TokenStream]) -> TokenStream {
    let names = parts.fields.iter().map(|part| match &part.member {
        Member::Named(name) => plain(name),
        Member::Unnamed(_) => String::new(),
    });
    quote!(&[#((#names, #codes::describe())),*])
}
