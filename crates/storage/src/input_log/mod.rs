//! The input log: what each epoch is going to execute, durable before it executes (NV 4.3, CA 3.6).
//!
//! The log space of a device is an array of equal segments. A segment in use begins with a checked
//! header that says to which epoch, attempt, stream and position its payload belongs; nothing else
//! is needed to find everything again, and no table of segments is kept on the device. Each worker
//! writes one stream per epoch; the coordinator then writes the *commit record*, which names every
//! stream with its length and digest. An epoch counts as committed only if its commit record and
//! everything that the commit record names is there; anything less reads as an epoch that was never
//! started (obligation O-24).
//!
//! The life of an epoch's log:
//!
//! 1. [`InputLog::begin`] reserves the space, or refuses before anything is written (O-43).
//! 2. Workers append to their [`StreamWriter`]s; `finish` fences the worker's own port (O-22).
//! 3. [`InputLog::commit`], then [`InputLog::make_durable`]: from here on the epoch survives
//!    (O-13). [`StreamWriter::finish_and_commit`] makes one record of an only stream and its commit
//!    record (O-82).
//! 4. [`InputLog::write_deferred_calls`] keeps the calls that the epoch hands to the next one.
//! 5. [`InputLog::release`], once a checkpoint at or after the epoch is durable: only then may its
//!    segments be written again (O-23).
//!
//! Every call of `begin` and `write_deferred_calls` gets a new *attempt* number, larger than any on
//! the device. An epoch number is reused after a crash that lost its log, and the segments of the
//! attempt before may still lie around with a good checksum: the attempt number keeps the two
//! apart.
//!
//! What a crash has torn is erased before anything new is written: otherwise a later record in its
//! place could complete it.
//!
//! Two more records say what the inputs mean ([`InputLog::write_program`]) and which calls replay
//! must leave out ([`InputLog::write_verdict`]).
//!
//! This module must never know what the bytes of a stream mean, nor what time it is. It allocates
//! only while it learns how much it needs, not for each epoch.

mod error;
pub mod format;

mod geometry;
mod holdings;
mod index;
mod space;
mod summary;
mod verdict;

mod erase;
mod log;
mod segment;
mod writer;

mod commit;
mod records;

mod reader;
mod scan;

mod archive;
mod copied;
mod evidence;
mod give_up;

pub use archive::{ArchiveStatus, ArchiveWatch, Until};
pub use error::LogError;
pub use geometry::Demand;
pub use give_up::GivenUp;
pub use log::InputLog;
pub use reader::{LoggedEpoch, Recovered};
pub use space::RESERVE_SEGMENTS;
pub use summary::{CommitInfo, CommittedRange, EpochSummary, StreamSummary};
pub use verdict::Verdict;
pub use writer::StreamWriter;

pub(crate) use archive::{Archived, LastUntil, append_archived, last_until};
pub(crate) use copied::{CopiedEnd, copy_segments, end_of_copy, newest_begun};
pub(crate) use evidence::first_logged;
pub(crate) use geometry::Geometry;

#[cfg(test)]
mod tests;
