//! `#[procedure]`: a function that becomes a type whose fields are its arguments.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{
    Error, Expr, FnArg, GenericArgument, Ident, ItemFn, LitInt, LitStr, Pat, PatIdent,
    PathArguments, Result, ReturnType, Token, Type, parse_quote,
};

use crate::shape::plain;

/// What stands in the parentheses of the attribute.
#[derive(Default)]
struct Options {
    name: Option<LitStr>,
    version: Option<LitInt>,
    was: Option<Type>,
    sequences: Vec<Expr>,
    write_set: Option<Expr>,
}

fn options(attribute: TokenStream) -> Result<Options> {
    let mut options = Options::default();
    let parser = syn::meta::parser(|meta| {
        if meta.path.is_ident("name") {
            options.name = Some(meta.value()?.parse()?);
        } else if meta.path.is_ident("version") {
            options.version = Some(meta.value()?.parse()?);
        } else if meta.path.is_ident("was") {
            options.was = Some(meta.value()?.parse()?);
        } else if meta.path.is_ident("write_set") {
            options.write_set = Some(meta.value()?.parse()?);
        } else if meta.path.is_ident("sequences") {
            let list;
            syn::parenthesized!(list in meta.input);
            let sequences = Punctuated::<Expr, Token![,]>::parse_terminated(&list)?;
            options.sequences = sequences.into_iter().collect();
        } else {
            return Err(meta.error(
                "there are `name = \"..\"`, `version = 2`, `was = Before`, `sequences(SEQUENCE)` \
                 and `write_set = f`",
            ));
        }
        Ok(())
    });
    parser.parse2(attribute)?;
    Ok(options)
}

/// An argument: a field, and what the body knows it as.
struct Argument {
    name: Ident,
    /// Of the field.
    kept: Type,
    binding: TokenStream,
}

pub(crate) fn expand(attribute: TokenStream, function: ItemFn) -> Result<TokenStream> {
    let options = options(attribute)?;
    let ItemFn { attrs, vis, modifiers, sig, block } = function;
    modifiers.require_empty()?;
    if sig.asyncness.is_some() || !sig.generics.params.is_empty() {
        return Err(Error::new(sig.span(), "a procedure is no `async` and no generic function"));
    }
    let answer = answer(&sig.output)?;
    let mut inputs = sig.inputs.iter();
    let Some(FnArg::Typed(transaction)) = inputs.next() else {
        let what = "the first argument of a procedure is `tx: &mut Transaction`";
        return Err(Error::new(sig.ident.span(), what));
    };
    let arguments = inputs.map(argument).collect::<Result<Vec<_>>>()?;
    let names = arguments.iter().map(|argument| &argument.name);
    let types = arguments.iter().map(|argument| &argument.kept);
    let bindings = arguments.iter().map(|argument| &argument.binding);
    let of = format_ident!("{}", camel(&plain(&sig.ident)), span = sig.ident.span());
    let name = options.name.map_or_else(|| plain(&sig.ident), |name| name.value());
    let has_sequences = !options.sequences.is_empty();
    let sequences = has_sequences.then(|| sequences(&options.sequences));
    let write_set = options.write_set.map(|write_set| {
        quote! {
            fn write_set(&self, set: &mut ::nvcaracal::WriteSet) {
                (#write_set)(self, set)
            }
        }
    });
    let version = options.version.map(|version| quote!(const VERSION: u32 = #version;));
    let was = options.was.map(|was| {
        quote! {
            const WAS: ::core::option::Option<::nvcaracal::Was> =
                ::core::option::Option::Some(::nvcaracal::Was::new::<#was>());
        }
    });
    let returned = &sig.output;
    Ok(quote! {
        #(#attrs)*
        #[derive(::nvcaracal::Data)]
        #vis struct #of {
            #(#[allow(missing_docs)] #vis #names: #types),*
        }

        impl ::nvcaracal::Procedure for #of {
            const NAME: &'static str = #name;
            type Output = #answer;
            #version
            #was

            const SEQUENCES: bool = #has_sequences;
            #sequences
            #write_set

            fn run(&self, #transaction) #returned {
                #(#bindings)*
                #block
            }
        }
    })
}

fn sequences(sequences: &[Expr]) -> TokenStream {
    quote! {
        fn sequences(
            &self,
            sequences: &mut ::nvcaracal::Sequences,
        ) -> ::core::result::Result<(), ::nvcaracal::Abort> {
            #(sequences.allocate(#sequences);)*
            ::core::result::Result::Ok(())
        }
    }
}

/// The first type of a `Result`.
fn answer(output: &ReturnType) -> Result<Type> {
    let error = || Error::new(output.span(), "a procedure returns `Result<Answer, Stop>`");
    let ReturnType::Type(_, output) = output else { return Err(error()) };
    let Type::Path(path) = output.as_ref() else { return Err(error()) };
    let last = path.path.segments.last().filter(|last| last.ident == "Result");
    let Some(PathArguments::AngleBracketed(types)) = last.map(|last| &last.arguments) else {
        return Err(error());
    };
    match types.args.first() {
        Some(GenericArgument::Type(answer)) => Ok(answer.clone()),
        _ => Err(error()),
    }
}

/// `name: T` is a clone of the field, `name: &T` is the field itself: of `&str` a `String`, of
/// `&[T]` a `Vec<T>`.
fn argument(input: &FnArg) -> Result<Argument> {
    let error = || Error::new(input.span(), "an argument of a procedure is `name: Type`");
    let FnArg::Typed(input) = input else { return Err(error()) };
    let Pat::Ident(PatIdent { ident, by_ref: None, subpat: None, .. }) = input.pat.as_ref() else {
        return Err(error());
    };
    let (pat, ty) = (&input.pat, &input.ty);
    let Type::Reference(of) = ty.as_ref() else {
        let binding = quote!(let #pat: #ty = ::core::clone::Clone::clone(&self.#ident););
        return Ok(Argument { name: ident.clone(), kept: ty.as_ref().clone(), binding });
    };
    let kept = match of.elem.as_ref() {
        Type::Path(path) if path.path.is_ident("str") => parse_quote!(::std::string::String),
        Type::Slice(slice) => {
            let item = &slice.elem;
            parse_quote!(::std::vec::Vec<#item>)
        }
        other => other.clone(),
    };
    Ok(Argument { name: ident.clone(), kept, binding: quote!(let #pat: #ty = &self.#ident;) })
}

/// `buy_cheapest` is `BuyCheapest`.
fn camel(name: &str) -> String {
    let word = |word: &str| {
        let mut letters = word.chars();
        let first = letters.next().map(|first| first.to_uppercase().to_string());
        first.unwrap_or_default() + letters.as_str()
    };
    name.split('_').map(word).collect()
}
