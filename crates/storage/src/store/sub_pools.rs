//! Loading all sub-pools of a store.

use pmem::{AnyDevice, Device, Port};

use crate::catalog;
use crate::error::{Result, StorageError};
use crate::format::{CLASS_BYTES_MAX, CLASSES, POOLS, SUB_POOLS};
use crate::pool::{SegmentKind, SegmentUses, Segments, SubPool, class_bytes, class_pool};
use crate::store::table::StoredTable;
use crate::store::{checkpoint, superblock};

/// The sub-pools of the pools of these tables, in order, without the segments that they have.
pub(super) fn load_row_sub_pools(
    device: &AnyDevice,
    segments: &Segments,
    tables: &[StoredTable],
    sequence: u64,
) -> Result<Vec<SubPool>> {
    let mut sub_pools = Vec::with_capacity((tables.len() + CLASSES) * SUB_POOLS);
    for table in tables {
        let (pool, bytes) = (table.layout.table, table.layout.row_bytes);
        for sub_pool in 0..SUB_POOLS {
            sub_pools.push(SubPool::load(
                device,
                segments,
                pool.0,
                sub_pool as u8,
                bytes,
                sequence,
            )?);
        }
    }
    Ok(sub_pools)
}

/// Counts and charges what opening a store read of its image: as one step, so each line once.
pub(super) fn count_opening(
    port: &mut Port,
    segments: &Segments,
    generation: u64,
    tables: usize,
    sub_pools: &[SubPool],
) {
    superblock::count_reads(port);
    catalog::count_reads(port, generation, tables);
    checkpoint::count_reads(port);
    segments.count_reads(port);
    for sub_pool in sub_pools {
        sub_pool.count_state(port);
        sub_pool.count_free_list(port, segments);
    }
    port.pay_owed_time();
}

/// All sub-pools of the pools of these tables and of all value classes that fit a segment; and the
/// segments of indexes.
pub(super) fn load_sub_pools(
    device: &AnyDevice,
    segments: &Segments,
    tables: &[StoredTable],
    sequence: u64,
) -> Result<(Vec<SubPool>, SegmentUses)> {
    let mut sub_pools = load_row_sub_pools(device, segments, tables, sequence)?;
    let mut first_of_pool = vec![None; POOLS];
    for (number, table) in tables.iter().enumerate() {
        first_of_pool[table.layout.table.index()] = Some(number * SUB_POOLS);
    }
    let values = (0..CLASSES)
        .map(|class| (class_pool(class), class_bytes(class)))
        .filter(|&(_, bytes)| bytes <= segments.segment_bytes().min(CLASS_BYTES_MAX));
    for (pool, slot_bytes) in values {
        first_of_pool[pool as usize] = Some(sub_pools.len());
        for sub_pool in 0..SUB_POOLS {
            sub_pools.push(SubPool::load(
                device,
                segments,
                pool,
                sub_pool as u8,
                slot_bytes,
                sequence,
            )?);
        }
    }
    let uses = segments.load(device)?;
    let (of_indexes, of_pools): (SegmentUses, SegmentUses) =
        uses.into_iter().partition(|(_, entry)| entry.kind.is_of_indexes());
    for (segment, entry) in of_pools {
        if entry.kind == SegmentKind::FreeList {
            device.read_pages(segments.offset(segment), segments.segment_bytes())?;
        }
        let first: usize = first_of_pool[entry.pool as usize].ok_or_else(|| {
            StorageError::Corrupt(format!(
                "segment {segment} belongs to unknown pool {}",
                entry.pool
            ))
        })?;
        sub_pools[first + entry.sub_pool as usize].attach(segment, entry, segments)?;
    }
    for sub_pool in &sub_pools {
        sub_pool.validate()?;
        sub_pool.validate_free_list(device, segments)?;
    }
    Ok((sub_pools, of_indexes))
}
