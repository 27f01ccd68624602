//! The parts of a type, as both derives need them.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use syn::{Data, DeriveInput, Error, Field, Fields, Generics, Ident, Index, Member, Result, Type};

/// Most variants of an enum: their number is one byte.
const VARIANTS_MAX: usize = 256;

/// A struct or an enum.
pub(crate) enum Shape {
    /// A struct of one field without a name: the same as that field.
    Newtype(Box<Part>),
    Struct(Parts),
    Enum(Vec<Variant>),
}

/// A variant of an enum.
pub(crate) struct Variant {
    pub(crate) name: Ident,
    pub(crate) parts: Parts,
}

/// Fields of a struct or of a variant.
pub(crate) struct Parts {
    pub(crate) fields: Vec<Part>,
    pub(crate) are_named: bool,
}

/// A field.
pub(crate) struct Part {
    pub(crate) member: Member,
    /// What it is called where it is bound by a pattern.
    pub(crate) bound: Ident,
    pub(crate) field: Field,
}

impl Part {
    fn new(number: usize, field: Field) -> Self {
        let (member, bound) = match &field.ident {
            Some(name) => (Member::Named(name.clone()), format_ident!("field_{}", plain(name))),
            None => (Member::Unnamed(Index::from(number)), format_ident!("field_{number}")),
        };
        Self { member, bound, field }
    }

    pub(crate) fn ty(&self) -> &Type {
        &self.field.ty
    }
}

impl Parts {
    fn new(fields: Fields) -> Self {
        let are_named = matches!(fields, Fields::Named(_));
        let fields = fields.into_iter().enumerate();
        Self { fields: fields.map(|(number, field)| Part::new(number, field)).collect(), are_named }
    }

    /// A pattern after the name of the type or the variant, which binds all fields.
    pub(crate) fn pattern(&self) -> TokenStream {
        let bindings = self.fields.iter().map(|Part { member, bound, .. }| quote!(#member: #bound));
        quote!({ #(#bindings),* })
    }
}

/// A name without `r#`.
pub(crate) fn plain(name: &Ident) -> String {
    let name = name.to_string();
    name.strip_prefix("r#").map_or(name.clone(), str::to_string)
}

/// Takes a type apart.
pub(crate) fn of(input: &DeriveInput) -> Result<Shape> {
    let error = |what: &str| Err(Error::new(Span::call_site(), what));
    match &input.data {
        Data::Union(_) => error("a union does not say what is in it: use an enum"),
        Data::Struct(of) => {
            let mut parts = Parts::new(of.fields.clone());
            if parts.fields.len() == 1 && !parts.are_named {
                return Ok(Shape::Newtype(Box::new(parts.fields.remove(0))));
            }
            Ok(Shape::Struct(parts))
        }
        Data::Enum(of) if of.variants.is_empty() => error("an enum without variants has no values"),
        Data::Enum(of) if of.variants.len() > VARIANTS_MAX => {
            error("an enum may have 256 variants: their number is one byte")
        }
        Data::Enum(of) => {
            let variants = of.variants.iter().map(|variant| {
                crate::attributes::none(&variant.attrs, "a variant")?;
                Ok(Variant {
                    name: variant.ident.clone(),
                    parts: Parts::new(variant.fields.clone()),
                })
            });
            Ok(Shape::Enum(variants.collect::<Result<_>>()?))
        }
    }
}

/// The generics with a bound on each parameter.
pub(crate) fn bounded(generics: &Generics, bound: impl Fn(&Ident) -> TokenStream) -> Generics {
    let mut generics = generics.clone();
    let names: Vec<Ident> = generics.type_params().map(|of| of.ident.clone()).collect();
    let clause = generics.make_where_clause();
    for name in names {
        let bound = bound(&name);
        clause.predicates.push(syn::parse_quote!(#name: #bound));
    }
    generics
}
