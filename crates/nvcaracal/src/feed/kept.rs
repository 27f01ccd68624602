//! The changes that are kept in memory, for all readers.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, PoisonError};
use std::task::Waker;
use std::time::Instant;

use engine::{Change, EpochChanges};
use storage::{EpochNumber, TableId};

use crate::body;
use crate::error::{Error, Result};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::event_count::EventCount;
use crate::sync::{Mutex, MutexGuard};

/// The changes of a table in one epoch, by key.
pub(crate) type OfEpoch = Arc<[Change]>;

/// All feeds of a database.
pub(crate) struct Feeds {
    /// Most bytes of changes, over all tables.
    pub(crate) bytes_max: u64,
    /// Whether there is any feed: changed between epochs.
    are_any: AtomicBool,
    kept: Mutex<Kept>,
    /// Advances when an epoch has ended, or the database.
    came: EventCount,
}

#[derive(Default)]
struct Kept {
    /// The last epoch that has ended.
    epoch: EpochNumber,
    tables: BTreeMap<TableId, Feed>,
    bytes: u64,
    /// Why no more changes come.
    ended: Option<Error>,
    /// Tasks that wait for changes.
    wakers: Vec<Waker>,
}

/// The feed of one table.
struct Feed {
    readers: usize,
    /// The changes of all epochs after this one are here.
    after: EpochNumber,
    epochs: VecDeque<(EpochNumber, OfEpoch)>,
}

/// What a reader finds behind an epoch.
pub(crate) enum NextChanges {
    /// The changes of the next epoch in which there were any.
    Changes(EpochNumber, OfEpoch),
    /// None up to this epoch, the last one.
    NothingUpTo(EpochNumber),
}

fn bytes_of(changes: &[Change]) -> u64 {
    changes.iter().map(Change::bytes).sum()
}

impl Feeds {
    pub(crate) fn new(bytes_max: u64) -> Self {
        let (kept, came) = (Mutex::default(), EventCount::default());
        Self { bytes_max, are_any: AtomicBool::new(false), kept, came }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more reader of a table, who has seen the changes up to an epoch, by default up to the
    /// last one that has ended, which is `epoch`. Called between two epochs. Returns up to where
    /// the reader has seen them, and which tables have feeds now.
    ///
    /// # Errors
    /// [`Error::kept_after`] if changes of later epochs are not here; a mistake if the epoch is
    /// still to come.
    pub(crate) fn open(
        &self,
        table: TableId,
        after: Option<EpochNumber>,
        epoch: EpochNumber,
    ) -> Result<(EpochNumber, Vec<TableId>)> {
        let mut kept = self.kept();
        if let Some(ended) = &kept.ended {
            return Err(ended.clone());
        }
        if kept.tables.is_empty() {
            kept.epoch = epoch;
        }
        assert!(kept.epoch == epoch, "the feeds are at epoch {}, not {epoch}", kept.epoch);
        let after = after.unwrap_or(epoch);
        if after > epoch {
            return Err(Error::mistake(format!(
                "changes after epoch {after} are still to come: the last one is {epoch}"
            )));
        }
        let first = kept.tables.get(&table).map_or(epoch, |feed| feed.after);
        if after < first {
            return Err(Error::changes_gone(after.0, first.0));
        }
        let empty = Feed { readers: 0, after: epoch, epochs: VecDeque::new() };
        kept.tables.entry(table).or_insert(empty).readers += 1;
        self.are_any.store(true, Ordering::Relaxed);
        Ok((after, kept.tables.keys().copied().collect()))
    }

    /// A reader of a table is gone. Called between two epochs. Returns which tables have feeds now.
    pub(crate) fn close(&self, table: TableId) -> Vec<TableId> {
        let mut kept = self.kept();
        let feed = kept.tables.get_mut(&table).expect("it was opened");
        feed.readers -= 1;
        if feed.readers == 0 {
            let feed = kept.tables.remove(&table).expect("it was just there");
            kept.bytes -= feed.epochs.iter().map(|(_, changes)| bytes_of(changes)).sum::<u64>();
        }
        self.are_any.store(!kept.tables.is_empty(), Ordering::Relaxed);
        kept.tables.keys().copied().collect()
    }

    /// An epoch has ended, in which this has changed in the tables that have feeds.
    pub(crate) fn add(&self, epoch: EpochNumber, changes: EpochChanges) {
        if !self.are_any.load(Ordering::Relaxed) {
            return;
        }
        let mut kept = self.kept();
        kept.add(epoch, changes, self.bytes_max);
        self.tell(kept);
    }

    /// No more changes come.
    pub(crate) fn end(&self, why: &Error) {
        let mut kept = self.kept();
        kept.ended.get_or_insert_with(|| why.clone());
        self.tell(kept);
    }

    /// Why no more changes come.
    pub(crate) fn ended(&self) -> Option<Error> {
        self.kept().ended.clone()
    }

    fn tell(&self, mut kept: MutexGuard<'_, Kept>) {
        let wakers = std::mem::take(&mut kept.wakers);
        // A task may run at once on this thread.
        drop(kept);
        self.came.notify();
        body::wake(wakers);
    }

    /// What comes in a table after an epoch.
    ///
    /// # Errors
    /// [`Error::kept_after`] if that is not kept any more; why the database has ended, where
    /// nothing is left to be read.
    pub(crate) fn find(&self, table: TableId, after: EpochNumber) -> Result<NextChanges> {
        self.kept().find(table, after)
    }

    /// [`Feeds::find`]; where there is nothing yet, the task is woken when there may be something.
    pub(crate) fn find_or_wake(
        &self,
        table: TableId,
        after: EpochNumber,
        waker: &Waker,
    ) -> Result<NextChanges> {
        // Cloning runs code of the task's runtime: no lock is held.
        let waker = waker.clone();
        let mut kept = self.kept();
        let found = kept.find(table, after)?;
        if let NextChanges::NothingUpTo(_) = found
            && !kept.wakers.iter().any(|other| other.will_wake(&waker))
        {
            kept.wakers.push(waker);
        }
        Ok(found)
    }

    /// [`Feeds::find`]; where there is nothing, waits until there is, or `until` has come.
    pub(crate) fn find_or_wait(
        &self,
        table: TableId,
        mut after: EpochNumber,
        until: Option<Instant>,
    ) -> Result<NextChanges> {
        loop {
            let count = self.came.count();
            match self.find(table, after)? {
                NextChanges::NothingUpTo(epoch)
                    if until.is_none_or(|until| until > Instant::now()) =>
                {
                    after = epoch;
                    body::check_may_wait()?;
                    self.came.wait(count, until);
                }
                found => return Ok(found),
            }
        }
    }

    /// Checks that changes after an epoch are kept, or are still to come with the next one.
    ///
    /// # Errors
    /// As [`Feeds::find`]; a mistake if the epoch is still to come.
    pub(crate) fn check_kept(&self, table: TableId, after: EpochNumber) -> Result<()> {
        let kept = self.kept();
        let epoch = kept.epoch;
        if after > epoch {
            return Err(Error::mistake(format!(
                "changes after epoch {after} are still to come: the last one is {epoch}"
            )));
        }
        kept.feed(table, after).map(drop)
    }
}

impl Kept {
    fn feed(&self, table: TableId, after: EpochNumber) -> Result<&Feed> {
        let feed = self.tables.get(&table).expect("it has a reader");
        match after < feed.after {
            true => Err(Error::changes_gone(after.0, feed.after.0)),
            false => Ok(feed),
        }
    }

