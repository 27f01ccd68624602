//! Feeds of changes: what committed calls did to the rows of a table, epoch by epoch.
//!
//! The engine tells with each epoch how the rows of watched tables have changed (its
//! `version/changes.rs`). The sequencer leaves that with the [`Feeds`](kept::Feeds), which readers
//! on any thread go through ([`Changes`](crate::Changes)). Nothing waits for a reader: what is
//! too much is forgotten, the oldest epochs first, and the reader is told.

pub(crate) mod kept;
pub(crate) mod logged;
