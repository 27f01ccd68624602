//! The memory of chunks: slabs of many, on huge pages once there are enough.

use std::ptr::NonNull;

use pmem::sync::{Mutex, MutexGuard};

use super::super::memory::Region;
use super::chunk::Chunk;

/// Chunks in the first slab, and at most in any that is added when there is no other chunk left;
/// the largest of these has the size of a huge page.
const SLAB_CHUNKS_MIN: usize = 2;
const SLAB_CHUNKS_MAX: usize = 1024;

/// Allocates chunks and takes them back; its memory is freed with it.
#[derive(Debug, Default)]
pub(super) struct ChunkPool {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    slabs: Vec<Region>,
    free: Vec<NonNull<Chunk>>,
    /// All chunks, free or not.
    chunks_count: usize,
}

// SAFETY: the pointers are to the slabs next to them, and only to chunks that are not in use.
unsafe impl Send for State {}

impl ChunkPool {
    /// Takes an empty chunk, owned by the caller until it gives it back or the pool goes.
    pub(super) fn take(&self) -> NonNull<Chunk> {
        let mut state = self.state();
        if state.free.is_empty() {
            state.grow();
        }
        let chunk = state.free.pop().expect("the pool has just grown");
        // SAFETY: the chunk is mapped, initialised, and owned here since nothing else refers to it.
        unsafe { &mut *chunk.as_ptr() }.fill(&[], 0);
        chunk
    }

    /// Takes back a chunk that is not in use any more.
    pub(super) fn give(&self, chunk: NonNull<Chunk>) {
        let mut state = self.state();
        assert!(state.free.len() < state.chunks_count, "a chunk is given back once");
        state.free.push(chunk);
    }

    /// Makes sure that so many chunks can be allocated before the pool grows.
    pub(super) fn reserve(&self, count: usize) {
        let mut state = self.state();
        let missing = count.saturating_sub(state.free.len());
        if missing >= SLAB_CHUNKS_MAX / 2 {
            state.add_slab(missing.next_multiple_of(SLAB_CHUNKS_MAX));
        } else if missing > 0 {
            state.add_slab(missing);
        }
    }

    /// All memory held.
    pub(super) fn memory_bytes(&self) -> usize {
        self.state().slabs.iter().map(Region::bytes).sum()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it holds the pool")
    }
}

impl State {
    /// Adds a slab as large as all others together, within limits.
    fn grow(&mut self) {
        self.add_slab(self.chunks_count.clamp(SLAB_CHUNKS_MIN, SLAB_CHUNKS_MAX));
    }

    fn add_slab(&mut self, count: usize) {
        assert!(count > 0, "a slab has chunks");
        let slab = Region::zeroed(count * size_of::<Chunk>());
        let first = slab.start().cast::<Chunk>();
        // Those at the front are allocated first.
        // SAFETY: the region has room for `count` chunks, whose zeros make them initialised.
        self.free.extend((0..count).rev().map(|nth| unsafe { first.add(nth) }));
        self.chunks_count += count;
        self.slabs.push(slab);
    }
}
