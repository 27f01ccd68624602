//! Words of the image: the one place of this crate that touches mapped memory.
//!
//! The rule that makes it sound: this crate accesses an image by whole aligned words only, and only
//! through this module, which loads and stores each of them as an atomic. So no access is a data
//! race, if a thread reads a slot while another one reuses it: a reader may get a mixture of old
//! and new words, which the versions of rows tell it to throw away. The same holds for [`Words`],
//! which are in DRAM. Nothing here knows what a word means.

#![expect(unsafe_code, reason = "a device's image is stored to through unsafe methods of its port")]

use std::sync::atomic::{AtomicU64, Ordering, fence};

use pmem::{Device, LINE_BYTES, Mapping, Port};

use crate::error::Result;

/// Bytes of a word.
pub(crate) const WORD_BYTES: u64 = 8;

/// Zero words in DRAM that never move, on large pages where the system has them. Memory is used
/// when a page is first touched.
pub(crate) struct Words(Mapping);

impl Words {
    /// Reserves address space for `most` bytes, or for less where the system does not allow it.
    pub(crate) fn reserve(most: u64, least: u64) -> Result<Self> {
        Ok(Self(Mapping::reserve_up_to(most, least)?))
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.0.len()
    }

    /// Consecutive words.
    ///
    /// # Panics
    /// If they are beyond the end.
    #[inline]
    pub(crate) fn get(&self, at: usize, count: usize) -> &[AtomicU64] {
        let words = (self.0.len() / WORD_BYTES) as usize;
        assert!(count <= words && at <= words - count, "words beyond the end");
        let first = self.0.base().cast::<AtomicU64>().wrapping_add(at);
        // SAFETY: mapped for as long as `self` lives, as was checked above, and aligned, because
        // the initial version is that of a page; initialised (zero at first). No other thread has
        // the mapping, and this is the only way to its words.
        unsafe { std::slice::from_raw_parts(first, count) }
    }
}

/// Asks for words that will be read soon, all lines at once.
#[inline]
pub(crate) fn prefetch_words(words: &[AtomicU64]) {
    for line in words.chunks((LINE_BYTES / WORD_BYTES) as usize) {
        pmem::prefetch(line.as_ptr().addr());
    }
}

/// Asks for a part of the image that will be stored to soon.
#[inline]
pub(crate) fn prefetch_slot<D: Device>(port: &Port<D>, offset: u64, bytes: u64) {
    let base = port.device().image().base().addr();
    for at in (0..bytes).step_by(LINE_BYTES as usize) {
        pmem::prefetch_to_write(base.wrapping_add((offset + at) as usize));
    }
}

/// Stores consecutive words, in increasing order.
///
/// # Panics
/// If the words are not aligned or not inside the usable image.
pub(crate) fn store_words<D: Device>(port: &mut Port<D>, offset: u64, words: &[u64]) {
    let end = offset + words.len() as u64 * WORD_BYTES;
    assert!(offset.is_multiple_of(WORD_BYTES), "word not aligned");
    assert!(end <= port.device().image_bytes(), "words outside of the image");
    // A reader that sees one of these words also sees that the slot was given up before.
    fence(Ordering::Release);
    for (word, at) in words.iter().zip((offset..).step_by(WORD_BYTES as usize)) {
        // SAFETY: mapped, because it is inside the usable image, and aligned; all sides access
        // every word of the image as an atomic (the rule of this module).
        unsafe { port.store_u64(at, *word) };
    }
}

/// Stores consecutive words past the cache; durable after the port's next fence. Only where nothing
/// reads meanwhile: in the log of one worker.
///
/// # Panics
/// If the words are not aligned or not inside the usable image.
pub(crate) fn store_words_past<D: Device>(port: &mut Port<D>, offset: u64, words: &[u64]) {
    let end = offset + words.len() as u64 * WORD_BYTES;
    assert!(offset.is_multiple_of(WORD_BYTES), "word not aligned");
    assert!(end <= port.device().image_bytes(), "words outside of the image");
    // SAFETY: mapped, because it is inside the usable image; owned by the worker in this phase:
    // a log is read when a store is opened, and then nothing is written.
    unsafe { port.store_nt(offset, zerocopy::IntoBytes::as_bytes(words)) };
}

/// Appends `count` consecutive words to `into`, and counts the read where the device charges it.
///
/// # Panics
/// If the words are not aligned or not inside the mapping.
pub(crate) fn load_words<D: Device>(
    port: &mut Port<D>,
    offset: u64,
    count: usize,
    into: &mut Vec<u64>,
) {
    count_load(port, offset, count as u64 * WORD_BYTES);
    load_counted_words(port, offset, count, into);
}

/// As [`load_words`], of words whose read was counted before.
pub(crate) fn load_counted_words<D: Device>(
    port: &Port<D>,
    offset: u64,
    count: usize,
    into: &mut Vec<u64>,
) {
    let image = port.device().image();
    let bytes = count as u64 * WORD_BYTES;
    assert!(offset.is_multiple_of(WORD_BYTES), "word not aligned");
    assert!(offset <= image.len() && bytes <= image.len() - offset, "words outside the mapping");
    let first = image.base().wrapping_add(offset as usize).cast::<u64>();
    into.extend((0..count).map(|i| {
        // SAFETY: mapped and aligned, as was checked above; every bit pattern is a valid word, and
        // all sides access it as an atomic (the rule of this module).
        let word = unsafe { AtomicU64::from_ptr(first.wrapping_add(i)) };
        word.load(Ordering::Relaxed)
    }));
}

/// Counts a read: where reads cost something, only of lines that the transaction has not read yet.
pub(crate) fn count_load<D: Device>(port: &mut Port<D>, offset: u64, bytes: u64) {
    if port.device().charges_loads() {
        port.touch(offset, bytes);
    } else {
        port.count_load(offset, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmem::Dram;
    use std::sync::Arc;

    #[test]
    fn loads_give_what_was_stored() {
        let device = Arc::new(Dram::new(1 << 16, 0).unwrap());
        device.grow_image(4096).unwrap();
        let mut port = Port::new(device, 0);
        store_words(&mut port, 64, &[1, 2, 3]);
        let mut words = vec![9];
        load_words(&mut port, 56, 4, &mut words);
        assert_eq!(words, [9, 0, 1, 2, 3]);
        assert_eq!(port.counters().lines_read, 2);
    }

    #[test]
    fn words_are_zero_and_distinct() {
        let words = Words::reserve(1 << 30, 1 << 20).unwrap();
        words.get(1000, 3)[2].store(7, Ordering::Relaxed);
        let read = |at| words.get(at, 1)[0].load(Ordering::Relaxed);
        assert_eq!([read(1001), read(1002), read(1003)], [0, 7, 0]);
    }

    #[test]
    #[should_panic(expected = "beyond the end")]
    fn words_beyond_the_end_are_refused() {
        let words = Words::reserve(1 << 21, 1 << 21).unwrap();
        let _ = words.get((words.bytes() / 8) as usize - 1, 2);
    }

    #[test]
    #[should_panic(expected = "outside of the image")]
    fn a_store_beyond_the_usable_image_is_refused() {
        let device = Arc::new(Dram::new(1 << 16, 0).unwrap());
        device.grow_image(4096).unwrap();
        store_words(&mut Port::new(device, 0), 4088, &[1, 2]);
    }
}
