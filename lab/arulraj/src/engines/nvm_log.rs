//! NVM-Log: an LSM tree of MemTables that stay where they are (the paper's 4.3, Table 2).
//!
//! Changes go to the MemTable as in NVM-InP: what is new is durable, the log has its address, it is
//! persisted, and the tree or the entry changes. The commit cuts the log. A full MemTable is not
//! written anywhere: it becomes an immutable run, with a Bloom filter. Merged runs make a new one,
//! whose entries are the addresses of the old ones where nothing has to be put together. Which runs
//! there are is said by the manifest; a new one takes the place of the old by one store. Recovery
//! undoes the running transaction in the MemTable.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use pmem::Device;

use super::engine::{Engine, Groups, Recovery, Visit, check_row, check_value, end_recovery, magic};
use crate::ground::{Area, Footprint, Nvm, Traffic};
use crate::options::{Fault, Options};
use crate::schema::{Changes, Entry, Key, Kind, Row, Schema};
use crate::structures::{
    BTree, Batch, Bloom, Change, Coalesced, Order, Plan, RunSize, Undo, UndoLog, WordChange,
    change_bytes, choose, field_slots, flush_slots, plan, read_tuple, recover_batch, slots_of,
    tuple_bytes, write_tuple,
};
use crate::{Error, Result};

const MANIFEST: &[u8; 8] = b"manifest";

/// An immutable MemTable.
#[derive(Debug, Clone)]
struct Run {
    /// The slot that describes it.
    slot: u64,
    size: RunSize,
    trees: Vec<BTree>,
    bloom: Bloom,
}

/// The engine.
pub struct NvmLog<D: Device> {
    nvm: Nvm<D>,
    schema: Schema,
    options: Options,
    /// The MemTable.
    trees: Vec<BTree>,
    bytes: u64,
    /// The newest first.
    runs: Vec<Run>,
    manifest: u64,
    manifest_at: u64,
    undo: UndoLog,
    groups: Groups,
}

impl<D: Device> NvmLog<D> {
    fn new(mut nvm: Nvm<D>, schema: &Schema, options: &Options) -> Self {
        let manifest_at = nvm.root_at(MANIFEST);
        let undo = UndoLog::new(&mut nvm);
        Self {
            nvm,
            schema: schema.clone(),
            options: options.clone(),
            trees: Vec::new(),
            bytes: 0,
            runs: Vec::new(),
            manifest: 0,
            manifest_at,
            undo,
            groups: Groups::new(options),
        }
    }

    fn persist(&mut self, slots: &[u64]) {
        slots.iter().for_each(|slot| self.nvm.mark_persisted(*slot));
        if !slots.is_empty() {
            self.nvm.memory.fence();
        }
    }

    /// Makes a change in the MemTable, by the steps of the paper's Table 2.
    fn change(&mut self, table: usize, key: &Key, change: &Change<'_>) -> Result<()> {
        let (of, tree) = (&self.schema.tables[table], self.trees[table]);
        let mut slots = Vec::new();
        let plan = plan(&mut self.nvm, of, &tree, key, change, &mut slots)?;
        self.bytes += change_bytes(of, change);
        flush_slots(&mut self.nvm, &slots);
        if !slots.is_empty() {
            self.nvm.memory.fence();
        }
        let undo = match &plan {
            Plan::Link(tuple) => Undo::Linked { table, key: *key, tuple: *tuple },
            Plan::Words(words) => Undo::Changed(words.clone()),
        };
        if self.options.has(Fault::PersistBeforeLog) {
            self.persist(&slots);
        }
        if self.options.has(Fault::ChangeBeforeLog) {
            self.apply(table, key, &plan)?;
        }
        self.undo.append(&mut self.nvm, &undo)?;
        self.persist(&slots);
        if !self.options.has(Fault::ChangeBeforeLog) {
            self.apply(table, key, &plan)?;
        }
        Ok(())
    }

    fn apply(&mut self, table: usize, key: &Key, plan: &Plan) -> Result<()> {
        match plan {
            Plan::Link(tuple) => {
                self.trees[table].insert(&mut self.nvm, key, *tuple)?;
            }
            Plan::Words(words) => {
                for word in words {
                    self.nvm.memory.store_u64(word.at, word.new);
                    self.nvm.memory.flush(word.at, 8);
                }
                self.nvm.memory.fence();
                self.nvm.written.memory += words.len() as u64 * 8;
                let is_old = |word: &&WordChange| word.is_slot && word.old != 0;
                self.undo.give_up(words.iter().filter(is_old).map(|word| word.old));
            }
        }
        Ok(())
    }

