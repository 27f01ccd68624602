//! Reading: which version a serial id sees, and its bytes.

use std::marker::PhantomData;

use pmem::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use pmem::sync::{Patience, reads};
use storage::format::EPOCH_MAX;
use storage::scan::ScannedRow;
use storage::{EpochNumber, RowLayout, SerialId, TableId};

use super::array::VersionArray;
use super::entry::Versions;
use super::pool::Maker;
use super::{IN_ARRAY, LINE, NO_PLACE, ONLY, RowEntry, ValuePlace, ValueWord, cached};
use crate::contention::lost;
use crate::contention::waits::noting;
use crate::reads::Reads;

/// Polls before a waiting reader yields the processor (O-11: the smallest serial id may need it).
const VERSION_POLLS: u32 = 256;

/// How a reader waits for a pending version of a smaller serial id.
pub(crate) struct Waiter<'s> {
    /// Set when a worker failed: no other may wait for it (O-50).
    pub(crate) stopped: &'s AtomicBool,
    /// Reads that found a version pending.
    pub(crate) waits: u64,
}

/// The engine was stopped by another worker's failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stopped;

impl<'s> Waiter<'s> {
    pub(crate) fn new(stopped: &'s AtomicBool) -> Self {
        Self { stopped, waits: 0 }
    }

    /// The value of a row's cell, once it is written.
    #[inline]
    pub(crate) fn value(
        &mut self,
        entry: &RowEntry,
        cell: &AtomicU64,
    ) -> Result<ValueWord, Stopped> {
        match value(cell) {
            Some(word) => Ok(word),
            None => self.until_written(entry, cell),
        }
    }

    #[cold]
    fn until_written(&mut self, entry: &RowEntry, cell: &AtomicU64) -> Result<ValueWord, Stopped> {
        noting(entry, || self.until(|| value(cell), || Ok(false)))
    }

    /// Waits until something has come about, and does other work meanwhile: what returns
    /// whether there was any.
    #[cold]
    pub(crate) fn until<T>(
        &mut self,
        come_about: impl Fn() -> Option<T>,
        mut meanwhile: impl FnMut() -> Result<bool, Stopped>,
    ) -> Result<T, Stopped> {
        self.waits += 1;
        let mut patience = Patience::new(VERSION_POLLS);
        // When the wait became a long one.
        let mut long_since = None;
        let found = loop {
            if let Some(found) = come_about() {
                break found;
            }
            if meanwhile()? {
                continue;
            }
            if patience.wait() {
                if self.stopped.load(Ordering::Relaxed) {
                    return Err(Stopped);
                }
                long_since.get_or_insert_with(lost::now);
            }
        };
        if let Some(began) = long_since {
            lost::add_since(began);
        }
        Ok(found)
    }
}

/// What a serial id sees of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    /// The value; not one if the row does not exist for the reader.
    pub(crate) word: ValueWord,
    /// Whether the row is not written in this epoch, so that a copy of `word` may be cached.
    pub(crate) untouched: bool,
}

/// A version that has to be written before a reader knows what it sees.
pub(crate) enum Pending<'e> {
    /// The only one of its row.
    Single(&'e AtomicU64),
    /// One of several.
    InArray(VersionArray, usize),
}

impl Pending<'_> {
    /// Where it will be.
    #[inline]
    fn cell(&self) -> &AtomicU64 {
        match self {
            Self::Single(cell) => cell,
            Self::InArray(array, index) => array.cell(*index),
        }
    }

    /// Whether it is there now.
    pub(crate) fn is_written(&self) -> bool {
        value(self.cell()).is_some()
    }
}

impl RowEntry {
    /// The newest version with a smaller serial id (O-06). Waits only for smaller serial ids.
    #[inline(always)]
    pub(crate) fn read(&self, sid: SerialId, waiter: &mut Waiter<'_>) -> Result<Seen, Stopped> {
        loop {
            match self.try_read(sid) {
                Ok(seen) => return Ok(seen),
                Err(pending) => waiter.value(self, pending.cell())?,
            };
        }
    }

