//! A running transaction, on the state as its predecessors left it.

use std::ops::{ControlFlow, Range};

use crate::api::{PieceResult, PieceTx, TableId, Tx, Visit};
use crate::oracle::chains::Chains;
use crate::oracle::declaring::{Declaration, DeclaredPiece};
use crate::oracle::state::{Between, Error, State};

/// A row that was written, and what it was before.
pub(super) type Written = (TableId, Vec<u8>, Option<Vec<u8>>);

/// A running transaction: writes go straight to the state, and are undone if it fails.
pub(super) struct Running<'a> {
    pub(super) state: &'a mut State,
    pub(super) declaration: &'a Declaration,
    /// It runs in the serial part of its epoch.
    pub(super) is_serial: bool,
    pub(super) chains: Option<&'a mut Chains>,
    pub(super) undo: Vec<Written>,
    /// It passed its commit point, so that it may not fail any more.
    pub(super) is_past_commit_point: bool,
    pub(super) output: Vec<u8>,
}

impl Running<'_> {
    /// Whether a row may be changed: any, if it does not exist or in the serial part; but a call
    /// with pieces keeps to its declaration.
    fn may_change(&self, table: TableId, key: &[u8]) -> Result<(), Error> {
        let declared = self.declaration.keys.get(table, key).is_some()
            || self.declaration.ranges.iter().any(|range| range.covers(table, key));
        match self.declaration.pieces.is_empty() {
            _ if declared => Ok(()),
            false => Err(Error::Broken),
            true if self.is_serial || !self.state.rows(table).contains_key(key) => Ok(()),
            true => Err(Error::Deferred),
        }
    }

    /// The row as it is; a read counts for the chains of calls.
    fn row(&mut self, table: TableId, key: &[u8]) -> Option<&Vec<u8>> {
        if let Some(chains) = &mut self.chains {
            chains.read(table, key);
        }
        self.state.rows(table).get(key)
    }

    /// Writes a row, keeping what was there before. A row that others may have seen as this
    /// transaction wrote it is not written again.
    fn write(&mut self, table: TableId, key: &[u8], value: Option<Vec<u8>>) -> Result<(), Error> {
        let is_this = |(of, written, _): &Written| *of == table && written == key;
        if self.is_past_commit_point && self.undo.iter().any(is_this) {
            return Err(Error::Broken);
        }
        let rows = &mut self.state.tables[usize::from(table.0)];
        let old = match value {
            Some(value) => rows.insert(key.to_vec(), value),
            None => rows.remove(key),
        };
        self.undo.push((table, key.to_vec(), old));
        Ok(())
    }

    /// Puts back everything it wrote.
    pub(super) fn roll_back(self) {
        for (table, key, old) in self.undo.into_iter().rev() {
            let rows = &mut self.state.tables[usize::from(table.0)];
            match old {
                Some(value) => rows.insert(key, value),
                None => rows.remove(&key),
            };
        }
    }
}

impl Tx for Running<'_> {
    type Error = Error;

    fn get(&mut self, table: TableId, key: &[u8]) -> Result<Option<&[u8]>, Error> {
        Ok(self.row(table, key).map(Vec::as_slice))
    }

    fn scan(
        &mut self,
        table: TableId,
        low: &[u8],
        high: &[u8],
        descending: bool,
        each: Visit<'_>,
    ) -> Result<(), Error> {
        let chains = &mut self.chains;
        self.state.scan(table, Between { low, high }, descending, &mut |key, value| {
            if let Some(chains) = chains {
                chains.read(table, key);
            }
            each(key, value)
        })
    }

    fn insert(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<(), Error> {
        let is_declared = self.declaration.keys.get(table, key) == Some(true);
        match self.declaration.pieces.is_empty() {
            false if !is_declared => return Err(Error::Broken),
            true if !is_declared && !self.is_serial => return Err(Error::Deferred),
            _ => {}
        }
        self.write(table, key, Some(value.to_vec()))
    }

    fn update(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        self.may_change(table, key)?;
        let exists = self.row(table, key).is_some();
        if exists {
            self.write(table, key, Some(value.to_vec()))?;
        }
        Ok(exists)
    }

    fn modify<F: FnOnce(&mut [u8])>(
        &mut self,
        table: TableId,
        key: &[u8],
        change: F,
    ) -> Result<bool, Error> {
        self.may_change(table, key)?;
        let Some(mut value) = self.row(table, key).cloned() else { return Ok(false) };
        change(&mut value);
        self.write(table, key, Some(value))?;
        Ok(true)
    }

    fn modify_part<F: FnOnce(&[u8], &mut [u8])>(
        &mut self,
        table: TableId,
        key: &[u8],
        part: Range<usize>,
        change: F,
    ) -> Result<bool, Error> {
        self.may_change(table, key)?;
        let Some(mut value) = self.row(table, key).cloned() else { return Ok(false) };
        change_part(&mut value, part, change)?;
        self.write(table, key, Some(value))?;
        Ok(true)
    }

    fn delete(&mut self, table: TableId, key: &[u8]) -> Result<bool, Error> {
        self.may_change(table, key)?;
        let exists = self.row(table, key).is_some();
        if exists {
            self.write(table, key, None)?;
        }
        Ok(exists)
    }

    fn sequence_number(&self, i: usize) -> u64 {
        self.declaration.allocation[i]
    }

    fn sequence_start(&self, table: TableId, key: &[u8]) -> u64 {
        self.state.sequence_start(table, key)
    }

    /// Nothing is gained in the serial part, where the transaction may still fail.
    fn commit_point(&mut self) -> Result<(), Error> {
        self.is_past_commit_point = !self.is_serial;
        Ok(())
    }

    fn output(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }
}

