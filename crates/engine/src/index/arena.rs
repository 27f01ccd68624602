//! Blocks of memory whose sizes are powers of two, or three times one.
//!
//! A shard of a hash index outgrows its array again and again, and one shard's array is often
//! smaller than a huge page. Powers of two between [`BLOCK_BYTES_MIN`] and a huge page are
//! therefore cut from huge pages in halves, and halves that are both free become one again: the
//! arrays that all shards left behind serve the next size. Other blocks stand alone.
//!
//! Where indexes are kept in the image, blocks are those of an [`IndexSpace`] as long as it has
//! any.

use std::collections::{BTreeMap, BTreeSet};
use std::ptr::NonNull;
use std::sync::Arc;
// What is here is counted, and decides nothing in a race: no place for an explorer.
use std::sync::atomic::{AtomicUsize, Ordering};

use pmem::sync::{Mutex, MutexGuard};

use super::memory::{HUGE_PAGE_BYTES, LINE_BYTES, Region};
use super::space::{IndexSpace, is_block};

/// The smallest block that is cut from a huge page; smaller tables are not worth one.
const BLOCK_BYTES_MIN: usize = 4096;

/// How many times a huge page is halved down to the smallest block.
const LEVELS_COUNT: usize = (HUGE_PAGE_BYTES / BLOCK_BYTES_MIN).ilog2() as usize;

/// Allocates blocks and takes them back; shared by all shards of one index.
#[derive(Debug, Default)]
pub(super) struct Arena {
    /// Where blocks come from first.
    space: Option<Arc<IndexSpace>>,
    /// Bytes of blocks that came from there.
    space_bytes: AtomicUsize,
    /// Bytes of the largest block that was ever allocated.
    largest: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Every region in use by its address, whether one block or cut into blocks.
    regions: BTreeMap<usize, Region>,
    /// Free blocks by level: those of level n have `BLOCK_BYTES_MIN << n` bytes.
    free: [BTreeSet<usize>; LEVELS_COUNT],
    /// The sum of the regions' sizes.
    bytes: usize,
}

impl Arena {
    /// An arena over a part of the image, if there is one.
    pub(super) fn over(space: Option<Arc<IndexSpace>>) -> Self {
        Self { space, ..Self::default() }
    }

    /// The part of the image.
    pub(super) fn space(&self) -> Option<&IndexSpace> {
        self.space.as_deref()
    }

    /// Bytes of the largest block that was ever allocated.
    pub(super) fn largest(&self) -> usize {
        self.largest.load(Ordering::Relaxed)
    }

    /// Notes that a part of a block is stored to next.
    #[inline]
    pub(super) fn before_store<T>(&self, place: *const T) {
        if let Some(space) = &self.space {
            space.before_store(place);
        }
    }

    /// Takes over a block that is in use since before the store was closed. `None` if it
    /// is no block of the part of the image, or has an owner.
    pub(super) fn claim(&self, offset: u64, bytes: u64) -> Option<NonNull<u8>> {
        let space = self.space.as_ref()?;
        space.claim(offset, bytes).then(|| {
            self.space_bytes.fetch_add(bytes as usize, Ordering::Relaxed);
            self.largest.fetch_max(bytes as usize, Ordering::Relaxed);
            space.at(offset, bytes)
        })
    }

    /// Takes a block of `bytes`, all of them zero, aligned to a cache line.
    ///
    /// # Panics
    ///
    /// If `bytes` is no size of a block.
    pub(super) fn take(&self, bytes: usize) -> NonNull<u8> {
        assert!(is_block(bytes as u64), "no block has {bytes} bytes");
        self.largest.fetch_max(bytes, Ordering::Relaxed);
        if let Some(block) = self.space.as_ref().and_then(|space| space.take(bytes)) {
            self.space_bytes.fetch_add(bytes, Ordering::Relaxed);
            return block;
        }
        let Some(level) = level_of(bytes) else { return self.state().add_region(bytes) };
        let block = self.state().cut(level);
        // A block may come back with what it held.
        // SAFETY: the block has this size, is mapped, and is owned here until it is returned.
        unsafe { block.as_ptr().write_bytes(0, bytes) };
        block
    }

