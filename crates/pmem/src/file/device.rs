//! The device itself: the image in memory, snapshots handed to the writer, the log in its file.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use super::checkpoint::{ImageSnapshot, SnapshotWriter};
use super::directory::{load_mark, made_up};
use super::disk::{DiskFile, Files};
use super::format::Root;
use super::log_writes::LogWrites;
use super::mark::Marks;
use super::meta::write_root;
use super::moves::Moves;
use super::open::{ImagePages, Opened, State, open};
use super::openings::OpeningsFile;
use super::options::FileOptions;
use super::residency::{Loading, Residency, Saved};
use super::room::{Room, kept_pages};
use super::writer::Background;
use crate::device::{
    BringsPages, Description, Device, FileUse, Kind, MARK_BYTES, Needed, NotesOfStores, PageUse,
    PortState, Shortcuts,
};
use crate::epoch_number::EpochNumber;
use crate::failure::{DeviceError, Health, lock};
use crate::memory::{DirtyPages, Limited, Mapping, PAGE_BYTES, PagesToSave};
use crate::side_files::{LoadMark, Opening, Openings, ReplayMarks};
use crate::sync::background::Mutex;

/// So many neighbouring pages are looked at by one of those who begin a snapshot, the next ones by
/// the next: what is new lies together at the end, and all should have their share of it.
const PART_PAGES: u64 = (4 << 20) / PAGE_BYTES;

/// Pages that are moved at most when a database is closed: 16 MiB.
const CLOSING_MOVES: u64 = 4096;

/// Most bytes of new log space that are written with zeros first. That saves a quarter of the time
/// of syncs of a few kilobytes; who needs more than this at once has epochs so large that writing
/// everything twice costs more.
const ZEROED_GROWTH_BYTES_MAX: u64 = 16 << 20;

/// A database directory on an ordinary file system. See the module's documentation.
#[derive(Debug)]
pub struct File {
    dir: PathBuf,
    /// Where the image may be larger than memory. Dropped before the image is.
    residency: Option<Residency>,
    /// Where pages are read in the background. Dropped before the image is.
    loading: Option<Loading>,
    /// What there is to say of how pages are read.
    pages_note: String,
    image: Arc<Mapping>,
    /// How much of it is in use.
    usable: Limited,
    log: Limited,
    log_writes: LogWrites,
    /// What shows that the log was cut off before this open, if it was.
    lost_log: Option<String>,
    dirty: Arc<DirtyPages>,
    /// Pages of the snapshot that begins, from each of those who look at a part.
    to_save: Mutex<Vec<PagesToSave>>,
    /// What was opened, until it is accepted. Only one caller at a time extends files.
    opened: Mutex<Option<State>>,
    /// The snapshot that was opened; where what is changed stays in memory, the newest there.
    epoch_without_files: Mutex<Option<EpochNumber>>,
    instance: u64,
    branch: AtomicU64,
    archive: Option<PathBuf>,
    marks: Mutex<Marks>,
    openings: Mutex<OpeningsFile>,
    read_only: bool,
    /// What is changed stays in memory.
    detached: bool,
    health: Arc<Health>,
    /// Writes snapshots, from the moment on when the state was accepted.
    background: OnceLock<Background>,
    files: Arc<Files>,
    room: Arc<Room>,
}

impl File {
    /// Opens the database in a directory, and creates it if the options say so. No file of a
    /// database that is there is changed before [`Device::accept`], and none ever if that is not
    /// called.
    ///
    /// # Errors
    /// [`DeviceError::Locked`] if it is open elsewhere (O-52), [`DeviceError::Missing`] if there is
    /// none, [`DeviceError::Foreign`] or [`DeviceError::Corrupt`] if its files cannot come from us
    /// or from a power cut, or if something else is in the way of a new one,
    /// [`DeviceError::Full`] if it is larger than the limits, [`DeviceError::Io`] otherwise.
    pub fn open(dir: impl AsRef<Path>, options: &FileOptions) -> Result<Self, DeviceError> {
        let dir = dir.as_ref();
        let health = Arc::default();
        let opened = open(dir, options, &health)?;
        let Opened { files, image, dirty, pages, image_bytes, log_bytes, .. } = opened;
        let Opened { lost_log, state, marks, openings, room, .. } = opened;
        let log_writes = LogWrites::new(&files.log)?;
        let pages_note = note_pages(&pages);
        let (residency, loading) = match pages {
            ImagePages::Read(_) => (None, None),
            ImagePages::Loading(loading) => (None, Some(loading)),
            ImagePages::Limited(residency) => (Some(residency), None),
        };
        Ok(Self {
            dir: dir.to_path_buf(),
            residency,
            loading,
            pages_note,
            usable: Limited::new("image", options.image_limit_bytes, image_bytes),
            log: Limited::new("log", options.log_limit_bytes, log_bytes),
            log_writes,
            lost_log,
            dirty,
            image,
            to_save: Mutex::default(),
            epoch_without_files: Mutex::new(state.newest.epoch),
            instance: state.newest.instance,
            branch: AtomicU64::new(state.newest.branch),
            archive: options.archive.clone().filter(|_| !options.read_only),
            opened: Mutex::new(Some(state)),
            marks: Mutex::new(marks),
            openings: Mutex::new(openings),
            read_only: options.read_only,
            detached: options.read_only && options.detached,
            health,
            background: OnceLock::new(),
            files,
            room,
        })
    }

