//! NVM-Log: an LSM tree of MemTables that stay where they are (the paper's 4.3, Table 2).
//!
//! Changes go to the MemTable as in NVM-InP: what is new is durable, the log has its address, it is
//! persisted, and the tree or the entry changes. The commit cuts the log. A full MemTable is not
//! written anywhere: it becomes an immutable run, with a Bloom filter. Merged runs make a new one,
//! whose entries are the addresses of the old ones where nothing has to be put together. Which runs
//! there are is said by the manifest; a new one takes the place of the old by one store. Recovery
//! undoes the running transaction in the MemTable.

use std::collections::BTreeMap;
use std::sync::Arc;

use pmem::Device;

use super::base::Base;
use super::engine::{Engine, Recovery};
use crate::Result;
use crate::ground::{Area, Task};
use crate::options::{Fault, Options};
use crate::schema::{Changes, Entry, Key, Kind, Row, Schema};
use crate::structures::{
    BTree, Batch, Bloom, Change, Leaf, Master, RunSize, Step, Undo, UndoLog, change_bytes, choose,
    coalesce, field_slots, flush_slots, plan, tuple_bytes,
};

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
    base: Base<D>,
    /// The MemTable.
    trees: Vec<BTree>,
    bytes: u64,
    /// The newest first.
    runs: Vec<Run>,
    manifest: Master,
    undo: UndoLog,
}

impl<D: Device> NvmLog<D> {
    fn new(mut base: Base<D>, manifest: Master) -> Self {
        let undo = UndoLog::new(&mut base.nvm);
        Self { base, trees: Vec::new(), bytes: 0, runs: Vec::new(), manifest, undo }
    }

    /// Makes a change in the MemTable, by the steps of the paper's Table 2.
    fn apply_change(&mut self, table: usize, key: &Key, change: &Change<'_>) -> Result<()> {
        let Base { nvm, schema, options, .. } = &mut self.base;
        let of = &schema.tables[table];
        let plan = plan(nvm, of, &self.trees[table], key, change)?;
        self.bytes += change_bytes(of, change);
        let tuple = match &plan.step {
            Step::Link(tuple) => *tuple,
            Step::Words(words) => {
                return self.undo.change_words(nvm, &plan.slots, words, options);
            }
        };
        let changes_early = options.has(Fault::ChangeBeforeLog);
        if changes_early {
            flush_slots(nvm, &plan.slots);
            self.trees[table].insert(nvm, key, tuple)?;
        }
        let undo = Undo::Linked { table, key: *key, tuple };
        self.undo.log_link(nvm, &schema.tables, &plan.slots, &undo, options)?;
        if !changes_early {
            self.trees[table].insert(nvm, key, tuple)?;
        }
        Ok(())
    }

    /// The entry of a key in the MemTable, which is 0, or in the run of an age.
    fn entry(&mut self, age: usize, table: usize, key: &Key) -> Result<Option<Entry>> {
        let nvm = &mut self.base.nvm;
        let tree = match age.checked_sub(1).map(|run| &self.runs[run]) {
            Some(run) if !run.bloom.may_have(nvm, table, key) => return Ok(None),
            Some(run) => &run.trees[table],
            None => &self.trees[table],
        };
        match tree.get(nvm, key) {
            Some(tuple) => self.base.read_tuple(table, tuple).map(Some),
            None => Ok(None),
        }
    }

    /// The tuple of a key, put together from the runs that have entries of it.
    fn lookup(&mut self, table: usize, key: &Key) -> Result<Option<Row>> {
        coalesce((0..=self.runs.len()).map(|age| self.entry(age, table, key)))
    }

    /// New trees that are part of no run yet.
    fn new_trees(&mut self, batch: &mut Batch) -> Result<Vec<BTree>> {
        let trees = self.base.new_trees(false)?;
        for tree in &trees {
            batch.new.extend(tree.slots(&mut self.base.nvm));
        }
        Ok(trees.into_iter().map(|tree| tree.durable(true)).collect())
    }

    /// Makes a run of trees, with a filter.
    fn new_run(&mut self, trees: Vec<BTree>, size: RunSize, batch: &mut Batch) -> Result<Run> {
        let Base { nvm, options, .. } = &mut self.base;
        let keys: Vec<Vec<Key>> =
            trees.iter().map(|tree| tree.keys(nvm, &Key::MIN, None)).collect();
        let count = keys.iter().map(Vec::len).sum::<usize>() as u64;
        let bloom = Bloom::create(nvm, count, options.bloom_bits)?;
        for (table, keys) in keys.iter().enumerate() {
            keys.iter().for_each(|key| bloom.add(nvm, table, key));
        }
        let mut words = vec![size.level, size.bytes, bloom.bits, bloom.parts.len() as u64];
        words.extend(trees.iter().map(|tree| tree.header));
        words.extend(&bloom.parts);
        let slot = nvm.allocate(words.len() as u64 * 8, Area::Other)?;
        nvm.memory.store_words(slot, &words);
        batch.new.extend(bloom.parts.iter().copied().chain([slot]));
        Ok(Run { slot, size, trees, bloom })
    }

