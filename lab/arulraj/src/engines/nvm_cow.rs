//! NVM-CoW: a copy-on-write tree of addresses of tuples, in memory (the paper's 4.2, Table 2).
//!
//! A tuple is never changed: an update makes a new one, which shares the fields that stay. New
//! tuples are durable before the dirty directory gets their address. At the end of a group the
//! dirty pages are made durable, and the master record gets the new directory by one store. What
//! was replaced is reused only after that: the paper's "immediately" would overwrite what is
//! committed. Slots are marked persisted by the batch, whose record sees to it that a crash loses
//! none.

use std::ops::ControlFlow;
use std::sync::Arc;

use pmem::Device;

use super::engine::{Engine, Groups, Recovery, Visit, check_row, check_value, end_recovery, magic};
use crate::ground::{Area, Footprint, Nvm, Traffic};
use crate::options::Options;
use crate::schema::{Changes, Entry, Key, Row, Schema};
use crate::structures::{
    Batch, NO_TUPLE, Order, PageTree, Pages, column_at, flush_slots, make_word, read_tuple,
    recover_batch, slots_of, tuple_bytes, write_tuple,
};
use crate::{Error, Result};

const MASTER: &[u8; 8] = b"master\0\0";
/// Bytes of a page that are its slot's header.
const PAGE_OVERHEAD: u64 = 8;

/// Pages in slots.
struct SlotPages {
    usable: u64,
    batch: Batch,
}

impl<D: Device> Pages<D> for SlotPages {
    fn load(&mut self, _: &mut Nvm<D>, page: u64) -> Result<u64> {
        Ok(page)
    }

    fn create(&mut self, nvm: &mut Nvm<D>) -> Result<u64> {
        let page = nvm.allocate(self.usable, Area::Index)?;
        self.batch.new.insert(page);
        Ok(page)
    }

    fn is_dirty(&self, page: u64) -> bool {
        self.batch.new.contains(&page)
    }

    fn give_up(&mut self, nvm: &mut Nvm<D>, page: u64) {
        self.batch.give_up(nvm, page);
    }
}

/// What a key had before the running transaction.
struct Undo {
    table: usize,
    key: Key,
    before: Option<u64>,
}

/// The engine.
pub struct NvmCow<D: Device> {
    nvm: Nvm<D>,
    schema: Schema,
    options: Options,
    pages: SlotPages,
    trees: Vec<PageTree>,
    roots: Vec<u64>,
    /// The slot of the roots that were committed.
    directory: u64,
    master_at: u64,
    /// The running transaction's: what undoes it, what it made, what it gives up.
    undo: Vec<Undo>,
    made: Vec<u64>,
    given_up: Vec<u64>,
    groups: Groups,
}

impl<D: Device> NvmCow<D> {
    fn new(mut nvm: Nvm<D>, schema: &Schema, options: &Options) -> Result<Self> {
        let usable = options.page_bytes - PAGE_OVERHEAD;
        let tables = schema.tables.iter();
        let trees: Result<_> =
            tables.map(|t| PageTree::new(t.key_words(), 8, usable, true)).collect();
        let master_at = nvm.root_at(MASTER);
        Ok(Self {
            nvm,
            schema: schema.clone(),
            options: options.clone(),
            pages: SlotPages { usable, batch: Batch::default() },
            trees: trees?,
            roots: Vec::new(),
            directory: 0,
            master_at,
            undo: Vec::new(),
            made: Vec::new(),
            given_up: Vec::new(),
            groups: Groups::new(options),
        })
    }

