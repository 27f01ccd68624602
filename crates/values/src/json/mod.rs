//! `jsonb`: JSON in one canonical form. Keys of objects are sorted by length, then bytes, and the
//! last of equal ones stays; numbers are [`Numeric`](crate::Numeric). So equal values have equal
//! text but for the scale of numbers.

pub mod given;
mod parse;
pub mod path;
mod value;

pub use path::JsonPath;
pub use value::Json;
