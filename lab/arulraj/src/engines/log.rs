//! Log: an LSM tree of SSTables in files, a MemTable in volatile memory and a log (the paper's
//! 3.3).
//!
//! A change is in the log's memory before it is in the MemTable; a group is written and synced
//! together, and answered then. A full MemTable becomes an SSTable. A manifest, itself a file, says
//! which log and which tables count; a new one is synced after what it names, and only then the
//! older one and what it alone named are removed. Recovery reads the manifest, loads the tables'
//! indexes, and makes the changes of the log again in a new MemTable.

use std::collections::BTreeMap;
use std::sync::Arc;

use pmem::Device;

use super::base::Base;
use super::engine::{Engine, Recovery};
use super::names::{FileKind, number_of};
use crate::ground::{FileId, Nvm, Task};
use crate::options::{Fault, Options};
use crate::schema::{Changes, Entry, Key, Kind, Row, Schema, take_u64};
use crate::structures::{
    BTree, Change, Leaf, Record, RunSize, Sorted, SsTable, Step, TableFile, Undo, UndoList, Wal,
    change_bytes, choose, coalesce, plan,
};
use crate::{Error, Result};

/// The engine.
pub struct Log<D: Device> {
    base: Base<D>,
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
    undo: UndoList,
}

impl<D: Device> Log<D> {
    fn new(mut base: Base<D>, wal: FileId) -> Result<Self> {
        Ok(Self {
            trees: base.new_trees(false)?,
            base,
            bytes: 0,
            runs: Vec::new(),
            wal: Wal::new(wal),
            wal_number: 0,
            manifest: None,
            number: 1,
            undo: UndoList::default(),
        })
    }

    fn next_number(&mut self) -> u64 {
        self.number += 1;
        self.number - 1
    }

    /// Makes a change in the MemTable.
    fn apply_change(&mut self, table: usize, key: &Key, change: &Change<'_>) -> Result<()> {
        let (of, tree) = (&self.base.schema.tables[table], self.trees[table]);
        let nvm = &mut self.base.nvm;
        self.bytes += change_bytes(of, change);
        match plan(nvm, of, &tree, key, change)?.step {
            Step::Link(tuple) => {
                tree.insert(nvm, key, tuple)?;
                self.undo.push(Undo::Linked { table, key: *key, tuple });
            }
            Step::Words(words) => self.undo.change_words(nvm, words),
        }
        Ok(())
    }

    /// The entry of a key in the MemTable, which is 0, or in the run of an age.
    fn entry(&mut self, age: usize, table: usize, key: &Key) -> Result<Option<Entry>> {
        let nvm = &mut self.base.nvm;
        match age.checked_sub(1) {
            Some(run) => self.runs[run].get(nvm, &self.base.schema.tables, table, key),
            None => match self.trees[table].get(nvm, key) {
                Some(tuple) => self.base.read_tuple(table, tuple).map(Some),
                None => Ok(None),
            },
        }
    }

    /// The tuple of a key, put together from the runs that have entries of it.
    fn lookup(&mut self, table: usize, key: &Key) -> Result<Option<Row>> {
        coalesce((0..=self.runs.len()).map(|age| self.entry(age, table, key)))
    }

    fn log(&mut self, table: usize, key: &Key, before: &Entry, after: Entry) -> Result<()> {
        let record = Record { table, key: *key, after };
        self.wal.log(&mut self.base.nvm, &self.base.schema.tables, &record, before)
    }

    /// Makes a change of the log again.
    fn redo(&mut self, record: Record) -> Result<()> {
        let Record { table, key, after } = record;
        match after.kind {
            Kind::Full => {
                let row = after.into_row().expect("a full entry is a tuple");
                self.apply_change(table, &key, &Change::Put(&row))?;
            }
            Kind::Partial => self.apply_change(table, &key, &Change::Fields(&after.changes()))?,
            Kind::Tombstone => self.apply_change(table, &key, &Change::Remove)?,
        }
        self.keep_changes();
        Ok(())
    }

    fn keep_changes(&mut self) {
        self.undo.keep(&mut self.base.nvm, &self.base.schema.tables);
    }

