//! Version arrays (NV 3.1.2, CA 3.2): the sorted versions of a row that is written more than once
//! in an epoch. In the transient pool, so never freed one by one.
//!
//! Layout: one word (length low, capacity high), `capacity` value words, `capacity` 4-byte
//! positions. The positions are apart so that a search touches few lines; arrays begin a line, and
//! one of the first capacity fills it.

use pmem::sync::atomic::AtomicU64;
use pmem::sync::{begin_words, reads, writes};
use storage::Position;

use super::{LINE, TransientPool};

/// Capacity of a new array.
const CAPACITY_FIRST: usize = 4;

/// Arrays of up to so many lines are fetched whole. Of a longer one it is not known which lines
/// will be needed.
const LINES_FETCHED: usize = 4;

/// The bits of an array's word that are 0 in its address.
const LINES_MASK: u64 = LINE as u64 - 1;

/// A pointer to an array. Valid until the transient pool is reset. Beside the address stands how
/// many lines the array has beyond the first, so that they are fetched together; 0 for a long one.
#[derive(Clone, Copy)]
pub(crate) struct VersionArray(u64);

impl VersionArray {
    pub(super) fn from_word(word: u64) -> Self {
        Self(word)
    }

    pub(super) fn word(self) -> u64 {
        self.0
    }

    #[inline]
    fn words(self) -> *mut u64 {
        (self.0 & !LINES_MASK) as *mut u64
    }

    /// A new array with two positions in order.
    pub(super) fn new(pool: &mut TransientPool, low: Position, high: Position) -> Self {
        debug_assert!(low < high, "two versions with one serial id");
        let array = Self::allocate(pool, CAPACITY_FIRST);
        writes(array.words());
        // SAFETY: freshly allocated, capacity at least two.
        unsafe {
            *array.positions() = low;
            *array.positions().add(1) = high;
        }
        array.set_len(2);
        array
    }

    /// An array of so many positions and no more, which `fill` writes in order. It is not shared
    /// until it is put into the row's entry.
    #[inline]
    pub(super) fn exactly(
        pool: &mut TransientPool,
        len: usize,
        fill: impl FnOnce(&mut [Position]),
    ) -> Self {
        // The first line has room for so many in any case.
        let array = Self::allocate(pool, len.max(CAPACITY_FIRST));
        writes(array.words());
        // SAFETY: freshly allocated by this worker, and len is not more than the capacity; memory
        // of the pool is mapped, and any bytes make positions.
        fill(unsafe { std::slice::from_raw_parts_mut(array.positions(), len) });
        array.set_len(len);
        debug_assert!(array.sorted().windows(2).all(|w| w[0] < w[1]), "one serial id twice");
        array
    }

    fn allocate(pool: &mut TransientPool, capacity: usize) -> Self {
        let bytes = 8 + capacity * 12;
        let words = pool.allocate_lines(bytes).cast::<u64>();
        let lines = bytes.div_ceil(LINE);
        let further = if lines <= LINES_FETCHED { lines - 1 } else { 0 };
        let array = Self(words as u64 | further as u64);
        // SAFETY: freshly allocated, owned by this worker; all value cells become PENDING.
        unsafe {
            *words = (capacity as u64) << 32;
            words.add(1).write_bytes(0, capacity);
            begin_words(std::slice::from_raw_parts(words.add(1), capacity));
        }
        array
    }

    #[inline]
    pub(crate) fn len(self) -> usize {
        // SAFETY: the header is initialised; it changes only in append, under the row's lock (or
        // before the array is published, where it is made at once).
        unsafe { *self.words() as u32 as usize }
    }

    fn capacity(self) -> usize {
        // SAFETY: as `len`.
        unsafe { (*self.words() >> 32) as usize }
    }

    fn set_len(self, len: usize) {
        // SAFETY: called in append, under the row's lock, or on a fresh array.
        unsafe { *self.words() = *self.words() & !0xffff_ffff | len as u64 }
    }

    fn positions(self) -> *mut Position {
        // SAFETY: inside the allocation: positions follow `capacity` value words.
        unsafe { self.words().add(1 + self.capacity()).cast() }
    }

    /// All positions, sorted.
    #[inline]
    pub(crate) fn sorted(&self) -> &[Position] {
        reads(self.words());
        // SAFETY: `len` positions are initialised; they change only in append.
        unsafe { std::slice::from_raw_parts(self.positions(), self.len()) }
    }

    /// The value cell of a version.
    #[inline]
    pub(crate) fn cell(&self, index: usize) -> &AtomicU64 {
        assert!(index < self.len(), "a version array has no such version");
        // SAFETY: inside the allocation; cells are only used as atomics once the array is
        // published.
        unsafe { &*self.words().add(1 + index).cast::<AtomicU64>() }
    }

    /// Adds a position by insertion from the end (CA 3.2); returns the array, which may have moved,
    /// and how many elements moved. Under the row's lock, in append.
    pub(super) fn insert(self, pool: &mut TransientPool, position: Position) -> (Self, usize) {
        let len = self.len();
        let array = if len == self.capacity() {
            let larger = Self::allocate(pool, len * 2);
            // SAFETY: both arrays hold `len` positions; the new one is not published yet.
            unsafe { std::ptr::copy_nonoverlapping(self.positions(), larger.positions(), len) };
            larger
        } else {
            self
        };
        writes(array.words());
        let positions = array.positions();
        // SAFETY: `len` positions are initialised, and change only here, under the row's lock.
        let sorted = unsafe { std::slice::from_raw_parts(positions, len) };
        // Rarely far from the end.
        let at = widening_search(sorted, position, len - 1);
        debug_assert!(at == 0 || sorted[at - 1] < position, "one serial id twice");
        // SAFETY: `at` is within 0..=len, and the capacity is larger than len.
        unsafe {
            std::ptr::copy(positions.add(at), positions.add(at + 1), len - at);
            *positions.add(at) = position;
        }
        array.set_len(len + 1);
        (array, len - at)
    }

