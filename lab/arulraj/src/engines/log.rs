//! Log: an LSM tree of SSTables in files, a MemTable in volatile memory and a log (the paper's
//! 3.3).
//!
//! A change is in the log's memory before it is in the MemTable; a group is written and synced
//! together, and answered then. A full MemTable becomes an SSTable. A manifest, itself a file, says
//! which log and which tables count; a new one is synced after what it names, and only then the
//! older one and what it alone named are removed. Recovery reads the manifest, loads the tables'
//! indexes, and makes the changes of the log again in a new MemTable.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use pmem::Device;

use super::engine::{Engine, Groups, Recovery, Visit, check_row, check_value, end_recovery, magic};
use super::inp::changes_of;
use crate::ground::{FileId, Footprint, Nvm, Traffic};
use crate::options::{Fault, Options};
use crate::schema::{Changes, Entry, Key, Kind, Row, Schema, take_u64};
use crate::structures::{
    BTree, Change, Coalesced, Plan, Record, RunSize, Sorted, SsTable, Wal, WordChange,
    change_bytes, choose, plan, read_tuple, slots_of,
};
use crate::{Error, Result};

/// Kinds of files, in the upper half of a name.
const WAL: u64 = 1 << 32;
const TABLE: u64 = 3 << 32;
const MANIFEST: u64 = 4 << 32;
const NUMBER: u64 = (1 << 32) - 1;

/// What undoes a change of the MemTable.
enum Undo {
    Linked { table: usize, key: Key, tuple: u64 },
    Changed(WordChange),
}

/// The engine.
pub struct Log<D: Device> {
    nvm: Nvm<D>,
    schema: Schema,
    options: Options,
    /// The MemTable.
    trees: Vec<BTree>,
    bytes: u64,
    /// The newest first.
    runs: Vec<SsTable>,
    wal: Wal,
    wal_number: u64,
    /// The file of the manifest.
    manifest: Option<FileId>,
    /// Of the next file.
    number: u64,
    undo: Vec<Undo>,
    groups: Groups,
}

impl<D: Device> Log<D> {
    fn new(nvm: Nvm<D>, schema: &Schema, options: &Options, wal: FileId) -> Result<Self> {
        let mut engine = Self {
            nvm,
            schema: schema.clone(),
            options: options.clone(),
            trees: Vec::new(),
            bytes: 0,
            runs: Vec::new(),
            wal: Wal::new(wal),
            wal_number: 0,
            manifest: None,
            number: 1,
            undo: Vec::new(),
            groups: Groups::new(options),
        };
        engine.new_memtable()?;
        Ok(engine)
    }

    fn new_memtable(&mut self) -> Result<()> {
        self.bytes = 0;
        self.trees.clear();
        for table in &self.schema.tables {
            let words = table.key_words();
            let tree = BTree::create(&mut self.nvm, words, self.options.node_bytes, false)?;
            self.trees.push(tree);
        }
        Ok(())
    }

    fn next_number(&mut self) -> u64 {
        self.number += 1;
        self.number - 1
    }

    /// Makes a change in the MemTable.
    fn change(&mut self, table: usize, key: &Key, change: &Change<'_>) -> Result<()> {
        let (of, tree) = (&self.schema.tables[table], self.trees[table]);
        self.bytes += change_bytes(of, change);
        match plan(&mut self.nvm, of, &tree, key, change, &mut Vec::new())? {
            Plan::Link(tuple) => {
                tree.insert(&mut self.nvm, key, tuple)?;
                self.undo.push(Undo::Linked { table, key: *key, tuple });
            }
            Plan::Words(words) => {
                for word in words {
                    self.nvm.memory.store_u64(word.at, word.new);
                    self.nvm.written.memory += 8;
                    self.undo.push(Undo::Changed(word));
                }
            }
        }
        Ok(())
    }

