//! Row entries: what DRAM knows of a row, in one cache line.

use pmem::sync::Patience;
use pmem::sync::atomic::{AtomicU64, Ordering};
use storage::format::EPOCH_MAX;
use storage::{EpochNumber, Position, RowLayout, SerialId};

use super::array::VersionArray;
use super::{TransientPool, ValueWord};
use crate::worker_id::{WORKERS_MAX, WorkerId};

/// Polls for the lock of a row before the processor is given up.
const LOCK_POLLS: u32 = 64;

const LOCKED: u64 = 1;
const ARRAY: u64 = 2;
const EPOCH_SHIFT: u32 = 2;
const EPOCH_MASK: u64 = EPOCH_MAX;
const WORKER_SHIFT: u32 = 42;
const WORKER_MASK: u64 = 63;
const SAME_SHIFT: u32 = 48;
const _: () = assert!(EPOCH_MAX << EPOCH_SHIFT < 1 << WORKER_SHIFT && WORKERS_MAX <= 64);
const GENERATION_SHIFT: u32 = 40;
const OVERWRITTEN: u64 = 1 << 39;

/// What DRAM knows of a row. An entry of zeros is unused, or of a row that was not touched yet.
///
/// `state` holds the epoch in which the row was last claimed by a writer: everything about versions
/// is valid only if that is the running epoch (O-16), so nothing has to be reset at the end of an
/// epoch.
#[repr(align(64))]
pub(crate) struct RowEntry {
    /// In which parts the row's two inline halves are the same (16 bits), worker that appended last
    /// (6 bits), epoch of the last claim, whether there is an array, lock.
    state: AtomicU64,
    /// Serial id of the only version, or the version array.
    first: AtomicU64,
    /// Value of the only version. In batch append, from the claim until the array is there: the
    /// appends that are linked to the row.
    value: AtomicU64,
    /// The version before this epoch's: device, cached or transient; 0 if the row did not exist.
    initial: AtomicU64,
    /// The newest persistent version as of the end of the last epoch that wrote it; always on the
    /// device.
    next: AtomicU64,
    /// Offset of the persistent row in 64-byte units (39 bits), whether a final write writes over
    /// the inline value before it, the entry's generation (24 bits).
    row: AtomicU64,
    /// The cached version, if the row was not claimed since it was made.
    cached: AtomicU64,
    /// Smallest serial id that inserted the row (O-08); 0 for rows that recovery found.
    birth: AtomicU64,
}

const _: () = assert!(size_of::<RowEntry>() == 64);

/// A persistent row, as its entry knows it: offset in 64-byte units, and whether it is
/// [overwritten](RowEntry::is_overwritten).
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowPlace(u64);

impl RowPlace {
    #[inline]
    pub(crate) fn new(row: u64, layout: &RowLayout) -> Self {
        debug_assert!(row.is_multiple_of(64) && row / 64 < OVERWRITTEN);
        let overwritten = if layout.has_single_heap() { OVERWRITTEN } else { 0 };
        Self((row / 64) | overwritten)
    }

    /// A row with room for two versions.
    #[cfg(test)]
    pub(crate) fn of_two(row: u64) -> Self {
        Self(row / 64)
    }
}

/// What the first writer of a row in an epoch decides about the version before (called under the
/// row's lock).
pub(crate) trait Claim {
    /// Whether the initial version is `next` itself wherever no version is cached and the row has
    /// room for two.
    fn keeps_persistent(&self) -> bool;

    /// Returns the initial version: `next` itself, the cached version, or a copy where the final
    /// write will overwrite the place of `next`.
    fn initial_version(
        &mut self,
        entry: &RowEntry,
        next: ValueWord,
        pool: &mut TransientPool,
    ) -> ValueWord;
}

/// For tests: the initial version is what is there.
#[cfg(test)]
pub(crate) struct KeepPersistent;

#[cfg(test)]
impl Claim for KeepPersistent {
    fn keeps_persistent(&self) -> bool {
        true
    }

    fn initial_version(
        &mut self,
        _: &RowEntry,
        next: ValueWord,
        _: &mut TransientPool,
    ) -> ValueWord {
        next
    }
}

