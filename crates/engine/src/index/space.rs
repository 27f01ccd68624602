//! Memory of indexes that is a part of the image, so that a snapshot keeps them with the rows.
//!
//! Blocks have sizes that are powers of two, or three times one. Powers of two smaller than
//! a segment are cut from segments in halves, and halves that are both free become one again;
//! larger ones are segments in a row. Three times a power of two are two blocks side by side, of
//! which one is twice as large as the other, unless both are segments.
//!
//! The engine fills the stock of segments before an epoch is logged. Where it comes short a block
//! is not to be had: the index goes on in other memory, and is made anew by the next open.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ptr::NonNull;

use pmem::sync::{Mutex, MutexGuard};
use pmem::{AnyDevice, Device, NotesOfStores};

use super::memory::LINE_BYTES;

/// Blocks of the image, for all indexes of an engine.
pub struct IndexSpace {
    image: NonNull<u8>,
    image_bytes: u64,
    segment_bytes: u64,
    note: NotesOfStores,
    state: Mutex<State>,
}

#[derive(Debug, Clone, Default)]
struct State {
    /// Free blocks by level: those of level n have `LINE_BYTES << n` bytes, less than a segment.
    blocks: Vec<BTreeSet<u64>>,
    /// Free segments in a row: the bytes, by the offset of the first.
    runs: BTreeMap<u64, u64>,
}

// SAFETY: the image is shared memory; blocks of it belong to who was given them.
unsafe impl Send for IndexSpace {}
// SAFETY: as above, and the state is behind a lock.
unsafe impl Sync for IndexSpace {}

impl fmt::Debug for IndexSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IndexSpace").field("segment_bytes", &self.segment_bytes).finish()
    }
}

impl IndexSpace {
    /// A space over the image of a device that takes snapshots, without a segment yet. It is of use
    /// as long as the device lives.
    pub fn of(device: &AnyDevice, segment_bytes: u64) -> Self {
        let image = NonNull::new(device.image().base()).expect("an image has an address");
        let note = device.notes_of_stores().expect("a device that takes snapshots");
        Self::over(image, device.image().len(), segment_bytes, note)
    }

    fn over(image: NonNull<u8>, image_bytes: u64, segment_bytes: u64, note: NotesOfStores) -> Self {
        let levels = (segment_bytes / LINE_BYTES as u64).ilog2() as usize;
        let state = State { blocks: vec![BTreeSet::new(); levels], runs: BTreeMap::new() };
        Self { image, image_bytes, segment_bytes, note, state: Mutex::new(state) }
    }

    /// Takes a block of a size that [`is_block`], all of it zero; `None` if there is none.
    pub(super) fn take(&self, bytes: usize) -> Option<NonNull<u8>> {
        let offset = self.state().take(bytes as u64, self.segment_bytes)?;
        let block = self.at(offset, bytes as u64);
        (self.note)(offset, bytes as u64);
        // SAFETY: inside the image, and owned by the caller from now on.
        unsafe { block.as_ptr().write_bytes(0, bytes) };
        Some(block)
    }

    /// Takes a block back.
    pub(super) fn give(&self, block: NonNull<u8>, bytes: usize) {
        let offset = self.offset_of(block).expect("the block is of this space");
        self.state().give(offset, bytes as u64, self.segment_bytes);
    }

    /// Where a block is in the image, if it is there.
    pub(super) fn offset_of(&self, block: NonNull<u8>) -> Option<u64> {
        let offset = block.addr().get().checked_sub(self.image.addr().get())? as u64;
        (offset < self.image_bytes).then_some(offset)
    }

    /// The block at an offset.
    pub(super) fn at(&self, offset: u64, bytes: u64) -> NonNull<u8> {
        assert!(offset + bytes <= self.image_bytes, "a block is inside the image");
        // SAFETY: inside the image.
        unsafe { self.image.add(offset as usize) }
    }

