//! Final writes by the shape of the table ([`Shape`]): lines of a long row that is changed in part,
//! a value that is one line, the first one included, and a word.
//!
//! Each does what `final_write.rs` does for any value, with fewer branches: the row has keys
//! and values of a fixed kind; nothing is cached; and each epoch ends in a
//! checkpoint, so that the slot is the one that is not the newest, and nothing is freed. What
//! changed is known, and not compared.

use pmem::Device;
use storage::lines::padded_line;
use storage::{
    NewValue, RowLayout, SerialId, Shape, lines_gain, only_line_gain, only_line_hash, row,
    word_gain,
};

use super::final_write::lines_to_write;
use super::row_store::version_epoch;
use super::write::Hidden;
use super::{Place, ReadPhase, RowEntry, RowStore, ValueWord};
use crate::stats::WorkCounts;

/// The last version of a row in this epoch.
pub(crate) struct LastVersion<'e> {
    pub(crate) entry: &'e RowEntry,
    pub(crate) layout: &'e RowLayout,
    /// The key.
    pub(crate) word: u64,
    pub(crate) sid: SerialId,
}

impl LastVersion<'_> {
    fn key(&self) -> [u8; 8] {
        self.word.to_be_bytes()
    }
}

/// The bytes before this epoch, if there is a row; where the version before is on the device, as it
/// is where nothing is cached.
#[inline(always)]
fn bytes_before<'e>(initial: ValueWord) -> Option<&'e [u8]> {
    initial.is_persistent().then(|| ReadPhase::begin().bytes(initial))
}

impl<D: Device> RowStore<D> {
    /// Whether the epoch after a checkpoint may write by shape at all.
    pub(crate) fn writes_by_shape(
        &self,
        has_cache: bool,
        checkpoint_epoch: u64,
        epoch: u64,
    ) -> bool {
        !has_cache
            && checkpoint_epoch + 1 == epoch
            && !self.port.device().charges_loads()
            && self.minor_collection
            && !self.design.is_all_nvmm()
    }

    /// The only version of a row replaces lines that follow each other: `part` stands from `at` on.
    /// False if the row has another shape; nothing has happened then.
    #[inline(always)]
    pub(crate) fn persist_part(
        &mut self,
        to: &LastVersion<'_>,
        initial: ValueWord,
        (at, part): (usize, &[u8]),
        work: &mut WorkCounts,
    ) -> bool {
        let word = match (to.layout.shape(), bytes_before(initial)) {
            (Shape::Lines, Some(old)) if !part.is_empty() => {
                self.replace_lines(to, old, (at, part), work)
            }
            // All of the value.
            (Shape::Line, Some(old)) if part.len() == old.len() => {
                self.replace_line(to, old, part, work)
            }
            _ => return false,
        };
        self.hide(to, word, work);
        true
    }

    /// The only version of a row is another value. False if the row has another shape; nothing has
    /// happened then.
    #[inline(always)]
    pub(crate) fn persist_whole(
        &mut self,
        to: &LastVersion<'_>,
        initial: ValueWord,
        new: &[u8],
        work: &mut WorkCounts,
    ) -> bool {
        let word = match to.layout.shape() {
            Shape::Line => self.persist_line(to, initial, new, work),
            Shape::Short => self.persist_word(to, initial, new, work),
            Shape::Lines | Shape::Any => None,
        };
        let Some(word) = word else { return false };
        self.hide(to, word, work);
        true
    }

    /// Readers are led to the only version of a row by [`RowStore::reveal`].
    #[inline(always)]
    fn hide(&mut self, to: &LastVersion<'_>, word: ValueWord, work: &mut WorkCounts) {
        work.single_write_rows += 1;
        self.hidden.push(Hidden { cell: to.entry.only_version(to.sid), word });
    }

    /// The final write of a value that is one line, if it has the length of the one before, or is
    /// the first one of its row.
    #[inline(always)]
    pub(super) fn persist_line(
        &mut self,
        to: &LastVersion<'_>,
        initial: ValueWord,
        new: &[u8],
        work: &mut WorkCounts,
    ) -> Option<ValueWord> {
        if !to.entry.persistent_version().is_value() {
            return Some(self.first_line(to, new, work));
        }
        let old = bytes_before(initial).filter(|old| old.len() == new.len())?;
        Some(self.replace_line(to, old, new, work))
    }

