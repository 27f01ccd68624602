//! Keys as bytes whose order is the keys' order.

pub(crate) mod bytes;
mod types;
