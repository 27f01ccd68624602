//! The segment directory: which part of the image belongs to which pool.
//!
//! Space is allocated in segments of one size. A directory entry is one 8-byte word, so an entry
//! is there or it is not. A pool gives a segment back when the last checkpoint needs none of its
//! slots; the entry stays as it is until the segment is used again, by whichever pool. So an entry
//! that no checkpoint needs means nothing, and a crash at worst leaves one. Knows nothing of slots.

use std::collections::BTreeMap;
use std::sync::Arc;

use pmem::sync::Mutex;
use pmem::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use pmem::{AnyDevice, Device, DeviceError, Port};

use crate::error::{Result, StorageError};
use crate::format::{DIRECTORY_OFFSET, POOLS, SUB_POOLS};

/// What a segment is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SegmentKind {
    /// Slots of rows or values.
    Slots,
    /// Entries of a free list.
    FreeList,
    /// Blocks of indexes that are kept. Of no pool; the ordinal is the segment's number.
    Index,
    /// Where these are, in segments in a row with ordinals from 0 on. Of no pool.
    IndexRoot,
}

impl SegmentKind {
    /// Whether it is of indexes, and so of no pool.
    pub fn is_of_indexes(self) -> bool {
        matches!(self, Self::Index | Self::IndexRoot)
    }
}

/// Owner and place of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentUse {
    /// Slots or free list.
    pub kind: SegmentKind,
    /// Pool.
    pub pool: u16,
    /// Sub-pool of the pool.
    pub sub_pool: u8,
    /// Position among the segments of that kind, pool and sub-pool.
    pub ordinal: u32,
}

/// Segments with what the directory says of them.
pub type SegmentUses = Vec<(u32, SegmentUse)>;

fn check_bits(word: u64) -> u64 {
    let mixed = (word ^ 0x5e67_6d65_6e74).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed >> 48
}

impl SegmentUse {
    /// That of a segment of indexes.
    pub fn of_indexes(kind: SegmentKind, ordinal: u32) -> Self {
        assert!(kind.is_of_indexes(), "a segment of indexes");
        Self { kind, pool: 0, sub_pool: 0, ordinal }
    }

    /// Bits 0-3 kind, 4-11 pool, 12-17 sub-pool, 18-47 ordinal, 48-63 check bits over the others.
    fn encode(self) -> u64 {
        let kind = match self.kind {
            SegmentKind::Slots => 1,
            SegmentKind::FreeList => 2,
            SegmentKind::Index => 3,
            SegmentKind::IndexRoot => 4,
        };
        let word = kind
            | u64::from(self.pool) << 4
            | u64::from(self.sub_pool) << 12
            | u64::from(self.ordinal) << 18;
        word | check_bits(word) << 48
    }

    fn decode(word: u64) -> Option<Self> {
        let low = word & 0xffff_ffff_ffff;
        if check_bits(low) != word >> 48 {
            return None;
        }
        let kind = match low & 15 {
            1 => SegmentKind::Slots,
            2 => SegmentKind::FreeList,
            3 => SegmentKind::Index,
            4 => SegmentKind::IndexRoot,
            _ => return None,
        };
        let (pool, sub_pool) = ((low >> 4 & 0xff) as u16, (low >> 12 & 0x3f) as u8);
        ((pool as usize) < POOLS && (sub_pool as usize) < SUB_POOLS).then_some(Self {
            kind,
            pool,
            sub_pool,
            ordinal: (low >> 18) as u32,
        })
    }
}

/// What a full store is still good for.
const STILL_WORKS: &str = "rows can still be deleted and values made shorter, which frees space";

/// At most this part of all segments is kept for that.
const KEPT_PART: u64 = 4;

/// Says that those can go on that free space.
fn still_works(error: DeviceError) -> StorageError {
    match error {
        DeviceError::Full { what, wanted_bytes, limit_bytes } => {
            let what = format!("{what} ({STILL_WORKS})");
            DeviceError::Full { what, wanted_bytes, limit_bytes }.into()
        }
        error => error.into(),
    }
}

