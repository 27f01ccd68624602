//! A model of the processor's cache: which accesses to memory reach the device.
//!
//! The paper counts loads and stores of the device with the processor's counters: misses of the
//! last cache, and lines that are written back. A set-associative cache with the least recently
//! used line of a set as the victim gives the same kind of figures from the program's accesses. It
//! leaves out prefetching, and other threads.

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
    pub(crate) written_back: Option<u64>,
}

/// One line that is in the cache.
#[derive(Debug, Clone, Copy)]
struct Held {
    line: u64,
    is_dirty: bool,
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

    /// A load of the line at an offset, or a store to it.
    pub(crate) fn touch(&mut self, line: u64, is_store: bool) -> Touched {
        let ways = self.shape.ways;
        let set = self.set(line);
        if let Some(at) = set.iter().position(|held| held.line == line) {
            let mut held = set.remove(at);
            held.is_dirty |= is_store;
            set.push(held);
            return Touched { missed: false, written_back: None };
        }
        let victim = (set.len() == ways).then(|| set.remove(0));
        set.push(Held { line, is_dirty: is_store });
        let written_back = victim.filter(|held| held.is_dirty).map(|held| held.line);
        self.counts.loads += 1;
        self.counts.stores += u64::from(written_back.is_some());
        Touched { missed: true, written_back }
    }

    /// A flush of the line: whether it had stores.
    pub(crate) fn flush(&mut self, line: u64) -> bool {
        let evicts = self.shape.flush_evicts;
        let set = self.set(line);
        let Some(at) = set.iter().position(|held| held.line == line) else { return false };
        let was_dirty = std::mem::take(&mut set[at].is_dirty);
        if evicts {
            set.remove(at);
        }
        self.counts.stores += u64::from(was_dirty);
        was_dirty
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

    fn cache(flush_evicts: bool) -> Cache {
        Cache::new(CacheShape { sets: 2, ways: 2, flush_evicts })
    }

    #[test]
    fn the_least_recently_used_line_of_a_set_goes_and_is_written_back_if_dirty() {
        let mut cache = cache(true);
        assert!(cache.touch(0, true).missed);
        assert!(cache.touch(128, false).missed && cache.touch(64, false).missed);
        assert!(!cache.touch(0, false).missed);
        // 128 is the oldest of its set and clean; then 0 is.
        assert_eq!(cache.touch(256, false), Touched { missed: true, written_back: None });
        assert_eq!(cache.touch(384, false), Touched { missed: true, written_back: Some(0) });
        assert!(!cache.touch(64, false).missed, "another set");
        assert_eq!(cache.counts, CacheCounts { loads: 5, stores: 1 });
    }

    #[test]
    fn a_flush_writes_a_dirty_line_once_and_throws_it_out_if_it_is_clflush() {
        for evicts in [false, true] {
            let mut cache = cache(evicts);
            cache.touch(64, true);
            assert!(cache.flush(64) && !cache.flush(64));
            assert_eq!(cache.touch(64, false).missed, evicts);
            cache.store_past(64);
            assert!(cache.touch(64, false).missed);
            assert_eq!(cache.counts.stores, 2);
        }
    }

    #[test]
    fn a_shape_has_the_bytes_that_were_asked_for() {
        let shape = CacheShape::of_bytes(1 << 20);
        assert_eq!(shape.sets * shape.ways * 64, 1 << 20);
    }
}
