//! The workloads on the library: their procedures and tables in its words.

mod adapter;
mod buffer;
mod tables;

pub use adapter::{Callable, LibraryView, Procedures, Tables, options, reserve};
pub use buffer::Output;
pub use tables::{RowSizes, table_definition};
