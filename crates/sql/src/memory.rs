//! The memory that statements share.
//!
//! A [`MemoryPool`] bounds what all statements of a process collect at a time. Each of them takes
//! from it with a [`Grant`] of its own, as it grows, and gives back what it has when the grant is
//! dropped. The first [`FREE_BYTES`] are never refused, so that a client can always end a block or
//! close a cursor. Calls take nothing: what they come to must not depend on what others do.
//!
//! Memory that a statement frees stays with the allocator, in the heap of its thread, where
//! statements of other threads cannot use it. The pool counts it, and has it given back to the
//! system before statements and freed memory together exceed the bound.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use values::{Error, Result, SqlState};

/// The bytes of a grant that are never refused.
pub const FREE_BYTES: usize = 64 << 10;

/// The part of a pool's bytes below which freed memory stays with the allocator, since each call of
/// `reclaim` visits all heaps.
const RECLAIM_PART: usize = 8;

/// Memory that is counted, of which statements take some.
#[derive(Debug)]
pub struct MemoryPool {
    bytes_max: usize,
    bytes: AtomicUsize,
    /// Bytes that grants have given back since `reclaim` was last called.
    freed: AtomicUsize,
    /// Gives freed memory back to the system. Locked while it runs, so that other takers wait.
    reclaim: Mutex<fn()>,
}

/// The memory that one statement has of a [`MemoryPool`].
#[derive(Debug)]
pub struct Grant {
    pool: Arc<MemoryPool>,
    bytes: AtomicUsize,
    was_refused: AtomicBool,
}

impl MemoryPool {
    /// A pool of `bytes_max` bytes whose freed memory stays with the allocator.
    pub fn new(bytes_max: usize) -> Arc<MemoryPool> {
        MemoryPool::with_reclaim(bytes_max, || ())
    }

    /// A pool of `bytes_max` bytes. `reclaim` gives memory that the allocator keeps back to the
    /// system; a statement that takes from the pool calls it, before it has what it takes.
    pub fn with_reclaim(bytes_max: usize, reclaim: fn()) -> Arc<MemoryPool> {
        let (bytes, freed) = Default::default();
        Arc::new(MemoryPool { bytes_max, bytes, freed, reclaim: Mutex::new(reclaim) })
    }

    /// The bytes that statements have.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The bytes that they may have together.
    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// A grant of nothing.
    pub fn grant(self: &Arc<Self>) -> Arc<Grant> {
        let (bytes, was_refused) = Default::default();
        Arc::new(Grant { pool: Arc::clone(self), bytes, was_refused })
    }

    /// Takes bytes that may be more than there are.
    fn take_free(&self, more: usize) {
        self.bytes.fetch_add(more, Ordering::Relaxed);
    }

    /// Takes bytes if there are as many.
    fn take(&self, more: usize) -> Result<()> {
        let fits = |bytes: usize| bytes.checked_add(more).filter(|sum| *sum <= self.bytes_max);
        let taken = self.bytes.try_update(Ordering::Relaxed, Ordering::Relaxed, fits);
        taken.map(|bytes| self.reclaim_beyond(bytes + more)).map_err(|bytes| {
            let message = "the memory for statements is used up";
            let detail = format!(
                "Statements have {bytes} of {} bytes together, and this one needs {more} more.",
                self.bytes_max
            );
            Error::new(SqlState::OUT_OF_MEMORY, message)
                .with_detail(detail)
                .with_hint("Try again when others have ended, or read or change fewer rows.")
        })
    }

    /// Gives `bytes` back.
    fn give(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.freed.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Freed memory, if it and `bytes` of statements are more than the pool may have.
    fn freed_beyond(&self, bytes: usize) -> Option<usize> {
        let freed = self.freed.load(Ordering::Relaxed);
        let is_beyond = bytes.saturating_add(freed) > self.bytes_max;
        (is_beyond && freed >= self.bytes_max / RECLAIM_PART).then_some(freed)
    }

    /// Gives freed memory back to the system if it and `bytes` of statements are more than the pool
    /// may have.
    fn reclaim_beyond(&self, bytes: usize) {
        if self.freed_beyond(bytes).is_none() {
            return;
        }
        // After a wait for another reclaim nothing may be left to do.
        let reclaim = self.reclaim.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(freed) = self.freed_beyond(bytes) {
            reclaim();
            self.freed.fetch_sub(freed, Ordering::Relaxed);
        }
    }

    /// Gives all freed memory back to the system.
    pub fn reclaim(&self) {
        let reclaim = self.reclaim.lock().unwrap_or_else(PoisonError::into_inner);
        let freed = self.freed.load(Ordering::Relaxed);
        reclaim();
        self.freed.fetch_sub(freed, Ordering::Relaxed);
    }
}

impl Grant {
    /// Takes `more` bytes.
    ///
    /// # Errors
    /// `OUT_OF_MEMORY` if the pool has less than that left, and the grant more than
    /// [`FREE_BYTES`] with them.
    pub fn grow(&self, more: usize) -> Result<()> {
        match self.bytes().saturating_add(more) {
            ..=FREE_BYTES => self.pool.take_free(more),
            _ => self.pool.take(more).inspect_err(|_| self.note_refused())?,
        }
        self.bytes.fetch_add(more, Ordering::Relaxed);
        Ok(())
    }