    /// The tuple of a key, put together from the runs that have entries of it.
    fn lookup(&mut self, table: usize, key: &Key) -> Result<Option<Row>> {
        let mut found = Coalesced::default();
        if let Some(tuple) = self.trees[table].get(&mut self.nvm, key) {
            let of = &self.schema.tables[table];
            if !found.add(read_tuple(&mut self.nvm, of, tuple)?.1) {
                return Ok(found.into_row());
            }
        }
        let bits = self.options.bloom_bits;
        for run in &self.runs {
            if !run.bloom.may_have(&mut self.nvm, table, key, bits) {
                continue;
            }
            if let Some(tuple) = run.trees[table].get(&mut self.nvm, key) {
                let of = &self.schema.tables[table];
                if !found.add(read_tuple(&mut self.nvm, of, tuple)?.1) {
                    break;
                }
            }
        }
        Ok(found.into_row())
    }

    /// New trees that are part of no run yet.
    fn new_trees(&mut self, batch: &mut Batch) -> Result<Vec<BTree>> {
        let mut trees = Vec::new();
        for table in &self.schema.tables {
            let words = table.key_words();
            let tree = BTree::create(&mut self.nvm, words, self.options.node_bytes, false)?;
            batch.new.extend(tree.slots(&mut self.nvm));
            trees.push(tree.durable(true));
        }
        Ok(trees)
    }

    /// Makes a run of trees, with a filter.
    fn new_run(&mut self, trees: Vec<BTree>, size: RunSize, batch: &mut Batch) -> Result<Run> {
        let bits = self.options.bloom_bits;
        let mut keys = Vec::new();
        for (table, tree) in trees.iter().enumerate() {
            let entries = tree.range(&mut self.nvm, &Key::MIN, None);
            keys.extend(entries.into_iter().map(|(key, _)| (table, key)));
        }
        let bloom = Bloom::create(&mut self.nvm, keys.len() as u64, bits)?;
        keys.iter().for_each(|(table, key)| bloom.add(&mut self.nvm, *table, key, bits));
        let mut words = vec![size.level, size.bytes, bloom.bits, bloom.parts.len() as u64];
        words.extend(trees.iter().map(|tree| tree.header));
        words.extend(&bloom.parts);
        let slot = self.nvm.allocate(words.len() as u64 * 8, Area::Other)?;
        self.nvm.memory.store_words(slot, &words);
        batch.new.extend(bloom.parts.iter().copied().chain([slot]));
        Ok(Run { slot, size, trees, bloom })
    }

    fn load_run(&mut self, slot: u64) -> Run {
        let tables = self.schema.tables.len();
        let head: Vec<u64> = self.nvm.memory.load_words(slot, 4 + tables).collect();
        let parts = head[3] as usize;
        let parts_at = slot + (4 + tables as u64) * 8;
        let parts = self.nvm.memory.load_words(parts_at, parts).collect();
        let size = RunSize { level: head[0], bytes: head[1] };
        let trees = self.trees_at(&head[4..], false);
        Run { slot, size, trees, bloom: Bloom { parts, bits: head[2] } }
    }

    fn trees_at(&self, headers: &[u64], is_durable: bool) -> Vec<BTree> {
        let node_bytes = self.options.node_bytes;
        let tables = self.schema.tables.iter().zip(headers);
        tables
            .map(|(t, header)| BTree::at(*header, t.key_words(), node_bytes, is_durable))
            .collect()
    }

    /// Puts a new manifest in the place of the old, and with that commits the batch.
    fn publish(&mut self, mut batch: Batch) -> Result<()> {
        let mut words = vec![self.runs.len() as u64];
        words.extend(self.trees.iter().map(|tree| tree.header));
        words.extend(self.runs.iter().map(|run| run.slot));
        let manifest = self.nvm.allocate(words.len() as u64 * 8, Area::Other)?;
        self.nvm.memory.store_words(manifest, &words);
        batch.new.insert(manifest);
        if self.manifest != 0 {
            batch.old.insert(self.manifest);
        }
        let order = Order::of(&self.options);
        batch.commit(&mut self.nvm, self.manifest_at, manifest, order)?;
        self.manifest = manifest;
        Ok(())
    }

    /// The MemTable becomes a run, and a new one begins.
    fn rotate(&mut self) -> Result<()> {
        let mut batch = Batch::default();
        let fresh = self.new_trees(&mut batch)?;
        let full = std::mem::replace(&mut self.trees, fresh);
        let size = RunSize { level: 0, bytes: std::mem::take(&mut self.bytes) };
        let run = self.new_run(full, size, &mut batch)?;
        self.runs.insert(0, run);
        self.publish(batch)?;
        self.compact()
    }

