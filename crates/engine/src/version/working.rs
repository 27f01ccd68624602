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
//! - *Memory.* Only calls up to the one that made it need a record, so it is retired when it is
//!   made, and reclaimed by its own worker. The copy is retired by the first version after it that
//!   is not in it, as all versions are (decision 14).
//!
//! Whole values, tombstones and final writes are never in a copy; the base of the row is never
//! patched (O-105).

use pmem::sync::atomic::{AtomicU64, Ordering};
use pmem::sync::{begin_words, reads, writes};
use storage::NewValue;

use super::pool::{Maker, copy_pieces};
use super::{LINE, Place, TransientPool, ValueWord};

/// Shorter values are copied as a whole: a patch and its undo record would take as many lines.
const BYTES_MIN: usize = 8 * LINE;

/// Precedes the value of a working copy. The maker is that of the newest version, for whose turn it
/// is.
#[repr(C, align(64))]
struct Header {
    /// The newest undo record, as a [`Record`].
    newest: AtomicU64,
    room: [u64; 5],
    maker: Maker,
}

const _: () = assert!(size_of::<Header>() == LINE && LINE.is_multiple_of(align_of::<Maker>()));

/// What a patch has replaced; the old words follow.
#[repr(C, align(16))]
struct Undo {
    /// The record of the version before.
    before: Record,
    /// The first word that it replaced, and how many.
    from: u32,
    count: u32,
}

/// Where an undo record is, in the high 40 bits, and the position of the call that made it; 0 for
/// none. The position is here because whoever is behind it must not look at the record.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Record(u64);

impl Record {
    const NONE: Self = Self(0);
    const POSITION_BITS: u32 = 24;
    /// Addresses have 47 bits.
    const ALIGN: usize = 1 << (47 + Self::POSITION_BITS - u64::BITS);

    fn new(address: usize, position: u32) -> Self {
        debug_assert!(address.is_multiple_of(Self::ALIGN) && position >> Self::POSITION_BITS == 0);
        let place = (address / Self::ALIGN) as u64;
        Self(place << Self::POSITION_BITS | u64::from(position))
    }

    fn address(self) -> usize {
        (self.0 >> Self::POSITION_BITS) as usize * Self::ALIGN
    }

    /// Whether the call at a position does not see what it undoes.
    #[inline(always)]
    fn is_for(self, reader: u32) -> bool {
        self != Self::NONE && self.0 as u32 & ((1 << Self::POSITION_BITS) - 1) >= reader
    }
}

impl Undo {
    /// Bytes of a record of so many words.
    const fn bytes(count: usize) -> usize {
        size_of::<Self>() + count * size_of::<u64>()
    }

    /// The record to which its maker has led.
    ///
    /// # Safety
    /// Its memory was not taken back.
    #[inline(always)]
    unsafe fn at<'u>(record: Record) -> &'u Self {
        reads(record.address() as *const Self);
        // SAFETY: forwarded to the caller; records do not change.
        unsafe { &*(record.address() as *const Self) }
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
        let header = Header { newest: AtomicU64::new(Record::NONE.0), room: [0; 5], maker };
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
        let before = Record(self.newest().load(Ordering::Relaxed));
        let bytes = Undo::bytes(count) + Record::ALIGN - LINE;
        let block = pool.take(bytes) as usize;
        pool.retire_block(block, bytes, position);
        let record = Record::new(block.next_multiple_of(Record::ALIGN), position);
        let undo = record.address() as *mut Undo;
        writes(undo);
        // SAFETY: the block begins a line and has room for the record and its words wherever that
        // begins, and nobody else refers to it.
        unsafe {
            undo.write(Undo { before, from: from as u32, count: count as u32 });
            let old = undo.add(1).cast::<u64>();
            for (index, word) in words.iter().enumerate() {
                old.add(index).write(word.load(Ordering::Relaxed));
            }
        }
        // The record first, then the words that it is for.
        self.newest().store(record.0, Ordering::Release);
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
    }

