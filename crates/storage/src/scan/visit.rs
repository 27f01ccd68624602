//! The plan of a scan, and the visit of its rows.

use pmem::{AnyDevice, Device, LINE_BYTES, Port};

use crate::error::{Result, StorageError};
use crate::format::{CLASS_BYTES_MIN, SerialId, TABLES_MAX, ValuePointer, VersionWords};
use crate::ids::{EpochNumber, TableId};
use crate::input_log::Recovered;
use crate::pool::{SegmentKind, Segments, SubPool, class_of, class_pool};
use crate::row;
use crate::row::RowLayout;
use crate::store::Store;

/// One segment of rows to visit.
#[derive(Debug, Clone, Copy)]
pub struct ScanUnit {
    /// Table.
    pub table: TableId,
    /// Segment.
    pub segment: u32,
    /// Slots below the bump offset.
    pub slots: u64,
}

/// A row that the checkpoint holds.
#[derive(Debug, Clone, Copy)]
pub struct ScannedRow {
    /// Offset in the image.
    pub row: u64,
    /// Slot of the checkpoint's version.
    pub slot: usize,
    /// The two versions as they are.
    pub versions: [VersionWords; 2],
}

impl ScannedRow {
    /// The stale version's pool slot, if there is one to collect: both versions are checkpointed
    /// and the older one is external (O-35).
    pub fn stale_external(&self, checkpoint_epoch: EpochNumber) -> Option<u64> {
        let stale = self.versions[1 - self.slot];
        let sid = SerialId(stale.serial_id);
        (sid.0 != 0 && sid.epoch() <= checkpoint_epoch)
            .then(|| ValuePointer(stale.pointer).external_offset())
            .flatten()
    }

    /// Pointer of the checkpoint's version.
    pub fn pointer(&self) -> ValuePointer {
        ValuePointer(self.versions[self.slot].pointer)
    }
}

/// The work of a scan: units in any order, and the free row slots, sorted.
pub struct ScanPlan {
    /// Segments to visit.
    pub units: Vec<ScanUnit>,
    /// Offsets of free slots, sorted.
    pub free: Vec<u64>,
    /// Slots of values that were ever allocated, by segment: nothing may point past them, because
    /// they would be allocated again.
    pub value_slots: Vec<u64>,
    /// The last epoch that any version can be of: that of the checkpoint, or the last one
    /// committed.
    pub last_epoch: EpochNumber,
}

/// Plans the scan of all row pools of a store whose log is read. Final writes come after the log of
/// their epoch (O-13, O-28), so no version is of an epoch after the last one committed.
pub fn plan(store: &Store, sub_pools: &[SubPool], log: &Recovered) -> ScanPlan {
    let (device, segments, tables) =
        (store.device().as_ref(), store.segments(), store.tables().len());
    let checkpoint = store.checkpoint_epoch();
    let last_epoch =
        log.committed.last().map_or(checkpoint, |committed| committed.epoch.max(checkpoint));
    let value_slots = vec![0; segments.used() as usize];
    let mut plan = ScanPlan { units: Vec::new(), free: Vec::new(), value_slots, last_epoch };
    for sub_pool in sub_pools.iter().filter(|l| (l.pool() as usize) >= TABLES_MAX) {
        for (segment, slots) in sub_pool.used_segments() {
            plan.value_slots[segment as usize] = slots;
        }
    }
    for sub_pool in sub_pools.iter().filter(|l| (l.pool() as usize) < tables) {
        plan.units.extend(sub_pool.used_segments().map(|(segment, slots)| ScanUnit {
            table: TableId(sub_pool.pool()),
            segment,
            slots,
        }));
        plan.free.extend(sub_pool.free_slots(device, segments));
    }
    plan.free.sort_unstable();
    plan
}

