//! One worker's side of the device: its port, its sub-pools of every pool, and what it has to
//! remember until the next checkpoint.

use pmem::sync::atomic::{AtomicU64, Ordering};
use pmem::{Device, Port};
use storage::{
    EpochNumber, NewValue, RowLayout, Segments, SerialId, StateHash, StorageError, SubPool,
    TableId, ValuePointer, row,
};

use super::write::{Hidden, Publication, key_of};
use super::{ReadPhase, RowEntry};
use crate::design::variants::Design;
use crate::index::EntryId;
use crate::table::KeyWord;
use crate::version::before_images::{BeforeImage, WorkerBeforeImages};
use crate::version::changes::WorkerChanges;

/// One worker's side of the device: its port, its sub-pools of every pool, and what it has to
/// remember until the next checkpoint.
pub(crate) struct RowStore {
    pub(crate) port: Port,
    /// Sub-pools of this worker, by pool.
    pub(crate) sub_pools: Vec<Vec<SubPool>>,
    /// For each pool, the first sub-pool whose free list may have something to take.
    pub(crate) popping: Vec<usize>,
    /// For each pool, the sub-pool whose bump allocator is in use.
    pub(crate) bumping: Vec<usize>,
    /// Free slots that other workers handed over for this epoch, by pool: popped from their free
    /// lists, and in none until they are used or put back.
    pub(crate) handed: Vec<Vec<u64>>,
    /// Pools of which there are some.
    pub(crate) handed_pools: Vec<usize>,
    /// For each pool, in how many checkpoints its offsets have to be saved: in two after a change,
    /// into one set each.
    pub(crate) changed: Vec<u8>,
    /// Whether the state hash is maintained.
    pub(crate) keeps_hash: bool,
    /// By table, whether a row has its key before its first version, also if it is a word.
    pub(crate) keys_come_first: Vec<bool>,
    /// What is on the device besides.
    pub(crate) design: Design,
    /// Whether a stale inline version is overwritten, or left to the major collector.
    pub(crate) minor_collection: bool,
    /// Whether the final writes of the epoch are plain: see [`RowStore::begin_final_writes`].
    pub(crate) are_plain: bool,
    /// Difference to the state hash in this epoch, if it is maintained.
    pub(crate) hash: StateHash,
    /// Difference to the number of rows in this epoch.
    pub(crate) rows: i64,
    /// Rows whose stale external version the major collector frees after the next checkpoint.
    pub(crate) stale: Vec<(EntryId, u32)>,
    /// Rows that do not exist any more (or never did), to be removed after execution (O-18).
    pub(crate) dead_rows: Vec<DeadRow>,
    /// Final writes of the running transaction that are not published yet.
    pub(crate) hidden: Vec<Hidden>,
    /// A value that has to be put together before it is written.
    pub(crate) whole: Vec<u8>,
    /// What was overwritten and snapshots still see.
    pub(crate) before_images: WorkerBeforeImages,
    /// What changed in tables that are watched.
    pub(crate) changes: WorkerChanges,
}

/// A row that leaves the indexes. Its persistent row may never have been written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeadRow {
    pub(crate) table: TableId,
    pub(crate) id: EntryId,
    /// The key, where all keys have 8 bytes.
    pub(crate) word: u64,
}

impl DeadRow {
    pub(super) fn of(to: &Publication<'_>) -> Self {
        Self { table: to.layout.table, id: to.id, word: to.word }
    }
}

impl RowStore {
    /// Frees the external values of a row that is being deleted; reverted by a crash, like the
    /// deletion.
    pub(super) fn free_values_of(
        &mut self,
        entry: &RowEntry,
        checkpoint_epoch: EpochNumber,
        segments: &Segments,
    ) {
        let before = entry.persistent_version();
        if !before.is_value() {
            return;
        }
        let words = row::versions(self.port.device().as_ref(), entry.row());
        for (slot, version) in words.iter().enumerate() {
            // The other slot counts only if it is not a leftover of a crash.
            let sid = SerialId(version.serial_id);
            let ours = slot == before.slot() || sid.0 != 0 && sid.epoch() <= checkpoint_epoch;
            let pointer = ValuePointer(version.pointer);
            if let Some(offset) = pointer.external_offset().filter(|_| ours) {
                self.free_value(offset, pointer.value_bytes(), segments);
            }
        }
    }

