//! A sub-pool: bump allocator and free list, with offsets in DRAM and on the device.

use std::collections::BTreeMap;

use pmem::{AnyDevice, Device, LINE_BYTES, Port};
use zerocopy::IntoBytes;

use crate::error::{Result, StorageError};
use crate::format::{POOL_STATES_OFFSET, POOLS, PoolOffsets, PoolState, SUB_POOLS};
use crate::pool::{SegmentKind, SegmentUse, Segments};

const NO_SEGMENT: u32 = u32::MAX;

/// One sub-pool of one pool, with its offsets in DRAM.
#[derive(Debug, Clone)]
pub struct SubPool {
    pool: u16,
    number: u8,
    slot_bytes: u64,
    slots_per_segment: u64,
    entries_per_segment: u64,
    data: Vec<u32>,
    /// How many of them there are.
    data_count: u64,
    free_list: BTreeMap<u64, u32>,
    now: PoolOffsets,
    /// The next slot that was never used, and how many there are from it to the end of its segment;
    /// none before the first one is used.
    fresh: u64,
    fresh_count: u64,
    sets: [PoolOffsets; 2],
    /// How far the head may go: invariant 2.
    limit: u64,
    /// Free-list entries before this are flushed.
    flushed: u64,
    /// Head of the last checkpoint: entries before it are never needed again.
    settled_head: u64,
    /// Free-list entries before this were read since then, with their line.
    read: u64,
    /// Whether it was emptied and has all segments still.
    was_emptied: bool,
}

/// Free-list entries in a line.
const ENTRIES_A_LINE: u64 = LINE_BYTES / 8;

fn state_offset(pool: u16, sub_pool: u8) -> u64 {
    POOL_STATES_OFFSET + (u64::from(sub_pool) * POOLS as u64 + u64::from(pool)) * 64
}

fn offsets_crc(offsets: &PoolOffsets) -> u32 {
    // An all-zero state is that of a pool never used; its CRC must be zero too.
    if *offsets == PoolOffsets::default() { 0 } else { crc32fast::hash(offsets.as_bytes()) }
}

impl SubPool {
    /// A sub-pool of a pool as the checkpoint with number `sequence` left it (O-38).
    ///
    /// # Errors
    /// `Corrupt` if its state line is damaged.
    pub fn load(
        device: &AnyDevice,
        segments: &Segments,
        pool: u16,
        sub_pool: u8,
        slot_bytes: u64,
        sequence: u64,
    ) -> Result<Self> {
        assert!(usize::from(pool) < POOLS, "there is no pool {pool}");
        assert!(usize::from(sub_pool) < SUB_POOLS, "no pool has part {sub_pool}");
        assert!(slot_bytes > 0, "slots of pool {pool} have bytes");
        assert!(slot_bytes <= segments.segment_bytes(), "a slot of pool {pool} fits a segment");
        let state = read_state(device, pool, sub_pool);
        let set = state.sets[(sequence % 2) as usize];
        let expected = state.crcs[(sequence % 2) as usize];
        if offsets_crc(&set) != expected || set.head > set.tail {
            return Err(StorageError::Corrupt(format!(
                "state of pool {pool} sub-pool {sub_pool}: {set:?} with checksum {expected:#x}"
            )));
        }
        let tail = set.tail.max(state.collected_tail);
        let now = PoolOffsets { tail, ..set };
        // The other set may be torn by a crash in the middle of a checkpoint: make sure it is
        // rewritten.
        let mut sets = state.sets;
        let other = 1 - (sequence % 2) as usize;
        if offsets_crc(&sets[other]) != state.crcs[other] {
            sets[other] = PoolOffsets { bump: u64::MAX, head: u64::MAX, tail: u64::MAX };
        }
        Ok(Self {
            pool,
            number: sub_pool,
            slot_bytes,
            slots_per_segment: segments.segment_bytes() / slot_bytes,
            entries_per_segment: segments.segment_bytes() / 8,
            data: Vec::new(),
            data_count: 0,
            free_list: BTreeMap::new(),
            now,
            fresh: 0,
            fresh_count: 0,
            sets,
            limit: tail,
            flushed: tail,
            settled_head: set.head,
            read: set.head,
            was_emptied: false,
        })
    }