    fn load_run(&mut self, slot: u64) -> Run {
        let Base { nvm, schema, options, .. } = &mut self.base;
        let tables = schema.tables.len();
        let head: Vec<u64> = nvm.memory.load_words(slot, 4 + tables).collect();
        let [level, bytes, bits, parts] = head[..4] else { unreachable!("they were loaded") };
        let parts_at = slot + (4 + tables as u64) * 8;
        let parts = nvm.memory.load_words(parts_at, parts as usize).collect();
        let bloom = Bloom { parts, bits, bits_of_key: options.bloom_bits };
        let trees = self.base.trees_at(&head[4..], false);
        Run { slot, size: RunSize { level, bytes }, trees, bloom }
    }

    /// Puts a new manifest in the place of the old, and with that commits the batch.
    fn publish(&mut self, mut batch: Batch) -> Result<()> {
        let mut words = vec![self.runs.len() as u64];
        words.extend(self.trees.iter().map(|tree| tree.header));
        words.extend(self.runs.iter().map(|run| run.slot));
        let Base { nvm, options, .. } = &mut self.base;
        self.manifest.publish(nvm, &mut batch, &words, options)
    }

    /// Loads what the manifest says.
    fn load_manifest(&mut self) {
        let (manifest, tables) = (self.manifest.directory, self.base.schema.tables.len());
        let memory = &mut self.base.nvm.memory;
        let head: Vec<u64> = memory.load_words(manifest, 1 + tables).collect();
        let runs_at = manifest + (1 + tables as u64) * 8;
        let runs: Vec<u64> = memory.load_words(runs_at, head[0] as usize).collect();
        self.trees = self.base.trees_at(&head[1..], true);
        self.runs = runs.into_iter().map(|slot| self.load_run(slot)).collect();
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
        let Some(merge) = choose(&sizes, &self.base.options) else { return Ok(()) };
        let mut batch = Batch::default();
        let merged: Vec<Run> = self.runs.drain(..merge.count).collect();
        let trees = self.base.new_trees(false)?;
        let mut bytes = 0;
        for (table, tree) in trees.iter().enumerate() {
            for (key, tuples) in self.entries_of(&merged, table) {
                let kept = self.merge_entries(table, &tuples, merge.is_last, &mut batch)?;
                if let Some(tuple) = kept {
                    tree.insert(&mut self.base.nvm, &key, tuple)?;
                    bytes += self.entry_bytes(table, tuple);
                }
            }
            batch.new.extend(tree.slots(&mut self.base.nvm));
        }
        for run in &merged {
            for tree in &run.trees {
                batch.old.extend(tree.slots(&mut self.base.nvm));
            }
            batch.old.extend(run.bloom.parts.iter().copied().chain([run.slot]));
        }
        let run = self.new_run(trees, RunSize { level: merge.level, bytes }, &mut batch)?;
        self.runs.insert(0, run);
        self.publish(batch)
    }

    fn entry_bytes(&mut self, table: usize, tuple: u64) -> u64 {
        let Base { nvm, schema, .. } = &mut self.base;
        let of = &schema.tables[table];
        let fields = field_slots(nvm, of, tuple);
        let fields = fields.iter().map(|slot| nvm.heap.len(&mut nvm.memory, *slot));
        tuple_bytes(of) + fields.sum::<u64>()
    }

    /// The entries of runs by key, those of each key the newest first.
    fn entries_of(&mut self, runs: &[Run], table: usize) -> BTreeMap<Key, Vec<u64>> {
        let mut all: BTreeMap<Key, Vec<u64>> = BTreeMap::new();
        for run in runs {
            for (key, tuple) in run.trees[table].range(&mut self.base.nvm, &Key::MIN, None) {
                all.entry(key).or_default().push(tuple);
            }
        }
        all
    }

    /// Makes one entry of several of a key: the one that stays, if any. Fields are not copied.
    fn merge_entries(
        &mut self,
        table: usize,
        tuples: &[u64],
        is_last: bool,
        batch: &mut Batch,
    ) -> Result<Option<u64>> {
        let merged = self.merge_words(table, tuples);
        let is_gone = is_last && merged[0] & 0xff == Kind::Tombstone as u64;
        if tuples.len() == 1 && !is_gone {
            return Ok(Some(tuples[0]));
        }
        for tuple in tuples {
            batch.old.extend(self.base.slots_of(table, *tuple));
        }
        if is_gone {
            return Ok(None);
        }
        let Base { nvm, schema, .. } = &mut self.base;
        let of = &schema.tables[table];
        let tuple = nvm.allocate(tuple_bytes(of), Area::Table)?;
        nvm.memory.store_words(tuple, &merged);
        nvm.written.memory += tuple_bytes(of);
        batch.new.insert(tuple);
        for slot in field_slots(nvm, of, tuple) {
            batch.old.remove(&slot);
        }
        Ok(Some(tuple))
    }

