//! What a running transaction does in the serial part of its epoch: reads and writes go to the
//! overlay, and nothing need be predicted.

use std::ops::ControlFlow;

use storage::TableId;

use super::modify::{Bounds, change_part};
use super::{Stop, Transaction, for_a_piece};
use crate::declaration::declare::value_before;
use crate::declaration::overlay::{Kept, Now, Overlay, OverlayValue, PieceRow};
use crate::declaration::{Declared, DeclaredKind, NO_PIECE};
use crate::index::EntryId;
use crate::memory::Local;
use crate::reads::{KeyRange, Visit};
use crate::secondary::RowWrite;
use crate::table::{KeyWord, Table};

/// What a call of the serial part does to a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Op {
    Insert,
    Change,
}

impl<'a> Transaction<'a> {
    /// Whether it runs in the serial part.
    #[inline]
    pub(crate) fn is_serial(&self) -> bool {
        self.serial.is_some()
    }

    fn overlay(&mut self) -> &mut Overlay {
        self.serial.as_deref_mut().expect("asked in the serial part only")
    }

    #[inline(never)]
    pub(crate) fn serial_get(&mut self, table: TableId, key: &[u8]) -> Result<Option<&[u8]>, Stop> {
        match self.look(table, key)? {
            OverlayValue::Kept(kept) => Ok(Some(self.overlay().bytes(kept))),
            OverlayValue::Before(id) => Ok(self.see(id, false)?),
            OverlayValue::Absent => Ok(None),
        }
    }

    fn look(&mut self, table: TableId, key: &[u8]) -> Result<OverlayValue, Stop> {
        let core = self.core;
        let word = core.row_table(table)?.word(key)?;
        let reads = &self.local.reads;
        Ok(self.serial.as_deref().expect("the serial part").look(core, table, word, reads))
    }

