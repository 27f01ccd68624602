//! Whether what an engine with snapshot isolation answered is what snapshot isolation allows.
//!
//! The calls that were answered run once more, in the order of their commits, each on the rows as
//! they were at the place that it says it read. Every answer must be the same, no call may
//! overwrite a row that another one wrote behind the place that it read (the first committer
//! wins), and so must be every row at the end. *Write skew* passes: calls that read what the other
//! one writes.

use std::collections::BTreeMap;
use std::ops::{Bound, Range};

use pmem::Counters;
use workloads::oracle::Oracle;
use workloads::{TableId, View, Visit, Workload};

use super::compare_states;
use crate::error::Result;
use crate::rival::{Accesses, Counts, Session, Stop};
use crate::run::calls::{Answered, Calls};
use crate::run::procedure::Procedures;

/// A value, and from which place on it is there.
struct Version {
    place: u64,
    value: Option<Vec<u8>>,
}

/// A table with all that its rows ever were, from old to new.
type Past = BTreeMap<Vec<u8>, Vec<Version>>;

/// What a running call wrote in a table.
type Written = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// All tables, and the call that runs.
struct Replay {
    tables: Vec<Past>,
    written: Vec<Written>,
    /// What the call reads, and where it commits.
    snapshot: u64,
    place: u64,
    /// A row that was overwritten though it was newer than the snapshot.
    lost: Option<String>,
}

impl Replay {
    fn loaded<W: Workload>(workload: &W) -> Self {
        let oracle = Oracle::loaded(workload);
        let mut tables = Vec::new();
        for number in 0..workload.tables().len() {
            let mut past = Past::new();
            oracle.for_each(TableId(number as u16), &mut |key, value| {
                past.insert(key.to_vec(), vec![Version { place: 0, value: Some(value.to_vec()) }]);
            });
            tables.push(past);
        }
        let written = tables.iter().map(|_| Written::new()).collect();
        Self { tables, written, snapshot: 0, place: 0, lost: None }
    }

    fn value(&self, table: TableId, key: &[u8]) -> Option<&[u8]> {
        let table = usize::from(table.0);
        if let Some(own) = self.written[table].get(key) {
            return own.as_deref();
        }
        at(self.tables[table].get(key)?, self.snapshot)
    }

    fn write(&mut self, table: TableId, key: &[u8], value: Option<Vec<u8>>) {
        self.written[usize::from(table.0)].insert(key.to_vec(), value);
    }
}

/// The value of a row at a place.
fn at(versions: &[Version], place: u64) -> Option<&[u8]> {
    let version = versions.iter().rev().find(|version| version.place <= place)?;
    version.value.as_deref()
}

impl Accesses for Replay {
    fn get(&mut self, table: TableId, key: &[u8]) -> Result<Option<&[u8]>, Stop> {
        Ok(self.value(table, key))
    }

    fn scan(
        &mut self,
        table: TableId,
        low: &[u8],
        high: &[u8],
        descending: bool,
        each: Visit<'_>,
    ) -> Result<(), Stop> {
        if low >= high {
            return Ok(());
        }
        let range = (Bound::Included(low), Bound::Excluded(high));
        let number = usize::from(table.0);
        let past = self.tables[number].range::<[u8], _>(range).map(|(key, _)| key);
        let own = self.written[number].range::<[u8], _>(range).map(|(key, _)| key);
        let mut keys: Vec<&Vec<u8>> = past.chain(own).collect();
        keys.sort_unstable();
        keys.dedup();
        if descending {
            keys.reverse();
        }
        for key in keys {
            if let Some(value) = self.value(table, key)
                && each(key, value).is_break()
            {
                break;
            }
        }
        Ok(())
    }

