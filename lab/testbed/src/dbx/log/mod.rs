//! Redo logs: rows as transactions left them, with their versions.
//!
//! The log space is divided into *segments*, which writers take when they need one: each worker,
//! or the thread that writes groups, and a checkpoint. Segment 0 has two places for the *root*, of
//! which the newer counts: it says with which *turn* the segments begin that count. A checkpoint
//! begins the next turn; when all rows are in its segments the root changes, and the segments of
//! older turns are free. So the log is bounded. The paper leaves that to SiloR.
//!
//! A *record* is one transaction, or one group: entries of a key, a version and a value or none. It
//! is written in parts that fit into a segment, each with a checksum that begins with the number of
//! the segment's life; so what a segment held before does not count, and neither does a record that
//! was not written to its end. Nothing is in front of a record that is not durable before it, but
//! parts of its own. Of two entries of one key the one with the larger version is newer, whichever
//! log it is in (as in SiloR).

mod area;
mod read;
mod record;
mod segment;
mod write;

pub(super) use read::Opened;
pub(super) use record::{Entry, entries, push_entry};
pub(super) use segment::{CHECKPOINT, Log};
pub(super) use write::Writer;
