//! The transient pool (NV 5.1): per-worker bump memory for everything that dies with the epoch.

use pmem::sync::writes;
use pmem::{DeviceError, Mapping};

use super::{Place, ValueWord};

/// Address space of one worker's pool: what is asked for, and the least. Only what is touched takes
/// memory.
const RESERVED_BYTES: u64 = 64 << 30;
const RESERVED_BYTES_MIN: u64 = 256 << 20;

/// One worker's transient pool. What it hands out is valid until [`TransientPool::reset`], which
/// runs when no body runs (phase rule).
pub(crate) struct TransientPool {
    memory: Mapping,
    used: u64,
    high_water: u64,
    /// Number of the worker.
    pub(crate) worker: u64,
}

impl TransientPool {
    /// The pool of a worker with a number.
    pub(crate) fn new(worker: usize) -> Result<Self, DeviceError> {
        Ok(Self {
            memory: Mapping::reserve_up_to(RESERVED_BYTES, RESERVED_BYTES_MIN)?,
            used: 0,
            high_water: 0,
            worker: worker as u64,
        })
    }

    /// Whether an address is in this pool, so that its worker made what is there.
    #[inline(always)]
    pub(crate) fn holds(&self, address: usize) -> bool {
        (address.wrapping_sub(self.memory.base() as usize) as u64) < self.used
    }

    /// Most bytes ever in use.
    pub(crate) fn high_water(&self) -> u64 {
        self.high_water
    }

    /// Everything handed out is void. In debug builds its start is overwritten, so that a dangling
    /// word shows (O-15, O-17).
    pub(crate) fn reset(&mut self) {
        if cfg!(debug_assertions) {
            let poisoned = self.used.min(1 << 16) as usize;
            // SAFETY: owned by this worker; nobody reads transient values between epochs.
            unsafe { self.memory.base().write_bytes(0xdb, poisoned) };
        }
        self.used = 0;
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

    /// Copies a value in; `slot` is carried in the word for the base of a row.
    #[inline]
    pub(crate) fn store(&mut self, value: &[u8], slot: usize) -> ValueWord {
        let at = self.allocate(value.len());
        writes(at);
        // SAFETY: freshly allocated, so nobody else refers to it.
        unsafe { std::ptr::copy_nonoverlapping(value.as_ptr(), at, value.len()) };
        ValueWord::new(Place::Transient, slot, at as usize, value.len())
    }
}

// SAFETY: the mapping is owned by one worker; words that point into it are read under the phase
// rule.
unsafe impl Send for TransientPool {}