    /// The words of a key's entry that several come to, the newest first.
    fn merge_words(&mut self, table: usize, tuples: &[u64]) -> Vec<u64> {
        let of = &self.base.schema.tables[table];
        let words = (tuple_bytes(of) / 8) as usize;
        let mut merged: Option<Vec<u64>> = None;
        for tuple in tuples {
            let older: Vec<u64> = self.base.nvm.memory.load_words(*tuple, words).collect();
            let is_whole = older[0] & 0xff != Kind::Partial as u64;
            merged = Some(match merged {
                None => older,
                Some(newer) => overlay(of.key_words(), older, &newer),
            });
            if is_whole {
                break;
            }
        }
        merged.expect("a key has entries")
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
    const COMMITS_GROUPS: bool = false;
    /// The tuple, or nothing if the runs are not looked through yet.
    type Found = Option<Row>;

    fn create(device: Arc<D>, schema: &Schema, options: &Options) -> Result<Self> {
        let mut base = Base::create(Self::NAME, device, schema, options)?;
        let manifest = Master::new(&mut base.nvm, MANIFEST);
        let mut engine = Self::new(base, manifest);
        let mut batch = Batch::default();
        engine.trees = engine.new_trees(&mut batch)?;
        engine.publish(batch)?;
        Ok(engine)
    }

    fn open(device: Arc<D>, schema: &Schema, options: &Options) -> Result<(Self, Recovery)> {
        let mut base = Base::open(Self::NAME, device, schema, options)?;
        let (manifest, _) = Master::recover(&mut base.nvm, MANIFEST)?;
        let mut engine = Self::new(base, manifest);
        engine.load_manifest();
        let Self { base, trees, undo, .. } = &mut engine;
        trees.iter().for_each(|tree| tree.recover(&mut base.nvm));
        let undone = undo.undo(&mut base.nvm, &schema.tables, trees, true)?;
        let recovery = base.end_recovery(0, undone);
        Ok((engine, recovery))
    }

    fn base(&self) -> &Base<D> {
        &self.base
    }

    fn base_mut(&mut self) -> &mut Base<D> {
        &mut self.base
    }

    fn find(&mut self, table: usize, key: &Key) -> Result<Option<Self::Found>> {
        Ok(self.lookup(table, key)?.map(Some))
    }

    fn leaf(&mut self, table: usize, from: &Key, to: Option<&Key>) -> Result<Leaf<Self::Found>> {
        let nvm = &mut self.base.nvm;
        let mut keys = self.trees[table].keys(nvm, from, to);
        for run in &self.runs {
            keys.extend(run.trees[table].keys(nvm, from, to));
        }
        Ok(Leaf::of_keys(keys))
    }

    fn read(&mut self, table: usize, key: &Key, found: Self::Found) -> Result<Option<Row>> {
        match found {
            Some(row) => Ok(Some(row)),
            None => self.lookup(table, key),
        }
    }

    fn put(&mut self, table: usize, key: &Key, row: &[Vec<u8>]) -> Result<()> {
        self.apply_change(table, key, &Change::Put(row))
    }

    fn change(
        &mut self,
        table: usize,
        key: &Key,
        _: Self::Found,
        changes: Changes<'_>,
    ) -> Result<()> {
        self.apply_change(table, key, &Change::Fields(changes))
    }

    fn remove(&mut self, table: usize, key: &Key, _: Self::Found) -> Result<()> {
        self.apply_change(table, key, &Change::Remove)
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

    fn settle(&mut self) -> Result<()> {
        self.rotate()
    }

    fn after_group(&mut self) -> Result<()> {
        match self.bytes >= self.base.options.memtable_bytes {
            true => {
                let before = self.base.nvm.begin(Some(Task::Other));
                self.rotate()?;
                self.base.nvm.begin(before);
                Ok(())
            }
            false => Ok(()),
        }
    }

    #[cfg(test)]
    fn reached_slots(&mut self) -> Result<u64> {
        let mut reached = 1;
        for run in &self.runs {
            reached += 1 + run.bloom.parts.len() as u64;
        }
        let runs = self.runs.iter().map(|run| &run.trees);
        for trees in runs.chain([&self.trees]) {
            for (table, tree) in trees.iter().enumerate() {
                reached += self.base.count_slots(table, tree);
            }
        }
        Ok(reached)
    }
}