    /// The directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Makes the files large enough for an image of so many bytes of which so many pages more will
    /// be stored to before the next snapshot.
    fn make_room(&self, image_bytes: u64, pages: u64) -> Result<(), DeviceError> {
        let changed = self.dirty.count() + pages;
        self.room.make(&self.files, &self.health, image_bytes, changed)
    }

    fn extend_log(&self, bytes: u64) -> Result<(), DeviceError> {
        let (log, old) = (&self.files.log, self.log.bytes());
        assert!(bytes > old, "a log of {old} bytes grows, and not to {bytes}");
        assert!(!self.read_only, "a log that is only read does not grow");
        self.health.note(self.files.check_place())?;
        self.health.note_growth(log.allocate(bytes))?;
        if bytes - old <= ZEROED_GROWTH_BYTES_MAX {
            // Written once, so that a later sync of the log has only data to write and no block
            // map.
            self.health.note_growth(log.zero(old, bytes))?;
        }
        self.health.note(log.sync())?;
        self.health.note(self.files.directory.sync())?;
        self.log.set(bytes);
        self.room.log_changed(0);
        Ok(())
    }

    /// The writer of snapshots.
    ///
    /// # Panics
    /// If the state was not accepted: the caller changes what it did not verify.
    fn background(&self) -> &Background {
        self.background.get().expect("the store was accepted before it is saved")
    }
}

/// What there is to say of how pages are read.
fn note_pages(pages: &ImagePages) -> String {
    match pages {
        ImagePages::Read(None) | ImagePages::Limited(_) => String::new(),
        ImagePages::Loading(_) => "; pages are read after the open".into(),
        ImagePages::Read(Some(error)) => format!(
            "; all pages are read by the open, because this system has no `userfaultfd` for this \
             process ({error})"
        ),
    }
}

impl Device for File {
    fn description(&self) -> Description {
        Description {
            name: format!("file:{}", self.dir.display()),
            durable: true,
            note: format!(
                "memory, saved into files; what was saved or synced to the log survives; small \
                 epochs are {}{}",
                match self.files.log.writes_durably() {
                    true => "one direct write",
                    false => "a write and a sync",
                },
                self.pages_note
            ),
        }
    }

    fn shortcuts(&self) -> Shortcuts {
        Shortcuts(Kind::Noted(Arc::clone(&self.dirty)))
    }

    #[inline]
    fn image(&self) -> &Mapping {
        &self.image
    }

    #[inline]
    fn image_bytes(&self) -> u64 {
        self.usable.bytes()
    }

    fn grow_image(&self, bytes: u64) -> Result<(), DeviceError> {
        let opened = lock(&self.opened);
        let bytes = self.usable.check_limit(bytes)?;
        if bytes <= self.usable.bytes() {
            return Ok(());
        }
        self.health.check()?;
        // Before the state is accepted only memory grows; `accept` makes the files follow.
        if opened.is_none() && !self.detached {
            self.make_room(bytes, kept_pages(bytes))?;
        }
        if let Some(residency) = &self.residency {
            self.health.note(residency.grown(self.usable.bytes(), bytes))?;
        }
        self.usable.set(bytes);
        Ok(())
    }

    fn reserve_pages(&self, pages: u64, frees: bool) -> Result<(), DeviceError> {
        let opened = lock(&self.opened);
        self.health.check()?;
        if opened.is_some() || self.detached {
            return Ok(());
        }
        let image_bytes = self.usable.bytes();
        let kept = if frees { 0 } else { kept_pages(image_bytes) };
        self.make_room(image_bytes, pages + kept)?;
        if let Some(residency) = &self.residency {
            residency.promise(pages);
        }
        Ok(())
    }

