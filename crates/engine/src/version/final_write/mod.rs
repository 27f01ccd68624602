//! The final write of a row by the owner of its last version (NV 4.1, 4.4): the one way by which a
//! value comes to the device.
//! 1. What snapshots still see of the row is kept (O-85), and what feeds of changes tell (O-110).
//! 2. The version slot is chosen that is not the checkpoint's (minor collection: a stale inline
//!    version is simply overwritten; a stale external one was freed by the major collector before,
//!    O-33).
//! 3. The value is cached, if there is a cache (O-15).
//! 4. The state hash follows: minus the old row, plus the new one (O-48).
//! 5. The value is stored, then the header; lines that are in the processor's cache are flushed
//!    before the next fence.
//!
//! Steps 4 and 5 depend on the shape of the table ([`Shape`]), which [`RowStore::write_final`] asks
//! once. Each value comes with a mask of the lines in which it may differ from the row before the
//! epoch ([`NewValue::changed`]): these are compared and hashed, unless it is known that they are
//! what the call replaced; and those that differ are stored, with what the slot lacks besides.

use pmem::{Device, LINE_BYTES};
use storage::lines::{ALL_LINES, LINE, for_each_run, padded_line};
use storage::row::{Content, First, NewVersion};
use storage::{
    EpochNumber, NewValue, RowLayout, SerialId, Shape, ValuePointer, changed_lines, lines_gain,
    only_line_gain, only_line_hash, row, row_change, row_hash, word_gain,
};

use super::row_store::version_epoch;
use super::write::{Publication, Publisher, key_of, value_before};
use super::{RowEntry, RowStore, ValuePlace, ValueWord};

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

impl Target {
    /// Of a row without a version.
    const FIRST: Self = Self { slot: 0, in_place: false };
}

/// Lines that a call replaced in a value.
struct ReplacedLines<'v> {
    at: usize,
    old: &'v [u8],
    new: &'v [u8],
}

/// What a final write leaves for readers.
pub(crate) enum Written {
    /// A copy in the cache.
    Cached(ValueWord),
    /// The value on the device, where it may have to be ordered before readers are led to it: see
    /// [`RowStore::reveal`].
    Stored(ValueWord),
}

impl RowStore {
    /// An epoch begins to execute. Its final writes are plain where nothing is cached, every epoch
    /// ends in a checkpoint, reads of the device cost nothing, and stale inline versions are
    /// overwritten.
    pub(crate) fn begin_final_writes(
        &mut self,
        has_cache: bool,
        checkpoint_epoch: EpochNumber,
        epoch: EpochNumber,
    ) {
        self.are_plain = !has_cache
            && checkpoint_epoch.next() == epoch
            && !self.port.device().charges_loads()
            && self.minor_collection;
    }

    /// The final write of a row.
    #[inline(never)]
    pub(crate) fn write_final(
        &mut self,
        to: &Publication<'_>,
        value: &NewValue<'_>,
        with: &mut Publisher<'_, '_>,
    ) -> Written {
        with.work.persistent_versions += 1;
        self.observe(to, Some(value));
        let before = to.entry.persistent_version();
        if !self.are_plain {
            return self.write_and_cache(to, before, value, with);
        }
        let (target, old) = match before.is_value() {
            true => (self.other_slot(to, before, with), Some(value_before(to))),
            false => (Target::FIRST, None),
        };
        Written::Stored(self.write_value(to, target, old, value, with))
    }

    /// The final write of a row where not all are plain.
    #[inline(never)]
    fn write_and_cache(
        &mut self,
        to: &Publication<'_>,
        before: ValueWord,
        value: &NewValue<'_>,
        with: &mut Publisher<'_, '_>,
    ) -> Written {
        let (target, old) = match before.is_value() {
            true => (self.choose_slot(to, before, with), Some(value_before(to))),
            false => (Target::FIRST, None),
        };
        let cached = self.prepare(to, before, target, value, with);
        let word = self.write_value(to, target, old, value, with);
        cached.map_or(Written::Stored(word), Written::Cached)
    }

    /// Writes a value as the shape of its table wants it.
    #[inline(always)]
    fn write_value(
        &mut self,
        to: &Publication<'_>,
        target: Target,
        old: Option<&[u8]>,
        value: &NewValue<'_>,
        with: &mut Publisher<'_, '_>,
    ) -> ValueWord {
        let at = match (to.layout.shape(), old) {
            (Shape::Line, None) => self.first_line(to, value),
            (Shape::Line, Some(old)) if old.len() == value.len() => {
                self.replace_line(to, target, old, value)
            }
            (Shape::Lines, Some(old))
                if old.len() == value.len()
                    && let Some((at, part)) = value.only_part() =>
            {
                let part = ReplacedLines { at, old: &old[at..at + part.len()], new: part };
                self.replace_lines(to, target, part, value)
            }
            (Shape::Short, Some(old))
                if let (Some(old), Some(new)) = (word_of(old), word_of(value.line(0))) =>
            {
                self.replace_word(to, target, old, new)
            }
            (_, Some(old)) => self.replace_any(to, target, old, value, with),
            (_, None) => self.first_any(to, value, with),
        };
        let address = self.port.device().image().base() as usize + at as usize;
        let word = ValueWord::new(ValuePlace::persistent(target.slot), address, value.len());
        to.entry.set_persistent_version(word);
        word
    }