    fn tuple(&mut self, table: usize, key: &Key) -> Result<Option<u64>> {
        let root = self.roots[table];
        let found = self.trees[table].get(&mut self.nvm, &mut self.pages, root, key)?;
        Ok(found.and_then(|bytes| bytes.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))))
    }

    /// Gives a key a tuple, or none.
    fn set(&mut self, table: usize, key: &Key, tuple: Option<u64>) -> Result<()> {
        let exists = self.tuple(table, key)?.is_some();
        let (nvm, pages, root) = (&mut self.nvm, &mut self.pages, &mut self.roots[table]);
        let tree = &self.trees[table];
        match tuple {
            None if exists => tree.remove(nvm, pages, root, key),
            None => Ok(()),
            Some(tuple) if exists => tree.store(nvm, pages, root, key, (0, &tuple.to_le_bytes())),
            Some(tuple) => tree.insert(nvm, pages, root, key, &tuple.to_le_bytes()),
        }
    }

    /// The slots are new, and durable.
    fn made(&mut self, slots: Vec<u64>) {
        flush_slots(&mut self.nvm, &slots);
        if !slots.is_empty() {
            self.nvm.memory.fence();
        }
        self.pages.batch.new.extend(&slots);
        self.made.extend(slots);
    }

    fn commit_batch(&mut self) -> Result<()> {
        let batch = &self.pages.batch;
        if batch.new.is_empty() && batch.old.is_empty() {
            return Ok(());
        }
        let directory = self.nvm.allocate(self.roots.len() as u64 * 8, Area::Other)?;
        self.nvm.memory.store_words(directory, &self.roots);
        self.pages.batch.new.insert(directory);
        if self.directory != 0 {
            self.pages.batch.old.insert(self.directory);
        }
        let order = Order::of(&self.options);
        self.pages.batch.commit(&mut self.nvm, self.master_at, directory, order)?;
        self.directory = directory;
        Ok(())
    }
}

impl<D: Device> Engine<D> for NvmCow<D> {
    const NAME: &'static str = "nvm-cow";

    fn create(device: Arc<D>, schema: &Schema, options: &Options) -> Result<Self> {
        let nvm = Nvm::create(device, magic(Self::NAME, schema), options.modelled)?;
        let mut engine = Self::new(nvm, schema, options)?;
        for tree in engine.trees.clone() {
            engine.roots.push(tree.create(&mut engine.nvm, &mut engine.pages)?);
        }
        engine.commit_batch()?;
        Ok(engine)
    }

    fn open(device: Arc<D>, schema: &Schema, options: &Options) -> Result<(Self, Recovery)> {
        let nvm = Nvm::open(device, magic(Self::NAME, schema), options.modelled)?;
        let mut engine = Self::new(nvm, schema, options)?;
        let undone = recover_batch(&mut engine.nvm, engine.master_at);
        engine.directory = engine.nvm.memory.load_u64(engine.master_at);
        if engine.directory == 0 {
            return Err(Error::Corrupt("there is no master record".into()));
        }
        let roots = engine.nvm.memory.load_words(engine.directory, schema.tables.len());
        engine.roots = roots.collect();
        let recovery = end_recovery(&mut engine.nvm, 0, u64::from(undone));
        Ok((engine, recovery))
    }

    fn insert(&mut self, table: usize, key: &Key, row: &[Vec<u8>]) -> Result<bool> {
        check_row(&self.schema, table, row)?;
        if self.tuple(table, key)?.is_some() {
            return Ok(false);
        }
        let mut slots = Vec::new();
        let of = &self.schema.tables[table];
        let tuple = match row {
            [] => NO_TUPLE,
            row => write_tuple(&mut self.nvm, of, key, &Entry::full(row), &mut slots)?,
        };
        self.made(slots);
        self.undo.push(Undo { table, key: *key, before: None });
        self.set(table, key, Some(tuple))?;
        Ok(true)
    }