    #[inline]
    // SAFETY: the contract of the trait: the caller owns the range in this phase.
    unsafe fn store_u64(&self, _: &mut PortState, offset: u64, value: u64) {
        self.dirty.before_store(offset, 8);
        // SAFETY: owned by the caller in this phase.
        unsafe { self.image.store_u64(offset, value) };
    }

    #[inline]
    // SAFETY: the contract of the trait: the caller owns the range in this phase.
    unsafe fn store_bytes(&self, _: &mut PortState, offset: u64, bytes: &[u8]) {
        self.dirty.before_store(offset, bytes.len() as u64);
        // SAFETY: owned by the caller in this phase.
        unsafe { self.image.store_bytes(offset, bytes) };
    }

    fn notes_of_stores(&self) -> Option<NotesOfStores> {
        let dirty = Arc::clone(&self.dirty);
        Some(Box::new(move |offset, len| dirty.before_store(offset, len)))
    }

    #[inline]
    // SAFETY: the contract of the trait: the caller owns the range in this phase.
    unsafe fn store_nt(&self, port: &mut PortState, offset: u64, bytes: &[u8]) {
        // SAFETY: forwarded to the caller. The snapshot reads the page soon, so the store is an
        // ordinary one.
        unsafe { self.store_bytes(port, offset, bytes) }
    }

    #[inline]
    fn flush(&self, _: &mut PortState, _: u64, _: u64) {}

    #[inline]
    fn fence(&self, _: &mut PortState) {}

    fn log_bytes(&self) -> u64 {
        self.log.bytes()
    }

    fn grow_log(&self, bytes: u64) -> Result<(), DeviceError> {
        let opened = lock(&self.opened);
        let bytes = self.log.check_limit(bytes)?;
        if bytes <= self.log.bytes() {
            return Ok(());
        }
        self.health.check()?;
        assert!(opened.is_none(), "the store was accepted before its log grows");
        if self.detached {
            self.log.set(bytes);
            return Ok(());
        }
        self.extend_log(bytes)
    }

    fn log_write(&self, _: &mut PortState, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.log.check_usable(offset, bytes.len() as u64);
        self.health.check()?;
        if self.detached {
            // The log is read when a store is opened. Where one is opened twice, the first time has
            // brought all of its log to a checkpoint.
            return Ok(());
        }
        self.health.note(self.log_writes.write(&self.files.log, offset, bytes))
    }

    fn log_unit(&self, is_now: bool) -> usize {
        if is_now { self.log_writes.unit() as usize } else { PAGE_BYTES as usize }
    }

    fn log_write_now(
        &self,
        port: &mut PortState,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), DeviceError> {
        if self.detached {
            return self.log_write(port, offset, bytes);
        }
        self.log.check_usable(offset, bytes.len() as u64);
        self.health.check()?;
        self.health.note(self.log_writes.write_now(&self.files.log, offset, bytes))
    }

    fn log_fence(&self, _: &mut PortState) {}

    fn log_sync(&self) -> Result<(), DeviceError> {
        self.health.check()?;
        if self.read_only {
            // Nothing was written, and nothing will be built on what was read.
            return Ok(());
        }
        self.health.note(self.log_writes.sync(&self.files.log))
    }

    fn log_read(&self, offset: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        let kept = match self.detached {
            true => self.files.log.len()?.min(self.log.bytes()),
            false => self.log.bytes(),
        };
        let there = kept.saturating_sub(offset).min(into.len() as u64);
        let (head, tail) = into.split_at_mut(there as usize);
        tail.fill(0);
        if head.is_empty() { Ok(()) } else { self.files.log.read_exact_at(offset, head) }
    }

    fn instance(&self) -> Option<u64> {
        Some(self.instance)
    }

    fn branch(&self) -> u64 {
        self.branch.load(Ordering::Relaxed)
    }

    fn begin_branch(&self) -> Result<(), DeviceError> {
        if self.read_only {
            return Err(DeviceError::ReadOnly { path: self.dir.clone() });
        }
        self.health.check()?;
        let mut opened = lock(&self.opened);
        let state = opened.as_mut().expect("a branch begins before the state is accepted");
        let Root { sequence, .. } = state.newest;
        let root = Root { sequence: sequence + 1, branch: made_up(), ..state.newest };
        self.health.note(write_root(&self.files, &root))?;
        state.newest = root;
        self.branch.store(root.branch, Ordering::Relaxed);
        Ok(())
    }

