//! What a column or an expression may hold: a type, its length, precision or scale, and how a value
//! is made to fit them.

mod enumeration;
mod fit;
mod modifier;
mod types;

pub use enumeration::{EnumType, EnumValue, LABELS_MAX, Place};
pub use fit::{Strictness, fit};
pub use modifier::Modifier;
pub use types::{Element, Oid, Type};
