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
use std::sync::Arc;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use pmem::Device;

use super::base::Base;
use super::engine::{Engine, Recovery};
use super::names::{FileKind, number_of};
use crate::ground::{FileId, Nvm, Task};
use crate::options::{Fault, Options};
use crate::schema::{Changes, Entry, Key, Kind, Row, Schema, decode_key, encode_key, take_u64};
use crate::structures::{BTree, Leaf, Record, Undo, UndoList, Wal, word_changes, write_row};
use crate::{Error, Result};

/// The engine.
pub struct Inp<D: Device> {
    base: Base<D>,
    trees: Vec<BTree>,
    wal: Wal,
    /// Of the log and of the checkpoint before it.
    number: u64,
    undo: UndoList,
    checkpoint_at: u64,
}

impl<D: Device> Inp<D> {
    fn new(mut base: Base<D>, wal: FileId, number: u64) -> Result<Self> {
        let trees = base.new_trees(false)?;
        let checkpoint_at = base.options.checkpoint_transactions;
        let (wal, undo) = (Wal::new(wal), UndoList::default());
        Ok(Self { base, trees, wal, number, undo, checkpoint_at })
    }

    /// Puts a tuple where there is none.
    fn link(&mut self, table: usize, key: &Key, row: &Entry) -> Result<()> {
        let of = &self.base.schema.tables[table];
        let tuple = write_row(&mut self.base.nvm, of, key, row, &mut Vec::new())?;
        self.trees[table].insert(&mut self.base.nvm, key, tuple)?;
        self.undo.push(Undo::Linked { table, key: *key, tuple });
        Ok(())
    }

    /// Takes the tuple away, if there is one.
    fn unlink(&mut self, table: usize, key: &Key) {
        if let Some(tuple) = self.trees[table].remove(&mut self.base.nvm, key) {
            self.undo.push(Undo::Unlinked { table, key: *key, tuple });
        }
    }

    /// Changes fields of a tuple.
    fn change_words(&mut self, table: usize, tuple: u64, changes: Changes<'_>) -> Result<()> {
        let (nvm, of) = (&mut self.base.nvm, &self.base.schema.tables[table]);
        let words = word_changes(nvm, of, tuple, changes, &mut Vec::new())?;
        self.undo.change_words(nvm, words);
        Ok(())
    }

    /// Logs a change that is to come.
    fn log(&mut self, record: &Record, before: &Entry) -> Result<()> {
        self.wal.log(&mut self.base.nvm, &self.base.schema.tables, record, before)
    }

    /// Makes a change of the log again.
    fn redo(&mut self, record: &Record) -> Result<()> {
        let Record { table, key, after } = record;
        match after.kind {
            Kind::Full => self.link(*table, key, after)?,
            Kind::Partial => {
                let tuple = self.find(*table, key)?;
                let tuple = tuple.ok_or_else(|| Error::Corrupt("a log without a tuple".into()))?;
                self.change_words(*table, tuple, &after.changes())?;
            }
            Kind::Tombstone => self.unlink(*table, key),
        }
        self.keep_changes();
        Ok(())
    }

    fn keep_changes(&mut self) {
        self.undo.keep(&mut self.base.nvm, &self.base.schema.tables);
    }

    /// Writes all tuples to a file, and begins a new log.
    fn checkpoint(&mut self) -> Result<()> {
        let (old_number, number) = (self.number, self.number + 1);
        let old_wal = self.wal.file;
        let wal = self.base.nvm.create_file(FileKind::Wal.name(number))?;
        let bytes = self.encode_all()?;
        let file = self.base.nvm.create_file(FileKind::Checkpoint.name(number))?;
        let cuts_early = self.base.options.has(Fault::CutEarly);
        let nvm = &mut self.base.nvm;
        if cuts_early {
            nvm.remove_file(old_wal);
        }
        nvm.written.table += bytes.len() as u64;
        nvm.write_file(file, 0, &bytes)?;
        nvm.sync_file(file);
        if !cuts_early {
            nvm.remove_file(old_wal);
        }
        for (name, file) in nvm.list_files() {
            if name == FileKind::Checkpoint.name(old_number) {
                nvm.remove_file(file);
            }
        }
        self.wal.begin_file(wal);
        self.number = number;
        Ok(())
    }

    fn encode_all(&mut self) -> Result<Vec<u8>> {
        let level = Compression::new(self.base.options.gzip_level);
        let mut encoder = GzEncoder::new(Vec::new(), level);
        let failed = |e: std::io::Error| Error::Limit(format!("compression: {e}"));
        for table in 0..self.trees.len() {
            let tuples = self.trees[table].range(&mut self.base.nvm, &Key::MIN, None);
            encoder.write_all(&(tuples.len() as u64).to_le_bytes()).map_err(failed)?;
            let mut bytes = Vec::new();
            for (key, tuple) in tuples {
                bytes.clear();
                encode_key(self.base.table(table), &key, &mut bytes);
                self.base.read_tuple(table, tuple)?.encode(&mut bytes);
                encoder.write_all(&bytes).map_err(failed)?;
            }
        }
        encoder.finish().map_err(failed)
    }

