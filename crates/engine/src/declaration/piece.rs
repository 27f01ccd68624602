//! Pieces of calls: which rows are theirs, how far they are, and what they came to.

use pmem::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::Span;

/// How far a piece is: 0 as long as it is not known whether its call commits.
const COMMITTED: u32 = 1;
const ABORTED: u32 = 2;
/// It has run; above [`LEN_SHIFT`] is how many bytes its result has.
const DONE: u32 = 3;
const LEN_SHIFT: u32 = 8;

/// Words of a result.
const WORDS: usize = 5;

/// What a piece came to, for its call and for the pieces with larger numbers: a number, or up to
/// [`PieceResult::BYTES_MAX`] bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PieceResult {
    words: [u64; WORDS],
    len: u8,
}

impl PieceResult {
    /// Most bytes that a result has.
    pub const BYTES_MAX: usize = 8 * WORDS;

    /// Nothing.
    pub const NONE: Self = Self { words: [0; WORDS], len: 0 };

    /// A result of bytes; `None` if they are too many.
    pub fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let mut result = Self { len: u8::try_from(bytes.len()).ok()?, ..Self::NONE };
        if bytes.len() > Self::BYTES_MAX {
            return None;
        }
        for (word, part) in result.words.iter_mut().zip(bytes.chunks(8)) {
            let mut whole = [0; 8];
            whole[..part.len()].copy_from_slice(part);
            *word = u64::from_le_bytes(whole);
        }
        Some(result)
    }

    /// Passes its bytes on.
    pub fn with_bytes<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
        let mut bytes = [0; Self::BYTES_MAX];
        for (part, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(self.words) {
            *part = word.to_le_bytes();
        }
        then(&bytes[..usize::from(self.len)])
    }

    /// Its bytes as little-endian words, with zeros behind them.
    pub fn words(&self) -> &[u64; WORDS] {
        &self.words
    }
}

impl From<u64> for PieceResult {
    fn from(number: u64) -> Self {
        [number].into()
    }
}

impl<const N: usize> From<[u64; N]> for PieceResult {
    fn from(from: [u64; N]) -> Self {
        const { assert!(N <= WORDS) };
        let mut words = [0; WORDS];
        words[..N].copy_from_slice(&from);
        Self { words, len: 8 * N as u8 }
    }
}

/// A piece of a call: it writes one row that may be contended, and then runs apart from the rest
/// (CA 3.4), and others that nothing else of the call writes.
#[derive(Debug)]
pub(crate) struct PieceState {
    /// The key of the row that may be contended, among all that the worker's calls declared.
    pub(crate) declared: u32,
    /// An estimate of its work.
    pub(crate) weight: u32,
    /// The row is contended: the piece is in the queue of a worker, not part of its call.
    pub(crate) is_split: bool,
    /// Its other keys, in `Declarations::piece_keys`.
    pub(crate) keys: Span,
    /// Rows of its ranges, in `Declarations::piece_members`, once the append step has found them.
    pub(crate) members: Span,
    progress: AtomicU32,
    result: [AtomicU64; WORDS],
}

impl PieceState {
    /// A piece whose further keys begin at a place of the list.
    pub(crate) fn new(declared: u32, weight: u32, keys_from: usize) -> Self {
        Self {
            declared,
            weight,
            is_split: false,
            keys: Span::up_to(keys_from, keys_from),
            members: Span::EMPTY,
            progress: AtomicU32::new(0),
            result: [const { AtomicU64::new(0) }; WORDS],
        }
    }

    /// Whether the call commits, if that is known.
    pub(crate) fn commits(&self) -> Option<bool> {
        match self.progress.load(Ordering::Acquire) {
            0 => None,
            progress => Some(progress != ABORTED),
        }
    }

    /// The call tells whether it commits. It may say so again.
    pub(crate) fn decide(&self, commits: bool) {
        debug_assert!(self.commits() != Some(!commits), "whether a call commits is decided once");
        if self.commits().is_none() {
            let progress = if commits { COMMITTED } else { ABORTED };
            self.progress.store(progress, Ordering::Release);
        }
    }

    /// It was run, with this result.
    pub(crate) fn finish(&self, result: &PieceResult) {
        let words = usize::from(result.len).div_ceil(8);
        for (word, &value) in self.result.iter().zip(&result.words[..words]) {
            word.store(value, Ordering::Relaxed);
        }
        let progress = DONE | u32::from(result.len) << LEN_SHIFT;
        // Release: who sees it sees the words.
        self.progress.store(progress, Ordering::Release);
    }

    /// Whether it was run.
    pub(crate) fn is_done(&self) -> bool {
        self.progress.load(Ordering::Acquire) & DONE == DONE
    }

    /// What it came to, if it was run.
    pub(crate) fn result(&self) -> Option<PieceResult> {
        let progress = self.progress.load(Ordering::Acquire);
        if progress & DONE != DONE {
            return None;
        }
        let len = (progress >> LEN_SHIFT) as u8;
        let mut result = PieceResult { len, ..PieceResult::NONE };
        let words = usize::from(len).div_ceil(8);
        for (word, value) in result.words[..words].iter_mut().zip(&self.result) {
            *word = value.load(Ordering::Relaxed);
        }
        Some(result)
    }
}

#[cfg(all(test, not(any(feature = "loom", feature = "shuttle"))))]
mod tests {
    use super::*;

    #[test]
    fn a_result_of_any_length_comes_back() {
        for len in 0..=PieceResult::BYTES_MAX {
            let bytes: Vec<u8> = (1..=len as u8).collect();
            let piece = PieceState::new(0, 1, 0);
            assert_eq!(piece.result(), None);
            piece.decide(true);
            assert_eq!((piece.result(), piece.commits()), (None, Some(true)));
            piece.finish(&PieceResult::of_bytes(&bytes).unwrap());
            let result = piece.result().unwrap();
            result.with_bytes(|came| assert_eq!(came, bytes));
            assert_eq!(piece.commits(), Some(true));
        }
        assert_eq!(PieceResult::of_bytes(&[0; PieceResult::BYTES_MAX + 1]), None);
        assert_eq!(PieceResult::from(7).words()[0], 7);
    }

    #[test]
    fn a_piece_of_a_call_that_aborted_has_nothing_as_its_result() {
        let piece = PieceState::new(0, 1, 0);
        piece.decide(false);
        assert!(!piece.is_done());
        piece.finish(&PieceResult::NONE);
        assert_eq!(piece.result(), Some(PieceResult::NONE));
    }
}
