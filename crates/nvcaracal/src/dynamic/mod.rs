//! Rows whose types are known in words only: for tools that read a store without the program that
//! wrote it.
//!
//! A store keeps the types of its tables in words, as [`Data::describe`](crate::Data::describe) and
//! [`Key::describe`](crate::Key::describe) give them. [`RowTypes`] reads these words, and rows by
//! them; [`Value`] is what it finds.
//!
//! ```
//! use nvcaracal::dynamic::RowTypes;
//!
//! let types = RowTypes::parse(&["u64 -> Seat { row: u32, holder: Option<String> }"])?;
//! assert_eq!(types.key(&7u64.to_be_bytes()).to_string(), "7");
//! let seat = types.value(&[3, 0, 0, 0, 1, 3, 0, 0, 0, b'A', b'd', b'a']);
//! assert_eq!(seat.to_string(), r#"{"row":3,"holder":"Ada"}"#);
//! # Ok::<(), String>(())
//! ```

mod read;
mod row_types;
mod texts;
mod types;
mod value;
mod write;

#[cfg(test)]
mod tests;

pub use row_types::RowTypes;
pub use types::Cell;
pub use value::Value;
