//! Rows, and the one allocator for them.
//!
//! A table's rows lie one after the other in memory that never moves. A worker takes them from
//! blocks of its own, and those that were given back first.

use std::sync::atomic::{AtomicU64, Ordering};

use workloads::{IndexKind, TableId, TableSpec};
use zerocopy::IntoBytes;

use crate::error::{Error, Result};
use crate::index::{KEY_BYTES_MAX, KeyBytes};
use crate::memory::{Words, prefetch_words};

/// Rows of a block, which one worker gets at a time.
const BLOCK_ROWS: u64 = 1 << 8;
/// Address space of a table's rows, and what there must be at least.
const RESERVED_BYTES: u64 = 1 << 38;
const RESERVED_BYTES_MIN: u64 = 1 << 30;
/// Words before the key: existence and length, two of the engine, where the newest version is, the
/// length of the key.
const HEAD_WORDS: usize = 5;
const LINE_WORDS: usize = 8;

/// A row, by its table and its number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct RowId(pub(super) u64);

impl RowId {
    pub(super) fn new(table: TableId, number: u32) -> Self {
        Self(u64::from(table.0) << 32 | u64::from(number))
    }

    pub(super) fn table(self) -> TableId {
        TableId((self.0 >> 32) as u16)
    }

    pub(super) fn number(self) -> u32 {
        self.0 as u32
    }
}

/// The sizes of a table's rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    key_words: usize,
    value_words: usize,
}

impl Layout {
    pub(super) fn new(spec: &TableSpec) -> Result<Self> {
        let (key, value) = (spec.key_bytes_max as usize, spec.value_bytes_max as usize);
        if key > KEY_BYTES_MAX {
            let name = spec.name;
            return Err(Error::Limit(format!("keys of {name} have {key} bytes")));
        }
        // Sequences are not kept as rows.
        let value = if spec.index == IndexKind::Sequence { 0 } else { value };
        Ok(Self { key_words: key.div_ceil(8), value_words: value.div_ceil(8) })
    }

    fn row_words(self) -> usize {
        (HEAD_WORDS + self.key_words + self.value_words).next_multiple_of(LINE_WORDS)
    }
}

/// The rows of a table.
pub(super) struct Rows {
    layout: Layout,
    words: Words,
    blocks: AtomicU64,
}

/// What one worker has of the rows of a table.
#[derive(Debug, Default)]
pub(super) struct TablePool {
    next: u32,
    end: u32,
    free: Vec<u32>,
}

/// What one worker has of the rows of all tables.
#[derive(Debug)]
pub(super) struct Pool(Vec<TablePool>);

impl Pool {
    pub(super) fn new(tables: usize) -> Self {
        Self((0..tables).map(|_| TablePool::default()).collect())
    }

    pub(super) fn of(&mut self, table: TableId) -> &mut TablePool {
        &mut self.0[usize::from(table.0)]
    }

    /// Takes back a row that nothing leads to any more.
    pub(super) fn give_back(&mut self, row: RowId) {
        self.of(row.table()).free.push(row.number());
    }

    /// Shares out the free rows of all workers evenly.
    pub(super) fn balance(pools: &mut [&mut Self]) {
        for table in 0..pools.first().map_or(0, |pool| pool.0.len()) {
            let all: usize = pools.iter().map(|pool| pool.0[table].free.len()).sum();
            let most = all.div_ceil(pools.len());
            let mut surplus = Vec::new();
            for pool in &mut *pools {
                let free = &mut pool.0[table].free;
                surplus.extend(free.drain(free.len().min(most)..));
            }
            for pool in &mut *pools {
                let free = &mut pool.0[table].free;
                let missing = most.saturating_sub(free.len()).min(surplus.len());
                free.extend(surplus.drain(surplus.len() - missing..));
            }
        }
    }
}

impl Rows {
    pub(super) fn new(layout: Layout) -> Result<Self> {
        let words = Words::reserve(RESERVED_BYTES, RESERVED_BYTES_MIN)?;
        Ok(Self { layout, words, blocks: AtomicU64::new(0) })
    }

    /// A row that may be anything.
    pub(super) fn take(&self, pool: &mut TablePool) -> Result<u32> {
        if let Some(row) = pool.free.pop() {
            return Ok(row);
        }
        if pool.next == pool.end {
            let end = (self.blocks.fetch_add(1, Ordering::Relaxed) + 1) * BLOCK_ROWS;
            let bytes = end * self.layout.row_words() as u64 * 8;
            if bytes > self.words.bytes() || end > u64::from(u32::MAX) {
                return Err(Error::Limit("a table has more rows than fit".into()));
            }
            (pool.next, pool.end) = ((end - BLOCK_ROWS) as u32, end as u32);
        }
        pool.next += 1;
        Ok(pool.next - 1)
    }