    /// Gives the sub-pool one of its segments at open, if the offsets refer to it.
    ///
    /// # Errors
    /// `Corrupt` if it has one of that place.
    pub fn attach(&mut self, segment: u32, entry: SegmentUse, segments: &Segments) -> Result<()> {
        let ordinal = u64::from(entry.ordinal);
        if !self.refers_to(entry.kind, ordinal) {
            segments.give_back(segment, entry);
            return Ok(());
        }
        let before = match entry.kind {
            SegmentKind::Slots => {
                let at = ordinal as usize;
                if self.data.len() <= at {
                    self.data.resize(at + 1, NO_SEGMENT);
                }
                self.data_count += 1;
                Some(std::mem::replace(&mut self.data[at], segment)).filter(|&s| s != NO_SEGMENT)
            }
            _ => self.free_list.insert(ordinal, segment),
        };
        let Some(before) = before else { return Ok(()) };
        Err(StorageError::Corrupt(format!(
            "pool {} sub-pool {}: segments {before} and {segment} have the same place",
            self.pool, self.number
        )))
    }

    /// Whether slots in use, or entries that were not popped, are in a segment.
    fn refers_to(&self, kind: SegmentKind, ordinal: u64) -> bool {
        match kind {
            SegmentKind::Slots => ordinal < self.slot_segments(),
            SegmentKind::FreeList => {
                let entries = self.entries_per_segment;
                (self.now.head / entries..self.now.tail.div_ceil(entries)).contains(&ordinal)
            }
            SegmentKind::Index | SegmentKind::IndexRoot => false,
        }
    }

    /// Segments of the slots that came from the bump allocator.
    fn slot_segments(&self) -> u64 {
        self.now.bump.div_ceil(self.slots_per_segment)
    }

    /// Empties the sub-pools of a pool, if all of their slots are free and fill a segment. Only
    /// between a checkpoint and the next epoch. Returns whether it did.
    pub fn empty_if_free(sub_pools: &mut [&mut Self], segments: &Segments) -> bool {
        let is_one_pool = sub_pools.windows(2).all(|two| two[0].pool == two[1].pool);
        assert!(is_one_pool, "sub-pools of one pool are emptied together");
        let bumped: u64 = sub_pools.iter().map(|sub_pool| sub_pool.now.bump).sum();
        let free: u64 = sub_pools.iter().map(|sub_pool| sub_pool.available()).sum();
        let a_segment = sub_pools.first().map_or(u64::MAX, |first| first.slots_per_segment);
        if free < bumped || bumped < a_segment {
            return false;
        }
        sub_pools.iter_mut().for_each(|sub_pool| sub_pool.empty(sub_pool.slot_bytes, segments));
        true
    }

    /// Gives back the segments of a sub-pool that was emptied, but for those that it has begun
    /// again. Only when a checkpoint has just saved its offsets.
    pub fn give_back(&mut self, segments: &Segments) {
        if !std::mem::take(&mut self.was_emptied) {
            return;
        }
        let needed = self.slot_segments() as usize;
        let kept = self.data.len().min(needed);
        for (ordinal, segment) in (kept as u64..).zip(self.data.split_off(kept)) {
            if segment != NO_SEGMENT {
                segments.give_back(segment, self.segment_use(SegmentKind::Slots, ordinal));
                assert!(self.data_count > 0, "a segment that is given back was counted");
                self.data_count -= 1;
            }
        }
        while let Some(ordinal) = self.recyclable() {
            let segment = self.free_list.remove(&ordinal).expect("just found");
            segments.give_back(segment, self.segment_use(SegmentKind::FreeList, ordinal));
        }
    }

