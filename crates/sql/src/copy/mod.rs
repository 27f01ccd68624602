//! COPY: the bytes that clients send and get, line by line or in binary, and the bytes of rows in
//! a call.

mod binary;
mod fields;
mod form;
mod lines;
mod reader;
mod records;
mod rows;
mod writer;

pub use form::{Form, Style};
pub use reader::{NumberedRow, Reader};
pub(crate) use rows::read;
pub use rows::{CopiedRows, count};
pub use writer::Writer;
