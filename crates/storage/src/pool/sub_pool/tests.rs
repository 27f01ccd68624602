//! A sub-pool by itself: what it says of its space, and what it refuses at open.

use std::sync::Arc;

use pmem::{AnyDevice, Dram, Port};

use super::*;
use crate::format::SUB_POOLS;

const POOL: u16 = 7;
const SUB_POOL: u8 = (SUB_POOLS - 1) as u8;
const SEGMENT_BYTES: u64 = 4096;
const ENTRIES: u64 = SEGMENT_BYTES / 8;
/// Slots do not fill a segment: 64 bytes are left behind the last one.
const SLOT_BYTES: u64 = 96;
const SLOTS: u64 = SEGMENT_BYTES / SLOT_BYTES;

struct TestDevice {
    device: Arc<AnyDevice>,
    port: Port,
    segments: Segments,
}

impl TestDevice {
    fn new() -> Self {
        let device = AnyDevice::new(Dram::new(64 << 20, 4096).unwrap());
        let port = Port::new(AnyDevice::of(&device), 0);
        let segments = Segments::new(SEGMENT_BYTES, 1024);
        segments.reserve(device.as_ref(), 16).unwrap();
        Self { device, port, segments }
    }

    /// The sub-pool as checkpoint `sequence` left it, with the segments that `is_there` leaves it.
    fn open(&self, sequence: u64, is_there: impl Fn(&SegmentUse) -> bool) -> SubPool {
        let device = self.device.as_ref();
        let mut sub_pool =
            SubPool::load(device, &self.segments, POOL, SUB_POOL, SLOT_BYTES, sequence).unwrap();
        for (segment, entry) in self.segments.load(device).unwrap() {
            if is_there(&entry) {
                sub_pool.attach(segment, entry, &self.segments).unwrap();
            }
        }
        sub_pool
    }

    /// A sub-pool after so many fresh slots, frees, and slots taken from the free list again, saved
    /// with checkpoint 1.
    fn sub_pool(&mut self, fresh: u64, freed: u64, popped: u64) -> SubPool {
        let mut sub_pool = self.open(0, |_| true);
        let slots = self.bump(&mut sub_pool, fresh);
        self.push(&mut sub_pool, slots.iter().cycle().take(freed as usize));
        sub_pool.flush(&mut self.port, &self.segments);
        sub_pool.checkpointed();
        for _ in 0..popped {
            sub_pool.pop(&mut self.port, &self.segments).unwrap();
        }
        self.save(&mut sub_pool, 1);
        sub_pool
    }

    /// Saves the sub-pool with a checkpoint, as an epoch does: its entries are flushed before.
    fn save(&mut self, sub_pool: &mut SubPool, sequence: u64) {
        sub_pool.flush(&mut self.port, &self.segments);
        sub_pool.save(&mut self.port, sequence);
    }

    fn bump(&mut self, sub_pool: &mut SubPool, count: u64) -> Vec<u64> {
        (0..count).map(|_| sub_pool.bump(&mut self.port, &self.segments).unwrap()).collect()
    }

    fn push<'a>(&mut self, sub_pool: &mut SubPool, slots: impl IntoIterator<Item = &'a u64>) {
        for &slot in slots {
            sub_pool.push(&mut self.port, &self.segments, slot).unwrap();
        }
    }
}