    /// Has all slots unused again, as slots of another size. It keeps its segments until the next
    /// checkpoint; the free list goes on where it ended.
    pub(crate) fn empty(&mut self, slot_bytes: u64, segments: &Segments) {
        assert!(slot_bytes > 0, "slots have bytes");
        assert!(slot_bytes <= segments.segment_bytes(), "a slot fits a segment");
        let tail = self.now.tail;
        self.slot_bytes = slot_bytes;
        self.slots_per_segment = segments.segment_bytes() / slot_bytes;
        self.now = PoolOffsets { bump: 0, head: tail, tail };
        (self.fresh, self.fresh_count) = (0, 0);
        (self.limit, self.flushed, self.read) = (tail, tail, tail);
        self.was_emptied = true;
    }

    /// Checks that every segment that the offsets refer to is there.
    ///
    /// # Errors
    /// `Corrupt` naming the pool, the sub-pool and the missing segment.
    pub fn validate(&self) -> Result<()> {
        let missing = |kind: &str, ordinal: u64| {
            StorageError::Corrupt(format!(
                "pool {} sub-pool {}: {kind} segment {ordinal} is not in the directory",
                self.pool, self.number
            ))
        };
        for ordinal in 0..self.slot_segments() {
            if self.data.get(ordinal as usize).is_none_or(|&s| s == NO_SEGMENT) {
                return Err(missing("slot", ordinal));
            }
        }
        let entries = self.entries_per_segment;
        for ordinal in self.now.head / entries..self.now.tail.div_ceil(entries) {
            if self.now.head < self.now.tail && !self.free_list.contains_key(&ordinal) {
                return Err(missing("free-list", ordinal));
            }
        }
        Ok(())
    }

    /// Pool number.
    pub fn pool(&self) -> u16 {
        self.pool
    }

    /// Which sub-pool of its pool it is.
    pub fn number(&self) -> u8 {
        self.number
    }

    /// Offsets in DRAM.
    pub fn offsets(&self) -> PoolOffsets {
        self.now
    }

    /// Bytes of a slot.
    pub fn slot_bytes(&self) -> u64 {
        self.slot_bytes
    }

    /// Takes a slot from the free list, if invariant 2 allows one.
    #[inline]
    pub fn pop(&mut self, port: &mut Port, segments: &Segments) -> Option<u64> {
        if self.now.head >= self.limit {
            return None;
        }
        debug_assert!(self.now.head < self.now.tail, "an entry is popped that is there");
        if port.device().charges_loads() {
            self.charge_entry(port, segments);
        }
        let offset = self.entry(port.device().as_ref(), segments, self.now.head);
        self.now.head += 1;
        Some(offset)
    }

    /// Charges the line of the entry at the head, unless it was read since the last checkpoint: the
    /// entries are popped in order, so that a sub-pool reads one line after the other.
    #[inline(never)]
    fn charge_entry(&mut self, port: &mut Port, segments: &Segments) {
        if self.now.head >= self.read {
            port.charge_load(self.entry_offset(segments, self.now.head), 8);
            self.read = (self.now.head + 1).next_multiple_of(ENTRIES_A_LINE);
        }
    }

    /// Slots that can be popped from the free list now.
    pub fn available(&self) -> u64 {
        self.limit.saturating_sub(self.now.head)
    }

    /// Whether the next checkpoint makes slots available, or gives segments back.
    pub fn waits_for_checkpoint(&self) -> bool {
        self.was_emptied || self.limit < self.now.tail
    }

    /// Slots that the bump allocator can allocate without a new segment.
    pub fn room(&self) -> u64 {
        let first = self.now.bump / self.slots_per_segment;
        let attached =
            self.data.iter().skip(first as usize).take_while(|&&s| s != NO_SEGMENT).count();
        (attached as u64 * self.slots_per_segment)
            .saturating_sub(self.now.bump % self.slots_per_segment)
    }

