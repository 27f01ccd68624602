//! NVM-InP: updates in place, a log of pointers, indexes that survive (the paper's 4.1, Table 2).
//!
//! An insert: the tuple is durable; the log has its address; its slots are marked persisted; the
//! index gets it. An update: the log has the words before and after; new long fields are durable
//! and persisted, and the words change, by one fence. A delete: the log has the address; the index
//! loses it.
//! The commit cuts the log. Recovery undoes what is in it, and nothing else.

use std::sync::Arc;

use pmem::Device;

use super::base::Base;
use super::engine::{Engine, Recovery};
use crate::Result;
use crate::options::Options;
use crate::schema::{Changes, Entry, Key, Row, Schema};
use crate::structures::{BTree, Leaf, Undo, UndoLog, word_changes, write_row};

/// The engine.
pub struct NvmInp<D: Device> {
    base: Base<D>,
    trees: Vec<BTree>,
    undo: UndoLog,
}

fn root_of(table: usize) -> [u8; 8] {
    *format!("tree{table:04}").as_bytes().first_chunk().expect("8 bytes")
}

impl<D: Device> NvmInp<D> {
    fn log(&mut self, slots: &[u64], undo: &Undo) -> Result<()> {
        let Base { nvm, schema, options, .. } = &mut self.base;
        self.undo.log_link(nvm, &schema.tables, slots, undo, options)
    }
}

impl<D: Device> Engine<D> for NvmInp<D> {
    const NAME: &'static str = "nvm-inp";
    const COMMITS_GROUPS: bool = false;
    type Found = u64;

    fn create(device: Arc<D>, schema: &Schema, options: &Options) -> Result<Self> {
        let mut base = Base::create(Self::NAME, device, schema, options)?;
        let trees = base.new_trees(true)?;
        for (table, tree) in trees.iter().enumerate() {
            base.nvm.set_root(&root_of(table), tree.header);
        }
        let undo = UndoLog::new(&mut base.nvm);
        Ok(Self { base, trees, undo })
    }

    fn open(device: Arc<D>, schema: &Schema, options: &Options) -> Result<(Self, Recovery)> {
        let mut base = Base::open(Self::NAME, device, schema, options)?;
        let tables = 0..schema.tables.len();
        let headers: Vec<u64> = tables.map(|table| base.nvm.root(&root_of(table))).collect();
        let trees = base.trees_at(&headers, true);
        trees.iter().for_each(|tree| tree.recover(&mut base.nvm));
        let mut undo = UndoLog::new(&mut base.nvm);
        let undone = undo.undo(&mut base.nvm, &schema.tables, &trees, true)?;
        let recovery = base.end_recovery(0, undone);
        Ok((Self { base, trees, undo }, recovery))
    }

    fn base(&self) -> &Base<D> {
        &self.base
    }

    fn base_mut(&mut self) -> &mut Base<D> {
        &mut self.base
    }

    fn find(&mut self, table: usize, key: &Key) -> Result<Option<u64>> {
        Ok(self.trees[table].get(&mut self.base.nvm, key))
    }

    fn leaf(&mut self, table: usize, from: &Key, _: Option<&Key>) -> Result<Leaf<u64>> {
        Ok(self.trees[table].leaf_from(&mut self.base.nvm, from))
    }

    fn read(&mut self, table: usize, _: &Key, tuple: u64) -> Result<Option<Row>> {
        Ok(self.base.read_tuple(table, tuple)?.into_row())
    }

    fn put(&mut self, table: usize, key: &Key, row: &[Vec<u8>]) -> Result<()> {
        let mut slots = Vec::new();
        let of = &self.base.schema.tables[table];
        let tuple = write_row(&mut self.base.nvm, of, key, &Entry::full(row), &mut slots)?;
        self.log(&slots, &Undo::Linked { table, key: *key, tuple })?;
        self.trees[table].insert(&mut self.base.nvm, key, tuple)?;
        Ok(())
    }

    fn change(&mut self, table: usize, _: &Key, tuple: u64, changes: Changes<'_>) -> Result<()> {
        let mut slots = Vec::new();
        let Base { nvm, schema, options, .. } = &mut self.base;
        let words = word_changes(nvm, &schema.tables[table], tuple, changes, &mut slots)?;
        self.undo.change_words(nvm, &slots, &words, options)
    }

    fn remove(&mut self, table: usize, key: &Key, tuple: u64) -> Result<()> {
        self.log(&[], &Undo::Unlinked { table, key: *key, tuple })?;
        self.undo.give_up(self.base.slots_of(table, tuple));
        self.trees[table].remove(&mut self.base.nvm, key);
        Ok(())
    }

    fn keep(&mut self) -> Result<()> {
        self.undo.commit(&mut self.base.nvm);
        Ok(())
    }

    fn abort(&mut self) -> Result<()> {
        self.undo.undo(&mut self.base.nvm, &self.base.schema.tables, &self.trees, false)?;
        Ok(())
    }

    fn end_group(&mut self) -> Result<()> {
        Ok(())
    }

    #[cfg(test)]
    fn reached_slots(&mut self) -> Result<u64> {
        let trees = self.trees.iter().enumerate();
        Ok(trees.map(|(table, tree)| self.base.count_slots(table, tree)).sum())
    }
}