    /// Notes that a part of a block is stored to next; of other memory, nothing.
    #[inline]
    pub(super) fn before_store<T>(&self, place: *const T) {
        let offset = place.addr().wrapping_sub(self.image.addr().get()) as u64;
        if offset < self.image_bytes {
            (self.note)(offset, size_of::<T>() as u64);
        }
    }

    /// Adds segments in a row to the stock. From now on nothing else stores to them.
    pub fn add_segments(&self, offset: u64, bytes: u64) {
        assert!(offset + bytes <= self.image_bytes, "segments are inside the image");
        assert!(bytes.is_multiple_of(self.segment_bytes), "whole segments");
        self.state().add_run(offset, bytes);
    }

    /// Takes a block that is in use out of the stock; false if it is not all there.
    pub(super) fn claim(&self, offset: u64, bytes: u64) -> bool {
        self.state().claim(offset, bytes, self.segment_bytes)
    }

    /// How many segments in a row are missing, and how often, for blocks of these sizes.
    #[must_use]
    pub fn missing(&self, mut wanted: Vec<u64>) -> Vec<u64> {
        let state = self.state();
        // What is left of three times a power of two may come too late for another block.
        wanted.iter_mut().for_each(|bytes| *bytes = self.whole_block(*bytes));
        // What is cut from one segment are blocks of all different sizes, of which one is as large
        // as any power of two that is left.
        let is_little = wanted.iter().sum::<u64>() <= self.segment_bytes;
        if wanted.is_empty() || (is_little && !state.runs.is_empty()) {
            return Vec::new();
        }
        let mut state = state.clone();
        // Small blocks after large ones are cut without waste.
        wanted.sort_unstable_by(|a, b| b.cmp(a));
        let segment_bytes = self.segment_bytes;
        let mut missing = Vec::new();
        // Behind all that there is, and apart.
        let mut offset = self.image_bytes.next_multiple_of(segment_bytes) + segment_bytes;
        for bytes in wanted {
            if state.take(bytes, segment_bytes).is_none() {
                missing.push(bytes.max(segment_bytes) / segment_bytes);
                if bytes < segment_bytes {
                    // The rest of that segment serves the next ones.
                    state.add_run(offset, segment_bytes);
                    state.take(bytes, segment_bytes).expect("there is a segment now");
                    offset += 2 * segment_bytes;
                }
            }
        }
        missing
    }

    /// Free bytes.
    #[must_use]
    pub fn free_bytes(&self) -> u64 {
        let state = self.state();
        let of_level = |(level, blocks): (usize, &BTreeSet<u64>)| {
            (blocks.len() * (LINE_BYTES << level)) as u64
        };
        state.blocks.iter().enumerate().map(of_level).sum::<u64>()
            + state.runs.values().sum::<u64>()
    }

    /// The block that one of so many bytes is cut from.
    fn whole_block(&self, bytes: u64) -> u64 {
        if bytes.is_multiple_of(self.segment_bytes) { bytes } else { bytes.next_power_of_two() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it holds the space")
    }
}

/// Whether a block can have so many bytes.
pub(super) fn is_block(bytes: u64) -> bool {
    let odd = bytes >> bytes.trailing_zeros().min(u64::BITS - 1);
    bytes.is_multiple_of(LINE_BYTES as u64) && (odd == 1 || odd == 3)
}

/// Bytes of the smaller one of two blocks that are one of so many bytes.
fn smaller_part(bytes: u64, segment_bytes: u64) -> Option<u64> {
    (!bytes.is_power_of_two() && !bytes.is_multiple_of(segment_bytes)).then_some(bytes / 3)
}

fn level_of(bytes: u64) -> usize {
    assert!(bytes.is_power_of_two(), "no block has {bytes} bytes");
    assert!(bytes >= LINE_BYTES as u64, "a block of {bytes} bytes is less than a line");
    (bytes / LINE_BYTES as u64).ilog2() as usize
}

impl State {
    fn take(&mut self, bytes: u64, segment_bytes: u64) -> Option<u64> {
        if let Some(smaller) = smaller_part(bytes, segment_bytes) {
            let offset = self.take(4 * smaller, segment_bytes)?;
            self.give(offset + bytes, smaller, segment_bytes);
            return Some(offset);
        }
        if bytes >= segment_bytes {
            return self.take_run(bytes);
        }
        let level = level_of(bytes);
        let larger = (level..self.blocks.len()).find(|&larger| !self.blocks[larger].is_empty());
        let (from, offset) = match larger {
            Some(larger) => (larger, self.blocks[larger].pop_first()?),
            None => (self.blocks.len(), self.take_run(segment_bytes)?),
        };
        for half in (level..from).rev() {
            self.blocks[half].insert(offset + ((LINE_BYTES as u64) << half));
        }
        Some(offset)
    }