    /// Whether the bump allocator can allocate a slot without a new segment.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.fresh_count > 0 || self.has_segment()
    }

    /// Whether the segment of the next fresh slot is there.
    fn has_segment(&self) -> bool {
        let ordinal = (self.now.bump / self.slots_per_segment) as usize;
        self.data.get(ordinal).is_some_and(|&s| s != NO_SEGMENT)
    }

    /// Entries that can be appended to the free list without a new segment.
    pub fn free_list_room(&self) -> u64 {
        let first = self.now.tail / self.entries_per_segment;
        let attached = (first..).take_while(|o| self.free_list.contains_key(o)).count() as u64;
        let recycled = self.free_list.range(..first).take_while(|&(&o, _)| self.is_read(o));
        ((attached + recycled.count() as u64) * self.entries_per_segment)
            .saturating_sub(self.now.tail % self.entries_per_segment)
    }

    /// Whether it has no slot: no segment of slots, and none in its free list.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.data_count == 0 && self.now.head == self.now.tail
    }

    /// Slots of all segments that it has, in use or not.
    pub fn slots(&self) -> u64 {
        self.data_count * self.slots_per_segment
    }

    /// Slots of these that are free, or were never used.
    pub fn slots_left(&self) -> u64 {
        self.slots() + self.now.tail - self.now.head - self.now.bump
    }

    /// Segments of the free list.
    pub fn free_list_segments(&self) -> u64 {
        self.free_list.len() as u64
    }

    /// Takes a slot that was never used.
    ///
    /// # Errors
    /// `Limit` if no segment is left.
    pub fn bump(&mut self, port: &mut Port, segments: &Segments) -> Result<u64> {
        if self.fresh_count == 0 {
            self.enter_segment(port, segments)?;
        }
        Ok(self.bump_in_segment().expect("a segment has slots"))
    }

    /// The same, if the segment in use has one.
    #[inline]
    pub fn bump_in_segment(&mut self) -> Option<u64> {
        let slot = self.fresh;
        self.fresh_count = self.fresh_count.checked_sub(1)?;
        self.fresh += self.slot_bytes;
        self.now.bump += 1;
        Some(slot)
    }

    /// Goes to the segment of the next fresh slot, and takes one if it is not there.
    #[cold]
    fn enter_segment(&mut self, port: &mut Port, segments: &Segments) -> Result<()> {
        assert!(self.fresh_count == 0, "a segment is left when all its slots are in use");
        let (ordinal, slot) =
            (self.now.bump / self.slots_per_segment, self.now.bump % self.slots_per_segment);
        let at = ordinal as usize;
        if self.data.len() <= at {
            self.data.resize(at + 1, NO_SEGMENT);
        }
        if self.data[at] == NO_SEGMENT {
            self.data[at] = segments.take(port, self.segment_use(SegmentKind::Slots, ordinal))?;
            self.data_count += 1;
        }
        assert!(slot < self.slots_per_segment, "the next slot is in its segment");
        self.fresh = segments.offset(self.data[at]) + slot * self.slot_bytes;
        self.fresh_count = self.slots_per_segment - slot;
        Ok(())
    }

    /// Frees a slot. Durable with the next [`SubPool::flush`] and fence; counted by the next
    /// [`SubPool::save`] or [`SubPool::collected`].
    ///
    /// # Errors
    /// `Limit` if no segment is left for the free list.
    pub fn push(&mut self, port: &mut Port, segments: &Segments, offset: u64) -> Result<()> {
        let (ordinal, place) =
            (self.now.tail / self.entries_per_segment, self.now.tail % self.entries_per_segment);
        if !self.free_list.contains_key(&ordinal) {
            let entry = self.segment_use(SegmentKind::FreeList, ordinal);
            let segment = match self.recyclable() {
                Some(old) => {
                    let segment = self.free_list.remove(&old).expect("just found");
                    segments.erase(port, entry);
                    segments.write_entry(port, segment, entry);
                    segment
                }
                None => segments.take(port, entry)?,
            };
            self.free_list.insert(ordinal, segment);
        }
        let at = segments.offset(self.free_list[&ordinal]) + place * 8;
        // SAFETY: free-list segments are owned by the sub-pool's worker.
        unsafe { port.store_u64(at, offset) };
        self.now.tail += 1;
        Ok(())
    }

    /// Flushes free-list entries appended since the last flush.
    pub fn flush(&mut self, port: &mut Port, segments: &Segments) {
        assert!(self.flushed <= self.now.tail, "no entry is flushed before it is there");
        self.flush_from(port, segments, self.flushed);
        self.flushed = self.now.tail;
    }

    /// Whether all entries of the free list were flushed.
    pub fn is_flushed(&self) -> bool {
        self.flushed == self.now.tail
    }

    /// Flushes all entries of the free list.
    pub(crate) fn flush_entries(&self, port: &mut Port, segments: &Segments) {
        self.flush_from(port, segments, self.now.head);
    }

    fn flush_from(&self, port: &mut Port, segments: &Segments, mut from: u64) {
        while from < self.now.tail {
            let (ordinal, place) =
                (from / self.entries_per_segment, from % self.entries_per_segment);
            let entries = (self.now.tail - from).min(self.entries_per_segment - place);
            port.flush(segments.offset(self.free_list[&ordinal]) + place * 8, entries * 8);
            from += entries;
        }
    }

    /// Makes the frees of a major collection final (NV 5.5, O-34 step 3). The entries must be
    /// flushed and fenced; the caller fences once more before it clears the row headers.
    pub fn collected(&mut self, port: &mut Port) {
        assert!(self.is_flushed(), "entries are flushed before they are final (O-34)");
        let at = state_offset(self.pool, self.number) + 48;
        // SAFETY: the state line is owned by the sub-pool's worker.
        unsafe { port.store_u64(at, self.now.tail) };
        port.flush(at, 8);
        self.limit = self.now.tail;
    }

    /// Writes the offsets into the set of checkpoint `sequence`, if they differ from what is there.
    pub fn save(&mut self, port: &mut Port, sequence: u64) {
        let set = (sequence % 2) as usize;
        if self.sets[set] == self.now {
            return;
        }
        let PoolOffsets { head, tail, .. } = self.now;
        assert!(head <= tail, "entry {head} was popped of {tail}");
        assert!(self.now.bump <= self.slots(), "slots that were allocated are in segments");
        assert!(self.is_flushed(), "entries are flushed before offsets count them (O-22)");
        self.sets[set] = self.now;
        let base = state_offset(self.pool, self.number);
        let crcs =
            u64::from(offsets_crc(&self.sets[0])) | u64::from(offsets_crc(&self.sets[1])) << 32;
        let words = [self.now.bump, self.now.head, self.now.tail];
        // SAFETY: the state line is owned by the sub-pool's worker.
        unsafe {
            for (i, word) in words.into_iter().enumerate() {
                port.store_u64(base + set as u64 * 24 + i as u64 * 8, word);
            }
            port.store_u64(base + 56, crcs);
        }
        port.flush(base, 64);
    }

    /// The checkpoint is durable: what was freed before it may be reused.
    pub fn checkpointed(&mut self) {
        assert!(self.limit <= self.now.tail, "a free list does not get shorter");
        assert!(self.settled_head <= self.now.head, "no entry of a free list is put back");
        assert!(self.is_flushed(), "entries that may be taken from now on are durable (O-39)");
        self.limit = self.now.tail;
        self.settled_head = self.now.head;
        self.read = self.now.head;
    }

    /// Entries of the free list from head to tail.
    pub fn free_slots(&self, device: &AnyDevice, segments: &Segments) -> Vec<u64> {
        (self.now.head..self.now.tail).map(|p| self.entry(device, segments, p)).collect()
    }

    /// Counts and charges reading the state line, which [`SubPool::load`] does without a port.
    pub fn count_state(&self, port: &mut Port) {
        port.count_load(state_offset(self.pool, self.number), size_of::<PoolState>() as u64);
    }

    /// Counts and charges reading the entries of the free list, as [`SubPool::free_slots`] and
    /// [`SubPool::validate_free_list`] do without a port.
    pub fn count_free_list(&self, port: &mut Port, segments: &Segments) {
        self.count_entries(port, segments, self.now.head);
    }

    /// The same of [`SubPool::collected_slots`].
    pub fn count_collected(&self, port: &mut Port, segments: &Segments, sequence: u64) {
        self.count_entries(port, segments, self.collected_from(sequence));
    }

    /// Counts reading the entries from a position to the tail, segment by segment.
    fn count_entries(&self, port: &mut Port, segments: &Segments, mut from: u64) {
        while from < self.now.tail {
            let to = (from + 1).next_multiple_of(self.entries_per_segment).min(self.now.tail);
            port.count_load(self.entry_offset(segments, from), (to - from) * 8);
            from = to;
        }
    }

    /// Checks that every entry of the free list is a slot of this pool: what comes from the list
    /// is written to. (That it is there once, and free, the checker and recovery look into,
    /// `owners.rs`.)
    ///
    /// # Errors
    /// `Corrupt` naming the pool, the sub-pool and the entry.
    pub fn validate_free_list(&self, device: &AnyDevice, segments: &Segments) -> Result<()> {
        let is_slot = |offset: u64| {
            let segment = segments.segment_of(offset)?;
            let entry = segments.use_of(device, segment)?;
            let within = offset - segments.offset(segment);
            let whole = within.is_multiple_of(self.slot_bytes)
                && within / self.slot_bytes < self.slots_per_segment;
            (entry.kind == SegmentKind::Slots && entry.pool == self.pool && whole).then_some(())
        };
        for place in self.now.head..self.now.tail {
            let offset = self.entry(device, segments, place);
            if is_slot(offset).is_none() {
                return Err(StorageError::Corrupt(format!(
                    "pool {} sub-pool {}: entry {place} of the free list is {offset}, which is no \
                     slot of the pool",
                    self.pool, self.number
                )));
            }
        }
        Ok(())
    }

    /// Entries that a major collection appended after the checkpoint with number `sequence` (O-36).
    pub fn collected_slots(
        &self,
        device: &AnyDevice,
        segments: &Segments,
        sequence: u64,
    ) -> Vec<u64> {
        let from = self.collected_from(sequence);
        (from..self.now.tail).map(|p| self.entry(device, segments, p)).collect()
    }

    fn collected_from(&self, sequence: u64) -> u64 {
        self.sets[(sequence % 2) as usize].tail.max(self.now.head)
    }

    /// Segments of slots that are in use: number in the directory and slots used in each, in order.
    pub fn used_segments(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        let whole = self.slots_per_segment;
        (0..self.slot_segments()).map(move |ordinal| {
            (self.data[ordinal as usize], (self.now.bump - ordinal * whole).min(whole))
        })
    }

    /// Bytes of all segments of this sub-pool.
    pub fn bytes(&self, segments: &Segments) -> u64 {
        (self.data_count + self.free_list_segments()) * segments.segment_bytes()
    }

    /// Slots that fit a segment.
    pub fn slots_per_segment(&self) -> u64 {
        self.slots_per_segment
    }

    fn recyclable(&self) -> Option<u64> {
        let (&first, _) = self.free_list.first_key_value()?;
        self.is_read(first).then_some(first)
    }

    /// Whether all entries of a segment of the free list were popped before the last checkpoint.
    fn is_read(&self, ordinal: u64) -> bool {
        (ordinal + 1) * self.entries_per_segment <= self.settled_head
    }

    fn segment_use(&self, kind: SegmentKind, ordinal: u64) -> SegmentUse {
        SegmentUse { kind, pool: self.pool, sub_pool: self.number, ordinal: ordinal as u32 }
    }

    fn entry(&self, device: &AnyDevice, segments: &Segments, position: u64) -> u64 {
        device.image().load_u64(self.entry_offset(segments, position))
    }

    fn entry_offset(&self, segments: &Segments, position: u64) -> u64 {
        let segment = self.free_list[&(position / self.entries_per_segment)];
        segments.offset(segment) + position % self.entries_per_segment * 8
    }
}

/// Reads a pool's state line.
pub(crate) fn read_state(device: &AnyDevice, pool: u16, sub_pool: u8) -> PoolState {
    let base = state_offset(pool, sub_pool);
    let mut words = [0u64; 8];
    for (i, word) in words.iter_mut().enumerate() {
        *word = device.image().load_u64(base + i as u64 * 8);
    }
    zerocopy::transmute!(words)
}

#[cfg(test)]
mod tests;
