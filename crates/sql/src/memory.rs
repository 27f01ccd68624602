//! The memory that statements share.
//!
//! A [`MemoryPool`] bounds what all statements of a process collect at a time. Each of them takes
//! from it with a [`Grant`] of its own, as it grows, and gives back what it has when the grant is
//! dropped. The first [`FREE_BYTES`] are never refused, so that a client can always end a block or
//! close a cursor. Calls take nothing: what they come to must not depend on what others do.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use values::{Error, Result, SqlState};

/// The bytes of a grant that are never refused.
pub const FREE_BYTES: usize = 64 << 10;

/// Memory that is counted, of which statements take some.
#[derive(Debug)]
pub struct MemoryPool {
    bytes_max: usize,
    bytes: AtomicUsize,
}

/// The memory that one statement has of a [`MemoryPool`].
#[derive(Debug)]
pub struct Grant {
    pool: Arc<MemoryPool>,
    bytes: AtomicUsize,
    was_refused: AtomicBool,
}

impl MemoryPool {
    /// A pool of `bytes_max` bytes.
    pub fn new(bytes_max: usize) -> Arc<MemoryPool> {
        Arc::new(MemoryPool { bytes_max, bytes: AtomicUsize::new(0) })
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

    fn take(&self, more: usize) -> Result<()> {
        let fits = |bytes: usize| bytes.checked_add(more).filter(|sum| *sum <= self.bytes_max);
        let taken = self.bytes.try_update(Ordering::Relaxed, Ordering::Relaxed, fits);
        taken.map(drop).map_err(|bytes| {
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
        self.pool.bytes.fetch_sub(before.saturating_sub(bytes), Ordering::Relaxed);
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
