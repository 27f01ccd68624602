//! `#[derive(Data)]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DeriveInput, Result, Type};

use crate::attributes;
use crate::coding::Coding;
use crate::shape::{self, Part, Shape, plain};

pub(crate) fn derive(input: DeriveInput) -> Result<TokenStream> {
    let was = attributes::was(&input.attrs)?;
    let before = was.map(|before| {
        quote! {
            const BEFORE: ::core::option::Option<::nvcaracal::Before<Self>> =
                ::core::option::Option::Some(::nvcaracal::Before::new::<#before>());
        }
    });
    let (name, shape) = (&input.ident, shape::of(&input)?);
    let of = quote!(::nvcaracal::Data);
    let coding = Coding { of: of.clone(), buffer: quote!(::std::vec::Vec<u8>), code, encode };
    let body = coding.implement(&plain(name), &shape)?;
    let whole = match &shape {
        Shape::Newtype(part) => whole(part)?,
        _ => None,
    };
    // Fields see to it themselves, but a whole value that is its field is written as that is.
    let reads_back = whole.is_none().then(|| {
        quote!(
            const READS_BACK: bool = true;
        )
    });
    let parts = all_read_back(&shape)?;
    let generics = shape::bounded(&input.generics, |_| of.clone());
    let (for_generics, of_generics, clause) = generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #for_generics #of for #name #of_generics #clause {
            #before
            #reads_back
            #parts
            #body
            #whole
        }
    })
}

/// What writes and reads a field: its type, or what stands for a type that has no `Data`.
fn code(part: &Part) -> Result<TokenStream> {
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

/// Whether every value reads back: if those of all fields do.
fn all_read_back(shape: &Shape) -> Result<TokenStream> {
    let parts: Vec<&Part> = match shape {
        Shape::Newtype(part) => vec![part],
        Shape::Struct(parts) => parts.fields.iter().collect(),
        Shape::Enum(variants) => variants.iter().flat_map(|of| &of.parts.fields).collect(),
    };
    let codes = parts.into_iter().map(code).collect::<Result<Vec<_>>>()?;
    Ok(quote! {
        fn always_reads_back() -> bool {
            ::nvcaracal::derived::all_read_back::<Self>(|| true #(&& #codes::always_reads_back())*)
        }
    })
}

/// What writes a field: one of a type with a form of its own is read back at once.
fn encode(part: &Part) -> Result<TokenStream> {
    let has_data = !matches!(part.ty(), Type::Array(_)) && !attributes::serde(&part.field.attrs)?;
    Ok(if has_data { quote!(encode_part) } else { quote!(encode) })
}

/// What the field of a newtype has of its own for whole values.
fn whole(part: &Part) -> Result<Option<TokenStream>> {
    let ty = part.ty();
    if matches!(ty, Type::Array(_)) || attributes::serde(&part.field.attrs)? {
        return Ok(None);
    }
    Ok(Some(quote! {
        const IS_OPEN: bool = <#ty as ::nvcaracal::Data>::IS_OPEN;
        const READS_BACK: bool = <#ty as ::nvcaracal::Data>::READS_BACK;
        const IS_PLAIN: bool = <#ty as ::nvcaracal::Data>::IS_PLAIN;

        fn with_bytes<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
            ::nvcaracal::Data::with_bytes(&self.0, then)
        }

        fn from_bytes(bytes: &[u8]) -> ::core::option::Option<Self> {
            <#ty as ::nvcaracal::Data>::from_bytes(bytes).map(Self)
        }
    }))
}
