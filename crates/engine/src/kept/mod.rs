//! Indexes that are kept: their memory is in segments of the image, and a block of words, the
//! *root*, says where. So an open need not visit rows (decision 63).
//!
//! 1. *Stock* (E3): before an epoch is logged, segments are set aside for what the indexes may grow
//!    by ([`KeptIndexes::stock`]).
//! 2. While the epoch runs, the indexes note which parts of the image they change.
//! 3. *Save* (E12): if the epoch ends in a snapshot of the image, the root is written first
//!    ([`KeptIndexes::save`]), with the epoch's number. Rows, indexes and root are pages of one
//!    snapshot (S18).
//! 4. *Attach* (open): a root of the checkpoint's epoch is believed ([`find`], [`attach`]). Else
//!    the rows are scanned, and the indexes made anew.
//!
//! An index that outgrows its stock goes on in other memory, and no root is written until the next
//! open has made the indexes anew. Only on devices that take snapshots of the image; where that is
//! larger than memory, pages of indexes come and go as those of rows do. Secondary indexes are not
//! kept.

mod attach;
mod begin;
mod compare;
mod find;
mod root;
mod save;
mod stock;

use std::sync::Arc;

use pmem::Device;
use pmem::sync::atomic::{AtomicU64, Ordering};
use pmem::sync::{Mutex, MutexGuard};
use storage::{EpochNumber, SegmentKind, SegmentUse, Segments, Store};

use crate::index::IndexSpace;

pub(crate) use attach::{Attached, AttachedTable, attach};
pub(crate) use find::{Found, find};
pub(crate) use save::Indexes;
pub(crate) use stock::Demand;

/// Where the memory of kept indexes is.
#[derive(Debug)]
pub(crate) struct KeptIndexes {
    space: Arc<IndexSpace>,
    root: Mutex<Option<Run>>,
    /// Of the last one.
    root_bytes: AtomicU64,
    /// The epoch that the root names, if it is whole.
    saved: Mutex<Option<EpochNumber>>,
}

/// Segments in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    first: u32,
    count: u64,
}

impl Run {
    fn offset(self, segments: &Segments) -> u64 {
        segments.offset(self.first)
    }

    fn bytes(self, segments: &Segments) -> u64 {
        self.count * segments.segment_bytes()
    }

    /// The segments of a root, with the directory's entries.
    fn entries_of_root(self) -> impl Iterator<Item = (u32, SegmentUse)> {
        let entry = |ordinal| SegmentUse::of_indexes(SegmentKind::IndexRoot, ordinal);
        (0..self.count as u32).map(move |ordinal| (self.first + ordinal, entry(ordinal)))
    }
}

impl KeptIndexes {
    /// No segment yet. `None` where nothing is kept.
    fn new(store: &Store) -> Option<Self> {
        let device = store.device();
        device.takes_snapshots().then(|| Self {
            space: Arc::new(IndexSpace::of(device.as_ref(), store.segments().segment_bytes())),
            root: Mutex::default(),
            root_bytes: AtomicU64::new(0),
            saved: Mutex::default(),
        })
    }

    /// Where the root is that was written or found last, and its bytes; the next one is about as
    /// long.
    pub(crate) fn root_place(&self, segments: &Segments) -> Option<(u64, u64)> {
        let run = *self.root();
        run.map(|run| (run.offset(segments), self.root_bytes.load(Ordering::Relaxed)))
    }

    fn root(&self) -> MutexGuard<'_, Option<Run>> {
        self.root.lock().expect("no panic while locked")
    }

    /// The epoch that the root names, if it is whole.
    pub(crate) fn saved(&self) -> Option<EpochNumber> {
        *self.saved.lock().expect("no panic while locked")
    }

    fn set_saved(&self, epoch: Option<EpochNumber>) {
        *self.saved.lock().expect("no panic while locked") = epoch;
    }
}
