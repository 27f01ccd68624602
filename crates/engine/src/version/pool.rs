//! The transient pool (NV 5.1): per-worker bump memory for everything that dies with the epoch.
//!
//! Most of it is version arrays and versions, and of a hot row an epoch makes thousands of versions
//! of which only the last few are ever read again. So a version is *retired* when the next one of
//! its row is published, and its memory is reclaimed once every call up to that next one has
//! ended: then no call can see it any more (docs/decisions/0014). Hot rows so stay in the cache.

use std::collections::VecDeque;

use pmem::sync::{polls, writes};
use pmem::{DeviceError, Mapping};
use storage::{NewValue, Position};

use super::{LINE, ValuePlace, ValueWord};
use crate::worker_id::WorkerId;

/// Address space of one worker's pool: what is asked for, and the least. Only what is touched takes
/// memory.
const RESERVED_BYTES: u64 = 64 << 30;
const RESERVED_BYTES_MIN: u64 = 256 << 20;

/// Precedes every value, in its first line: who made it, and of what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(align(16))]
pub(crate) struct Maker {
    /// Lines in which the value may differ from the row before the epoch.
    pub(crate) changed: u64,
    /// Position of the call that wrote the value; 0 if it is a copy from before the epoch.
    pub(crate) position: Position,
    /// Number of the worker.
    pub(crate) worker: WorkerId,
}

/// Up to so many lines there is a class of blocks for each number of lines, beyond that one for
/// each power of two.
const LINES_EXACT: usize = 64;
/// Classes for values of up to 2^18 bytes.
const CLASSES: usize = LINES_EXACT + 7;

/// The class of blocks that hold a value of a length, and how many bytes they have.
fn block_for(len: usize) -> (usize, usize) {
    let lines = (size_of::<Maker>() + len).div_ceil(LINE);
    if lines <= LINES_EXACT {
        return (lines - 1, lines * LINE);
    }
    let lines = lines.next_power_of_two();
    let doublings = (lines / LINES_EXACT).trailing_zeros() as usize;
    (LINES_EXACT + doublings - 1, lines * LINE)
}

/// A version that its successor has replaced.
#[derive(Debug, Clone, Copy)]
struct Retired {
    word: ValueWord,
    /// Position of the call that wrote the successor. Later ones cannot see the version.
    successor: Position,
}

/// So many versions are retired, for each worker, before it is asked anew how far all workers are:
/// asking takes a line from each of them.
const RETIRED_PER_WORKER: usize = polls(8) as usize;

/// Room for retired versions from the beginning: more than wait in most epochs.
const RETIRED_FIRST: usize = 64;

/// One worker's transient pool. What it allocates is valid until [`TransientPool::reset`], which
/// runs when no body runs (phase rule); but values that were retired only until
/// [`TransientPool::take_back`].
pub(crate) struct TransientPool {
    memory: Mapping,
    used: u64,
    high_water: u64,
    /// So many bytes stay in memory when an epoch is over.
    kept_bytes: u64,
    /// Number of the worker.
    pub(crate) worker: WorkerId,
    /// Versions that this worker's versions replaced, its own or others', in the order in which
    /// that happened.
    retired: VecDeque<Retired>,
    /// How many of them could not be reclaimed yet when that was tried last.
    kept: usize,
    /// Blocks whose values no call sees any more, by class.
    free: Vec<Vec<usize>>,
}

impl TransientPool {
    /// The pool of a worker with a number.
    pub(crate) fn new(worker: WorkerId) -> Result<Self, DeviceError> {
        Ok(Self {
            memory: Mapping::reserve_up_to(RESERVED_BYTES, RESERVED_BYTES_MIN)?,
            used: 0,
            high_water: 0,
            kept_bytes: u64::MAX,
            worker,
            retired: VecDeque::with_capacity(RETIRED_FIRST),
            kept: 0,
            free: vec![Vec::new(); CLASSES],
        })
    }

    /// The same that gives what is beyond so many bytes back when an epoch is over.
    pub(crate) fn keeping(mut self, bytes: u64) -> Self {
        self.kept_bytes = bytes;
        self
    }

    /// Whether an address is in this pool.
    #[cfg(test)]
    pub(super) fn holds(&self, address: usize) -> bool {
        (address.wrapping_sub(self.memory.base() as usize) as u64) < self.used
    }

    /// Most bytes in use since memory was given back.
    pub(crate) fn high_water(&self) -> u64 {
        self.high_water
    }