    /// Keeps of a row that is written next what snapshots see of it (O-85) and what feeds tell
    /// (O-110). `new` is its value; `None` if it is deleted.
    #[inline]
    pub(super) fn observe(&mut self, to: &Publication<'_>, new: Option<&NewValue<'_>>) {
        if self.changes.are_observed {
            self.observe_write(to, new);
        }
    }

    #[inline(never)]
    fn observe_write(&mut self, to: &Publication<'_>, new: Option<&NewValue<'_>>) {
        if self.before_images.are_wanted() {
            self.keep_before_image(to.entry, to.layout, to.word);
        }
        if self.changes.are_of(to.layout.table) {
            self.note_change(to, new);
        }
    }

    fn note_change(&mut self, to: &Publication<'_>, new: Option<&NewValue<'_>>) {
        let before = to.entry.persistent_version();
        // SAFETY: the value is that before the epoch, whose slot only this worker writes: next.
        let phase = unsafe { ReadPhase::begin() };
        let old = before.is_value().then(|| phase.bytes(before));
        let mut room = std::mem::take(&mut self.whole);
        let new = new.map(|new| new.put_together(&mut room));
        let exact = to.word.to_be_bytes();
        let key = key_of(self.port.device().as_ref(), to, &exact);
        self.changes.note(to.layout.table, key, old, new.as_ref().map(NewValue::bytes));
        self.whole = room;
        if before.is_value() {
            let image_base = self.port.device().image().base() as usize;
            self.port.charge_load((before.address() - image_base) as u64, before.len() as u64);
        }
    }

    fn keep_before_image(&mut self, entry: &RowEntry, layout: &RowLayout, word: u64) {
        let (before, row) = (entry.persistent_version(), entry.row());
        let device = self.port.device();
        let image_base = device.image().base() as usize;
        if !before.is_value() {
            return;
        }
        let written = version_epoch(image_base, row, before.slot());
        debug_assert!(written != EpochNumber::ZERO, "a version that a snapshot sees has an epoch");
        if !self.before_images.wants(written) {
            return;
        }
        // SAFETY: the value is that before the epoch, whose slot only this worker writes: next.
        let phase = unsafe { ReadPhase::begin() };
        let exact = word.to_be_bytes();
        let key = if layout.has_exact_keys() { &exact[..] } else { phase.key_at(image_base, row) };
        let value = phase.bytes(before).into();
        self.before_images.keep(
            layout.table,
            KeyWord { hash: word, key },
            BeforeImage { written, value },
        );
        self.port.charge_load((before.address() - image_base) as u64, before.len() as u64);
    }

    pub(super) fn free_value(&mut self, offset: u64, len: u64, segments: &Segments) {
        let pool = storage::class_pool(storage::class_of(len)) as usize;
        self.free(pool, offset, segments).expect("space was reserved before the epoch");
    }

    /// Gives a slot of a pool back.
    pub(crate) fn free(
        &mut self,
        pool: usize,
        offset: u64,
        segments: &Segments,
    ) -> Result<(), StorageError> {
        debug_assert!(
            segments
                .segment_of(offset)
                .and_then(|segment| segments.use_of(self.port.device().as_ref(), segment))
                .is_some_and(|of| usize::from(of.pool) == pool),
            "a slot is freed to the pool that it is of"
        );
        self.changed[pool] = CHECKPOINTS;
        self.sub_pools[pool][0].push(&mut self.port, segments, offset)
    }

    /// Gives slots back to a sub-pool, if it is one of this worker's; how many.
    pub(crate) fn free_to(
        &mut self,
        pool: u16,
        sub_pool: u8,
        slots: &[u64],
        segments: &Segments,
    ) -> Result<usize, StorageError> {
        let sub_pools = &mut self.sub_pools[usize::from(pool)];
        let Some(mine) = sub_pools.iter_mut().find(|mine| mine.number() == sub_pool) else {
            return Ok(0);
        };
        self.changed[usize::from(pool)] = CHECKPOINTS;
        slots.iter().try_for_each(|&slot| mine.push(&mut self.port, segments, slot))?;
        Ok(slots.len())
    }

    /// Takes free slots of a pool out of this worker's lists.
    ///
    /// # Panics
    /// If it has not so many, which is a bug: they were counted in this epoch.
    pub(crate) fn give(&mut self, pool: usize, count: u64, segments: &Segments) -> Vec<u64> {
        self.changed[pool] = CHECKPOINTS;
        let slots = pop_all(&mut self.sub_pools[pool], count, &mut self.port, segments);
        assert_eq!(slots.len() as u64, count, "free slots are counted before they are given");
        slots
    }

