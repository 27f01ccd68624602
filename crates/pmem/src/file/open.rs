//! Opening: decide which snapshot is the state, verify it, load it. Changes no file.

use std::path::Path;
use std::sync::Arc;

use super::digest::ImageDigest;
use super::directory::open_files;
use super::disk::{DiskHandle, Files, PIECE_BYTES};
use super::format::{Found, Header, JOURNAL_MAGIC};
use super::journal::{apply, check_length, read_header};
use super::mark::Marks;
use super::meta::{Meta, find_named};
use super::options::FileOptions;
use crate::failure::DeviceError;
use crate::memory::{Mapping, PAGE_BYTES, page_ceil};

/// What opening found.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) files: Arc<Files>,
    pub(super) image: Mapping,
    pub(super) image_bytes: u64,
    pub(super) log_bytes: u64,
    pub(super) state: State,
    pub(super) marks: Marks,
}

/// Which snapshot is the state, and what `accept` has to do so that the files hold it.
#[derive(Debug)]
pub(super) struct State {
    /// The snapshot that memory holds.
    pub(super) newest: Header,
    /// The snapshot that `meta` names.
    pub(super) named: u64,
    /// What memory holds in each page, as of the snapshot.
    pub(super) digest: ImageDigest,
    /// The index of the journal, if its pages are in memory only and not in `image`.
    pub(super) to_write: Option<Vec<u8>>,
}

pub(super) fn open(dir: &Path, options: &FileOptions) -> Result<Opened, DeviceError> {
    let files = open_files(dir, options)?;
    if !options.read_only {
        // Opening, step 1: what can be read is on the device.
        for file in [&files.meta, &files.journal, &files.image, &files.log, &files.directory] {
            file.sync()?;
        }
    }
    let meta = find_named(&files.meta)?;
    let journal = find_journal(&files, &meta.named)?;
    let image_bytes = usable_bytes(&files.image, "image", options.image_limit_bytes)?;
    let log_bytes = usable_bytes(&files.log, "log", options.log_limit_bytes)?;
    let lost_log = options.lost_log;
    let image = Mapping::reserve(page_ceil(options.image_limit_bytes))?;
    assert!(image.len() >= image_bytes, "an image within its limit fits its mapping");
    // SAFETY: the mapping is not shared yet.
    let digest = unsafe { load_image(&files.image, image_bytes, &image) }?;
    let loaded =
        Loaded { files: &files, meta, journal, image: &image, image_bytes, log_bytes, lost_log };
    let state = loaded.decide(digest)?;
    let marks = Marks::read(&files.meta, state.newest.instance)?;
    Ok(Opened { files, image, image_bytes, log_bytes, state, marks })
}

/// The header of the journal; `None` if nothing was ever saved.
fn find_journal(files: &Files, named: &Header) -> Result<Option<Header>, DeviceError> {
    let path = files.journal.path();
    match Header::decode(&read_header(&files.journal, 0)?, JOURNAL_MAGIC) {
        // Opening, case 6.
        Found::Zero if named.sequence == 0 => Ok(None),
        Found::Zero => Err(DeviceError::corrupt(path, "empty, but something was saved")),
        Found::Foreign(what) => Err(DeviceError::foreign(path, what)),
        Found::Damaged(what) => Err(DeviceError::corrupt(path, what)),
        Found::Header(header) => check_length(files, &header).map(|()| Some(header)),
    }
}

/// Whole pages of a file; a growth that was cut short may have left a piece of one.
fn usable_bytes(
    file: &DiskHandle,
    what: &'static str,
    limit_bytes: u64,
) -> Result<u64, DeviceError> {
    let bytes = file.len()? / PAGE_BYTES * PAGE_BYTES;
    if bytes > page_ceil(limit_bytes) {
        let what = format!("{what} (the existing file)");
        return Err(DeviceError::Full { what, wanted_bytes: bytes, limit_bytes });
    }
    Ok(bytes)
}

/// Loads the image, and says what was loaded.
///
/// # Safety
/// The mapping is owned by the caller.
unsafe fn load_image(
    file: &DiskHandle,
    bytes: u64,
    image: &Mapping,
) -> Result<ImageDigest, DeviceError> {
    let mut digest = ImageDigest::of_zeros(bytes);
    let mut at = 0;
    while let Some((start, end)) = file.next_data(at, bytes) {
        // Whole pages, also where the file system has smaller blocks.
        let start = start / PAGE_BYTES * PAGE_BYTES;
        let len = page_ceil(end - start).min(PIECE_BYTES as u64);
        // SAFETY: owned by the caller.
        let piece = unsafe { image.slice_mut(start, len) };
        file.read_exact_at(start, piece)?;
        for (page, bytes) in (start / PAGE_BYTES..).zip(piece.chunks(PAGE_BYTES as usize)) {
            digest.set(page, crc32fast::hash(bytes));
        }
        at = start + len;
    }
    Ok(digest)
}