    /// Takes what is missing to `bytes`.
    ///
    /// # Errors
    /// As [`Grant::grow`].
    pub fn grow_to(&self, bytes: usize) -> Result<()> {
        match bytes.saturating_sub(self.bytes()) {
            0 => Ok(()),
            more => self.grow(more),
        }
    }

    /// Gives all but `bytes` back.
    pub fn shrink_to(&self, bytes: usize) {
        let before = self.bytes.fetch_min(bytes, Ordering::Relaxed);
        self.pool.give(before.saturating_sub(bytes));
    }

    /// A grant of nothing of the same pool.
    pub fn another(&self) -> Arc<Grant> {
        self.pool.grant()
    }

    /// The bytes that it has.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    fn note_refused(&self) {
        self.was_refused.store(true, Ordering::Relaxed);
    }

    /// Whether the pool had less than the statement needed: whatever the statement came to, it may
    /// come to something else with the same rows.
    pub fn was_refused(&self) -> bool {
        self.was_refused.load(Ordering::Relaxed)
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn a_grant_gives_back_what_it_has() {
        const KIB: usize = 1 << 10;
        let pool = MemoryPool::new(1_000 * KIB);
        let (first, second) = (pool.grant(), pool.grant());
        first.grow(600 * KIB).unwrap();
        let refused = second.grow(401 * KIB).unwrap_err();
        assert_eq!(refused.state(), SqlState::OUT_OF_MEMORY);
        assert_eq!((pool.bytes(), second.bytes()), (600 * KIB, 0));
        assert!(second.was_refused() && !first.was_refused());
        second.grow_to(400 * KIB).unwrap();
        second.grow_to(300 * KIB).unwrap();
        assert_eq!(pool.bytes(), pool.bytes_max());
        first.shrink_to(100 * KIB);
        first.shrink_to(200 * KIB);
        assert_eq!((pool.bytes(), first.bytes()), (500 * KIB, 100 * KIB));
        drop(second);
        drop(first);
        assert_eq!(pool.bytes(), 0);
        assert!(pool.grant().grow(usize::MAX).is_err());
    }

    #[test]
    fn freed_memory_goes_to_the_system_before_it_exceeds_the_bound() {
        thread_local!(static CALLS: Cell<usize> = const { Cell::new(0) });
        const KIB: usize = 1 << 10;
        let reclaim = || CALLS.set(CALLS.get() + 1);
        let pool = MemoryPool::with_reclaim(1_000 * KIB, reclaim);
        let used = |kib: usize| pool.grant().grow(kib * KIB).unwrap();
        used(400);
        used(600);
        assert_eq!(CALLS.get(), 0, "statements and freed memory fill the pool");
        used(100);
        assert_eq!(CALLS.get(), 1);
        let kept = pool.grant();
        kept.grow(800 * KIB).unwrap();
        used(101);
        assert_eq!(CALLS.get(), 1);
        used(100);
        assert_eq!(CALLS.get(), 2, "101 KiB freed, 800 kept and 100 taken");
        kept.grow(101 * KIB).unwrap();
        assert_eq!(CALLS.get(), 2, "less than an eighth of the pool is freed");
        drop(kept);
        pool.reclaim();
        used(1_000);
        assert_eq!(CALLS.get(), 3, "nothing was left of what was freed before");
    }

    #[test]
    fn the_first_bytes_are_never_refused() {
        let pool = MemoryPool::new(0);
        let all: Vec<_> = (0..3).map(|_| pool.grant()).collect();
        for grant in &all {
            grant.grow(FREE_BYTES / 2).unwrap();
            grant.grow_to(FREE_BYTES).unwrap();
            assert!(!grant.was_refused());
            assert!(grant.grow(1).is_err() && grant.was_refused());
        }
        assert_eq!(pool.bytes(), 3 * FREE_BYTES);
        drop(all);
        assert_eq!(pool.bytes(), 0);
    }
}