    fn load_checkpoint(&mut self, file: FileId) -> Result<u64> {
        let packed = self.base.nvm.read_whole_file(file)?;
        let mut bytes = Vec::new();
        GzDecoder::new(packed.as_slice())
            .read_to_end(&mut bytes)
            .map_err(|e| Error::Corrupt(format!("the checkpoint: {e}")))?;
        let (mut rest, mut loaded) = (bytes.as_slice(), 0);
        for table in 0..self.trees.len() {
            for _ in 0..take_u64(&mut rest)? {
                let of = self.base.table(table);
                let key = decode_key(of, &mut rest)?;
                let row = Entry::decode(of.columns.len(), &mut rest)?;
                self.link(table, &key, &row)?;
                loaded += 1;
            }
            self.keep_changes();
        }
        Ok(loaded)
    }
}

/// The files that count.
struct Chosen {
    number: u64,
    /// The newest checkpoint that is whole, and the log that follows it.
    checkpoint: Option<FileId>,
    wal: FileId,
}

/// Chooses the files that count, and removes all others.
fn choose_files<D: Device>(nvm: &mut Nvm<D>) -> Result<Chosen> {
    let files = nvm.list_files();
    let (mut number, mut checkpoint) = (0, None);
    for (name, file) in &files {
        let is_newer = FileKind::Checkpoint.has(*name) && number_of(*name) > number;
        if is_newer && nvm.file_size(*file) > 0 {
            (number, checkpoint) = (number_of(*name), Some(*file));
        }
    }
    let wal = files.iter().find(|(name, _)| *name == FileKind::Wal.name(number));
    let wal = wal.ok_or_else(|| Error::Corrupt(format!("there is no log {number}")))?.1;
    for (_, file) in files {
        if file != wal && Some(file) != checkpoint {
            nvm.remove_file(file);
        }
    }
    Ok(Chosen { number, checkpoint, wal })
}

impl<D: Device> Engine<D> for Inp<D> {
    const NAME: &'static str = "inp";
    const COMMITS_GROUPS: bool = true;
    type Found = u64;

    fn create(device: Arc<D>, schema: &Schema, options: &Options) -> Result<Self> {
        let mut base = Base::create(Self::NAME, device, schema, options)?;
        let wal = base.nvm.create_file(FileKind::Wal.name(0))?;
        Self::new(base, wal, 0)
    }

    fn open(device: Arc<D>, schema: &Schema, options: &Options) -> Result<(Self, Recovery)> {
        let mut base = Base::open(Self::NAME, device, schema, options)?;
        // All memory is free before the engine rebuilds what was in it.
        let freed = base.end_recovery(0, 0);
        let Chosen { number, checkpoint, wal } = choose_files(&mut base.nvm)?;
        let mut engine = Self::new(base, wal, number)?;
        let before = engine.base.lines();
        let mut redone = match checkpoint {
            Some(file) => engine.load_checkpoint(file)?,
            None => 0,
        };
        let loaded = engine.base.lines();
        for record in Wal::read(&mut engine.base.nvm, wal, &schema.tables)? {
            engine.redo(&record)?;
            redone += 1;
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
        let record = Record { table, key: *key, after: Entry::full(row) };
        self.log(&record, &Entry::tombstone(row.len()))?;
        self.link(table, key, &record.after)
    }

    fn change(&mut self, table: usize, key: &Key, tuple: u64, changes: Changes<'_>) -> Result<()> {
        let mut before = self.base.read_tuple(table, tuple)?;
        before.kind = Kind::Partial;
        let after = Entry::partial(before.columns.len(), changes);
        for (mine, other) in before.columns.iter_mut().zip(&after.columns) {
            *mine = mine.take().filter(|_| other.is_some());
        }
        self.log(&Record { table, key: *key, after }, &before)?;
        self.change_words(table, tuple, changes)
    }

    fn remove(&mut self, table: usize, key: &Key, tuple: u64) -> Result<()> {
        let before = self.base.read_tuple(table, tuple)?;
        let after = Entry::tombstone(before.columns.len());
        self.log(&Record { table, key: *key, after }, &before)?;
        self.unlink(table, key);
        Ok(())
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
        self.checkpoint()
    }

    fn after_group(&mut self) -> Result<()> {
        let committed = self.base.groups.committed();
        if committed >= self.checkpoint_at {
            self.checkpoint_at = committed + self.base.options.checkpoint_transactions;
            let before = self.base.nvm.begin(Some(Task::Recovery));
            self.checkpoint()?;
            self.base.nvm.begin(before);
        }
        Ok(())
    }
}
