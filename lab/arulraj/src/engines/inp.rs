//! InP: updates in place in volatile memory, a log and checkpoints in files (the paper's 3.1).
//!
//! Every change is in the log's memory before it is made; a group of transactions is written and
//! synced together, and answered then. At times all tuples are written to a checkpoint, compressed,
//! and the log begins anew. Recovery loads the newest checkpoint, makes the log's changes again and
//! so rebuilds the indexes: whatever is in memory was never persisted and is free.
//!
//! A checkpoint and the log that follows it have one number. The log's file is made first, then the
//! checkpoint is written and synced, and only then the older two are removed.

use std::io::{Read, Write};
use std::ops::ControlFlow;
use std::sync::Arc;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use pmem::Device;

use super::engine::{Engine, Groups, Recovery, Visit, check_row, check_value, end_recovery, magic};
use crate::ground::{FileId, Footprint, Nvm, Traffic};
use crate::options::{Fault, Options};
use crate::schema::{Changes, Entry, Key, Kind, Row, Schema, decode_key, encode_key, take_u64};
use crate::structures::{
    BTree, NO_TUPLE, Record, Wal, WordChange, column_at, make_word, read_tuple, slots_of,
    write_tuple,
};
use crate::{Error, Result};

/// Kinds of files, in the upper half of a name.
const WAL: u64 = 1 << 32;
const CHECKPOINT: u64 = 2 << 32;
const NUMBER: u64 = (1 << 32) - 1;

/// What undoes a change of memory.
enum Undo {
    Linked { table: usize, key: Key, tuple: u64 },
    Unlinked { table: usize, key: Key, tuple: u64 },
    Changed(WordChange),
}

/// The engine.
pub struct Inp<D: Device> {
    nvm: Nvm<D>,
    schema: Schema,
    options: Options,
    trees: Vec<BTree>,
    wal: Wal,
    /// Of the log and of the checkpoint before it.
    number: u64,
    /// The running transaction's.
    undo: Vec<Undo>,
    groups: Groups,
    checkpoint_at: u64,
}

impl<D: Device> Inp<D> {
    fn new(mut nvm: Nvm<D>, schema: &Schema, options: &Options, wal: FileId) -> Result<Self> {
        let mut trees = Vec::new();
        for table in &schema.tables {
            trees.push(BTree::create(&mut nvm, table.key_words(), options.node_bytes, false)?);
        }
        Ok(Self {
            nvm,
            schema: schema.clone(),
            options: options.clone(),
            trees,
            wal: Wal::new(wal),
            number: 0,
            undo: Vec::new(),
            groups: Groups::new(options),
            checkpoint_at: options.checkpoint_transactions,
        })
    }

    /// Puts a tuple where there is none.
    fn put(&mut self, table: usize, key: &Key, entry: &Entry) -> Result<u64> {
        let of = &self.schema.tables[table];
        let tuple = match of.columns.is_empty() {
            true => NO_TUPLE,
            false => write_tuple(&mut self.nvm, of, key, entry, &mut Vec::new())?,
        };
        self.trees[table].insert(&mut self.nvm, key, tuple)?;
        Ok(tuple)
    }

    /// Changes words of a tuple, and returns what they were.
    fn change(
        &mut self,
        table: usize,
        tuple: u64,
        changes: Changes<'_>,
    ) -> Result<Vec<WordChange>> {
        let mut words = Vec::new();
        for (column, value) in changes {
            let of = &self.schema.tables[table];
            let at = column_at(of, tuple, *column);
            let old = self.nvm.memory.load_u64(at);
            let new = make_word(&mut self.nvm, of, *column, value, &mut Vec::new())?;
            self.nvm.memory.store_u64(at, new);
            self.nvm.written.memory += 8;
            words.push(WordChange { at, old, new, is_slot: !of.is_inline(*column) });
        }
        Ok(words)
    }

    fn free_tuple(&mut self, table: usize, tuple: u64) {
        if tuple != NO_TUPLE {
            let slots = slots_of(&mut self.nvm, &self.schema.tables[table], tuple);
            slots.into_iter().for_each(|slot| self.nvm.recycle(slot));
        }
    }

    fn read(&mut self, table: usize, tuple: u64) -> Result<Entry> {
        match tuple {
            NO_TUPLE => Ok(Entry::full(&[])),
            tuple => Ok(read_tuple(&mut self.nvm, &self.schema.tables[table], tuple)?.1),
        }
    }

    /// Makes a change of the log again.
    fn redo(&mut self, record: &Record) -> Result<()> {
        let Record { table, key, after } = record;
        match after.kind {
            Kind::Full => {
                self.put(*table, key, after)?;
            }
            Kind::Partial => {
                let tuple = self.trees[*table].get(&mut self.nvm, key);
                let tuple = tuple.ok_or_else(|| Error::Corrupt("a log without a tuple".into()))?;
                let changes: Vec<(usize, &[u8])> = changes_of(after).collect();
                for word in self.change(*table, tuple, &changes)? {
                    self.give_up(&word);
                }
            }
            Kind::Tombstone => {
                if let Some(tuple) = self.trees[*table].remove(&mut self.nvm, key) {
                    self.free_tuple(*table, tuple);
                }
            }
        }
        Ok(())
    }

