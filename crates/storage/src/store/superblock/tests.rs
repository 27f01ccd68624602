//! What counts as a store.

use crate::ids::EpochNumber;

use pmem::{AnyDevice, Dram};

use super::*;

/// The superblock of a small store, without its checksum.
pub(crate) fn small_superblock() -> Superblock {
    Superblock {
        magic: SUPERBLOCK_MAGIC,
        version: FORMAT_VERSION,
        crc: 0,
        features_required: FEATURES_KNOWN,
        features_optional: 0,
        instance: 77,
        segment_bytes: 4096,
        segments_max: 8,
        log_segment_bytes: 4096,
    }
}

/// A superblock of a device that has room for both copies and nothing else, and what is read.
fn read_copies(copies: [&[u8]; 2], checkpointed: bool) -> Result<Option<Superblock>> {
    let device = AnyDevice::new(Dram::new(1 << 20, 4096).unwrap());
    let bytes = SUPERBLOCKS_OFFSET + 2 * SUPERBLOCK_STRIDE;
    device.grow_image(if checkpointed { 1 << 20 } else { bytes }).unwrap();
    let mut port = Port::new(AnyDevice::of(&device), 0);
    for (copy, bytes) in (0..).zip(copies) {
        // SAFETY: this test owns the device.
        unsafe { port.store_bytes(SUPERBLOCKS_OFFSET + copy * SUPERBLOCK_STRIDE, bytes) };
    }
    if checkpointed {
        let record = crate::format::CheckpointRecord::new(1, EpochNumber(1), None, 0, 0);
        crate::store::checkpoint::write(&mut port, record);
    }
    read_superblock(device.as_ref())
}

/// O-53: one intact copy opens the store. Without one the device is empty only if a creation
/// that was torn explains what is there; everything else is somebody's data.
#[test]
fn o_53_only_a_torn_creation_counts_as_empty() {
    let mut superblock = small_superblock();
    superblock.crc = superblock_crc(&superblock);
    let whole = superblock.as_bytes();
    let zeros = vec![0; whole.len()];
    let torn = [&whole[..16], &zeros[16..]].concat();
    let without_magic = [&zeros[..8], &whole[8..]].concat();
    let other = [b"SQLite f", &whole[8..]].concat();
    for copies in [[whole, &zeros], [&zeros, whole], [whole, whole], [&other, whole]] {
        assert_eq!(read_copies(copies, false).unwrap(), Some(superblock));
    }
    for copies in [[&zeros, &zeros], [&torn, &zeros], [&without_magic, &zeros]] {
        assert_eq!(read_copies(copies.map(Vec::as_slice), false).unwrap(), None);
    }
    for (copies, checkpointed, foreign) in [
        ([&torn, &zeros], true, false),
        ([&torn, &torn], false, false),
        ([&zeros, &torn], false, false),
        ([&other, &zeros], false, true),
        ([&without_magic, &other], false, true),
    ] {
        let error = read_copies(copies.map(Vec::as_slice), checkpointed).unwrap_err();
        assert_eq!(matches!(error, StorageError::Foreign(_)), foreign, "{error}");
        assert_eq!(error.is_corrupt(), !foreign, "{error}");
    }
    for changed in [
        Superblock { version: FORMAT_VERSION - 1, ..superblock },
        Superblock { version: FORMAT_VERSION + 1, ..superblock },
        Superblock { features_required: FEATURES_KNOWN | 1 << 63, ..superblock },
    ] {
        let changed = Superblock { crc: superblock_crc(&changed), ..changed };
        let error = read_copies([changed.as_bytes(), &zeros], false).unwrap_err();
        assert!(matches!(error, StorageError::Foreign(_)), "{error}");
    }
    let later = super::other_version(FORMAT_VERSION + 1);
    assert!(later.ends_with("reads version 9: open it with a later release"), "{later}");
    let before = super::other_version(FORMAT_VERSION - 1);
    assert!(before.ends_with("open it with the release that wrote it"), "{before}");
}

/// O-53: both copies are written, each where it is looked for.
#[test]
fn o_53_either_copy_opens_a_new_store() {
    for lost in 0..2 {
        let device = AnyDevice::new(Dram::new(1 << 20, 4096).unwrap());
        device.grow_image(1 << 20).unwrap();
        let mut port = Port::new(AnyDevice::of(&device), 0);
        write_superblocks(&mut port, small_superblock());
        let zeros = vec![0; SUPERBLOCK_STRIDE as usize];
        // SAFETY: this test owns the device.
        unsafe { port.store_bytes(SUPERBLOCKS_OFFSET + lost * SUPERBLOCK_STRIDE, &zeros) };
        let found = read_superblock(device.as_ref()).unwrap().expect("the other copy is whole");
        assert_eq!(found.instance, 77, "without copy {lost}");
    }
}