    #[inline(never)]
    pub(super) fn serial_get_many<'k>(
        &mut self,
        table: TableId,
        keys: impl Iterator<Item = &'k [u8]>,
        mut each: impl FnMut(Option<&[u8]>),
    ) -> Result<(), Stop> {
        for key in keys {
            each(self.serial_get(table, key)?);
        }
        Ok(())
    }

    #[inline(never)]
    pub(super) fn serial_scan(
        &mut self,
        table: TableId,
        keys: KeyRange<'_>,
        each: Visit<'_>,
    ) -> Result<(), Stop> {
        let Self { core, local, phase, serial, sid, .. } = self;
        let (core, phase, sid) = (*core, *phase, *sid);
        let Local { reads, .. } = &**local;
        let mut before = |id: EntryId| value_before(core, phase, id, sid.epoch(), reads);
        let overlay = serial.as_deref_mut().expect("the serial part");
        overlay.scan(core, table, keys, reads, &mut before, each)?;
        Ok(())
    }

    #[inline(never)]
    pub(super) fn serial_insert(
        &mut self,
        table: TableId,
        key: &[u8],
        value: &[u8],
    ) -> Result<(), Stop> {
        let (_, word) = self.may_write(table, key, Op::Insert)?;
        self.check_length(table, value)?;
        let kept = self.overlay().keep(value);
        self.set(table, word, Now::Value(kept))?;
        Ok(())
    }

    #[inline(never)]
    pub(super) fn serial_update(
        &mut self,
        table: TableId,
        key: &[u8],
        value: &[u8],
    ) -> Result<bool, Stop> {
        let (_, word) = self.may_write(table, key, Op::Change)?;
        if self.serial_get(table, key)?.is_none() {
            return Ok(false);
        }
        self.check_length(table, value)?;
        let kept = self.overlay().keep(value);
        self.set(table, word, Now::Value(kept))?;
        Ok(true)
    }

    #[inline(never)]
    pub(super) fn serial_delete(&mut self, table: TableId, key: &[u8]) -> Result<bool, Stop> {
        let (_, word) = self.may_write(table, key, Op::Change)?;
        let exists = self.serial_get(table, key)?.is_some();
        if exists {
            self.set(table, word, Now::Deleted)?;
        }
        Ok(exists)
    }

    #[inline(never)]
    pub(super) fn serial_modify(
        &mut self,
        table: TableId,
        key: &[u8],
        change: impl FnOnce(&mut [u8]),
    ) -> Result<bool, Stop> {
        let (_, word) = self.may_write(table, key, Op::Change)?;
        let Some(copy) = self.copy(table, key)? else { return Ok(false) };
        let (bytes, range) = self.overlay().bytes_mut(copy);
        change(&mut bytes[range]);
        self.set(table, word, Now::Value(copy))?;
        Ok(true)
    }

    #[inline(never)]
    pub(super) fn serial_modify_part(
        &mut self,
        table: TableId,
        key: &[u8],
        part: Bounds,
        change: impl FnOnce(&[u8], &mut [u8]),
    ) -> Result<bool, Stop> {
        let (_, word) = self.may_write(table, key, Op::Change)?;
        let Some(copy) = self.copy(table, key)? else { return Ok(false) };
        let (bytes, range) = self.overlay().bytes_mut(copy);
        change_part(bytes, range, part, change)?;
        self.set(table, word, Now::Value(copy))?;
        Ok(true)
    }

    /// A copy of a row's value in the overlay; `None` where there is no such row.
    fn copy(&mut self, table: TableId, key: &[u8]) -> Result<Option<Kept>, Stop> {
        Ok(match self.look(table, key)? {
            OverlayValue::Kept(kept) => Some(self.overlay().keep_again(kept)),
            OverlayValue::Before(id) => {
                let value = self.see(id, false)?;
                value.map(|value| self.overlay().keep(value))
            }
            OverlayValue::Absent => None,
        })
    }

    fn set(&mut self, table: TableId, word: KeyWord<'_>, now: Now) -> Result<(), Stop> {
        let core = self.core;
        if core.secondary.are_of(table) {
            self.change_indexes(table, word.key, now)?;
        }
        let overlay = self.serial.as_deref_mut().expect("the serial part");
        overlay.write(core, table, word, now, &self.local.reads);
        Ok(())
    }

    /// The indexes of a table follow a write at once.
    #[inline(never)]
    fn change_indexes(&mut self, table: TableId, key: &[u8], now: Now) -> Result<(), Stop> {
        let before = self.serial_get(table, key)?.map(<[u8]>::to_vec);
        let (core, epoch) = (self.core, self.sid.epoch());
        let overlay = self.serial.as_deref_mut().expect("the serial part");
        let after = match now {
            Now::Value(kept) => Some(overlay.bytes(kept).to_vec()),
            Now::Deleted | Now::Unchanged => None,
        };
        assert!(now != Now::Unchanged, "an index follows what a call has written");
        let write = RowWrite { before: before.as_deref(), after: after.as_deref() };
        if !self.call.pieces().is_empty() && core.secondary.differ(table, key, write)? {
            return Err(super::changes_index(&core.tables[table.index()], key));
        }
        core.secondary.change(table, key, write, epoch, &mut overlay.index_undo)?;
        Ok(())
    }

    /// A piece of the call writes one of its rows, or deletes it.
    pub(super) fn serial_write_later(&mut self, row: PieceRow<'_>, value: Option<&[u8]>) {
        self.overlay().write_later(row, value);
    }

    /// A row of a piece: what it has written, or what was there before.
    pub(super) fn serial_get_of_piece(&mut self, row: PieceRow<'_>) -> Result<Option<&[u8]>, Stop> {
        match self.overlay().of_piece(row) {
            Now::Value(kept) => Ok(Some(self.overlay().bytes(kept))),
            Now::Deleted => Ok(None),
            Now::Unchanged => self.serial_get(row.table, row.key),
        }
    }

    /// Whether a key in a range of a piece was declared for nothing else: by itself, or in a range
    /// that comes before that one.
    pub(super) fn is_free_for(
        &self,
        piece: usize,
        t: &Table,
        table: TableId,
        word: KeyWord<'_>,
    ) -> bool {
        let declared = self.declared_as(t, table, word);
        let is_before = |other: u32| other == NO_PIECE || (other as usize) < piece;
        let is_in_range = self.call.ranges_around(table, word.key).any(|r| is_before(r.piece));
        !is_in_range && declared.is_none_or(|kind| kind == DeclaredKind::Read)
    }

    /// The key that was declared.
    pub(crate) fn key_of(&self, of: &Declared) -> Vec<u8> {
        self.call.key_of(of, &mut [0; 8]).to_vec()
    }

    /// Whether a row may be written. A call with pieces keeps to its write set, because it could
    /// not be deferred (O-68).
    fn may_write<'k>(
        &self,
        table: TableId,
        key: &'k [u8],
        op: Op,
    ) -> Result<(&'a Table, KeyWord<'k>), Stop> {
        let t = self.core.row_table(table)?;
        let word = t.word(key)?;
        if self.call.pieces().is_empty() {
            return Ok((t, word));
        }
        match (self.declared_as(t, table, word), op) {
            (Some(kind), _) if kind.is_of_piece() => return Err(for_a_piece(t, key)),
            (Some(DeclaredKind::Insert), _) | (Some(DeclaredKind::Update), Op::Change) => {}
            (Some(DeclaredKind::Update), Op::Insert) => {
                return Err(self.may_not_insert(table, key));
            }
            _ if self.call.is_in_range(NO_PIECE, table, key) => match op {
                Op::Change => {}
                Op::Insert => return Err(self.may_not_insert(table, key)),
            },
            _ => return Err(super::undeclared(t, key)),
        }
        Ok((t, word))
    }

    /// For a piece: reads a row that its call does not write.
    pub(super) fn serial_get_before(
        &mut self,
        table: TableId,
        key: &[u8],
    ) -> Result<Option<&[u8]>, Stop> {
        let t = self.core.row_table(table)?;
        let declared = self.declared_as(t, table, t.word(key)?);
        let is_written = declared.is_some_and(|kind| kind != DeclaredKind::Read);
        let exists = self.serial_get(table, key)?.is_some();
        if exists && (is_written || self.call.ranges_around(table, key).next().is_some()) {
            return Err(super::of_its_call(t, key));
        }
        self.serial_get(table, key)
    }

    /// For a piece: scans rows that its call does not write.
    pub(super) fn serial_scan_before(
        &mut self,
        table: TableId,
        keys: KeyRange<'_>,
        each: Visit<'_>,
    ) -> Result<(), Stop> {
        let t = self.core.row_table(table)?;
        let call = self.call;
        let mut of_call = None;
        self.serial_scan(table, keys, &mut |key, value| {
            let is_same = |d: &&Declared| d.table == table && call.key_of(d, &mut [0; 8]) == key;
            let declared = call.declared.iter().find(is_same).map(|d| d.kind);
            if declared.is_some_and(|kind| kind != DeclaredKind::Read)
                || call.ranges_around(table, key).next().is_some()
            {
                of_call = Some(super::of_its_call(t, key));
                return ControlFlow::Break(());
            }
            each(key, value)
        })?;
        of_call.map_or(Ok(()), Err)
    }

    fn declared_as(&self, t: &Table, table: TableId, word: KeyWord<'_>) -> Option<DeclaredKind> {
        let same = |d: &&Declared| {
            d.word == word.hash && d.table == table && (t.exact || self.call.key(d.key) == word.key)
        };
        self.call.declared.iter().find(same).map(|declared| declared.kind)
    }
}
