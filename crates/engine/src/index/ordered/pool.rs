//! The memory of chunks: slabs of many, on huge pages once there are enough; or in the image, as
//! long as there is room.

use std::collections::BTreeSet;
use std::ptr::NonNull;
use std::sync::Arc;

use pmem::sync::{Mutex, MutexGuard};

use super::super::memory::Region;
use super::super::space::IndexSpace;
use super::chunk::Chunk;

/// Chunks in the first slab, and at most in any that is added when there is no other chunk left;
/// the largest of these has the size of a huge page.
pub(super) const SLAB_CHUNKS_MIN: usize = 2;
const SLAB_CHUNKS_MAX: usize = 1024;

/// Chunks in a slab of the image, at most.
const SLAB_CHUNKS_KEPT: usize = 64;

/// Allocates chunks and takes them back; its memory is freed with it.
#[derive(Debug, Default)]
pub(super) struct ChunkPool {
    /// Where slabs come from first.
    space: Option<Arc<IndexSpace>>,
    state: Mutex<State>,
}

/// Where a slab is in the image, and how many chunks it has.
pub(super) type KeptSlab = [u64; 2];

#[derive(Debug, Default)]
struct State {
    slabs: Vec<Region>,
    /// Those in the image.
    kept: Vec<KeptSlab>,
    free: Vec<NonNull<Chunk>>,
    /// All chunks, free or not.
    chunks_count: usize,
}

// SAFETY: the pointers are to the slabs next to them, and only to chunks that are not in use.
unsafe impl Send for State {}

impl ChunkPool {
    /// A pool over a part of the image, if there is one.
    pub(super) fn over(space: Option<Arc<IndexSpace>>) -> Self {
        Self { space, ..Self::default() }
    }

    /// Whether chunks are in the image, as long as there is room.
    pub(super) fn is_in_image(&self) -> bool {
        self.space.is_some()
    }

    /// Takes an empty chunk, owned by the caller until it gives it back or the pool goes.
    pub(super) fn take(&self) -> NonNull<Chunk> {
        let mut state = self.state();
        if state.free.is_empty() {
            state.grow(self.space.as_deref());
        }
        let chunk = state.free.pop().expect("the pool has just grown");
        self.before_store(chunk.as_ptr());
        // SAFETY: the chunk is mapped, initialised, and owned here since nothing else refers to it.
        unsafe { &mut *chunk.as_ptr() }.fill(&[], 0);
        chunk
    }

    /// Notes that a chunk is stored to next.
    #[inline]
    pub(super) fn before_store(&self, chunk: *const Chunk) {
        if let Some(space) = &self.space {
            space.before_store(chunk);
        }
    }

    /// Where a chunk is in the image, if it is there.
    pub(super) fn offset_of(&self, chunk: NonNull<Chunk>) -> Option<u64> {
        self.space.as_ref()?.offset_of(chunk.cast())
    }

    /// The slabs; `None` if not all are in the image.
    pub(super) fn kept(&self) -> Option<Vec<KeptSlab>> {
        let state = self.state();
        state.slabs.is_empty().then(|| state.kept.clone())
    }

    /// Takes over the slabs of a pool that was kept, of which these chunks are in use. `None` if
    /// they are not where that says.
    pub(super) fn attach(&self, slabs: &[KeptSlab], used: &[u64]) -> Option<Vec<NonNull<Chunk>>> {
        let space = self.space.as_ref()?;
        let chunk_bytes = size_of::<Chunk>() as u64;
        let mut state = self.state();
        let mut free = BTreeSet::new();
        for &[offset, count] in slabs {
            let bytes = count.checked_mul(chunk_bytes)?;
            space.claim(offset, bytes).then_some(())?;
            free.extend((0..count).map(|nth| offset + nth * chunk_bytes));
        }
        let chunks = used.iter().map(|offset| {
            free.remove(offset).then(|| space.at(*offset, chunk_bytes).cast::<Chunk>())
        });
        let chunks = chunks.collect::<Option<Vec<_>>>()?;
        state.chunks_count = chunks.len() + free.len();
        state.kept = slabs.to_vec();
        state.free = free.iter().rev().map(|&at| space.at(at, chunk_bytes).cast()).collect();
        Some(chunks)
    }

    /// Adds the sizes of the blocks that so many chunks more take.
    pub(super) fn growth(&self, count: usize, blocks: &mut Vec<u64>) {
        let state = self.state();
        let mut missing = count.saturating_sub(state.free.len());
        while missing > 0 {
            let slab = slab_chunks(missing.max(state.chunks_count.min(SLAB_CHUNKS_KEPT)));
            blocks.push((slab * size_of::<Chunk>()) as u64);
            missing = missing.saturating_sub(slab);
        }
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
        let space = self.space.as_deref();
        if missing >= SLAB_CHUNKS_MAX / 2 && space.is_none() {
            state.add_slab(missing.next_multiple_of(SLAB_CHUNKS_MAX), space);
        } else if missing > 0 {
            state.add_slab(missing, space);
        }
    }

    /// Visits the chunks that are allocated next, so many at most.
    pub(super) fn visit_next(&self, count: usize, visit: impl FnMut(NonNull<Chunk>)) {
        self.state().free.iter().rev().take(count).copied().for_each(visit);
    }

    /// All memory held.
    pub(super) fn memory_bytes(&self) -> usize {
        let in_image = self.image_bytes();
        self.state().slabs.iter().map(Region::bytes).sum::<usize>() + in_image
    }

    /// What of it is a part of the image.
    pub(super) fn image_bytes(&self) -> usize {
        let chunks: u64 = self.state().kept.iter().map(|[_, count]| count).sum();
        chunks as usize * size_of::<Chunk>()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it holds the pool")
    }
}

/// Chunks of a slab in the image for so many, or a part of them: a power of two.
fn slab_chunks(count: usize) -> usize {
    count.next_power_of_two().clamp(SLAB_CHUNKS_MIN, SLAB_CHUNKS_KEPT)
}

impl State {
    /// Adds a slab as large as all others together, within limits: in the image no more than
    /// [`ChunkPool::growth`] has said.
    fn grow(&mut self, space: Option<&IndexSpace>) {
        let max = if space.is_some() { SLAB_CHUNKS_KEPT } else { SLAB_CHUNKS_MAX };
        self.add_slab(self.chunks_count.clamp(SLAB_CHUNKS_MIN, max), space);
    }

    /// Adds so many chunks, in the image as far as there is room.
    fn add_slab(&mut self, count: usize, space: Option<&IndexSpace>) {
        assert!(count > 0, "a slab has chunks");
        let mut missing = count;
        while let Some((space, slab)) = space.zip((missing > 0).then(|| slab_chunks(missing))) {
            let Some(block) = space.take(slab * size_of::<Chunk>()) else { break };
            let offset = space.offset_of(block).expect("it is of this space");
            self.kept.push([offset, slab as u64]);
            self.add_chunks(block.cast(), slab);
            missing = missing.saturating_sub(slab);
        }
        if missing > 0 {
            let slab = Region::zeroed(missing * size_of::<Chunk>());
            self.add_chunks(slab.start().cast(), missing);
            self.slabs.push(slab);
        }
    }

    fn add_chunks(&mut self, first: NonNull<Chunk>, count: usize) {
        // Those at the front are allocated first.
        // SAFETY: the slab has room for `count` chunks, whose zeros make them initialised.
        self.free.extend((0..count).rev().map(|nth| unsafe { first.add(nth) }));
        self.chunks_count += count;
    }
}