/// Counts and charges what [`visit`] reads of a row and, if `hashed`, what its hash needs besides.
/// The segment directory, which pointers into pools are held against, was just read as a whole and
/// is in the cache.
pub fn count_row(port: &mut Port, scanned: &ScannedRow, layout: &RowLayout, hashed: bool) {
    let (_, key_bytes, _) = row::meta(port.device().as_ref(), scanned.row);
    let (key, bytes) = row::key_read(scanned.row, key_bytes);
    port.count_load(scanned.row, key + bytes - scanned.row);
    if !hashed {
        return;
    }
    let pointer = scanned.pointer();
    let value = layout.value_offset(scanned.row, scanned.slot, pointer);
    let end = value + pointer.value_bytes();
    // An inline value may begin in the line in which a long key ends.
    let is_inline = pointer.external_offset().is_none();
    let head_end = if is_inline { (key + bytes).next_multiple_of(LINE_BYTES) } else { 0 };
    port.count_load(value.max(head_end), end.saturating_sub(value.max(head_end)));
}

/// Visits the rows of one unit.
///
/// # Errors
/// `Corrupt` if a row's key or pointer is damaged, with its offset and table; the device's; the
/// visitor's own.
pub fn visit(
    device: &AnyDevice,
    segments: &Segments,
    unit: ScanUnit,
    layout: &RowLayout,
    plan: &ScanPlan,
    checkpoint_epoch: EpochNumber,
    mut each: impl FnMut(ScannedRow) -> Result<()>,
) -> Result<()> {
    let free = &plan.free;
    let first = segments.offset(unit.segment);
    assert!(unit.table == layout.table, "rows are visited with the layout of their table");
    let bytes = unit.slots * layout.row_bytes;
    assert!(bytes <= segments.segment_bytes(), "rows of {bytes} bytes are more than a segment");
    assert!(u64::from(unit.segment) < segments.used(), "segment {} is in use", unit.segment);
    debug_assert!(free.is_sorted(), "free slots of a plan are sorted");
    device.read_pages(first, bytes)?;
    let mut next_free = free.partition_point(|&f| f < first);
    for slot in 0..unit.slots {
        let at = first + slot * layout.row_bytes;
        if free.get(next_free) == Some(&at) {
            next_free += 1;
            continue;
        }
        let versions = row::versions(device, at);
        let Some(newest) = row::checkpoint_slot(&versions, checkpoint_epoch) else {
            // Below the bump offset and not free, yet without a version: no checkpoint leaves that.
            return Err(StorageError::Corrupt(format!(
                "row at offset {at} of table {} has no version up to epoch {checkpoint_epoch}",
                unit.table
            )));
        };
        let scanned = ScannedRow { row: at, slot: newest, versions };
        check_row(device, segments, &scanned, layout, plan, checkpoint_epoch)?;
        each(scanned)?;
    }
    Ok(())
}

fn check_row(
    device: &AnyDevice,
    segments: &Segments,
    scanned: &ScannedRow,
    layout: &RowLayout,
    plan: &ScanPlan,
    checkpoint_epoch: EpochNumber,
) -> Result<()> {
    let corrupt = |what: String| {
        Err(StorageError::Corrupt(format!(
            "row at offset {} of table {}: {what}",
            scanned.row, layout.table
        )))
    };
    let (table, key_bytes, crc) = row::meta(device, scanned.row);
    if table != layout.table || key_bytes > layout.key_bytes_max {
        return corrupt(format!("it claims table {table} and a key of {key_bytes} bytes"));
    }
    // SAFETY: the row is allocated and nothing stores during a scan.
    let key = unsafe { row::key(device, scanned.row) };
    if row::key_crc(table, key) != crc {
        return corrupt("its key fails its checksum".into());
    }
    let live = scanned.pointer();
    if live.is_null() || !leads_to_a_value(device, segments, plan, live, layout) {
        return corrupt(format!("its value pointer {:#x} leads nowhere", live.0));
    }
    let stale = scanned.versions[1 - scanned.slot];
    let sid = SerialId(stale.serial_id);
    if stale.serial_id == scanned.versions[scanned.slot].serial_id {
        return corrupt(format!("both versions have the serial id {:#x}", sid.0));
    }
    if sid.epoch() > plan.last_epoch {
        let (epoch, last) = (sid.epoch(), plan.last_epoch);
        return corrupt(format!("it has a version of epoch {epoch}, but {last} is the last one"));
    }
    // The major collector frees what a stale pointer names: it must be one, too.
    let counts = sid.0 != 0 && sid.epoch() <= checkpoint_epoch;
    if counts && !leads_to_a_value(device, segments, plan, ValuePointer(stale.pointer), layout) {
        return corrupt(format!("its stale value pointer {:#x} leads nowhere", stale.pointer));
    }
    // What a crash left behind may be longer than what was there: only versions that count were
    // written beside each other.
    let pointers = scanned.versions.map(|version| ValuePointer(version.pointer));
    if counts && layout.overlap(pointers) {
        let [first, second] = pointers.map(ValuePointer::value_bytes);
        return corrupt(format!(
            "its versions of {first} and {second} bytes overlap in the shared heap of {} bytes",
            layout.shared_heap_bytes
        ));
    }
    Ok(())
}

