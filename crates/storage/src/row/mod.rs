//! A persistent row: one header line with two versions, then the inline heap (NV 5.3), in two fixed
//! halves or shared by both versions (`heap`). In a table that is made for keys and values
//! of at most 8 bytes, the halves are the last words of the header line, so that a final write
//! stores and flushes one line.
//!
//! A new value never overlaps the bytes of the other version (O-32), and nothing has to be copied
//! from slot to slot: a final write overwrites the slot that is not the checkpoint's, serial id
//! first, then the pointer, in one line (O-26, docs/decisions/0001). Which slot is newest follows
//! from the serial ids alone.
//!
//! Knows nothing of epochs in progress except the number of the last checkpoint.

mod shared_heap;

mod layout;

mod heap;

mod read;
mod write;

pub use layout::{RowLayout, Shape};
pub use read::{VERSIONS_BYTES, checkpoint_slot, head_at, key, key_at, key_read, meta, versions};
pub use write::{Content, First, NewVersion, clear_version, initialise, key_crc, write_version};