/// Costs of one append.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct AppendCost {
    pub(crate) new_array: bool,
    pub(crate) moves: usize,
    pub(crate) contended: bool,
    /// The worker that appended to the row before, in this epoch, was another one.
    pub(crate) handed_over: bool,
}

/// A row is claimed already.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Claimed {
    /// By another worker.
    pub(crate) by_other: bool,
}

/// The versions of a row in the running epoch.
pub(crate) enum Versions<'e> {
    /// No call writes it.
    None,
    /// One writer.
    Single(SerialId, &'e AtomicU64),
    /// Several.
    Array(VersionArray),
}

/// The appends of one row: how many, and the index of the newest.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chain {
    pub(super) len: u32,
    pub(super) newest: u32,
}

impl Chain {
    pub(super) fn from_word(word: u64) -> Self {
        Self { len: (word >> 32) as u32, newest: word as u32 }
    }

    pub(super) fn word(self) -> u64 {
        u64::from(self.len) << 32 | u64::from(self.newest)
    }
}

/// A row's lock. Given back even where a claim panics: no worker may spin for one that died
/// (O-50).
struct Locked<'e> {
    entry: &'e RowEntry,
    /// The state to leave.
    state: u64,
}

impl Drop for Locked<'_> {
    #[inline]
    fn drop(&mut self) {
        self.entry.state.store(self.state, Ordering::Release);
    }
}

/// The state of a row without an array to which a worker appended in an epoch, but for what it
/// keeps of the state before.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AppendedBy(u64);

impl AppendedBy {
    /// None did.
    pub(crate) const NOBODY: Self = Self(0);

    pub(crate) fn new(worker: WorkerId, epoch: EpochNumber) -> Self {
        Self(epoch.0 << EPOCH_SHIFT | u64::from(worker.0) << WORKER_SHIFT)
    }

    /// The whole state, given the one before.
    #[inline]
    fn after(self, before: u64) -> u64 {
        self.0 | before >> SAME_SHIFT << SAME_SHIFT
    }

    /// Whether a state is of the same epoch.
    #[inline]
    fn is_of_epoch(self, state: u64) -> bool {
        (self.0 ^ state) & EPOCH_MASK << EPOCH_SHIFT == 0
    }

    /// Whether a state is of the same epoch or of one before.
    fn is_not_before(self, state: u64) -> bool {
        state >> EPOCH_SHIFT & EPOCH_MASK <= self.0 >> EPOCH_SHIFT & EPOCH_MASK
    }

    /// Whether a worker other than this appended last.
    #[inline]
    fn is_of_other(self, state: u64) -> bool {
        (self.0 ^ state) & WORKER_MASK << WORKER_SHIFT != 0
    }
}

impl RowEntry {
    fn lock(&self) -> (Locked<'_>, bool) {
        let mut contended = false;
        let mut patience = Patience::new(LOCK_POLLS);
        loop {
            let state = self.state.load(Ordering::Relaxed);
            let free = state & !LOCKED;
            if state == free
                && self
                    .state
                    .compare_exchange_weak(
                        free,
                        free | LOCKED,
                        Ordering::Acquire,
                        Ordering::Relaxed,
                    )
                    .is_ok()
            {
                return (Locked { entry: self, state: free }, contended);
            }
            contended |= state != free;
            patience.wait();
        }
    }

    /// Adds a pending version (CA 3.2).
    #[inline]
    pub(crate) fn append(
        &self,
        sid: SerialId,
        pool: &mut TransientPool,
        claim: &mut impl Claim,
    ) -> AppendCost {
        let (mut locked, contended) = self.lock();
        let state = locked.state;
        let by = AppendedBy::new(pool.worker, sid.epoch());
        let is_first = !by.is_of_epoch(state);
        debug_assert!(by.is_not_before(state), "no row is claimed in an epoch to come (O-16)");
        let handed_over = !is_first && by.is_of_other(state);
        let mut cost = AppendCost { contended, handed_over, ..AppendCost::default() };
        let mine = by.after(state);
        locked.state = if is_first {
            self.begin_versions(sid, pool, claim);
            mine
        } else if state & ARRAY == 0 {
            let other = SerialId(self.first.load(Ordering::Relaxed));
            let (low, high) = if other < sid { (other, sid) } else { (sid, other) };
            let array = VersionArray::new(pool, low.position(), high.position());
            self.first.store(array.word(), Ordering::Relaxed);
            cost.new_array = true;
            mine | ARRAY
        } else {
            let array = VersionArray::from_word(self.first.load(Ordering::Relaxed));
            let (array, moves) = array.insert(pool, sid.position());
            self.first.store(array.word(), Ordering::Relaxed);
            cost.moves = moves;
            mine | ARRAY
        };
        cost
    }