    /// The newest version with a smaller serial id: IGNORE is skipped, a tombstone is absence. Or
    /// the version of a smaller serial id that has to be written before that is known.
    #[inline]
    pub(crate) fn try_read(&self, sid: SerialId) -> Result<Seen, Pending<'_>> {
        self.try_read_at(sid, NO_PLACE)
    }

    /// [`RowEntry::try_read`] by who may know its place in the version array.
    #[inline]
    pub(crate) fn try_read_at(&self, sid: SerialId, place: u32) -> Result<Seen, Pending<'_>> {
        let absent = |word: ValueWord| if word.is_value() { word } else { ValueWord::PENDING };
        let seen = |word| Ok(Seen { word: absent(word), untouched: false });
        match self.versions(sid.epoch()) {
            // Inserted later in this epoch, so it has a version: scans meet many of these.
            Versions::Single(..) | Versions::Array(_) if self.birth() > sid => {
                seen(ValueWord::PENDING)
            }
            Versions::None => {
                if let Some(word) = self.cached() {
                    cached::touch(word, sid.epoch());
                    return Ok(Seen { word, untouched: false });
                }
                Ok(Seen { word: absent(self.persistent_version()), untouched: true })
            }
            Versions::Single(writer, cell) if writer < sid => match value(cell) {
                None => Err(Pending::Single(cell)),
                Some(ValueWord::IGNORE) => seen(self.initial_version()),
                Some(word) => seen(word),
            },
            Versions::Single(..) => seen(self.initial_version()),
            Versions::Array(array) => match self.try_read_array(array, sid, place) {
                Ok(word) => seen(word),
                Err((array, index)) => Err(Pending::InArray(array, index)),
            },
        }
    }

    /// [`RowEntry::try_read`] in a version array.
    #[inline(never)]
    fn try_read_array(
        &self,
        array: VersionArray,
        sid: SerialId,
        place: u32,
    ) -> Result<ValueWord, (VersionArray, usize)> {
        for index in (0..array.place(place, sid.position())).rev() {
            match value(array.cell(index)) {
                None => return Err((array, index)),
                Some(ValueWord::IGNORE) => {}
                Some(word) => return Ok(word),
            }
        }
        Ok(self.initial_version())
    }
}

impl RowEntry {
    /// Where a serial id reads to find its version, as far as lines of the entry and of the version
    /// array go: for designs that have these on the device.
    pub(crate) fn search_reads(&self, sid: SerialId) -> impl Iterator<Item = (usize, usize)> {
        let of_array = match self.versions(sid.epoch()) {
            Versions::Array(array) => Some(array.search_reads(sid.position())),
            Versions::None | Versions::Single(..) => None,
        };
        let entry = (std::ptr::from_ref(self).addr(), LINE);
        [entry].into_iter().chain(of_array.into_iter().flatten())
    }

    /// Whether a serial id sees in a row what was there before the epoch.
    #[inline]
    pub(crate) fn is_as_before(
        &self,
        sid: SerialId,
        phase: ReadPhase<'_>,
        waiter: &mut Waiter<'_>,
        reads: &Reads,
    ) -> Result<bool, Stopped> {
        if matches!(self.versions(sid.epoch()), Versions::None) {
            return Ok(true);
        }
        let (seen, before) = (self.read(sid, waiter)?.word, self.initial_version());
        let same_bytes = || {
            [seen, before].into_iter().for_each(|word| word.charge(reads));
            phase.bytes(seen) == phase.bytes(before)
        };
        Ok(seen == before || seen.is_value() == before.is_value() && same_bytes())
    }
}

/// The value of a cell, if it is written.
#[inline]
fn value(cell: &AtomicU64) -> Option<ValueWord> {
    let word = ValueWord(cell.load(Ordering::Acquire));
    (word != ValueWord::PENDING).then_some(word)
}

/// What a call finds of a row that it declared, as far as it was known when the row was fetched: an
/// entry of its access plan. What is known stays true until the call has ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Access {
    /// The version before the call's own, if it is a value. If it is none, it is not known yet, or
    /// the call sees no row.
    pub(crate) seen: ValueWord,
    /// Place of the call's own version in the version array, or one of the constants.
    pub(crate) place: u32,
    /// 1 if `seen` was written in this epoch, else 0. A word, so that there is no padding to copy.
    pub(crate) is_new: u32,
}

impl Access {
    /// Nothing is known.
    pub(crate) const UNKNOWN: Self = Self::of(ValueWord::PENDING, NO_PLACE);

    const fn of(seen: ValueWord, place: u32) -> Self {
        Self { seen, place, is_new: 0 }
    }

    /// What a call sees if the version of another is the newest before it.
    #[inline]
    fn behind(cell: &AtomicU64, initial: ValueWord, place: u32) -> Self {
        match value(cell) {
            None => Self::of(ValueWord::PENDING, place),
            // With one writer this is the initial version; of several another one may have written.
            Some(ValueWord::IGNORE) => Self::of(initial, place),
            Some(seen) => Self { seen, place, is_new: 1 },
        }
    }
}