    /// Everything allocated is void. In debug builds its start is overwritten, so that a dangling
    /// word shows (O-15, O-17).
    pub(crate) fn reset(&mut self) {
        if cfg!(debug_assertions) {
            let poisoned = self.used.min(1 << 16) as usize;
            // SAFETY: owned by this worker; transient values are not read between epochs.
            unsafe { self.memory.base().write_bytes(0xdb, poisoned) };
        }
        self.used = 0;
        self.retired.clear();
        self.kept = 0;
        self.free.iter_mut().for_each(Vec::clear);
        if self.high_water > self.kept_bytes {
            let to = self.high_water.next_multiple_of(pmem::PAGE_BYTES).min(self.memory.len());
            // SAFETY: owned by this worker; nothing refers to what was allocated (above).
            unsafe { self.memory.drop_pages(self.kept_bytes, to - self.kept_bytes) };
            self.high_water = self.kept_bytes;
        }
    }

    /// Address of `bytes` fresh bytes, a multiple of 16, with any contents.
    ///
    /// # Panics
    /// If the address space is used up, 64 GiB unless the system allows less: admission bounds an
    /// epoch far below that (O-61).
    #[inline]
    pub(super) fn allocate(&mut self, bytes: usize) -> *mut u8 {
        let at = self.used;
        self.used = (at + bytes as u64).next_multiple_of(16);
        let limit = self.memory.len();
        assert!(self.used <= limit, "the transient pool of a worker has {limit} bytes");
        self.high_water = self.high_water.max(self.used);
        // SAFETY: inside the mapping, checked above.
        unsafe { self.memory.base().add(at as usize) }
    }

    /// As [`TransientPool::allocate`], at the start of a cache line.
    pub(super) fn allocate_lines(&mut self, bytes: usize) -> *mut u8 {
        self.used = self.used.next_multiple_of(pmem::LINE_BYTES);
        self.allocate(bytes)
    }

    /// Copies in a value that the call at a position wrote.
    #[inline]
    pub(crate) fn store(&mut self, value: &NewValue<'_>, position: Position) -> ValueWord {
        let at = self.block(value.len(), position, value.changed());
        // SAFETY: the block has room for the value, and nothing else refers to it.
        unsafe { copy_pieces(value, at) };
        ValueWord::new(ValuePlace::Transient, at as usize, value.len())
    }

    /// A block for a value of a length that the call at a position writes: where its bytes go.
    #[inline]
    fn block(&mut self, len: usize, position: Position, changed: u64) -> *mut u8 {
        let (class, bytes) = block_for(len);
        let block = match self.free[class].pop() {
            Some(block) => block as *mut u8,
            None => self.allocate_lines(bytes),
        };
        // SAFETY: the block is longer than that.
        let at = unsafe { block.add(size_of::<Maker>()) };
        writes(at);
        let maker = Maker { changed, position, worker: self.worker };
        // SAFETY: the block begins a line and has room for both; it was freshly allocated, or given
        // back after the last call had ended that could see it, so nothing else refers to it.
        unsafe { block.cast::<Maker>().write(maker) };
        at
    }

    /// The call at a position, which this worker runs, has published the version after this one, so
    /// that no later call sees this one.
    #[inline]
    pub(crate) fn retire(&mut self, word: ValueWord, successor: Position) {
        debug_assert!(word.is_transient(), "what is retired has memory of a transient pool");
        self.retired.push_back(Retired { word, successor });
    }

    /// Whether it is time to take memory back, if there are so many workers.
    #[inline]
    pub(crate) fn has_enough_retired(&self, workers: usize) -> bool {
        self.retired.len() >= self.kept + RETIRED_PER_WORKER * workers
    }

    /// Takes back retired versions, in their order, as long as their successors' calls have ended;
    /// how many. All calls before `unfinished` have, on all workers, and what they did happened
    /// before. In debug builds what is reclaimed is overwritten, so that a dangling word shows.
    pub(crate) fn take_back(&mut self, unfinished: Position) -> u64 {
        let before = self.retired.len();
        while let Some(&Retired { word, successor }) = self.retired.front()
            && successor < unfinished
        {
            let (class, bytes) = block_for(word.len());
            let block = word.address() - size_of::<Maker>();
            debug_assert!(block.is_multiple_of(LINE), "a block begins with a line");
            if cfg!(debug_assertions) {
                writes(word.address() as *mut u8);
                // SAFETY: a block of that class, which nothing refers to any more.
                unsafe { (block as *mut u8).write_bytes(0xdb, bytes) };
            }
            self.free[class].push(block);
            self.retired.pop_front();
        }
        self.kept = self.retired.len();
        (before - self.retired.len()) as u64
    }
}

