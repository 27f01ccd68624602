//! The rows of a table for tools that only look: as of the checkpoint, in the order of their keys.

use pmem::Device;

use crate::error::Result;
use crate::ids::TableId;
use crate::store::Opened;
use crate::{row, scan};

/// Where a row is, and its key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowAt {
    /// Its key.
    pub key: Vec<u8>,
    value: u64,
    value_bytes: u64,
}

/// The rows of one table that the checkpoint of a store holds, in the order of their keys. The
/// store was just opened and not used yet.
///
/// # Errors
/// `Corrupt` for a row that is damaged.
pub fn rows_of(opened: &Opened, table: TableId) -> Result<Vec<RowAt>> {
    let (store, device) = (&opened.store, opened.store.device().as_ref());
    assert!(table.index() < store.tables().len(), "there is no table {table}");
    let (epoch, layout) = (store.checkpoint_epoch(), store.tables()[table.index()].layout);
    let plan = scan::plan(store, &opened.sub_pools, &opened.log);
    let mut rows = Vec::new();
    for unit in plan.units.iter().filter(|unit| unit.table == table) {
        scan::visit(device, store.segments(), *unit, &layout, &plan, epoch, |scanned| {
            let pointer = scanned.pointer();
            // SAFETY: the scan has checked that the row is allocated and its key is whole, and
            // nothing stores while the store is only looked at.
            let key = unsafe { row::key(device, scanned.row) }.to_vec();
            let value = layout.value_offset(scanned.row, scanned.slot, pointer);
            rows.push(RowAt { key, value, value_bytes: pointer.value_bytes() });
            Ok(())
        })?;
    }
    rows.sort_unstable();
    Ok(rows)
}

/// The value of a row that [`rows_of`] found in the same store.
pub fn value_of<'o>(opened: &'o Opened, row: &RowAt) -> &'o [u8] {
    let image = opened.store.device().image();
    // SAFETY: the scan has checked the pointer that these numbers are from, and nothing stores
    // while the store is only looked at.
    unsafe { image.slice(row.value, row.value_bytes) }
}
