//! Publishing a transaction's writes (NV 4.1, 4.6).
//!
//! A write that is not the row's last of the epoch stays in the transient pool. The owner of the
//! last version makes the newest version that is not IGNORE persistent, under *its* serial id
//! (O-14), see `final_write.rs`. If there is no cache the value is published where it lies, with
//! the other ones of the transaction: non-temporal stores are not ordered with others, so readers
//! may be led to them only after a fence.

use pmem::sync::atomic::{AtomicU64, Ordering};
use storage::{EpochNumber, NewValue, SerialId, row_hash};

use super::array::VersionArray;
use super::entry::Versions;
use super::final_write::Written;
use super::read::Stopped;
use super::row_store::{DeadRow, RowStore};
use super::write::{Hidden, Publication, Publisher, Write, key_of, value_before};
use super::{ONLY, ReadPhase, RowEntry, TransientPool, ValueWord};

impl RowStore {
    /// Publishes one declared write. The last writer of a row makes it persistent.
    #[inline(always)]
    pub(crate) fn publish(
        &mut self,
        to: &Publication<'_>,
        write: Write<'_>,
        with: &mut Publisher<'_, '_>,
    ) -> Result<(), Stopped> {
        let cell = if to.place == ONLY {
            to.entry.only_version(to.sid)
        } else {
            match to.entry.versions(to.sid.epoch()) {
                Versions::None => unreachable!("published rows were appended to"),
                Versions::Single(writer, cell) => {
                    debug_assert_eq!(writer, to.sid, "a row with one version has one writer");
                    cell
                }
                Versions::Array(array) => return self.publish_in_array(to, array, write, with),
            }
        };
        debug_assert!(is_pending(cell), "a version is written once");
        with.work.single_write_rows += 1;
        if self.design.is_all_nvmm() {
            self.write_back_cell(cell);
        }
        match write {
            Write::Value(value) => self.write_last(to, &value, cell, with),
            Write::Tombstone => self.bury(to, cell, with),
            Write::Ignore => {
                ignore(cell, with);
                self.leave_untouched(to);
            }
        }
        Ok(())
    }