    fn insert(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<(), Stop> {
        self.write(table, key, Some(value.to_vec()));
        Ok(())
    }

    fn update(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<bool, Stop> {
        let is_there = self.value(table, key).is_some();
        if is_there {
            self.write(table, key, Some(value.to_vec()));
        }
        Ok(is_there)
    }

    fn modify(
        &mut self,
        table: TableId,
        key: &[u8],
        change: impl FnOnce(&mut [u8]),
    ) -> Result<bool, Stop> {
        let Some(mut value) = self.value(table, key).map(<[u8]>::to_vec) else { return Ok(false) };
        change(&mut value);
        self.write(table, key, Some(value));
        Ok(true)
    }

    fn modify_part(
        &mut self,
        table: TableId,
        key: &[u8],
        part: Range<usize>,
        change: impl FnOnce(&[u8], &mut [u8]),
    ) -> Result<bool, Stop> {
        let Some(mut value) = self.value(table, key).map(<[u8]>::to_vec) else { return Ok(false) };
        let mut copy = value[part.clone()].to_vec();
        change(&value, &mut copy);
        value[part].copy_from_slice(&copy);
        self.write(table, key, Some(value));
        Ok(true)
    }

    fn delete(&mut self, table: TableId, key: &[u8]) -> Result<bool, Stop> {
        let is_there = self.value(table, key).is_some();
        if is_there {
            self.write(table, key, None);
        }
        Ok(is_there)
    }
}

impl Session for Replay {
    fn begin(&mut self) {
        self.roll_back();
    }

    fn commit(&mut self) -> Result<u64, Stop> {
        let (place, snapshot) = (self.place, self.snapshot);
        for (number, (past, written)) in self.tables.iter_mut().zip(&mut self.written).enumerate() {
            for (key, value) in std::mem::take(written) {
                let versions = past.entry(key).or_default();
                if value.is_none() && at(versions, snapshot).is_none() {
                    // A row that it has inserted and deleted: it has written nothing.
                    continue;
                }
                if versions.last().is_some_and(|last| last.place > snapshot) {
                    let what = format!("a row of table {number} was overwritten that is newer");
                    self.lost = Some(what);
                }
                versions.push(Version { place, value });
            }
        }
        Ok(place)
    }

    fn give_up(&mut self) -> Result<u64, Stop> {
        self.roll_back();
        Ok(self.place)
    }

    fn roll_back(&mut self) {
        self.written.iter_mut().for_each(Written::clear);
    }

    fn durable(&self) -> u64 {
        u64::MAX
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }

    fn take_counters(&mut self) -> Counters {
        Counters::default()
    }

    fn count(&self) -> Counts {
        Counts::default()
    }
}

impl View for Replay {
    fn get(&self, table: TableId, key: &[u8]) -> Option<Vec<u8>> {
        at(self.tables[usize::from(table.0)].get(key)?, u64::MAX).map(<[u8]>::to_vec)
    }

    fn for_each(&self, table: TableId, each: &mut dyn FnMut(&[u8], &[u8])) {
        for (key, versions) in &self.tables[usize::from(table.0)] {
            if let Some(value) = at(versions, u64::MAX) {
                each(key, value);
            }
        }
    }
}

/// Compares a history that began with the loaded data, and the state at its end, with what snapshot
/// isolation allows.
///
/// # Errors
/// What differs first.
pub fn check_snapshots<W: Workload>(
    workload: &W,
    calls: &Calls,
    history: &mut [Answered],
    view: &dyn View,
) -> Result<(), String> {
    history.sort_unstable_by_key(|answered| answered.serial);
    let mut replay = Replay::loaded(workload);
    let mut procedures = Procedures::default();
    workload.register(&mut procedures);
    let mut output = Vec::new();
    for answered in history.iter() {
        let Answered { call, serial, snapshot, .. } = *answered;
        (replay.place, replay.snapshot) = (serial, snapshot.unwrap_or(serial));
        let (procedure, args) = calls.get(call);
        let done = procedures.run(&mut replay, procedure, args, &mut output);
        let done = done.map_err(|error| error.to_string())?;
        let at = || format!("call {call}, which read place {} and is at {serial}", replay.snapshot);
        if let Some(lost) = replay.lost.take() {
            return Err(format!("{}: {lost}", at()));
        }
        let is_same = answered.outcome == done.outcome && answered.output == output;
        if !is_same {
            let was = (answered.outcome, &answered.output);
            let is = (done.outcome, &output);
            return Err(format!("{} was answered {was:02x?}, but comes to {is:02x?}", at()));
        }
    }
    compare_states(workload, &replay, view)
}