    fn find(&self, table: TableId, after: EpochNumber) -> Result<NextChanges> {
        let feed = self.feed(table, after)?;
        let next = feed.epochs.partition_point(|(epoch, _)| *epoch <= after);
        match (feed.epochs.get(next), &self.ended) {
            (Some((epoch, changes)), _) => Ok(NextChanges::Changes(*epoch, Arc::clone(changes))),
            (None, Some(ended)) => Err(ended.clone()),
            (None, None) => Ok(NextChanges::NothingUpTo(self.epoch.max(after))),
        }
    }

    fn add(&mut self, epoch: EpochNumber, changes: EpochChanges, bytes_max: u64) {
        assert!(epoch == self.epoch.next(), "epoch {epoch} comes after {}", self.epoch);
        self.epoch = epoch;
        let EpochChanges { rows, are_too_many } = changes;
        if are_too_many {
            // Of none of the tables is it known what has changed.
            self.bytes = 0;
            for feed in self.tables.values_mut() {
                feed.epochs.clear();
                feed.after = epoch;
            }
            return;
        }
        let mut rows = rows.into_iter().peekable();
        while let Some(table) = rows.peek().map(|change| change.table) {
            let of_table = std::iter::from_fn(|| rows.next_if(|change| change.table == table));
            let changes: OfEpoch = of_table.collect();
            // The feed of a table that is closed may have been watched until now.
            if let Some(feed) = self.tables.get_mut(&table) {
                self.bytes += bytes_of(&changes);
                feed.epochs.push_back((epoch, changes));
            }
        }
        while self.bytes > bytes_max {
            self.forget_oldest();
        }
    }

    /// Forgets the changes of the oldest epoch that has any.
    fn forget_oldest(&mut self) {
        let first = |feed: &Feed| feed.epochs.front().map(|(epoch, _)| *epoch);
        let oldest = self.tables.values_mut().filter(|feed| first(feed).is_some());
        let oldest = oldest.min_by_key(|feed| first(feed)).expect("something takes the bytes");
        let (epoch, changes) = oldest.epochs.pop_front().expect("it has an epoch");
        oldest.after = epoch;
        self.bytes -= bytes_of(&changes);
    }
}

#[cfg(test)]
mod tests;
