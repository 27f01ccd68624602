//! The slab that holds all row entries, by the places of their rows.
//!
//! A segment of rows has an id for each of its slots, from when a row of it is first entered on. So
//! an id leads to an entry and to a row, and a row to its id. An entry of zeros says nothing of its
//! row yet: it is filled by who touches it first ([`RowEntry::fill`]), and may be let go when
//! nothing but that is in it.

use std::collections::BTreeMap;
// What is here only grows, or is read by debug assertions: no place for an explorer.
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use pmem::sync::Mutex;
use pmem::{DeviceError, Mapping};
use storage::{EpochNumber, Segments};

use super::RowEntry;
use crate::index::EntryId;

/// Ids are handed to segments in groups: the entries of one fill a page of memory.
const GROUP: u64 = 64;

/// The most groups: the last ids stand for none.
const GROUPS_MAX: u64 = (1 << 32) / GROUP - 1;
/// With as many the slab can do where the system allows little address space.
const GROUPS_MIN: u64 = (1 << 20) / GROUP;

const ENTRY_BYTES: u64 = size_of::<RowEntry>() as u64;
const GROUP_BYTES: u64 = GROUP * ENTRY_BYTES;

/// How far ahead new entries are fetched: they were never touched, and are written one by one.
const NEW_AHEAD: u32 = 8;

/// Rows are aligned to 64 bytes; where the first one of a group is and how long one is, in these.
const ROW_UNIT: u64 = 64;
const LENGTH_SHIFT: u32 = 40;

/// All row entries of an engine: one reservation, so that an id is an address.
pub(crate) struct EntrySlab {
    memory: Mapping,
    /// Whether entries are let go that can be filled again.
    are_let_go: bool,
    /// For each segment its first group, plus one; 0 if it has none.
    groups: Words,
    /// For each group where its first row is, and from bit [`LENGTH_SHIFT`] on the length of one.
    rows: Words,
    /// A bit for each group of which an entry was touched since it was let go.
    touched: Words,
    touched_count: AtomicU64,
    first_offset: u64,
    segment_shift: u32,
    groups_max: u64,
    numbers: Mutex<Numbers>,
    /// Groups that were ever handed out.
    used: AtomicU32,
}

/// Groups that no segment has, by how many they are in a row: segments have slots of other sizes
/// when another pool takes them.
#[derive(Debug, Default)]
struct Numbers {
    spare: BTreeMap<u64, Vec<u64>>,
}

/// Which ids the rows of segments have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct KeptIds {
    /// Groups that were ever handed out.
    pub(crate) groups: u64,
    /// Segment, its first group, and the length of a row in units of 64 bytes.
    pub(crate) segments: Vec<[u64; 3]>,
    /// Groups in a row that no segment has: how many, and the first.
    pub(crate) spare: Vec<[u64; 2]>,
}

/// Words that are zero until they are set.
struct Words(Mapping);

impl Words {
    fn reserve(count: u64) -> Result<Self, DeviceError> {
        Ok(Self(Mapping::reserve(count * 8)?))
    }

    #[inline]
    fn get(&self, index: u64) -> &AtomicU64 {
        assert!(index < self.0.len() / 8, "a word of the reservation");
        // SAFETY: inside the mapping, which lives as long as the borrow; zeros are a word.
        unsafe { &*self.0.base().cast::<AtomicU64>().add(index as usize) }
    }
}

impl EntrySlab {
    /// No segment has entries. They are on small pages where they are to be let go one by one.
    pub(crate) fn new(segments: &Segments, are_let_go: bool) -> Result<Self, DeviceError> {
        // Address space for every id, unless the system allows less; zeros are a valid entry.
        let memory = Mapping::reserve_up_to(GROUPS_MAX * GROUP_BYTES, GROUPS_MIN * GROUP_BYTES)?;
        if are_let_go {
            memory.use_small_pages();
        }
        let groups_max = (memory.len() / GROUP_BYTES).min(GROUPS_MAX);
        Ok(Self {
            memory,
            are_let_go,
            groups: Words::reserve(segments.most())?,
            rows: Words::reserve(groups_max)?,
            touched: Words::reserve(groups_max.div_ceil(64))?,
            touched_count: AtomicU64::new(0),
            first_offset: segments.offset(0),
            segment_shift: segments.segment_bytes().ilog2(),
            groups_max,
            numbers: Mutex::default(),
            used: AtomicU32::new(0),
        })
    }

    /// Whether entries are let go, where there is a limit of memory.
    #[inline]
    pub(crate) fn are_let_go(&self) -> bool {
        self.are_let_go
    }

