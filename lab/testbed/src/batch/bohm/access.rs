//! What a running call of Bohm does with rows: reads versions older than it, and makes its own,
//! which no other call sees before it ends.

use std::ops::Range;

use workloads::{TableId, Visit};
use zerocopy::IntoBytes;

use super::super::declare::share;
use super::super::phases::Waits;
use super::super::rows::{Pool, RowId};
use super::super::tables::KeyRange;
use super::Run;
use super::store::{Array, Batched, Ending, Store};
use super::versions::{Content, Version};
use crate::error::{Error, Result};
use crate::index::Found;
use crate::rival::{Accesses, Fault, Stop, change_part};

/// See the module's documentation.
pub(super) struct MultiVersion<'a, S> {
    run: &'a Run<'a, S>,
    pool: &'a mut Pool,
    call: usize,
    /// What the call has written.
    own: Vec<(RowId, Content)>,
    /// A call that must run first; this thread has claimed it.
    producer: Option<usize>,
    pub(super) waits: Waits,
    value: Vec<u64>,
    part: Vec<u8>,
    found: Found,
}

impl<'a, S: Store> MultiVersion<'a, S> {
    pub(super) fn new(run: &'a Run<'a, S>, pool: &'a mut Pool) -> Self {
        Self {
            run,
            pool,
            call: 0,
            own: Vec::new(),
            producer: None,
            waits: Waits::default(),
            value: Vec::new(),
            part: Vec::new(),
            found: Found::default(),
        }
    }

    /// A call begins.
    pub(super) fn begin(&mut self, call: usize) {
        self.call = call;
        for row in self.declared() {
            self.run.batch.tables.row(*row).prefetch();
        }
    }

    /// The call that must run before the one that met a conflict.
    pub(super) fn take_producer(&mut self) -> Option<usize> {
        self.producer.take()
    }

    /// The rows that the call may write.
    fn declared(&self) -> &'a [RowId] {
        let (calls, workers) = (self.run.batch.calls.len(), self.run.dealt.len());
        let size = share(calls, workers, 0).len();
        self.run.dealt[self.call / size].rows(self.call % size)
    }

    fn array(&self, row: RowId) -> Array<'a> {
        let batched = Batched { tables: self.run.batch.tables, batch: self.run.number };
        S::array(self.run.versions, batched, row)
    }

    /// Shows what the call has written, and that it did not write the rest; how many versions.
    ///
    /// # Errors
    /// The engine's failure.
    pub(super) fn show(&mut self) -> Result<u64> {
        for row in self.declared() {
            let own = self.own.iter().find(|(written, _)| written == row);
            let content = own.map_or(Content::Ignored, |(_, content)| *content);
            if let Some(version) = self.own_version(*row) {
                version.show(content);
                self.ended(*row)?;
            }
        }
        let versions = self.own.len() as u64;
        self.own.clear();
        Ok(versions)
    }

    fn ended(&mut self, row: RowId) -> Result<()> {
        let ending = Ending {
            tables: self.run.batch.tables,
            batch: self.run.number,
            call: self.call as u32,
            halt: self.run.batch.halt,
            waits: &mut self.waits,
            pool: self.pool,
        };
        S::ended(self.run.versions, row, ending)
    }

    /// The call has written nothing after all.
    ///
    /// # Errors
    /// The engine's failure.
    pub(super) fn give_up(&mut self) -> Result<()> {
        self.forget();
        self.show().map(|_| ())
    }

    /// The call will run again.
    pub(super) fn forget(&mut self) {
        for (_, content) in self.own.drain(..) {
            if let Content::Value(row) = content {
                self.pool.give_back(row);
            }
        }
    }

    /// The version of a row that the call may write.
    fn own_version(&self, row: RowId) -> Option<&'a Version> {
        let versions = self.array(row).versions;
        let at = versions.binary_search_by_key(&(self.call as u32), |version| version.call);
        at.ok().map(|at| &versions[at])
    }

    /// Where the value of a row is that the call sees.
    fn visible(&mut self, row: RowId) -> Result<Option<RowId>, Stop> {
        if let Some((_, content)) = self.own.iter().find(|(written, _)| *written == row) {
            return Ok(value_of(*content));
        }
        let Array { versions, initial } = self.array(row);
        let older = versions.partition_point(|version| (version.call as usize) < self.call);
        for version in versions[..older].iter().rev() {
            let content = match version.content() {
                Content::Pending if self.run.batch.options.has(Fault::SkipPending) => continue,
                Content::Pending => self.await_version(version)?,
                content => content,
            };
            if content != Content::Ignored {
                return Ok(value_of(content));
            }
        }
        if let Some(initial) = initial {
            return Ok(value_of(initial));
        }
        let tables = self.run.batch.tables;
        let current = tables.row(row).current(row.table());
        Ok(tables.row(current).value_bytes().map(|_| current))
    }

    /// Waits for a version; if no thread runs its call and the engine does so, this one will.
    fn await_version(&mut self, version: &Version) -> Result<Content, Stop> {
        let producer = version.call as usize;
        if S::RUNS_PRODUCERS && self.run.claim(producer) {
            self.producer = Some(producer);
            return Err(Stop::Conflict);
        }
        let content = self.run.batch.halt.wait(&mut self.waits, || match version.content() {
            Content::Pending => None,
            content => Some(content),
        })?;
        Ok(content)
    }

    /// Copies the value that the call sees into `value`: its length, `None` if there is no row.
    fn read(&mut self, table: TableId, key: &[u8]) -> Result<Option<(RowId, usize)>, Stop> {
        let tables = self.run.batch.tables;
        let Some(row) = tables.find(table, key) else { return Ok(None) };
        let Some(visible) = self.visible(row)? else { return Ok(None) };
        self.value.clear();
        let bytes = tables.row(visible).copy_value(&mut self.value);
        Ok(bytes.map(|bytes| (row, bytes)))
    }

    fn check_declared(&self, row: RowId, table: TableId, key: &[u8]) -> Result<(), Stop> {
        if self.own_version(row).is_some() {
            return Ok(());
        }
        let name = self.run.batch.tables.name(table);
        let what = format!("key {key:02x?} of {name} is written and was not declared");
        Err(Error::Broken(what).into())
    }

    /// The place for a new value of a row: that of the one which the call wrote before, if it did.
    fn place(&mut self, row: RowId) -> Result<RowId, Stop> {
        let own = self.own.iter().position(|(written, _)| *written == row);
        if let Some((_, Content::Value(place))) = own.map(|at| self.own[at]) {
            return Ok(place);
        }
        let place = self.run.batch.tables.take(row.table(), self.pool)?;
        match own {
            Some(at) => self.own[at].1 = Content::Value(place),
            None => self.own.push((row, Content::Value(place))),
        }
        Ok(place)
    }

    fn put(&mut self, row: RowId, value: &[u8]) -> Result<(), Stop> {
        let place = self.place(row)?;
        Ok(self.run.batch.tables.row(place).set_value(value)?)
    }
}

