//! Writing the archive while epochs go on. The rules are those of the module.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;

use pmem::sync::background::{Condvar, Mutex, MutexGuard};
use pmem::{AnyDevice, Device, LogSpace, Process};

use super::super::error::LogError;
use super::super::format::{HEADER_BYTES, SegmentHeader};
use super::super::geometry::Geometry;
use super::file::{FILE_HEADER_BYTES, FileHeader, UNFINISHED, error};
use super::listing::io_error;
use super::unfinished::Unfinished;
use crate::ids::EpochNumber;

/// How the archive of a log is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveStatus {
    /// Where it is.
    pub directory: PathBuf,
    /// All epochs up to this one that were to be archived are.
    pub epoch: EpochNumber,
    /// Why the last try failed. It is tried again at the next checkpoint; until it succeeds the log
    /// grows.
    pub error: Option<String>,
}

/// Epochs that are to be archived, and the segments that have them.
#[derive(Debug)]
pub(in super::super) struct Job {
    pub(in super::super) first: EpochNumber,
    pub(in super::super) last: EpochNumber,
    pub(in super::super) segments: Vec<u32>,
}

#[derive(Debug, Default)]
struct State {
    job: Option<Job>,
    is_busy: bool,
    stop: bool,
    archived: EpochNumber,
    /// Why the epochs up to one could not be archived.
    failed: Option<(EpochNumber, String)>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits for the epochs of a log to be archived, beside the one that has the log.
#[derive(Debug, Clone)]
pub struct ArchiveWatch(Arc<Shared>);

impl ArchiveWatch {
    /// Waits until all epochs up to `epoch` are archived. False if the log is closed before.
    ///
    /// # Errors
    /// [`LogError::Archive`] with why it could not be archived. It is tried again.
    pub fn wait(&self, epoch: EpochNumber) -> Result<bool, LogError> {
        let has_failed = |state: &State| match &state.failed {
            Some((up_to, _)) => *up_to >= epoch,
            None => false,
        };
        let waits = |state: &mut State| state.archived < epoch && !has_failed(state) && !state.stop;
        let state = self.0.changed.wait_while(self.0.state(), waits);
        let state = state.unwrap_or_else(PoisonError::into_inner);
        match &state.failed {
            _ if state.archived >= epoch => Ok(true),
            Some((_, why)) => Err(error(why.clone())),
            None => Ok(false),
        }
    }
}

/// Where the files of a store and branch go.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) dir: PathBuf,
    pub(super) geometry: Geometry,
    pub(super) branch: u64,
}

/// The archive of an open log.
#[derive(Debug)]
pub(in super::super) struct Archive {
    dir: PathBuf,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    /// In which the thread is.
    process: Process,
}

impl Archive {
    /// Begins to archive the log of a device: all up to an epoch is.
    ///
    /// # Errors
    /// The operating system's.
    pub(super) fn begin(
        device: &Arc<AnyDevice>,
        place: Place,
        archived: EpochNumber,
    ) -> Result<Self, LogError> {
        let shared = Arc::new(Shared::default());
        shared.state().archived = archived;
        let (theirs, log, dir) = (Arc::clone(&shared), Arc::clone(device), place.dir.clone());
        let thread = std::thread::Builder::new()
            .name("log-archive".to_string())
            .spawn(move || run(&theirs, &log, &place))
            .map_err(|e| io_error("start the thread of the archive", &dir, e))?;
        Ok(Self { dir, shared, thread: Some(thread), process: Process::current() })
    }

    /// Up to which epoch the log may be released, of those up to `durable`. If more is to be
    /// archived, and nothing else is, asks for the job that does it.
    pub(in super::super) fn keep_up(
        &self,
        durable: EpochNumber,
        job: impl FnOnce(EpochNumber) -> Option<Job>,
    ) -> EpochNumber {
        let (archived, is_needed) = {
            let state = self.shared.state();
            let is_waiting = state.is_busy || state.job.is_some();
            let has_failed = state.failed.as_ref().is_some_and(|(up_to, _)| *up_to >= durable);
            (state.archived, state.archived < durable && !is_waiting && !has_failed)
        };
        // Without a lock of ours: the job is made under those of the log.
        if let Some(job) = is_needed.then(|| job(archived)).flatten() {
            self.shared.state().job = Some(job);
            self.shared.changed.notify_all();
        }
        archived.min(durable)
    }

    /// What failed is tried again with the next release, also if no checkpoint is newer: a log that
    /// is full has no newer ones.
    pub(in super::super) fn try_again(&self) {
        if let Some((up_to, _)) = &mut self.shared.state().failed {
            *up_to = EpochNumber(0);
        }
    }