/// O-54: offsets that refer to a segment that is not in the directory are refused by name, and
/// those that need no segment any more are not.
#[test]
fn o_54_offsets_need_their_segments() {
    let sub_pools = [
        (3 * SLOTS + 1, 0, 0),
        (2 * SLOTS, 2 * ENTRIES + 1, 0),
        (1, ENTRIES, 0),
        (1, ENTRIES + 90, ENTRIES + 88),
        (1, 2 * ENTRIES + 90, ENTRIES + 88),
        (1, 20, 20),
        (1, ENTRIES + 20, ENTRIES + 20),
    ];
    for (fresh, freed, popped) in sub_pools {
        let mut test = TestDevice::new();
        test.sub_pool(fresh, freed, popped);
        test.open(1, |_| true).validate().unwrap();
        let slots = (0..fresh.div_ceil(SLOTS)).map(|ordinal| (SegmentKind::Slots, ordinal, true));
        let lists = (0..freed.div_ceil(ENTRIES)).map(|ordinal| {
            // Some entry of the segment is not taken yet.
            let is_needed = (ordinal * ENTRIES..freed.min((ordinal + 1) * ENTRIES))
                .any(|place| place >= popped);
            (SegmentKind::FreeList, ordinal, is_needed)
        });
        for (kind, ordinal, is_needed) in slots.chain(lists) {
            let lost = SegmentUse { kind, pool: POOL, sub_pool: SUB_POOL, ordinal: ordinal as u32 };
            let found = test.open(1, |entry| *entry != lost).validate();
            let expected = is_needed.then(|| {
                let kind = if kind == SegmentKind::Slots { "slot" } else { "free-list" };
                let of = format!("pool {POOL} sub-pool {SUB_POOL}");
                format!("{of}: {kind} segment {ordinal} is not in the directory")
            });
            match (found, expected) {
                (Ok(()), None) => {}
                (Err(StorageError::Corrupt(text)), Some(expected)) => assert_eq!(text, expected),
                (found, expected) => panic!(
                    "{fresh} fresh, {freed} freed, {popped} popped, without {kind:?} {ordinal}: \
                     {found:?} instead of {expected:?}"
                ),
            }
        }
    }
}

/// O-43: a sub-pool has room as long as the next fresh slot needs no segment, also where it has not
/// entered the segment yet.
#[test]
fn o_43_a_sub_pool_has_room_where_its_next_slot_has_a_segment() {
    let mut test = TestDevice::new();
    let mut sub_pool = test.open(0, |_| true);
    assert!(!sub_pool.has_room());
    for bumped in 1..=3 * SLOTS {
        test.bump(&mut sub_pool, 1);
        assert_eq!(sub_pool.has_room(), !bumped.is_multiple_of(SLOTS), "after {bumped} slots");
        assert_eq!(sub_pool.room() > 0, sub_pool.has_room(), "after {bumped} slots");
    }
    // The segments of slots that a crash took back are spare, and come to the same places again.
    for kept in [0, 1, SLOTS - 1, SLOTS, 2 * SLOTS + 5, 3 * SLOTS] {
        let mut test = TestDevice::new();
        let mut sub_pool = test.sub_pool(kept, 0, 0);
        let slots = test.bump(&mut sub_pool, 3 * SLOTS - kept);
        let mut again = test.open(1, |_| true);
        assert_eq!(test.segments.spare(), 3 - kept.div_ceil(SLOTS), "{kept}");
        assert_eq!(again.room(), kept.next_multiple_of(SLOTS) - kept);
        assert_eq!(test.bump(&mut again, 3 * SLOTS - kept), slots);
        assert_eq!((test.segments.spare(), test.segments.used()), (0, 3));
    }
}

/// Decision 36: a pool without a slot in use keeps the segments that it begins again, when a
/// checkpoint has saved that, and other pools get the others.
#[test]
fn a_free_pool_gives_its_segments_back() {
    let mut test = TestDevice::new();
    let mut sub_pool = test.sub_pool(3 * SLOTS, 3 * SLOTS - 1, 0);
    sub_pool.checkpointed();
    let first = test.segments.offset(sub_pool.data[0]);
    assert!(!SubPool::empty_if_free(&mut [&mut sub_pool], &test.segments));
    test.push(&mut sub_pool, &[first]);
    let is_free = SubPool::empty_if_free(&mut [&mut sub_pool], &test.segments);
    assert!(!is_free, "a crash would take the slot that was freed last");
    test.save(&mut sub_pool, 2);
    sub_pool.checkpointed();
    assert!(SubPool::empty_if_free(&mut [&mut sub_pool], &test.segments));
    assert_eq!(test.segments.spare(), 0, "a crash needs them all");
    assert_eq!(test.open(2, |_| true).offsets().bump, 3 * SLOTS);

    assert_eq!(test.bump(&mut sub_pool, 1), [first]);
    test.save(&mut sub_pool, 3);
    sub_pool.checkpointed();
    sub_pool.give_back(&test.segments);
    assert_eq!((test.segments.spare(), sub_pool.slots()), (2, SLOTS));
    assert_eq!(sub_pool.bytes(&test.segments), 2 * SEGMENT_BYTES, "slots, and the free list");
    sub_pool.give_back(&test.segments);
    assert_eq!(test.segments.spare(), 2);

    // Another pool gets one of them, which a crash may well leave with its old entry.
    let of_other =
        SegmentUse { kind: SegmentKind::Slots, pool: POOL + 1, sub_pool: SUB_POOL, ordinal: 9 };
    let allocated = test.segments.take(&mut test.port, of_other).unwrap();
    assert_eq!((test.segments.spare(), test.segments.used()), (1, 4));
    assert_eq!(test.segments.use_of(test.device.as_ref(), allocated), Some(of_other));
    assert_eq!(test.open(3, |entry| entry.pool == POOL).slots(), SLOTS);
    assert_eq!(test.segments.spare(), 1);
}

