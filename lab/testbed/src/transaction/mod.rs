//! Transactions that keep their writes to themselves until they commit: what their sessions have in
//! common, whichever protocol decides whether they may.
//!
//! A transaction finds rows by their records, notes the version of each that it reads, and the
//! nodes of indexes that it relies on. Its writes are payloads in its own memory, which its reads
//! and scans see (`buffers`, `accesses`). How a row is found and read, and what is noted of one
//! that will be written, is the protocol's (`protocol`), and so is the commit, which is not here.

mod accesses;
mod buffers;
mod place;
mod protocol;

pub(crate) use buffers::{Buffers, Kind, Read, Write};
pub(crate) use place::{place_at, place_behind};
pub(crate) use protocol::Protocol;