/// Copies a value in pieces.
///
/// # Safety
/// As many bytes from there on belong to the caller.
#[inline]
unsafe fn copy_pieces(value: &NewValue<'_>, mut to: *mut u8) {
    if let Some(whole) = value.in_one_piece() {
        // SAFETY: as long as the value.
        unsafe { std::ptr::copy_nonoverlapping(whole.as_ptr(), to, whole.len()) };
        return;
    }
    for piece in value.pieces(0..value.len()) {
        // SAFETY: the pieces are as long together as the value.
        unsafe {
            std::ptr::copy_nonoverlapping(piece.as_ptr(), to, piece.len());
            to = to.add(piece.len());
        }
    }
}

// SAFETY: the mapping is owned by one worker; words that point into it are read under the phase
// rule, and before the calls that may see them have ended.
unsafe impl Send for TransientPool {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::{ReadPhase, TestValues};

    #[test]
    fn every_length_has_a_block_and_no_class_two_sizes() {
        let mut sizes = [0; CLASSES];
        for len in 0..1 << 18 {
            let (class, bytes) = block_for(len);
            assert!(bytes >= len + size_of::<Maker>() && bytes.is_multiple_of(LINE));
            assert!(sizes[class] == 0 || sizes[class] == bytes, "class {class}: {bytes}");
            sizes[class] = bytes;
        }
        assert!(sizes.windows(2).all(|two| two[0] < two[1]), "and all are used: {sizes:?}");
    }

    /// O-15: a version's memory is reclaimed when every call has ended that could see it, not
    /// before; and by values of its class.
    #[test]
    fn o_15_memory_is_used_again_only_after_the_call_of_the_successor() {
        let mut pool = TransientPool::new(WorkerId(3)).unwrap();
        let read = |word| ReadPhase::of(&TestValues).bytes(word);
        let first = pool.store(&NewValue::whole(&[1; 100]), Position(5));
        let made = Maker { changed: u64::MAX, position: Position(5), worker: WorkerId(3) };
        assert_eq!(ReadPhase::of(&TestValues).maker(first), made);
        let second = pool.store(&NewValue::whole(&[2; 100]), Position(7));
        pool.retire(first, Position(7));
        assert_eq!(pool.take_back(Position(7)), 0, "call 7 itself may still read it");
        assert_ne!(pool.store(&NewValue::whole(&[3; 100]), Position(8)), first);
        assert_eq!(read(first), [1; 100]);
        assert_eq!(pool.take_back(Position(8)), 1);
        assert_ne!(
            pool.store(&NewValue::whole(&[4; 300]), Position(9)).address(),
            first.address(),
            "another class"
        );
        let again = pool.store(&NewValue::whole(&[5; 101]), Position(10));
        assert_eq!(again.address(), first.address());
        assert_eq!((read(again), read(second)), (&[5; 101][..], &[2; 100][..]));
        assert_eq!(ReadPhase::of(&TestValues).maker(again).position, Position(10));
        pool.retire(again, Position(11));
        pool.reset();
        assert_eq!(pool.take_back(Position(u32::MAX)), 0, "an epoch begins with nothing retired");
    }

    #[test]
    fn it_is_worth_asking_after_so_many_for_each_worker() {
        let mut pool = TransientPool::new(WorkerId(0)).unwrap();
        let word = pool.store(&NewValue::whole(&[1]), Position(0));
        let retire = |pool: &mut TransientPool, from: usize, to: usize| {
            (from..to).for_each(|n| pool.retire(word, Position(n as u32)));
        };
        retire(&mut pool, 0, 2 * RETIRED_PER_WORKER);
        assert!(pool.has_enough_retired(2) && !pool.has_enough_retired(3));
        let some = RETIRED_PER_WORKER;
        assert_eq!(pool.take_back(Position(some as u32)), some as u64);
        retire(&mut pool, 0, 2 * RETIRED_PER_WORKER - 1);
        assert!(!pool.has_enough_retired(2), "those that wait do not count");
        retire(&mut pool, 0, 1);
        assert!(pool.has_enough_retired(2));
    }
}
