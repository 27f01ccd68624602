//! Loads and stores of the image: the one place of this crate that touches mapped memory.
//!
//! The rule that makes it sound: a partition has its device alone. One `Memory` is made for a
//! device, nothing else stores to the device's image while it lives, and every access goes through
//! `&mut self`. Nothing here knows what the bytes mean.

#![expect(unsafe_code, reason = "a device's image is stored to through unsafe methods of its port")]

use std::sync::Arc;

use pmem::{Counters, Device, LINE_BYTES, Port};

use super::cache::{Cache, CacheCounts, CacheShape};
use super::ledger::{Clerk, Ledger, Part, Task};

/// Misses that a processor has on their way at a time, about.
const MISSES_AT_ONCE: u64 = 10;

/// Memory of a partition, behind the model of a processor's cache if there is one.
pub(crate) struct Memory<D: Device> {
    port: Port<D>,
    cache: Option<Cache>,
    /// How often something was made durable.
    syncs: u64,
    clerk: Clerk,
}

fn lines(at: u64, len: u64) -> impl Iterator<Item = u64> {
    let first = at - at % LINE_BYTES;
    (first..if len == 0 { first } else { at + len }).step_by(LINE_BYTES as usize)
}

impl<D: Device> Memory<D> {
    pub(crate) fn new(device: Arc<D>, cache: Option<CacheShape>, is_timed: bool) -> Self {
        let (port, clerk) = (Port::new(device, 0), Clerk::new(is_timed));
        Self { port, cache: cache.map(Cache::new), syncs: 0, clerk }
    }

    pub(crate) fn device(&self) -> &Arc<D> {
        self.port.device()
    }

    pub(crate) fn counters(&self) -> &Counters {
        self.port.counters()
    }

    pub(crate) fn cache_counts(&self) -> CacheCounts {
        self.cache.as_ref().map(|cache| cache.counts).unwrap_or_default()
    }

    pub(crate) fn syncs(&self) -> u64 {
        self.syncs
    }

    /// Lines by structure, and what tasks took; lines are counted if there is a cache.
    pub(super) fn ledger(&self) -> Ledger {
        self.clerk.ledger()
    }

    /// What follows is of this structure; what was before.
    pub(crate) fn enter(&mut self, part: Part) -> Part {
        self.clerk.enter(part)
    }

    pub(super) fn part(&self) -> Part {
        self.clerk.part()
    }

    /// What follows is of a task, whatever the structure; what was before.
    pub(super) fn begin(&mut self, task: Option<Task>) -> Option<Task> {
        self.clerk.begin(task)
    }

    /// Charges an access: through the cache, if there is one, what misses.
    fn touch(&mut self, at: u64, len: u64, is_store: bool) {
        let store = is_store.then(|| self.clerk.part());
        let Some(cache) = &mut self.cache else {
            if !is_store {
                self.port.count_load(at, len);
            }
            return;
        };
        let mut missed = 0;
        for line in lines(at, len) {
            let touched = cache.touch(line, store);
            if touched.missed {
                missed += 1;
                self.port.count_load(line, LINE_BYTES);
                self.clerk.read();
            }
            if let Some(victim) = touched.written_back {
                self.port.flush(victim.line, LINE_BYTES);
                self.clerk.pushed_out(victim.stored);
            }
        }
        self.clerk.waited(u64::div_ceil(missed, MISSES_AT_ONCE));
    }

    pub(crate) fn load_u64(&mut self, at: u64) -> u64 {
        self.touch(at, 8, false);
        self.port.load_u64(at)
    }

    /// Borrows bytes of the image.
    ///
    /// # Panics
    /// If they are not inside the mapping.
    pub(crate) fn load(&mut self, at: u64, len: u64) -> &[u8] {
        self.touch(at, len, false);
        // SAFETY: mapped (checked by the mapping); stores take `&mut self`, which the slice
        // borrows, and nothing else stores to this device's image (the rule of this module).
        unsafe { self.port.device().image().slice(at, len) }
    }

