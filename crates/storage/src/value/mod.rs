//! Values as they are compared, hashed and written: line by line.

pub mod lines;
mod new_value;

pub use new_value::{NewValue, lines_around};