    /// Adds the row's first pending version of the epoch, or says that there is one already: batch
    /// append (CA 3.3). Who claims a row is the only one who touches its versions until the workers
    /// meet, so there is no lock, and none spins for one that died (O-50).
    #[inline]
    pub(crate) fn claim(
        &self,
        sid: SerialId,
        by: AppendedBy,
        pool: &mut TransientPool,
        claim: &mut impl Claim,
    ) -> Result<(), Claimed> {
        let state = self.state.load(Ordering::Relaxed);
        debug_assert!(by.is_not_before(state), "no row is claimed in an epoch to come (O-16)");
        let claimed = |state| Claimed { by_other: by.is_of_other(state) };
        if by.is_of_epoch(state) {
            return Err(claimed(state));
        }
        // Nothing else changes the state in this step, so a faster worker claimed the row.
        self.state
            .compare_exchange(state, by.after(state), Ordering::Relaxed, Ordering::Relaxed)
            .map_err(claimed)?;
        self.begin_versions(sid, pool, claim);
        Ok(())
    }

    /// The first pending version of the epoch, and what is before it; by who claimed the row.
    #[inline]
    fn begin_versions(&self, sid: SerialId, pool: &mut TransientPool, claim: &mut impl Claim) {
        let next = ValueWord(self.next.load(Ordering::Relaxed));
        let is_kept = claim.keeps_persistent()
            && self.cached.load(Ordering::Relaxed) == 0
            && !self.is_overwritten();
        let initial = if is_kept { next } else { claim.initial_version(self, next, pool) };
        self.initial.store(initial.0, Ordering::Relaxed);
        self.first.store(sid.0, Ordering::Relaxed);
        self.value.store(ValueWord::PENDING.0, Ordering::Relaxed);
    }

    /// Position of the call that claimed the row. In batch append, until the array is there.
    #[inline]
    pub(super) fn claimed(&self) -> Position {
        SerialId(self.first.load(Ordering::Relaxed)).position()
    }

    /// The appends that are linked to the row: none after the claim.
    #[inline]
    pub(super) fn chain(&self) -> Chain {
        Chain::from_word(self.value.load(Ordering::Relaxed))
    }

    /// By the worker that makes the row's array, between the claim and the end of the append step.
    #[inline]
    pub(super) fn set_chain(&self, chain: Chain) {
        self.value.store(chain.word(), Ordering::Relaxed);
    }

    /// Puts the array into the entry; by the worker that made it, so no other touches the entry.
    /// Says whether another worker had claimed the row.
    #[inline]
    pub(super) fn set_array(&self, by: AppendedBy, array: VersionArray) -> bool {
        let state = self.state.load(Ordering::Relaxed);
        debug_assert!(state & ARRAY == 0, "a row has one version array in an epoch");
        debug_assert!(by.is_of_epoch(state), "a row with appends was claimed before");
        self.first.store(array.word(), Ordering::Relaxed);
        self.state.store(by.after(state) | ARRAY, Ordering::Release);
        by.is_of_other(state)
    }

    /// Makes the entry that of a row which this writer creates (insert step), with the first append
    /// to it: no other worker touches its versions before the append step.
    #[inline]
    pub(crate) fn create(&self, row: RowPlace, sid: SerialId, by: AppendedBy) {
        self.initialise_as(by.0, row, ValueWord::PENDING, sid);
        self.first.store(sid.0, Ordering::Relaxed);
        self.value.store(ValueWord::PENDING.0, Ordering::Relaxed);
    }

