//! Values as the store has them: the bytes of rows, and the bytes of keys, which sort.

pub mod key;
mod record;
pub mod row;

pub use record::{RECORD_DEPTH_MAX, record_depth};
