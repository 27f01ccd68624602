//! The values of SQL: what a column or an expression holds, how values compare, the bytes they have
//! in rows and keys, and PostgreSQL's text and binary forms of them.
//!
//! Knows no tables, no engine and no network; reads no clock, no locale and no zones of the system.
//! All functions take any bytes without a panic: what is malformed is an [`Error`] with
//! PostgreSQL's code.

#![forbid(unsafe_code)]

mod array;
pub mod binary;
mod bits;
mod datum;
mod error;
pub mod float;
pub mod identity;
pub mod json;
mod kind;
pub mod made;
mod network;
pub mod numeric;
mod stored;
pub mod text;
pub mod time;

pub use array::{Array, DIMENSIONS_MAX, Dimension, ITEMS_MAX};
pub use bits::{BITS_MAX, Bits};
pub use datum::{Datum, without_blanks};
pub use error::{Error, Position, Result, SqlState};
pub use json::Json;
pub use kind::{
    Element, EnumType, EnumValue, LABELS_MAX, Modifier, Oid, Place, Strictness, Type, fit,
};
pub use network::Network;
pub use numeric::Numeric;
pub use stored::{RECORD_DEPTH_MAX, key, record_depth, row};
pub use time::{Date, Interval, IntervalFields, Time, Timestamp, Zone};
