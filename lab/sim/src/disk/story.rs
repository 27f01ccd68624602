//! A random history, what the oracle says of it, and the calls that a run of it makes.

use std::path::Path;
use std::sync::Arc;

use pmem::{AnyDevice, Device, DiskFile, DiskHook, File, FileOptions, memory_can_be_limited};
use tempfile::TempDir;

use super::contents::{Change, DiskContents};
use super::hook::{Event, Lab};
use crate::history::{
    Expected, Mix, Model, Random, Setup, batch, compare_answers, flood, info, to_calls,
};

const IMAGE_LIMIT_BYTES: u64 = 64 << 20;
const LOG_LIMIT_BYTES: u64 = 8 << 20;
/// Memory for a few pages.
const MEMORY_BYTES: u64 = 64 << 10;

/// A directory in memory if the system has one: there are thousands of syncs.
pub(crate) fn fast_dir() -> Result<TempDir, String> {
    let shm = Path::new("/dev/shm");
    let dir = if shm.is_dir() { tempfile::tempdir_in(shm) } else { tempfile::tempdir() };
    dir.map_err(|error| format!("a temporary directory: {error}"))
}

/// No limit of memory, or one that is reached.
pub(crate) fn any_limit(random: &mut Random) -> Option<u64> {
    let limit = random.percent(20).then(|| random.pick(&[MEMORY_BYTES, 2 * MEMORY_BYTES]));
    limit.filter(|_| memory_can_be_limited())
}

/// Limits that no history reaches.
pub(crate) fn options() -> FileOptions {
    FileOptions::new(IMAGE_LIMIT_BYTES, LOG_LIMIT_BYTES)
}

/// Opens the device of a directory before its pages are read, where the system lets it.
pub(crate) fn open_before_reading(dir: &Path) -> Result<Arc<AnyDevice>, String> {
    let options = FileOptions { background_load_bytes_min: Some(0), ..options() };
    let device = File::open(dir, &options).map_err(|error| format!("open device: {error}"))?;
    Ok(AnyDevice::new(device))
}

/// Opens the device of a directory.
pub(crate) fn open_device(dir: &Path, hook: Option<Arc<Lab>>) -> Result<Arc<AnyDevice>, String> {
    open_limited(dir, hook, None)
}

/// The same, with a limit of memory.
pub(crate) fn open_limited(
    dir: &Path,
    hook: Option<Arc<Lab>>,
    memory_limit_bytes: Option<u64>,
) -> Result<Arc<AnyDevice>, String> {
    let hook = hook.map(|hook| hook as Arc<dyn DiskHook>);
    let options = FileOptions { hook, memory_limit_bytes, ..options() };
    let device = File::open(dir, &options).map_err(|error| format!("open device: {error}"))?;
    Ok(AnyDevice::new(device))
}

/// A history and its right outcome.
#[derive(Debug)]
pub(crate) struct Story {
    pub(crate) setup: Setup,
    pub(crate) batches: Vec<Vec<Vec<u8>>>,
    /// The state after each epoch, from 0.
    pub(crate) models: Vec<Model>,
    /// The answers of each epoch, from 1.
    pub(crate) expected: Vec<Vec<Expected>>,
    /// Whether each snapshot is waited for, so that the order of calls is always the same.
    pub(crate) settled: bool,
    /// How many epochs a snapshot is held back for, where none is waited for.
    pub(crate) held: u64,
    /// Whether the store is closed at the end.
    pub(crate) closed: bool,
    /// Memory for pages and copies, where the image is to be larger.
    pub(crate) memory_limit_bytes: Option<u64>,
}

impl Story {
    pub(crate) fn random(random: &mut Random, epochs_max: u64) -> Self {
        let setup = Setup::random(random);
        let keys = random.pick(&[2, 6, 20]);
        let mix = Mix { keys, long_values: random.percent(70), lookups: 10 };
        let most = random.pick(&[4, 12, 30]);
        let epochs = 2 + random.below(epochs_max.max(1));
        let calls = |random: &mut Random| 1 + random.below(most);
        let batch = |random: &mut Random| {
            let calls = calls(random);
            batch(random, &mix, calls)
        };
        let batches = (0..epochs).map(|_| batch(random)).collect();
        let (settled, closed) = (random.percent(50), random.percent(30));
        let held = if settled { 0 } else { random.pick(&[0, 1, 1, 2]) };
        let memory_limit_bytes = any_limit(random);
        Self { settled, held, closed, memory_limit_bytes, ..Self::of(setup, batches) }
    }

    /// A history whose snapshots of the image have thousands of pages: more than are read at once,
    /// and in the parts of several workers.
    pub(crate) fn of_large_snapshots(random: &mut Random) -> Self {
        let setup = Setup {
            workers: random.pick(&[1, 2, 2, 4]),
            checkpoint_every: 3,
            snapshots_every: 0,
            ..Setup::default()
        };
        let batches = (0..6 + random.below(3)).map(|_| flood(random)).collect();
        Self { settled: true, closed: random.percent(30), ..Self::of(setup, batches) }
    }

