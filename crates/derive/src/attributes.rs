//! What `#[data(...)]` says.

use syn::{Attribute, LitStr, Result, Type};

/// `#[data(was = Old)]` of a type.
pub(crate) fn was(attributes: &[Attribute]) -> Result<Option<Type>> {
    let mut was = None;
    each(attributes, |meta| {
        if !meta.path.is_ident("was") {
            return Err(meta.error("of a type there is `was = TheTypeBefore` only"));
        }
        was = Some(meta.value()?.parse()?);
        Ok(())
    })?;
    Ok(was)
}

/// `#[data(serde)]` of a field.
pub(crate) fn serde(attributes: &[Attribute]) -> Result<bool> {
    let mut serde = false;
    each(attributes, |meta| {
        if !meta.path.is_ident("serde") {
            // Or the error would be about what follows the equals sign.
            let _ = meta.value().and_then(|value| value.parse::<LitStr>());
            return Err(meta.error("of a field there is `serde` only"));
        }
        serde = true;
        Ok(())
    })?;
    Ok(serde)
}

/// Refuses `#[data(...)]` where it has no meaning.
pub(crate) fn none(attributes: &[Attribute], at: &str) -> Result<()> {
    each(attributes, |meta| Err(meta.error(format!("there is no `data` attribute of {at}"))))
}

fn each(
    attributes: &[Attribute],
    mut then: impl FnMut(syn::meta::ParseNestedMeta<'_>) -> Result<()>,
) -> Result<()> {
    let of_data = attributes.iter().filter(|attribute| attribute.path().is_ident("data"));
    of_data.into_iter().try_for_each(|attribute| attribute.parse_nested_meta(&mut then))
}