    /// Takes the end of the smallest run that is large enough.
    fn take_run(&mut self, bytes: u64) -> Option<u64> {
        let fits = self.runs.iter().filter(|(_, run)| **run >= bytes);
        let (&first, &run) = fits.min_by_key(|(_, run)| **run)?;
        match run - bytes {
            0 => self.runs.remove(&first),
            rest => self.runs.insert(first, rest),
        };
        Some(first + run - bytes)
    }

    fn give(&mut self, mut offset: u64, bytes: u64, segment_bytes: u64) {
        if let Some(smaller) = smaller_part(bytes, segment_bytes) {
            self.give(offset, 2 * smaller, segment_bytes);
            return self.give(offset + 2 * smaller, smaller, segment_bytes);
        }
        if bytes >= segment_bytes {
            return self.add_run(offset, bytes);
        }
        for level in level_of(bytes)..self.blocks.len() {
            let size = (LINE_BYTES as u64) << level;
            if !self.blocks[level].remove(&(offset ^ size)) {
                assert!(self.blocks[level].insert(offset), "a block is given back once");
                return;
            }
            offset &= !size;
        }
        self.add_run(offset, segment_bytes);
    }

    fn add_run(&mut self, mut offset: u64, mut bytes: u64) {
        if let Some((&before, &run)) = self.runs.range(..offset).next_back()
            && before + run >= offset
        {
            assert!(before + run == offset, "segments are given back once");
            self.runs.remove(&before);
            (offset, bytes) = (before, bytes + run);
        }
        if let Some(run) = self.runs.remove(&(offset + bytes)) {
            bytes += run;
        }
        assert!(self.runs.insert(offset, bytes).is_none(), "segments are given back once");
    }

    fn claim(&mut self, offset: u64, bytes: u64, segment_bytes: u64) -> bool {
        if !is_block(bytes) {
            return false;
        }
        if let Some(smaller) = smaller_part(bytes, segment_bytes) {
            return self.claim(offset, 2 * smaller, segment_bytes)
                && self.claim(offset + 2 * smaller, smaller, segment_bytes);
        }
        if bytes >= segment_bytes {
            return offset.is_multiple_of(segment_bytes) && self.claim_run(offset, bytes);
        }
        if !offset.is_multiple_of(bytes) {
            return false;
        }
        let level = level_of(bytes);
        let block_at = |level: usize| offset & !(((LINE_BYTES as u64) << level) - 1);
        let found = (level..self.blocks.len()).find(|&l| self.blocks[l].remove(&block_at(l)));
        let from = match found {
            Some(from) => from,
            None if self.claim_run(offset & !(segment_bytes - 1), segment_bytes) => {
                self.blocks.len()
            }
            None => return false,
        };
        // Of each block that is halved the half without the one that is claimed stays.
        for half in (level..from).rev() {
            let size = (LINE_BYTES as u64) << half;
            self.blocks[half].insert(block_at(half) ^ size);
        }
        true
    }

    fn claim_run(&mut self, offset: u64, bytes: u64) -> bool {
        let Some((&first, &run)) = self.runs.range(..=offset).next_back() else { return false };
        let end = offset + bytes;
        if end > first + run {
            return false;
        }
        self.runs.remove(&first);
        if first < offset {
            self.runs.insert(first, offset - first);
        }
        if end < first + run {
            self.runs.insert(end, first + run - end);
        }
        true
    }
}

/// An image of which segments are set aside as indexes ask for them.
#[cfg(test)]
pub(super) struct Stock {
    space: std::sync::Arc<IndexSpace>,
    _image: super::memory::Region,
    end: u64,
}

#[cfg(test)]
impl Stock {
    const SEGMENT_BYTES: u64 = 256 << 10;

