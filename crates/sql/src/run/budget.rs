//! The memory that a statement may take.

use crate::memory::{FREE_BYTES, Grant};
use std::sync::Arc;
use values::{Datum, Error, Result, SqlState};

/// Adds up what a statement collects, and refuses what is too much.
#[derive(Debug)]
pub(super) struct Memory {
    used: usize,
    /// What it may use until it takes more.
    granted: usize,
    max: usize,
    grant: Option<Arc<Grant>>,
}

/// What a row takes beside its values: its place in a list, and what the allocator adds to it and
/// to a long value or two.
const ROW_BYTES: usize = 3 * size_of::<Vec<Datum>>();

/// The memory that a row takes, in bytes.
pub fn bytes_of(row: &[Datum]) -> usize {
    ROW_BYTES + row.iter().map(Datum::memory_bytes).sum::<usize>()
}

/// What the allocator adds to a piece of memory at most.
const ALLOCATED_BYTES: usize = 16;

/// The memory that an entry of a set or map takes, in bytes: its identity, and a place in a tree
/// for it and a value of `value_bytes`. The nodes of a tree that grows are half full.
pub(super) fn bytes_of_entry(identity: &Vec<u8>, value_bytes: usize) -> usize {
    identity.capacity() + ALLOCATED_BYTES + 2 * (size_of::<Vec<u8>>() + value_bytes)
}

impl Memory {
    /// Memory of `max` bytes, which come from the `grant` if there is one.
    pub(super) fn new(max: usize, grant: Option<&Arc<Grant>>) -> Memory {
        let granted = if grant.is_some() { max.min(FREE_BYTES) } else { max };
        Memory { used: 0, granted, max, grant: grant.cloned() }
    }

    /// Whether memory is taken from what all statements share, as outside of calls.
    pub(super) fn has_grant(&self) -> bool {
        self.grant.is_some()
    }

    pub(super) fn add(&mut self, row: &[Datum]) -> Result<()> {
        self.add_bytes(bytes_of(row))
    }

    pub(super) fn add_bytes(&mut self, bytes: usize) -> Result<()> {
        self.used += bytes;
        if self.used > self.granted { self.grow() } else { Ok(()) }
    }

    /// Takes more, in parts that grow with what it has.
    #[cold]
    fn grow(&mut self) -> Result<()> {
        if self.used > self.max {
            let message = format!("statement needs more than {} bytes of memory", self.max);
            return Err(Error::new(SqlState::OUT_OF_MEMORY, message)
                .with_hint("Read or change fewer rows at a time."));
        }
        let wanted = (self.used + self.used / 8).max(self.used + FREE_BYTES).min(self.max);
        if let Some(grant) = &self.grant {
            grant.grow_to(wanted)?;
        }
        self.granted = wanted;
        Ok(())
    }

    /// Takes what is missing for so many bytes of values that are being made, beside what is
    /// collected. A call takes nothing: what it comes to must not depend on others.
    #[cold]
    pub(super) fn reserve(&mut self, bytes: usize) -> Result<()> {
        let wanted = self.used.saturating_add(bytes);
        if wanted <= self.granted {
            return Ok(());
        }
        if let Some(grant) = &self.grant {
            grant.grow_to(wanted)?;
            self.granted = wanted.min(self.max);
        }
        Ok(())
    }

    /// So much of it is gone.
    pub(super) fn subtract(&mut self, bytes: usize) {
        assert!(bytes <= self.used, "only what was added is gone");
        self.used -= bytes;
    }

    /// What is collected now; a later [`Memory::release`] goes back to it.
    pub(super) fn mark(&self) -> usize {
        self.used
    }

    /// What was collected since the mark is gone.
    pub(super) fn release(&mut self, mark: usize) {
        self.used = mark;
    }
}