    /// The call at a position has published a version that is not in the copy, after the newest one
    /// that is.
    pub(super) fn retire(self, pool: &mut TransientPool, successor: u32) {
        let bytes = size_of::<Header>() + self.0.len();
        pool.retire_block(self.header() as usize, bytes, successor);
    }

    /// Copies the version that the call at a position sees, in any turn: words for words, of which
    /// the last may go on behind the value.
    pub(super) fn copy(self, reader: u32, to: &mut [u64]) {
        for (to, word) in to.iter_mut().zip(self.words()) {
            *to = word.load(Ordering::Acquire);
        }
        let mut record = Record(self.newest().load(Ordering::Acquire));
        while record.is_for(reader) {
            // SAFETY: it stays until the calls up to its maker have ended, of which the reader's,
            // which runs, is one.
            let undo = unsafe { Undo::at(record) };
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

}

#[cfg(test)]
mod tests {
    use super::super::ReadPhase;
    use super::*;

    const LEN: usize = 300;

    /// A copy with the version of call 10, and what that is.
    fn begin(pool: &mut TransientPool) -> (ValueWord, Vec<u8>) {
        let base: Vec<u8> = (0..LEN).map(|at| at as u8).collect();
        let lines = [10; LINE];
        let value = NewValue::with_lines(&base, LINE, &lines, 0);
        let mut whole = vec![];
        value.append_to(&mut whole);
        (WorkingCopy::begin(pool, &value, 10), whole)
    }

    /// The call at a position overwrites lines with bytes of its own.
    fn patch(pool: &mut TransientPool, word: ValueWord, position: u32, range: (usize, usize)) {
        let part = vec![position as u8; range.1 - range.0];
        let phase = ReadPhase::begin();
        let changed = phase.maker(word).changed;
        let value = NewValue::with_lines(phase.bytes_in_turn(word), range.0, &part, changed);
        WorkingCopy::of(word).unwrap().patch(pool, &value, position);
    }

    fn seen(word: ValueWord, reader: u32) -> Vec<u8> {
        copy_of(word, reader).expect("a working copy")
    }

    /// Ranges of lines that change in turns: the same ones, overlapping ones, the last and whole.
    const RANGES: [(usize, usize); 7] =
        [(0, 64), (64, 192), (0, 128), (256, LEN), (64, 128), (0, LEN), (192, 256)];

    /// O-104: whoever reads sees the version before it, however many are newer, and the call whose
    /// turn it is sees the newest in place.
    #[test]
    fn o_104_a_reader_between_any_two_writers_sees_the_version_before_it() {
        let mut pool = TransientPool::new(0).unwrap();
        let (word, first) = begin(&mut pool);
        let mut versions = vec![first];
        for (number, range) in RANGES.into_iter().cycle().take(40).enumerate() {
            let position = 20 + 10 * number as u32;
            let mut next = versions.last().unwrap().clone();
            next[range.0..range.1].fill(position as u8);
            patch(&mut pool, word, position, range);
            versions.push(next);
            for (index, version) in versions.iter().enumerate() {
                let written = 10 + 10 * index as u32;
                assert_eq!(&seen(word, written + 1), version, "{number} {index}");
                assert_eq!(&seen(word, written + 10), version, "{number} {index}");
            }
            assert_eq!(ReadPhase::begin().bytes_in_turn(word), versions.last().unwrap());
            assert_eq!(ReadPhase::begin().maker(word).position, position);
        }
    }

    /// O-105, decision 15: the maker of the copy says in which lines it may differ from the base.
    #[test]
    fn o_105_the_mask_of_a_copy_grows_with_its_patches() {
        let mut pool = TransientPool::new(0).unwrap();
        let (word, _) = begin(&mut pool);
        let changed = || ReadPhase::begin().maker(word).changed;
        assert_eq!(changed(), 0b10);
        patch(&mut pool, word, 20, (0, 64));
        assert_eq!(changed(), 0b11);
        patch(&mut pool, word, 30, (256, LEN));
        assert_eq!(changed(), 0b1_0011);
    }

    /// O-15, O-104: an undo record stays until its own call has ended, because none behind that
    /// looks at it, and the copy until that of the first version that is not in it has.
    #[test]
    fn o_15_records_and_copy_are_reclaimed_when_nobody_can_look_at_them() {
        let mut pool = TransientPool::new(0).unwrap();
        let (word, _) = begin(&mut pool);
        patch(&mut pool, word, 20, (0, 64));
        patch(&mut pool, word, 30, (0, 64));
        assert_eq!(pool.take_back(20), 0, "call 20 may look at its own record");
        assert_eq!(seen(word, 20)[0], 0);
        assert_eq!(pool.take_back(21), 1);
        assert_eq!(seen(word, 30)[0], 20);
        assert_eq!(pool.take_back(31), 1);
        assert_eq!((seen(word, 31)[0], seen(word, 99)[0]), (30, 30));
        WorkingCopy::of(word).unwrap().retire(&mut pool, 40);
        assert_eq!(seen(word, 40)[0], 30);
        assert_eq!(pool.take_back(40), 0);
        assert_eq!(pool.take_back(41), 1, "the copy");
    }

    /// O-104: readers at all positions, while others patch.
    #[test]
    fn o_104_readers_and_writers_at_once() {
        let rounds = if cfg!(miri) { 2 } else { 200 };
        for _ in 0..rounds {
            let mut pool = TransientPool::new(0).unwrap();
            let (word, first) = begin(&mut pool);
            let mut versions = vec![first];
            for (number, range) in RANGES.iter().enumerate() {
                let mut next = versions.last().unwrap().clone();
                next[range.0..range.1].fill(20 + 10 * number as u8);
                versions.push(next);
            }
            let published = AtomicU64::new(10);
            std::thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| {
                        let last = 10 * versions.len() as u64;
                        loop {
                            let newest = published.load(Ordering::Acquire);
                            for (index, version) in versions.iter().enumerate() {
                                let written = 10 + 10 * index as u64;
                                if written <= newest {
                                    assert_eq!(&seen(word, written as u32 + 5), version);
                                }
                            }
                            if newest == last {
                                break;
                            }
                        }
                    });
                }
                for (number, range) in RANGES.into_iter().enumerate() {
                    let position = 20 + 10 * number as u32;
                    patch(&mut pool, word, position, range);
                    published.store(position.into(), Ordering::Release);
                }
            });
        }
    }
}

