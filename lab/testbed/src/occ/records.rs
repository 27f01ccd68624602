//! Records in DRAM: what is known of the rows of a table that transactions use.
//!
//! A record is a run of words that never moves: its version with the lock, where the row's newest
//! slot is and what is in that slot's header, a mark for the clock, and, where rows are cached, the
//! payload. All words are atomic. The thread that holds the lock changes the others; a reader
//! compares the version before with that after.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use crate::error::Result;
use crate::image::layout::Header;
use crate::memory::{Words, prefetch_words};

/// Records of a block, which one worker gets at a time.
pub(crate) const BLOCK_RECORDS: u32 = 1 << 10;
/// Address space of a table's records, and what there must be at least.
const RESERVED_BYTES: u64 = 1 << 40;
const RESERVED_BYTES_MIN: u64 = 1 << 30;
/// Words before the payload.
const META_WORDS: usize = 5;
/// Records begin at a line.
const LINE_WORDS: usize = 8;

/// The version of a record: the timestamp of the transaction that wrote it last, and what is the
/// matter with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Version(pub(crate) u64);

impl Version {
    const LOCKED: u64 = 1;
    const ABSENT: u64 = 2;
    /// Not in fresh memory, which is zero.
    const LIVE: u64 = 4;

    /// A row as a transaction wrote it.
    pub(crate) fn of(timestamp: u64) -> Self {
        Self(timestamp << 3 | Self::LIVE)
    }

    /// A row as a transaction deleted it.
    pub(crate) fn deleted(timestamp: u64) -> Self {
        Self(timestamp << 3 | Self::ABSENT | Self::LIVE)
    }

    /// The transaction that wrote the row last; 0 if none has.
    pub(crate) fn timestamp(self) -> u64 {
        self.0 >> 3
    }

    /// A row that is going to be inserted.
    pub(crate) const NOT_YET: Self = Self(Self::ABSENT | Self::LIVE);
    /// A record that stands for no row any more, or never did.
    pub(crate) const GONE: Self = Self(0);

    pub(crate) fn is_locked(self) -> bool {
        self.0 & Self::LOCKED != 0
    }

    /// Whether the row does not exist.
    pub(crate) fn is_absent(self) -> bool {
        self.0 & Self::ABSENT != 0
    }

    /// Whether the record stands for no row any more: the index knows where the row is now.
    pub(crate) fn is_dead(self) -> bool {
        self.0 & Self::LIVE == 0
    }

    pub(crate) fn unlocked(self) -> Self {
        Self(self.0 & !Self::LOCKED)
    }
}

/// What came before a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Older(pub(crate) u64);

impl Older {
    /// The row did not exist before.
    pub(crate) const NONE: Self = Self(0);
    /// There was something, and it is not known any more what: the record is younger than the
    /// version.
    pub(crate) const FORGOTTEN: Self = Self(u64::MAX);
}

/// The records of a table. See the module's documentation.
pub(crate) struct Records {
    payload_words: usize,
    words: Words,
    next_block: AtomicU64,
}

/// One record, and the words of its payload.
#[derive(Clone, Copy)]
pub(crate) struct Record<'a>(&'a [AtomicU64], usize);

impl Records {
    /// Records with room for so many words of payload.
    pub(crate) fn new(payload_words: usize) -> Result<Self> {
        let words = Words::reserve(RESERVED_BYTES, RESERVED_BYTES_MIN)?;
        Ok(Self { payload_words, words, next_block: AtomicU64::new(0) })
    }

    fn record_words(&self) -> usize {
        (META_WORDS + self.payload_words).next_multiple_of(LINE_WORDS)
    }

    /// Bytes of a block.
    pub(crate) fn block_bytes(&self) -> u64 {
        self.record_words() as u64 * 8 * u64::from(BLOCK_RECORDS)
    }

    /// A new block of records that stand for no row: the number of the first; `None` if there are
    /// too many.
    pub(crate) fn add_block(&self) -> Option<u32> {
        let number = self.next_block.fetch_add(1, Ordering::Relaxed);
        let fits = (number + 1) * self.block_bytes() <= self.words.bytes();
        let first = u32::try_from(number).ok()?.checked_mul(BLOCK_RECORDS)?;
        fits.then_some(first)
    }

    /// The record with a number.
    pub(crate) fn get(&self, number: u32) -> Record<'_> {
        let words = self.record_words();
        Record(self.words.get(number as usize * words, words), self.payload_words)
    }
}

impl<'a> Record<'a> {
    fn payload(self) -> &'a [AtomicU64] {
        &self.0[META_WORDS..META_WORDS + self.1]
    }

    /// The version now.
    pub(crate) fn version(self) -> Version {
        Version(self.0[0].load(Ordering::Acquire))
    }

    /// Locks the record if it has this version.
    pub(crate) fn try_lock(self, version: Version) -> bool {
        let (old, new) = (version.0, version.0 | Version::LOCKED);
        let is_locked =
            self.0[0].compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        // A reader that sees a word that is stored from here on must not find the version as
        // before.
        fence(Ordering::Release);
        is_locked
    }

    /// Gives the record another version, unlocked. Only for its owner, or under the lock.
    pub(crate) fn set_version(self, version: Version) {
        self.0[0].store(version.0, Ordering::Release);
    }

    /// Where the row's newest slot is, and what is in its header.
    pub(crate) fn slot(self) -> (u64, Header) {
        (self.0[1].load(Ordering::Relaxed), Header(self.0[2].load(Ordering::Relaxed)))
    }

    /// Changes what [`Self::slot`] tells. Only for the owner, or under the lock.
    pub(crate) fn set_slot(self, slot: u64, header: Header) {
        self.0[1].store(slot, Ordering::Relaxed);
        self.0[2].store(header.0, Ordering::Relaxed);
    }

    /// What came before the row's newest version.
    pub(crate) fn older(self) -> Older {
        Older(self.0[4].load(Ordering::Relaxed))
    }

    /// Changes what [`Self::older`] tells. Only for the owner, or under the lock.
    pub(crate) fn set_older(self, older: Older) {
        self.0[4].store(older.0, Ordering::Relaxed);
    }

    /// Notes that the row was used.
    pub(crate) fn mark_used(self) {
        // Often it is marked already, and then the line need not be written.
        if self.0[3].load(Ordering::Relaxed) == 0 {
            self.0[3].store(1, Ordering::Relaxed);
        }
    }

    /// Whether the row was used since it was asked last.
    pub(crate) fn take_used(self) -> bool {
        self.0[3].swap(0, Ordering::Relaxed) != 0
    }

    /// Changes the payload. Only for the owner, or under the lock.
    pub(crate) fn set_payload(self, payload: &[u64]) {
        for (to, word) in self.payload().iter().zip(payload) {
            to.store(*word, Ordering::Relaxed);
        }
    }

    /// Appends the payload, which may be a mixture of old and new words if the version changes
    /// meanwhile.
    pub(crate) fn copy_payload(self, into: &mut Vec<u64>) {
        prefetch_words(self.payload());
        into.extend(self.payload().iter().map(|word| word.load(Ordering::Relaxed)));
    }

    /// Whether the version is still what it was before the record was read.
    pub(crate) fn is_still(self, version: Version) -> bool {
        fence(Ordering::Acquire);
        self.0[0].load(Ordering::Relaxed) == version.0
    }
}