    #[inline(always)]
    fn persist_word(
        &mut self,
        to: &LastVersion<'_>,
        initial: ValueWord,
        new: &[u8],
        work: &mut WorkCounts,
    ) -> Option<ValueWord> {
        let [old, new] = [bytes_before(initial)?, new].map(|value| value.try_into().ok());
        Some(self.replace_word(to, (u64::from_le_bytes(old?), u64::from_le_bytes(new?)), work))
    }

    #[inline(never)]
    fn replace_lines(
        &mut self,
        to: &LastVersion<'_>,
        old: &[u8],
        (at, part): (usize, &[u8]),
        work: &mut WorkCounts,
    ) -> ValueWord {
        let (row, slot) = self.begin_by_shape(to, work);
        if self.keeps_hash {
            let old_part = &old[at..at + part.len()];
            self.hash.add(lines_gain(to.layout.table, &to.key(), at, old_part, part));
        }
        let value = NewValue::with_lines(old, at, part, 0);
        let lacking = lines_to_write(to.entry, to.layout, false, value.changed());
        // SAFETY: the owner of the row's only version owns the slot that no worker reads (see
        // `publication.rs`).
        let at = unsafe {
            let version = (slot, to.sid);
            row::write_changed_lines(&mut self.port, row, to.layout, version, &value, lacking)
        };
        self.end_by_shape(to, slot, at, old.len())
    }

    #[inline(never)]
    fn replace_line(
        &mut self,
        to: &LastVersion<'_>,
        old: &[u8],
        new: &[u8],
        work: &mut WorkCounts,
    ) -> ValueWord {
        let (row, slot) = self.begin_by_shape(to, work);
        let line = padded_line(new);
        if self.keeps_hash {
            let old = padded_line(old);
            self.hash.add(only_line_gain(to.layout.table, &to.key(), &old, &line));
        }
        // The other half has another line now.
        to.entry.set_same_parts(0);
        let version = (slot, to.sid);
        // SAFETY: as in `replace_lines`.
        let at =
            unsafe { row::write_line(&mut self.port, row, to.layout, version, (&line, new.len())) };
        self.end_by_shape(to, slot, at, new.len())
    }

    #[inline(never)]
    fn first_line(&mut self, to: &LastVersion<'_>, new: &[u8], work: &mut WorkCounts) -> ValueWord {
        work.persistent_versions += 1;
        self.rows += 1;
        let (key, line) = (to.key(), padded_line(new));
        if self.keeps_hash {
            self.hash.add(only_line_hash(to.layout.table, &key, &line, new.len()));
        }
        let (row, version) = (to.entry.row(), (&key, to.sid));
        // SAFETY: the row was created in this epoch and no worker reads it before it is published.
        let at = unsafe {
            row::write_first_line(&mut self.port, row, to.layout, version, (&line, new.len()))
        };
        self.end_by_shape(to, 0, at, new.len())
    }

    #[inline(never)]
    fn replace_word(
        &mut self,
        to: &LastVersion<'_>,
        (old, new): (u64, u64),
        work: &mut WorkCounts,
    ) -> ValueWord {
        let (row, slot) = self.begin_by_shape(to, work);
        if self.keeps_hash {
            self.hash.add(word_gain(to.layout.table, &to.key(), old, new));
        }
        // SAFETY: as in `replace_lines`.
        let value = unsafe { row::write_word(&mut self.port, row, to.layout, (slot, to.sid), new) };
        self.end_by_shape(to, slot, value, size_of::<u64>())
    }

    /// The row, and the slot that is not the newest version's.
    #[inline(always)]
    fn begin_by_shape(&mut self, to: &LastVersion<'_>, work: &mut WorkCounts) -> (u64, usize) {
        work.persistent_versions += 1;
        self.keep_before_image(to.entry, to.layout, to.word);
        let (row, slot) = (to.entry.row(), 1 - to.entry.persistent_version().slot());
        let stale = version_epoch(self.port.device().image().base() as usize, row, slot);
        work.minor_collections += u64::from(stale != 0 && stale < to.sid.epoch());
        (row, slot)
    }

    /// The version is written.
    #[inline(always)]
    fn end_by_shape(&self, to: &LastVersion<'_>, slot: usize, value: u64, len: usize) -> ValueWord {
        let address = self.port.device().image().base() as usize + value as usize;
        let word = ValueWord::new(Place::persistent(slot), address, len);
        to.entry.set_persistent_version(word);
        word
    }
}
