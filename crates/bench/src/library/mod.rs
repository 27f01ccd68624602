//! The workloads on the library: their procedures and tables in its words.

mod adapter;
mod buffer;
mod handles;
mod options;
mod tables;
mod view;

pub use buffer::Output;
pub use options::{Callable, Procedures, Tables, options, reserve};
pub use tables::{RowSizes, table_definition};
pub use view::LibraryView;
