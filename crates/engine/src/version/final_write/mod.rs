//! The final write of a row by the owner of its last version (NV 4.1, 4.4):
//! 1. it chooses the version slot that is not the checkpoint's (minor collection: a stale inline
//!    version is simply overwritten; a stale external one was freed by the major collector before,
//!    O-33);
//! 2. it caches the value, if there is a cache, and publishes it (O-15);
//! 3. it keeps the running state hash up: minus the old row, plus the new one (O-48);
//! 4. it writes the value, then the header, and flushes.
//!
//! Each value comes with a mask of the lines in which it may differ from the row before the epoch
//! ([`NewValue::changed`]): these are compared and hashed, and those that differ are written, with
//! what the slot lacks besides.

use pmem::sync::atomic::{AtomicU64, Ordering};
use pmem::{Device, LINE_BYTES};
use storage::lines::{ALL_LINES, LINE, for_each_run};
use storage::row::{First, NewVersion};
use storage::{
    NewValue, RowLayout, SerialId, Shape, ValuePointer, changed_lines, row, row_change, row_hash,
    word_gain,
};

use super::row_store::version_epoch;
use super::write::{Publication, Publisher, key_of, value_before};
use super::{LastVersion, Place, RowEntry, RowStore, ValueWord};

/// A row entry remembers in so many parts of a row whether both slots hold the same ...
const SAME_PARTS: u64 = 16;
/// ... if a half has no more lines than this.
const SAME_LINES_MAX: u64 = 48;

/// Where the final write of a row goes.
#[derive(Clone, Copy)]
struct Target {
    slot: usize,
    /// The slot holds a version of this checkpoint interval that is overwritten in place.
    in_place: bool,
}

impl<D: Device> RowStore<D> {
    /// The final write of a row. If the value is cached it is published in `cell`; if not, returns
    /// where it lies.
    #[inline(always)]
    pub(crate) fn persist(
        &mut self,
        to: &Publication<'_>,
        sid: SerialId,
        value: &NewValue<'_>,
        cell: Option<&AtomicU64>,
        with: &mut Publisher<'_, '_>,
    ) -> Option<ValueWord> {
        if to.layout.shape() == Shape::Line
            && self.writes_by_shape(with.cache.is_on(), with.checkpoint_epoch, sid.epoch())
        {
            let &Publication { entry, layout, word, .. } = to;
            let last = LastVersion { entry, layout, word, sid };
            let word = self.persist_line(&last, to.initial, value.line(0), with.work);
            if word.is_some() {
                return word;
            }
        }
        let before = to.entry.persistent_version();
        if value.in_one_piece().is_some() || takes_lines(to, value, before, with) {
            return self.persist_value(to, (sid, value), before, cell, with);
        }
        let mut whole = std::mem::take(&mut self.whole);
        whole.clear();
        value.append_to(&mut whole);
        let value = NewValue::changed_in(&whole, value.changed());
        let persisted = self.persist_value(to, (sid, &value), before, cell, with);
        self.whole = whole;
        persisted
    }