    pub(super) fn new(bytes: u64) -> Self {
        let image = super::memory::Region::zeroed(bytes as usize);
        let note = Box::new(|_, _| ());
        let space = IndexSpace::over(image.start(), bytes, Self::SEGMENT_BYTES, note);
        Self { space: space.into(), _image: image, end: 0 }
    }

    /// Dropped before this is.
    pub(super) fn space(&self) -> std::sync::Arc<IndexSpace> {
        self.space.clone()
    }

    /// What an epoch does before it is logged.
    pub(super) fn provide(&mut self, blocks: Vec<u64>) {
        for count in self.space.missing(blocks) {
            let bytes = count * Self::SEGMENT_BYTES;
            self.space.add_segments(self.end, bytes);
            self.end += bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: u64 = 4096;

    fn state(segments: u64) -> State {
        let mut state = State { blocks: vec![BTreeSet::new(); 6], runs: BTreeMap::new() };
        state.add_run(0, segments * SEGMENT);
        state
    }

    /// What is in use is told by blocks alone: a state that claims them is that of a run which took
    /// them.
    #[test]
    fn a_state_follows_from_the_blocks_in_use() {
        let mut run = state(128);
        let mut used = Vec::new();
        let sizes = [64, 192, 128, 4096, 64, 8192, 2048, 6144, 1024, 64, 12288, 16384, 512, 3072];
        for round in 0..8 {
            for bytes in sizes {
                used.push((run.take(bytes, SEGMENT).unwrap(), bytes));
            }
            if round % 2 == 1 {
                for _ in 0..7 {
                    let (offset, bytes) = used.remove(round);
                    run.give(offset, bytes, SEGMENT);
                }
            }
        }
        let mut found = state(128);
        assert!(used.iter().all(|&(offset, bytes)| found.claim(offset, bytes, SEGMENT)));
        assert_eq!((&found.blocks, &found.runs), (&run.blocks, &run.runs));
        let (offset, bytes) = used[0];
        assert!(!found.claim(offset, bytes, SEGMENT), "it has an owner");
        for (offset, bytes) in used {
            found.give(offset, bytes, SEGMENT);
        }
        assert_eq!(found.runs, state(128).runs);
    }

    #[test]
    fn blocks_that_are_no_blocks_are_not_claimed() {
        let mut state = state(4);
        for (offset, bytes) in [(0, 0), (0, 96), (32, 64), (64, 128), (100, 4096), (8192, 16384)] {
            assert!(!state.claim(offset, bytes, SEGMENT), "{bytes} at {offset}");
        }
        assert!(state.claim(4096, 8192, SEGMENT));
        assert_eq!(state.runs, BTreeMap::from([(0, 4096), (12288, 4096)]));
    }

    #[test]
    fn what_is_missing_is_counted_in_segments() {
        let image = NonNull::from(&mut [0_u8; 64]).cast();
        let space = IndexSpace::over(image, 1 << 20, SEGMENT, Box::new(|_, _| ()));
        assert_eq!(space.missing(vec![64, 8192, 64, 2048, 4096]), [2, 1, 1]);
        space.add_segments(0, 2 * SEGMENT);
        assert_eq!(space.missing(vec![64, 8192, 64, 2048, 4096]), [1, 1]);
        assert_eq!(space.missing(vec![64; 128]), [0_u64; 0]);
        // What is cut from a block of twice the size may be in the way of others.
        assert_eq!(space.missing(vec![3072, 3072, 1024, 1024]), [1]);
        assert_eq!(space.missing(vec![6144, 12288]), [3]);
        assert_eq!(space.free_bytes(), 2 * SEGMENT);
    }
}
