//! Cached versions: DRAM copies of newest values, evicted by epoch (NV 4.2, 5.2).
//!
//! Each worker has memory of its own in power-of-two classes. A cached version is a 16-byte header
//! (epoch of the last access, stamp) and the bytes. Freed only in the initialization phase (O-15),
//! by pushing it on a free list of the worker that frees it; memory never goes back to the system,
//! so a stale pointer can at worst read another cached version, and stamps tell them apart (O-19).

use pmem::sync::atomic::{AtomicU64, Ordering};
use pmem::sync::writes;
use pmem::{DeviceError, Mapping};
use storage::EpochNumber;

use super::{RowEntry, ValuePlace, ValueWord};
use crate::design::variants::CachePolicy;
use crate::index::EntryId;
use crate::version::EntrySlab;
use crate::worker_id::{WORKERS_MAX, WorkerId};

const HEADER_BYTES: usize = 16;
const CLASS_BYTES_MIN: usize = 64;
const CLASSES: usize = 14;

/// One cached version on an eviction list.
#[derive(Debug, Clone, Copy)]
struct Listed {
    entry: EntryId,
    word: ValueWord,
    stamp: u64,
}

/// What an eviction pass did.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Evicted {
    pub(crate) versions: u64,
}

/// One worker's cache memory and its eviction lists.
pub(crate) struct CachePool {
    memory: Mapping,
    used: usize,
    budget: usize,
    policy: CachePolicy,
    /// Addresses of free blocks by class; of any worker's memory.
    free: [Vec<usize>; CLASSES],
    /// Bytes in live cached versions of this worker's making.
    live_bytes: usize,
    /// Never the same in two workers.
    stamps: u64,
    /// Eviction lists, by epoch modulo their number.
    lists: Vec<Vec<Listed>>,
    /// Replaced by this epoch's writers; smaller serial ids may still read them.
    retired: Vec<ValueWord>,
}

// SAFETY: the memory is owned by one worker; words that point into it are read under the phase
// rule.
unsafe impl Send for CachePool {}

/// Header words of a cached version.
fn header(word: ValueWord) -> &'static [AtomicU64; 2] {
    debug_assert!(word.is_cached(), "only cached versions have such a header");
    // SAFETY: cached words point behind a header in a mapping that lives as long as the engine;
    // headers are only accessed as atomics.
    unsafe { &*((word.address() - HEADER_BYTES) as *const [AtomicU64; 2]) }
}

/// Notes an access: an atomic store, only if the epoch changed (O-20).
#[inline]
pub(super) fn touch(word: ValueWord, epoch: EpochNumber) {
    let access = &header(word)[0];
    if access.load(Ordering::Relaxed) != epoch.0 {
        access.store(epoch.0, Ordering::Relaxed);
    }
}

fn class_of(bytes: usize) -> usize {
    let bytes = (bytes + HEADER_BYTES).max(CLASS_BYTES_MIN).next_power_of_two();
    (bytes.trailing_zeros() - CLASS_BYTES_MIN.trailing_zeros()) as usize
}

impl CachePool {
    /// A cache of at most `budget` bytes that keeps versions for `epochs` epochs (K).
    pub(crate) fn new(
        worker: WorkerId,
        budget: u64,
        epochs: u64,
        policy: CachePolicy,
    ) -> Result<Self, DeviceError> {
        Ok(Self {
            memory: Mapping::reserve((budget + (1 << 20)).next_multiple_of(2 << 20))?,
            used: 0,
            budget: budget as usize,
            policy,
            free: Default::default(),
            live_bytes: 0,
            stamps: worker.0.into(),
            lists: vec![Vec::new(); epochs as usize + 2],
            retired: Vec::new(),
        })
    }

    /// Whether there is a cache at all.
    pub(crate) fn is_on(&self) -> bool {
        self.budget > 0
    }

    /// Whether a value that was read is cached.
    pub(crate) fn takes_read(&self) -> bool {
        self.is_on() && self.policy != CachePolicy::Hot
    }

    /// Whether the last version of a row in an epoch is cached.
    #[inline]
    pub(super) fn takes_new(&self, entry: &RowEntry, epoch: EpochNumber) -> bool {
        self.is_on()
            && match self.policy {
                CachePolicy::All => true,
                CachePolicy::Hot => entry.version_count(epoch) > 1,
            }
    }