    /// Merges runs if there are too many.
    fn compact(&mut self) -> Result<()> {
        let sizes: Vec<RunSize> = self.runs.iter().map(|run| run.size).collect();
        let Some(merge) = choose(&sizes, &self.options) else { return Ok(()) };
        let mut batch = Batch::default();
        let merged: Vec<Run> = self.runs.drain(..merge.count).collect();
        let mut trees = Vec::new();
        let mut bytes = 0;
        for table in 0..self.schema.tables.len() {
            let words = self.schema.tables[table].key_words();
            let tree = BTree::create(&mut self.nvm, words, self.options.node_bytes, false)?;
            for (key, tuples) in self.entries_of(&merged, table) {
                let kept = self.merge_entries(table, &key, &tuples, merge.is_last, &mut batch)?;
                if let Some(tuple) = kept {
                    tree.insert(&mut self.nvm, &key, tuple)?;
                    bytes += self.entry_bytes(table, tuple);
                }
            }
            batch.new.extend(tree.slots(&mut self.nvm));
            trees.push(tree);
        }
        for run in &merged {
            for tree in &run.trees {
                batch.old.extend(tree.slots(&mut self.nvm));
            }
            batch.old.extend(run.bloom.parts.iter().copied().chain([run.slot]));
        }
        let run = self.new_run(trees, RunSize { level: merge.level, bytes }, &mut batch)?;
        self.runs.insert(0, run);
        self.publish(batch)
    }

    fn entry_bytes(&mut self, table: usize, tuple: u64) -> u64 {
        let of = &self.schema.tables[table];
        let fields = field_slots(&mut self.nvm, of, tuple);
        let fields = fields.iter().map(|slot| self.nvm.heap.len(&mut self.nvm.memory, *slot));
        tuple_bytes(of) + fields.sum::<u64>()
    }

    /// The entries of runs by key, those of each key the newest first.
    fn entries_of(&mut self, runs: &[Run], table: usize) -> BTreeMap<Key, Vec<u64>> {
        let mut all: BTreeMap<Key, Vec<u64>> = BTreeMap::new();
        for run in runs {
            for (key, tuple) in run.trees[table].range(&mut self.nvm, &Key::MIN, None) {
                all.entry(key).or_default().push(tuple);
            }
        }
        all
    }

    /// Makes one entry of several: the one that stays, if any. Fields are not copied.
    fn merge_entries(
        &mut self,
        table: usize,
        key: &Key,
        tuples: &[u64],
        is_last: bool,
        batch: &mut Batch,
    ) -> Result<Option<u64>> {
        let of = &self.schema.tables[table];
        let words = (tuple_bytes(of) / 8) as usize;
        let mut merged: Option<Vec<u64>> = None;
        for tuple in tuples {
            let older: Vec<u64> = self.nvm.memory.load_words(*tuple, words).collect();
            let is_whole = older[0] & 0xff != Kind::Partial as u64;
            merged = Some(match merged {
                None => older,
                Some(newer) => overlay(of.key_words(), older, &newer),
            });
            if is_whole {
                break;
            }
        }
        let merged = merged.expect("a key has entries");
        let is_gone = is_last && merged[0] & 0xff == Kind::Tombstone as u64;
        if tuples.len() == 1 && !is_gone {
            return Ok(Some(tuples[0]));
        }
        for tuple in tuples {
            batch.old.extend(slots_of(&mut self.nvm, of, *tuple));
        }
        if is_gone {
            return Ok(None);
        }
        let empty = Entry::tombstone(of.columns.len());
        let tuple = write_tuple(&mut self.nvm, of, key, &empty, &mut Vec::new())?;
        self.nvm.memory.store_words(tuple, &merged);
        batch.new.insert(tuple);
        for slot in field_slots(&mut self.nvm, of, tuple) {
            batch.old.remove(&slot);
        }
        Ok(Some(tuple))
    }
}

/// The words of an entry with those of a newer one over them: a partial one, since a whole one
/// hides what is below.
fn overlay(key_words: usize, mut older: Vec<u64>, newer: &[u64]) -> Vec<u64> {
    let is_tombstone = older[0] & 0xff == Kind::Tombstone as u64;
    debug_assert!(!is_tombstone, "fields of a tuple that there was not");
    for column in 0..older.len() - 1 - key_words {
        if newer[0] >> (8 + column) & 1 == 1 {
            older[1 + key_words + column] = newer[1 + key_words + column];
        }
    }
    older[0] |= newer[0] & !0xff;
    older
}

impl<D: Device> Engine<D> for NvmLog<D> {
    const NAME: &'static str = "nvm-log";

