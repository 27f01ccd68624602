//! COPY: the bytes that clients send and get, line by line, and the bytes of rows in a call.

mod fields;
mod form;
mod lines;
mod records;
mod rows;

mod writer;

pub use form::{Form, Style};
pub use lines::{Line, Lines};
pub use records::Records;
pub(crate) use rows::read;
pub use rows::{CopiedRows, count};
pub use writer::Writer;