/// Segments that were in use before and that no pool has.
#[derive(Debug, Default)]
struct Spare {
    /// By the entry that the directory has of them. There are several of one entry where a crash
    /// came after the second was allocated.
    entered: BTreeMap<SegmentUse, Vec<u32>>,
    /// Those without an entry.
    blank: Vec<u32>,
}

impl Spare {
    /// The segments that have an entry, or else one without or with another entry. If the pool of
    /// an entry got another segment, the directory would have it twice.
    fn take(&mut self, entry: SegmentUse) -> Vec<u32> {
        if let Some(same) = self.entered.remove(&entry) {
            return same;
        }
        if let Some(blank) = self.blank.pop() {
            return vec![blank];
        }
        let Some(mut any) = self.entered.last_entry() else { return Vec::new() };
        let segment = any.get_mut().pop();
        if any.get().is_empty() {
            any.remove();
        }
        segment.into_iter().collect()
    }
}

/// Allocates segments to all workers.
#[derive(Debug)]
pub struct Segments {
    first_offset: u64,
    segment_bytes: u64,
    segments_max: u64,
    next: AtomicU64,
    spare: Mutex<Spare>,
    spare_count: AtomicU64,
    /// Pools that have or had segments.
    begun: [AtomicBool; POOLS],
}

impl Segments {
    /// Geometry of a store, with nothing allocated yet.
    pub fn new(segment_bytes: u64, segments_max: u64) -> Self {
        assert!(segment_bytes.is_power_of_two(), "segments of {segment_bytes} bytes");
        assert!(segments_max > 0, "a store has a segment");
        assert!(segments_max <= u64::from(u32::MAX), "segments have numbers of 32 bits");
        let first_offset = (DIRECTORY_OFFSET + segments_max * 8).next_multiple_of(segment_bytes);
        Self {
            first_offset,
            segment_bytes,
            segments_max,
            next: AtomicU64::new(0),
            spare: Mutex::default(),
            spare_count: AtomicU64::new(0),
            begun: std::array::from_fn(|_| AtomicBool::new(false)),
        }
    }

    /// The most segments that a store of this geometry can have.
    pub fn most(&self) -> u64 {
        self.segments_max
    }

    /// Bytes of a segment.
    pub fn segment_bytes(&self) -> u64 {
        self.segment_bytes
    }

    /// Offset of a segment in the image.
    #[inline]
    pub fn offset(&self, segment: u32) -> u64 {
        self.first_offset + u64::from(segment) * self.segment_bytes
    }

    /// The segment that holds an offset, if it is one that was allocated.
    pub fn segment_of(&self, offset: u64) -> Option<u32> {
        let segment = offset.checked_sub(self.first_offset)? / self.segment_bytes;
        (segment < self.used()).then_some(segment as u32)
    }

    /// What the directory says of a segment.
    pub fn use_of(&self, device: &AnyDevice, segment: u32) -> Option<SegmentUse> {
        SegmentUse::decode(device.image().load_u64(DIRECTORY_OFFSET + u64::from(segment) * 8))
    }

