//! The memory that a statement may take.

use values::{Datum, Error, Result, SqlState};

/// Adds up what a statement collects, and refuses what is too much.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory {
    used: usize,
    max: usize,
}

/// The memory that a row takes.
pub(super) fn bytes_of(row: &[Datum]) -> usize {
    size_of::<Vec<Datum>>() + row.iter().map(Datum::memory_bytes).sum::<usize>()
}

impl Memory {
    pub(super) fn new(max: usize) -> Memory {
        Memory { used: 0, max }
    }

    pub(super) fn add(&mut self, row: &[Datum]) -> Result<()> {
        self.add_bytes(bytes_of(row))
    }

    pub(super) fn add_bytes(&mut self, bytes: usize) -> Result<()> {
        self.used += bytes;
        if self.used > self.max {
            let message = format!("statement needs more than {} bytes of memory", self.max);
            return Err(Error::new(SqlState::OUT_OF_MEMORY, message)
                .with_hint("Read or change fewer rows at a time."));
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
