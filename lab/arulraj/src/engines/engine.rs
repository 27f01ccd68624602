//! What every engine offers: transactions of one thread, and a recovery.

use std::ops::ControlFlow;
use std::sync::Arc;

use pmem::Device;

use super::base::Base;
use crate::Result;
use crate::ground::{Footprint, Traffic};
use crate::options::Options;
use crate::schema::{Changes, Key, Row, Schema};
use crate::structures::Leaf;

/// Sees a tuple of a scan, and says whether to go on.
pub type Visit<'a> = &'a mut dyn FnMut(&Key, Row) -> ControlFlow<()>;

/// What a recovery did.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Recovery {
    /// Changes that were made again from a log.
    pub redone: u64,
    /// Entries of a log that were undone.
    pub undone: u64,
    /// What the engine itself read and wrote.
    pub engine: Traffic,
    /// Of the lines that it read and wrote, those of loading checkpoints and tables ...
    pub loaded_lines: u64,
    /// ... and those of making the log's changes again.
    pub redone_lines: u64,
    /// Slots that the allocator looked at afterwards: the paper counts that for a restart of the
    /// system, not for one of the program.
    pub slots: u64,
    /// Slots that it freed, because they were not persisted.
    pub freed: u64,
}

/// A storage engine of one partition. Tables are numbers; secondary indexes are tables, too, which
/// [`crate::Partition`] maintains. Before the first change and after `commit` and `abort` there is
/// no transaction; a change begins one.
///
/// An engine says how its tuples are found, changed and made durable; all else follows from that.
pub trait Engine<D: Device>: Sized {
    /// Name for reports.
    const NAME: &'static str;

    /// Whether transactions become durable in groups; otherwise each commit is durable.
    const COMMITS_GROUPS: bool;

    /// What leads to a tuple once its key was found.
    type Found;

    /// Makes an empty store.
    ///
    /// # Errors
    /// The device's, and tables that do not fit.
    fn create(device: Arc<D>, schema: &Schema, options: &Options) -> Result<Self>;

    /// Recovers what such an engine left on the device.
    ///
    /// # Errors
    /// The device's, and what cannot be such a store.
    fn open(device: Arc<D>, schema: &Schema, options: &Options) -> Result<(Self, Recovery)>;

    /// What the engine has in common with the others.
    fn base(&self) -> &Base<D>;

    /// The same, to be changed.
    fn base_mut(&mut self) -> &mut Base<D>;

    /// Finds the tuple of a key.
    ///
    /// # Errors
    /// The device's.
    fn find(&mut self, table: usize, key: &Key) -> Result<Option<Self::Found>>;

    /// Finds the first keys of a range, in order; there may be some behind its end.
    ///
    /// # Errors
    /// The device's.
    fn leaf(&mut self, table: usize, from: &Key, to: Option<&Key>) -> Result<Leaf<Self::Found>>;

    /// Reads the tuple of a key that was found, if it has one.
    ///
    /// # Errors
    /// The device's.
    fn read(&mut self, table: usize, key: &Key, found: Self::Found) -> Result<Option<Row>>;

    /// Puts a tuple where there is none.
    ///
    /// # Errors
    /// The device's.
    fn put(&mut self, table: usize, key: &Key, row: &[Vec<u8>]) -> Result<()>;

    /// Changes fields of a tuple that was found.
    ///
    /// # Errors
    /// The device's.
    fn change(
        &mut self,
        table: usize,
        key: &Key,
        found: Self::Found,
        changes: Changes<'_>,
    ) -> Result<()>;

    /// Removes a tuple that was found.
    ///
    /// # Errors
    /// The device's.
    fn remove(&mut self, table: usize, key: &Key, found: Self::Found) -> Result<()>;

    /// The running transaction commits: its changes stay.
    ///
    /// # Errors
    /// The device's.
    fn keep(&mut self) -> Result<()>;

    /// Undoes the running transaction.
    ///
    /// # Errors
    /// The device's.
    fn abort(&mut self) -> Result<()>;

    /// Makes the group durable.
    ///
    /// # Errors
    /// The device's.
    fn end_group(&mut self) -> Result<()>;

    /// After a group: makes a checkpoint or a run, if it is time.
    ///
    /// # Errors
    /// The device's.
    fn after_group(&mut self) -> Result<()> {
        Ok(())
    }

