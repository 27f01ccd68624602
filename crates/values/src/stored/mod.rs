//! Values as the store has them: the bytes of rows, and the bytes of keys, which sort.

pub mod key;
pub mod row;