/// All that is needed to decide which snapshot is the state.
struct Loaded<'a> {
    files: &'a Files,
    meta: Meta,
    journal: Option<Header>,
    image: &'a Mapping,
    image_bytes: u64,
    log_bytes: u64,
    lost_log: bool,
}

impl Loaded<'_> {
    /// The cases of README.md.
    fn decide(&self, mut digest: ImageDigest) -> Result<State, DeviceError> {
        let named = self.meta.named;
        let found = digest.value();
        let state = |newest, digest, to_write| {
            Ok(State { newest, named: named.sequence, digest, to_write })
        };
        let Some(journal) = self.journal else {
            self.check_image(&named, found)?;
            self.check_sure()?;
            return state(named, digest, None);
        };
        if journal.instance != named.instance {
            return Err(self.stranger(&journal, found));
        }
        if journal.sequence == named.sequence {
            if !journal.is_same_state(&named) {
                return Err(self.misfit(&journal, found));
            }
            self.check_image(&named, found)?;
            self.check_sure()?;
            return state(named, digest, None);
        }
        if journal.sequence != named.sequence + 1 {
            return Err(self.misfit(&journal, found));
        }
        self.check_lengths(&journal)?;
        if found == journal.image_digest {
            return state(journal, digest, None);
        }
        // SAFETY: the mapping is not shared yet.
        let applied = unsafe { apply(self.files, &journal, self.image, &mut digest) }?;
        if applied.is_some() {
            self.check_image(&journal, digest.value())?;
            return state(journal, digest, applied);
        }
        self.check_sure()?;
        if found != named.image_digest {
            let what = "it is damaged, and its snapshot was already being written into the image: \
                        restore the whole directory from a copy";
            return Err(DeviceError::corrupt(self.files.journal.path(), what));
        }
        state(named, digest, None)
    }

    /// Checks that the files have the lengths that they had at a snapshot; they never shrink.
    fn check_lengths(&self, snapshot: &Header) -> Result<(), DeviceError> {
        let Files { image, log, .. } = self.files;
        let lengths = [
            (image, self.image_bytes, snapshot.image_bytes),
            (log, self.log_bytes, snapshot.log_bytes),
        ];
        for (file, there, saved) in lengths {
            let is_given_up = self.lost_log && std::ptr::eq(file, log);
            if there < saved && !is_given_up {
                let what = self.words_for_short(file, there, saved, snapshot);
                return Err(DeviceError::corrupt(file.path(), what));
            }
        }
        Ok(())
    }

    fn words_for_short(
        &self,
        file: &DiskHandle,
        there: u64,
        saved: u64,
        snapshot: &Header,
    ) -> String {
        let what = format!("{there} bytes, but {saved} were saved: truncated?");
        if !std::ptr::eq(file, &self.files.log) {
            return what;
        }
        let epoch = snapshot.epoch.unwrap_or_default();
        format!(
            "{what} Restore it, or accept the loss of everything after epoch {epoch} with \
             `nvcaracal recover --accept-loss-after {epoch} PATH`"
        )
    }

    /// Checks that what is in memory is a snapshot.
    fn check_image(&self, snapshot: &Header, digest: u64) -> Result<(), DeviceError> {
        self.check_lengths(snapshot)?;
        if digest == snapshot.image_digest {
            return Ok(());
        }
        let (number, wanted) = (snapshot.sequence, snapshot.image_digest);
        let what = format!(
            "its digest is {digest:016x}, that of snapshot {number} is {wanted:016x}: it is \
             damaged, or of another moment or database than the other files; restore the whole \
             directory from a copy"
        );
        Err(DeviceError::corrupt(self.files.image.path(), what))
    }

    /// A slot that is torn, on a device worse than the model, is harmless while the journal holds
    /// the snapshot after the one that the other slot names. Otherwise it is not known what it
    /// said.
    fn check_sure(&self) -> Result<(), DeviceError> {
        match &self.meta.doubt {
            None => Ok(()),
            Some(what) => Err(DeviceError::corrupt(self.files.meta.path(), what)),
        }
    }

    /// `meta` and `journal` are not of the same database: says which of them the image belongs to.
    fn stranger(&self, journal: &Header, digest: u64) -> DeviceError {
        let (file, others) = if digest == journal.image_digest {
            (&self.files.meta, "journal and image")
        } else {
            (&self.files.journal, "meta")
        };
        let what = format!("it belongs to another database than {others}: put the right one back");
        DeviceError::foreign(file.path(), what)
    }

    /// `meta` and `journal` are of the same database, but not of the same moment.
    fn misfit(&self, journal: &Header, digest: u64) -> DeviceError {
        let (held, named) = (journal.sequence, self.meta.named.sequence);
        let (file, what) = if digest == journal.image_digest {
            let what = format!("it names snapshot {named}, but journal and image hold {held}");
            (&self.files.meta, what)
        } else {
            let what = format!("it holds snapshot {held}, but meta names snapshot {named}");
            (&self.files.journal, what)
        };
        let what = format!(
            "{what} of this database: it is of another moment or copy, put the one \
                            back that belongs to the other files"
        );
        DeviceError::corrupt(file.path(), what)
    }
}