/// Prefetching, in two steps because a version array has to be there before the place of a value
/// is known. What is asked for are hints; what is found of declared rows is kept.
impl RowEntry {
    /// What a call finds, and the value that it will read, which is worth fetching. Of a row with
    /// a version array, which is asked for, the rest is found by [`RowEntry::plan_in_array`]. The
    /// entry should be there. Where there is a cache, values from before the epoch stay unknown,
    /// because reading one has consequences.
    #[inline(always)]
    pub(crate) fn plan(&self, sid: SerialId, has_cache: bool) -> (Access, ValueWord) {
        let access = match self.versions(sid.epoch()) {
            Versions::None if has_cache => {
                return (Access::UNKNOWN, self.cached().unwrap_or(self.persistent_version()));
            }
            Versions::None => Access::of(self.persistent_version(), NO_PLACE),
            Versions::Single(writer, _) if writer == sid => {
                Access::of(self.initial_version(), ONLY)
            }
            Versions::Single(writer, cell) if writer < sid => {
                Access::behind(cell, self.initial_version(), NO_PLACE)
            }
            Versions::Single(..) => Access::of(self.initial_version(), NO_PLACE),
            Versions::Array(array) => {
                array.prefetch();
                Access::of(ValueWord::PENDING, IN_ARRAY)
            }
        };
        (access, access.seen)
    }

    /// What a call finds of a row with a version array, which should be there. Asks for the value
    /// that it leads to, and for what a final write compares with.
    #[inline(always)]
    pub(crate) fn plan_in_array(&self, sid: SerialId, is_written: bool) -> Access {
        let Versions::Array(array) = self.versions(sid.epoch()) else {
            return Access::UNKNOWN;
        };
        let index = array.lower_bound(sid.position());
        let place = index as u32;
        debug_assert!(
            !is_written || array.sorted().get(index) == Some(&sid.position()),
            "a call that writes a row has a version in its array"
        );
        let is_final = is_written && index + 1 == array.len();
        if index == 0 || is_final {
            self.initial_version().prefetch();
        }
        let Some(before) = index.checked_sub(1) else {
            return Access::of(self.initial_version(), place);
        };
        // An IGNORE says nothing of the versions before it.
        let access = Access::behind(array.cell(before), ValueWord::PENDING, place);
        access.seen.prefetch();
        access
    }

    /// [`RowEntry::try_read`] some time before the value is needed: asks for the lines of what is
    /// seen, or for what has to be there before that is known, and then says nothing. The entry
    /// should be there; the second time, its version array.
    #[inline]
    pub(crate) fn read_prefetched(&self, sid: SerialId, array_is_there: bool) -> Option<Seen> {
        match self.versions(sid.epoch()) {
            Versions::None if let Some(cached) = self.cached() => {
                // Its access is noted beside the value, so when it is read.
                cached.prefetch_head();
                return None;
            }
            Versions::Array(array) if !array_is_there => {
                array.prefetch();
                return None;
            }
            _ => {}
        }
        let seen = self.try_read(sid).ok()?;
        seen.word.prefetch_head();
        Some(seen)
    }
}

/// Permission to look at values: exists while no phase runs that could free or overwrite what
/// readers see.
///
/// Values that a word names stay as they are until the end of the epoch: transient memory is reset,
/// cached versions are freed and persistent slots are reused only in later epochs (O-15, and the
/// choice of slot in the final write). The exception are transient versions with a successor: they
/// stay until the calls have ended that can see them, and bodies get bytes for no longer than their
/// call runs. So bytes may be borrowed for as long as this lives, and it does not outlive what it
/// is made of.
#[derive(Clone, Copy)]
pub(crate) struct ReadPhase<'p> {
    phase: PhantomData<&'p ()>,
}

impl<'p> ReadPhase<'p> {
    /// The values that stay as they are while `_holder` is borrowed.
    #[inline]
    pub(crate) fn of(_holder: &'p impl HoldsValues) -> Self {
        Self { phase: PhantomData }
    }

    /// The same, within this module.
    ///
    /// # Safety
    ///
    /// No value that is looked at may be freed or overwritten as long as this lives.
    // SAFETY: the caller's promise, see above.
    pub(super) unsafe fn begin() -> Self {
        Self { phase: PhantomData }
    }

    /// The bytes of a value.
    #[inline]
    pub(crate) fn bytes(self, word: ValueWord) -> &'p [u8] {
        if !word.is_value() {
            return &[];
        }
        reads(word.address() as *const u8);
        // SAFETY: published value words name initialised bytes, which stay until the phase ends.
        unsafe { std::slice::from_raw_parts(word.address() as *const u8, word.len()) }
    }

    /// Who made a transient value.
    #[inline]
    pub(crate) fn maker(self, word: ValueWord) -> Maker {
        debug_assert!(word.is_transient(), "only transient values say who made them");
        // SAFETY: it precedes every value in the transient pool, and stays as long as the value.
        unsafe { (word.address() as *const Maker).sub(1).read() }
    }

    /// The key of the row at an offset.
    #[inline]
    pub(crate) fn key_at(self, image_base: usize, row: u64) -> &'p [u8] {
        // SAFETY: for offsets of initialised rows only, which the scan and the index yield.
        unsafe { storage::row::key_at(image_base, row) }
    }
}

