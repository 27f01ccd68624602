//! A study: what few hot rows cost callers of the library.

mod study;
mod table;

pub use study::{ContentionReport, Load, Settings, run};
pub use table::render;