    /// Loads consecutive words.
    pub(crate) fn load_words(&mut self, at: u64, count: usize) -> impl Iterator<Item = u64> {
        let bytes = self.load(at, count as u64 * 8).as_chunks::<8>().0;
        bytes.iter().map(|word| u64::from_ne_bytes(*word))
    }

    fn check(&self, at: u64, len: u64) {
        let usable = self.port.device().image_bytes();
        assert!(at <= usable && len <= usable - at, "{len} bytes at {at} are outside of the image");
    }

    /// Stores one aligned word, atomically.
    pub(crate) fn store_u64(&mut self, at: u64, word: u64) {
        assert!(at.is_multiple_of(8), "a word is aligned");
        self.check(at, 8);
        self.touch(at, 8, true);
        // SAFETY: mapped and aligned, as was checked; this partition has the device alone.
        unsafe { self.port.store_u64(at, word) };
    }

    pub(crate) fn store_words(&mut self, at: u64, words: &[u64]) {
        for (i, word) in (0..).zip(words) {
            self.store_u64(at + i * 8, *word);
        }
    }

    pub(crate) fn store(&mut self, at: u64, bytes: &[u8]) {
        self.check(at, bytes.len() as u64);
        self.touch(at, bytes.len() as u64, true);
        // SAFETY: mapped, as was checked; this partition has the device alone.
        unsafe { self.port.store_bytes(at, bytes) };
    }

    /// Stores past the cache: durable after the next fence.
    pub(crate) fn store_past(&mut self, at: u64, bytes: &[u8]) {
        self.check(at, bytes.len() as u64);
        if let Some(cache) = &mut self.cache {
            for line in lines(at, bytes.len() as u64) {
                cache.store_past(line);
                self.clerk.past_cache();
            }
        }
        // SAFETY: mapped, as was checked; this partition has the device alone.
        unsafe { self.port.store_nt(at, bytes) };
    }

    /// Writes lines back: durable after the next fence.
    pub(crate) fn flush(&mut self, at: u64, len: u64) {
        let Some(cache) = &mut self.cache else { return self.port.flush(at, len) };
        for line in lines(at, len) {
            if let Some(stored) = cache.flush(line) {
                self.port.flush(line, LINE_BYTES);
                self.clerk.flushed(stored);
            }
        }
    }

    pub(crate) fn fence(&mut self) {
        self.syncs += 1;
        self.port.fence();
    }

    /// The paper's sync: what was stored to a range is durable after it.
    pub(crate) fn sync(&mut self, at: u64, len: u64) {
        self.flush(at, len);
        self.fence();
    }

    /// Stores a word and makes it durable.
    pub(crate) fn sync_u64(&mut self, at: u64, word: u64) {
        self.store_u64(at, word);
        self.sync(at, 8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmem::Dram;

    fn memory(cache: Option<CacheShape>) -> Memory<Dram> {
        let device = Arc::new(Dram::new(1 << 16, 0).unwrap());
        device.grow_image(4096).unwrap();
        Memory::new(device, cache, false)
    }

    #[test]
    fn loads_give_what_was_stored() {
        let mut memory = memory(None);
        memory.store_words(64, &[1, 2]);
        memory.store(80, b"three");
        memory.store_past(128, &[9; 64]);
        assert_eq!(memory.load_words(64, 2).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(memory.load(80, 5), b"three");
        assert_eq!(memory.load_u64(72), 2);
        assert_eq!(memory.load(128, 64), [9; 64]);
    }

    #[test]
    fn behind_a_cache_only_misses_and_dirty_lines_reach_the_device() {
        let mut memory = memory(Some(CacheShape::of_bytes(1 << 12)));
        memory.store(0, &[7; 100]);
        memory.load(0, 100);
        assert_eq!(memory.counters().lines_read, 2, "the stores brought the lines in");
        memory.sync(0, 128);
        memory.sync(0, 128);
        assert_eq!(memory.counters().flushes, 2);
        memory.load(0, 1);
        assert_eq!(memory.cache_counts(), CacheCounts { loads: 3, stores: 2 });
    }

    #[test]
    #[should_panic(expected = "outside of the image")]
    fn a_store_beyond_the_usable_image_is_refused() {
        memory(None).store(4090, &[1; 8]);
    }
}