    /// Writes a manifest, which is synced, and removes the older one.
    fn write_manifest(&mut self) -> Result<()> {
        let mut words = vec![self.wal_number, self.runs.len() as u64];
        for run in &self.runs {
            words.extend([run.at.number, run.at.level]);
        }
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let name = FileKind::Manifest.name(self.next_number());
        let nvm = &mut self.base.nvm;
        let file = nvm.create_file(name)?;
        nvm.write_file(file, 0, &bytes)?;
        nvm.sync_file(file);
        if let Some(old) = self.manifest.replace(file) {
            nvm.remove_file(old);
        }
        Ok(())
    }

    fn write_table(&mut self, level: u64, entries: &Sorted) -> Result<SsTable> {
        let number = self.next_number();
        let Base { nvm, schema, options, .. } = &mut self.base;
        let file = nvm.create_file(FileKind::Table.name(number))?;
        let at = TableFile { file, number, level };
        let table = SsTable::write(nvm, &schema.tables, options, at, entries)?;
        nvm.sync_file(file);
        Ok(table)
    }

    /// The MemTable becomes an SSTable, and a new one and a new log begin.
    fn spill(&mut self) -> Result<()> {
        let mut entries = Sorted::new();
        let mut slots = Vec::new();
        for (table, tree) in self.trees.iter().enumerate() {
            let mut sorted = Vec::new();
            for (key, tuple) in tree.range(&mut self.base.nvm, &Key::MIN, None) {
                let mut entry = self.base.read_tuple(table, tuple)?;
                if entry.kind == Kind::Tombstone {
                    entry = Entry::tombstone(entry.columns.len());
                }
                sorted.push((key, entry));
                slots.extend(self.base.slots_of(table, tuple));
            }
            entries.push(sorted);
            slots.extend(tree.slots(&mut self.base.nvm));
        }
        let old_wal = self.wal.file;
        let cuts_early = self.base.options.has(Fault::CutEarly);
        if cuts_early {
            self.base.nvm.remove_file(old_wal);
        }
        let run = self.write_table(0, &entries)?;
        self.runs.insert(0, run);
        self.wal_number = self.next_number();
        let wal = FileKind::Wal.name(self.wal_number);
        let wal = self.base.nvm.create_file(wal)?;
        self.wal.begin_file(wal);
        self.write_manifest()?;
        if !cuts_early {
            self.base.nvm.remove_file(old_wal);
        }
        self.base.nvm.recycle_all(slots);
        (self.bytes, self.trees) = (0, self.base.new_trees(false)?);
        self.compact()
    }

