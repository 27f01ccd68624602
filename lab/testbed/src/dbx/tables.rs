//! Tables in DRAM: an index, records, and contents.
//!
//! A record is a version and where the row's content is (section 3.1.1 of the paper), on a line of
//! its own. A content is a run of words that never changes while it can be found: an update puts
//! another one in its place. Content 0 is none: the row does not exist. A record of such a row is
//! *removed* once it has left the index; until then it stands for the absence of its key.
//!
//! Every record begins with an even version. It is not below that of any record that has left an
//! index, so that of two log records of one key the newer has the larger version, however often the
//! key came and went.

use std::sync::atomic::{AtomicU64, Ordering};

use workloads::TableSpec;

use super::region::{Access, Body, Cause};
use crate::error::{Error, Result};
use crate::grace::{Grace, Limbo, Padded};
use crate::image::layout::Layout;
use crate::index::{Index, KeyBytes};
use crate::memory::Words;

/// Units that a worker gets at a time.
const BLOCK: u32 = 256;
/// Address space of the units of a table, and what there must be at least.
const RESERVED_BYTES: u64 = 1 << 38;
const RESERVED_BYTES_MIN: u64 = 1 << 30;
/// A record begins at a line.
const RECORD_WORDS: usize = 8;
/// In the version of a record that has left the index.
pub(super) const REMOVED: u64 = 1 << 63;

/// Units of one size.
pub(super) struct Arena {
    words: Words,
    unit_words: usize,
    next_block: Padded<AtomicU64>,
}

impl Arena {
    fn new(unit_words: usize) -> Result<Self> {
        let words = Words::reserve(RESERVED_BYTES, RESERVED_BYTES_MIN)?;
        Ok(Self { words, unit_words, next_block: Padded::default() })
    }

    pub(super) fn get(&self, number: u32) -> &[AtomicU64] {
        self.words.get(number as usize * self.unit_words, self.unit_words)
    }

    fn add_block(&self) -> Result<std::ops::Range<u32>> {
        let number = self.next_block.0.fetch_add(1, Ordering::Relaxed);
        let full = || Error::Limit("a table has more rows than units".into());
        let first = u32::try_from(number).ok().and_then(|n| n.checked_mul(BLOCK));
        let end = first.and_then(|first| first.checked_add(BLOCK)).ok_or_else(full)?;
        if u64::from(end) * self.unit_words as u64 * 8 > self.words.bytes() {
            return Err(full());
        }
        Ok(end - BLOCK..end)
    }
}

/// A record: its version, and its content or 0. With Pisces a second version may be beside it.
#[derive(Clone, Copy)]
pub(super) struct Record<'t> {
    pub(super) version: &'t AtomicU64,
    pub(super) content: &'t AtomicU64,
    /// Who writes the second version, or when it was committed; 0 where there is none.
    pub(super) second: &'t AtomicU64,
    /// The content of the second version.
    pub(super) second_content: &'t AtomicU64,
}

/// A table. See the module's documentation.
pub(super) struct Table {
    pub(super) index: Index,
    pub(super) layout: Layout,
    records: Arena,
    contents: Arena,
    /// Records begin with this version.
    floor: Padded<AtomicU64>,
}

impl Table {
    pub(super) fn new(spec: &TableSpec, layout: Layout, workers: usize) -> Result<Self> {
        Ok(Self {
            index: Index::new(spec, workers),
            layout,
            records: Arena::new(RECORD_WORDS)?,
            contents: Arena::new(layout.payload_words)?,
            floor: Padded::default(),
        })
    }

    pub(super) fn record(&self, number: u32) -> Record<'_> {
        let words = self.records.get(number);
        let [version, content, second, second_content] = [0, 1, 2, 3].map(|i| &words[i]);
        Record { version, content, second, second_content }
    }

    /// The words of a content.
    pub(super) fn content(&self, content: u64) -> &[AtomicU64] {
        self.contents.get((content - 1) as u32)
    }

    /// Records have at least this version from now on.
    pub(super) fn raise_floor(&self, version: u64) {
        self.floor.0.fetch_max(version.next_multiple_of(2), Ordering::SeqCst);
    }

    /// Reads a record and its content while no transaction runs; false if there is no row.
    pub(super) fn read_alone(&self, number: u32, into: &mut Vec<u64>) -> bool {
        into.clear();
        let record = self.record(number);
        let content = match record.second.load(Ordering::Acquire) {
            0 => record.content.load(Ordering::Acquire),
            // No transaction runs: it was committed.
            _ => record.second_content.load(Ordering::Acquire),
        };
        if content != 0 {
            into.extend(self.content(content).iter().map(|word| word.load(Ordering::Relaxed)));
        }
        content != 0
    }
}

/// What a region reads of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) version: u64,
    pub(super) content: u64,
}

/// Reads a record, and appends its content (lines 3 to 6 of `Read` in the paper's Figure 7). The
/// index is not part of the region: its nodes have locks of their own.
pub(super) struct ReadRecord<'t, 'v> {
    pub(super) table: &'t Table,
    pub(super) record: u32,
    pub(super) into: Option<&'v mut Vec<u64>>,
}

impl<'t> Body<'t> for ReadRecord<'t, '_> {
    type Output = Seen;