    /// The entry with an id.
    #[inline]
    pub(crate) fn get(&self, id: EntryId) -> &RowEntry {
        debug_assert!(id.0 < self.ids_used(), "an id of this slab");
        // SAFETY: ids come from `id_of`, which stays inside the mapping; entries consist of
        // atomics, for which zeros are valid, and live as long as the slab.
        unsafe { &*self.memory.base().cast::<RowEntry>().add(id.0 as usize) }
    }

    fn ids_used(&self) -> u32 {
        self.used.load(Ordering::Relaxed) * GROUP as u32
    }

    /// The id of an entry, by its address.
    pub(crate) fn id_at(&self, address: usize) -> EntryId {
        let offset = address - self.memory.base() as usize;
        assert!(offset.is_multiple_of(size_of::<RowEntry>()), "an entry of this slab");
        let id = EntryId((offset / size_of::<RowEntry>()) as u32);
        assert!(id.0 < self.ids_used(), "an entry that was handed out");
        id
    }

    #[inline]
    pub(crate) fn prefetch(&self, id: EntryId) {
        super::prefetch(self.memory.base() as usize + id.0 as usize * size_of::<RowEntry>());
    }

    /// The id of a row, in a table whose rows have so many bytes. Who makes the first row of a
    /// segment calls it before any other thread does for one of this segment.
    ///
    /// # Panics
    /// If there are as many ids as 32 bits, or the address space, have room for.
    #[inline]
    pub(crate) fn id_of(&self, row: u64, row_bytes: u64) -> EntryId {
        let segment = (row - self.first_offset) >> self.segment_shift;
        let within = row - self.first_offset - (segment << self.segment_shift);
        let slot = within as u32 / row_bytes as u32;
        debug_assert!(within.is_multiple_of(row_bytes), "a row begins where a slot does");
        let mut group = self.groups.get(segment).load(Ordering::Acquire);
        // A segment begins with its first slot whenever a pool gets it, perhaps for longer rows.
        if slot == 0 || group == 0 {
            group = self.number(segment, row_bytes);
        }
        EntryId((group - 1) as u32 * GROUP as u32 + slot)
    }

    /// [`EntrySlab::id_of`] for a row that is being made.
    #[inline]
    pub(crate) fn id_of_new(&self, row: u64, row_bytes: u64) -> EntryId {
        let id = self.id_of(row, row_bytes);
        self.prefetch(EntryId(id.0 + NEW_AHEAD));
        self.touch(id);
        id
    }

    /// Where the row of an id is.
    #[inline]
    pub(crate) fn row_of(&self, id: EntryId) -> u64 {
        let (group, at) = (u64::from(id.0) / GROUP, u64::from(id.0) % GROUP);
        let rows = self.rows.get(group).load(Ordering::Acquire);
        let (first, len) = (rows & ((1 << LENGTH_SHIFT) - 1), rows >> LENGTH_SHIFT);
        (first + at * len) * ROW_UNIT
    }

    /// Bytes of the row of an id.
    #[inline]
    pub(crate) fn row_bytes_of(&self, id: EntryId) -> u64 {
        let rows = self.rows.get(u64::from(id.0) / GROUP).load(Ordering::Acquire);
        (rows >> LENGTH_SHIFT) * ROW_UNIT
    }

    /// The key of a row that is in an index, in any phase; `image_base` is where the image begins.
    #[inline]
    pub(crate) fn key_at(&self, image_base: usize, row: u64) -> &[u8] {
        // SAFETY: entries in an index belong to initialised rows, whose keys never change.
        unsafe { storage::row::key_at(image_base, row) }
    }