    fn update(&mut self, table: usize, key: &Key, changes: Changes<'_>) -> Result<bool> {
        for (column, value) in changes {
            check_value(&self.schema, table, *column, value)?;
        }
        let Some(old) = self.tuple(table, key)? else { return Ok(false) };
        if changes.is_empty() {
            return Ok(true);
        }
        let of = &self.schema.tables[table];
        let bytes = tuple_bytes(of);
        let mut words: Vec<u64> = self.nvm.memory.load_words(old, (bytes / 8) as usize).collect();
        let mut slots = Vec::new();
        for (column, value) in changes {
            let word = &mut words[(column_at(of, 0, *column) / 8) as usize];
            let new = make_word(&mut self.nvm, of, *column, value, &mut slots)?;
            if !of.is_inline(*column) {
                self.given_up.push(*word);
            }
            *word = new;
        }
        let tuple = self.nvm.allocate(bytes, Area::Table)?;
        self.nvm.memory.store_words(tuple, &words);
        self.nvm.written.memory += bytes;
        slots.push(tuple);
        self.made(slots);
        self.given_up.push(old);
        self.undo.push(Undo { table, key: *key, before: Some(old) });
        self.set(table, key, Some(tuple))?;
        Ok(true)
    }

    fn delete(&mut self, table: usize, key: &Key) -> Result<bool> {
        let Some(old) = self.tuple(table, key)? else { return Ok(false) };
        if old != NO_TUPLE {
            let slots = slots_of(&mut self.nvm, &self.schema.tables[table], old);
            self.given_up.extend(slots);
        }
        self.undo.push(Undo { table, key: *key, before: Some(old) });
        self.set(table, key, None)?;
        Ok(true)
    }

    fn get(&mut self, table: usize, key: &Key) -> Result<Option<Row>> {
        match self.tuple(table, key)? {
            None => Ok(None),
            Some(NO_TUPLE) => Ok(Some(Row::new())),
            Some(tuple) => {
                let (_, entry) = read_tuple(&mut self.nvm, &self.schema.tables[table], tuple)?;
                Ok(entry.into_row())
            }
        }
    }

    fn scan(&mut self, table: usize, from: &Key, to: Option<&Key>, each: Visit<'_>) -> Result<()> {
        let mut next = Some(*from);
        while let Some(from) = next.filter(|from| to.is_none_or(|to| from < to)) {
            let root = self.roots[table];
            let (entries, following) =
                self.trees[table].leaf_from(&mut self.nvm, &mut self.pages, root, &from)?;
            for (key, _) in entries {
                if to.is_some_and(|to| key >= *to) {
                    return Ok(());
                }
                let row = self.get(table, &key)?.unwrap_or_default();
                if each(&key, row) == ControlFlow::Break(()) {
                    return Ok(());
                }
            }
            next = following.filter(|next| *next > from);
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<u64> {
        self.undo.clear();
        self.made.clear();
        for slot in std::mem::take(&mut self.given_up) {
            self.pages.batch.give_up(&mut self.nvm, slot);
        }
        let number = self.groups.commit();
        if self.groups.is_full() {
            self.flush()?;
        }
        Ok(number)
    }

    fn abort(&mut self) -> Result<()> {
        for Undo { table, key, before } in std::mem::take(&mut self.undo).into_iter().rev() {
            self.set(table, &key, before)?;
        }
        self.given_up.clear();
        for slot in std::mem::take(&mut self.made) {
            self.pages.batch.give_up(&mut self.nvm, slot);
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        if !self.groups.is_flushed() {
            self.commit_batch()?;
            self.groups.all_durable();
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
        let mut reached = 1;
        for (table, tree) in self.trees.clone().iter().enumerate() {
            let root = self.roots[table];
            reached += tree.pages(&mut self.nvm, &mut self.pages, root)?.len() as u64;
            let mut next = Some(Key::MIN);
            while let Some(from) = next {
                let (entries, following) =
                    tree.leaf_from(&mut self.nvm, &mut self.pages, root, &from)?;
                for (key, _) in entries {
                    let tuple = self.tuple(table, &key)?.expect("it was found");
                    if tuple != NO_TUPLE {
                        let of = &self.schema.tables[table];
                        reached += slots_of(&mut self.nvm, of, tuple).len() as u64;
                    }
                }
                next = following;
            }
        }
        Ok(self.nvm.persisted_slots().abs_diff(reached))
    }
}