    /// Takes back a block that [`Arena::take`] allocated for the same `bytes`.
    pub(super) fn give(&self, block: NonNull<u8>, bytes: usize) {
        assert!(is_block(bytes as u64), "no block has {bytes} bytes");
        assert!(block.addr().get().is_multiple_of(LINE_BYTES), "a block begins with a line");
        if let Some(space) = self.space.as_ref().filter(|space| space.offset_of(block).is_some()) {
            self.space_bytes.fetch_sub(bytes, Ordering::Relaxed);
            return space.give(block, bytes);
        }
        let mut state = self.state();
        match level_of(bytes) {
            Some(level) => state.join(block.addr().get(), level),
            None => state.drop_region(block.addr().get(), bytes),
        }
    }

    /// All memory held, free blocks included.
    pub(super) fn memory_bytes(&self) -> usize {
        self.state().bytes + self.image_bytes()
    }

    /// What of it is a part of the image.
    pub(super) fn image_bytes(&self) -> usize {
        self.space_bytes.load(Ordering::Relaxed)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it holds the arena")
    }
}

impl State {
    fn add_region(&mut self, bytes: usize) -> NonNull<u8> {
        let region = Region::zeroed(bytes);
        let start = region.start();
        self.bytes += region.bytes();
        self.regions.insert(start.addr().get(), region);
        start
    }

    fn drop_region(&mut self, address: usize, bytes: usize) {
        let region = self.regions.remove(&address).expect("a block is given back once");
        assert!(region.bytes() == bytes, "a block is given back as it was allocated");
        assert!(self.bytes >= bytes, "what is given back was allocated");
        self.bytes -= region.bytes();
    }

    /// Takes the smallest free block that is large enough and halves it until it fits.
    fn cut(&mut self, level: usize) -> NonNull<u8> {
        let found =
            (level..LEVELS_COUNT).find_map(|larger| Some((larger, self.free[larger].pop_first()?)));
        let (from, address) =
            found.unwrap_or_else(|| (LEVELS_COUNT, self.add_region(HUGE_PAGE_BYTES).addr().get()));
        for half in (level..from).rev() {
            self.free[half].insert(address + (BLOCK_BYTES_MIN << half));
        }
        assert!(address.is_multiple_of(BLOCK_BYTES_MIN << level), "a block is aligned to its size");
        let page = address & !(HUGE_PAGE_BYTES - 1);
        let region = self.regions.get(&page).expect("a block lies in a region");
        // SAFETY: the offset is less than the size of the mapped region the block lies in.
        unsafe { region.start().add(address - page) }
    }

    /// Frees a block, joining it with its other half as long as that is free too.
    fn join(&mut self, mut address: usize, level: usize) {
        for level in level..LEVELS_COUNT {
            let size = BLOCK_BYTES_MIN << level;
            if !self.free[level].remove(&(address ^ size)) {
                let is_new = self.free[level].insert(address);
                assert!(is_new, "a block is given back once");
                return;
            }
            address &= !size;
        }
        self.drop_region(address, HUGE_PAGE_BYTES);
    }
}

/// The level of blocks of this size, if they are cut from huge pages.
fn level_of(bytes: usize) -> Option<usize> {
    let is_cut = (BLOCK_BYTES_MIN..HUGE_PAGE_BYTES).contains(&bytes) && bytes.is_power_of_two();
    is_cut.then(|| (bytes / BLOCK_BYTES_MIN).ilog2() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_one_page_are_distinct_and_the_page_is_given_back() {
        let arena = Arena::default();
        let sizes = [4096, 8192, 1 << 20, 4096, 1 << 18, 64, 4 << 20, 3 << 12];
        let blocks: Vec<_> = sizes.iter().map(|&bytes| (arena.take(bytes), bytes)).collect();
        assert_eq!(arena.memory_bytes(), HUGE_PAGE_BYTES + 64 + (4 << 20) + (3 << 12));
        let mut ranges: Vec<_> =
            blocks.iter().map(|(b, bytes)| (b.addr().get(), b.addr().get() + bytes)).collect();
        ranges.sort_unstable();
        assert!(ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0));
        for (block, bytes) in blocks {
            arena.give(block, bytes);
        }
        assert_eq!(arena.memory_bytes(), 0);
    }

    #[test]
    fn a_block_comes_back_zeroed() {
        let arena = Arena::default();
        let keep = arena.take(4096);
        let block = arena.take(4096);
        // SAFETY: the block is mapped and owned here.
        unsafe { block.as_ptr().write_bytes(7, 4096) };
        arena.give(block, 4096);
        let again = arena.take(4096);
        assert_eq!(block, again);
        // SAFETY: as above, and initialised by `take`.
        assert_eq!(unsafe { again.as_ptr().read() }, 0);
        arena.give(again, 4096);
        arena.give(keep, 4096);
    }
}
