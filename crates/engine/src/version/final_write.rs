//! Publishing a transaction's writes, and the final write of a row (NV 4.1, 4.4, 4.6).
//!
//! A write that is not the row's last of the epoch stays in the transient pool. The owner of the
//! last version makes the newest version that is not IGNORE persistent, under *its* serial id
//! (O-14):
//! 1. it chooses the version slot that is not the checkpoint's (minor collection: a stale inline
//!    version is simply overwritten; a stale external one was freed by the major collector before,
//!    O-33);
//! 2. it caches the value, if there is a cache, and publishes it (O-15);
//! 3. it writes the value, then the header, and flushes;
//! 4. if there is no cache it publishes the value where it lies, together with the transaction's
//!    other ones: stores past the cache are not ordered with others, so readers may be led to them
//!    only after a fence;
//! 5. it keeps the running state hash up: minus the old row, plus the new one (O-48).
//!
//! What of this is left out with which switch of [`Techniques`] is decided here alone.

use pmem::sync::atomic::{AtomicU64, Ordering};
use pmem::{Device, LINE_BYTES, Port};
use storage::format::VersionWords;
use storage::plant::{Plant, planted};
use storage::row::{First, NewVersion};
use storage::{
    LanePool, NewValue, RowLayout, Segments, SerialId, StateHash, ValuePointer, changed_blocks,
    row, row_change, row_hash,
};

use super::array::VersionArray;
use super::entry::Versions;
use super::read::Stopped;
use super::{CachePool, EntrySlab, Place, RowEntry, TransientPool, ValueWord, Waiter};
use crate::index::EntryId;
use crate::stats::WorkCounts;
use crate::techniques::Techniques;

/// A row entry remembers in so many parts of a row whether both slots hold the same ...
const SAME_PARTS: u64 = 16;
/// ... if a half has no more lines than this.
const SAME_LINES_MAX: u64 = 48;

/// What a transaction leaves in one declared version.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Write<'v> {
    /// Nothing.
    Ignore,
    /// The row is deleted.
    Tombstone,
    /// A new value.
    Value(NewValue<'v>),
}

/// Where a version goes: one declared write of one transaction.
pub(crate) struct Publication<'e> {
    pub(crate) id: EntryId,
    /// The key, where all keys have 8 bytes.
    pub(crate) word: u64,
    pub(crate) entry: &'e RowEntry,
    pub(crate) layout: &'e RowLayout,
    pub(crate) sid: SerialId,
}

/// One worker's side of the medium: its port, its lanes of every pool, and what it has to remember
/// until the next checkpoint.
pub(crate) struct Medium<D: Device> {
    pub(crate) port: Port<D>,
    /// Lanes of this worker, by pool.
    pub(crate) lanes: Vec<Vec<LanePool>>,
    /// For each pool, the first lane whose free list may have something to take.
    pub(crate) popping: Vec<usize>,
    /// For each pool, the lane whose bump allocator is in use.
    pub(crate) bumping: Vec<usize>,
    /// Which optimisations to use.
    pub(crate) techniques: Techniques,
    /// Difference to the state hash in this epoch, if it is kept up.
    pub(crate) hash: StateHash,
    /// Difference to the number of rows in this epoch.
    pub(crate) rows: i64,
    /// Rows whose stale external version the major collector frees after the next checkpoint.
    pub(crate) stale: Vec<(EntryId, u32)>,
    /// Rows that do not exist any more (or never did), to be removed after execution (O-18).
    pub(crate) gone: Vec<Gone>,
    /// Final writes of the running transaction that are not published yet.
    pub(crate) hidden: Vec<(EntryId, ValueWord)>,
    /// A value that has to be put together before it is written.
    pub(crate) whole: Vec<u8>,
}

/// A row that leaves the indexes. Its persistent row may never have been written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gone {
    pub(crate) table: u16,
    pub(crate) id: EntryId,
    /// The key, where all keys have 8 bytes.
    pub(crate) word: u64,
}