    /// Merges SSTables if there are too many.
    fn compact(&mut self) -> Result<()> {
        let sizes: Vec<RunSize> = self.runs.iter().map(SsTable::size).collect();
        let Some(merge) = choose(&sizes, &self.base.options) else { return Ok(()) };
        let mut merged = Sorted::new();
        for table in 0..self.trees.len() {
            let mut all: BTreeMap<Key, Entry> = BTreeMap::new();
            // The oldest first, so that newer entries come on top.
            for run in self.runs[..merge.count].iter().rev() {
                for (key, newer) in
                    run.entries(&mut self.base.nvm, &self.base.schema.tables, table)?
                {
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
        old.into_iter().for_each(|run| run.remove(&mut self.base.nvm));
        Ok(())
    }
}

/// What a manifest says: the number of the log, and the tables, the newest first.
struct Manifest {
    wal: u64,
    tables: Vec<NamedTable>,
}

struct NamedTable {
    number: u64,
    level: u64,
}

fn read_manifest<D: Device>(nvm: &mut Nvm<D>, file: FileId) -> Result<Manifest> {
    let bytes = nvm.read_whole_file(file)?;
    let mut rest = bytes.as_slice();
    let (wal, count) = (take_u64(&mut rest)?, take_u64(&mut rest)?);
    let mut tables = Vec::new();
    for _ in 0..count {
        tables.push(NamedTable { number: take_u64(&mut rest)?, level: take_u64(&mut rest)? });
    }
    Ok(Manifest { wal, tables })
}

impl<D: Device> Engine<D> for Log<D> {
    const NAME: &'static str = "log";
    const COMMITS_GROUPS: bool = true;
    /// The tuple, or nothing if the runs are not looked through yet.
    type Found = Option<Row>;

    fn create(device: Arc<D>, schema: &Schema, options: &Options) -> Result<Self> {
        let mut base = Base::create(Self::NAME, device, schema, options)?;
        let wal = base.nvm.create_file(FileKind::Wal.name(0))?;
        let mut engine = Self::new(base, wal)?;
        engine.write_manifest()?;
        Ok(engine)
    }

    fn open(device: Arc<D>, schema: &Schema, options: &Options) -> Result<(Self, Recovery)> {
        let mut base = Base::open(Self::NAME, device, schema, options)?;
        let freed = base.end_recovery(0, 0);
        let before = base.lines();
        let nvm = &mut base.nvm;
        let files: BTreeMap<u64, FileId> = nvm.list_files().into_iter().collect();
        let mut manifests = files.iter().rev().filter(|(name, _)| FileKind::Manifest.has(**name));
        let manifest = manifests.find(|(_, file)| nvm.file_size(**file) > 0);
        let manifest = *manifest.ok_or_else(|| Error::Corrupt("there is no manifest".into()))?.1;
        let named = read_manifest(nvm, manifest)?;
        let missing = |name: u64| Error::Corrupt(format!("file {name:x} is missing"));
        let find = |name: u64| files.get(&name).copied().ok_or_else(|| missing(name));
        let wal = find(FileKind::Wal.name(named.wal))?;
        let mut kept = vec![manifest, wal];
        let mut runs = Vec::new();
        for NamedTable { number, level } in named.tables {
            let file = find(FileKind::Table.name(number))?;
            kept.push(file);
            runs.push(SsTable::open(
                nvm,
                &schema.tables,
                options,
                TableFile { file, number, level },
            )?);
        }
        for file in files.values().filter(|file| !kept.contains(file)) {
            nvm.remove_file(*file);
        }
        let mut engine = Self::new(base, wal)?;
        engine.number = files.keys().map(|name| number_of(*name)).max().unwrap_or_default() + 1;
        (engine.runs, engine.manifest, engine.wal_number) = (runs, Some(manifest), named.wal);
        let loaded = engine.base.lines();
        let records = Wal::read(&mut engine.base.nvm, wal, &schema.tables)?;
        let redone = records.len() as u64;
        for record in records {
            engine.redo(record)?;
        }
        let (loaded_lines, redone_lines) = (loaded - before, engine.base.lines() - loaded);
        let traffic = engine.traffic();
        Ok((engine, Recovery { redone, engine: traffic, loaded_lines, redone_lines, ..freed }))
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
            keys.extend(run.keys(nvm, table, from, to));
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
        self.log(table, key, &Entry::tombstone(row.len()), Entry::full(row))?;
        self.apply_change(table, key, &Change::Put(row))
    }

    fn change(
        &mut self,
        table: usize,
        key: &Key,
        found: Self::Found,
        changes: Changes<'_>,
    ) -> Result<()> {
        let row = self.read(table, key, found)?.expect("the tuple was found");
        let old: Vec<_> = changes.iter().map(|(c, _)| (*c, row[*c].as_slice())).collect();
        let before = Entry::partial(row.len(), &old);
        self.log(table, key, &before, Entry::partial(row.len(), changes))?;
        self.apply_change(table, key, &Change::Fields(changes))
    }

    fn remove(&mut self, table: usize, key: &Key, found: Self::Found) -> Result<()> {
        let row = self.read(table, key, found)?.expect("the tuple was found");
        self.log(table, key, &Entry::full(&row), Entry::tombstone(row.len()))?;
        self.apply_change(table, key, &Change::Remove)
    }

    fn keep(&mut self) -> Result<()> {
        self.wal.commit();
        self.keep_changes();
        Ok(())
    }

    fn abort(&mut self) -> Result<()> {
        self.wal.abort();
        self.undo.undo(&mut self.base.nvm, &self.base.schema.tables, &self.trees)
    }

    fn end_group(&mut self) -> Result<()> {
        self.wal.sync(&mut self.base.nvm, &self.base.options)
    }

    fn settle(&mut self) -> Result<()> {
        self.spill()
    }

    fn after_group(&mut self) -> Result<()> {
        match self.bytes >= self.base.options.memtable_bytes {
            true => {
                let before = self.base.nvm.begin(Some(Task::Other));
                self.spill()?;
                self.base.nvm.begin(before);
                Ok(())
            }
            false => Ok(()),
        }
    }
}