/// What keeps values from being freed and overwritten: a worker in its epoch, a reader inside the
/// gate, an engine between two epochs, an open.
///
/// # Safety
///
/// While a value of this type is borrowed, what those who have it see of rows is neither freed nor
/// overwritten. Within an epoch, what is borrowed in a step before E7 is not kept beyond it.
// SAFETY: to be promised by each implementation.
pub(crate) unsafe trait HoldsValues {}

/// Holds what a test has made.
#[cfg(test)]
pub(crate) struct TestValues;

#[cfg(test)]
// SAFETY: tests free nothing that they look at.
unsafe impl HoldsValues for TestValues {}

/// The newest version of a row that no call writes, as its head says, and the layout of the row:
/// where the image is that of a snapshot, no version is of an epoch that did not end.
pub(crate) fn newest_version<'t>(
    image_base: usize,
    row: u64,
    layout_of: impl FnOnce(TableId) -> &'t RowLayout,
) -> (ValueWord, &'t RowLayout) {
    // SAFETY: entries in an index belong to initialised rows, which have a version when the epoch
    // of their first writer has ended; no call writes this row.
    let (table, versions) = unsafe { storage::row::head_at(image_base, row) };
    let slot = storage::row::checkpoint_slot(&versions, EpochNumber(EPOCH_MAX));
    let slot = slot.expect("a row that is in an index, and that no call writes, has a version");
    let layout = layout_of(table);
    (persistent_word(image_base, layout, &ScannedRow { row, slot, versions }), layout)
}

/// Where the checkpoint's version of a scanned row is.
pub(crate) fn persistent_word(
    image_base: usize,
    layout: &RowLayout,
    row: &ScannedRow,
) -> ValueWord {
    let pointer = row.pointer();
    let at = layout.value_offset(row.row, row.slot, pointer);
    ValueWord::new(
        ValuePlace::persistent(row.slot),
        image_base + at as usize,
        pointer.value_bytes() as usize,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use storage::{EpochNumber, Position};

    use crate::version::{EntrySlab, KeepPersistent, RowPlace, TransientPool};
    use crate::worker_id::WorkerId;

    /// O-06: for each number of writers, of which one in three wrote nothing and the last ones are
    /// still at it, what every serial id sees. No call may wait for a version that is not smaller:
    /// the engine counts as stopped, so that a wait ends as an error.
    #[test]
    fn o_06_a_reader_sees_the_newest_smaller_version_and_waits_for_no_other() {
        const EPOCH: u64 = 5;
        let at = |position| SerialId::new(EpochNumber(EPOCH), Position(position));
        let word =
            |number: u32| ValueWord::new(ValuePlace::Transient, 16 * (number as usize + 1), 8);
        let stopped = AtomicBool::new(true);
        let mut pool = TransientPool::new(WorkerId(0)).unwrap();
        let (slab, mut ids) = EntrySlab::of_rows(900);
        for writers in 0..40 {
            for written in 0..=writers {
                let entry = slab.get(ids.pop().unwrap());
                entry.initialise(RowPlace::of_two(0), word(1000), SerialId(0));
                for writer in 0..writers {
                    entry.append(at(2 * writer + 1), &mut pool, &mut KeepPersistent);
                }
                let ignored = |writer: u32| writer % 3 == 2;
                for writer in 0..written {
                    let value = if ignored(writer) { ValueWord::IGNORE } else { word(writer) };
                    match entry.versions(EpochNumber(EPOCH)) {
                        Versions::None => unreachable!("it has a writer"),
                        Versions::Single(_, cell) => cell.store(value.0, Ordering::Release),
                        Versions::Array(array) => {
                            array.cell(writer as usize).store(value.0, Ordering::Release);
                        }
                    }
                }
                for reader in 0..2 * writers + 1 {
                    let newest = (0..reader / 2).rev().find(|&w| w >= written || !ignored(w));
                    let expected = match newest {
                        Some(writer) if writer >= written => Err(Stopped),
                        Some(writer) => Ok(word(writer)),
                        None => Ok(word(1000)),
                    };
                    let seen = entry.read(at(reader), &mut Waiter::new(&stopped));
                    assert_eq!(
                        seen.map(|seen| seen.word),
                        expected,
                        "reader {reader}, {writers} writers, {written} done"
                    );
                }
            }
        }
    }
}