/// Everything of a worker that publishing touches besides the medium.
pub(crate) struct Publisher<'w, 's> {
    pub(crate) segments: &'s Segments,
    pub(crate) checkpoint_epoch: u64,
    pub(crate) pool: &'w mut TransientPool,
    pub(crate) cache: &'w mut CachePool,
    pub(crate) work: &'w mut WorkCounts,
    pub(crate) waiter: Waiter<'s>,
}

/// The versions of a row that its final write needs to know.
struct Target {
    slot: usize,
    /// The slot holds a version of this checkpoint interval that is overwritten in place.
    in_place: bool,
    words: [VersionWords; 2],
}

impl<D: Device> Medium<D> {
    /// Publishes one declared write. The last writer of a row makes it persistent.
    pub(crate) fn publish(
        &mut self,
        to: &Publication<'_>,
        write: Write<'_>,
        with: &mut Publisher<'_, '_>,
    ) -> Result<(), Stopped> {
        let array;
        let (cell, several) = match to.entry.versions(to.sid.epoch()) {
            Versions::None => unreachable!("published rows were appended to"),
            Versions::Single(writer, cell) => {
                debug_assert_eq!(writer, to.sid);
                with.work.single_write_rows += 1;
                (cell, None)
            }
            Versions::Array(found) => {
                array = found;
                let index = array.lower_bound(to.sid.position() as u32);
                debug_assert_eq!(u64::from(array.sorted()[index]), to.sid.position());
                if !matches!(write, Write::Ignore) && self.techniques.reuse {
                    retire_before(array, index, to.sid, with.pool);
                }
                (array.cell(index), Some((array, index)))
            }
        };
        let is_last = several.is_none_or(|(array, index)| index + 1 == array.len());
        match write {
            Write::Value(value) if is_last => self.persist_hidden(to, value, cell, with),
            Write::Tombstone if is_last => self.bury(to, cell, with),
            Write::Value(value) => {
                with.work.transient_versions += 1;
                let word = with.pool.store(&value, 0, to.sid.position() as u32);
                cell.store(word.0, Ordering::Release);
            }
            Write::Tombstone => {
                with.work.transient_versions += 1;
                cell.store(ValueWord::TOMBSTONE.0, Ordering::Release);
            }
            Write::Ignore => {
                cell.store(ValueWord::IGNORE.0, Ordering::Release);
                with.work.ignored_versions += 1;
                match several {
                    None => self.leave_untouched(to),
                    Some((array, index)) if is_last => self.fall_back(to, array, index, with)?,
                    Some(_) => {}
                }
            }
        }
        Ok(())
    }

    /// The last writer aborted: the newest surviving version of this epoch takes its place, under
    /// its own serial id (NV 4.6, O-14).
    fn fall_back(
        &mut self,
        to: &Publication<'_>,
        array: VersionArray,
        last: usize,
        with: &mut Publisher<'_, '_>,
    ) -> Result<(), Stopped> {
        let first = if self.planted(Plant::IgnoreNotWalkedBack) { last } else { 0 };
        for index in (first..last).rev() {
            let cell = array.cell(index);
            match with.waiter.value(cell)? {
                ValueWord::IGNORE => {}
                ValueWord::TOMBSTONE => {
                    self.bury(to, cell, with);
                    return Ok(());
                }
                word => {
                    let sid = SerialId::new(to.sid.epoch(), u64::from(array.sorted()[index]));
                    // SAFETY: a published transient value, which stays until the epoch ends.
                    let value = unsafe {
                        std::slice::from_raw_parts(word.address() as *const u8, word.len())
                    };
                    // Readers find the transient value, which is the same.
                    self.persist(to, sid, NewValue::whole(value), None, with);
                    return Ok(());
                }
            }
        }
        self.leave_untouched(to);
        Ok(())
    }

