//! NVM-CoW: a copy-on-write tree of addresses of tuples, in memory (the paper's 4.2, Table 2).
//!
//! A tuple is never changed: an update makes a new one, which shares the fields that stay. New
//! tuples are durable before the dirty directory gets their address. At the end of a group the
//! dirty pages are made durable, and the master record gets the new directory by one store. What
//! was replaced is reused only after that: the paper's "immediately" would overwrite what is
//! committed. Slots are marked persisted by the batch, whose record sees to it that a crash loses
//! none.

use std::sync::Arc;

use pmem::Device;

use super::base::Base;
use super::engine::{Before, Engine, Recovery};
use crate::Result;
use crate::ground::{Area, Nvm, Part, Task};
use crate::options::Options;
use crate::schema::{Changes, Entry, Key, Row, Schema};
use crate::structures::{
    Batch, Leaf, Master, PageShape, PageTree, Pages, column_at, load_tuple, make_word, sync_slots,
    tuple_bytes, write_row,
};

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

/// The engine.
pub struct NvmCow<D: Device> {
    base: Base<D>,
    pages: SlotPages,
    shapes: Vec<PageShape>,
    roots: Vec<u64>,
    master: Master,
    /// The running transaction's: what undoes it, what it made, what it gives up.
    undo: Vec<Before<u64>>,
    made: Vec<u64>,
    given_up: Vec<u64>,
}

/// The address in a cell.
fn tuple_of(cell: &[u8]) -> u64 {
    u64::from_le_bytes(*cell.first_chunk().expect("a cell has an address"))
}

impl<D: Device> NvmCow<D> {
    fn new(base: Base<D>, master: Master) -> Result<Self> {
        let usable = base.options.page_bytes - PAGE_OVERHEAD;
        let tables = base.schema.tables.iter();
        let shapes = tables
            .map(|table| PageShape::new(table.key_words(), 8, usable, true))
            .collect::<Result<_>>()?;
        let pages = SlotPages { usable, batch: Batch::default() };
        let (roots, undo, made, given_up) = Default::default();
        Ok(Self { base, pages, shapes, roots, master, undo, made, given_up })
    }

    fn tree(&mut self, table: usize) -> PageTree<'_, D, SlotPages> {
        let (nvm, pages) = (&mut self.base.nvm, &mut self.pages);
        PageTree::new(self.shapes[table], &mut self.roots[table], nvm, pages)
    }

    /// Gives a key a tuple, or none.
    fn set(&mut self, table: usize, key: &Key, tuple: Option<u64>) -> Result<()> {
        let exists = self.find(table, key)?.is_some();
        let mut tree = self.tree(table);
        match tuple {
            None if exists => tree.remove(key),
            None => Ok(()),
            Some(tuple) if exists => tree.store(key, 0, &tuple.to_le_bytes()),
            Some(tuple) => tree.insert(key, &tuple.to_le_bytes()),
        }
    }

    /// The slots are new, and durable.
    fn made(&mut self, slots: Vec<u64>) {
        sync_slots(&mut self.base.nvm, &slots);
        self.pages.batch.new.extend(&slots);
        self.made.extend(slots);
    }

    fn give_up(&mut self, slots: Vec<u64>) {
        for slot in slots {
            self.pages.batch.give_up(&mut self.base.nvm, slot);
        }
    }

    fn commit_batch(&mut self) -> Result<()> {
        let batch = &mut self.pages.batch;
        if batch.new.is_empty() && batch.old.is_empty() {
            return Ok(());
        }
        self.master.publish(&mut self.base.nvm, batch, &self.roots, &self.base.options)
    }
}

impl<D: Device> Engine<D> for NvmCow<D> {
    const NAME: &'static str = "nvm-cow";
    const COMMITS_GROUPS: bool = true;
    type Found = u64;

    fn create(device: Arc<D>, schema: &Schema, options: &Options) -> Result<Self> {
        let mut base = Base::create(Self::NAME, device, schema, options)?;
        let master = Master::new(&mut base.nvm, MASTER);
        let mut engine = Self::new(base, master)?;
        for shape in &engine.shapes {
            engine.roots.push(shape.create(&mut engine.base.nvm, &mut engine.pages)?);
        }
        engine.commit_batch()?;
        Ok(engine)
    }

