//! What a region is to those who write one, and to those who make it atomic.

use std::sync::atomic::AtomicU64;

use crate::pause;
use crate::rival::RegionCounts;

/// Tries of a region that others were in the way of, before it takes the fall-back lock.
pub(crate) const RETRIES: u64 = 8;

/// What a region may have in its sets, in lines of 64 bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// The nearest cache: 32 KiB.
    pub(crate) write_lines: usize,
    /// The second one: 1 MiB.
    pub(crate) read_lines: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { write_lines: 512, read_lines: 16_384 }
    }
}

/// Why a region was aborted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Another thread stored to a line that it had read, or was about to, or holds the lock.
    Conflict,
    /// Its write set does not fit.
    WriteSet,
    /// Its read set does not fit.
    ReadSet,
    /// It was about to flush, to store past the cache or to call the system.
    Forbidden,
    /// It gave up itself.
    GaveUp,
    /// The processor does not say.
    Unknown,
}

impl Cause {
    /// Whether the same may come to its end if it is tried once more.
    pub(super) fn may_pass(self) -> bool {
        matches!(self, Self::Conflict | Self::Unknown)
    }
}

/// Counts an abort.
pub(super) fn count(counts: &mut RegionCounts, cause: Cause) {
    *match cause {
        Cause::Conflict => &mut counts.conflicts,
        Cause::WriteSet => &mut counts.write_sets,
        Cause::ReadSet => &mut counts.read_sets,
        Cause::Forbidden => &mut counts.forbidden,
        Cause::GaveUp => &mut counts.gave_up,
        Cause::Unknown => &mut counts.unknown,
    } += 1;
}

/// The words that a running region reads and writes.
pub(crate) trait Access<'w> {
    /// Loads a word that regions store to.
    fn load(&mut self, word: &'w AtomicU64) -> Result<u64, Cause>;

    /// Stores a word.
    fn store(&mut self, word: &'w AtomicU64, value: u64) -> Result<(), Cause>;

    /// Loads a word that is stored to outside of regions: it is the same when the region ends.
    fn watch(&mut self, word: &'w AtomicU64) -> Result<u64, Cause>;

    /// Appends words that nothing stores to while they can be found.
    fn copy(&mut self, words: &'w [AtomicU64], into: &mut Vec<u64>) -> Result<(), Cause>;

    /// The body is about to flush, to store past the cache, or to call the system.
    fn leave_cache(&mut self) -> Result<(), Cause>;

    /// The body gives up: the cause that it must return.
    fn give_up(&mut self) -> Cause;
}

/// What runs in a region. It may run several times, and only its last run counts.
pub(crate) trait Body<'w> {
    /// What comes of it.
    type Output;

    /// Runs.
    fn run<A: Access<'w>>(&mut self, access: &mut A) -> Result<Self::Output, Cause>;
}

/// A region that came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended<T> {
    pub(crate) output: T,
    /// Its place in the serial order of regions that store something; that of the last one whose
    /// stores it sees, if it stored nothing itself.
    pub(crate) place: u64,
}

/// Waits a little longer after each abort.
pub(super) fn back_off(aborts: u64) {
    let mut turns = 0;
    for _ in 0..1_u32 << aborts.min(RETRIES) {
        pause(&mut turns);
    }
}