    fn note_opening(&self, first: EpochNumber) -> Result<(), DeviceError> {
        if self.read_only {
            return Ok(());
        }
        self.health.check()?;
        assert!(self.background.get().is_some(), "the store was accepted before it writes epochs");
        let opening = Opening { first, id: made_up() };
        self.health.note_growth(lock(&self.openings).note_if_room(&self.files, opening))
    }

    fn openings(&self) -> Option<Openings> {
        lock(&self.openings).openings()
    }

    fn archive(&self) -> Option<&Path> {
        self.archive.as_deref()
    }

    fn accept(&self) -> Result<(), DeviceError> {
        if self.background.get().is_some() {
            return Ok(());
        }
        let mut opened = lock(&self.opened);
        let Some(state) = opened.as_mut() else { return Ok(()) };
        if self.detached {
            *opened = None;
            return Ok(());
        }
        if self.read_only {
            return Err(DeviceError::ReadOnly { path: self.dir.clone() });
        }
        self.health.check()?;
        self.make_room(self.usable.bytes(), 0)?;
        if self.log.bytes() < state.newest.log_bytes {
            self.extend_log(state.newest.log_bytes)?;
        }
        let State { newest, table, free } = state;
        let newest = *newest;
        let (table, free) = (std::mem::take(table), std::mem::take(free));
        let (files, room) = (Arc::clone(&self.files), Arc::clone(&self.room));
        let saved = match (&self.residency, &self.loading) {
            (Some(residency), _) => residency.saved(),
            (None, Some(loading)) => loading.saved(),
            (None, None) => Saved::default(),
        };
        let writer = SnapshotWriter::new(files, newest, table, free, room).telling(saved);
        let background = Background::start(writer, newest.epoch, Arc::clone(&self.health))
            .map_err(|e| DeviceError::io("start the snapshot thread for", &self.dir, e));
        let first = self.background.set(self.health.note(background)?);
        assert!(first.is_ok(), "a state is accepted once");
        *opened = None;
        Ok(())
    }

    fn write_mark(&self, mark: &[u8; MARK_BYTES]) -> Result<(), DeviceError> {
        self.health.check()?;
        if self.detached {
            return Ok(());
        }
        assert!(self.background.get().is_some(), "the store was accepted before it is marked");
        self.health.note(lock(&self.marks).write(&self.files.meta, mark))
    }

    fn mark(&self) -> Option<[u8; MARK_BYTES]> {
        lock(&self.marks).found()
    }

    fn lost_log(&self) -> Option<String> {
        self.lost_log.clone()
    }

    fn replay_marks(&self) -> Result<Option<ReplayMarks>, DeviceError> {
        if self.read_only {
            return Ok(None);
        }
        let path = self.dir.join(super::REPLAY_NAME);
        let may_create = || self.files.directory.may_create(DiskFile::Replay);
        ReplayMarks::open(&path, may_create).map(Some)
    }

    fn load_mark(&self) -> Option<LoadMark> {
        Some(load_mark(&self.dir))
    }

    fn changed_bytes(&self) -> u64 {
        self.dirty.count() * PAGE_BYTES
    }

    fn takes_snapshots(&self) -> bool {
        true
    }

    fn snapshot_part(&self, part: usize, parts: usize) -> Result<(), DeviceError> {
        assert!(part < parts, "part {part} of {parts}");
        self.health.check()?;
        if self.detached {
            return Ok(());
        }
        let pages = self.image_bytes() / PAGE_BYTES;
        let ranges = (part as u64 * PART_PAGES..pages)
            .step_by(parts * PART_PAGES as usize)
            .map(|first| first..pages.min(first + PART_PAGES));
        // The one before has to be written: a page is to be saved by one of them.
        self.background().settle()?;
        let part = self.dirty.take(ranges);
        if let Some(residency) = &self.residency {
            residency.saving(&part.pages);
        }
        lock(&self.to_save).push(part);
        Ok(())
    }

    fn snapshot_commit(&self, epoch: EpochNumber) -> Result<(), DeviceError> {
        self.health.check()?;
        if self.detached {
            *lock(&self.epoch_without_files) = Some(epoch);
            return Ok(());
        }
        self.health.note(self.files.check_place())?;
        let parts = std::mem::take(&mut *lock(&self.to_save));
        let (image_bytes, log_bytes) = (self.image_bytes(), self.log_bytes());
        let newest = self.snapshot_epoch();
        assert!(newest <= Some(epoch), "snapshot {epoch} is newer than that of {newest:?}");
        let pages = parts.iter().map(|part| part.pages.len() as u64).sum();
        let moves = Moves::beside(pages);
        let snapshot = ImageSnapshot { epoch, image_bytes, log_bytes, parts, moves };
        self.background().submit(snapshot, |snapshot| {
            snapshot.log_bytes = self.room.submitted(pages, log_bytes);
        })
    }