    /// The transaction that made the changes stays: what they replaced is free.
    fn keep_changes(&mut self) {
        for undo in std::mem::take(&mut self.undo) {
            if let Undo::Changed(word) = undo
                && word.is_slot
                && word.old != 0
            {
                self.nvm.recycle(word.old);
            }
        }
    }

    /// The tuple of a key, put together from the runs that have entries of it.
    fn lookup(&mut self, table: usize, key: &Key) -> Result<Option<Row>> {
        let mut found = Coalesced::default();
        let tables = &self.schema.tables;
        if let Some(tuple) = self.trees[table].get(&mut self.nvm, key)
            && !found.add(read_tuple(&mut self.nvm, &tables[table], tuple)?.1)
        {
            return Ok(found.into_row());
        }
        let bits = self.options.bloom_bits;
        for run in &self.runs {
            if let Some(entry) = run.get(&mut self.nvm, tables, bits, (table, key))?
                && !found.add(entry)
            {
                break;
            }
        }
        Ok(found.into_row())
    }

    fn log(&mut self, table: usize, key: &Key, before: &Entry, after: Entry) {
        let record = Record { table, key: *key, after };
        self.wal.log(&mut self.nvm, &self.schema.tables, &record, before);
    }

    /// Makes a change of the log again.
    fn redo(&mut self, record: &Record) -> Result<()> {
        let Record { table, key, after } = record;
        let changes: Vec<_> = changes_of(after).collect();
        match after.kind {
            Kind::Full => {
                let row: Row = changes.iter().map(|(_, value)| value.to_vec()).collect();
                self.change(*table, key, &Change::Put(&row))?;
            }
            Kind::Partial => self.change(*table, key, &Change::Fields(&changes))?,
            Kind::Tombstone => self.change(*table, key, &Change::Remove)?,
        }
        self.keep_changes();
        Ok(())
    }

    /// Writes a manifest, which is synced, and removes the older one.
    fn write_manifest(&mut self) -> Result<()> {
        let mut words = vec![self.wal_number, self.runs.len() as u64];
        for run in &self.runs {
            words.extend([run.number, run.size.level]);
        }
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let number = self.next_number();
        let file = self.nvm.create_file(MANIFEST | number)?;
        self.nvm.write_file(file, 0, &bytes)?;
        self.nvm.sync_file(file);
        if let Some(old) = self.manifest.replace(file) {
            self.nvm.remove_file(old);
        }
        Ok(())
    }

    fn write_table(&mut self, level: u64, entries: &Sorted) -> Result<SsTable> {
        let number = self.next_number();
        let file = self.nvm.create_file(TABLE | number)?;
        let place = (file, number, level);
        let tables = &self.schema.tables;
        let table = SsTable::write(&mut self.nvm, tables, &self.options, place, entries)?;
        self.nvm.sync_file(file);
        Ok(table)
    }

    /// The MemTable becomes an SSTable, and a new one and a new log begin.
    fn spill(&mut self) -> Result<()> {
        let mut entries = Sorted::new();
        let mut slots = Vec::new();
        for (table, tree) in self.trees.clone().iter().enumerate() {
            let of = &self.schema.tables[table];
            let mut sorted = Vec::new();
            for (key, tuple) in tree.range(&mut self.nvm, &Key::MIN, None) {
                let (_, mut entry) = read_tuple(&mut self.nvm, of, tuple)?;
                if entry.kind == Kind::Tombstone {
                    entry = Entry::tombstone(of.columns.len());
                }
                sorted.push((key, entry));
                slots.extend(slots_of(&mut self.nvm, of, tuple));
            }
            entries.push(sorted);
            slots.extend(tree.slots(&mut self.nvm));
        }
        let old_wal = self.wal.file;
        if self.options.has(Fault::CutEarly) {
            self.nvm.remove_file(old_wal);
        }
        let run = self.write_table(0, &entries)?;
        self.runs.insert(0, run);
        self.wal_number = self.next_number();
        self.wal = Wal::new(self.nvm.create_file(WAL | self.wal_number)?);
        self.write_manifest()?;
        if !self.options.has(Fault::CutEarly) {
            self.nvm.remove_file(old_wal);
        }
        slots.into_iter().for_each(|slot| self.nvm.recycle(slot));
        self.new_memtable()?;
        self.compact()
    }

