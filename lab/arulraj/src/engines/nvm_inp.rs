//! NVM-InP: updates in place, a log of pointers, indexes that survive (the paper's 4.1, Table 2).
//!
//! An insert: the tuple is durable; the log has its address; its slots are marked persisted; the
//! index gets it. An update: new long fields are durable; the log has the words before; the new
//! slots are persisted; the words change. A delete: the log has the address; the index loses it.
//! The commit cuts the log. Recovery undoes what is in it, and nothing else.

use std::sync::Arc;

use pmem::Device;

use super::engine::{Engine, Groups, Recovery, Visit, check_row, check_value, end_recovery, magic};
use crate::Result;
use crate::ground::{Footprint, Nvm, Traffic};
use crate::options::{Fault, Options};
use crate::schema::{Changes, Entry, Key, Row, Schema};
use crate::structures::{
    BTree, NO_TUPLE, Undo, UndoLog, WordChange, column_at, flush_slots, make_word, read_tuple,
    slots_of, write_tuple,
};

/// The engine.
pub struct NvmInp<D: Device> {
    nvm: Nvm<D>,
    schema: Schema,
    options: Options,
    trees: Vec<BTree>,
    undo: UndoLog,
    groups: Groups,
}

fn root_of(table: usize) -> [u8; 8] {
    *format!("tree{table:04}").as_bytes().first_chunk().expect("8 bytes")
}

impl<D: Device> NvmInp<D> {
    /// Marks slots persisted, and waits for it.
    fn persist(&mut self, slots: &[u64]) {
        slots.iter().for_each(|slot| self.nvm.mark_persisted(*slot));
        if !slots.is_empty() {
            self.nvm.memory.fence();
        }
    }

    /// The slots are durable and in the log, and then persisted.
    fn log(&mut self, slots: &[u64], undo: &Undo) -> Result<()> {
        flush_slots(&mut self.nvm, slots);
        if !slots.is_empty() {
            self.nvm.memory.fence();
        }
        if self.options.has(Fault::PersistBeforeLog) {
            self.persist(slots);
        }
        self.undo.append(&mut self.nvm, undo)?;
        self.persist(slots);
        Ok(())
    }

    fn change_words(&mut self, words: &[WordChange]) {
        for word in words {
            self.nvm.memory.store_u64(word.at, word.new);
            self.nvm.memory.flush(word.at, 8);
        }
        self.nvm.memory.fence();
        self.nvm.written.memory += words.len() as u64 * 8;
        let old = words.iter().filter(|word| word.is_slot).map(|word| word.old);
        self.undo.give_up(old);
    }
}

impl<D: Device> Engine<D> for NvmInp<D> {
    const NAME: &'static str = "nvm-inp";

    fn create(device: Arc<D>, schema: &Schema, options: &Options) -> Result<Self> {
        let mut nvm = Nvm::create(device, magic(Self::NAME, schema), options.modelled)?;
        let mut trees = Vec::new();
        for (number, table) in schema.tables.iter().enumerate() {
            let tree = BTree::create(&mut nvm, table.key_words(), options.node_bytes, true)?;
            nvm.set_root(&root_of(number), tree.header);
            trees.push(tree);
        }
        let undo = UndoLog::new(&mut nvm);
        let (schema, options) = (schema.clone(), options.clone());
        Ok(Self { nvm, schema, groups: Groups::new(&options), options, trees, undo })
    }

    fn open(device: Arc<D>, schema: &Schema, options: &Options) -> Result<(Self, Recovery)> {
        let mut nvm = Nvm::open(device, magic(Self::NAME, schema), options.modelled)?;
        let mut trees = Vec::new();
        for (number, table) in schema.tables.iter().enumerate() {
            let header = nvm.root(&root_of(number));
            let tree = BTree::at(header, table.key_words(), options.node_bytes, true);
            tree.recover(&mut nvm);
            trees.push(tree);
        }
        let mut undo = UndoLog::new(&mut nvm);
        let undone = undo.undo(&mut nvm, &schema.tables, &trees, true)?;
        let recovery = end_recovery(&mut nvm, 0, undone);
        let (schema, options) = (schema.clone(), options.clone());
        Ok((Self { nvm, schema, groups: Groups::new(&options), options, trees, undo }, recovery))
    }