#[cfg(all(test, feature = "loom"))]
mod models {
    use std::sync::Arc;

    use pmem::sync::{model, spawn};

    use super::*;

    /// Two lines, of which the second has one byte: so few words, because each is a step.
    const LEN: usize = LINE + 1;

    fn patch(pool: &mut TransientPool, word: ValueWord, position: u32) {
        let (old, part) = ([0; LEN], [position as u8]);
        let value = NewValue::with_lines(&old, LINE, &part, 0);
        WorkingCopy::of(word).unwrap().patch(pool, &value, position);
    }

    /// O-103, O-104: a reader sees the version before it, whatever of the patches behind it has
    /// become visible, and however its reads come in between.
    #[test]
    fn o_104_a_reader_undoes_what_it_may_have_seen() {
        let schedules = model(Some(3), || {
            let mut pool = TransientPool::new(0).unwrap();
            let value = NewValue::with_lines(&[0; LEN], LINE, &[1], 0);
            let word = WorkingCopy::begin(&mut pool, &value, 1);
            let published = Arc::new(AtomicU64::new(1));
            let _ = published.load(Ordering::Relaxed);
            let says = Arc::clone(&published);
            let thread = spawn(move || {
                for position in [3, 5] {
                    patch(&mut pool, word, position);
                    says.store(position.into(), Ordering::Release);
                }
                pool
            });
            let newest = published.load(Ordering::Acquire) as u32;
            for version in [1, 3, 5].into_iter().filter(|&version| version <= newest) {
                assert_eq!(copy_of(word, version + 1).unwrap()[LINE], version as u8);
            }
            drop(thread.join().unwrap());
        });
        println!("working copy: {schedules} schedules");
        assert!(schedules > 1);
    }
}