    /// Merges SSTables if there are too many.
    fn compact(&mut self) -> Result<()> {
        let sizes: Vec<RunSize> = self.runs.iter().map(|run| run.size).collect();
        let Some(merge) = choose(&sizes, &self.options) else { return Ok(()) };
        let mut merged = Sorted::new();
        for table in 0..self.schema.tables.len() {
            let mut all: BTreeMap<Key, Entry> = BTreeMap::new();
            // The oldest first, so that newer entries come on top.
            for run in self.runs[..merge.count].iter().rev() {
                for (key, newer) in run.entries(&mut self.nvm, &self.schema.tables, table)? {
                    match all.get_mut(&key) {
                        Some(older) => older.put_over(newer),
                        None => {
                            all.insert(key, newer);
                        }
                    }
                }
            }
            let stays =
                |(_, entry): &(Key, Entry)| !(merge.is_last && entry.kind == Kind::Tombstone);
            merged.push(all.into_iter().filter(stays).collect());
        }
        let run = self.write_table(merge.level, &merged)?;
        let old: Vec<SsTable> = self.runs.splice(..merge.count, [run]).collect();
        self.write_manifest()?;
        old.into_iter().for_each(|run| run.remove(&mut self.nvm));
        Ok(())
    }
}

/// What a manifest says: the number of the log, and number and level of each table.
struct Named {
    wal: u64,
    tables: Vec<(u64, u64)>,
}

fn read_manifest<D: Device>(nvm: &mut Nvm<D>, file: FileId) -> Result<Named> {
    let bytes = nvm.read_whole_file(file)?;
    let mut rest = bytes.as_slice();
    let (wal, count) = (take_u64(&mut rest)?, take_u64(&mut rest)?);
    let mut tables = Vec::new();
    for _ in 0..count {
        tables.push((take_u64(&mut rest)?, take_u64(&mut rest)?));
    }
    Ok(Named { wal, tables })
}

impl<D: Device> Engine<D> for Log<D> {
    const NAME: &'static str = "log";

    fn create(device: Arc<D>, schema: &Schema, options: &Options) -> Result<Self> {
        let mut nvm = Nvm::create(device, magic(Self::NAME, schema), options.modelled)?;
        let wal = nvm.create_file(WAL)?;
        let mut engine = Self::new(nvm, schema, options, wal)?;
        engine.write_manifest()?;
        Ok(engine)
    }

    fn open(device: Arc<D>, schema: &Schema, options: &Options) -> Result<(Self, Recovery)> {
        let mut nvm = Nvm::open(device, magic(Self::NAME, schema), options.modelled)?;
        let freed = end_recovery(&mut nvm, 0, 0);
        let files: BTreeMap<u64, FileId> = nvm.list_files().into_iter().collect();
        let manifests = files.range(MANIFEST..MANIFEST | NUMBER).rev();
        let manifest = manifests.map(|(_, file)| *file).find(|file| nvm.file_size(*file) > 0);
        let manifest = manifest.ok_or_else(|| Error::Corrupt("there is no manifest".into()))?;
        let named = read_manifest(&mut nvm, manifest)?;
        let missing = |name: u64| Error::Corrupt(format!("file {name:x} is missing"));
        let find = |name: u64| files.get(&name).copied().ok_or_else(|| missing(name));
        let mut kept = vec![manifest, find(WAL | named.wal)?];
        let mut runs = Vec::new();
        for (number, level) in &named.tables {
            let file = find(TABLE | number)?;
            kept.push(file);
            let place = (file, *number, *level);
            runs.push(SsTable::open(&mut nvm, &schema.tables, options, place)?);
        }
        for file in files.values().filter(|file| !kept.contains(file)) {
            nvm.remove_file(*file);
        }
        let mut engine = Self::new(nvm, schema, options, kept[1])?;
        engine.number = files.keys().map(|name| name & NUMBER).max().unwrap_or_default() + 1;
        (engine.runs, engine.manifest, engine.wal_number) = (runs, Some(manifest), named.wal);
        let records = Wal::read(&mut engine.nvm, kept[1], &schema.tables)?;
        for record in &records {
            engine.redo(record)?;
        }
        let traffic = engine.traffic();
        Ok((engine, Recovery { redone: records.len() as u64, engine: traffic, ..freed }))
    }