    fn run<A: Access<'t>>(&mut self, access: &mut A) -> Result<Seen, Cause> {
        let record = self.table.record(self.record);
        let version = access.load(record.version)?;
        let content = access.load(record.content)?;
        if let (Some(into), true) = (&mut self.into, content != 0) {
            let start = into.len();
            if let Err(cause) = access.copy(self.table.content(content), into) {
                into.truncate(start);
                return Err(cause);
            }
        }
        Ok(Seen { version, content })
    }
}

/// Takes a record of a row that does not exist out of use, if it is as it was.
pub(super) struct Remove<'t> {
    pub(super) record: Record<'t>,
    pub(super) version: u64,
}

impl<'t> Body<'t> for Remove<'t> {
    type Output = ();

    fn run<A: Access<'t>>(&mut self, access: &mut A) -> Result<(), Cause> {
        let seen = (access.load(self.record.version)?, access.load(self.record.content)?);
        if seen != (self.version, 0) {
            return Err(access.give_up());
        }
        access.store(self.record.version, REMOVED)
    }
}

/// Puts a row that was read from a log into its place, if none is there that is newer: what is not
/// needed any more, the new content or the old one.
pub(super) struct Redo<'t> {
    pub(super) record: Record<'t>,
    pub(super) version: u64,
    pub(super) content: u64,
}

impl<'t> Body<'t> for Redo<'t> {
    type Output = u64;

    fn run<A: Access<'t>>(&mut self, access: &mut A) -> Result<u64, Cause> {
        let version = access.load(self.record.version)?;
        let content = access.load(self.record.content)?;
        if version >= self.version {
            return Ok(self.content);
        }
        access.store(self.record.version, self.version)?;
        access.store(self.record.content, self.content)?;
        Ok(content)
    }
}

/// A row that did not exist when a transaction ended: its record leaves the index if nothing has
/// changed when no transaction may know it otherwise.
struct Absent {
    record: u32,
    version: u64,
    key: KeyBytes,
}

/// What one worker gives out of a table, and what it will take back.
#[derive(Default)]
pub(super) struct Pool {
    records: Vec<u32>,
    contents: Vec<u32>,
    records_limbo: Limbo<u32>,
    contents_limbo: Limbo<u32>,
    absent: Limbo<Absent>,
}

impl Pool {
    /// A record that stands for a row that does not exist; its version.
    pub(super) fn take_record(&mut self, table: &Table, grace: &Grace) -> Result<(u32, u64)> {
        if self.records.is_empty() {
            let unknown = grace.unknown_before();
            while let Some(record) = self.records_limbo.pop_before(unknown) {
                self.records.push(record);
            }
        }
        if self.records.is_empty() {
            self.records.extend(table.records.add_block()?.rev());
        }
        let number = self.records.pop().expect("a block has records");
        // What is not in the index is not in a region of another thread.
        let version = table.floor.0.load(Ordering::SeqCst);
        let record = table.record(number);
        record.content.store(0, Ordering::Relaxed);
        record.second.store(0, Ordering::Relaxed);
        record.version.store(version, Ordering::Release);
        Ok((number, version))
    }

    /// Takes back a record that no other thread got to know.
    pub(super) fn give_back_record(&mut self, record: u32) {
        self.records.push(record);
    }

    /// A content with these words.
    pub(super) fn take_content(
        &mut self,
        table: &Table,
        grace: &Grace,
        payload: &[u64],
    ) -> Result<u64> {
        if self.contents.is_empty() {
            let unknown = grace.unknown_before();
            while let Some(content) = self.contents_limbo.pop_before(unknown) {
                self.contents.push(content);
            }
        }
        if self.contents.is_empty() {
            self.contents.extend(table.contents.add_block()?.rev());
        }
        let number = self.contents.pop().expect("a block has contents");
        for (to, word) in table.contents.get(number).iter().zip(payload) {
            to.store(*word, Ordering::Relaxed);
        }
        Ok(u64::from(number) + 1)
    }

    /// Takes back a content that no other thread got to know.
    pub(super) fn give_back_content(&mut self, content: u64) {
        if content != 0 {
            self.contents.push((content - 1) as u32);
        }
    }

    /// Takes back a content that is in no record any more.
    pub(super) fn retire_content(&mut self, grace: &Grace, content: u64) {
        if content != 0 {
            self.contents_limbo.push(grace, (content - 1) as u32);
        }
    }

    /// Notes that there is a record of a row that does not exist.
    pub(super) fn note_absent(&mut self, grace: &Grace, record: u32, version: u64, key: &[u8]) {
        let key = KeyBytes::from_slice(key);
        self.absent.push(grace, Absent { record, version, key });
    }

    /// The next record that may leave the index: its number, version and key.
    pub(super) fn next_absent(&mut self, unknown_before: u64) -> Option<(u32, u64, KeyBytes)> {
        let Absent { record, version, key } = self.absent.pop_before(unknown_before)?;
        Some((record, version, key))
    }

    /// Takes back a record that is in no index any more.
    pub(super) fn retire_record(&mut self, grace: &Grace, record: u32) {
        self.records_limbo.push(grace, record);
    }
}