/// A running piece, on the state as its predecessors left it.
pub(super) struct PieceRunning<'a> {
    pub(super) state: &'a mut State,
    pub(super) declaration: &'a Declaration,
    /// What the pieces before came to, and how long their chains are.
    pub(super) before: &'a [(PieceResult, u64)],
    pub(super) chains: Option<&'a mut Chains>,
    pub(super) undo: Vec<Written>,
}

impl PieceRunning<'_> {
    fn own(&self) -> &DeclaredPiece {
        &self.declaration.pieces[self.before.len()]
    }

    /// Whether a row is the piece's own, and may be inserted, if it was declared.
    fn own_key(&self, table: TableId, key: &[u8]) -> Option<bool> {
        let DeclaredPiece { keys, ranges } = self.own();
        let by_key = keys.iter().find(|own| own.0 == table && own.1 == key).map(|own| own.2);
        by_key.or_else(|| ranges.iter().any(|range| range.covers(table, key)).then_some(false))
    }

    /// The row as it is, if the piece may read it.
    fn row(&mut self, table: TableId, key: &[u8]) -> Result<Option<&Vec<u8>>, Error> {
        if self.own_key(table, key).is_none() && self.declaration.writes(table, key) {
            return Err(Error::Broken);
        }
        if let Some(chains) = &mut self.chains {
            chains.read(table, key);
        }
        Ok(self.state.rows(table).get(key))
    }

    fn write(&mut self, table: TableId, key: &[u8], value: Option<Vec<u8>>) {
        let rows = &mut self.state.tables[usize::from(table.0)];
        let old = match value {
            Some(value) => rows.insert(key.to_vec(), value),
            None => rows.remove(key),
        };
        self.undo.push((table, key.to_vec(), old));
    }

    /// The row that may be contended.
    fn first(&self) -> (TableId, Vec<u8>) {
        let (table, key, _) = &self.own().keys[0];
        (*table, key.clone())
    }
}

impl PieceTx for PieceRunning<'_> {
    type Error = Error;

    fn modify<F: FnOnce(&mut [u8])>(&mut self, change: F) -> Result<bool, Error> {
        let (table, key) = self.first();
        let Some(mut value) = self.row(table, &key)?.cloned() else { return Ok(false) };
        change(&mut value);
        self.write(table, &key, Some(value));
        Ok(true)
    }

    fn modify_part<F: FnOnce(&[u8], &mut [u8])>(
        &mut self,
        part: Range<usize>,
        change: F,
    ) -> Result<bool, Error> {
        let (table, key) = self.first();
        self.modify_row(table, &key, part, change)
    }

    fn get(&mut self, table: TableId, key: &[u8]) -> Result<Option<&[u8]>, Error> {
        Ok(self.row(table, key)?.map(Vec::as_slice))
    }

    fn scan(
        &mut self,
        table: TableId,
        low: &[u8],
        high: &[u8],
        each: Visit<'_>,
    ) -> Result<(), Error> {
        let Self { state, declaration, chains, .. } = self;
        let mut is_broken = false;
        state.scan(table, Between { low, high }, false, &mut |key, value| {
            is_broken |= declaration.writes(table, key);
            if let Some(chains) = chains {
                chains.read(table, key);
            }
            if is_broken { ControlFlow::Break(()) } else { each(key, value) }
        })?;
        if is_broken { Err(Error::Broken) } else { Ok(()) }
    }

    fn insert_row(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<(), Error> {
        if self.own_key(table, key) != Some(true) {
            return Err(Error::Broken);
        }
        self.write(table, key, Some(value.to_vec()));
        Ok(())
    }

    fn modify_row<F: FnOnce(&[u8], &mut [u8])>(
        &mut self,
        table: TableId,
        key: &[u8],
        part: Range<usize>,
        change: F,
    ) -> Result<bool, Error> {
        self.own_key(table, key).ok_or(Error::Broken)?;
        let Some(mut value) = self.row(table, key)?.cloned() else { return Ok(false) };
        change_part(&mut value, part, change)?;
        self.write(table, key, Some(value));
        Ok(true)
    }

    fn delete_row(&mut self, table: TableId, key: &[u8]) -> Result<bool, Error> {
        self.own_key(table, key).ok_or(Error::Broken)?;
        let exists = self.row(table, key)?.is_some();
        if exists {
            self.write(table, key, None);
        }
        Ok(exists)
    }

    fn result(&mut self, number: usize) -> Result<PieceResult, Error> {
        let &(result, length) = self.before.get(number).ok_or(Error::Broken)?;
        if let Some(chains) = &mut self.chains {
            chains.read_result(length);
        }
        Ok(result)
    }

    fn sequence_number(&self, i: usize) -> u64 {
        self.declaration.allocation[i]
    }

    fn sequence_start(&self, table: TableId, key: &[u8]) -> u64 {
        self.state.sequence_start(table, key)
    }
}

/// Changes a part of a value in a copy, because `change` sees the whole as it was.
fn change_part(
    value: &mut [u8],
    part: Range<usize>,
    change: impl FnOnce(&[u8], &mut [u8]),
) -> Result<(), Error> {
    let mut copy = value.get(part.clone()).ok_or(Error::Broken)?.to_vec();
    change(value, &mut copy);
    value[part].copy_from_slice(&copy);
    Ok(())
}