    fn insert(&mut self, table: usize, key: &Key, row: &[Vec<u8>]) -> Result<bool> {
        check_row(&self.schema, table, row)?;
        if self.lookup(table, key)?.is_some() {
            return Ok(false);
        }
        self.log(table, key, &Entry::tombstone(row.len()), Entry::full(row));
        self.change(table, key, &Change::Put(row))?;
        Ok(true)
    }

    fn update(&mut self, table: usize, key: &Key, changes: Changes<'_>) -> Result<bool> {
        for (column, value) in changes {
            check_value(&self.schema, table, *column, value)?;
        }
        let Some(row) = self.lookup(table, key)? else { return Ok(false) };
        if changes.is_empty() {
            return Ok(true);
        }
        let old: Vec<_> = changes.iter().map(|(c, _)| (*c, row[*c].as_slice())).collect();
        let before = Entry::partial(row.len(), &old);
        self.log(table, key, &before, Entry::partial(row.len(), changes));
        self.change(table, key, &Change::Fields(changes))?;
        Ok(true)
    }

    fn delete(&mut self, table: usize, key: &Key) -> Result<bool> {
        let Some(row) = self.lookup(table, key)? else { return Ok(false) };
        self.log(table, key, &Entry::full(&row), Entry::tombstone(row.len()));
        self.change(table, key, &Change::Remove)?;
        Ok(true)
    }

    fn get(&mut self, table: usize, key: &Key) -> Result<Option<Row>> {
        self.lookup(table, key)
    }

    fn scan(&mut self, table: usize, from: &Key, to: Option<&Key>, each: Visit<'_>) -> Result<()> {
        let memtable = self.trees[table].range(&mut self.nvm, from, to);
        let mut keys: Vec<Key> = memtable.into_iter().map(|(key, _)| key).collect();
        for run in &self.runs {
            keys.extend(run.keys(&mut self.nvm, table, from, to));
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
        self.wal.commit();
        self.keep_changes();
        let number = self.groups.commit();
        if self.groups.is_full() {
            self.flush()?;
        }
        Ok(number)
    }

    fn abort(&mut self) -> Result<()> {
        self.wal.abort();
        for undo in std::mem::take(&mut self.undo).into_iter().rev() {
            match undo {
                Undo::Linked { table, key, tuple } => {
                    self.trees[table].remove(&mut self.nvm, &key);
                    let slots = slots_of(&mut self.nvm, &self.schema.tables[table], tuple);
                    slots.into_iter().for_each(|slot| self.nvm.recycle(slot));
                }
                Undo::Changed(word) => {
                    self.nvm.memory.store_u64(word.at, word.old);
                    if word.is_slot && word.new != 0 {
                        self.nvm.recycle(word.new);
                    }
                }
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        if self.groups.is_flushed() {
            return Ok(());
        }
        self.wal.write(&mut self.nvm)?;
        if !self.options.has(Fault::AnswerBeforeSync) {
            self.nvm.sync_file(self.wal.file);
        }
        self.groups.all_durable();
        if self.bytes >= self.options.memtable_bytes {
            self.spill()?;
        }
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
        Ok(self.nvm.persisted_slots().abs_diff(self.nvm.extents_count()))
    }
}
