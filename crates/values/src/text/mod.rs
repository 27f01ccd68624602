//! PostgreSQL's text forms, both ways.

mod parse;
mod print;

pub(crate) use parse::no_record;
pub use parse::{parse, parse_as};
pub use print::{print, print_bytes};
