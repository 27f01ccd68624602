//! What a running transaction sees of a row.

use storage::SerialId;

use super::{Slot, Stop, Transaction};
use crate::contention::waits::noting;
use crate::declaration::NO_ENTRY;
use crate::index::EntryId;
use crate::memory::{Local, PrefetchedRow, PrivateWrite};
use crate::version::{Access, Pending, RowEntry, Seen, Stopped, ValueWord};

impl<'a> Transaction<'a> {
    /// Fetches what rows lead to, and looks at what this call sees of them, as far as that is
    /// known.
    #[inline(always)]
    pub(super) fn read_prefetched_rows(&self, rows: &mut [PrefetchedRow]) {
        for arrays_are_there in [false, true] {
            for row in rows.iter_mut().filter(|row| row.seen.is_none() && row.id != NO_ENTRY) {
                let entry = self.core.entry(row.id);
                row.seen = entry.read_prefetched(self.sid, arrays_are_there);
            }
        }
    }

    /// Reads the version of a row that was looked at ahead.
    #[inline]
    pub(super) fn see_prefetched(
        &mut self,
        row: &PrefetchedRow,
    ) -> Result<Option<&'a [u8]>, Stopped> {
        match row.seen {
            Some(seen) => Ok(self.value_of(row.id, seen)),
            None => self.see(row.id, false),
        }
    }

    /// The version that a serial id sees, once it is there.
    #[inline]
    pub(super) fn read(&mut self, entry: &'a RowEntry, sid: SerialId) -> Result<Seen, Stopped> {
        match entry.try_read(sid) {
            Ok(seen) => Ok(seen),
            Err(pending) => self.wait(entry, sid, pending),
        }
    }

    #[cold]
    pub(super) fn wait(
        &mut self,
        entry: &'a RowEntry,
        sid: SerialId,
        pending: Pending<'a>,
    ) -> Result<Seen, Stopped> {
        noting(entry, || self.wait_until_seen(entry, sid, pending))
    }

    fn wait_until_seen(
        &mut self,
        entry: &'a RowEntry,
        sid: SerialId,
        mut pending: Pending<'a>,
    ) -> Result<Seen, Stopped> {
        let position = self.sid.position();
        loop {
            // What it waits for may need a piece that this worker has to run.
            let (local, publisher) = (&mut *self.local, &mut *self.publisher);
            let meanwhile = || publisher.run_pieces_before(local, position);
            self.waiter.until(|| pending.is_written().then_some(()), meanwhile)?;
            match entry.try_read(sid) {
                Ok(seen) => return Ok(seen),
                Err(next) => pending = next,
            }
        }
    }

    /// Reads a row's version. An own write that is already visible (`own`) is read like any
    /// else's: at the next serial position.
    #[inline(never)]
    pub(crate) fn see(&mut self, id: EntryId, own: bool) -> Result<Option<&'a [u8]>, Stopped> {
        let entry = self.core.entry(id);
        let sid = if own { SerialId(self.sid.0 + 1) } else { self.sid };
        let seen = self.read(entry, sid)?;
        Ok(self.value_of(id, seen))
    }

    /// Reads the version before the call's own, of a row that it declared.
    #[inline(never)]
    pub(super) fn see_declared(&mut self, slot: Slot) -> Result<Option<&'a [u8]>, Stopped> {
        let seen = self.read_declared(slot)?;
        Ok(self.value_of(slot.id, seen))
    }

    #[inline(always)]
    pub(super) fn read_declared(&mut self, slot: Slot) -> Result<Seen, Stopped> {
        debug_assert!(slot.id != NO_ENTRY, "a row is read where there is one");
        let entry = self.core.entry(slot.id);
        match entry.try_read_at(self.sid, self.call.access(slot.write).place) {
            Ok(seen) => Ok(seen),
            Err(pending) => self.wait(entry, self.sid, pending),
        }
    }

    /// [`Transaction::see_declared`] where the plan knows a version on the device, as it mostly
    /// does.
    #[inline(always)]
    pub(super) fn see_planned(&mut self, slot: Slot) -> Option<&'a [u8]> {
        let Access { seen, is_new, .. } = self.call.access(slot.write);
        if !seen.is_persistent() {
            return None;
        }
        let Local { fetching, reads, work, .. } = &mut *self.local;
        fetching.step();
        reads.note(seen.address(), seen.len());
        work.cache_misses += 1;
        work.final_versions_read += u64::from(is_new);
        Some(self.phase.bytes(seen))
    }

    /// Reads a row's version, and says where it is.
    #[inline]
    pub(crate) fn see_word(
        &mut self,
        id: EntryId,
    ) -> Result<Option<(ValueWord, &'a [u8])>, Stopped> {
        let seen = self.read(self.core.entry(id), self.sid)?;
        Ok(self.value_of(id, seen).map(|value| (seen.word, value)))
    }

    /// The value of a version that this call sees of a row.
    #[inline(always)]
    pub(super) fn value_of(&mut self, id: EntryId, seen: Seen) -> Option<&'a [u8]> {
        self.local.fetching.step();
        let word = seen.word;
        if !word.is_value() {
            return None;
        }
        let bytes = self.phase.bytes(word);
        if word.is_persistent() {
            self.local.reads.note(word.address(), word.len());
            self.local.work.cache_misses += 1;
            let written_now =
                !seen.untouched && word != self.core.entries.get(id).initial_version();
            self.local.work.final_versions_read += u64::from(written_now);
            if seen.untouched && self.local.cache.takes_read() {
                self.cache(id, bytes);
            }
        } else if word.is_cached() {
            self.local.work.cache_hits += 1;
        } else {
            let maker = self.phase.maker(word);
            debug_assert!(maker.position <= self.sid.position(), "it is reclaimed");
            let handed_over = maker.worker != self.local.pool.worker;
            self.local.work.versions_handed_over += u64::from(handed_over);
            if self.core.config.lab.design.is_all_nvmm() {
                self.local.reads.charge(word.address(), word.len());
            }
        }
        Some(bytes)
    }

    /// Reads what this call has published already.
    #[cold]
    pub(super) fn see_own(&mut self, id: EntryId) -> Result<Option<&'a [u8]>, Stop> {
        Ok(self.see(id, true)?)
    }

    /// Keeps a copy of a value that was read from the device.
    #[inline(never)]
    pub(super) fn cache(&mut self, id: EntryId, bytes: &[u8]) {
        let epoch = self.sid.epoch();
        if let Some(word) = self.local.cache.create(id, bytes, epoch)
            && !self.core.entries.get(id).install_cached(word)
        {
            self.local.cache.discard(word, epoch);
        }
    }

    #[inline(always)]
    pub(super) fn exists(&mut self, slot: Slot) -> Result<bool, Stop> {
        match self.local.writes[slot.write] {
            PrivateWrite::Value(_) | PrivateWrite::Lines(_) | PrivateWrite::Seen => Ok(true),
            PrivateWrite::Tombstone => Ok(false),
            _ if slot.id == NO_ENTRY => Ok(false),
            before => {
                let own = before == PrivateWrite::Published;
                if !own && self.call.access(slot.write).seen.is_value() {
                    return Ok(true);
                }
                let sid = if own { SerialId(self.sid.0 + 1) } else { self.sid };
                let entry = self.core.entry(slot.id);
                Ok(self.read(entry, sid)?.word.is_value())
            }
        }
    }
}