/// O-40, O-54: a crash leaves a spare segment with the entry of a place that the free list comes to
/// later. What it recycles for the place is the only one of it then.
#[test]
fn o_54_a_recycled_segment_is_the_only_one_of_its_place() {
    let mut test = TestDevice::new();
    let mut sub_pool = test.sub_pool(1, ENTRIES, 0);
    sub_pool.checkpointed();
    test.push(&mut sub_pool, &[99]);

    // Its second segment is spare after a crash.
    let mut again = test.open(1, |_| true);
    assert_eq!((again.free_list_segments(), test.segments.spare()), (1, 1));
    for _ in 0..ENTRIES {
        again.pop(&mut test.port, &test.segments).unwrap();
    }
    test.save(&mut again, 2);
    again.checkpointed();
    test.push(&mut again, &[98]);
    test.save(&mut again, 3);
    let after = test.open(3, |_| true);
    assert_eq!(after.free_slots(test.device.as_ref(), &test.segments), [98]);
}

/// A pool that fills no segment is not emptied: nothing would be gained.
#[test]
fn a_pool_of_less_than_a_segment_is_not_emptied() {
    for (slots, is_emptied) in [(0, false), (SLOTS - 1, false), (SLOTS, true)] {
        let mut test = TestDevice::new();
        let mut sub_pool = test.sub_pool(slots, slots, 0);
        sub_pool.checkpointed();
        let found = SubPool::empty_if_free(&mut [&mut sub_pool], &test.segments);
        assert_eq!(found, is_emptied, "{slots}");
    }
}

/// What a sub-pool refers to is in the directory once.
#[test]
fn o_54_two_segments_of_one_place_are_refused() {
    let mut test = TestDevice::new();
    let mut sub_pool = test.sub_pool(SLOTS, 1, 0);
    let entry = SegmentUse { kind: SegmentKind::Slots, pool: POOL, sub_pool: SUB_POOL, ordinal: 0 };
    let of_other = SegmentUse { pool: POOL + 1, ..entry };
    let other = test.segments.take(&mut test.port, of_other).unwrap();
    for entry in [entry, SegmentUse { kind: SegmentKind::FreeList, ..entry }] {
        let error = sub_pool.attach(other, entry, &test.segments).unwrap_err();
        assert!(error.to_string().contains(&format!("and {other} have the same place")), "{error}");
        let behind = SegmentUse { ordinal: 1, ..entry };
        sub_pool.attach(other, behind, &test.segments).unwrap();
    }
    assert_eq!(test.segments.spare(), 2);
}

/// O-54: what comes from a free list is written to, so each entry is a slot of the pool.
#[test]
fn o_54_entries_of_a_free_list_are_slots_of_the_pool() {
    let mut test = TestDevice::new();
    let mut sub_pool = test.sub_pool(SLOTS + 1, 0, 0);
    let other =
        SegmentUse { kind: SegmentKind::Slots, pool: POOL + 1, sub_pool: SUB_POOL, ordinal: 0 };
    let other = test.segments.take(&mut test.port, other).unwrap();
    let first = test.segments.offset(sub_pool.data[0]);
    test.push(&mut sub_pool, &[first]);
    let list = test.segments.offset(sub_pool.free_list[&0]);
    let cases = [
        ("the first slot", first, true),
        ("the second slot", first + SLOT_BYTES, true),
        ("the last slot", first + (SLOTS - 1) * SLOT_BYTES, true),
        ("a slot of the second segment", test.segments.offset(sub_pool.data[1]), true),
        ("behind the last slot", first + SLOTS * SLOT_BYTES, false),
        ("within a slot", first + 8, false),
        ("just before a slot", first + SLOT_BYTES - 8, false),
        ("a slot of another pool", test.segments.offset(other), false),
        ("the free list", list, false),
        ("a segment that nobody has", test.segments.offset(other + 1), false),
        ("before the segments", 0, false),
    ];
    for (what, offset, is_slot) in cases {
        let mut sub_pool = sub_pool.clone();
        test.push(&mut sub_pool, &[offset]);
        let found = sub_pool.validate_free_list(test.device.as_ref(), &test.segments);
        match found {
            Ok(()) => assert!(is_slot, "{what}"),
            Err(StorageError::Corrupt(text)) => {
                assert!(!is_slot, "{what}: {text}");
                assert!(text.contains(&format!("entry 1 of the free list is {offset}")), "{text}");
            }
            Err(error) => panic!("{what}: {error}"),
        }
    }
}