fn value_of(content: Content) -> Option<RowId> {
    match content {
        Content::Value(row) => Some(row),
        _ => None,
    }
}

impl<S: Store> Accesses for MultiVersion<'_, S> {
    fn get(&mut self, table: TableId, key: &[u8]) -> Result<Option<&[u8]>, Stop> {
        let read = self.read(table, key)?;
        Ok(read.map(|(_, bytes)| &self.value.as_bytes()[..bytes]))
    }

    fn scan(
        &mut self,
        table: TableId,
        low: &[u8],
        high: &[u8],
        descending: bool,
        each: Visit<'_>,
    ) -> Result<(), Stop> {
        let tables = self.run.batch.tables;
        let mut found = std::mem::take(&mut self.found);
        let range = KeyRange { low, high, descending };
        let ended = tables.range(table, range, &mut found, |key, row| {
            let Some(visible) = self.visible(row)? else { return Ok(true) };
            self.value.clear();
            let Some(bytes) = tables.row(visible).copy_value(&mut self.value) else {
                return Ok(true);
            };
            Ok(each(key, &self.value.as_bytes()[..bytes]).is_continue())
        });
        self.found = found;
        ended
    }

    fn insert(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<(), Stop> {
        let row = self.run.batch.tables.find(table, key);
        let name = || format!("key {key:02x?} of table {} was not declared", table.0);
        let row = row.ok_or_else(|| Error::Broken(name()))?;
        self.check_declared(row, table, key)?;
        self.put(row, value)
    }

    fn update(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<bool, Stop> {
        let Some(row) = self.run.batch.tables.find(table, key) else { return Ok(false) };
        if self.visible(row)?.is_none() {
            return Ok(false);
        }
        self.check_declared(row, table, key)?;
        self.put(row, value)?;
        Ok(true)
    }

    fn modify(
        &mut self,
        table: TableId,
        key: &[u8],
        change: impl FnOnce(&mut [u8]),
    ) -> Result<bool, Stop> {
        let Some((row, bytes)) = self.read(table, key)? else { return Ok(false) };
        self.check_declared(row, table, key)?;
        let place = self.place(row)?;
        change(&mut self.value.as_mut_bytes()[..bytes]);
        self.run.batch.tables.row(place).set_whole(&self.value, bytes);
        Ok(true)
    }

    fn modify_part(
        &mut self,
        table: TableId,
        key: &[u8],
        part: Range<usize>,
        change: impl FnOnce(&[u8], &mut [u8]),
    ) -> Result<bool, Stop> {
        let Some((row, bytes)) = self.read(table, key)? else { return Ok(false) };
        self.check_declared(row, table, key)?;
        let place = self.place(row)?;
        let old = &mut self.value.as_mut_bytes()[..bytes];
        change_part(old, part, &mut self.part, change)?;
        self.run.batch.tables.row(place).set_whole(&self.value, bytes);
        Ok(true)
    }

    fn delete(&mut self, table: TableId, key: &[u8]) -> Result<bool, Stop> {
        let Some(row) = self.run.batch.tables.find(table, key) else { return Ok(false) };
        if self.visible(row)?.is_none() {
            return Ok(false);
        }
        self.check_declared(row, table, key)?;
        match self.own.iter_mut().find(|(written, _)| *written == row) {
            Some((_, content)) => {
                let before = std::mem::replace(content, Content::Deleted);
                if let Content::Value(place) = before {
                    self.pool.give_back(place);
                }
            }
            None => self.own.push((row, Content::Deleted)),
        }
        Ok(true)
    }
}
