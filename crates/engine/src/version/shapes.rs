//! Final writes of the two shapes that most have: lines of a long row that is changed in part, and
//! a word.
//!
//! Each does what `final_write.rs` does for any value, with fewer branches: the row has keys
//! and values of a fixed kind, existed before, and has one writer; nothing is cached; and each
//! epoch ends in a checkpoint, so that the slot is the one that is not the newest, and nothing is
//! freed.

use pmem::Device;
use pmem::sync::atomic::AtomicU64;
use storage::lines::lines_of;
use storage::{NewValue, RowLayout, SerialId, lines_gain, row, word_gain};

use super::final_write::lines_to_write;
use super::medium::version_epoch;
use super::write::Hidden;
use super::{Medium, Place, ReadPhase, RowEntry, ValueWord};
use crate::stats::WorkCounts;

/// The only version of a row in this epoch.
pub(crate) struct OnlyVersion<'e> {
    pub(crate) entry: &'e RowEntry,
    pub(crate) layout: &'e RowLayout,
    /// The key.
    pub(crate) word: u64,
    pub(crate) sid: SerialId,
}

impl<'e> OnlyVersion<'e> {
    /// The bytes before this epoch, if there is a row; where the version before is on the medium,
    /// as it is where nothing is cached.
    #[inline(always)]
    fn before(&self, base: ValueWord) -> Option<&'e [u8]> {
        base.is_on_medium().then(|| ReadPhase::begin().bytes(base))
    }

    fn key(&self) -> [u8; 8] {
        self.word.to_be_bytes()
    }

    fn cell(&self) -> &'e AtomicU64 {
        self.entry.only_version(self.sid)
    }
}

impl<D: Device> Medium<D> {
    /// Whether the epoch after a checkpoint may write by shape at all.
    pub(crate) fn writes_by_shape(
        &self,
        has_cache: bool,
        checkpoint_epoch: u64,
        epoch: u64,
    ) -> bool {
        !has_cache && checkpoint_epoch + 1 == epoch && !self.port.device().charges_loads()
    }

    /// Lines of a row are replaced that follow each other: `part` stands from `at` on. False
    /// if the row has another shape; nothing has happened then.
    #[inline(always)]
    pub(crate) fn persist_part(
        &mut self,
        to: &OnlyVersion<'_>,
        base: ValueWord,
        (at, part): (usize, &[u8]),
        work: &mut WorkCounts,
    ) -> bool {
        let layout = to.layout;
        let fits = layout.has_line_halves() && !layout.may_be_external() && layout.has_exact_keys();
        match to.before(base).filter(|_| fits) {
            Some(old) if !part.is_empty() => self.persist_lines(to, old, (at, part), work),
            _ => return false,
        }
        true
    }

    #[inline(never)]
    fn persist_lines(
        &mut self,
        to: &OnlyVersion<'_>,
        old: &[u8],
        (at, part): (usize, &[u8]),
        work: &mut WorkCounts,
    ) {
        let (row, slot) = self.begin_by_shape(to, work);
        if self.keeps_hash {
            let old_part = &old[at..at + part.len()];
            self.hash.add(lines_gain(to.layout.table, &to.key(), at, old_part, part));
        }
        let changed = lines_of(at, part.len());
        let lacking = lines_to_write(to.entry, to.layout, false, changed);
        let version = (slot, to.sid);
        // SAFETY: the owner of the row's only version owns the slot that nobody reads (see
        // `publication.rs`).
        let value = unsafe {
            if lacking & lines_of(0, old.len()) == changed {
                row::write_part(&mut self.port, row, to.layout, version, (at, part), old.len())
            } else {
                let value = NewValue::with_lines(old, at, part, 0);
                row::write_changed_lines(&mut self.port, row, to.layout, version, &value, lacking)
            }
        };
        self.end_by_shape(to, slot, value, old.len());
    }

    /// A row of one word gets another one. False if the row has another shape; nothing has happened
    /// then.
    #[inline(always)]
    pub(crate) fn persist_word(
        &mut self,
        to: &OnlyVersion<'_>,
        base: ValueWord,
        new: &[u8],
        work: &mut WorkCounts,
    ) -> bool {
        let fits = to.layout.has_short_halves() && to.layout.has_exact_keys();
        let Some(Ok(old)) = to.before(base).filter(|_| fits).map(<[u8; 8]>::try_from) else {
            return false;
        };
        let Ok(new) = <[u8; 8]>::try_from(new) else { return false };
        self.replace_word(to, (u64::from_le_bytes(old), u64::from_le_bytes(new)), work);
        true
    }

    #[inline(never)]
    fn replace_word(
        &mut self,
        to: &OnlyVersion<'_>,
        (old, new): (u64, u64),
        work: &mut WorkCounts,
    ) {
        let (row, slot) = self.begin_by_shape(to, work);
        if self.keeps_hash {
            self.hash.add(word_gain(to.layout.table, &to.key(), old, new));
        }
        // SAFETY: as in `persist_lines`.
        let value = unsafe { row::write_word(&mut self.port, row, to.layout, (slot, to.sid), new) };
        self.end_by_shape(to, slot, value, size_of::<u64>());
    }

    /// The row, and the slot that is not the newest version's.
    #[inline(always)]
    fn begin_by_shape(&self, to: &OnlyVersion<'_>, work: &mut WorkCounts) -> (u64, usize) {
        work.single_write_rows += 1;
        work.persistent_versions += 1;
        let (row, slot) = (to.entry.row(), 1 - to.entry.next().slot());
        let stale = version_epoch(self.port.device().image().base() as usize, row, slot);
        work.minor_collections += u64::from(stale != 0 && stale < to.sid.epoch());
        (row, slot)
    }

    /// The version is written; readers are led to it by [`Medium::reveal`].
    #[inline(always)]
    fn end_by_shape(&mut self, to: &OnlyVersion<'_>, slot: usize, value: u64, len: usize) {
        let address = self.port.device().image().base() as usize + value as usize;
        let word = ValueWord::new(Place::Medium, slot, address, len);
        to.entry.set_next(word);
        self.hidden.push(Hidden { cell: to.cell(), word });
    }
}
