//! An ordinary file system as the device: memory, captured atomically, and a synced log.
//!
//! The image lives in memory and is loaded from a file at open. Flushes and fences make nothing
//! durable; instead a **capture** makes the whole image durable at once, in the background, while
//! the engine goes on. Between captures only the log is durable, by one sync for each call of
//! `log_sync`.
//!
//! # Files of a database directory
//! | file | content |
//! |---|---|
//! | `lock` | empty; an exclusive lock on it is held while the database is open (O-52) |
//! | `meta` | two slots, written in turn: identity, and which capture `image` holds |
//! | `image` | the pages of the image, in place |
//! | `journal` | the newest capture: a header, a page index with checksums, the pages |
//! | `log` | the log space, in place, without a header of its own |
//!
//! # The model of the medium
//! Between two successful syncs of a file, each 512-byte sector written to it is old or new, in any
//! combination. A sector is never half old and half new: both headers are smaller than a sector.
//! After a *successful* sync of a file everything written to it before is there. The first error of
//! a write or sync is final (O-57): what reached the medium is unknown, so the device accepts
//! nothing more.
//!
//! # Writing capture `n`
//! `image` holds capture `n-1` in place, perhaps not yet synced; `journal` holds it too, synced.
//!
//! 1. Sync `image`. Now the file holds capture `n-1` whatever happens to the journal.
//! 2. Write "image holds capture `n-1`" into slot `(n-1) mod 2` of `meta`; sync `meta`.
//! 3. Write index, pages and header of capture `n` over the old journal; sync `journal`. **This
//!    sync is the commit point**: capture `n` is durable, and reported so.
//! 4. Write the pages of capture `n` in place into `image`, without a sync: that is step 1 of
//!    `n+1`. When the device is dropped, steps 1 and 2 of `n+1` follow, so that the next open has
//!    nothing to apply.
//!
//! # Opening, with a power cut after any step
//! Let `m` be the newest capture named in `meta`, and `j` the one named in the header of `journal`.
//!
//! 1. Lock. Sync all files and the directory: after a killed process the files may show writes that
//!    are not on the medium yet, and what follows must not build on sand.
//! 2. `j = m`: cut in step 3 with the old header still there, or between steps 2 and 3. By step 1
//!    `image` holds `m` whole, and step 4 has not begun, so nothing needs to be done. The pages in
//!    the journal are not looked at: they may be torn.
//! 3. `j = m+1` and the checksums hold: cut after the commit point, or in steps 1 and 2 of the
//!    capture after it (the slot being written is old, new, or, on a medium worse than the model,
//!    damaged). Copy the pages to memory and to `image`, and sync. A cut during this changes only
//!    pages that the journal has, so it can be repeated. The state is `j`. (The sync is early: step
//!    1 of the next capture would do. It makes a medium that cannot be written fail the open and
//!    not the first capture.)
//! 4. `j = m+1` and a checksum fails: cut in step 3. Step 4 has not begun, and by steps 1 and 2
//!    `image` holds `m`. The state is `m`. This is a normal power cut and is not reported.
//! 5. The journal's header is all zero: cut in step 3 of the very first capture, or never captured.
//!    Only possible with `m = 0`. The state is the empty image.
//! 6. Everything else cannot come from a power cut: a header that is neither zero nor intact, other
//!    numbers, files of another database, files that are too short. Opening fails and changes
//!    nothing, because in each of these cases a committed capture could be lost by guessing.
//!
//! What this does not see: a page of a committed journal that decays on the medium before it was
//! written in place looks like case 4. The caller's digest of its state is what finds that (O-48).
//!
//! # Growing
//! Room for a journal of the whole image, then the image, are allocated and synced with the
//! directory before the new size is published (O-56). So a capture never runs out of space, and a
//! full file system is reported where the caller can still refuse a batch.

mod disk;
mod format;

mod dirty;

mod journal;
mod open;
mod writer;

mod device;

pub use device::File;
pub use disk::{DiskCall, DiskFile, DiskHook, DiskOperation, Outcome};
pub use open::FileOptions;
