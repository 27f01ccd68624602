//! The working copy of a contended row (decision 27): of a long value that several calls of an epoch
//! change in part there is one copy in DRAM, which each of them patches in its turn, and what a patch
//! replaces is kept, so that who comes late sees the version before it.
//!
//! - *Whose turn it is.* A call patches only what it saw as the version before its own. It waited
//!   for that one, and all later writers of the row wait for it: so until it publishes nobody else
//!   patches, and it reads the copy in place (O-103).
//! - *Everybody else* copies the words, one by one, and then undoes all patches that are not before
//!   its position, the newest first. A patch leads to its undo record before it stores the first
//!   word, so whoever has read a word of it finds the record; what a record restores where nothing
//!   was patched yet is what was there. Nobody starts over (O-104).
//! - *Memory.* The record of a version is retired by the next patch, and the copy with the last
//!   record by the first version after it that is not in it: each stays until the call of the
//!   successor has ended (decision 14), so to the end of all that may look at them.
//!
//! Whole values, tombstones and final writes are never in a copy; the base of the row is never
//! patched (O-105).

use pmem::sync::atomic::{AtomicU64, Ordering};
use pmem::sync::{begin_words, reads};
use storage::NewValue;

use super::pool::{Maker, copy_pieces};
use super::{LINE, Place, TransientPool, ValueWord};

/// Shorter values are copied as a whole: a patch and its undo record would take as many lines.
const BYTES_MIN: usize = 2 * LINE + 1;

/// Precedes the value of a working copy. The maker is that of the newest version, for whose turn it
/// is.
#[repr(C, align(64))]
struct Header {
    /// Address of the newest undo record; 0 as long as nothing was patched.
    newest: AtomicU64,
    room: [u64; 5],
    maker: Maker,
}

const _: () = assert!(size_of::<Header>() == LINE && LINE.is_multiple_of(align_of::<Maker>()));

/// What a patch has replaced; the old words follow.
#[repr(C, align(16))]
struct Undo {
    /// Address of the record of the version before; 0 if that is the first one of the copy.
    before: u64,
    /// Position of the call.
    position: u32,
    /// The first word that it replaced, and how many.
    from: u32,
    count: u32,
}

impl Undo {
    /// Bytes of a record of so many words.
    const fn bytes(count: usize) -> usize {
        size_of::<Self>() + count * size_of::<u64>()
    }

    /// The record at an address, which its maker has led to.
    ///
    /// # Safety
    /// The address is that of a record whose memory was not taken back.
    #[inline(always)]
    unsafe fn at<'u>(address: u64) -> &'u Self {
        TransientPool::reads_block(address as usize);
        // SAFETY: forwarded to the caller; records do not change.
        unsafe { &*(address as *const Self) }
    }

    /// The words that were there.
    #[inline(always)]
    fn old(&self) -> &[u64] {
        // SAFETY: they follow in the same block.
        unsafe {
            std::slice::from_raw_parts(std::ptr::from_ref(self).add(1).cast(), self.count as usize)
        }
    }
}

/// A working copy, named by the word of each version that is in it.
#[derive(Clone, Copy)]
pub(super) struct WorkingCopy(ValueWord);

impl WorkingCopy {
    /// The copy that a version is in.
    #[inline(always)]
    pub(super) fn of(word: ValueWord) -> Option<Self> {
        word.is_working().then_some(Self(word))
    }

    /// Whether a write of lines is worth a copy, or a patch of one.
    #[inline(always)]
    pub(super) fn takes(value: &NewValue<'_>) -> bool {
        value.len() >= BYTES_MIN && value.in_one_piece().is_none()
    }

    /// Makes a copy with the version of the call at a position.
    pub(super) fn begin(pool: &mut TransientPool, value: &NewValue<'_>, position: u32) -> ValueWord {
        let block = pool.take(size_of::<Header>() + value.len());
        let maker = pool.maker(position, value.changed());
        let header = Header { newest: AtomicU64::new(0), room: [0; 5], maker };
        // SAFETY: the block has room for both, and nobody else refers to it.
        unsafe {
            block.cast::<Header>().write(header);
            let at = block.add(size_of::<Header>());
            copy_pieces(value, at);
            begin_words(std::slice::from_raw_parts(block.cast(), 1));
            begin_words(std::slice::from_raw_parts(at.cast(), value.len().div_ceil(8)));
            Self::word(at as usize, value.len())
        }
    }

    fn word(address: usize, len: usize) -> ValueWord {
        let word = ValueWord::new(Place::Transient, 0, address, len);
        ValueWord(word.0 | ValueWord::WORKING)
    }

    /// Where its header is, and its block begins.
    fn header(self) -> *mut Header {
        (self.0.address() - size_of::<Header>()) as *mut Header
    }

    #[inline(always)]
    fn newest(&self) -> &AtomicU64 {
        // SAFETY: its word was published, or made by the caller, and it was not taken back: the
        // reader's call, or that of the successor, has not ended. It is used as an atomic only.
        unsafe { &*(&raw const (*self.header()).newest) }
    }