    /// Bytes allocated from the system.
    pub(crate) fn bytes(&self) -> u64 {
        self.used as u64
    }

    /// Copies a value into the cache, if the budget allows; the caller publishes it.
    pub(crate) fn create(
        &mut self,
        entry: EntryId,
        value: &[u8],
        epoch: EpochNumber,
    ) -> Option<ValueWord> {
        let class = class_of(value.len());
        let bytes = CLASS_BYTES_MIN << class;
        let start = match self.free.get_mut(class)?.pop() {
            Some(address) => address,
            None if self.used + bytes <= self.budget => {
                self.used += bytes;
                self.memory.base() as usize + self.used - bytes
            }
            None => return None,
        };
        assert!(start.is_multiple_of(CLASS_BYTES_MIN), "a block begins with a line");
        let address = start + HEADER_BYTES;
        writes(address as *const u8);
        // SAFETY: the block is inside a cache mapping and free, so owned by this worker.
        unsafe {
            std::ptr::copy_nonoverlapping(value.as_ptr(), address as *mut u8, value.len());
        }
        let word = ValueWord::new(ValuePlace::Cached, address, value.len());
        self.stamps += WORKERS_MAX as u64;
        header(word)[0].store(epoch.0, Ordering::Relaxed);
        header(word)[1].store(self.stamps, Ordering::Relaxed);
        self.live_bytes += bytes;
        let lists = self.lists.len() as u64;
        self.lists[(epoch.0 % lists) as usize].push(Listed { entry, word, stamp: self.stamps });
        Some(word)
    }

    /// Undoes a creation that lost the race to be published.
    pub(crate) fn discard(&mut self, word: ValueWord, epoch: EpochNumber) {
        let lists = self.lists.len() as u64;
        let listed = self.lists[(epoch.0 % lists) as usize].pop();
        assert!(listed.is_some_and(|l| l.word == word), "the newest creation is discarded");
        self.release(word);
    }

    /// The row's cached version is replaced in this epoch: freed in the next one's initialization.
    pub(crate) fn retire(&mut self, word: ValueWord) {
        debug_assert!(word.is_cached(), "what the cache frees is in it");
        self.retired.push(word);
    }

    fn release(&mut self, word: ValueWord) {
        let class = class_of(word.len());
        let stamp = &header(word)[1];
        assert!(stamp.load(Ordering::Relaxed) != 0, "a cached version is freed once (O-15)");
        stamp.store(0, Ordering::Relaxed);
        self.live_bytes = self.live_bytes.saturating_sub(CLASS_BYTES_MIN << class);
        self.free[class].push(word.address() - HEADER_BYTES);
    }

    /// The eviction step of `epoch` (NV 5.2): frees what was retired in the epoch before, then
    /// handles the list of epoch - K - 1: what was accessed since moves to the list of that access.
    pub(crate) fn evict(&mut self, entries: &EntrySlab, epoch: EpochNumber) -> Evicted {
        for word in std::mem::take(&mut self.retired) {
            assert!(word.is_cached(), "what was retired is a cached version");
            self.release(word);
        }
        let mut evicted = Evicted::default();
        let lists = self.lists.len() as u64;
        let keep = lists - 2;
        let due = epoch.next().0 % lists;
        // Lists are reused every K + 2 epochs: this one holds accesses of epoch - K - 1.
        for listed in std::mem::take(&mut self.lists[due as usize]) {
            let entry = entries.get(listed.entry);
            let stale = entry.cached() != Some(listed.word)
                || header(listed.word)[1].load(Ordering::Relaxed) != listed.stamp;
            if stale {
                continue;
            }
            let access = header(listed.word)[0].load(Ordering::Relaxed);
            assert!(access <= epoch.0, "an access is of an epoch that has begun (O-20)");
            if access + keep + 1 > epoch.0 {
                self.lists[(access % lists) as usize].push(listed);
            } else {
                entry.set_cached(None);
                self.release(listed.word);
                evicted.versions += 1;
            }
        }
        evicted
    }
}