    fn create(device: Arc<D>, schema: &Schema, options: &Options) -> Result<Self> {
        let nvm = Nvm::create(device, magic(Self::NAME, schema), options.modelled)?;
        let mut engine = Self::new(nvm, schema, options);
        let mut batch = Batch::default();
        engine.trees = engine.new_trees(&mut batch)?;
        engine.publish(batch)?;
        Ok(engine)
    }

    fn open(device: Arc<D>, schema: &Schema, options: &Options) -> Result<(Self, Recovery)> {
        let nvm = Nvm::open(device, magic(Self::NAME, schema), options.modelled)?;
        let mut engine = Self::new(nvm, schema, options);
        recover_batch(&mut engine.nvm, engine.manifest_at);
        engine.manifest = engine.nvm.memory.load_u64(engine.manifest_at);
        if engine.manifest == 0 {
            return Err(Error::Corrupt("there is no manifest".into()));
        }
        let tables = schema.tables.len();
        let head = engine.nvm.memory.load_words(engine.manifest, 1 + tables);
        let head: Vec<u64> = head.collect();
        engine.trees = engine.trees_at(&head[1..], true);
        let runs_at = engine.manifest + (1 + tables as u64) * 8;
        let runs: Vec<u64> = engine.nvm.memory.load_words(runs_at, head[0] as usize).collect();
        engine.runs = runs.into_iter().map(|slot| engine.load_run(slot)).collect();
        engine.trees.iter().for_each(|tree| tree.recover(&mut engine.nvm));
        let trees = engine.trees.clone();
        let undone = engine.undo.undo(&mut engine.nvm, &schema.tables, &trees, true)?;
        let recovery = end_recovery(&mut engine.nvm, 0, undone);
        Ok((engine, recovery))
    }

    fn insert(&mut self, table: usize, key: &Key, row: &[Vec<u8>]) -> Result<bool> {
        check_row(&self.schema, table, row)?;
        if self.lookup(table, key)?.is_some() {
            return Ok(false);
        }
        self.change(table, key, &Change::Put(row))?;
        Ok(true)
    }

    fn update(&mut self, table: usize, key: &Key, changes: Changes<'_>) -> Result<bool> {
        for (column, value) in changes {
            check_value(&self.schema, table, *column, value)?;
        }
        if self.lookup(table, key)?.is_none() {
            return Ok(false);
        }
        if !changes.is_empty() {
            self.change(table, key, &Change::Fields(changes))?;
        }
        Ok(true)
    }

    fn delete(&mut self, table: usize, key: &Key) -> Result<bool> {
        if self.lookup(table, key)?.is_none() {
            return Ok(false);
        }
        self.change(table, key, &Change::Remove)?;
        Ok(true)
    }

    fn get(&mut self, table: usize, key: &Key) -> Result<Option<Row>> {
        self.lookup(table, key)
    }

    fn scan(&mut self, table: usize, from: &Key, to: Option<&Key>, each: Visit<'_>) -> Result<()> {
        let mut keys: Vec<Key> = Vec::new();
        let memtable = [self.trees[table]];
        let runs = self.runs.iter().map(|run| run.trees[table]);
        for tree in memtable.into_iter().chain(runs) {
            keys.extend(tree.range(&mut self.nvm, from, to).into_iter().map(|(key, _)| key));
        }
        keys.sort_unstable();
        keys.dedup();
        for key in keys {
            if let Some(row) = self.lookup(table, &key)?
                && each(&key, row) == ControlFlow::Break(())
            {
                return Ok(());
            }
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<u64> {
        self.undo.commit(&mut self.nvm);
        let number = self.groups.commit();
        self.groups.all_durable();
        if self.bytes >= self.options.memtable_bytes {
            self.rotate()?;
        }
        Ok(number)
    }

    fn abort(&mut self) -> Result<()> {
        let trees = self.trees.clone();
        self.undo.undo(&mut self.nvm, &self.schema.tables, &trees, false)?;
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
        let mut reached = 1;
        let mut trees: Vec<(usize, BTree)> = self.trees.iter().copied().enumerate().collect();
        for run in &self.runs {
            reached += 1 + run.bloom.parts.len() as u64;
            trees.extend(run.trees.iter().copied().enumerate());
        }
        for (table, tree) in trees {
            reached += tree.slots(&mut self.nvm).len() as u64;
            for (_, tuple) in tree.range(&mut self.nvm, &Key::MIN, None) {
                let of = &self.schema.tables[table];
                reached += slots_of(&mut self.nvm, of, tuple).len() as u64;
            }
        }
        Ok(self.nvm.persisted_slots().abs_diff(reached))
    }
}