    /// [`RowStore::publish`] where the row has several versions.
    #[inline(never)]
    fn publish_in_array(
        &mut self,
        to: &Publication<'_>,
        array: VersionArray,
        write: Write<'_>,
        with: &mut Publisher<'_, '_>,
    ) -> Result<(), Stopped> {
        let index = array.place(to.place, to.sid.position());
        debug_assert_eq!(array.sorted()[index], to.sid.position(), "a writer has its version");
        if !matches!(write, Write::Ignore) {
            retire_before(array, index, to.sid, with.pool);
        }
        let (cell, is_last) = (array.cell(index), index + 1 == array.len());
        debug_assert!(is_pending(cell), "a version is written once");
        if self.design.is_all_nvmm() {
            self.write_back_cell(cell);
        }
        match write {
            Write::Value(value) if is_last => self.write_last(to, &value, cell, with),
            Write::Tombstone if is_last => self.bury(to, cell, with),
            Write::Value(value) => {
                with.work.transient_versions += 1;
                let word = with.pool.store(&value, to.sid.position());
                if self.design.writes_transient() {
                    self.write_back_value(word);
                }
                cell.store(word.0, Ordering::Release);
            }
            Write::Tombstone => {
                with.work.transient_versions += 1;
                cell.store(ValueWord::TOMBSTONE.0, Ordering::Release);
            }
            Write::Ignore => {
                ignore(cell, with);
                if is_last {
                    self.fall_back(to, array, index, with)?;
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
        for index in (0..last).rev() {
            let cell = array.cell(index);
            match with.waiter.value(to.entry, cell)? {
                ValueWord::IGNORE => {}
                ValueWord::TOMBSTONE => {
                    self.bury(to, cell, with);
                    return Ok(());
                }
                word => {
                    let sid = SerialId::new(to.sid.epoch(), array.sorted()[index]);
                    // SAFETY: it is transient, and stays until the epoch ends: it has no successor.
                    let phase = unsafe { ReadPhase::begin() };
                    let changed = phase.maker(word).changed;
                    let value = NewValue::changed_in(phase.bytes(word), changed);
                    // Readers find the transient value, which is the same.
                    self.write_final(&Publication { sid, ..*to }, &value, with);
                    return Ok(());
                }
            }
        }
        self.leave_untouched(to);
        Ok(())
    }

    /// One append of a design that has version arrays on the device. Each appender of a row with an
    /// array writes back its share of it.
    pub(crate) fn write_back_versions(&mut self, entry: &RowEntry, epoch: EpochNumber) {
        let count = entry.version_count(epoch).max(1) as u64;
        for (address, len) in entry.version_memory(epoch) {
            let share = len.div_ceil(count);
            // SAFETY: entries and arrays of the running epoch are mapped.
            unsafe { self.port.write_back(address, share) };
        }
    }

    /// A transient version of a design that has it on the device.
    #[inline(never)]
    fn write_back_value(&mut self, word: ValueWord) {
        // SAFETY: the value lies in the transient pool, which is mapped.
        unsafe { self.port.write_back(word.address(), word.len() as u64) };
    }

    /// The cell of a version array of a design that has it on the device.
    #[inline(never)]
    fn write_back_cell(&mut self, cell: &AtomicU64) {
        // SAFETY: a reference is to mapped memory.
        unsafe { self.port.write_back(std::ptr::from_ref(cell).addr(), size_of::<u64>() as u64) };
    }

    /// No version survived: the row stays as it was, or was never born.
    fn leave_untouched(&mut self, to: &Publication<'_>) {
        if !to.entry.persistent_version().is_value() {
            self.dead_rows.push(DeadRow::of(to));
        }
    }

    /// The final write of a row by the owner of its last version. Unless it was cached, it is
    /// published by [`RowStore::reveal`].
    #[inline]
    fn write_last(
        &mut self,
        to: &Publication<'_>,
        value: &NewValue<'_>,
        cell: &AtomicU64,
        with: &mut Publisher<'_, '_>,
    ) {
        match self.write_final(to, value, with) {
            Written::Cached(word) => cell.store(word.0, Ordering::Release),
            Written::Stored(word) => self.hidden.push(Hidden { cell, word }),
        }
    }

    /// Publishes the final writes of a transaction. At its end at the latest: the versions of an
    /// epoch are there as long as it runs.
    #[inline]
    pub(crate) fn reveal(&mut self) {
        if self.hidden.is_empty() {
            return;
        }
        // Ordinary stores come in order with what leads readers to them, non-temporal ones do not.
        self.port.order_stores();
        for Hidden { cell, word } in self.hidden.drain(..) {
            // SAFETY: a cell of a row entry or of a version array of the running epoch, which stay
            // where they are until it ends; this is called before.
            unsafe { (*cell).store(word.0, Ordering::Release) };
        }
    }

    /// The last version of the row is a tombstone: it leaves the state now and the index after
    /// execution.
    fn bury(&mut self, to: &Publication<'_>, cell: &AtomicU64, with: &mut Publisher<'_, '_>) {
        let before = to.entry.persistent_version();
        if before.is_value() {
            self.observe(to, None);
            self.charge_reads(to, before, None);
            if self.keeps_hash {
                let exact = to.word.to_be_bytes();
                let key = key_of(self.port.device().as_ref(), to, &exact);
                self.hash.remove(row_hash(to.layout.table, key, value_before(to)));
            }
            self.rows -= 1;
        }
        self.free_values_of(to.entry, with.checkpoint_epoch, with.segments);
        to.entry.set_persistent_version(ValueWord::PENDING);
        self.dead_rows.push(DeadRow::of(to));
        cell.store(ValueWord::TOMBSTONE.0, Ordering::Release);
    }
}

/// Whether a version is not written yet.
fn is_pending(cell: &AtomicU64) -> bool {
    cell.load(Ordering::Relaxed) == ValueWord::PENDING.0
}

#[inline]
fn ignore(cell: &AtomicU64, with: &mut Publisher<'_, '_>) {
    cell.store(ValueWord::IGNORE.0, Ordering::Release);
    with.work.ignored_versions += 1;
}

/// A version has been written, and no IGNORE, so later serial ids do not see the one before. Its
/// memory can be reclaimed when this version's call has ended, and all smaller ones.
#[inline]
fn retire_before(array: VersionArray, index: usize, sid: SerialId, pool: &mut TransientPool) {
    if let Some(before) = index.checked_sub(1) {
        // If it is pending or IGNORE, it has no memory, or its writer did not run yet.
        let word = ValueWord(array.cell(before).load(Ordering::Relaxed));
        if word.is_transient() {
            pool.retire(word, sid.position());
        }
    }
}