    /// Takes free slots over from other workers.
    pub(crate) fn receive(&mut self, pool: usize, slots: impl IntoIterator<Item = u64>) {
        assert!(!self.handed_pools.contains(&pool), "slots of a pool are handed over once");
        self.handed[pool].extend(slots);
        self.handed_pools.push(pool);
        // They are used before anything else.
        self.popping[pool] = 0;
    }

    /// Puts what is left of the slots that were handed over into this worker's free lists. The
    /// collected tails are final already: these entries count from the next checkpoint on, as do
    /// the heads of the lists that they come from.
    ///
    /// # Errors
    /// `Limit` if there is no room for the entries, which was reserved.
    pub(crate) fn put_back(&mut self, segments: &Segments) -> Result<(), StorageError> {
        for pool in std::mem::take(&mut self.handed_pools) {
            for slot in std::mem::take(&mut self.handed[pool]) {
                self.free(pool, slot, segments)?;
            }
        }
        Ok(())
    }

    /// Flushes what the epoch changed, and saves the offsets for a checkpoint, if one is due.
    pub(crate) fn save(&mut self, segments: &Segments, sequence: Option<u64>) {
        for (sub_pools, _) in changed(&mut self.sub_pools, &mut self.changed) {
            for sub_pool in sub_pools {
                sub_pool.flush(&mut self.port, segments);
                if let Some(sequence) = sequence {
                    sub_pool.save(&mut self.port, sequence);
                }
            }
        }
    }

    /// The same by the port of a worker that runs the epoch alone: this one has changed nothing in
    /// it, but may have before (O-81).
    pub(crate) fn save_by(&mut self, port: &mut Port, sequence: u64) {
        for (sub_pools, _) in changed(&mut self.sub_pools, &mut self.changed) {
            sub_pools.iter_mut().for_each(|sub_pool| sub_pool.save(port, sequence));
        }
    }

    /// The checkpoint is durable.
    pub(crate) fn checkpointed(&mut self) {
        for (sub_pools, left) in changed(&mut self.sub_pools, &mut self.changed) {
            sub_pools.iter_mut().for_each(SubPool::checkpointed);
            *left -= 1;
        }
    }

    pub(super) fn allocate_value(&mut self, len: u64, segments: &Segments) -> u64 {
        self.allocate(storage::class_pool(storage::class_of(len)) as usize, segments)
    }

    /// Takes a slot of a pool: from the free list of any of the worker's sub-pools, else a fresh
    /// one.
    ///
    /// # Panics
    /// If no space was reserved for it, which is a bug (O-43); the engine stops.
    #[inline(always)]
    pub(crate) fn allocate(&mut self, pool: usize, segments: &Segments) -> u64 {
        self.changed[pool] = CHECKPOINTS;
        let (sub_pools, bumping) = (&mut self.sub_pools[pool], self.bumping[pool]);
        let has_popped_all = self.popping[pool] >= sub_pools.len();
        if has_popped_all && let Some(slot) = sub_pools[bumping].bump_in_segment() {
            return slot;
        }
        self.allocate_any(pool, segments)
    }

    #[inline(never)]
    fn allocate_any(&mut self, pool: usize, segments: &Segments) -> u64 {
        if let Some(slot) = self.handed[pool].pop() {
            return slot;
        }
        let sub_pools = &mut self.sub_pools[pool];
        // Sub-pools before this one have nothing that may be used until the next checkpoint, after
        // which other sub-pools are dealt. The collector runs before slots are allocated.
        let current = &mut self.popping[pool];
        while let Some(sub_pool) = sub_pools.get_mut(*current) {
            if let Some(offset) = sub_pool.pop(&mut self.port, segments) {
                return offset;
            }
            *current += 1;
        }
        // Room in segments that a sub-pool already has goes first: then a replay, which finds the
        // segments of the run before the crash, needs no more than that run did (O-43).
        let bumping = &mut self.bumping[pool];
        if !sub_pools[*bumping].has_room() {
            *bumping = sub_pools.iter().position(SubPool::has_room).unwrap_or(0);
        }
        sub_pools[*bumping]
            .bump(&mut self.port, segments)
            .expect("space was reserved before the epoch")
    }

