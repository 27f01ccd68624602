//! A disk that keeps what was written, to make every state that a power cut can leave.
//!
//! Between two syncs of a file each 512-byte sector written may be old or new, in any combination,
//! and a new file may be missing until its directory is synced.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Mutex;

use pmem::{DiskCall, DiskFile, DiskHook, DiskOperation, Outcome};

const SECTOR_BYTES: usize = 512;

#[derive(Debug, Clone)]
pub(crate) enum Change {
    Write(u64, Vec<u8>),
    Allocate(u64),
    Truncate(u64),
    Sync,
}

/// Records every change, in order.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    changes: Mutex<Vec<(DiskFile, Change)>>,
}

impl DiskHook for Recorder {
    fn before(&self, call: &DiskCall<'_>) -> Outcome {
        let change = match call.operation {
            DiskOperation::Write { offset, bytes } => Change::Write(offset, bytes.to_vec()),
            DiskOperation::Allocate { len } => Change::Allocate(len),
            DiskOperation::Truncate { len } => Change::Truncate(len),
            DiskOperation::Sync => Change::Sync,
            DiskOperation::Open { .. } | DiskOperation::Read { .. } => {
                return Outcome::Proceed;
            }
        };
        self.changes.lock().unwrap().push((call.file, change));
        Outcome::Proceed
    }
}

impl Recorder {
    pub(crate) fn take(&self) -> Vec<(DiskFile, Change)> {
        std::mem::take(&mut self.changes.lock().unwrap())
    }
}

/// Which of the sectors that were not synced arrived.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Arrived {
    Nothing,
    Everything,
    Random(u64),
}

impl Arrived {
    fn next(&mut self) -> bool {
        match self {
            Self::Nothing => false,
            Self::Everything => true,
            Self::Random(state) => {
                *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (*state >> 40).is_multiple_of(2)
            }
        }
    }
}

#[derive(Debug, Clone, Default)]
struct FileState {
    durable: Vec<u8>,
    pending: Vec<Change>,
}

/// The files of a directory: what is on the device, and what may or may not be.
#[derive(Debug, Clone, Default)]
pub(crate) struct DiskContents {
    files: BTreeMap<DiskFile, FileState>,
    /// Files whose entry in the directory was synced.
    named: BTreeSet<DiskFile>,
}

fn extend(bytes: &mut Vec<u8>, len: u64) {
    bytes.resize(bytes.len().max(len as usize), 0);
}

impl DiskContents {
    /// What the files of a directory have, all of it durable.
    pub(crate) fn of(dir: &Path) -> Self {
        let mut contents = Self::default();
        for file in [DiskFile::Meta, DiskFile::Data, DiskFile::Table, DiskFile::Log] {
            let bytes = std::fs::read(dir.join(file.name())).unwrap();
            contents.change(file, &Change::Write(0, bytes));
            contents.change(file, &Change::Sync);
        }
        contents.change(DiskFile::Directory, &Change::Sync);
        contents
    }

    pub(crate) fn change(&mut self, file: DiskFile, change: &Change) {
        if file == DiskFile::Directory && matches!(change, Change::Sync) {
            self.named.extend(self.files.keys());
        }
        let state = self.files.entry(file).or_default();
        match change {
            Change::Sync => {
                for change in std::mem::take(&mut state.pending) {
                    apply(&mut state.durable, &change, &mut Arrived::Everything);
                }
            }
            other => state.pending.push(other.clone()),
        }
    }

    /// The device after a power cut now.
    pub(crate) fn cut(&self, mut arrived: Arrived) -> Self {
        let mut after = self.clone();
        after.files.retain(|file, _| self.named.contains(file) || arrived.next());
        for state in after.files.values_mut() {
            for change in std::mem::take(&mut state.pending) {
                apply(&mut state.durable, &change, &mut arrived);
            }
        }
        after
    }

    /// Writes what is on the device into a directory.
    pub(crate) fn write_to(&self, dir: &Path) {
        for (file, state) in &self.files {
            assert!(state.pending.is_empty(), "cut the power first");
            if *file != DiskFile::Directory {
                std::fs::write(dir.join(file.name()), &state.durable).unwrap();
            }
        }
    }
}

fn apply(bytes: &mut Vec<u8>, change: &Change, arrived: &mut Arrived) {
    match change {
        Change::Sync => {}
        Change::Allocate(len) => {
            if arrived.next() {
                extend(bytes, *len);
            }
        }
        Change::Truncate(len) => {
            if arrived.next() {
                bytes.truncate(*len as usize);
            }
        }
        Change::Write(offset, written) => {
            let (mut at, mut rest) = (*offset as usize, &written[..]);
            while !rest.is_empty() {
                let len = rest.len().min(SECTOR_BYTES - at % SECTOR_BYTES);
                let (piece, later) = rest.split_at(len);
                if arrived.next() {
                    extend(bytes, (at + len) as u64);
                    bytes[at..at + len].copy_from_slice(piece);
                }
                (at, rest) = (at + len, later);
            }
        }
    }
}