    /// No version survived: the row stays as it was, or was never born.
    fn leave_untouched(&mut self, to: &Publication<'_>) {
        if !to.entry.next().is_value() {
            self.gone.push(Gone::of(to));
        }
    }

    /// The final write of a row by the owner of its last version. Unless it was cached, it is
    /// published by [`Medium::reveal`].
    #[inline(always)]
    fn persist_hidden(
        &mut self,
        to: &Publication<'_>,
        value: NewValue<'_>,
        cell: &AtomicU64,
        with: &mut Publisher<'_, '_>,
    ) {
        let persisted = if value.in_one_piece().is_some() || takes_lines(to, &value, with.cache) {
            self.persist(to, to.sid, value, Some(cell), with)
        } else {
            let mut whole = std::mem::take(&mut self.whole);
            whole.clear();
            value.append_to(&mut whole);
            let persisted = self.persist(to, to.sid, NewValue::whole(&whole), Some(cell), with);
            self.whole = whole;
            persisted
        };
        if let Some(word) = persisted {
            self.hidden.push((to.id, word));
        }
    }

    /// Publishes the final writes of a transaction.
    #[inline(always)]
    pub(crate) fn reveal(&mut self, entries: &EntrySlab, epoch: u64) {
        if self.hidden.is_empty() {
            return;
        }
        if self.techniques.past_cache {
            // Ordinary stores come in order with what leads readers to them.
            self.port.order_stores();
        }
        for (id, word) in self.hidden.drain(..) {
            match entries.get(id).versions(epoch) {
                Versions::None => unreachable!("published rows were appended to"),
                Versions::Single(_, cell) => cell.store(word.0, Ordering::Release),
                Versions::Array(array) => {
                    array.cell(array.len() - 1).store(word.0, Ordering::Release);
                }
            }
        }
    }

    /// The final write of a row, whole if there is a cache. If the value is cached it is published
    /// in `cell`; if not, returns where it lies.
    #[inline(always)]
    pub(crate) fn persist(
        &mut self,
        to: &Publication<'_>,
        sid: SerialId,
        value: NewValue<'_>,
        cell: Option<&AtomicU64>,
        with: &mut Publisher<'_, '_>,
    ) -> Option<ValueWord> {
        with.work.persistent_versions += 1;
        let before = to.entry.next();
        if self.port.device().charges_loads() {
            self.charge_reads(to, before, Some(&value));
        }
        let target = before.is_value().then(|| self.choose_slot(to, before, with.checkpoint_epoch));
        let slot = target.as_ref().map_or(0, |target| target.slot);
        let cached = cache(to, slot, sid, value, with);
        if let (Some(word), Some(cell)) = (cached, cell) {
            cell.store(word.0, Ordering::Release);
        }
        let at = match target {
            Some(target) => self.write_update(to, before, &target, (sid, value), with),
            None => self.write_first(to, (sid, value), with),
        };
        let address = self.port.device().image().base() as usize + at as usize;
        let word = ValueWord::new(Place::Medium, slot, address, value.len());
        to.entry.set_next(word);
        cached.is_none().then_some(word)
    }

    /// Charges what the final write of a row, or its removal, reads of the image: the header, the
    /// key if it goes on behind it, and the old value as far as it is compared.
    #[inline(never)]
    fn charge_reads(
        &mut self,
        to: &Publication<'_>,
        before: ValueWord,
        new: Option<&NewValue<'_>>,
    ) {
        let Techniques { state_hash, changed_lines, .. } = self.techniques;
        let row = to.entry.row();
        if before.is_value() {
            self.port.charge_load(row, row::VERSIONS_BYTES);
        }
        if state_hash && !to.layout.has_exact_keys() {
            let key = key_of(self.port.device().as_ref(), to, &[0; 8]);
            let (at, len) = row::key_read(row, key.len() as u64);
            self.port.charge_load(at, len);
        }
        let old = word_before(to, before);
        if !before.is_value() || !old.is_on_medium() {
            return;
        }
        let at = (old.address() - self.port.device().image().base() as usize) as u64;
        match new.filter(|new| new.len() == old.len()) {
            Some(new) if state_hash || changed_lines => {
                for part in new.compared_with(value_before(to, before)) {
                    self.port.charge_load(at + part.start as u64, part.len() as u64);
                }
            }
            // It is hashed as a whole.
            None if state_hash => self.port.charge_load(at, old.len() as u64),
            _ => {}
        }
    }