    /// A row with a key that does not exist.
    pub(super) fn make(&self, pool: &mut TablePool, key: &[u8]) -> Result<u32> {
        let number = self.take(pool)?;
        let row = self.get(number);
        row.set_absent();
        row.set_key(key);
        row.set_current(RowId(0));
        row.engine(0).store(u64::MAX, Ordering::Relaxed);
        row.engine(1).store(u64::MAX, Ordering::Relaxed);
        Ok(number)
    }

    pub(super) fn get(&self, number: u32) -> Row<'_> {
        let words = self.layout.row_words();
        Row { words: self.words.get(number as usize * words, words), layout: self.layout, number }
    }
}

/// One row.
#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    words: &'a [AtomicU64],
    layout: Layout,
    number: u32,
}

impl<'a> Row<'a> {
    /// Length of the value; `None` if the row does not exist.
    pub(super) fn value_bytes(self) -> Option<usize> {
        self.words[0].load(Ordering::Relaxed).checked_sub(1).map(|bytes| bytes as usize)
    }

    pub(super) fn set_absent(self) {
        self.words[0].store(0, Ordering::Relaxed);
    }

    /// A word that belongs to the engine.
    pub(super) fn engine(self, i: usize) -> &'a AtomicU64 {
        &self.words[1 + i]
    }

    /// The row that has the newest version: this one, unless another was named.
    pub(super) fn current(self, table: TableId) -> RowId {
        match self.words[3].load(Ordering::Relaxed).checked_sub(1) {
            Some(row) => RowId(row),
            None => RowId::new(table, self.number),
        }
    }

    /// Names the row with the newest version; `RowId(0)`, which is never one, names none.
    fn set_current(self, row: RowId) {
        self.words[3].store(row.0, Ordering::Relaxed);
    }

    /// Names the row with the newest version.
    pub(super) fn move_to(self, row: RowId) {
        self.words[3].store(row.0 + 1, Ordering::Relaxed);
    }

    fn set_key(self, key: &[u8]) {
        self.words[4].store(key.len() as u64, Ordering::Relaxed);
        store_bytes(&self.words[HEAD_WORDS..][..self.layout.key_words], key);
    }

    pub(super) fn key(self) -> KeyBytes {
        let words = &self.words[HEAD_WORDS..][..self.layout.key_words];
        let bytes = words.iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes());
        bytes.take(self.words[4].load(Ordering::Relaxed) as usize).collect()
    }

    pub(super) fn has_key(self, key: &[u8]) -> bool {
        self.key().as_slice() == key
    }

    fn value(self) -> &'a [AtomicU64] {
        &self.words[HEAD_WORDS + self.layout.key_words..][..self.layout.value_words]
    }

    /// Asks for all of it.
    pub(super) fn prefetch(self) {
        prefetch_words(self.words);
    }

    /// Appends the value as whole words; its length, `None` if the row does not exist.
    pub(super) fn copy_value(self, into: &mut Vec<u64>) -> Option<usize> {
        let bytes = self.value_bytes()?;
        let words = &self.value()[..bytes.div_ceil(8)];
        into.extend(words.iter().map(|word| word.load(Ordering::Relaxed)));
        Some(bytes)
    }

    /// Gives it a value, so that it exists.
    ///
    /// # Errors
    /// A value that is too long.
    pub(super) fn set_value(self, value: &[u8]) -> Result<()> {
        if value.len() > self.layout.value_words * 8 {
            return Err(Error::Broken(format!("a value of {} bytes is too long", value.len())));
        }
        store_bytes(self.value(), value);
        self.words[0].store(value.len() as u64 + 1, Ordering::Relaxed);
        Ok(())
    }

    /// Changes a part of the value.
    pub(super) fn set_part(self, start: usize, part: &[u8]) {
        let end = start + part.len();
        for (i, word) in self.value()[..end.div_ceil(8)].iter().enumerate().skip(start / 8) {
            let (from, to) = (start.max(i * 8), end.min(i * 8 + 8));
            let mut new = [word.load(Ordering::Relaxed)];
            new.as_mut_bytes()[from - i * 8..to - i * 8]
                .copy_from_slice(&part[from - start..to - start]);
            word.store(new[0], Ordering::Relaxed);
        }
    }

    /// Gives it a value of so many bytes, as whole words.
    pub(super) fn set_whole(self, value: &[u64], bytes: usize) {
        for (to, word) in self.value().iter().zip(&value[..bytes.div_ceil(8)]) {
            to.store(*word, Ordering::Relaxed);
        }
        self.words[0].store(bytes as u64 + 1, Ordering::Relaxed);
    }
}

fn store_bytes(words: &[AtomicU64], bytes: &[u8]) {
    let (whole, rest) = bytes.as_chunks::<8>();
    for (word, bytes) in words.iter().zip(whole) {
        word.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
    }
    if !rest.is_empty() {
        let mut last = [0_u64];
        last.as_mut_bytes()[..rest.len()].copy_from_slice(rest);
        words[whole.len()].store(last[0], Ordering::Relaxed);
    }
}
