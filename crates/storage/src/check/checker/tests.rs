//! What the checker says of free lists that do not fit the rows.

use pmem::{AnyDevice, Dram, Port};

use super::*;
use crate::catalog::{IndexKind, TableDefinition};
use crate::format::SerialId;
use crate::ids::Position;
use crate::pool::{class_of, class_pool};
use crate::store::tests::add_tables;

const VALUE_BYTES: u64 = 600;

/// A store with one row that has two versions, their values in a pool, and the slot of a second row
/// on the free list.
struct Rows {
    opened: Opened,
    port: Port,
    row: u64,
    free: u64,
    stale: u64,
    live: u64,
}

impl Rows {
    fn new() -> Self {
        let device = AnyDevice::new(Dram::new(64 << 20, 4 << 20).unwrap());
        let options = StoreOptions { segment_bytes: 4096, ..StoreOptions::default() };
        let Opened { mut store, sub_pools: mut value_sub_pools, .. } =
            Store::open(Arc::clone(&device), &options).unwrap();
        let wanted = TableDefinition {
            name: "rows".into(),
            index: IndexKind::Hash,
            key_bytes_max: 8,
            value_bytes_max: VALUE_BYTES as u32,
            row_bytes: 128,
            shared_heap_bytes: 0,
        };
        let mut sub_pools = add_tables(&mut store, &[wanted]).unwrap();
        let mut port = Port::new(AnyDevice::of(&device), 0);
        let segments = store.segments();
        segments.reserve(device.as_ref(), 4).unwrap();
        let values = value_sub_pool(&mut value_sub_pools);
        let [row, free] = [(); 2].map(|()| sub_pools[0].bump(&mut port, segments).unwrap());
        let [stale, live] = [(); 2].map(|()| values.bump(&mut port, segments).unwrap());
        let layout = store.tables()[0].layout;
        let versions = [(0, 1, stale, row::First::KeyIsThere), (1, 2, live, row::First::No)];
        // SAFETY: this test owns the store.
        unsafe {
            row::initialise(&mut port, row, &layout, &[7; 8]);
            for (slot, epoch, external, first) in versions {
                let (sid, value) = (
                    SerialId::new(EpochNumber(epoch), Position(0)),
                    &[epoch as u8; VALUE_BYTES as usize],
                );
                let content = row::Content::Bytes(value, Some(external));
                let version = row::NewVersion { slot, sid, content, first };
                row::write_version(&mut port, row, &layout, &version);
            }
        }
        sub_pools[0].push(&mut port, segments, free).unwrap();
        sub_pools[0].flush(&mut port, segments);
        sub_pools[0].save(&mut port, store.next_sequence());
        values.flush(&mut port, segments);
        values.save(&mut port, store.next_sequence());
        store.commit(&mut port, EpochNumber(2), None, 1, 0);
        let opened = Store::open(device, &StoreOptions { create: false, ..options }).unwrap();
        Self { opened, port, row, free, stale, live }
    }

    fn free_row(&mut self, slot: u64) {
        let sub_pool =
            self.opened.sub_pools.iter_mut().find(|sub_pool| sub_pool.pool() == 0).unwrap();
        sub_pool.push(&mut self.port, self.opened.store.segments(), slot).unwrap();
    }

    fn free_value(&mut self, slot: u64) {
        let sub_pool = value_sub_pool(&mut self.opened.sub_pools);
        sub_pool.push(&mut self.port, self.opened.store.segments(), slot).unwrap();
    }

    /// Makes what was freed part of the checkpoint.
    fn save(&mut self) {
        let sequence = self.opened.store.checkpoint().sequence;
        let values = value_sub_pool(&mut self.opened.sub_pools);
        values.flush(&mut self.port, self.opened.store.segments());
        values.save(&mut self.port, sequence);
    }

    /// The problem that a change makes, if it makes one.
    fn check(change: impl FnOnce(&mut Self) -> Option<String>) {
        let mut rows = Self::new();
        let expected: Vec<String> = change(&mut rows).into_iter().collect();
        assert_eq!(check_opened(&rows.opened).problems, expected);
    }
}

fn value_sub_pool(sub_pools: &mut [SubPool]) -> &mut SubPool {
    let pool = class_pool(class_of(VALUE_BYTES));
    sub_pools.iter_mut().find(|sub_pool| sub_pool.pool() == pool && sub_pool.number() == 0).unwrap()
}

/// O-41: a row slot is on the free lists at most once, and was allocated before.
#[test]
fn o_41_free_row_slots_are_slots_and_free_once() {
    Rows::check(|_| None);
    Rows::check(|rows| {
        rows.free_row(rows.free);
        Some(format!("free row slot at {} is on the free lists twice", rows.free))
    });
    Rows::check(|rows| {
        let next = rows.free.max(rows.row) + 128;
        rows.free_row(next);
        Some(format!("free row slot at {next} was never allocated"))
    });
}

/// O-33, O-34: a value slot is owned or free; both at once only between the two steps of a major
/// collection, and then by a stale version.
#[test]
fn o_33_value_slots_are_owned_or_free() {
    let both = |slot| Some(format!("value slot at {slot} is free and owned"));
    Rows::check(|rows| {
        rows.free_value(rows.stale);
        rows.save();
        both(rows.stale)
    });
    Rows::check(|rows| {
        rows.free_value(rows.stale);
        None
    });
    Rows::check(|rows| {
        rows.free_value(rows.live);
        both(rows.live)
    });
    Rows::check(|rows| {
        let next = rows.live.max(rows.stale) + crate::pool::class_bytes(class_of(VALUE_BYTES));
        rows.free_value(next);
        Some(format!("free value slot at {next} was never allocated"))
    });
}