    /// Writes the first version of a row; returns the offset of its value.
    #[inline]
    fn write_first(
        &mut self,
        to: &Publication<'_>,
        (sid, value): (SerialId, NewValue<'_>),
        with: &mut Publisher<'_, '_>,
    ) -> u64 {
        self.rows += 1;
        let (row, layout) = (to.entry.row(), to.layout);
        let len = value.len() as u64;
        let external = (!layout.is_inline(len)).then(|| self.allocate_value(len, with.segments));
        let exact = to.word.to_be_bytes();
        if self.techniques.state_hash {
            let key = key_of(self.port.device().as_ref(), to, &exact);
            self.hash.add(row_hash(layout.table, key, whole(value)));
        }
        let (lines, past_cache) = (row::ALL_LINES, self.techniques.past_cache);
        let version = NewVersion { slot: 0, sid, value, external, lines, past_cache };
        // SAFETY: the row was created in this epoch and nobody reads its slots before it is
        // published; a fresh pool slot is owned by whoever allocated it.
        unsafe {
            if layout.has_exact_keys() {
                row::write_with_key(&mut self.port, row, layout, &exact, version)
            } else {
                row::write_version(&mut self.port, row, layout, version, First::Yes)
            }
        }
    }

    /// Writes a further version of a row; returns the offset of its value.
    #[inline]
    fn write_update(
        &mut self,
        to: &Publication<'_>,
        before: ValueWord,
        target: &Target,
        (sid, value): (SerialId, NewValue<'_>),
        with: &mut Publisher<'_, '_>,
    ) -> u64 {
        let change = self.compare(to, before, &value);
        let external = self.prepare_place(to, target, value.len() as u64, with);
        let changed = if external.is_some() { row::ALL_LINES } else { change };
        let forget = self.planted(Plant::ForgetLines);
        let lines = lines_to_write(to, target, changed, forget);
        let past_cache = self.techniques.past_cache;
        let version = NewVersion { slot: target.slot, sid, value, external, lines, past_cache };
        // SAFETY: the owner of the row's last version owns the slot that nobody reads (see the
        // module's documentation); a fresh pool slot is owned by whoever allocated it.
        let at = unsafe {
            row::write_version(&mut self.port, to.entry.row(), to.layout, version, First::No)
        };
        self.note_stale(to, target);
        at
    }

    /// The slot that is not the checkpoint's. With one checkpoint an epoch that is the slot that
    /// does not hold the newest version; else, if the newest version is younger than the
    /// checkpoint, its own slot.
    #[inline]
    fn choose_slot(
        &self,
        to: &Publication<'_>,
        before: ValueWord,
        checkpoint_epoch: u64,
    ) -> Target {
        let words = row::versions(self.port.device().as_ref(), to.entry.row());
        let newest = before.slot();
        let in_place = SerialId(words[newest].serial_id).epoch() > checkpoint_epoch;
        let over = in_place || self.planted(Plant::CheckpointSlot);
        Target { slot: if over { newest } else { 1 - newest }, in_place, words }
    }

    #[inline(always)]
    fn planted(&self, plant: Plant) -> bool {
        planted(self.port.device().as_ref(), plant)
    }

    /// Frees what the slot held, where that may be done here, and takes a pool slot if the value
    /// needs one.
    fn prepare_place(
        &mut self,
        to: &Publication<'_>,
        target: &Target,
        len: u64,
        with: &mut Publisher<'_, '_>,
    ) -> Option<u64> {
        let old = target.words[target.slot];
        let old_external = ValuePointer(old.pointer).external_offset();
        if target.in_place {
            // Written since the checkpoint: the crash that reverts its allocation reverts this
            // free.
            if let Some(offset) = old_external {
                self.free_value(offset, ValuePointer(old.pointer).value_bytes(), with.segments);
            }
        } else if old.serial_id != 0 && SerialId(old.serial_id).epoch() <= with.checkpoint_epoch {
            assert!(
                old_external.is_none(),
                "the major collector missed the row at {}",
                to.entry.row()
            );
            with.work.minor_collections += 1;
        }
        (!to.layout.is_inline(len)).then(|| self.allocate_value(len, with.segments))
    }

    /// Remembers a checkpointed external version that became stale with this write.
    fn note_stale(&mut self, to: &Publication<'_>, target: &Target) {
        if target.in_place {
            return;
        }
        let stale = ValuePointer(target.words[1 - target.slot].pointer);
        if stale.external_offset().is_some() {
            self.stale.push((to.id, to.entry.generation()));
        }
    }

    /// The last version of the row is a tombstone: it leaves the state now and the index after
    /// execution.
    fn bury(&mut self, to: &Publication<'_>, cell: &AtomicU64, with: &mut Publisher<'_, '_>) {
        let before = to.entry.next();
        if before.is_value() {
            if self.port.device().charges_loads() {
                self.charge_reads(to, before, None);
            }
            if self.techniques.state_hash {
                let exact = to.word.to_be_bytes();
                let key = key_of(self.port.device().as_ref(), to, &exact);
                self.hash.remove(row_hash(to.layout.table, key, value_before(to, before)));
            }
            self.rows -= 1;
        }
        self.free_values_of(to.entry, with.checkpoint_epoch, with.segments);
        to.entry.set_next(ValueWord::PENDING);
        self.gone.push(Gone::of(to));
        cell.store(ValueWord::TOMBSTONE.0, Ordering::Release);
    }

    /// Frees the external values of a row that is being deleted; reverted by a crash, like the
    /// deletion.
    fn free_values_of(&mut self, entry: &RowEntry, checkpoint_epoch: u64, segments: &Segments) {
        let before = entry.next();
        if !before.is_value() {
            return;
        }
        let words = row::versions(self.port.device().as_ref(), entry.row());
        for (slot, version) in words.iter().enumerate() {
            // The other slot counts only if it is not a leftover of a crash.
            let sid = SerialId(version.serial_id);
            let ours = slot == before.slot() || sid.0 != 0 && sid.epoch() <= checkpoint_epoch;
            let pointer = ValuePointer(version.pointer);
            if let Some(offset) = pointer.external_offset().filter(|_| ours) {
                self.free_value(offset, pointer.value_bytes(), segments);
            }
        }
    }

    /// Compares a row's last version with what it was before this epoch, and makes the state hash
    /// follow, if it is kept up. Returns a bit for each line that must count as changed.
    #[inline]
    fn compare(&mut self, to: &Publication<'_>, before: ValueWord, new: &NewValue<'_>) -> u64 {
        let Techniques { state_hash, changed_lines, .. } = self.techniques;
        if !state_hash {
            let blocks = || changed_blocks(value_before(to, before), new);
            return if changed_lines { blocks() } else { row::ALL_LINES };
        }
        let exact = to.word.to_be_bytes();
        let key = key_of(self.port.device().as_ref(), to, &exact);
        let change = row_change(to.layout.table, key, value_before(to, before), new);
        self.hash.add(change.hash);
        if changed_lines { change.blocks } else { row::ALL_LINES }
    }

    fn free_value(&mut self, offset: u64, len: u64, segments: &Segments) {
        let pool = storage::class_pool(storage::class_of(len)) as usize;
        self.lanes[pool][0]
            .push(&mut self.port, segments, offset)
            .expect("space was reserved before the epoch");
    }

    fn allocate_value(&mut self, len: u64, segments: &Segments) -> u64 {
        self.allocate(storage::class_pool(storage::class_of(len)) as usize, segments)
    }

    /// Takes a slot of a pool: from the free list of any of the worker's lanes, else a fresh one.
    ///
    /// # Panics
    /// If no space was reserved for it, which is a bug (O-43); the engine stops.
    pub(crate) fn allocate(&mut self, pool: usize, segments: &Segments) -> u64 {
        let lanes = &mut self.lanes[pool];
        // Lanes before this one have nothing that may be taken until the next checkpoint or
        // collection.
        let current = &mut self.popping[pool];
        while let Some(lane) = lanes.get_mut(*current) {
            if let Some(offset) = lane.pop(&mut self.port, segments) {
                return offset;
            }
            *current += 1;
        }
        // Room in segments that a lane already has goes first: then a replay, which finds the
        // segments of the run before the crash, needs no more than that run did (O-43).
        let bumping = &mut self.bumping[pool];
        if !lanes[*bumping].has_room() {
            *bumping = lanes.iter().position(LanePool::has_room).unwrap_or(0);
        }
        lanes[*bumping].bump(&mut self.port, segments).expect("space was reserved before the epoch")
    }

    /// Slots may have become available: look through all lanes again.
    pub(crate) fn refill(&mut self) {
        self.popping.fill(0);
    }

    /// Other lanes were dealt to this worker.
    pub(crate) fn lanes_changed(&mut self) {
        self.popping.fill(0);
        self.bumping.fill(0);
    }
}

/// Keeps a copy of a final write, if there is a cache, instead of the one that was there.
#[inline]
fn cache(
    to: &Publication<'_>,
    slot: usize,
    sid: SerialId,
    value: NewValue<'_>,
    with: &mut Publisher<'_, '_>,
) -> Option<ValueWord> {
    if let Some(old) = to.entry.cached() {
        // Only rows of sequences are written without having been claimed.
        to.entry.set_cached(None);
        with.cache.retire(old);
    }
    if !with.cache.is_on() {
        return None;
    }
    let word = with.cache.create(to.id, whole(value), slot, sid.epoch())?;
    to.entry.set_cached(Some(word));
    Some(word)
}

/// Whether a final write can do with an old value and lines that are replaced: where it goes to a
/// place of lines, and what the row was before the epoch has the same length.
#[inline(always)]
fn takes_lines(to: &Publication<'_>, value: &NewValue<'_>, cache: &CachePool) -> bool {
    let before = to.entry.next();
    to.layout.has_line_halves()
        && to.layout.is_inline(value.len() as u64)
        && !cache.is_on()
        && before.is_value()
        && value_before(to, before).len() == value.len()
}

/// A value where all of it has to be at hand.
#[inline(always)]
fn whole(value: NewValue<'_>) -> &[u8] {
    value.in_one_piece().expect("see `takes_lines`")
}

/// What a row was before this epoch; `before` is its newest persistent version.
#[inline(always)]
fn value_before<'e>(to: &Publication<'e>, before: ValueWord) -> &'e [u8] {
    let old = word_before(to, before);
    // SAFETY: the base stays readable until the epoch ends: the final write overwrites only what it
    // does not need.
    unsafe { std::slice::from_raw_parts(old.address() as *const u8, old.len()) }
}