    /// Brings the store into the state in which a restart finds an empty log: a checkpoint, or an
    /// empty MemTable. Nothing waits for its group.
    ///
    /// # Errors
    /// The device's.
    fn settle(&mut self) -> Result<()> {
        Ok(())
    }

    /// Inserts a tuple; false if the key exists.
    ///
    /// # Errors
    /// The device's, and values that do not fit.
    fn insert(&mut self, table: usize, key: &Key, row: &[Vec<u8>]) -> Result<bool> {
        self.base().check_row(table, row)?;
        if self.find(table, key)?.is_some() {
            return Ok(false);
        }
        self.put(table, key, row)?;
        Ok(true)
    }

    /// Changes fields of a tuple; false if there is none. A field may be named once.
    ///
    /// # Errors
    /// The device's, and values that do not fit.
    fn update(&mut self, table: usize, key: &Key, changes: Changes<'_>) -> Result<bool> {
        self.base().check_changes(table, changes)?;
        let Some(found) = self.find(table, key)? else { return Ok(false) };
        if !changes.is_empty() {
            self.change(table, key, found, changes)?;
        }
        Ok(true)
    }

    /// Deletes a tuple; false if there is none.
    ///
    /// # Errors
    /// The device's.
    fn delete(&mut self, table: usize, key: &Key) -> Result<bool> {
        let Some(found) = self.find(table, key)? else { return Ok(false) };
        self.remove(table, key, found)?;
        Ok(true)
    }

    /// Reads a tuple.
    ///
    /// # Errors
    /// The device's.
    fn get(&mut self, table: usize, key: &Key) -> Result<Option<Row>> {
        match self.find(table, key)? {
            Some(found) => self.read(table, key, found),
            None => Ok(None),
        }
    }

    /// Visits the tuples with `from <= key`, and `key < to` if there is a `to`, in order.
    ///
    /// # Errors
    /// The device's.
    fn scan(&mut self, table: usize, from: &Key, to: Option<&Key>, each: Visit<'_>) -> Result<()> {
        let mut next = Some(*from);
        while let Some(from) = next.filter(|from| to.is_none_or(|to| from < to)) {
            let leaf = self.leaf(table, &from, to)?;
            for (key, found) in leaf.entries {
                if to.is_some_and(|to| key >= *to) {
                    return Ok(());
                }
                if let Some(row) = self.read(table, &key, found)?
                    && each(&key, row) == ControlFlow::Break(())
                {
                    return Ok(());
                }
            }
            next = leaf.next.filter(|next| *next > from);
        }
        Ok(())
    }

    /// Commits the running transaction. It may be answered once [`Engine::durable`] has come to its
    /// number: the first one is 1.
    ///
    /// # Errors
    /// The device's.
    fn commit(&mut self) -> Result<u64> {
        self.keep()?;
        let groups = &mut self.base_mut().groups;
        let number = groups.commit();
        if !Self::COMMITS_GROUPS || groups.is_full() {
            self.flush()?;
        }
        Ok(number)
    }

    /// Ends the group, so that everything that was committed is durable.
    ///
    /// # Errors
    /// The device's.
    fn flush(&mut self) -> Result<()> {
        if self.base().groups.is_flushed() {
            return Ok(());
        }
        self.end_group()?;
        self.base_mut().groups.all_durable();
        self.after_group()
    }

    /// How many of the transactions that committed since the open are durable.
    fn durable(&self) -> u64 {
        self.base().groups.durable()
    }

    /// What went to and from the device.
    fn traffic(&self) -> Traffic {
        self.base().nvm.traffic()
    }

    /// Bytes in use now, and at most.
    fn footprint(&self) -> (Footprint, Footprint) {
        (self.base().nvm.used(), self.base().nvm.peak())
    }

    /// How many persisted slots something leads to.
    #[cfg(test)]
    fn reached_slots(&mut self) -> Result<u64> {
        Ok(self.base().nvm.extents_count())
    }

    /// By how many the persisted slots differ from those that something leads to: lost memory, or
    /// memory in use that is free.
    #[cfg(test)]
    fn lost_slots(&mut self) -> Result<u64> {
        let reached = self.reached_slots()?;
        Ok(self.base_mut().nvm.persisted_slots().abs_diff(reached))
    }
}

/// What a key had before the running transaction.
pub(super) struct Before<T> {
    pub(super) table: usize,
    pub(super) key: Key,
    pub(super) before: Option<T>,
}
