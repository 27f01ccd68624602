//! Reading structs of the format.

use pmem::{AnyDevice, Device};
use zerocopy::FromBytes;

/// The struct at an offset of the image, a multiple of 8.
pub(crate) fn read_struct<T: FromBytes>(device: &AnyDevice, offset: u64) -> T {
    let mut bytes = vec![0u8; size_of::<T>()];
    for (i, chunk) in bytes.chunks_mut(8).enumerate() {
        chunk.copy_from_slice(&device.image().load_u64(offset + i as u64 * 8).to_le_bytes());
    }
    T::read_from_bytes(&bytes).expect("sizes match")
}
