//! An ordinary file system as the device: memory, saved atomically, and a synced log.
//!
//! The image lives in memory and is loaded from a file at open, or after it. Flushes and fences
//! make nothing durable; instead a **snapshot** makes the whole image durable at once, in the
//! background, while the engine goes on. Between snapshots only the log is durable, by one sync for
//! each call of `log_sync`.
//!
//! # Files of a database directory
//! | file | content |
//! |---|---|
//! | `meta` | roots, in two slots written in turn: which snapshot is the state; [marks](mark) |
//! | `data` | the pages of the image, each in a slot that no other page has |
//! | `table` | which slot each page has, with a checksum of the page |
//! | `log` | the log space, in place, without a header of its own |
//! | `openings` | which openings wrote which epochs: [`crate::Openings`] |
//! | `replay` | only after a process died in a recovery: [`crate::ReplayMarks`] |
//! | `loading` | only while a load is going on, or after one was cut short: [`crate::LoadMark`] |
//!
//! A snapshot writes pages into slots that the one before does not need, then their entries, and
//! then its root, which is the commit point. So nothing that is needed is ever written over, and
//! each page is written once. A root has the database's instance, the lengths of the files, and a
//! checksum of the entries that count; so each file is known to belong to the others.
//!
//! The directory itself is locked while the database is open (O-52), and `meta` too: no process can
//! remove a directory that holds files, and only the lock of a file is seen by other machines on a
//! network file system. A directory that holds something else and no database is refused. That each
//! file still has its name is checked with each snapshot and each growth: a database whose
//! directory was removed or replaced accepts nothing more, because no open would find it.
//!
//! What is assumed of the disk is in docs/format.md. How a snapshot is written, what an open makes
//! of a power cut after any step, accepting and growing have numbered steps and cases in README.md
//! beside this file; the code names them by their numbers.

mod disk;
mod format;

mod log_writes;
mod mark;
mod meta;
mod moves;
mod options;
mod slots;
mod table;

mod openings;
mod page_reads;

mod checkpoint;
mod give_back;
mod room;

mod residency;

mod directory;
mod inside;
mod open;
mod writer;

mod compact;
mod copy;

mod device;

pub use compact::{Compacted, compact};
pub use copy::{PinnedSnapshot, Replaced, UnfinishedCopy};
pub use device::File;
pub use disk::{DiskCall, DiskFile, DiskHook, DiskOperation, Outcome};
pub use inside::check_outside;
pub use options::FileOptions;
pub use residency::{memory_can_be_limited, on_lost_page};

/// The file of [`crate::ReplayMarks`] in a database directory.
pub(crate) const REPLAY_NAME: &str = "replay";
/// The file of [`crate::Openings`] in a database directory.
const OPENINGS_NAME: &str = "openings";
/// The file of [`crate::LoadMark`] in a database directory.
const LOADING_NAME: &str = "loading";
