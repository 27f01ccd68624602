//! Step 1: segments for what the indexes may grow by.

use pmem::Port;
use storage::{SegmentKind, SegmentUse, Segments, Store};

use super::{KeptIndexes, Run};
use crate::table::Table;

/// A root has room for this part more than it needs when it moves.
const ROOT_ROOM: u64 = 4;
/// Words of a root for each table, whatever is in it; for each chunk, and for each segment of rows.
const TABLE_WORDS: u64 = 3 * 256 + 8;
const CHUNK_WORDS: u64 = 5;
const SEGMENT_WORDS: u64 = 6;
/// Besides these.
const OTHER_WORDS: u64 = 64;
/// New keys of an ordered index for each of its chunks, at least.
const CHUNK_KEYS: u64 = 42;

/// What is to come.
#[derive(Debug)]
pub(crate) struct Demand<'d> {
    /// New rows, by table.
    pub(crate) inserts: &'d [u64],
    /// Segments that others may take.
    pub(crate) others: u64,
    /// Rows that may have a stale value then.
    pub(crate) stale: u64,
    /// Whether a root is to be written at the end.
    pub(crate) saves: bool,
}

/// What is to be provided.
pub(super) struct Wanted {
    /// Sizes of blocks.
    pub(super) blocks: Vec<u64>,
    /// Segments of a larger root.
    pub(super) root: Option<u64>,
    /// Segments that others may take.
    pub(super) others: u64,
}

impl KeptIndexes {
    /// Sets segments aside for so many new rows, as far as there is room. Returns how many pages of
    /// the image the indexes change then, about.
    pub(crate) fn stock(
        &self,
        tables: &[Table],
        store: &Store,
        port: &mut Port,
        demand: &Demand<'_>,
    ) -> u64 {
        let inserted: u64 = demand.inserts.iter().sum();
        if inserted == 0 && !demand.saves {
            return 0;
        }
        let mut blocks = Vec::new();
        for (table, &count) in tables.iter().zip(demand.inserts).filter(|(_, count)| **count > 0) {
            table.hash.growth(count as usize, &mut blocks);
            if let Some(ordered) = &table.ordered {
                ordered.growth(count as usize, &mut blocks);
            }
        }
        let grown: u64 = blocks.iter().sum();
        let root_bytes = if demand.saves { root_bytes(tables, store, demand) } else { 0 };
        let root = self.larger_root(store, root_bytes);
        self.provide(store, port, Wanted { blocks, root, others: demand.others });
        // A bucket and a chunk for each new row, and the chunk that is split.
        3 * inserted + (grown + root_bytes).div_ceil(pmem::PAGE_BYTES) + 2
    }

    /// Provides the segments that are missing, or none if there is no room for all.
    pub(super) fn provide(&self, store: &Store, port: &mut Port, wanted: Wanted) {
        let Wanted { blocks, root, others } = wanted;
        let runs = self.space.missing(blocks);
        let all = runs.iter().sum::<u64>() + root.unwrap_or(0);
        let (segments, device) = (store.segments(), store.device().as_ref());
        if all > 0 && segments.reserve_runs(device, others, all).is_ok() {
            self.take(segments, port, &runs, root);
        }
    }

    /// How many segments a larger root needs, if the one that there is may be too small.
    fn larger_root(&self, store: &Store, needed: u64) -> Option<u64> {
        let segments = store.segments();
        let has = self.root().map_or(0, |run| run.bytes(segments));
        let roomy = needed + needed / ROOT_ROOM;
        (has < needed).then(|| roomy.div_ceil(segments.segment_bytes()))
    }

    /// Takes the segments, of which there are enough.
    fn take(&self, segments: &Segments, port: &mut Port, runs: &[u64], root: Option<u64>) {
        let mut take = |count, entry_of: &dyn Fn(u32, u32) -> SegmentUse| {
            let first = segments.take_run(port, count, entry_of).expect("room was reserved");
            Run { first, count }
        };
        let block = |segment, _| SegmentUse::of_indexes(SegmentKind::Index, segment);
        for &count in runs {
            let run = take(count, &block);
            self.space.add_segments(run.offset(segments), run.bytes(segments));
        }
        let Some(count) = root else { return };
        let part = |_, ordinal| SegmentUse::of_indexes(SegmentKind::IndexRoot, ordinal);
        let larger = take(count, &part);
        let Some(before) = self.root().replace(larger) else { return };
        // The place of the one before serves as blocks.
        for segment in before.first..before.first + before.count as u32 {
            segments.write_entry(port, segment, block(segment, 0));
        }
        self.space.add_segments(before.offset(segments), before.bytes(segments));
    }
}

/// Bytes of the root at the end, at most.
fn root_bytes(tables: &[Table], store: &Store, demand: &Demand<'_>) -> u64 {
    let ordered = tables.iter().filter_map(|table| table.ordered.as_ref());
    let chunks: u64 = ordered.map(|ordered| ordered.chunks_count() as u64).sum();
    let chunks = chunks + demand.inserts.iter().sum::<u64>() / CHUNK_KEYS;
    let segments = store.segments().used() + demand.others;
    let words = tables.len() as u64 * TABLE_WORDS + chunks * CHUNK_WORDS;
    8 * (words + segments * SEGMENT_WORDS + demand.stale + OTHER_WORDS)
}