/// O-36, O-38: after a crash the sub-pool is as the checkpoint left it, but for what a major
/// collection freed, which stays freed.
#[test]
fn o_36_what_a_collection_freed_stays_freed_after_a_crash() {
    let mut test = TestDevice::new();
    let mut sub_pool = test.sub_pool(5, 0, 0);
    let first = test.segments.offset(sub_pool.data[0]);
    let slot = |number: u64| first + number * SLOT_BYTES;
    let saved = sub_pool.offsets();
    test.push(&mut sub_pool, &[slot(0), slot(3)]);
    assert_eq!(test.open(1, |_| true).offsets(), saved, "not counted yet");
    sub_pool.flush(&mut test.port, &test.segments);
    sub_pool.collected(&mut test.port);
    // Freed after the collection, which a crash undoes.
    test.push(&mut sub_pool, &[slot(1)]);
    test.bump(&mut sub_pool, 2);

    let reopened = test.open(1, |_| true);
    assert_eq!(reopened.offsets(), PoolOffsets { tail: 2, ..saved });
    let device = Arc::clone(&test.device);
    let device = device.as_ref();
    assert_eq!(reopened.free_slots(device, &test.segments), [slot(0), slot(3)]);
    assert_eq!(reopened.collected_slots(device, &test.segments, 1), [slot(0), slot(3)]);
    assert_eq!(reopened.available(), 2, "can be taken before the next checkpoint");
    test.save(&mut sub_pool, 2);
    let after = test.open(2, |_| true);
    assert_eq!(after.offsets(), sub_pool.offsets());
    assert_eq!(after.collected_slots(device, &test.segments, 2), [0; 0]);
    // The set of the checkpoint before is still there.
    assert_eq!(test.open(1, |_| true).offsets(), PoolOffsets { tail: 2, ..saved });
}

/// O-43: an epoch reserves by these figures, so a sub-pool has exactly as many slots and entries as
/// it says before it takes another segment.
#[test]
fn o_43_room_is_what_needs_no_segment() {
    for (fresh, freed, popped) in
        [(0, 0, 0), (1, 1, 0), (SLOTS, ENTRIES, 3), (2 * SLOTS + 5, ENTRIES + 7, ENTRIES + 2)]
    {
        let mut test = TestDevice::new();
        let mut sub_pool = test.sub_pool(fresh, freed, popped);
        let what = format!("{fresh} fresh, {freed} freed, {popped} popped");
        assert_eq!(sub_pool.available(), freed - popped, "{what}");
        assert_eq!(sub_pool.room(), fresh.next_multiple_of(SLOTS) - fresh, "{what}");
        assert_eq!(sub_pool.has_room(), sub_pool.room() > 0, "{what}");
        assert_eq!(sub_pool.free_list_room(), freed.next_multiple_of(ENTRIES) - freed, "{what}");
        let segments = fresh.div_ceil(SLOTS) + freed.div_ceil(ENTRIES);
        assert_eq!(sub_pool.bytes(&test.segments), segments * SEGMENT_BYTES, "{what}");
        assert_eq!(sub_pool.slots_per_segment(), SLOTS);
        let used: Vec<_> = sub_pool.used_segments().map(|(_, slots)| slots).collect();
        assert_eq!(used.iter().sum::<u64>(), fresh, "{what}: {used:?}");
        assert!(used.iter().all(|&slots| (1..=SLOTS).contains(&slots)), "{what}: {used:?}");

        let before = test.segments.used();
        let room = sub_pool.room();
        test.bump(&mut sub_pool, room);
        let entries = vec![0; sub_pool.free_list_room() as usize];
        test.push(&mut sub_pool, &entries);
        assert_eq!(test.segments.used(), before, "{what}");
        test.bump(&mut sub_pool, 1);
        assert_eq!(test.segments.used(), before + 1, "{what}");
    }
}

