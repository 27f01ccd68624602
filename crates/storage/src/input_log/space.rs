//! Which segments are free, and what the others are held for. DRAM only: recovery finds it out
//! again.
//!
//! Invariants: a segment is free or in exactly one holding; a holding gives its segments back only
//! when it is released or abandoned (O-23); `promised` is the sum of the promises of all holdings,
//! and as long as no promise is exceeded there are at least that many free segments (O-43).
//! Beside them [`RESERVE_SEGMENTS`] segments stay free that no epoch may take.

use super::format::Kind;
use super::holdings::{Holding, Holdings};
use crate::ids::EpochNumber;

/// Segments for the records that may come when epochs have filled the log: the verdicts on an
/// epoch, and the record that takes the place of the one before it, be it verdicts or program.
pub const RESERVE_SEGMENTS: u32 = 2;

/// Neighbouring segments that were allocated together.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) first: u32,
    pub(super) len: u32,
}

/// A set of free segments that gives out low ones first.
#[derive(Debug, Default)]
pub(super) struct FreeMap {
    words: Vec<u64>,
    total: u32,
    free: u32,
    /// No word before this one has a free segment.
    lowest_word: usize,
}

impl FreeMap {
    /// Adds free segments at the end.
    pub(super) fn grow(&mut self, total: u32) {
        assert!(total >= self.total, "a log that grows has no fewer segments");
        self.words.resize(total.div_ceil(64) as usize, 0);
        for segment in self.total..total {
            self.words[segment as usize / 64] |= 1 << (segment % 64);
        }
        // The lowest word stays: it is that of a segment which was there, and these come behind it.
        self.free += total - self.total;
        self.total = total;
        assert!(self.free <= self.total, "no more segments are free than there are");
    }

    /// The last segments were given back, of which all are free.
    pub(super) fn shrink(&mut self, total: u32) {
        assert!(total <= self.total, "a log that becomes shorter has {total} segments");
        for segment in (total..self.total).rev() {
            self.remove(segment);
        }
        self.words.truncate(total.div_ceil(64) as usize);
        self.lowest_word = self.lowest_word.min(self.words.len());
        self.total = total;
    }

    /// The last segment that is not free, and one more; 0 if all are free.
    pub(super) fn end_of_use(&self) -> u32 {
        for (at, word) in self.words.iter().enumerate().rev() {
            let there = (self.total - at as u32 * 64).min(64);
            let used = !word & (u64::MAX >> (64 - there));
            if used != 0 {
                return at as u32 * 64 + 64 - used.leading_zeros();
            }
        }
        0
    }

    pub(super) fn contains(&self, segment: u32) -> bool {
        segment < self.total && self.words[segment as usize / 64] >> (segment % 64) & 1 == 1
    }

    pub(super) fn insert(&mut self, segment: u32) {
        assert!(segment < self.total, "segment {segment} is inside the log");
        assert!(!self.contains(segment), "segment {segment} is freed once");
        self.words[segment as usize / 64] |= 1 << (segment % 64);
        self.lowest_word = self.lowest_word.min(segment as usize / 64);
        self.free += 1;
    }

    pub(super) fn remove(&mut self, segment: u32) {
        assert!(self.contains(segment), "segment {segment} is allocated once");
        self.words[segment as usize / 64] &= !(1 << (segment % 64));
        self.free -= 1;
    }

    /// Takes the lowest free segment and up to `max - 1` neighbours that follow it.
    pub(super) fn take_run(&mut self, max: u32) -> Option<Run> {
        let run = self.lowest_run(max)?;
        (run.first..run.first + run.len).for_each(|segment| self.remove(segment));
        Some(run)
    }

    /// The lowest free segment and up to `max - 1` neighbours that follow it.
    pub(super) fn lowest_run(&mut self, max: u32) -> Option<Run> {
        assert!(max > 0, "a run has a segment");
        let found = self.words[self.lowest_word..].iter().position(|word| *word != 0)?;
        self.lowest_word += found;
        let bit = self.words[self.lowest_word].trailing_zeros();
        let first = self.lowest_word as u32 * 64 + bit;
        let len = (1..max).find(|more| !self.contains(first + more)).unwrap_or(max);
        Some(Run { first, len })
    }
}

/// The state behind the log's lock.
#[derive(Debug, Default)]
pub(super) struct Space {
    pub(super) free: FreeMap,
    pub(super) holdings: Holdings,
    /// Lists of released holdings, kept for the next ones.
    spare: Vec<Vec<u32>>,
    promised: u32,
    /// Most segments that were in use since epochs were released.
    peak: u32,
    pub(super) attempt_next: u64,
    /// Newest epoch whose commit record was written; at least `released`.
    pub(super) committed: EpochNumber,
    /// Largest timestamp of an epoch that was found in the log or committed since.
    pub(super) timestamp_ns: u64,
    /// Newest epoch that was made durable; at least `released`.
    pub(super) durable: EpochNumber,
    /// Newest epoch whose log is not needed any more.
    pub(super) released: EpochNumber,
    /// Free segments whose headers must be erased before anything is written.
    pub(super) leftovers: Vec<u32>,
}

