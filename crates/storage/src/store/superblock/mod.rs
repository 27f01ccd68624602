//! The superblock: that this is a store, and its geometry. Written twice, at creation; either copy
//! opens the store (O-53).

use pmem::{AnyDevice, Device, Port};
use zerocopy::IntoBytes;

use crate::error::{Result, StorageError};
use crate::format::{
    FEATURES_KNOWN, FORMAT_VERSION, SUPERBLOCK_MAGIC, SUPERBLOCK_STRIDE, SUPERBLOCKS_OFFSET,
    Superblock, read_struct,
};

fn superblock_crc(superblock: &Superblock) -> u32 {
    crc32fast::hash(Superblock { crc: 0, ..*superblock }.as_bytes())
}

/// Writes both superblocks, the second once the first is durable: a crash tears at most one of
/// them.
pub(crate) fn write_superblocks(port: &mut Port, mut superblock: Superblock) {
    superblock.crc = superblock_crc(&superblock);
    for copy in 0..2 {
        let at = SUPERBLOCKS_OFFSET + copy * SUPERBLOCK_STRIDE;
        // SAFETY: at creation, and where one thread ends an epoch, no other uses the superblocks.
        unsafe { port.store_bytes(at, superblock.as_bytes()) };
        port.flush(at, size_of::<Superblock>() as u64);
        port.fence();
    }
}

/// Reads the superblock: `None` if the device is empty.
///
/// # Errors
/// `Foreign` for other bytes or another version, `Corrupt` if both copies are damaged.
pub(crate) fn read_superblock(device: &AnyDevice) -> Result<Option<Superblock>> {
    if device.image_bytes() < SUPERBLOCKS_OFFSET + 2 * SUPERBLOCK_STRIDE {
        return Ok(None);
    }
    let copies: [Superblock; 2] =
        [0, 1].map(|copy| read_struct(device, SUPERBLOCKS_OFFSET + copy * SUPERBLOCK_STRIDE));
    let unused = |s: &Superblock| s.as_bytes().iter().all(|&b| b == 0);
    if copies.iter().all(unused) {
        return Ok(None);
    }
    if let Some(good) = good_copy(&copies)? {
        return Ok(Some(good));
    }
    let never_checkpointed = crate::store::checkpoint::read(device).map_or(true, |c| c.epoch == 0);
    if unused(&copies[1]) && never_checkpointed && is_torn(&copies[0]) {
        // A crash while the store was created: there is nothing in it.
        return Ok(None);
    }
    if copies.iter().any(|s| s.magic == SUPERBLOCK_MAGIC) {
        return Err(StorageError::Corrupt("both superblocks fail their checksum".into()));
    }
    Err(StorageError::Foreign(format!("it begins with the bytes {:02x?}", copies[0].magic)))
}

/// The copy that is whole, if one is.
///
/// # Errors
/// `Foreign` for one of another version, or with features that are not known.
pub(crate) fn good_copy(copies: &[Superblock; 2]) -> Result<Option<Superblock>> {
    let is_whole = |s: &&Superblock| s.magic == SUPERBLOCK_MAGIC && s.crc == superblock_crc(s);
    let Some(good) = copies.iter().find(is_whole) else { return Ok(None) };
    if good.version != FORMAT_VERSION {
        return Err(StorageError::Foreign(other_version(good.version)));
    }
    let unknown = good.features_required & !FEATURES_KNOWN;
    if unknown != 0 {
        let what = format!("it needs features {unknown:#x} that this program does not know");
        return Err(StorageError::Foreign(what));
    }
    Ok(Some(*good))
}

/// What a store of another format meets (docs/format.md, "What is promised").
fn other_version(version: u32) -> String {
    let release = env!("CARGO_PKG_VERSION");
    let of = if version > FORMAT_VERSION { "a later release" } else { "the release that wrote it" };
    format!(
        "it has format version {version}, this program is of release {release} and reads version \
         {FORMAT_VERSION}: open it with {of}"
    )
}

/// Whether the words of a superblock are ours, as far as they reached the device.
fn is_torn(superblock: &Superblock) -> bool {
    superblock.magic == SUPERBLOCK_MAGIC || superblock.magic == [0; 8]
}

/// Counts and charges reading both superblocks.
pub(crate) fn count_reads(port: &mut Port) {
    for copy in 0..2 {
        let at = SUPERBLOCKS_OFFSET + copy * SUPERBLOCK_STRIDE;
        port.count_load(at, size_of::<Superblock>() as u64);
    }
}

#[cfg(test)]
pub(crate) mod tests;
