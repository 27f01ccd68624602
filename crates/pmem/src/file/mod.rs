//! An ordinary file system as the device: memory, saved atomically, and a synced log.
//!
//! The image lives in memory and is loaded from a file at open. Flushes and fences make nothing
//! durable; instead a **snapshot** makes the whole image durable at once, in the background, while
//! the engine goes on. Between snapshots only the log is durable, by one sync for each call of
//! `log_sync`.
//!
//! # Files of a database directory
//! | file | content |
//! |---|---|
//! | `meta` | headers, in two slots written in turn: which snapshot `image` holds; [marks](mark) |
//! | `image` | the pages of the image, in place |
//! | `journal` | the newest snapshot: a header, a page index with checksums, the pages |
//! | `log` | the log space, in place, without a header of its own |
//! | `replay` | only after a process died in a recovery: [`crate::ReplayMarks`] |
//! | `loading` | only while a load is going on, or after one was cut short: [`crate::LoadMark`] |
//!
//! A header says of its snapshot which database it is of, its number, the length of image and log,
//! and a [digest](digest) of the whole image. So each file is known to belong to the others: `meta`
//! and `journal` by instance and number, `image` by its digest, `log` by its length (whose content
//! the caller knows).
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

mod digest;
mod dirty;

mod journal;
mod mark;
mod meta;
mod options;

mod directory;
mod open;
mod writer;

mod device;

pub use device::File;
pub use digest::image_digest;
pub use disk::{DiskCall, DiskFile, DiskHook, DiskOperation, Outcome};
pub use options::FileOptions;

/// The file of [`crate::ReplayMarks`] in a database directory.
pub(crate) const REPLAY_NAME: &str = "replay";
/// The file of [`crate::LoadMark`] in a database directory.
const LOADING_NAME: &str = "loading";
