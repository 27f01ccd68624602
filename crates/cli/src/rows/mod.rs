//! Rows of a store of whichever program, by the types that it has in words: shown, written to
//! files, and loaded from them.

mod dump;
mod dump_files;
mod ending;
mod load;
mod looked;
mod typed;

pub(crate) use dump::run as dump;
pub(crate) use load::run as load;
pub(crate) use looked::{Looked, OfTable, Table};