    /// Hints that the array will be searched soon.
    #[inline]
    pub(crate) fn prefetch(self) {
        for line in 0..=(self.0 & LINES_MASK) as usize {
            super::prefetch(self.words() as usize + line * LINE);
        }
    }

    /// What a search for a position reads, about: the first line, the line of the position, and
    /// that of the cell before it.
    pub(super) fn search_reads(self, position: Position) -> [(usize, usize); 3] {
        let index = self.lower_bound(position);
        let words = self.words().addr();
        let positions = self.positions().addr();
        [(words, 8), (positions + index * 4, 4), (words + index.max(1) * 8, 8)]
    }

    /// Address and bytes of all of it.
    pub(super) fn memory(self) -> (usize, u64) {
        (self.words().addr(), 8 + self.capacity() as u64 * 12)
    }

    /// Index of the first version that is not smaller than `position`.
    #[inline]
    pub(crate) fn lower_bound(&self, position: Position) -> usize {
        lower_bound(self.sorted(), position)
    }

    /// [`VersionArray::lower_bound`] of a position whose place may be known.
    #[inline]
    pub(crate) fn place(&self, known: u32, position: Position) -> usize {
        if known >= super::IN_ARRAY {
            return self.lower_bound(position);
        }
        debug_assert_eq!(known as usize, self.lower_bound(position), "O-101");
        known as usize
    }
}

/// Up to this length halving needs no help.
const SHORT: usize = 16;

/// Index of the first element that is not smaller. In a long array the search begins where an even
/// spread would put the position, and widens from there.
#[inline]
fn lower_bound(sorted: &[Position], position: Position) -> usize {
    if sorted.len() <= SHORT {
        return sorted.partition_point(|&p| p < position);
    }
    widening_search(sorted, position, even_place(sorted, position).min(sorted.len() - 1))
}

/// Where an even spread would put a position.
fn even_place(sorted: &[Position], position: Position) -> usize {
    let (first, last) = (sorted[0], sorted[sorted.len() - 1]);
    let share = u64::from(position.clamp(first, last).0 - first.0) * (sorted.len() - 1) as u64;
    (share / u64::from(last.0 - first.0)) as usize
}

/// Looks in steps that double, upwards or downwards from `from`, and halves what is left.
#[inline]
fn widening_search(sorted: &[Position], position: Position, from: usize) -> usize {
    let (mut low, mut high) = (0, sorted.len());
    debug_assert!(from < sorted.len(), "a search begins within the array");
    let mut step = 1;
    if sorted[from] < position {
        low = from + 1;
        while let Some(&probe) = sorted.get(low + step - 1) {
            if probe >= position {
                high = low + step - 1;
                break;
            }
            low += step;
            step *= 2;
        }
    } else {
        high = from;
        while let Some(probe) = high.checked_sub(step) {
            if sorted[probe] < position {
                low = probe + 1;
                break;
            }
            high = probe;
            step *= 2;
        }
    }
    low + sorted[low..high].partition_point(|&p| p < position)
}

#[cfg(test)]
mod tests {
    use pmem::sync::atomic::Ordering;

    use super::*;
    use crate::worker_id::WorkerId;

    #[test]
    fn searches_agree_with_halving_whatever_the_spacing() {
        for len in [0u32, 1, 2, 15, 16, 17, 40, 1000] {
            let even = |i: u32| i * 7 + 3;
            let skewed = |i: u32| if i < len / 2 { i } else { i * 1000 };
            let sparse_first = |i: u32| i.min(len / 2) * 1000 + i;
            let late = |i: u32| 1_000_000 + i;
            for spacing in [&even as &dyn Fn(u32) -> u32, &skewed, &sparse_first, &late] {
                let sorted: Vec<Position> = (0..len).map(spacing).map(Position).collect();
                let around = sorted.iter().flat_map(|&Position(p)| [p.saturating_sub(1), p, p + 1]);
                for position in around.chain([0, 2, 5000, u32::MAX]).map(Position) {
                    let halved = sorted.partition_point(|&p| p < position);
                    let found = lower_bound(&sorted, position);
                    assert_eq!(found, halved, "{position} in {sorted:?}");
                    let last = sorted.len().checked_sub(1);
                    for from in (0..sorted.len()).step_by(7).chain(last) {
                        let found = widening_search(&sorted, position, from);
                        assert_eq!(found, halved, "{position} in {sorted:?} from {from}");
                    }
                }
            }
        }
    }

    #[test]
    fn positions_stay_sorted_whatever_the_order_of_appends() {
        let mut pool = TransientPool::new(WorkerId(0)).unwrap();
        let mut array = VersionArray::new(&mut pool, Position(10), Position(500));
        for step in 1u32..2000 {
            let position = step.wrapping_mul(2_654_435_761) % 1_000_003 * 2 + 1;
            (array, _) = array.insert(&mut pool, Position(position));
        }
        assert_eq!(array.len(), 2001);
        assert!(array.sorted().windows(2).all(|w| w[0] < w[1]));
        assert!((0..array.len()).all(|i| array.cell(i).load(Ordering::Relaxed) == 0));
        assert_eq!(
            array.lower_bound(Position(10)),
            array.sorted().iter().position(|&p| p == Position(10)).unwrap()
        );
    }
}