/// O-40: a segment of the free list is reused when a checkpoint has left it behind, and not
/// before: a crash may take its entries once more.
#[test]
fn o_40_a_free_list_recycles_what_a_checkpoint_left_behind() {
    for (popped, recycles) in [(ENTRIES - 1, false), (ENTRIES, true), (ENTRIES + 1, true)] {
        let mut test = TestDevice::new();
        let mut sub_pool = test.sub_pool(1, 2 * ENTRIES, popped);
        sub_pool.checkpointed();
        let before = test.segments.used();
        test.push(&mut sub_pool, &[99]);
        let allocated = test.segments.used() - before;
        assert_eq!(allocated, u64::from(!recycles), "{popped} popped");
        assert_eq!(sub_pool.free_slots(test.device.as_ref(), &test.segments).last(), Some(&99));
    }
    // The head has left the segment since the checkpoint only.
    let mut test = TestDevice::new();
    let mut sub_pool = test.sub_pool(1, 2 * ENTRIES, ENTRIES);
    let before = test.segments.used();
    test.push(&mut sub_pool, &[99]);
    assert_eq!(test.segments.used(), before + 1);
}

/// O-54: offsets that were damaged fail the checksum of their set, whichever set is read.
#[test]
fn o_54_damaged_offsets_are_refused() {
    for sequence in [1, 2] {
        let mut test = TestDevice::new();
        let mut sub_pool = test.sub_pool(SLOTS + 1, 20, 3);
        test.save(&mut sub_pool, 2);
        let load = |test: &TestDevice| {
            let segments = &test.segments;
            SubPool::load(test.device.as_ref(), segments, POOL, SUB_POOL, SLOT_BYTES, sequence)
        };
        assert_eq!(load(&test).unwrap().offsets(), sub_pool.offsets());
        let set = sequence % 2;
        for word in [set * 3, set * 3 + 1, set * 3 + 2, 7] {
            let at = state_offset(POOL, SUB_POOL) + word * 8;
            let was = test.device.image().load_u64(at);
            let flipped = if word == 7 { 1 << (set * 32) } else { 1 };
            // SAFETY: this test owns the device.
            unsafe { test.port.store_u64(at, was ^ flipped) };
            let refused = load(&test).err();
            assert!(matches!(refused, Some(StorageError::Corrupt(_))), "word {word}: {refused:?}");
            // SAFETY: as above.
            unsafe { test.port.store_u64(at, was) };
        }
    }
}

/// O-22: offsets count no entry that a crash may lose.
#[test]
#[should_panic(expected = "flushed before offsets count them")]
fn o_22_entries_that_are_not_flushed_are_not_saved() {
    let mut test = TestDevice::new();
    let mut sub_pool = test.sub_pool(1, 0, 0);
    test.push(&mut sub_pool, &[99]);
    sub_pool.save(&mut test.port, 2);
}

/// O-34: a collection makes no entry final that a crash may lose.
#[test]
#[should_panic(expected = "flushed before they are final")]
fn o_34_entries_that_are_not_flushed_are_not_final() {
    let mut test = TestDevice::new();
    let mut sub_pool = test.sub_pool(1, 0, 0);
    test.push(&mut sub_pool, &[99]);
    sub_pool.collected(&mut test.port);
}

/// O-22: each entry of a free list is flushed: those that were appended, and all of them at open.
#[test]
fn o_22_every_entry_is_flushed() {
    let mut test = TestDevice::new();
    let mut sub_pool = test.open(0, |_| true);
    let slots = test.bump(&mut sub_pool, 7);
    let mut entries = 0;
    for count in [90, 2 * ENTRIES] {
        test.push(&mut sub_pool, slots.iter().cycle().take(count as usize));
        test.port.take_counters();
        sub_pool.flush(&mut test.port, &test.segments);
        let flushed = test.port.take_counters().flushes;
        assert!((count.div_ceil(8)..=count.div_ceil(8) + 1).contains(&flushed), "{flushed}");
        entries += count;
        sub_pool.flush(&mut test.port, &test.segments);
        assert_eq!(test.port.take_counters().flushes, 0, "nothing was appended");
    }
    sub_pool.flush_entries(&mut test.port, &test.segments);
    assert_eq!(test.port.take_counters().flushes, entries.div_ceil(8_u64));
}