/// Where that is.
#[inline(always)]
fn word_before(to: &Publication<'_>, before: ValueWord) -> ValueWord {
    match to.entry.versions(to.sid.epoch()) {
        Versions::None => before,
        _ => to.entry.base(),
    }
}

/// The key of a row that is being written.
#[inline(always)]
fn key_of<'k, D: Device>(device: &'k D, to: &Publication<'_>, exact: &'k [u8; 8]) -> &'k [u8] {
    if to.layout.has_exact_keys() {
        exact
    } else {
        // SAFETY: the row is initialised and its key never changes.
        unsafe { row::key(device, to.entry.row()) }
    }
}

/// A version has been written, and no IGNORE, so later serial ids do not see the one before. Its
/// memory can be used again when this version's call has ended, and all smaller ones.
#[inline]
fn retire_before(array: VersionArray, index: usize, sid: SerialId, pool: &mut TransientPool) {
    if let Some(before) = index.checked_sub(1) {
        // If it is pending or IGNORE, it has no memory, or its writer did not run yet.
        let word = ValueWord(array.cell(before).load(Ordering::Relaxed));
        if word.is_transient() {
            pool.retire(word, sid.position() as u32);
        }
    }
}

/// Which lines of a value its slot does not hold yet: what `changed` since the version before, and
/// what may differ between the two slots, unless that version itself is overwritten. Remembers in
/// which parts the slots are the same afterwards.
///
/// If any line is unchanged, both versions are inline and of one length, and their halves hold them
/// with zeros up to the end of the last line.
fn lines_to_write(
    to: &Publication<'_>,
    target: &Target,
    changed: u64,
    planted_forget: bool,
) -> u64 {
    let lines = to.layout.half_bytes / LINE_BYTES;
    let known = to.entry.same_parts();
    if changed == row::ALL_LINES || !to.layout.has_line_halves() || lines > SAME_LINES_MAX {
        if known != 0 {
            to.entry.set_same_parts(0);
        }
        return row::ALL_LINES;
    }
    let part_lines = lines.div_ceil(SAME_PARTS);
    let same = lines_of_parts(known, part_lines);
    // What did not change is in both slots now, if it is in the slot that is not written or this
    // slot gets it.
    let same_after = !changed & if target.in_place { same } else { u64::MAX };
    to.entry.set_same_parts(whole_parts(same_after, part_lines));
    if target.in_place || planted_forget { changed } else { changed | !same }
}

