//! Whether two answers are one, and what docs/sql.md excuses.

mod equal;
mod open;
mod reasons;
mod show;
mod verdict;

pub(crate) use open::open_fault;
pub(crate) use show::show;
pub(crate) use verdict::{Verdict, compare, contents};
