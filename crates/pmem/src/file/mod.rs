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
//! # The model of the device below
//! Between two successful syncs of a file, each 512-byte sector written to it is old or new, in any
//! combination. A sector is never half old and half new: headers and marks are smaller than a
//! sector. After a *successful* sync of a file everything written to it before is there. The first
//! error of a write or sync is final (O-57): what became durable is unknown, so nothing more is
//! accepted.
//!
//! # Writing snapshot `n`
//! `image` holds snapshot `n-1` in place, perhaps not yet synced; `journal` holds it too, synced.
//!
//! 1. Sync `image`. Now the file holds snapshot `n-1` whatever happens to the journal.
//! 2. Write "image holds snapshot `n-1`" into slot `(n-1) mod 2` of `meta`; sync `meta`.
//! 3. Write index, pages and header of snapshot `n` over the old journal; sync `journal`. **This
//!    sync is the commit point**: snapshot `n` is durable, and reported so.
//! 4. Write the pages of snapshot `n` in place into `image`, without a sync: that is step 1 of
//!    `n+1`. When the device is dropped, steps 1 and 2 of `n+1` follow, so that the next open has
//!    nothing to apply.
//!
//! # Opening, with a power cut after any step
//! Let `m` be the newest snapshot named in `meta`, `j` the one named in the header of `journal`,
//! and `D` the digest of the image as it was loaded; `D(m)` and `D(j)` are what the headers say.
//! Opening reads and verifies; it changes no file.
//!
//! 1. Lock. Sync all files and the directory: after a killed process the files may show writes that
//!    are not on the device yet, and what follows must not build on sand. Load the image, with a
//!    checksum of every page.
//! 2. `j = m` and `D = D(m)`: cut in step 3 with the old header still there, or between steps 2 and
//!    3. By step 1 `image` holds `m` whole, and step 4 has not begun. The pages in the journal are
//!    not looked at: they may be torn.
//! 3. `j = m+1` and `D = D(j)`: cut after step 4. The state is `j`; the journal is not needed.
//! 4. `j = m+1` and the checksums of the journal hold: cut after the commit point, or in steps 1
//!    and 2 of the snapshot after it (the slot being written is old, new, or, on a device worse
//!    than the model, damaged). Copy the pages to memory, each checked as it was read. The digest
//!    is now `D(j)`, or the image was not the one that the journal is for. The state is `j`.
//! 5. `j = m+1`, a checksum of the journal fails, and `D = D(m)`: cut in step 3. Step 4 has not
//!    begun, and by steps 1 and 2 `image` holds `m`. The state is `m`. This is a normal power cut
//!    and is not reported.
//! 6. The journal's header is all zero: cut in step 3 of the very first snapshot, or never saved.
//!    Only possible with `m = 0`, and `D` is that of zeros. The state is the empty image.
//! 7. Everything else cannot come from a power cut: a header that is neither zero nor intact, other
//!    numbers, another digest, files of another database or moment, files that are missing or too
//!    short. Opening fails with the name of the file that does not fit, because in each of these
//!    cases a committed snapshot could be lost by guessing.
//!
//! What this does not see: a page of a committed journal that decays on the device before it was
//! written in place looks like case 5. The caller can keep a mark of what was committed.
//!
//! # Accepting what was opened
//! The caller verifies what it reads, and then calls [`crate::Device::accept`]. Until then nothing
//! is written, also when the device is dropped, so an open that is refused at any level leaves
//! every byte as it was; only log bytes that are there may be written again. `accept` extends
//! journal and image to what memory grew to meanwhile; in case 4 it copies the pages of the journal
//! to `image`, reading and checking them once more, and syncs. A cut during this changes only pages
//! that the journal has, so it can be repeated. (The sync is early: step 1 of the next snapshot
//! would do. It makes a device that cannot be written fail here and not in the first snapshot.)
//!
//! # Growing
//! Room for a journal of the whole image, then the image, are allocated and synced with the
//! directory before the new size is published (O-56). So a snapshot never runs out of space, and a
//! full file system is reported where the caller can still refuse a batch. Growth before `accept`
//! is in memory only, and `accept` is where a full file system is reported.

mod disk;
mod format;

mod digest;
mod dirty;

mod journal;
mod mark;

mod directory;
mod open;
mod writer;

mod device;

pub use device::File;
pub use digest::image_digest;
pub use disk::{DiskCall, DiskFile, DiskHook, DiskOperation, Outcome};
pub use open::FileOptions;

/// The file of [`crate::ReplayMarks`] in a database directory.
pub(crate) const REPLAY_NAME: &str = "replay";
/// The file of [`crate::LoadMark`] in a database directory.
const LOADING_NAME: &str = "loading";