    fn give_up(&mut self, word: &WordChange) {
        if word.is_slot {
            self.nvm.recycle(word.old);
        }
    }

    /// Writes all tuples to a file, and begins a new log.
    fn checkpoint(&mut self) -> Result<()> {
        let old_number = self.number;
        let number = old_number + 1;
        let old_wal = self.wal.file;
        let wal = self.nvm.create_file(WAL | number)?;
        let bytes = self.encode_all()?;
        let file = self.nvm.create_file(CHECKPOINT | number)?;
        if self.options.has(Fault::CutEarly) {
            self.nvm.remove_file(old_wal);
        }
        self.nvm.written.table += bytes.len() as u64;
        self.nvm.write_file(file, 0, &bytes)?;
        self.nvm.sync_file(file);
        if !self.options.has(Fault::CutEarly) {
            self.nvm.remove_file(old_wal);
        }
        for (name, file) in self.nvm.list_files() {
            if name == CHECKPOINT | old_number {
                self.nvm.remove_file(file);
            }
        }
        (self.wal, self.number) = (Wal::new(wal), number);
        Ok(())
    }

    fn encode_all(&mut self) -> Result<Vec<u8>> {
        let level = Compression::new(self.options.gzip_level);
        let mut encoder = GzEncoder::new(Vec::new(), level);
        let failed = |e: std::io::Error| Error::Limit(format!("compression: {e}"));
        for table in 0..self.schema.tables.len() {
            let tuples = self.trees[table].range(&mut self.nvm, &Key::MIN, None);
            encoder.write_all(&(tuples.len() as u64).to_le_bytes()).map_err(failed)?;
            let mut bytes = Vec::new();
            for (key, tuple) in tuples {
                bytes.clear();
                encode_key(&self.schema.tables[table], &key, &mut bytes);
                self.read(table, tuple)?.encode(&mut bytes);
                encoder.write_all(&bytes).map_err(failed)?;
            }
        }
        encoder.finish().map_err(failed)
    }

    fn load_checkpoint(&mut self, file: FileId) -> Result<u64> {
        let packed = self.nvm.read_whole_file(file)?;
        let mut bytes = Vec::new();
        GzDecoder::new(packed.as_slice())
            .read_to_end(&mut bytes)
            .map_err(|e| Error::Corrupt(format!("the checkpoint: {e}")))?;
        let (mut rest, mut loaded) = (bytes.as_slice(), 0);
        for table in 0..self.schema.tables.len() {
            for _ in 0..take_u64(&mut rest)? {
                let of = &self.schema.tables[table];
                let key = decode_key(of, &mut rest)?;
                let entry = Entry::decode(of.columns.len(), &mut rest)?;
                self.put(table, &key, &entry)?;
                loaded += 1;
            }
        }
        Ok(loaded)
    }
}

/// The values that an entry has.
pub(super) fn changes_of(entry: &Entry) -> impl Iterator<Item = (usize, &[u8])> {
    let columns = entry.columns.iter().enumerate();
    columns.filter_map(|(column, value)| Some((column, value.as_deref()?)))
}

/// The number of the newest checkpoint that is whole, its file, and the file of its log; all other
/// files are removed.
fn choose_files<D: Device>(nvm: &mut Nvm<D>) -> Result<(u64, Option<FileId>, FileId)> {
    let files = nvm.list_files();
    let (mut number, mut checkpoint) = (0, None);
    for (name, file) in &files {
        if name & !NUMBER == CHECKPOINT && name & NUMBER > number && nvm.file_size(*file) > 0 {
            (number, checkpoint) = (name & NUMBER, Some(*file));
        }
    }
    let wal = files.iter().find(|(name, _)| *name == WAL | number).map(|(_, file)| *file);
    let wal = wal.ok_or_else(|| Error::Corrupt(format!("there is no log {number}")))?;
    for (_, file) in files {
        if file != wal && Some(file) != checkpoint {
            nvm.remove_file(file);
        }
    }
    Ok((number, checkpoint, wal))
}

impl<D: Device> Engine<D> for Inp<D> {
    const NAME: &'static str = "inp";

    fn create(device: Arc<D>, schema: &Schema, options: &Options) -> Result<Self> {
        let mut nvm = Nvm::create(device, magic(Self::NAME, schema), options.modelled)?;
        let wal = nvm.create_file(WAL)?;
        Self::new(nvm, schema, options, wal)
    }

