//! The two copies of the catalog on the device.

use pmem::{AnyDevice, Port};
use zerocopy::IntoBytes;

use crate::catalog::definition::{UNUSED, definition, with_single_heap};
use crate::error::{Result, StorageError};
use crate::format::{
    CATALOG_STRIDE, CATALOGS_OFFSET, CatalogHeader, HEAP_IN_HALVES, HEAP_IN_HEADER,
    ROW_HEADER_BYTES, TABLES_MAX, TableRecord, read_struct,
};
use crate::row::RowLayout;

pub(super) fn copy_offset(generation: u64) -> u64 {
    CATALOGS_OFFSET + generation % 2 * CATALOG_STRIDE
}

pub(super) fn record_offset(generation: u64, place: usize) -> u64 {
    let records = copy_offset(generation) + size_of::<CatalogHeader>() as u64;
    records + (place * size_of::<TableRecord>()) as u64
}

fn crc(header: &CatalogHeader, records: &[TableRecord]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(CatalogHeader { crc: 0, ..*header }.as_bytes());
    hasher.update(records.as_bytes());
    hasher.finalize()
}

/// Reads the catalog of a generation.
///
/// # Errors
/// `Corrupt` if it is not whole, or has a record that describes no table.
pub(crate) fn read(
    device: &AnyDevice,
    generation: u64,
    segment_bytes: u64,
) -> Result<Vec<TableRecord>> {
    let corrupt = |what: String| Err(StorageError::Corrupt(what));
    let header: CatalogHeader = read_struct(device, copy_offset(generation));
    if header.generation != generation || header.places as usize > TABLES_MAX {
        return corrupt(format!(
            "the checkpoint names catalog {generation}, in its place is catalog {} with {} tables",
            header.generation, header.places
        ));
    }
    let record = |place| read_struct(device, record_offset(generation, place));
    let records: Vec<TableRecord> = (0..header.places as usize).map(record).collect();
    if crc(&header, &records) != header.crc {
        return corrupt(format!("catalog {generation} does not have its checksum"));
    }
    for (place, record) in records.iter().enumerate().filter(|(_, record)| **record != UNUSED) {
        // Sizes are divided by, and added to offsets: they must be those of a table.
        let others = TableRecord { types: 0, type_versions: 0, inline_heap: 0, ..*record };
        let is_same = |made: TableRecord| {
            let is_single = record.row_bytes_of_two().is_some();
            let made = if is_single { with_single_heap(made) } else { made };
            TableRecord { inline_heap: 0, ..made } == others
        };
        let sizes_can_be = definition(record).to_record(segment_bytes).is_ok_and(is_same);
        if !sizes_can_be || !has_possible_heap(record) {
            return corrupt(format!("catalog record {place} describes no table that can be"));
        }
    }
    Ok(records)
}

/// Whether the rows of a table can have the inline heap that its record says.
fn has_possible_heap(record: &TableRecord) -> bool {
    match record.inline_heap {
        HEAP_IN_HALVES => true,
        HEAP_IN_HEADER => {
            u64::from(record.row_bytes) == ROW_HEADER_BYTES
                && RowLayout::can_be_one_line(record.key_bytes_max, 0)
        }
        // How many bytes there can be was checked with the other sizes.
        _ => record.shared_heap_bytes() > 0 || record.row_bytes_of_two().is_some(),
    }
}

/// Writes the catalog of a generation, over the one of two generations before. Durable after the
/// caller's fence.
pub(crate) fn write(port: &mut Port, generation: u64, records: &[TableRecord]) {
    assert!(records.len() <= TABLES_MAX, "a catalog has no room for {} tables", records.len());
    let mut header =
        CatalogHeader { generation, places: records.len() as u32, crc: 0, reserved: [0; 6] };
    header.crc = crc(&header, records);
    let at = copy_offset(generation);
    // SAFETY: catalogs are written when a store is opened, by the one thread that does.
    unsafe {
        port.store_bytes(at, header.as_bytes());
        port.store_bytes(record_offset(generation, 0), records.as_bytes());
    }
    port.flush(at, record_offset(generation, records.len()) - at);
}

/// Counts and charges reading the catalog.
pub(crate) fn count_reads(port: &mut Port, generation: u64, places: usize) {
    let at = copy_offset(generation);
    port.count_load(at, record_offset(generation, places) - at);
}