impl Space {
    /// Starts a holding with an attempt number of its own.
    pub(super) fn hold(&mut self, kind: Kind, epoch: EpochNumber) -> u64 {
        let attempt = self.attempt_next;
        assert!(epoch > self.released, "epoch {epoch} is released");
        let mut holding = Holding::new(kind, epoch, attempt);
        holding.segments = self.spare.pop().unwrap_or_default();
        self.attempt_next += 1;
        self.holdings.push(holding);
        attempt
    }

    /// The epoch that was begun and not committed yet.
    ///
    /// # Panics
    /// If there is none: a bug of the caller.
    pub(super) fn open_epoch(&mut self, epoch: EpochNumber) -> &mut Holding {
        let found = self.holdings.open_epoch(epoch);
        found.unwrap_or_else(|| panic!("epoch {epoch} was not begun, or is committed or abandoned"))
    }

    /// The newest record of deferred calls of an epoch.
    pub(super) fn deferred_calls(&self, epoch: EpochNumber) -> Option<&Holding> {
        self.holdings.deferred_calls(epoch)
    }

    /// Free segments that a holding of this kind may have and that are not promised.
    pub(super) fn surplus(&self, kind: Kind) -> u32 {
        self.free.free.saturating_sub(self.promised + self.reserved_from(kind))
    }

    /// How many free segments more there must be, so that `segments` are surplus.
    pub(super) fn missing(&self, kind: Kind, segments: u64) -> u64 {
        let wanted = segments.saturating_add(u64::from(self.promised + self.reserved_from(kind)));
        wanted.saturating_sub(u64::from(self.free.free))
    }

    /// What is left of the reserve, if it is not for this kind.
    fn reserved_from(&self, kind: Kind) -> u32 {
        if matches!(kind, Kind::Verdict | Kind::Program) {
            return 0;
        }
        RESERVE_SEGMENTS.saturating_sub(self.holdings.verdict_segments())
    }

    pub(super) fn total(&self) -> u32 {
        self.free.total
    }

    pub(super) fn in_use(&self) -> u32 {
        self.free.total - self.free.free
    }

    /// Promises segments to an open epoch: for itself, and for the record of deferred calls that it
    /// may hand over.
    pub(super) fn promise(&mut self, epoch: EpochNumber, own: u32, deferred_calls: u32) {
        assert!(own + deferred_calls <= self.surplus(Kind::Stream), "what is promised is there");
        let holding = self.open_epoch(epoch);
        assert!(holding.promised == 0, "epoch {epoch} is promised its space once");
        holding.promised += own;
        holding.promised_deferred_bytes += deferred_calls;
        self.promised += own + deferred_calls;
    }

    /// Takes up to `max` neighbouring segments that the holding fills: from its promise, and then
    /// from the surplus. `None` if there is neither.
    pub(super) fn take(&mut self, attempt: u64, max: u32) -> Option<Run> {
        let max = max.min(self.allowed(attempt));
        if max == 0 {
            return None;
        }
        let run = self.free.take_run(max)?;
        assert!(run.len >= 1, "a free segment was found");
        assert!(run.len <= max, "a run is no longer than was asked for");
        let holding = self.holding(attempt);
        let of_promise = holding.promised.min(run.len);
        holding.promised -= of_promise;
        self.promised -= of_promise;
        assert!(self.promised <= self.free.free, "what is promised is free");
        self.peak = self.peak.max(self.in_use());
        self.holdings.add_segments(attempt, run.first..run.first + run.len);
        Some(run)
    }

    /// As [`Space::take`], if the lowest free segments are so many neighbours.
    pub(super) fn take_in_one(&mut self, attempt: u64, count: u32) -> Option<Run> {
        let is_there = self.free.lowest_run(count).is_some_and(|run| run.len == count);
        if is_there && count <= self.allowed(attempt) { self.take(attempt, count) } else { None }
    }

    /// Most segments that a holding may take.
    fn allowed(&mut self, attempt: u64) -> u32 {
        let Holding { kind, promised, .. } = *self.holding(attempt);
        self.surplus(kind) + promised
    }

    /// Gives back segments that were allocated but not written.
    pub(super) fn give_back(&mut self, attempt: u64, run: Run) {
        for segment in run.first..run.first + run.len {
            let was_held = self.holdings.remove_segment(attempt, segment);
            assert!(was_held, "a segment goes back to where it came from");
            self.free.insert(segment);
        }
    }