    /// These epochs, with each snapshot of the image waited for.
    fn of(setup: Setup, batches: Vec<Vec<Vec<u8>>>) -> Self {
        let mut model = Model::default();
        let (mut models, mut expected) = (vec![model.clone()], Vec::new());
        for (epoch, batch) in (1..).zip(&batches) {
            expected.push(model.run(batch, info(epoch).timestamp_ns));
            models.push(model.clone());
        }
        Self {
            setup,
            batches,
            models,
            expected,
            settled: true,
            held: 0,
            closed: false,
            memory_limit_bytes: None,
        }
    }

    /// Runs the history on a new directory and returns what happened; nothing may go wrong.
    pub(crate) fn record(&self) -> Result<Recording, String> {
        let dir = fast_dir()?;
        let lab = Lab::holding(self.held);
        let device = open_limited(dir.path(), Some(Arc::clone(&lab)), self.memory_limit_bytes)?;
        let engine = self.setup.open(&device).map_err(|error| format!("first open: {error}"))?;
        let mut engine = engine;
        lab.mark(Event::Opened);
        for (batch, expected) in self.batches.iter().zip(&self.expected) {
            lab.mark(Event::Started);
            let outcome = engine.run_epoch(&to_calls(batch), info(engine.epoch().0 + 1));
            let outcome = outcome.map_err(|error| format!("run: {error}"))?;
            compare_answers(&outcome, expected)?;
            lab.mark(Event::Answered);
            if self.settled {
                device.settle().map_err(|error| format!("settle: {error}"))?;
            }
        }
        if self.closed {
            engine.close().map_err(|error| format!("close: {error}"))?;
        } else {
            drop(engine);
        }
        drop(device);
        Ok(Recording { events: lab.events(), kinds: lab.kinds(), overlaps: lab.overlaps() })
    }
}

/// What a run did to its disk.
#[derive(Debug)]
pub(crate) struct Recording {
    pub(crate) events: Vec<Event>,
    pub(crate) kinds: std::collections::BTreeSet<(pmem::DiskFile, &'static str)>,
    /// Snapshots that were not durable before epochs after them were answered.
    pub(crate) overlaps: u64,
}

impl Recording {
    /// A cut at any call: how many were made, how far the program was, what the device knows.
    pub(crate) fn any_cut(&self, random: &mut Random) -> (usize, Progress, DiskContents) {
        let at = random.below(self.events.len() as u64 + 1) as usize;
        let (progress, contents) = Progress::after(&self.events[..at]);
        (at, progress, contents)
    }

    /// A cut right after a write of pages: some of a snapshot's are there, not synced, and none of
    /// its entries. Any cut if nothing was saved.
    pub(crate) fn cut_in_pages(&self, random: &mut Random) -> (usize, Progress, DiskContents) {
        self.cut_after(DiskFile::Data, random)
    }

    /// A cut right after a write of entries or of a root, not synced. Any cut if nothing was saved.
    pub(crate) fn cut_before_root(&self, random: &mut Random) -> (usize, Progress, DiskContents) {
        let file = random.pick(&[DiskFile::Table, DiskFile::Meta]);
        self.cut_after(file, random)
    }

    /// A cut right after a write to a file.
    fn cut_after(&self, file: DiskFile, random: &mut Random) -> (usize, Progress, DiskContents) {
        let is_write = |event: &Event| match event {
            Event::Change(written, Change::Write(..)) => *written == file,
            _ => false,
        };
        let places: Vec<usize> =
            (0..self.events.len()).filter(|&at| is_write(&self.events[at])).collect();
        if places.is_empty() {
            return self.any_cut(random);
        }
        let at = random.pick(&places) + 1;
        let (progress, contents) = Progress::after(&self.events[..at]);
        (at, progress, contents)
    }
}

/// How far a program was when something ended it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Whether the store was there.
    pub(crate) opened: bool,
    /// The last epoch that was begun: a later one must not be found.
    pub(crate) started: u64,
    /// The last epoch whose answers were given: it must be found.
    pub(crate) answered: u64,
}

impl Progress {
    /// Follows an event, and makes it on a device.
    pub(crate) fn follow(&mut self, event: &Event, contents: &mut DiskContents) {
        match event {
            Event::Change(file, change) => contents.change(*file, change),
            Event::Opened => self.opened = true,
            Event::Started => self.started = self.answered + 1,
            Event::Answered => self.answered += 1,
        }
    }

    /// The device and the progress after so many events.
    pub(crate) fn after(events: &[Event]) -> (Self, DiskContents) {
        let (mut progress, mut contents) = (Self::default(), DiskContents::default());
        for event in events {
            progress.follow(event, &mut contents);
        }
        (progress, contents)
    }
}