    /// The slot that does not hold the newest version, where that is the checkpoint's.
    #[inline(always)]
    fn other_slot(
        &self,
        to: &Publication<'_>,
        before: ValueWord,
        with: &mut Publisher<'_, '_>,
    ) -> Target {
        let slot = 1 - before.slot();
        let image_base = self.port.device().image().base() as usize;
        debug_assert!(
            version_epoch(image_base, to.entry.row(), before.slot()) <= with.checkpoint_epoch,
            "the version that is left is the checkpoint's (O-32)"
        );
        let stale = version_epoch(image_base, to.entry.row(), slot);
        // After a crash it may be of the epoch that is replayed.
        let collects = stale != EpochNumber::ZERO && stale <= with.checkpoint_epoch;
        with.work.minor_collections += u64::from(collects);
        Target { slot, in_place: false }
    }

    /// The slot that is not the checkpoint's: the one that does not hold the newest version or, if
    /// that is younger than the checkpoint, its own slot.
    #[inline(always)]
    fn choose_slot(
        &self,
        to: &Publication<'_>,
        before: ValueWord,
        with: &mut Publisher<'_, '_>,
    ) -> Target {
        let newest = before.slot();
        let image_base = self.port.device().image().base() as usize;
        let epoch_of = |slot: usize| version_epoch(image_base, to.entry.row(), slot);
        // A row is written once in an epoch.
        debug_assert!(epoch_of(newest) < to.sid.epoch(), "a row is written once in an epoch");
        let every_epoch = with.checkpoint_epoch.next() == to.sid.epoch();
        let in_place = !every_epoch && epoch_of(newest) > with.checkpoint_epoch;
        let slot = if in_place { newest } else { 1 - newest };
        let stale = epoch_of(slot);
        let collects = !in_place && stale != EpochNumber(0) && stale <= with.checkpoint_epoch;
        with.work.minor_collections += u64::from(collects);
        Target { slot, in_place }
    }

