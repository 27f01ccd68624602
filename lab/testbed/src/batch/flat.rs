//! The flat index of a table: tags of keys and numbers of rows side by side in one array, found by
//! linear probing, read and filled without locks.
//!
//! Keys never leave it, so a search that ends at an empty entry has seen all there is. An entry is
//! claimed first, then gets its tag, then its row; a search that meets a claimed one waits.
//! The array grows between phases only. This module must never know what is in a row.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Result;
use crate::memory::Words;

/// Entries of an empty index.
const ENTRIES_MIN: u64 = 1 << 10;
/// Words of an entry: tag, row.
const ENTRY_WORDS: usize = 2;
const EMPTY: u64 = 0;
const CLAIMED: u64 = u64::MAX;

/// See the module's documentation.
pub(super) struct Flat {
    words: Words,
    /// Entries, a power of two.
    entries: u64,
    used: AtomicU64,
}

/// The key that is looked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    /// Where to begin, in its upper bits.
    pub(super) hash: u64,
    /// What tells most other keys apart from it.
    pub(super) tag: u64,
}

impl Flat {
    pub(super) fn new() -> Result<Self> {
        Self::with(ENTRIES_MIN)
    }

    fn with(entries: u64) -> Result<Self> {
        let bytes = entries * ENTRY_WORDS as u64 * 8;
        Ok(Self { words: Words::reserve(bytes, bytes)?, entries, used: AtomicU64::new(0) })
    }

    fn place(&self, wanted: Wanted) -> u64 {
        wanted.hash >> (64 - self.entries.ilog2())
    }

    fn entry(&self, place: u64) -> &[AtomicU64] {
        self.words.get(place as usize * ENTRY_WORDS, ENTRY_WORDS)
    }

    /// Asks for the place of a key.
    pub(super) fn prefetch(&self, wanted: Wanted) {
        pmem::prefetch(self.entry(self.place(wanted)).as_ptr().addr());
    }

    /// The row of a key; `is_it` compares the key of a row whose tag is the same.
    pub(super) fn get(&self, wanted: Wanted, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let mut place = self.place(wanted);
        loop {
            let entry = self.entry(place);
            let row = Self::row(entry)?;
            if entry[0].load(Ordering::Relaxed) == wanted.tag && is_it(row) {
                return Some(row);
            }
            place = (place + 1) & (self.entries - 1);
        }
    }

    /// The row in an entry, once it is known; `None` in an empty one.
    fn row(entry: &[AtomicU64]) -> Option<u32> {
        loop {
            match entry[1].load(Ordering::Acquire) {
                EMPTY => return None,
                CLAIMED => std::hint::spin_loop(),
                row => return Some((row - 1) as u32),
            }
        }
    }

    /// Whether so many more keys fit.
    pub(super) fn has_room(&self, more: u64) -> bool {
        (self.used.load(Ordering::Relaxed) + more) * 2 <= self.entries
    }

    /// The row of a key, and whether `make` made it just now.
    ///
    /// # Errors
    /// What `make` failed with.
    ///
    /// # Panics
    /// If the array is full: there was no [`Self::has_room`].
    pub(super) fn get_or_insert<E>(
        &self,
        wanted: Wanted,
        is_it: impl Fn(u32) -> bool,
        make: impl FnOnce() -> Result<u32, E>,
    ) -> Result<(u32, bool), E> {
        let mut place = self.place(wanted);
        for _ in 0..self.entries {
            let entry = self.entry(place);
            let claim =
                entry[1].compare_exchange(EMPTY, CLAIMED, Ordering::Acquire, Ordering::Relaxed);
            if claim.is_ok() {
                self.used.fetch_add(1, Ordering::Relaxed);
                entry[0].store(wanted.tag, Ordering::Relaxed);
                let made = make();
                // A row that could not be made leaves an entry that no key finds.
                let row = made.as_ref().map_or(u32::MAX, |row| *row);
                entry[1].store(u64::from(row) + 1, Ordering::Release);
                return made.map(|row| (row, true));
            }
            if let Some(row) = Self::row(entry)
                && entry[0].load(Ordering::Relaxed) == wanted.tag
                && is_it(row)
            {
                return Ok((row, false));
            }
            place = (place + 1) & (self.entries - 1);
        }
        panic!("an index has no entry left");
    }

    /// Makes room for so many more keys; `wanted` tells what a row is found by.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn grow(&mut self, more: u64, wanted: impl Fn(u32, u64) -> Wanted) -> Result<()> {
        if self.has_room(more) {
            return Ok(());
        }
        let used = self.used.load(Ordering::Relaxed) + more;
        let larger = Self::with((used * 2 + 1).next_power_of_two())?;
        for place in 0..self.entries {
            let entry = self.entry(place);
            if let Some(row) = Self::row(entry) {
                let wanted = wanted(row, entry[0].load(Ordering::Relaxed));
                let Ok(_) = larger.get_or_insert(wanted, |_| false, || Ok::<_, Never>(row));
            }
        }
        *self = larger;
        Ok(())
    }

    /// Visits all rows.
    pub(super) fn for_each(&self, mut each: impl FnMut(u32)) {
        (0..self.entries).filter_map(|place| Self::row(self.entry(place))).for_each(&mut each);
    }
}

/// What cannot happen.
enum Never {}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(key: u64) -> Wanted {
        Wanted { hash: key.wrapping_mul(0x9e37_79b9_7f4a_7c15), tag: key }
    }

    #[test]
    fn two_threads_that_insert_the_same_keys_agree_on_the_rows() {
        let mut flat = Flat::new().unwrap();
        flat.grow(5_000, |_, tag| wanted(tag)).unwrap();
        let next = AtomicU64::new(0);
        let insert = || {
            let make = || Ok::<_, Never>(next.fetch_add(1, Ordering::Relaxed) as u32);
            let rows = (0..5_000).map(|key| flat.get_or_insert(wanted(key), |_| true, make));
            rows.map(|made| made.map_or(0, |(row, _)| row)).collect::<Vec<u32>>()
        };
        let (here, there) = std::thread::scope(|scope| {
            let other = scope.spawn(insert);
            (insert(), other.join().unwrap())
        });
        assert_eq!(here, there);
        flat.grow(50_000, |_, tag| wanted(tag)).unwrap();
        assert!((0..5_000).all(|key| flat.get(wanted(key), |_| true) == Some(here[key as usize])));
        assert_eq!(flat.get(wanted(5_000), |_| true), None);
        let mut rows = 0;
        flat.for_each(|_| rows += 1);
        assert_eq!(rows, 5_000);
    }
}