    /// Whether the offsets of a pool differ from what one of the last two checkpoints saved.
    pub(crate) fn has_changed(&self, pool: usize) -> bool {
        self.changed[pool] > 0
    }

    /// The offsets of a pool have changed.
    pub(crate) fn change(&mut self, pool: usize) {
        self.changed[pool] = CHECKPOINTS;
    }

    /// Other sub-pools were dealt to this worker.
    pub(crate) fn take_over(&mut self) {
        self.changed.fill(CHECKPOINTS);
        self.search_all_sub_pools();
    }

    /// Slots may have become available.
    pub(crate) fn search_all_sub_pools(&mut self) {
        self.popping.fill(0);
        self.bumping.fill(0);
    }
}

/// Sub-pools of a worker that has no part in an epoch: the one that runs it may take slots of them.
#[derive(Debug)]
pub(crate) struct Idle {
    /// By pool.
    pub(crate) sub_pools: Vec<Vec<SubPool>>,
    /// As in [`RowStore`].
    pub(crate) changed: Vec<u8>,
}

impl Idle {
    /// Slots of a pool that may be used: free ones, and those of its segments that were never
    /// used.
    pub(crate) fn slots(&self, pool: usize) -> u64 {
        self.sub_pools[pool].iter().map(|sub_pool| sub_pool.available() + sub_pool.room()).sum()
    }

    /// Takes slots of a pool, free ones first, and saves the offsets for a checkpoint, if one is
    /// due: by the port of the worker that runs the epoch, whose fence covers it.
    ///
    /// # Panics
    /// If there are not so many, which is a bug: they were counted in this epoch.
    pub(crate) fn give(
        &mut self,
        pool: usize,
        count: u64,
        port: &mut Port,
        segments: &Segments,
        sequence: Option<u64>,
    ) -> Vec<u64> {
        self.changed[pool] = CHECKPOINTS;
        let sub_pools = &mut self.sub_pools[pool];
        let mut slots = pop_all(sub_pools, count, &mut *port, segments);
        for sub_pool in &mut *sub_pools {
            while (slots.len() as u64) < count && sub_pool.has_room() {
                slots.push(sub_pool.bump(port, segments).expect("the segment is there"));
            }
        }
        assert_eq!(slots.len() as u64, count, "slots are counted before they are given");
        if let Some(sequence) = sequence {
            sub_pools.iter_mut().for_each(|sub_pool| sub_pool.save(port, sequence));
        }
        slots
    }
}

/// Takes so many slots out of the free lists of sub-pools, or all that there are.
fn pop_all(
    sub_pools: &mut [SubPool],
    count: u64,
    port: &mut Port,
    segments: &Segments,
) -> Vec<u64> {
    let mut slots = Vec::with_capacity(count as usize);
    for sub_pool in sub_pools {
        while (slots.len() as u64) < count
            && let Some(slot) = sub_pool.pop(port, segments)
        {
            slots.push(slot);
        }
    }
    slots
}

/// The two sets of offsets of a sub-pool are saved in turn.
const CHECKPOINTS: u8 = 2;

/// The pools that have changed since their offsets were saved twice.
fn changed<'m>(
    pools: &'m mut [Vec<SubPool>],
    left: &'m mut [u8],
) -> impl Iterator<Item = (&'m mut Vec<SubPool>, &'m mut u8)> {
    pools.iter_mut().zip(left).filter(|(_, left)| **left > 0)
}

/// Prepares the persistent row of a key that is being inserted. The row was just allocated by this
/// worker.
pub(crate) fn initialise_row(port: &mut Port, at: u64, layout: &RowLayout, key: &[u8]) {
    // SAFETY: freshly allocated and not published yet.
    unsafe { row::initialise(port, at, layout, key) }
}

/// Epoch of the version in a slot of a row.
#[inline]
pub(crate) fn version_epoch(image_base: usize, row: u64, slot: usize) -> EpochNumber {
    let word = (image_base + row as usize + slot * 16) as *const AtomicU64;
    // SAFETY: header words of an initialised row, aligned, only accessed as atomics.
    SerialId(unsafe { (*word).load(Ordering::Relaxed) }).epoch()
}

/// Empties the stale slot of a row whose external value was just collected (NV 4.4).
pub(crate) fn clear_stale(port: &mut Port, at: u64, slot: usize) {
    // SAFETY: major collection owns the stale slots of the rows on its list; no call reads stale
    // versions.
    unsafe { row::clear_version(port, at, slot) }
}