    /// What a final write does before it writes where not all are plain. Returns the cached copy.
    #[inline(never)]
    fn prepare(
        &mut self,
        to: &Publication<'_>,
        before: ValueWord,
        target: Target,
        value: &NewValue<'_>,
        with: &mut Publisher<'_, '_>,
    ) -> Option<ValueWord> {
        self.charge_reads(to, before, Some(value));
        if !self.minor_collection && before.is_value() && !target.in_place {
            // The version before is stale after the next checkpoint.
            self.stale.push((to.id, to.entry.generation()));
        }
        if let Some(old) = to.entry.cached() {
            // Only rows of sequences are written without having been claimed.
            to.entry.set_cached(None);
            with.cache.retire(old);
        }
        if !with.cache.takes_new(to.entry, to.sid.epoch()) {
            return None;
        }
        let whole = value.put_together(&mut self.whole);
        let word = with.cache.create(to.id, whole.bytes(), to.sid.epoch())?;
        to.entry.set_cached(Some(word));
        Some(word)
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

    /// The first version of a row, whose value is a line at most.
    #[inline(always)]
    fn first_line(&mut self, to: &Publication<'_>, value: &NewValue<'_>) -> u64 {
        self.rows += 1;
        let (key, line) = (to.word.to_be_bytes(), padded_line(value.line(0)));
        if self.keeps_hash {
            self.hash.add(only_line_hash(to.layout.table, &key, &line, value.len()));
        }
        let content = Content::Line(&line, value.len());
        self.store(to, Target::FIRST, content, self.first(to, &key))
    }

    /// Another value that is a line at most, of the same length.
    #[inline(always)]
    fn replace_line(
        &mut self,
        to: &Publication<'_>,
        target: Target,
        old: &[u8],
        value: &NewValue<'_>,
    ) -> u64 {
        let line = padded_line(value.line(0));
        if self.keeps_hash {
            let (key, old) = (to.word.to_be_bytes(), padded_line(old));
            self.hash.add(only_line_gain(to.layout.table, &key, &old, &line));
        }
        // The other half has another line now.
        to.entry.set_same_parts(0);
        self.store(to, target, Content::Line(&line, value.len()), First::No)
    }

    /// The same value, but for lines that a call replaced: it is known which they were.
    #[inline(always)]
    fn replace_lines(
        &mut self,
        to: &Publication<'_>,
        target: Target,
        part: ReplacedLines<'_>,
        value: &NewValue<'_>,
    ) -> u64 {
        if self.keeps_hash {
            let key = to.word.to_be_bytes();
            self.hash.add(lines_gain(to.layout.table, &key, part.at, part.old, part.new));
        }
        let lines = lines_to_write(to.entry, to.layout, target.in_place, value.changed());
        self.store(to, target, Content::Lines(value, lines), First::No)
    }

    /// A value that is and stays one word.
    #[inline(always)]
    fn replace_word(&mut self, to: &Publication<'_>, target: Target, old: u64, new: u64) -> u64 {
        if self.keeps_hash {
            let exact = to.word.to_be_bytes();
            let key = key_of(self.port.device().as_ref(), to, &exact);
            self.hash.add(word_gain(to.layout.table, key, old, new));
        }
        self.store(to, target, Content::Word(new), First::No)
    }

    /// Any further version of a row.
    #[inline(never)]
    fn replace_any(
        &mut self,
        to: &Publication<'_>,
        target: Target,
        old: &[u8],
        value: &NewValue<'_>,
        with: &mut Publisher<'_, '_>,
    ) -> u64 {
        let (layout, mut room) = (to.layout, std::mem::take(&mut self.whole));
        let len = value.len() as u64;
        // Where a line of the old value is a line of the new one, lines that replace others will
        // do.
        let has_lines = layout.has_line_halves() && layout.fits_half(len);
        let value = match has_lines && old.len() == value.len() {
            true => *value,
            false => value.put_together(&mut room),
        };
        let changed = self.compare(to, old, &value);
        let external = match layout.may_be_external() {
            true => self.prepare_place(to, target, len, with),
            false => None,
        };
        let changed = if external.is_some() { ALL_LINES } else { changed };
        let lines = lines_to_write(to.entry, layout, target.in_place, changed);
        let at = if has_lines {
            self.store(to, target, Content::Lines(&value, lines), First::No)
        } else {
            self.store(to, target, Content::Bytes(value.bytes(), external), First::No)
        };
        self.whole = room;
        at
    }

    /// How the first version of a row gets its key.
    #[inline(always)]
    fn first<'k>(&self, to: &Publication<'_>, exact: &'k [u8; 8]) -> First<'k> {
        let comes_first = self.keys_come_first.get(to.layout.table.index());
        match to.layout.has_exact_keys() && comes_first.is_none_or(|comes_first| !comes_first) {
            true => First::WithKey(exact),
            false => First::KeyIsThere,
        }
    }

    /// Any first version of a row.
    #[inline(never)]
    fn first_any(
        &mut self,
        to: &Publication<'_>,
        value: &NewValue<'_>,
        with: &mut Publisher<'_, '_>,
    ) -> u64 {
        self.rows += 1;
        let (layout, mut room) = (to.layout, std::mem::take(&mut self.whole));
        let value = value.put_together(&mut room);
        let (bytes, len) = (value.bytes(), value.len() as u64);
        let external = (!layout.fits_alone(len)).then(|| self.allocate_value(len, with.segments));
        let exact = to.word.to_be_bytes();
        if self.keeps_hash {
            let key = key_of(self.port.device().as_ref(), to, &exact);
            self.hash.add(row_hash(layout.table, key, bytes));
        }
        let first = self.first(to, &exact);
        let at = self.store(to, Target::FIRST, Content::Bytes(bytes, external), first);
        self.whole = room;
        at
    }

    /// Stores a version, with its value in the form that is given; where the value is.
    #[inline(always)]
    fn store(
        &mut self,
        to: &Publication<'_>,
        target: Target,
        content: Content<'_>,
        first: First<'_>,
    ) -> u64 {
        let version = NewVersion { slot: target.slot, sid: to.sid, content, first };
        // SAFETY: the owner of the row's last version owns the slot that no worker reads (see
        // `publication.rs`), and a row that was created in this epoch until it is published; a
        // fresh pool slot is owned by the worker that allocated it.
        unsafe { row::write_version(&mut self.port, to.entry.row(), to.layout, &version) }
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

/// A value that is one word.
#[inline(always)]
fn word_of(value: &[u8]) -> Option<u64> {
    value.try_into().ok().map(u64::from_le_bytes)
}

/// Which lines of a value its slot does not hold yet: what `changed` since the version before, and
/// what may differ between the two slots, unless that version itself is overwritten. Remembers in
/// which parts the slots are the same afterwards.
///
/// If any line is unchanged, both versions are inline and of one length, and their halves hold them
/// with zeros up to the end of the last line.
#[inline(always)]
fn lines_to_write(entry: &RowEntry, layout: &RowLayout, in_place: bool, changed: u64) -> u64 {
    if !layout.has_line_halves() {
        return ALL_LINES;
    }
    if layout.has_single_heap() {
        // The version before lies there.
        return changed;
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