    /// The versions of the running epoch. After append only.
    #[inline]
    pub(crate) fn versions(&self, epoch: EpochNumber) -> Versions<'_> {
        let state = self.state.load(Ordering::Acquire);
        if state >> EPOCH_SHIFT & EPOCH_MASK != epoch.0 {
            return Versions::None;
        }
        let first = self.first.load(Ordering::Relaxed);
        if state & ARRAY == 0 {
            Versions::Single(SerialId(first), &self.value)
        } else {
            Versions::Array(VersionArray::from_word(first))
        }
    }

    /// The version of a serial id, of a row that has no other one. After append only.
    #[inline]
    pub(super) fn only_version(&self, sid: SerialId) -> &AtomicU64 {
        let versions = || self.versions(sid.epoch());
        debug_assert!(matches!(versions(), Versions::Single(writer, _) if writer == sid), "O-101");
        &self.value
    }

    /// The memory that the row's versions take: the entry, and the version array, if there is one.
    /// After append only.
    pub(crate) fn version_memory(&self, epoch: EpochNumber) -> impl Iterator<Item = (usize, u64)> {
        let array = match self.versions(epoch) {
            Versions::Array(array) => Some(array.memory()),
            Versions::None | Versions::Single(..) => None,
        };
        [(std::ptr::from_ref(self).addr(), 64)].into_iter().chain(array)
    }

    /// How many versions the running epoch has. After append only.
    pub(crate) fn version_count(&self, epoch: EpochNumber) -> usize {
        match self.versions(epoch) {
            Versions::None => 0,
            Versions::Single(..) => 1,
            Versions::Array(array) => array.len(),
        }
    }

    /// A bit for each sixteenth of the row's inline halves that is known to be the same in both.
    #[inline]
    pub(crate) fn same_parts(&self) -> u16 {
        (self.state.load(Ordering::Relaxed) >> SAME_SHIFT) as u16
    }

    /// Set with the final write, by its writer: nothing else changes the state in execution.
    #[inline]
    pub(crate) fn set_same_parts(&self, parts: u16) {
        let state = self.state.load(Ordering::Relaxed) & ((1 << SAME_SHIFT) - 1);
        self.state.store(state | u64::from(parts) << SAME_SHIFT, Ordering::Relaxed);
    }

    /// The version before the running epoch's, of a row that is written in it.
    #[inline]
    pub(crate) fn initial_version(&self) -> ValueWord {
        ValueWord(self.initial.load(Ordering::Relaxed))
    }

    /// The newest persistent version; not a value if the row does not exist. Its serial id is in
    /// the header, for readers beside the running epoch too, unless it is the row's first.
    #[inline]
    pub(crate) fn persistent_version(&self) -> ValueWord {
        ValueWord(self.next.load(Ordering::Acquire))
    }

    pub(crate) fn set_persistent_version(&self, word: ValueWord) {
        debug_assert!(
            !word.is_value() || word.is_persistent(),
            "the version that an epoch leaves is on the device"
        );
        self.next.store(word.0, Ordering::Release);
    }

    /// Offset of the persistent row.
    #[inline]
    pub(crate) fn row(&self) -> u64 {
        (self.row.load(Ordering::Relaxed) & (OVERWRITTEN - 1)) * 64
    }

    /// Whether a final write writes over the inline value before it: the row has room for one
    /// ([`RowLayout::has_single_heap`]).
    #[inline]
    pub(crate) fn is_overwritten(&self) -> bool {
        self.row.load(Ordering::Relaxed) & OVERWRITTEN != 0
    }

    /// How often the entry was used for a row before: tells lists of ids whether they still mean
    /// this row.
    pub(crate) fn generation(&self) -> u32 {
        (self.row.load(Ordering::Relaxed) >> GENERATION_SHIFT) as u32
    }

    /// The cached version.
    #[inline]
    pub(crate) fn cached(&self) -> Option<ValueWord> {
        let word = ValueWord(self.cached.load(Ordering::Acquire));
        word.is_value().then_some(word)
    }

    pub(crate) fn set_cached(&self, word: Option<ValueWord>) {
        debug_assert!(word.is_none_or(ValueWord::is_cached), "a cached version is in the cache");
        self.cached.store(word.map_or(0, |w| w.0), Ordering::Release);
    }

    /// Publishes a cached version where there is none; false if another worker was faster.
    pub(crate) fn install_cached(&self, word: ValueWord) -> bool {
        self.cached.compare_exchange(0, word.0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Smallest serial id that inserted the row.
    #[inline]
    pub(crate) fn birth(&self) -> SerialId {
        SerialId(self.birth.load(Ordering::Relaxed))
    }

    /// Another inserter of the same epoch (insert step; O-08).
    #[inline]
    pub(crate) fn born_by(&self, sid: SerialId) {
        self.birth.fetch_min(sid.0, Ordering::Relaxed);
    }

    /// Makes the entry that of a row. `next` is not a value for a row that is being inserted.
    pub(crate) fn initialise(&self, row: RowPlace, next: ValueWord, birth: SerialId) {
        self.initialise_as(0, row, next, birth);
    }

    #[inline]
    fn initialise_as(&self, state: u64, row: RowPlace, next: ValueWord, birth: SerialId) {
        let generation = self.row.load(Ordering::Relaxed) >> GENERATION_SHIFT;
        self.state.store(state, Ordering::Relaxed);
        self.initial.store(next.0, Ordering::Relaxed);
        self.next.store(next.0, Ordering::Relaxed);
        self.cached.store(0, Ordering::Relaxed);
        self.birth.store(birth.0, Ordering::Relaxed);
        self.row.store(row.0 | generation << GENERATION_SHIFT, Ordering::Relaxed);
    }

    /// Whether the entry knows its row. Otherwise no call has written the row since the store was
    /// opened, or the entry was let go, and [`RowEntry::fill`] comes first.
    #[inline]
    pub(crate) fn is_filled(&self) -> bool {
        self.row.load(Ordering::Acquire) != 0
    }

    /// Makes an entry of zeros that of its row, whose newest version is `next`. Several threads may
    /// do so at once: all of them find the same, and none of them changes what another has done
    /// with the entry since, because a row that is claimed had its entry filled before (E8), by
    /// threads that have met since.
    pub(crate) fn fill(&self, row: RowPlace, next: ValueWord) {
        debug_assert!(row.0 & (OVERWRITTEN - 1) > 0);
        debug_assert!(next.is_value(), "a row that is in an index and not new has a value");
        let _ = self.next.compare_exchange(0, next.0, Ordering::Relaxed, Ordering::Relaxed);
        let _ = self.row.compare_exchange(0, row.0, Ordering::Release, Ordering::Relaxed);
    }

    /// Whether nothing is in the entry that [`RowEntry::fill`] would not find again, where no list
    /// names rows by their generations: no cached version, and no row that the running epoch has
    /// made, which has no version yet. Rows of sequences are made without a claim. No call has
    /// claimed another row.
    pub(super) fn can_be_filled_again(&self, epoch: EpochNumber) -> bool {
        self.cached.load(Ordering::Relaxed) == 0 && self.birth().epoch() != epoch
    }

    /// The row is deleted; lists that still name the entry see another generation.
    pub(super) fn retire(&self) {
        let row = self.row.load(Ordering::Relaxed);
        self.row.store(row.wrapping_add(1 << GENERATION_SHIFT), Ordering::Relaxed);
        self.next.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::super::EntrySlab;
    use super::*;
    use storage::EpochNumber;
    use storage::Position;

    #[test]
    fn a_row_knows_which_worker_appended_last_whatever_else_its_state_holds() {
        let (slab, ids) = EntrySlab::of_rows(1);
        let entry = slab.get(ids[0]);
        entry.initialise(RowPlace::of_two(0), ValueWord::PENDING, SerialId(0));
        entry.set_same_parts(0xf00f);
        let mut pools = [0, 63].map(|number| TransientPool::new(WorkerId(number)).unwrap());
        let mut position = 0;
        for epoch in [1, 2, EPOCH_MAX] {
            for (pool, handed_over) in [(1, false), (1, false), (0, true), (1, true)] {
                position += 1;
                let sid = SerialId::new(EpochNumber(epoch), Position(position));
                let cost = entry.append(sid, &mut pools[pool], &mut KeepPersistent);
                assert_eq!(cost.handed_over, handed_over);
            }
            assert_eq!(entry.same_parts(), 0xf00f);
            let versions = entry.versions(EpochNumber(epoch));
            assert!(matches!(versions, Versions::Array(array) if array.len() == 4));
        }
    }
}