    #[inline(always)]
    fn persist_value(
        &mut self,
        to: &Publication<'_>,
        (sid, value): (SerialId, &NewValue<'_>),
        before: ValueWord,
        cell: Option<&AtomicU64>,
        with: &mut Publisher<'_, '_>,
    ) -> Option<ValueWord> {
        with.work.persistent_versions += 1;
        self.keep_before_image(to.entry, to.layout, to.word);
        self.charge_reads(to, before, Some(value));
        let target = before.is_value().then(|| self.choose_slot(to, before, sid, with));
        if !self.minor_collection && target.is_some_and(|target| !target.in_place) {
            // The version before is stale after the next checkpoint.
            self.stale.push((to.id, to.entry.generation()));
        }
        let slot = target.map_or(0, |target| target.slot);
        let cached = cache(to, sid, value, with);
        if let (Some(word), Some(cell)) = (cached, cell) {
            cell.store(word.0, Ordering::Release);
        }
        let at = match target {
            Some(target) => self.write_update(to, target, (sid, value), with),
            None => self.write_first(to, (sid, value), with),
        };
        let address = self.port.device().image().base() as usize + at as usize;
        let word = ValueWord::new(Place::persistent(slot), address, value.len());
        to.entry.set_persistent_version(word);
        cached.is_none().then_some(word)
    }

    /// Charges what the final write of a row, or its removal, reads of the image: the header, the
    /// key if it goes on behind it, and the old value as far as it is compared.
    #[inline(always)]
    pub(super) fn charge_reads(
        &mut self,
        to: &Publication<'_>,
        before: ValueWord,
        new: Option<&NewValue<'_>>,
    ) {
        if self.port.device().charges_loads() {
            self.charge_all_reads(to, before, new);
        }
    }

    #[inline(never)]
    fn charge_all_reads(
        &mut self,
        to: &Publication<'_>,
        before: ValueWord,
        new: Option<&NewValue<'_>>,
    ) {
        let row = to.entry.row();
        if before.is_value() {
            self.port.charge_load(row, row::VERSIONS_BYTES);
        }
        if self.keeps_hash && !to.layout.has_exact_keys() {
            let key = key_of(self.port.device().as_ref(), to, &[0; 8]);
            let (at, len) = row::key_read(row, key.len() as u64);
            self.port.charge_load(at, len);
        }
        let old = to.initial;
        // What is inline in a row of one line came with its header.
        let is_in_header = to.layout.is_one_line() && to.layout.fits_half(old.len() as u64);
        if !before.is_value() || !old.is_persistent() || is_in_header {
            return;
        }
        let at = (old.address() - self.port.device().image().base() as usize) as u64;
        match new.filter(|new| new.len() == old.len()) {
            Some(new) => for_each_run(new.changed(), new.len().div_ceil(LINE), |from, to| {
                let end = new.len().min(to * LINE);
                self.port.charge_load(at + (from * LINE) as u64, (end - from * LINE) as u64);
            }),
            // It is hashed as a whole.
            None if self.keeps_hash => self.port.charge_load(at, old.len() as u64),
            None => {}
        }
    }

    /// Writes the first version of a row; returns the offset of its value.
    #[inline(never)]
    fn write_first(
        &mut self,
        to: &Publication<'_>,
        (sid, value): (SerialId, &NewValue<'_>),
        with: &mut Publisher<'_, '_>,
    ) -> u64 {
        self.rows += 1;
        let (row, layout, value) = (to.entry.row(), to.layout, whole(value));
        let len = value.len() as u64;
        let external = (!layout.fits_alone(len)).then(|| self.allocate_value(len, with.segments));
        let exact = to.word.to_be_bytes();
        if self.keeps_hash {
            let key = key_of(self.port.device().as_ref(), to, &exact);
            self.hash.add(row_hash(layout.table, key, value));
        }
        let version = NewVersion { slot: 0, sid, value, external };
        // SAFETY: the row was created in this epoch and no worker reads its slots before it is
        // published; a fresh pool slot is owned by the worker that allocated it.
        unsafe {
            if layout.has_exact_keys() {
                row::write_with_key(&mut self.port, row, layout, &exact, version)
            } else {
                row::write_version(&mut self.port, row, layout, version, First::Yes)
            }
        }
    }

    /// Writes a further version of a row; returns the offset of its value.
    #[inline(always)]
    fn write_update(
        &mut self,
        to: &Publication<'_>,
        target: Target,
        (sid, value): (SerialId, &NewValue<'_>),
        with: &mut Publisher<'_, '_>,
    ) -> u64 {
        let (row, layout, old) = (to.entry.row(), to.layout, value_before(to));
        if layout.has_short_halves()
            && let (Ok(old), Ok(new)) = (old.try_into(), whole(value).try_into())
        {
            let (old, new) = (u64::from_le_bytes(old), u64::from_le_bytes(new));
            return self.write_word(to, (target.slot, sid), old, new);
        }
        let changed = self.compare(to, old, value);
        let external = if layout.may_be_external() {
            self.prepare_place(to, target, value.len() as u64, with)
        } else {
            None
        };
        let changed = if external.is_some() { ALL_LINES } else { changed };
        let lines = lines_to_write(to.entry, layout, target.in_place, changed);
        // SAFETY: the owner of the row's last version owns the slot that no worker reads (see
        // `publication.rs`); a fresh pool slot is owned by the worker that allocated it.
        unsafe {
            if layout.has_line_halves() && external.is_none() {
                let version = (target.slot, sid);
                row::write_changed_lines(&mut self.port, row, layout, version, value, lines)
            } else {
                let value = whole(value);
                let version = NewVersion { slot: target.slot, sid, value, external };
                row::write_version(&mut self.port, row, layout, version, First::No)
            }
        }
    }

    /// [`RowStore::write_update`] of a value that is and stays one word.
    #[inline(always)]
    fn write_word(
        &mut self,
        to: &Publication<'_>,
        version: (usize, SerialId),
        old: u64,
        new: u64,
    ) -> u64 {
        if self.keeps_hash {
            let exact = to.word.to_be_bytes();
            let key = key_of(self.port.device().as_ref(), to, &exact);
            self.hash.add(word_gain(to.layout.table, key, old, new));
        }
        // SAFETY: as in `write_update`.
        unsafe { row::write_word(&mut self.port, to.entry.row(), to.layout, version, new) }
    }

    /// The slot that is not the checkpoint's. With one checkpoint an epoch that is the slot that
    /// does not hold the newest version; else, if the newest version is younger than the
    /// checkpoint, its own slot.
    #[inline(always)]
    fn choose_slot(
        &self,
        to: &Publication<'_>,
        before: ValueWord,
        sid: SerialId,
        with: &mut Publisher<'_, '_>,
    ) -> Target {
        let newest = before.slot();
        let image_base = self.port.device().image().base() as usize;
        let epoch_of = |slot: usize| version_epoch(image_base, to.entry.row(), slot);
        // A row is written once in an epoch.
        let every_epoch = with.checkpoint_epoch + 1 == sid.epoch();
        let in_place = !every_epoch && epoch_of(newest) > with.checkpoint_epoch;
        let slot = if in_place { newest } else { 1 - newest };
        let stale = epoch_of(slot);
        let collects = !in_place && stale != 0 && stale <= with.checkpoint_epoch;
        with.work.minor_collections += u64::from(collects);
        Target { slot, in_place }
    }

    /// Frees what the slot held, where that may be done here, takes a pool slot if the value does
    /// not fit into the row beside the other version, and remembers a checkpointed external version
    /// that becomes stale with this write.
    #[inline(never)]
    fn prepare_place(
        &mut self,
        to: &Publication<'_>,
        target: Target,
        len: u64,
        with: &mut Publisher<'_, '_>,
    ) -> Option<u64> {
        let words = row::versions(self.port.device().as_ref(), to.entry.row());
        let (old, kept) = (words[target.slot], ValuePointer(words[1 - target.slot].pointer));
        let old_external = ValuePointer(old.pointer).external_offset();
        if target.in_place {
            // Written since the checkpoint: the crash that reverts its allocation reverts this
            // free.
            if let Some(offset) = old_external {
                self.free_value(offset, ValuePointer(old.pointer).value_bytes(), with.segments);
            }
        } else {
            let is_stale =
                old.serial_id != 0 && SerialId(old.serial_id).epoch() <= with.checkpoint_epoch;
            assert!(
                !is_stale || old_external.is_none(),
                "the major collector missed the row at {}",
                to.entry.row()
            );
            if kept.external_offset().is_some() && self.minor_collection {
                self.stale.push((to.id, to.entry.generation()));
            }
        }
        // The other slot holds the checkpoint's version, or nothing: that of a row that was born
        // since then and is overwritten in its place (O-32).
        let is_inline = to.layout.fits_beside(target.slot, len, kept);
        (!is_inline).then(|| self.allocate_value(len, with.segments))
    }

    /// Compares a row's last version with what it was before this epoch, and makes the state hash
    /// follow, if it is maintained. Returns the lines that differ.
    #[inline(always)]
    fn compare(&mut self, to: &Publication<'_>, old: &[u8], new: &NewValue<'_>) -> u64 {
        if !self.keeps_hash {
            return changed_lines(old, new);
        }
        let exact = to.word.to_be_bytes();
        let key = key_of(self.port.device().as_ref(), to, &exact);
        let change = row_change(to.layout.table, key, old, new);
        self.hash.add(change.hash);
        change.lines
    }
}

/// Keeps a copy of a final write, if there is a cache, instead of the one that was there.
#[inline(always)]
fn cache(
    to: &Publication<'_>,
    sid: SerialId,
    value: &NewValue<'_>,
    with: &mut Publisher<'_, '_>,
) -> Option<ValueWord> {
    if let Some(old) = to.entry.cached() {
        // Only rows of sequences are written without having been claimed.
        to.entry.set_cached(None);
        with.cache.retire(old);
    }
    if !with.cache.takes_new(to.entry, sid.epoch()) {
        return None;
    }
    let word = with.cache.create(to.id, whole(value), sid.epoch())?;
    to.entry.set_cached(Some(word));
    Some(word)
}

/// Whether a final write can do with an old value and lines that are replaced: where it goes to a
/// place of lines, and what the row was before the epoch has the same length.
#[inline(always)]
fn takes_lines(
    to: &Publication<'_>,
    value: &NewValue<'_>,
    before: ValueWord,
    with: &Publisher<'_, '_>,
) -> bool {
    to.layout.has_line_halves()
        && to.layout.fits_half(value.len() as u64)
        && !with.cache.is_on()
        && before.is_value()
        && value_before(to).len() == value.len()
}

/// A value where all of it has to be at hand.
#[inline(always)]
fn whole<'v>(value: &NewValue<'v>) -> &'v [u8] {
    value.in_one_piece().expect("see `takes_lines`")
}

/// Which lines of a value its slot does not hold yet: what `changed` since the version before, and
/// what may differ between the two slots, unless that version itself is overwritten. Remembers in
/// which parts the slots are the same afterwards.
///
/// If any line is unchanged, both versions are inline and of one length, and their halves hold them
/// with zeros up to the end of the last line.
#[inline(always)]
pub(super) fn lines_to_write(
    entry: &RowEntry,
    layout: &RowLayout,
    in_place: bool,
    changed: u64,
) -> u64 {
    if !layout.has_line_halves() {
        return ALL_LINES;
    }
    let lines = layout.half_bytes / LINE_BYTES;
    let known = entry.same_parts();
    if changed == ALL_LINES || lines > SAME_LINES_MAX {
        if known != 0 {
            entry.set_same_parts(0);
        }
        return ALL_LINES;
    }
    let part_lines = if lines <= SAME_PARTS { 1 } else { lines.div_ceil(SAME_PARTS) };
    let same = lines_of_parts(known, part_lines);
    // What did not change is in both slots now, if it is in the slot that is not written or this
    // slot gets it.
    let same_after = !changed & if in_place { same } else { u64::MAX };
    entry.set_same_parts(whole_parts(same_after, part_lines));
    if in_place { changed } else { changed | !same }
}

/// The lines of these parts.
#[inline(always)]
fn lines_of_parts(parts: u16, part_lines: u64) -> u64 {
    if part_lines == 1 { parts.into() } else { lines_of_long_parts(parts, part_lines) }
}

#[inline(never)]
fn lines_of_long_parts(parts: u16, part_lines: u64) -> u64 {
    let lines = |part| if parts >> part & 1 != 0 { (1_u64 << part_lines) - 1 } else { 0 };
    (0..SAME_PARTS).fold(0, |all, part| all | lines(part) << (part * part_lines))
}

/// The parts all of whose lines are among these.
#[inline(always)]
fn whole_parts(lines: u64, part_lines: u64) -> u16 {
    if part_lines == 1 { lines as u16 } else { whole_long_parts(lines, part_lines) }
}

#[inline(never)]
fn whole_long_parts(lines: u64, part_lines: u64) -> u16 {
    let whole = (1_u64 << part_lines) - 1;
    let is_whole = |&part: &u64| lines >> (part * part_lines) & whole == whole;
    (0..SAME_PARTS).filter(is_whole).fold(0, |parts, part| parts | 1 << part)
}

#[cfg(test)]
mod tests;