    /// Waits until nothing is being archived.
    pub(in super::super) fn wait(&self) {
        let state = self.shared.state();
        let busy = |state: &mut State| state.is_busy || state.job.is_some();
        drop(self.shared.changed.wait_while(state, busy));
    }

    pub(in super::super) fn watch(&self) -> ArchiveWatch {
        ArchiveWatch(Arc::clone(&self.shared))
    }

    pub(in super::super) fn status(&self) -> ArchiveStatus {
        let state = self.shared.state();
        ArchiveStatus {
            directory: self.dir.clone(),
            epoch: state.archived,
            error: state.failed.as_ref().map(|(_, why)| why.clone()),
        }
    }
}

impl Drop for Archive {
    fn drop(&mut self) {
        if !self.process.is_here() {
            // A child of `fork` has no such thread.
            return std::mem::forget(self.thread.take());
        }
        self.shared.state().stop = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread is a job that has not ended: nothing was released.
            let _ = thread.join();
        }
    }
}

fn run(shared: &Shared, log: &AnyDevice, place: &Place) {
    loop {
        let state = shared.state();
        let wait = shared.changed.wait_while(state, |s| s.job.is_none() && !s.stop);
        let mut state = wait.unwrap_or_else(PoisonError::into_inner);
        let Some(job) = state.job.take() else { return };
        state.is_busy = true;
        drop(state);
        let write = AssertUnwindSafe(|| write_file(log, place, &job));
        let written = catch_unwind(write)
            .unwrap_or_else(|_| Err(error("the thread that writes it panicked".to_string())));
        let mut state = shared.state();
        state.is_busy = false;
        match written {
            Ok(()) => {
                assert!(state.archived < job.last, "no epoch is archived again");
                (state.archived, state.failed) = (job.last, None);
            }
            Err(error) => state.failed = Some((job.last, error.to_string())),
        }
        shared.changed.notify_all();
    }
}

/// Writes the file of some epochs, durably, under its name last. A try that fails leaves no file.
pub(super) fn write_file(device: &AnyDevice, place: &Place, job: &Job) -> Result<(), LogError> {
    let Place { dir, geometry, branch } = place;
    let mut header = FileHeader {
        instance: geometry.instance,
        branch: *branch,
        first: job.first,
        last: job.last,
        segment_bytes: u32::try_from(geometry.segment_bytes).expect("a segment fits 32 bits"),
        bytes: 0,
        crc: 0,
        opening: device.openings().and_then(|openings| openings.of_epoch(job.last)),
    };
    let path = dir.join(header.name());
    let mut unfinished = Unfinished::create(path.with_extension(UNFINISHED))?;
    unfinished.write(device, *geometry, job, &mut header)?;
    unfinished.give_name(&path)?;
    sync_directory(dir)
}

impl Unfinished {
    /// Writes the segments of some epochs, and a header, which learns what there is; durably.
    fn write<L: LogSpace>(
        &mut self,
        log: &L,
        geometry: Geometry,
        job: &Job,
        header: &mut FileHeader,
    ) -> Result<(), LogError> {
        let Self { file, path, .. } = self;
        let write_error = |e| io_error("write", path, e);
        file.write_all(&[0; FILE_HEADER_BYTES]).map_err(write_error)?;
        let mut crc = crc32fast::Hasher::new();
        let mut buffer = vec![0; geometry.segment_bytes as usize];
        for segment in &job.segments {
            let offset = geometry.offset(*segment);
            log.log_read(offset, &mut buffer)?;
            let Some(whole) = whole_segment(&buffer, geometry) else {
                return Err(error(format!(
                    "the log segment at offset {offset}, of epochs {} to {}, is not whole",
                    job.first, job.last
                )));
            };
            crc.update(whole);
            header.bytes += whole.len() as u64;
            file.write_all(whole).map_err(write_error)?;
        }
        header.crc = crc.finalize();
        file.seek(SeekFrom::Start(0)).map_err(write_error)?;
        file.write_all(&header.encode()).map_err(write_error)?;
        file.sync_all().map_err(write_error)
    }
}

fn sync_directory(dir: &Path) -> Result<(), LogError> {
    let synced = File::open(dir).and_then(|dir| dir.sync_all());
    synced.map_err(|e| io_error("sync directory", dir, e))
}

/// Header and payload of a segment of the store, if it is whole.
fn whole_segment(bytes: &[u8], geometry: Geometry) -> Option<&[u8]> {
    let header = SegmentHeader::parse(bytes)?;
    let whole = bytes.get(..HEADER_BYTES + header.payload_bytes.get() as usize)?;
    let is_whole = header.instance.get() == geometry.instance
        && crc32fast::hash(&whole[HEADER_BYTES..]) == header.payload_crc.get();
    is_whole.then_some(whole)
}
