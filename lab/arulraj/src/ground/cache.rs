//! A model of the processor's cache: which accesses to memory reach the device.
//!
//! The paper counts loads and stores of the device with the processor's counters: misses of the
//! last cache, and lines that are written back. A set-associative cache with the least recently
//! used line of a set as the victim gives the same kind of figures from the program's accesses. It
//! leaves out prefetching, and other threads.

use super::ledger::{Part, Stored};

/// How large a modelled cache is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheShape {
    /// Sets, a power of two.
    pub sets: usize,
    /// Lines of a set.
    pub ways: usize,
    /// Whether a flush throws the line out, as CLFLUSH does and CLWB does not.
    pub flush_evicts: bool,
}

impl CacheShape {
    /// A cache of so many bytes, 16 ways, whose flush is CLFLUSH.
    #[must_use]
    pub fn of_bytes(bytes: u64) -> Self {
        let ways = 16;
        let sets = (bytes / pmem::LINE_BYTES / ways as u64).max(1).next_power_of_two() as usize;
        Self { sets, ways, flush_evicts: true }
    }
}

/// What reached the device.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct CacheCounts {
    /// Lines that were read from the device, for loads and for stores to lines that were not there.
    pub loads: u64,
    /// Lines that were written to it: flushed, pushed out, or stored past the cache.
    pub stores: u64,
}

/// What became of an access to a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Touched {
    pub(crate) missed: bool,
    /// A line with stores that had to go.
    pub(crate) written_back: Option<Held>,
}

/// One line that is in the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) line: u64,
    /// What stored to it since it was last written.
    pub(super) stored: Stored,
}

/// The tags of a cache.
#[derive(Debug)]
pub(crate) struct Cache {
    shape: CacheShape,
    /// The lines of each set, the least recently used one first.
    sets: Vec<Vec<Held>>,
    pub(crate) counts: CacheCounts,
}

impl Cache {
    pub(crate) fn new(shape: CacheShape) -> Self {
        Self { shape, sets: vec![Vec::new(); shape.sets], counts: CacheCounts::default() }
    }

    fn set(&mut self, line: u64) -> &mut Vec<Held> {
        let index = (line / pmem::LINE_BYTES) as usize & (self.shape.sets - 1);
        &mut self.sets[index]
    }

    /// A load of the line at an offset, or a store of a structure to it.
    pub(crate) fn touch(&mut self, line: u64, store: Option<Part>) -> Touched {
        let ways = self.shape.ways;
        let set = self.set(line);
        if let Some(at) = set.iter().position(|held| held.line == line) {
            let mut held = set.remove(at);
            store.into_iter().for_each(|part| held.stored.add(part));
            set.push(held);
            return Touched { missed: false, written_back: None };
        }
        let victim = (set.len() == ways).then(|| set.remove(0));
        let mut held = Held { line, stored: Stored::default() };
        store.into_iter().for_each(|part| held.stored.add(part));
        set.push(held);
        let written_back = victim.filter(|held| !held.stored.is_empty());
        self.counts.loads += 1;
        self.counts.stores += u64::from(written_back.is_some());
        Touched { missed: true, written_back }
    }

    /// A flush of the line: what had stored to it, if anything had.
    pub(super) fn flush(&mut self, line: u64) -> Option<Stored> {
        let evicts = self.shape.flush_evicts;
        let set = self.set(line);
        let at = set.iter().position(|held| held.line == line)?;
        let stored = std::mem::take(&mut set[at].stored);
        if evicts {
            set.remove(at);
        }
        self.counts.stores += u64::from(!stored.is_empty());
        Some(stored).filter(|stored| !stored.is_empty())
    }

    /// The line was stored past the cache.
    pub(crate) fn store_past(&mut self, line: u64) {
        let set = self.set(line);
        set.retain(|held| held.line != line);
        self.counts.stores += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORE: Option<Part> = Some(Part::Tuple);

    fn cache(flush_evicts: bool) -> Cache {
        Cache::new(CacheShape { sets: 2, ways: 2, flush_evicts })
    }

    #[test]
    fn the_least_recently_used_line_of_a_set_goes_and_is_written_back_if_dirty() {
        let mut cache = cache(true);
        assert!(cache.touch(0, STORE).missed);
        assert!(cache.touch(128, None).missed && cache.touch(64, None).missed);
        assert!(!cache.touch(0, None).missed);
        // 128 is the oldest of its set and clean; then 0 is.
        assert_eq!(cache.touch(256, None), Touched { missed: true, written_back: None });
        let touched = cache.touch(384, None);
        assert_eq!(touched.written_back.map(|held| held.line), Some(0));
        assert!(!cache.touch(64, None).missed, "another set");
        assert_eq!(cache.counts, CacheCounts { loads: 5, stores: 1 });
    }

    #[test]
    fn a_flush_writes_a_dirty_line_once_and_throws_it_out_if_it_is_clflush() {
        for evicts in [false, true] {
            let mut cache = cache(evicts);
            cache.touch(64, STORE);
            assert!(cache.flush(64).is_some() && cache.flush(64).is_none());
            assert_eq!(cache.touch(64, None).missed, evicts);
            cache.store_past(64);
            assert!(cache.touch(64, None).missed);
            assert_eq!(cache.counts.stores, 2);
        }
    }

    #[test]
    fn a_shape_has_the_bytes_that_were_asked_for() {
        let shape = CacheShape::of_bytes(1 << 20);
        assert_eq!(shape.sets * shape.ways * 64, 1 << 20);
    }
}
