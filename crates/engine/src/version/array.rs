//! Version arrays (NV 3.1.2, CA 3.2): the sorted versions of a row that is written more than once
//! in an epoch. In the transient pool, so never freed one by one.
//!
//! Layout: one word (length low, capacity high), `capacity` value words, `capacity` 4-byte
//! positions. The positions are apart so that a search touches few lines; arrays begin a line, and
//! one of the first capacity fills it.

use std::sync::atomic::AtomicU64;

use super::TransientPool;

/// Capacity of a new array.
const CAPACITY_FIRST: usize = 4;

/// A pointer to an array. Valid until the transient pool is reset.
#[derive(Clone, Copy)]
pub(crate) struct VersionArray(*mut u64);

impl VersionArray {
    pub(super) fn from_address(address: u64) -> Self {
        Self(address as *mut u64)
    }

    pub(super) fn address(self) -> u64 {
        self.0 as u64
    }

    /// A new array with two positions in order.
    pub(super) fn new(pool: &mut TransientPool, low: u32, high: u32) -> Self {
        debug_assert!(low < high, "two versions with one serial id");
        let array = Self::allocate(pool, CAPACITY_FIRST);
        // SAFETY: freshly allocated, capacity at least two.
        unsafe {
            *array.positions() = low;
            *array.positions().add(1) = high;
        }
        array.set_len(2);
        array
    }

    fn allocate(pool: &mut TransientPool, capacity: usize) -> Self {
        let words = pool.allocate_lines(8 + capacity * 12).cast::<u64>();
        let array = Self(words);
        // SAFETY: freshly allocated, owned by this worker; all value cells become PENDING.
        unsafe {
            *words = (capacity as u64) << 32;
            words.add(1).write_bytes(0, capacity);
        }
        array
    }

    #[inline(always)]
    pub(crate) fn len(self) -> usize {
        // SAFETY: the header is initialised; it changes only in append, under the row's lock.
        unsafe { *self.0 as u32 as usize }
    }

    fn capacity(self) -> usize {
        // SAFETY: as `len`.
        unsafe { (*self.0 >> 32) as usize }
    }

    fn set_len(self, len: usize) {
        // SAFETY: called in append, under the row's lock, or on a fresh array.
        unsafe { *self.0 = *self.0 & !0xffff_ffff | len as u64 }
    }

    fn positions(self) -> *mut u32 {
        // SAFETY: inside the allocation: positions follow `capacity` value words.
        unsafe { self.0.add(1 + self.capacity()).cast() }
    }

    /// All positions, sorted.
    #[inline(always)]
    pub(crate) fn sorted(&self) -> &[u32] {
        // SAFETY: `len` positions are initialised; they change only in append.
        unsafe { std::slice::from_raw_parts(self.positions(), self.len()) }
    }

    /// The value cell of a version.
    #[inline(always)]
    pub(crate) fn cell(&self, index: usize) -> &AtomicU64 {
        assert!(index < self.len());
        // SAFETY: inside the allocation; cells are only used as atomics once the array is
        // published.
        unsafe { &*self.0.add(1 + index).cast::<AtomicU64>() }
    }

    /// Adds a position by insertion from the end (CA 3.2); returns the array, which may have moved,
    /// and how many elements moved. Under the row's lock, in append.
    pub(super) fn insert(self, pool: &mut TransientPool, position: u32) -> (Self, usize) {
        let len = self.len();
        let array = if len == self.capacity() {
            let larger = Self::allocate(pool, len * 2);
            // SAFETY: both arrays hold `len` positions; the new one is not published yet.
            unsafe { std::ptr::copy_nonoverlapping(self.positions(), larger.positions(), len) };
            larger
        } else {
            self
        };
        let positions = array.positions();
        let mut at = len;
        // SAFETY: `at` stays within 0..=len, and the capacity is larger than len.
        unsafe {
            while at > 0 && *positions.add(at - 1) > position {
                *positions.add(at) = *positions.add(at - 1);
                at -= 1;
            }
            debug_assert!(at == 0 || *positions.add(at - 1) < position, "one serial id twice");
            *positions.add(at) = position;
        }
        array.set_len(len + 1);
        (array, len - at)
    }

    /// Hints that the array will be searched soon.
    #[inline(always)]
    pub(crate) fn prefetch(self) {
        super::prefetch(self.address() as usize);
    }

    /// Index of the first version that is not smaller than `position`.
    #[inline]
    pub(crate) fn lower_bound(&self, position: u32) -> usize {
        self.sorted().partition_point(|&p| p < position)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn positions_stay_sorted_whatever_the_order_of_appends() {
        let mut pool = TransientPool::new().unwrap();
        let mut array = VersionArray::new(&mut pool, 10, 500);
        for step in 1u32..2000 {
            let position = step.wrapping_mul(2_654_435_761) % 1_000_003 * 2 + 1;
            (array, _) = array.insert(&mut pool, position);
        }
        assert_eq!(array.len(), 2001);
        assert!(array.sorted().windows(2).all(|w| w[0] < w[1]));
        assert!((0..array.len()).all(|i| array.cell(i).load(Ordering::Relaxed) == 0));
        assert_eq!(array.lower_bound(10), array.sorted().iter().position(|&p| p == 10).unwrap());
    }
}