    fn open(device: Arc<D>, schema: &Schema, options: &Options) -> Result<(Self, Recovery)> {
        let mut base = Base::open(Self::NAME, device, schema, options)?;
        let (master, was_interrupted) = Master::recover(&mut base.nvm, MASTER)?;
        let directory = master.directory;
        let mut engine = Self::new(base, master)?;
        let base = &mut engine.base;
        engine.roots = base.nvm.memory.load_words(directory, schema.tables.len()).collect();
        let recovery = base.end_recovery(0, u64::from(was_interrupted));
        Ok((engine, recovery))
    }

    fn base(&self) -> &Base<D> {
        &self.base
    }

    fn base_mut(&mut self) -> &mut Base<D> {
        &mut self.base
    }

    fn find(&mut self, table: usize, key: &Key) -> Result<Option<u64>> {
        Ok(self.tree(table).get(key)?.as_deref().map(tuple_of))
    }

    fn leaf(&mut self, table: usize, from: &Key, _: Option<&Key>) -> Result<Leaf<u64>> {
        let Leaf { entries, next } = self.tree(table).leaf_from(from)?;
        let entries = entries.into_iter().map(|(key, cell)| (key, tuple_of(&cell))).collect();
        Ok(Leaf { entries, next })
    }

    fn read(&mut self, table: usize, _: &Key, tuple: u64) -> Result<Option<Row>> {
        Ok(self.base.read_tuple(table, tuple)?.into_row())
    }

    fn put(&mut self, table: usize, key: &Key, row: &[Vec<u8>]) -> Result<()> {
        let mut slots = Vec::new();
        let of = &self.base.schema.tables[table];
        let tuple = write_row(&mut self.base.nvm, of, key, &Entry::full(row), &mut slots)?;
        self.made(slots);
        self.undo.push(Before { table, key: *key, before: None });
        self.set(table, key, Some(tuple))
    }

    fn change(&mut self, table: usize, key: &Key, old: u64, changes: Changes<'_>) -> Result<()> {
        let Base { nvm, schema, .. } = &mut self.base;
        let of = &schema.tables[table];
        let bytes = tuple_bytes(of);
        let mut words = load_tuple(nvm, of, old);
        let mut slots = Vec::new();
        for (column, value) in changes {
            let word = &mut words[(column_at(of, 0, *column) / 8) as usize];
            let new = make_word(nvm, of, *column, value, &mut slots)?;
            if !of.is_inline(*column) {
                self.given_up.push(*word);
            }
            *word = new;
        }
        let tuple = nvm.allocate(bytes, Area::Table)?;
        nvm.within(Part::Tuple, |nvm| nvm.memory.store_words(tuple, &words));
        nvm.written.memory += bytes;
        slots.push(tuple);
        self.made(slots);
        self.given_up.push(old);
        self.undo.push(Before { table, key: *key, before: Some(old) });
        self.set(table, key, Some(tuple))
    }

    fn remove(&mut self, table: usize, key: &Key, old: u64) -> Result<()> {
        self.given_up.extend(self.base.slots_of(table, old));
        self.undo.push(Before { table, key: *key, before: Some(old) });
        self.set(table, key, None)
    }

    fn keep(&mut self) -> Result<()> {
        self.undo.clear();
        self.made.clear();
        let given_up = std::mem::take(&mut self.given_up);
        self.give_up(given_up);
        Ok(())
    }

    fn abort(&mut self) -> Result<()> {
        for Before { table, key, before } in std::mem::take(&mut self.undo).into_iter().rev() {
            self.set(table, &key, before)?;
        }
        self.given_up.clear();
        let made = std::mem::take(&mut self.made);
        self.give_up(made);
        Ok(())
    }

    fn end_group(&mut self) -> Result<()> {
        let before = self.base.nvm.begin(Some(Task::Recovery));
        self.commit_batch()?;
        self.base.nvm.begin(before);
        Ok(())
    }

    #[cfg(test)]
    fn reached_slots(&mut self) -> Result<u64> {
        let mut reached = 1;
        for table in 0..self.roots.len() {
            reached += self.tree(table).pages()?.len() as u64;
            let mut next = Some(Key::MIN);
            while let Some(from) = next {
                let leaf = self.leaf(table, &from, None)?;
                for (_, tuple) in leaf.entries {
                    reached += self.base.slots_of(table, tuple).len() as u64;
                }
                next = leaf.next;
            }
        }
        Ok(reached)
    }
}