/// Whether a pointer is null, names an inline value, or a slot of the pool of its class that was
/// allocated.
pub(crate) fn leads_to_a_value(
    device: &AnyDevice,
    segments: &Segments,
    plan: &ScanPlan,
    pointer: ValuePointer,
    layout: &RowLayout,
) -> bool {
    let bytes = pointer.value_bytes();
    if pointer.is_null() || !pointer.is_valid() {
        return pointer.is_null();
    }
    let Some(offset) = pointer.external_offset() else {
        return layout.fits_alone(bytes);
    };
    if bytes > layout.value_bytes_max {
        return false;
    }
    let class = class_of(bytes);
    segments.segment_of(offset).is_some_and(|segment| {
        let entry = segments.use_of(device, segment);
        let right_pool =
            entry.is_some_and(|e| e.kind == SegmentKind::Slots && e.pool == class_pool(class));
        let (within, slot_bytes) = (offset - segments.offset(segment), CLASS_BYTES_MIN << class);
        let handed_out = within / slot_bytes < plan.value_slots[segment as usize];
        right_pool && within.is_multiple_of(slot_bytes) && handed_out
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pmem::Dram;

    use super::*;
    use crate::catalog::{IndexKind, TableDefinition};
    use crate::format::SUB_POOLS;
    use crate::ids::Position;
    use crate::store::StoreOptions;
    use crate::store::tests::add_tables;

    /// What a scan says of a store with one row in table 0, written as one of `table`, with keys
    /// of up to 16 bytes or more, and of which the pointer may be changed afterwards. A slot of
    /// each of the first two classes of values was taken, which the pointer may follow from.
    fn scan(
        table: TableId,
        key: &[u8],
        pointer: impl FnOnce([u64; 2]) -> Option<u64>,
    ) -> Result<usize> {
        let change = |port: &mut Port, at: u64, values: [u64; 2]| {
            // SAFETY: the test owns the store.
            let store = |pointer| unsafe { port.store_u64(at + 8, pointer) };
            pointer(values).into_iter().for_each(store);
        };
        scan_changed(table, 0, key, change)
    }

    /// As [`scan`], of tables with a shared heap or without, after any change of the row.
    fn scan_changed(
        table: TableId,
        shared_heap_bytes: u32,
        key: &[u8],
        change: impl FnOnce(&mut Port, u64, [u64; 2]),
    ) -> Result<usize> {
        let device = AnyDevice::new(Dram::new(64 << 20, 4 << 20).unwrap());
        let options = StoreOptions { segment_bytes: 4096, ..StoreOptions::default() };
        let opened = Store::open(Arc::clone(&device), &options)?;
        let mut store = opened.store;
        let wanted = ["a", "b"].map(|name| TableDefinition {
            name: name.into(),
            index: IndexKind::Hash,
            key_bytes_max: 16,
            value_bytes_max: 8,
            row_bytes: 256,
            shared_heap_bytes,
        });
        let mut sub_pools = add_tables(&mut store, &wanted)?;
        let row_sub_pools = sub_pools.len();
        sub_pools.extend(opened.sub_pools);
        let longer = TableDefinition { key_bytes_max: 32, ..wanted[0].clone() };
        let layout = RowLayout::new(table, &longer.to_record(4096)?);
        let mut port = Port::new(device, 0);
        store.segments().reserve(store.device().as_ref(), 3)?;
        let mut bump = |sub_pool: usize| sub_pools[sub_pool].bump(&mut port, store.segments());
        let at = bump(0)?;
        let values = [bump(row_sub_pools)?, bump(row_sub_pools + SUB_POOLS)?];
        let content = row::Content::Bytes(&[5; 8], None);
        let first = row::First::KeyIsThere;
        let version = row::NewVersion {
            slot: 0,
            sid: SerialId::new(EpochNumber(1), Position(0)),
            content,
            first,
        };
        // SAFETY: this test owns the store.
        unsafe {
            row::initialise(&mut port, at, &layout, key);
            row::write_version(&mut port, at, &layout, &version);
        }
        change(&mut port, at, values);
        sub_pools[0].save(&mut port, store.next_sequence());
        store.commit(&mut port, EpochNumber(1), None, 1, 0);
        let plan = plan(&store, &sub_pools, &opened.log);
        // As if the log had an epoch after the checkpoint.
        let plan = ScanPlan { last_epoch: EpochNumber(2), ..plan };
        let mut rows = 0;
        for unit in &plan.units {
            let layout = &store.tables()[unit.table.index()].layout;
            let count = |_| {
                rows += 1;
                Ok(())
            };
            visit(
                store.device().as_ref(),
                store.segments(),
                *unit,
                layout,
                &plan,
                EpochNumber(1),
                count,
            )?;
        }
        Ok(rows)
    }

    /// O-54: a row that is whole by its own checksum, but not of the table in whose pool it is.
    #[test]
    fn o_54_rows_belong_to_their_table() {
        assert_eq!(scan(TableId(0), b"a key", |_| None).unwrap(), 1);
        let other = scan(TableId(1), b"a key", |_| None).unwrap_err();
        assert!(other.to_string().contains("claims table 1"), "{other}");
        let long = scan(TableId(0), &[7; 17], |_| None).unwrap_err().to_string();
        assert!(long.contains("table 0 and a key of 17 bytes"), "{long}");
    }

    /// O-54: the checkpoint's version of a row has a value, and it lies where values are.
    #[test]
    fn o_54_pointers_lead_to_values() {
        let value = |at| ValuePointer::external(at, 8).0;
        assert_eq!(scan(TableId(0), b"a key", |[first, _]| Some(value(first))).unwrap(), 1);
        let check = |what: &str, pointer: fn([u64; 2]) -> u64| {
            let error = scan(TableId(0), b"a key", |slots| Some(pointer(slots))).expect_err(what);
            let text = error.to_string();
            assert!(text.contains("its value pointer") && text.contains("nowhere"), "{text}");
        };
        check("none", |_| 0);
        check("of no kind", |_| 3 | 8 << 2);
        check("too long to be inline", |_| ValuePointer::inline(4000).0);
        check("outside all segments", |_| ValuePointer::external(1 << 20, 8).0);
        check("of another class", |[_, second]| ValuePointer::external(second, 8).0);
        check("in the midst of a slot", |[first, _]| ValuePointer::external(first + 16, 8).0);
        check("not allocated", |[first, _]| ValuePointer::external(first + CLASS_BYTES_MIN, 8).0);
    }
    /// O-32, O-54: two versions that count lie beside each other. A version after the checkpoint
    /// may be torn, or be longer than there is room for beside it, and is not judged.
    #[test]
    fn o_32_versions_that_count_do_not_overlap() {
        let check = |heap: u32, lens: [u64; 2], epoch: EpochNumber| {
            let [first, second] = lens.map(|len| ValuePointer::inline(len).0);
            scan_changed(TableId(0), heap, b"a key", |port, at, _| {
                // SAFETY: the test owns the store.
                unsafe {
                    port.store_u64(at + 8, first);
                    port.store_two(at + 16, [SerialId::new(epoch, Position(1)).0, second]);
                }
            })
        };
        for (lens, is_beside) in [
            ([8, 8], true),
            ([80, 80], true),
            ([88, 80], true),
            ([89, 80], false),
            ([160, 8], true),
            ([161, 8], false),
            ([168, 0], true),
            ([168, 8], false),
        ] {
            let found = check(168, lens, EpochNumber(1));
            assert_eq!(found.is_ok(), is_beside, "{lens:?}");
            let overlaps =
                |error: StorageError| error.to_string().contains("overlap in the shared");
            assert!(found.err().is_none_or(overlaps));
            assert!(check(168, lens, EpochNumber(2)).is_ok(), "{lens:?}");
        }
        assert!(check(0, [64, 64], EpochNumber(1)).is_ok());
        assert!(check(168, [169, 0], EpochNumber(1)).unwrap_err().to_string().contains("nowhere"));
    }
}
