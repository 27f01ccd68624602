//! The archive of the log: epochs that have ended, in files of a directory.
//!
//! Rules:
//! 1. Segments of an epoch are not given free before the file of the archive that has them is
//!    durable under its name. Until then the log grows; a failure is told, and tried again at the
//!    next checkpoint, and calls go on as long as there is log space.
//! 2. What a process before has left in the log, and the checkpoint has made obsolete, is archived
//!    when the log is opened, before anything is written over it.
//! 3. A file names store, *branch*, and its first and last epoch, and has a checksum. A store that
//!    was restored is a new branch: what is archived of the future that it gave up never becomes
//!    part of it, though the numbers of epochs are the same (S23).
//! 4. Epochs may be archived before a checkpoint makes them obsolete ([`archive_ended`]),
//!    but not before they have ended: until then they may get a verdict.
//! 5. A directory that has later epochs of this store and branch than the store itself is refused:
//!    the store is an earlier copy, and its epochs would be taken for others.
//! 6. A file names the opening of the store that wrote its last epoch. A directory whose last epoch
//!    another opening wrote than the store knows of is refused: the store lost epochs, and has
//!    written others of the same numbers (S23).
//! 7. A file that is not finished is locked by the process that writes it. One that a process has
//!    left that was killed is removed when a log is opened that is archived to the directory, of
//!    this store or of another; a try that fails removes its own.
//!
//! This must not know what calls mean.
//!
//! [`archive_ended`]: super::InputLog::archive_ended

mod file;
mod listing;
mod unfinished;

mod append;
mod keeper;
mod start;

pub use append::Until;
pub use keeper::{ArchiveStatus, ArchiveWatch};

pub(crate) use append::{Archived, LastUntil, append_archived, last_until};
pub(super) use keeper::{Archive, Job};
pub(super) use start::start;