    fn is_saving(&self) -> bool {
        self.background.get().is_some_and(Background::is_busy)
    }

    fn page_use(&self) -> Option<PageUse> {
        self.residency.as_ref().map(Residency::stats)
    }

    #[inline]
    fn has_memory_limit(&self) -> bool {
        self.residency.is_some()
    }

    #[inline]
    fn has_absent_pages(&self) -> bool {
        self.has_memory_limit() || self.loading.as_ref().is_some_and(Loading::has_absent_pages)
    }

    fn wait_for_pages(&self) -> Result<(), DeviceError> {
        self.loading.as_ref().map_or(Ok(()), |loading| loading.wait(&self.health))
    }

    fn read_pages(&self, offset: u64, len: u64) -> Result<(), DeviceError> {
        match (&self.residency, &self.loading) {
            (Some(residency), _) => residency.read(offset, len),
            (None, Some(loading)) => loading.read(offset, len),
            (None, None) => Ok(()),
        }
    }

    fn leave_memory(&self, other_bytes: u64) {
        if let Some(residency) = &self.residency {
            residency.leave(other_bytes);
        }
    }

    #[inline]
    fn want_pages(&self, offset: u64, len: u64, needed: Needed, missing: &mut Vec<u64>) {
        if let Some(residency) = &self.residency {
            residency.want(offset, len, needed, missing);
        } else if let Some(loading) = &self.loading {
            loading.want(offset, len, missing);
        }
    }

    fn fetch_pages(&self, missing: &mut Vec<u64>) {
        if let Some(residency) = &self.residency {
            residency.fetch(missing);
        } else if let Some(loading) = &self.loading {
            loading.fetch(missing);
        }
    }

    fn brings_pages(&self) -> Option<BringsPages> {
        self.residency.as_ref().map(Residency::brings_pages)
    }

    fn kept_bytes(&self) -> Option<Arc<AtomicU64>> {
        self.residency.as_ref().map(Residency::kept_bytes)
    }

    fn needs_snapshot(&self) -> bool {
        let changed_bytes = self.changed_bytes();
        self.residency.as_ref().is_some_and(|residency| residency.wants_snapshot(changed_bytes))
    }

    fn shrink_log(&self, bytes: u64) -> Result<bool, DeviceError> {
        let opened = lock(&self.opened);
        self.health.check()?;
        if opened.is_some() || self.detached || bytes >= self.log.bytes() {
            return Ok(false);
        }
        assert!(bytes.is_multiple_of(PAGE_BYTES), "a log of {bytes} bytes has whole pages");
        if !self.room.may_cut_log(bytes) {
            return Ok(false);
        }
        let given_back = self.log.bytes() - bytes;
        self.log.shrink(bytes);
        self.health.note(self.files.log.truncate(bytes))?;
        self.room.log_changed(given_back);
        Ok(true)
    }

    fn save_again(&self) -> Result<(), DeviceError> {
        self.health.check()?;
        let Some(background) = self.background.get() else { return Ok(()) };
        background.settle()?;
        let Some(epoch) = background.snapshot_epoch().filter(|_| self.room.has_excess()) else {
            return Ok(());
        };
        let (image_bytes, log_bytes) = (self.image_bytes(), self.log_bytes());
        let (parts, moves) = (Vec::new(), Moves { most: CLOSING_MOVES, is_open: true });
        let snapshot = ImageSnapshot { epoch, image_bytes, log_bytes, parts, moves };
        background.submit(snapshot, |snapshot| {
            snapshot.log_bytes = self.room.named_again(log_bytes);
        })?;
        background.settle()
    }

    fn use_of_files(&self) -> Option<FileUse> {
        Some(self.room.use_of_files(self.log_bytes()))
    }

    fn snapshot_epoch(&self) -> Option<EpochNumber> {
        let without_files = || *lock(&self.epoch_without_files);
        self.background.get().map_or_else(without_files, Background::snapshot_epoch)
    }

    fn settle(&self) -> Result<(), DeviceError> {
        self.background.get().map_or_else(|| self.health.check(), Background::settle)
    }
}