    fn open(device: Arc<D>, schema: &Schema, options: &Options) -> Result<(Self, Recovery)> {
        let mut nvm = Nvm::open(device, magic(Self::NAME, schema), options.modelled)?;
        // All memory is free before the engine rebuilds what was in it.
        let freed = end_recovery(&mut nvm, 0, 0);
        let (number, checkpoint, wal) = choose_files(&mut nvm)?;
        let mut engine = Self::new(nvm, schema, options, wal)?;
        engine.number = number;
        let mut redone = match checkpoint {
            Some(file) => engine.load_checkpoint(file)?,
            None => 0,
        };
        for record in Wal::read(&mut engine.nvm, wal, &schema.tables)? {
            engine.redo(&record)?;
            redone += 1;
        }
        let traffic = engine.traffic();
        Ok((engine, Recovery { redone, engine: traffic, ..freed }))
    }

    fn insert(&mut self, table: usize, key: &Key, row: &[Vec<u8>]) -> Result<bool> {
        check_row(&self.schema, table, row)?;
        if self.trees[table].get(&mut self.nvm, key).is_some() {
            return Ok(false);
        }
        let record = Record { table, key: *key, after: Entry::full(row) };
        let before = Entry::tombstone(row.len());
        self.wal.log(&mut self.nvm, &self.schema.tables, &record, &before);
        let tuple = self.put(table, key, &record.after)?;
        self.undo.push(Undo::Linked { table, key: *key, tuple });
        Ok(true)
    }

    fn update(&mut self, table: usize, key: &Key, changes: Changes<'_>) -> Result<bool> {
        for (column, value) in changes {
            check_value(&self.schema, table, *column, value)?;
        }
        let Some(tuple) = self.trees[table].get(&mut self.nvm, key) else { return Ok(false) };
        let columns = self.schema.tables[table].columns.len();
        let mut before = self.read(table, tuple)?;
        before.kind = Kind::Partial;
        let after = Entry::partial(columns, changes);
        for (mine, other) in before.columns.iter_mut().zip(&after.columns) {
            *mine = mine.take().filter(|_| other.is_some());
        }
        let record = Record { table, key: *key, after };
        self.wal.log(&mut self.nvm, &self.schema.tables, &record, &before);
        let words = self.change(table, tuple, changes)?;
        self.undo.extend(words.into_iter().map(Undo::Changed));
        Ok(true)
    }

    fn delete(&mut self, table: usize, key: &Key) -> Result<bool> {
        let Some(tuple) = self.trees[table].get(&mut self.nvm, key) else { return Ok(false) };
        let before = self.read(table, tuple)?;
        let after = Entry::tombstone(before.columns.len());
        let record = Record { table, key: *key, after };
        self.wal.log(&mut self.nvm, &self.schema.tables, &record, &before);
        self.trees[table].remove(&mut self.nvm, key);
        self.undo.push(Undo::Unlinked { table, key: *key, tuple });
        Ok(true)
    }

    fn get(&mut self, table: usize, key: &Key) -> Result<Option<Row>> {
        match self.trees[table].get(&mut self.nvm, key) {
            Some(tuple) => Ok(self.read(table, tuple)?.into_row()),
            None => Ok(None),
        }
    }

    fn scan(&mut self, table: usize, from: &Key, to: Option<&Key>, each: Visit<'_>) -> Result<()> {
        scan_tree(&mut self.nvm, &self.schema, &self.trees, table, from, to, each)
    }

    fn commit(&mut self) -> Result<u64> {
        self.wal.commit();
        for undo in std::mem::take(&mut self.undo) {
            match undo {
                Undo::Linked { .. } => {}
                Undo::Unlinked { table, tuple, .. } => self.free_tuple(table, tuple),
                Undo::Changed(word) => self.give_up(&word),
            }
        }
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
                    self.free_tuple(table, tuple);
                }
                Undo::Unlinked { table, key, tuple } => {
                    self.trees[table].insert(&mut self.nvm, &key, tuple)?;
                }
                Undo::Changed(word) => {
                    self.nvm.memory.store_u64(word.at, word.old);
                    if word.is_slot {
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
        if self.groups.committed() >= self.checkpoint_at {
            self.checkpoint_at = self.groups.committed() + self.options.checkpoint_transactions;
            self.checkpoint()?;
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

/// Visits what a tree of tuples has in a range.
pub(super) fn scan_tree<D: Device>(
    nvm: &mut Nvm<D>,
    schema: &Schema,
    trees: &[BTree],
    table: usize,
    from: &Key,
    to: Option<&Key>,
    each: Visit<'_>,
) -> Result<()> {
    let mut next = Some(*from);
    while let Some(from) = next.filter(|from| to.is_none_or(|to| from < to)) {
        let (entries, following) = trees[table].leaf_from(nvm, &from);
        for (key, tuple) in entries {
            if to.is_some_and(|to| key >= *to) {
                return Ok(());
            }
            let row = match tuple {
                NO_TUPLE => Row::new(),
                tuple => {
                    let (_, entry) = read_tuple(nvm, &schema.tables[table], tuple)?;
                    entry.into_row().unwrap_or_default()
                }
            };
            if each(&key, row) == ControlFlow::Break(()) {
                return Ok(());
            }
        }
        next = following;
    }
    Ok(())
}
