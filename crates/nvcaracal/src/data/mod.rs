//! Data as bytes: arguments, values of rows, answers.
//!
//! Fixed-layout types (`Plain`) are their own bytes: they are logged as they are and read in place.
//! All others (`Data`) are written field by field. Both forms are the same on every machine of one
//! byte order, which is what replay needs; neither contains an address.

pub(crate) mod before;
pub mod derived;
pub(crate) mod foreign;
pub(crate) mod plain;
pub(crate) mod readable;
mod scratch;
pub(crate) mod stored;
pub(crate) mod tags;
pub(crate) mod text;
pub(crate) mod time;
mod types;
mod unreadable;
pub(crate) mod value;