    #[inline(always)]
    fn words(&self) -> &[AtomicU64] {
        let words = self.0.len().div_ceil(size_of::<u64>());
        // SAFETY: as above; the block is whole lines, so the last word is inside. While anybody may
        // patch it, words are read as atomics, but by the call whose turn it is.
        unsafe { std::slice::from_raw_parts(self.0.address() as *const AtomicU64, words) }
    }

    /// Replaces lines by those of the call at a position, whose turn it is: it saw the newest
    /// version. Nobody is led to the new one yet.
    pub(super) fn patch(self, pool: &mut TransientPool, value: &NewValue<'_>, position: u32) {
        let (at, part) = value.replaced();
        let (from, count) = (at / size_of::<u64>(), part.len().div_ceil(size_of::<u64>()));
        let words = &self.words()[from..from + count];
        let before = self.newest().load(Ordering::Relaxed);
        let record = pool.take(Undo::bytes(count)).cast::<Undo>();
        // SAFETY: the block has room for the record and its words, and nobody else refers to it.
        unsafe {
            let (from, count) = (from as u32, count as u32);
            record.write(Undo { before, position, from, count });
            let old = record.add(1).cast::<u64>();
            for (index, word) in words.iter().enumerate() {
                old.add(index).write(word.load(Ordering::Relaxed));
            }
        }
        // The record first, then the words that it is for.
        self.newest().store(record as u64, Ordering::Release);
        let (whole, rest) = part.as_chunks();
        for (word, bytes) in words.iter().zip(whole) {
            word.store(u64::from_ne_bytes(*bytes), Ordering::Release);
        }
        if !rest.is_empty() {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            words[count - 1].store(u64::from_ne_bytes(last), Ordering::Release);
        }
        // SAFETY: only the call whose turn it is reads or writes the maker.
        unsafe { (&raw mut (*self.header()).maker).write(pool.maker(position, value.changed())) };
        Self::retire_record(pool, before, position);
    }

    /// The call at a position has published a version that is not in the copy, after the newest one
    /// that is.
    pub(super) fn retire(self, pool: &mut TransientPool, successor: u32) {
        Self::retire_record(pool, self.newest().load(Ordering::Relaxed), successor);
        let bytes = size_of::<Header>() + self.0.len();
        pool.retire_block(self.header() as usize, bytes, successor);
    }

    #[inline(always)]
    fn retire_record(pool: &mut TransientPool, record: u64, successor: u32) {
        if record != 0 {
            // SAFETY: it is retired now, so it was not taken back.
            let count = unsafe { Undo::at(record) }.count as usize;
            pool.retire_block(record as usize, Undo::bytes(count), successor);
        }
    }

    /// Copies the version that the call at a position sees, in any turn: words for words, of which
    /// the last may go on behind the value.
    pub(super) fn copy(self, reader: u32, to: &mut [u64]) {
        for (to, word) in to.iter_mut().zip(self.words()) {
            *to = word.load(Ordering::Acquire);
        }
        let mut record = self.newest().load(Ordering::Acquire);
        while record != 0 {
            // SAFETY: the newest record, or one before a record of a call that is not before the
            // reader: those are retired by a call that is not either, so while the reader's call
            // runs they are there.
            let undo = unsafe { Undo::at(record) };
            if undo.position < reader {
                break;
            }
            to[undo.from as usize..][..undo.count as usize].copy_from_slice(undo.old());
            record = undo.before;
        }
    }
}

/// The version that the call at a position sees of a value that is patched meanwhile; for those who
/// have no pool.
pub(crate) fn copy_of(word: ValueWord, reader: u32) -> Option<Vec<u8>> {
    let mut words = vec![0; word.len().div_ceil(size_of::<u64>())];
    WorkingCopy::of(word)?.copy(reader, &mut words);
    Some(super::bytes_of_words(&words)[..word.len()].to_vec())
}

impl TransientPool {
    /// A copy of the version that the call at a position sees, which this worker runs; it stays
    /// until the call has ended. `reader` is that position, or the next one where the call has
    /// published its own version.
    #[inline(never)]
    pub(crate) fn copy_working(&mut self, word: ValueWord, reader: u32, call: u32) -> ValueWord {
        let copy = WorkingCopy::of(word).expect("of a working copy");
        let at = self.block(word.len(), 0, 0);
        // SAFETY: the block is whole lines and begins with a maker, so it has room for whole words.
        let words = unsafe {
            std::slice::from_raw_parts_mut(at.cast(), word.len().div_ceil(size_of::<u64>()))
        };
        copy.copy(reader, words);
        let copied = ValueWord::new(Place::Transient, 0, at as usize, word.len());
        self.retire(copied, call);
        copied
    }

    /// Whoever explores schedules knows a block by one of its addresses.
    #[inline(always)]
    pub(super) fn reads_block(block: usize) {
        reads((block + size_of::<Maker>()) as *const u8);
    }
}