    /// The streams and the commit record are written: what they did not take is free for others.
    pub(super) fn close(&mut self, epoch: EpochNumber) -> &mut Holding {
        let unused = std::mem::take(&mut self.open_epoch(epoch).promised);
        assert!(unused <= self.promised, "promise of epoch {epoch} is one of all promises");
        self.promised -= unused;
        let holding = self.open_epoch(epoch);
        holding.committed = true;
        holding
    }

    /// Dispatch what the epochs up to `epoch` were promised for their record of deferred calls into
    /// free space.
    pub(super) fn forget_deferred_promises(&mut self, epoch: EpochNumber) {
        for promised in self.holdings.promised_deferred_up_to(epoch) {
            let forgotten = std::mem::take(promised);
            assert!(forgotten <= self.promised, "the promise is one of all promises");
            self.promised -= forgotten;
        }
    }

    /// Hands the promise that `epoch - 1` has for a record of deferred calls to the holding of that
    /// record of deferred calls.
    pub(super) fn inherit_deferred_promise(&mut self, epoch: EpochNumber, attempt: u64) {
        let promised = self.holdings.promised_deferred(epoch.previous());
        let inherited = promised.map_or(0, std::mem::take);
        let holding = self.holding(attempt);
        assert!(holding.kind == Kind::Deferred, "a {:?} inherits no promise", holding.kind);
        holding.promised += inherited;
    }

    /// Gives up what a record of deferred calls was promised beyond what it took.
    pub(super) fn close_deferred_record(&mut self, attempt: u64) -> &mut Holding {
        let holding = self.holding(attempt);
        let Holding { kind, committed, .. } = *holding;
        assert!(kind == Kind::Deferred, "a {kind:?} is no record of deferred calls");
        assert!(!committed, "a record of deferred calls is closed once");
        holding.committed = true;
        let promised = std::mem::take(&mut holding.promised);
        assert!(promised <= self.promised, "its promise is one of all promises");
        self.promised -= promised;
        self.holding(attempt)
    }

    /// A record that belongs to no stream is written.
    pub(super) fn close_record(&mut self, attempt: u64) {
        let holding = self.holding(attempt);
        assert!(!holding.committed, "a record is closed once");
        holding.committed = true;
    }

    /// Frees all records of deferred calls of an epoch.
    pub(super) fn drop_deferred_records(&mut self, epoch: EpochNumber) {
        let removed = self.holdings.remove_deferred(epoch);
        removed.into_iter().for_each(|holding| self.free_segments(holding));
    }

    /// Frees everything that a holding has.
    pub(super) fn drop_holding(&mut self, attempt: u64) {
        let removed = self.holdings.remove(attempt);
        self.free_segments(removed.unwrap_or_else(|| is_over(attempt)));
    }

    fn free_segments(&mut self, mut holding: Holding) {
        let promised = holding.promised + holding.promised_deferred_bytes;
        assert!(promised <= self.promised, "promises of a holding are among all promises");
        self.promised -= promised;
        for segment in holding.segments.drain(..) {
            self.free.insert(segment);
        }
        self.spare.push(holding.segments);
    }

    /// Frees the logs and records of deferred calls of all epochs up to `epoch`.
    pub(super) fn release(&mut self, epoch: EpochNumber) {
        for holding in self.holdings.remove_up_to(epoch) {
            let Holding { committed, epoch, .. } = holding;
            assert!(committed, "epoch {epoch} is committed before it is released");
            self.free_segments(holding);
        }
        self.released = self.released.max(epoch);
        self.committed = self.committed.max(epoch);
        self.durable = self.durable.max(epoch);
        assert!(self.released <= self.durable, "what is released is durable");
        assert!(self.durable <= self.committed, "what is durable is committed");
    }

    /// Most segments that were in use since this was asked last.
    pub(super) fn take_peak(&mut self) -> u32 {
        let in_use = self.in_use();
        std::mem::replace(&mut self.peak, in_use).max(in_use)
    }

    /// The number of segments of the shortest log that has all that are in use or promised, the
    /// reserve, and at least so many.
    pub(super) fn end_with(&self, kept: u32) -> u32 {
        let more = self.promised + RESERVE_SEGMENTS;
        let end = self.free.end_of_use().max(kept).max(self.in_use() + more);
        end.min(self.total())
    }

    /// The last segments were given back.
    pub(super) fn shrink(&mut self, total: u32) {
        self.free.shrink(total);
        assert!(self.promised <= self.free.free, "what is promised stays");
    }

    pub(super) fn kind(&self, attempt: u64) -> Kind {
        self.holdings.get(attempt).unwrap_or_else(|| is_over(attempt)).kind
    }

    fn holding(&mut self, attempt: u64) -> &mut Holding {
        self.holdings.get_mut(attempt).unwrap_or_else(|| is_over(attempt))
    }
}

fn is_over(attempt: u64) -> ! {
    panic!("attempt {attempt} to log an epoch is over")
}
