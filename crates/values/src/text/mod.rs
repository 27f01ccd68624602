//! PostgreSQL's text forms, both ways.

mod parse;
mod print;

pub use parse::parse;
pub use print::{print, print_bytes};