/// The lines of these parts.
fn lines_of_parts(parts: u16, part_lines: u64) -> u64 {
    if part_lines == 1 {
        return parts.into();
    }
    let lines = |part| if parts >> part & 1 != 0 { (1_u64 << part_lines) - 1 } else { 0 };
    (0..SAME_PARTS).fold(0, |all, part| all | lines(part) << (part * part_lines))
}

/// The parts all of whose lines are among these.
fn whole_parts(lines: u64, part_lines: u64) -> u16 {
    if part_lines == 1 {
        return lines as u16;
    }
    let whole = (1_u64 << part_lines) - 1;
    let is_whole = |&part: &u64| lines >> (part * part_lines) & whole == whole;
    (0..SAME_PARTS).filter(is_whole).fold(0, |parts, part| parts | 1 << part)
}

impl Gone {
    fn of(to: &Publication<'_>) -> Self {
        Self { table: to.layout.table, id: to.id, word: to.word }
    }
}

/// Prepares the persistent row of a key that is being inserted. The row was just allocated by this
/// worker.
pub(crate) fn initialise_row<D: Device>(
    port: &mut Port<D>,
    at: u64,
    layout: &RowLayout,
    key: &[u8],
) {
    // SAFETY: freshly allocated and not published yet.
    unsafe { row::initialise(port, at, layout, key) }
}

/// Epoch of the version in a slot of a row.
pub(crate) fn version_epoch(image_base: usize, row: u64, slot: usize) -> u64 {
    let word = (image_base + row as usize + slot * 16) as *const AtomicU64;
    // SAFETY: header words of an initialised row, aligned, only accessed as atomics.
    SerialId(unsafe { (*word).load(Ordering::Relaxed) }).epoch()
}

/// Empties the stale slot of a row whose external value was just collected (NV 4.4).
pub(crate) fn clear_stale<D: Device>(port: &mut Port<D>, at: u64, slot: usize) {
    // SAFETY: major collection owns the stale slots of the rows on its list; nobody reads stale
    // versions.
    unsafe { row::clear_version(port, at, slot) }
}