    /// Segments that were ever allocated.
    pub fn used(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    /// Whether a pool may have slots: it has or had segments.
    #[inline]
    pub fn is_begun(&self, pool: usize) -> bool {
        self.begun[pool].load(Ordering::Relaxed)
    }

    /// Segments of these that no pool has.
    pub fn spare(&self) -> u64 {
        self.spare_count.load(Ordering::Relaxed)
    }

    /// Segments to be allocated for the first time, if so many more are needed.
    fn wanted(&self, more: u64) -> u64 {
        self.used() + more.saturating_sub(self.spare())
    }

    /// Bytes of the image that a number of segments needs.
    pub fn image_bytes(&self, segments: u64) -> u64 {
        self.first_offset + segments * self.segment_bytes
    }

    /// Entries of the directory that may be in use: as many as the image has room for segments.
    pub(crate) fn places(&self, device: &AnyDevice) -> u64 {
        let room = device.image_bytes().saturating_sub(self.first_offset) / self.segment_bytes;
        room.min(self.segments_max)
    }

    /// Reads the directory of an existing store. Segments without an entry are spare.
    ///
    /// # Errors
    /// `Corrupt` with the number of the damaged entry.
    pub fn load(&self, device: &AnyDevice) -> Result<SegmentUses> {
        let mut uses = SegmentUses::new();
        for segment in 0..self.places(device) {
            let word = device.image().load_u64(DIRECTORY_OFFSET + segment * 8);
            if word != 0 {
                let entry = SegmentUse::decode(word);
                // No pool has more segments than there are.
                let entry = entry.filter(|entry| u64::from(entry.ordinal) < self.segments_max);
                let entry = entry.ok_or_else(|| {
                    StorageError::Corrupt(format!("segment directory entry {segment}: {word:#x}"))
                })?;
                if !entry.kind.is_of_indexes() {
                    self.begun[usize::from(entry.pool)].store(true, Ordering::Relaxed);
                }
                uses.push((segment as u32, entry));
            }
        }
        let end = uses.last().map_or(0, |&(segment, _)| segment + 1);
        let mut entered = uses.iter().map(|&(segment, _)| segment).peekable();
        let blank = (0..end).filter(|&segment| entered.next_if_eq(&segment).is_none()).collect();
        self.next.store(end.into(), Ordering::Relaxed);
        self.spare_count.store(u64::from(end) - uses.len() as u64, Ordering::Relaxed);
        *self.spare.lock().expect("no panic while locked") = Spare { blank, ..Spare::default() };
        Ok(uses)
    }

    /// Counts and charges reading the directory, as [`Segments::load`] does without a port.
    pub(crate) fn count_reads(&self, port: &mut Port) {
        let words = self.places(port.device().as_ref());
        port.count_load(DIRECTORY_OFFSET, words * 8);
    }

    /// Makes sure that `segments` more can be had; grows the device where needed (O-43, O-56).
    ///
    /// # Errors
    /// `Device(Full)` if neither the directory nor the device has the space.
    pub fn reserve(&self, device: &AnyDevice, segments: u64) -> Result<()> {
        Ok(self.grow(device, self.wanted(segments))?)
    }

    /// The same, and besides so many segments in a row for indexes ([`Segments::take_run`]).
    ///
    /// # Errors
    /// As [`Segments::reserve`].
    pub fn reserve_runs(&self, device: &AnyDevice, segments: u64, in_runs: u64) -> Result<()> {
        Ok(self.grow(device, self.wanted(segments) + in_runs)?)
    }

    /// Takes segments in a row that were never used, for indexes. `entry_of` has the number of a
    /// segment, and its place in the row. Returns the first.
    ///
    /// # Errors
    /// `Limit` if they are not left: the caller did not reserve.
    pub fn take_run(
        &self,
        port: &mut Port,
        count: u64,
        entry_of: &dyn Fn(u32, u32) -> SegmentUse,
    ) -> Result<u32> {
        let usable = self.places(port.device().as_ref());
        let before = self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| {
            (next + count <= usable).then_some(next + count)
        });
        let none = "no segments in a row left although space was reserved";
        let first = before.map_err(|_| StorageError::Limit(none.into()))? as u32;
        for segment in first..first + count as u32 {
            self.write_entry(port, segment, entry_of(segment, segment - first));
        }
        Ok(first)
    }

    /// Writes those words of the root of kept indexes that are other ones, in segments in a row.
    ///
    /// # Panics
    /// If the first one is no segment of a root.
    pub fn write_root(&self, port: &mut Port, first: u32, words: &[u64]) {
        let device = Arc::clone(port.device());
        let of = self.use_of(device.as_ref(), first);
        assert!(of.is_some_and(|of| of.kind == SegmentKind::IndexRoot), "a root's segment");
        for (at, &word) in (self.offset(first)..).step_by(8).zip(words) {
            if device.image().load_u64(at) != word {
                // SAFETY: one thread saves a root, between two steps of an epoch or two epochs, and
                // only an open reads it.
                unsafe { port.store_u64(at, word) };
            }
        }
    }

    /// The same, and besides `kept` segments stay that only those may take that free space.
    ///
    /// # Errors
    /// As [`Segments::reserve`].
    pub fn reserve_beside(&self, device: &AnyDevice, segments: u64, kept: u64) -> Result<()> {
        // A small store has to hold something, too.
        let kept = kept.min(self.segments_max / KEPT_PART);
        self.grow(device, self.wanted(segments + kept)).map_err(still_works)
    }

