//! Laying out an empty store.

use std::sync::Arc;

use pmem::{Device, Port};

use crate::catalog;
use crate::digest::StateHash;
use crate::error::{Result, StorageError};
use crate::format::{CheckpointRecord, FORMAT_VERSION, SUPERBLOCK_MAGIC, Superblock};
use crate::ids::EpochNumber;
use crate::input_log::InputLog;
use crate::pool::Segments;
use crate::store::options::StoreOptions;
use crate::store::verify::SEGMENTS_MAX;
use crate::store::{checkpoint, superblock};

fn power_of_two_in(what: &str, value: u64, low: u64, high: u64) -> Result<()> {
    if value.is_power_of_two() && (low..=high).contains(&value) {
        return Ok(());
    }
    Err(StorageError::Limit(format!(
        "{what} is {value}, must be a power of two from {low} to {high}"
    )))
}

/// Lays out an empty store. The superblocks come last: an open that sees one finds a checkpoint
/// (epoch 0, empty) and a program in the log (none that is known yet), and without one the next
/// open starts over.
pub(super) fn create(port: &mut Port, options: &StoreOptions) -> Result<Superblock> {
    power_of_two_in("segment_bytes", options.segment_bytes, 4096, 64 << 20)?;
    power_of_two_in("log_segment_bytes", options.log_segment_bytes, 4096, 16 << 20)?;
    port.device().accept()?;
    let reserved = port.device().image().len();
    let superblock = Superblock {
        magic: SUPERBLOCK_MAGIC,
        version: FORMAT_VERSION,
        crc: 0,
        features_required: 0,
        features_optional: 0,
        instance: port.device().instance().unwrap_or(options.instance),
        segment_bytes: options.segment_bytes,
        segments_max: (reserved / options.segment_bytes).clamp(1, SEGMENTS_MAX),
        log_segment_bytes: options.log_segment_bytes,
    };
    let segments = Segments::new(superblock.segment_bytes, superblock.segments_max);
    port.device().grow_image(segments.image_bytes(0))?;
    let (has, needs) = (port.device().image_bytes(), segments.image_bytes(0));
    assert!(has >= needs, "a device that has grown to {needs} bytes has {has}");
    let empty = CheckpointRecord::new(0, EpochNumber(0), Some(StateHash::default()), 0, 0);
    checkpoint::write(port, empty);
    catalog::write(port, u64::from(empty.catalog), &[]);
    port.fence();
    let device = Arc::clone(port.device());
    let (log, _) =
        InputLog::open(device, superblock.instance, superblock.log_segment_bytes, EpochNumber(0))?;
    log.write_program(port, &[])?;
    superblock::write_superblocks(port, superblock);
    let is_found = superblock::read_superblock(port.device().as_ref())?.is_some();
    assert!(is_found, "a store that was created can be opened (O-53)");
    Ok(superblock)
}