    /// Notes that an entry is more than zeros from now on.
    #[inline]
    pub(crate) fn touch(&self, id: EntryId) {
        let group = u64::from(id.0) / GROUP;
        let word = self.touched.get(group / 64);
        let bit = 1 << (group % 64);
        if word.load(Ordering::Relaxed) & bit == 0
            && word.fetch_or(bit, Ordering::Relaxed) & bit == 0
        {
            self.touched_count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Gives a segment ids, unless it has some for rows of this length. Its first group, plus one.
    #[inline(never)]
    fn number(&self, segment: u64, row_bytes: u64) -> u64 {
        let mut numbers = self.numbers.lock().expect("no panic while locked");
        let of_segment = self.groups.get(segment);
        let row_units = row_bytes / ROW_UNIT;
        let wanted = self.groups_of(row_units);
        if let Some(first) = of_segment.load(Ordering::Relaxed).checked_sub(1) {
            let before = self.rows.get(first).load(Ordering::Relaxed) >> LENGTH_SHIFT;
            if before == row_units {
                return first + 1;
            }
            numbers.spare.entry(self.groups_of(before)).or_default().push(first);
        }
        let first = match numbers.spare.get_mut(&wanted).and_then(Vec::pop) {
            Some(first) => first,
            None => self.take_groups(wanted),
        };
        self.set(segment, first, row_units);
        first + 1
    }

    /// How many groups a segment has.
    fn groups_of(&self, row_units: u64) -> u64 {
        ((1 << self.segment_shift) / (row_units * ROW_UNIT)).div_ceil(GROUP)
    }

    /// Gives a segment its groups.
    fn set(&self, segment: u64, first: u64, row_units: u64) {
        let first_row = (self.first_offset + (segment << self.segment_shift)) / ROW_UNIT;
        for group in 0..self.groups_of(row_units) {
            let row = first_row + group * GROUP * row_units;
            let word = row | row_units << LENGTH_SHIFT;
            self.rows.get(first + group).store(word, Ordering::Release);
        }
        self.groups.get(segment).store(first + 1, Ordering::Release);
    }

    /// Which ids the rows of the first segments have, between epochs.
    pub(crate) fn kept_ids(&self, segments: u64) -> KeptIds {
        let numbers = self.numbers.lock().expect("no panic while locked");
        let of_segment = |segment: u64| {
            let first = self.groups.get(segment).load(Ordering::Relaxed).checked_sub(1)?;
            Some([segment, first, self.rows.get(first).load(Ordering::Relaxed) >> LENGTH_SHIFT])
        };
        let spare = numbers.spare.iter();
        KeptIds {
            groups: self.used.load(Ordering::Relaxed).into(),
            segments: (0..segments).filter_map(of_segment).collect(),
            spare: spare.flat_map(|(&count, at)| at.iter().map(move |&at| [count, at])).collect(),
        }
    }

    /// Whether ids can be those of rows in the first segments: they come from a file.
    pub(crate) fn can_be(&self, ids: &KeptIds, segments: u64) -> bool {
        let KeptIds { groups, segments: of_segments, spare } = ids;
        let is_there = |first: u64, count: u64| {
            first < *groups && first.checked_add(count).is_some_and(|end| end <= *groups)
        };
        let most = (1 << self.segment_shift) / ROW_UNIT;
        let can_be_of = |&[segment, first, row_units]: &[u64; 3]| {
            segment < segments
                && (1..=most).contains(&row_units)
                && is_there(first, self.groups_of(row_units))
        };
        *groups <= self.groups_max
            && of_segments.iter().all(can_be_of)
            && spare.iter().all(|&[count, first]| is_there(first, count))
    }

    /// Whether an id is one of a row that a segment has a place for.
    pub(crate) fn has_row(&self, id: EntryId) -> bool {
        id.0 < self.ids_used() && self.row_of(id) != 0
    }

    /// Gives segments the ids that they had. No entry is touched yet.
    pub(crate) fn restore_ids(&self, ids: &KeptIds) {
        let mut numbers = self.numbers.lock().expect("no panic while locked");
        assert!(self.used.load(Ordering::Relaxed) == 0, "no row has an id yet");
        self.used.store(ids.groups as u32, Ordering::Relaxed);
        for &[segment, first, row_units] in &ids.segments {
            self.set(segment, first, row_units);
        }
        for &[count, first] in &ids.spare {
            numbers.spare.entry(count).or_default().push(first);
        }
    }

    fn take_groups(&self, count: u64) -> u64 {
        let first = u64::from(self.used.load(Ordering::Relaxed));
        assert!(first + count <= self.groups_max, "more than {} rows", self.groups_max * GROUP);
        self.used.store((first + count) as u32, Ordering::Relaxed);
        first
    }

    /// Makes the pages of entries present that so many new rows of some length will have.
    pub(crate) fn populate(&self, count: u64, row_bytes: u64) {
        let slots = (1 << self.segment_shift) / row_bytes;
        let bytes = count.div_ceil(slots) * slots.div_ceil(GROUP) * GROUP_BYTES;
        let first = u64::from(self.used.load(Ordering::Relaxed)) * GROUP_BYTES;
        self.memory.populate(first, bytes.min(self.memory.len() - first));
    }

    /// Gives an entry back whose row is no more; after execution only.
    pub(crate) fn give_back(&self, id: EntryId) {
        self.get(id).retire();
    }

    /// Lets part `part` of `parts` of the entries go that can be filled again. What is behind them
    /// is not touched, and no thread reads meanwhile.
    pub(crate) fn let_go(&self, epoch: EpochNumber, part: usize, parts: usize) {
        let words = u64::from(self.used.load(Ordering::Relaxed)).div_ceil(64);
        for index in (part as u64..words).step_by(parts) {
            let word = self.touched.get(index);
            let mut left = word.load(Ordering::Relaxed);
            while left != 0 {
                let bit = left & left.wrapping_neg();
                left ^= bit;
                let group = index * 64 + u64::from(bit.trailing_zeros());
                let mut of_group =
                    (0..GROUP).map(|at| self.get(EntryId((group * GROUP + at) as u32)));
                if of_group.all(|entry| entry.can_be_filled_again(epoch)) {
                    word.fetch_and(!bit, Ordering::Relaxed);
                    self.touched_count.fetch_sub(1, Ordering::Relaxed);
                    // SAFETY: the page has the entries of this group alone, of which none is
                    // needed (checked), and no thread reads them meanwhile.
                    unsafe { self.memory.drop_pages(group * GROUP_BYTES, GROUP_BYTES) };
                }
            }
        }
    }

    /// Bytes of DRAM in use.
    pub(crate) fn bytes(&self) -> u64 {
        self.touched_count.load(Ordering::Relaxed) * GROUP_BYTES
    }

    /// For tests: a slab with the ids of some rows.
    #[cfg(test)]
    pub(crate) fn of_rows(count: u64) -> (Self, Vec<EntryId>) {
        let segments = Segments::new(1 << 20, 4);
        let slab = Self::new(&segments, false).unwrap();
        let ids = (0..count).map(|row| slab.id_of_new(segments.offset(0) + row * 64, 64)).collect();
        (slab, ids)
    }
}

#[cfg(test)]
mod tests {
    use storage::{Position, SerialId};

    use super::super::{AppendedBy, RowPlace, ValuePlace, ValueWord};
    use super::*;

    fn value() -> ValueWord {
        ValueWord::new(ValuePlace::persistent(0), 4096, 8)
    }

    #[test]
    fn ids_and_rows_lead_to_each_other() {
        let segments = Segments::new(64 << 10, 1 << 10);
        let slab = EntrySlab::new(&segments, true).unwrap();
        let mut seen = std::collections::BTreeSet::new();
        for (segment, row_bytes) in [(0, 64), (7, 2112), (1, 128), (900, 65536), (2, 192)] {
            for slot in 0..segments.segment_bytes() / row_bytes {
                let row = segments.offset(segment) + slot * row_bytes;
                let id = slab.id_of(row, row_bytes);
                assert!(seen.insert(id.0), "{segment} {slot}");
                assert_eq!((slab.row_of(id), slab.id_of(row, row_bytes)), (row, id));
            }
        }
    }

    /// A segment that gets rows of another length has other ids, and those that it had
    /// are used again.
    #[test]
    fn a_segment_gets_other_ids_for_longer_rows() {
        let segments = Segments::new(64 << 10, 4);
        let slab = EntrySlab::new(&segments, false).unwrap();
        let row = |segment, slot: u64| segments.offset(segment) + slot * 64;
        let first = slab.id_of(row(0, 0), 64);
        let last = slab.id_of(row(0, 1023), 64);
        assert_eq!(last.0 - first.0, 1023);
        let longer = slab.id_of(row(0, 0), 4096);
        assert!(!(first.0..=last.0).contains(&longer.0));
        assert_eq!(slab.row_of(EntryId(longer.0 + 3)), segments.offset(0) + 3 * 4096);
        assert_eq!(slab.id_of(row(1, 0), 64), first);
        assert_eq!(slab.row_of(last), row(1, 1023));
    }

    #[test]
    fn entries_are_let_go_that_say_nothing_of_their_own() {
        let (slab, ids) = EntrySlab::of_rows(300);
        let row = |id| slab.row_of(id);
        for &id in &ids {
            slab.get(id).fill(RowPlace::of_two(row(id)), value());
        }
        assert_eq!(slab.bytes(), 5 * GROUP_BYTES);
        // One is of a row that this epoch makes.
        let by = AppendedBy::NOBODY;
        let sid = SerialId::new(EpochNumber(5), Position(1));
        slab.get(ids[70]).create(RowPlace::of_two(row(ids[70])), sid, by);
        for part in 0..2 {
            slab.let_go(EpochNumber(5), part, 2);
        }
        assert_eq!(slab.bytes(), GROUP_BYTES);
        let is_filled = |at: usize| slab.get(ids[at]).is_filled();
        assert!(is_filled(64) && is_filled(70) && is_filled(127));
        assert!(!is_filled(63) && !is_filled(128) && !is_filled(299));
        slab.get(ids[299]).fill(RowPlace::of_two(row(ids[299])), value());
        slab.touch(ids[299]);
        assert_eq!((slab.bytes(), slab.get(ids[299]).row()), (2 * GROUP_BYTES, row(ids[299])));
    }
}