    /// Makes sure that an image snapshot has room for so many pages more. Besides them some stay
    /// that only those may take that free space.
    ///
    /// # Errors
    /// `Device(Full)` if the device has no room.
    pub fn reserve_pages(&self, device: &AnyDevice, pages: u64, frees: bool) -> Result<()> {
        let reserved = device.reserve_pages(pages, frees);
        if frees { Ok(reserved?) } else { reserved.map_err(still_works) }
    }

    /// Bytes by which the device has to grow, if so many segments more are needed.
    pub fn growth_bytes(&self, device: &AnyDevice, segments: u64) -> u64 {
        self.image_bytes(self.wanted(segments)).saturating_sub(device.image_bytes())
    }

    /// Grows the device to so many segments.
    fn grow(&self, device: &AnyDevice, wanted: u64) -> std::result::Result<(), DeviceError> {
        if wanted > self.segments_max {
            return Err(DeviceError::Full {
                what: "space for rows and values".into(),
                wanted_bytes: self.image_bytes(wanted),
                limit_bytes: Some(self.image_bytes(self.segments_max)),
            });
        }
        let bytes = self.image_bytes(wanted);
        if bytes > device.image_bytes() {
            // Grow by an eighth at least, so that a growing store does not pay for each epoch;
            // exactly what is needed where the device has no room for more.
            let roomy =
                (device.image_bytes() / 8 * 9).max(bytes).min(self.image_bytes(self.segments_max));
            if device.grow_image(roomy).is_err() {
                device.grow_image(bytes)?;
            }
            assert!(device.image_bytes() >= bytes, "a device that has grown has the bytes");
        }
        Ok(())
    }

    /// Takes a segment for a use and writes its directory entry; the caller's next fence makes it
    /// durable.
    ///
    /// # Errors
    /// `Limit` if nothing is left: the caller did not reserve.
    pub fn take(&self, port: &mut Port, entry: SegmentUse) -> Result<u32> {
        let segment = match self.take_spare(port, entry) {
            Some(segment) => segment,
            None => self.take_next(port.device().as_ref())?,
        };
        assert!(
            u64::from(segment) < self.used(),
            "segment {segment} was counted when it was allocated"
        );
        self.begun[usize::from(entry.pool)].store(true, Ordering::Relaxed);
        self.write_entry(port, segment, entry);
        Ok(segment)
    }

    /// Takes a spare segment. If several had the entry, all others lose it.
    fn take_spare(&self, port: &mut Port, entry: SegmentUse) -> Option<u32> {
        if self.spare() == 0 {
            return None;
        }
        let mut spare = self.spare.lock().expect("no panic while locked");
        let mut found = spare.take(entry);
        let allocated = found.pop()?;
        for &other in &found {
            self.write_word(port, other, 0);
        }
        spare.blank.append(&mut found);
        let count = self.spare_count.fetch_sub(1, Ordering::Relaxed);
        assert!(count > 0, "all spare segments are counted");
        Some(allocated)
    }

    /// Erases an entry of spare segments, before a segment gets it that is none of them.
    pub fn erase(&self, port: &mut Port, entry: SegmentUse) {
        if self.spare() == 0 {
            return;
        }
        let mut spare = self.spare.lock().expect("no panic while locked");
        for segment in spare.entered.remove(&entry).unwrap_or_default() {
            self.write_word(port, segment, 0);
            spare.blank.push(segment);
        }
    }

