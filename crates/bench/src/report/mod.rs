//! What all reports have in common: numbers with names, tables, a few words at the end. Knows no
//! run.

mod numbers;
mod summary;
mod table;

pub use numbers::{Latency, Named, Spread, add_counters, median, ratio};
pub use summary::{Summary, bars, durable, latency, time, wrapped};
pub use table::{Table, checked, grouped, scale, table};