    fn insert(&mut self, table: usize, key: &Key, row: &[Vec<u8>]) -> Result<bool> {
        check_row(&self.schema, table, row)?;
        if self.trees[table].get(&mut self.nvm, key).is_some() {
            return Ok(false);
        }
        let mut slots = Vec::new();
        let tuple = match row {
            [] => NO_TUPLE,
            row => {
                let of = &self.schema.tables[table];
                write_tuple(&mut self.nvm, of, key, &Entry::full(row), &mut slots)?
            }
        };
        self.log(&slots, &Undo::Linked { table, key: *key, tuple })?;
        self.trees[table].insert(&mut self.nvm, key, tuple)?;
        Ok(true)
    }

    fn update(&mut self, table: usize, key: &Key, changes: Changes<'_>) -> Result<bool> {
        let Some(tuple) = self.trees[table].get(&mut self.nvm, key) else { return Ok(false) };
        let (mut slots, mut words) = (Vec::new(), Vec::new());
        for (column, value) in changes {
            check_value(&self.schema, table, *column, value)?;
            let of = &self.schema.tables[table];
            let at = column_at(of, tuple, *column);
            let old = self.nvm.memory.load_u64(at);
            let new = make_word(&mut self.nvm, of, *column, value, &mut slots)?;
            words.push(WordChange { at, old, new, is_slot: !of.is_inline(*column) });
        }
        if words.is_empty() {
            return Ok(true);
        }
        if self.options.has(Fault::ChangeBeforeLog) {
            flush_slots(&mut self.nvm, &slots);
            self.change_words(&words);
        }
        self.log(&slots, &Undo::Changed(words.clone()))?;
        if !self.options.has(Fault::ChangeBeforeLog) {
            self.change_words(&words);
        }
        Ok(true)
    }

    fn delete(&mut self, table: usize, key: &Key) -> Result<bool> {
        let Some(tuple) = self.trees[table].get(&mut self.nvm, key) else { return Ok(false) };
        self.log(&[], &Undo::Unlinked { table, key: *key, tuple })?;
        if tuple != NO_TUPLE {
            let slots = slots_of(&mut self.nvm, &self.schema.tables[table], tuple);
            self.undo.give_up(slots);
        }
        self.trees[table].remove(&mut self.nvm, key);
        Ok(true)
    }

    fn get(&mut self, table: usize, key: &Key) -> Result<Option<Row>> {
        let Some(tuple) = self.trees[table].get(&mut self.nvm, key) else { return Ok(None) };
        if tuple == NO_TUPLE {
            return Ok(Some(Row::new()));
        }
        let (_, entry) = read_tuple(&mut self.nvm, &self.schema.tables[table], tuple)?;
        Ok(entry.into_row())
    }

    fn scan(&mut self, table: usize, from: &Key, to: Option<&Key>, each: Visit<'_>) -> Result<()> {
        super::inp::scan_tree(&mut self.nvm, &self.schema, &self.trees, table, from, to, each)
    }

    fn commit(&mut self) -> Result<u64> {
        self.undo.commit(&mut self.nvm);
        let number = self.groups.commit();
        self.groups.all_durable();
        Ok(number)
    }

    fn abort(&mut self) -> Result<()> {
        self.undo.undo(&mut self.nvm, &self.schema.tables, &self.trees, false)?;
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    fn durable(&self) -> u64 {
        self.groups.durable()
    }

    fn traffic(&self) -> Traffic {
        self.nvm.traffic()
    }

    fn footprint(&self) -> (Footprint, Footprint) {
        (self.nvm.used(), self.nvm.peak())
    }

    #[cfg(test)]
    fn lost_slots(&mut self) -> Result<u64> {
        let mut reached = 0;
        for (table, tree) in self.trees.iter().enumerate() {
            reached += tree.slots(&mut self.nvm).len() as u64;
            for (_, tuple) in tree.range(&mut self.nvm, &Key::MIN, None) {
                if tuple != NO_TUPLE {
                    let of = &self.schema.tables[table];
                    reached += slots_of(&mut self.nvm, of, tuple).len() as u64;
                }
            }
        }
        Ok(self.nvm.persisted_slots().abs_diff(reached))
    }
}