    /// Takes the next segment that was never used.
    fn take_next(&self, device: &AnyDevice) -> Result<u32> {
        let image_bytes = device.image_bytes();
        assert!(image_bytes >= self.first_offset, "the image holds its own directory");
        let usable = (image_bytes - self.first_offset) / self.segment_bytes;
        let usable = usable.min(self.segments_max);
        let allocated = self
            .next
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| (n < usable).then_some(n + 1));
        let none = "no segment left although space was reserved";
        Ok(allocated.map_err(|_| StorageError::Limit(none.into()))? as u32)
    }

    /// Takes a segment back of which the last checkpoint needs nothing. The directory keeps its
    /// entry.
    pub fn give_back(&self, segment: u32, entry: SegmentUse) {
        assert!(u64::from(segment) < self.used(), "segment {segment} was in use");
        let mut spare = self.spare.lock().expect("no panic while locked");
        let of_entry = spare.entered.entry(entry).or_default();
        assert!(!of_entry.contains(&segment), "segment {segment} is given back once");
        of_entry.push(segment);
        self.spare_count.fetch_add(1, Ordering::Relaxed);
    }

    /// Gives a segment that its owner no longer needs a new place with the same owner.
    pub fn write_entry(&self, port: &mut Port, segment: u32, entry: SegmentUse) {
        assert!(usize::from(entry.pool) < POOLS, "there is no pool {}", entry.pool);
        assert!(usize::from(entry.sub_pool) < SUB_POOLS, "no pool has part {}", entry.sub_pool);
        self.write_word(port, segment, entry.encode());
    }

    fn write_word(&self, port: &mut Port, segment: u32, word: u64) {
        let at = DIRECTORY_OFFSET + u64::from(segment) * 8;
        // SAFETY: the entry belongs to the pool that has the segment, whose worker calls this; that
        // of a spare segment is written under the lock.
        unsafe { port.store_u64(at, word) };
        port.flush(at, 8);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pmem::Dram;

    use super::*;

    const ENTRY: SegmentUse =
        SegmentUse { kind: SegmentKind::Slots, pool: 3, sub_pool: 2, ordinal: 0 };

    fn device(segments: &Segments, room: u64) -> Arc<AnyDevice> {
        let device = AnyDevice::new(Dram::new(64 << 20, 4096).unwrap());
        device.grow_image(segments.image_bytes(room)).unwrap();
        device
    }

    /// O-43: what was not reserved is refused, be it the directory or the image that is full.
    #[test]
    fn no_segment_is_taken_beyond_the_directory_or_the_image() {
        for (most, room) in [(3, 8), (8, 3)] {
            let segments = Segments::new(4096, most);
            let device = device(&segments, room);
            assert_eq!(segments.places(&AnyDevice::of(&device)), 3);
            let mut port = Port::new(Arc::clone(&device), 0);
            for segment in 0..3 {
                let entry = SegmentUse { ordinal: segment, ..ENTRY };
                assert_eq!(segments.take(&mut port, entry).unwrap(), segment);
                assert_eq!(segments.use_of(&AnyDevice::of(&device), segment), Some(entry));
                let offset = segments.offset(segment);
                assert_eq!(segments.segment_of(offset + 4095), Some(segment));
                assert_eq!(segments.segment_of(offset + 4096), None, "not taken yet");
            }
            assert!(matches!(segments.take(&mut port, ENTRY), Err(StorageError::Limit(_))));
            assert_eq!(segments.used(), 3);
            assert_eq!(segments.segment_of(segments.offset(0) - 1), None);
        }
    }

    /// Decision 36: a pool finds the spare segment that has its entry; of several, only the one
    /// that is taken keeps it. Others take any.
    #[test]
    fn spare_segments_are_taken_first() {
        let segments = Segments::new(4096, 8);
        let device = device(&segments, 4);
        let mut port = Port::new(Arc::clone(&device), 0);
        let [second, third] = [1, 2].map(|ordinal| SegmentUse { ordinal, ..ENTRY });
        for (segment, entry) in [(0, ENTRY), (1, second), (3, second)] {
            segments.write_entry(&mut port, segment, entry);
        }
        let found = segments.load(&AnyDevice::of(&device)).unwrap();
        assert_eq!((segments.used(), segments.spare()), (4, 1), "the third has no entry");
        found.into_iter().for_each(|(segment, entry)| segments.give_back(segment, entry));
        segments.reserve(&AnyDevice::of(&device), 4).unwrap();
        assert_eq!(device.image_bytes(), segments.image_bytes(4), "they are all there is need for");

        assert_eq!(segments.take(&mut port, second).unwrap(), 3);
        assert_eq!(segments.use_of(&AnyDevice::of(&device), 1), None);
        assert_eq!(segments.take(&mut port, third).unwrap(), 1);
        assert_eq!(segments.take(&mut port, third).unwrap(), 2);
        let of_other = SegmentUse { pool: 9, ..ENTRY };
        assert_eq!(segments.take(&mut port, of_other).unwrap(), 0);
        assert_eq!(segments.use_of(&AnyDevice::of(&device), 0), Some(of_other));
        assert_eq!(segments.spare(), 0);
        segments.take(&mut port, ENTRY).unwrap_err();
    }

    /// O-56: a device grows by an eighth, or by what is needed where that is more or all there is.
    #[test]
    fn a_reservation_grows_the_device() {
        let segments = Segments::new(4096, 1000);
        let device = device(&segments, 80);
        segments.reserve(&AnyDevice::of(&device), 80).unwrap();
        assert_eq!(device.image_bytes(), segments.image_bytes(80), "there was room");
        segments.reserve(&AnyDevice::of(&device), 81).unwrap();
        let eighth = segments.image_bytes(80) / 8 * 9;
        assert!((eighth..eighth + 4096).contains(&device.image_bytes()));
        segments.reserve(&AnyDevice::of(&device), 1000).unwrap();
        assert_eq!(device.image_bytes(), segments.image_bytes(1000));
        let Err(StorageError::Device(DeviceError::Full { wanted_bytes, limit_bytes, .. })) =
            segments.reserve(&AnyDevice::of(&device), 1001)
        else {
            panic!("the directory is full");
        };
        assert_eq!(wanted_bytes, segments.image_bytes(1001));
        assert_eq!(limit_bytes, Some(segments.image_bytes(1000)));
    }

    /// What is kept for those that free space is not to be had by others, and is at most a quarter.
    #[test]
    fn a_reservation_leaves_what_is_kept() {
        let segments = Segments::new(4096, 100);
        let device = device(&segments, 0);
        segments.reserve_beside(&AnyDevice::of(&device), 90, 10).unwrap();
        assert_eq!(device.image_bytes(), segments.image_bytes(100));
        let error = segments.reserve_beside(&AnyDevice::of(&device), 91, 10).unwrap_err();
        assert!(error.to_string().contains("can still be deleted"), "{error}");
        segments.reserve(&AnyDevice::of(&device), 100).unwrap();
        segments.reserve_beside(&AnyDevice::of(&device), 75, 1000).unwrap();
        segments.reserve_beside(&AnyDevice::of(&device), 76, 1000).unwrap_err();
    }

    /// Entries are read back; one that no pool can have is damage.
    #[test]
    fn a_directory_is_read_back_and_checked() {
        let segments = Segments::new(4096, 8);
        let device = device(&segments, 8);
        let mut port = Port::new(Arc::clone(&device), 0);
        let last = SegmentUse { ordinal: 7, ..ENTRY };
        segments.write_entry(&mut port, 1, ENTRY);
        segments.write_entry(&mut port, 4, last);
        let again = Segments::new(4096, 8);
        assert_eq!(again.load(&AnyDevice::of(&device)).unwrap(), [(1, ENTRY), (4, last)]);
        assert_eq!(again.used(), 5);
        segments.write_entry(&mut port, 6, SegmentUse { ordinal: 8, ..ENTRY });
        let error = again.load(&AnyDevice::of(&device)).unwrap_err();
        assert!(error.to_string().contains("segment directory entry 6"), "{error}");
    }

    #[test]
    fn entries_round_trip_and_damage_is_seen() {
        let entry = SegmentUse {
            kind: SegmentKind::FreeList,
            pool: 139,
            sub_pool: 63,
            ordinal: (1 << 30) - 1,
        };
        let word = entry.encode();
        assert_eq!(SegmentUse::decode(word), Some(entry));
        let survivors = (0..64).filter(|bit| SegmentUse::decode(word ^ 1 << bit).is_some()).count();
        assert_eq!(survivors, 0);
        assert_eq!(SegmentUse::decode(0), None);
        let last = SegmentUse { pool: POOLS as u16 - 1, ..entry };
        assert_eq!(SegmentUse::decode(last.encode()), Some(last));
        for pool in [POOLS as u16, u16::from(u8::MAX)] {
            let none = SegmentUse { pool, ..entry };
            assert_eq!(SegmentUse::decode(none.encode()), None, "there is no pool {pool}");
        }
    }
}
