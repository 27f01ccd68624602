//! CoW: a copy-on-write tree with the tuples in it, in a file (the paper's 3.2).
//!
//! Changes go to copies of pages in memory: the dirty directory. At the end of a group they are
//! written and synced, and then the master record, which is 8 bytes at the start of the file, gets
//! the page that has the roots of all tables. Nothing is logged and nothing recovered: a restart
//! reads the master record. Which pages are free is found by a walk over the inner pages, which the
//! paper counts as garbage collection beside the work; here it is made at the open.
//!
//! Fields have fixed places in a cell, so that an update stores what it changes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::ControlFlow;
use std::sync::Arc;

use pmem::Device;

use super::engine::{Engine, Groups, Recovery, Visit, check_row, check_value, end_recovery, magic};
use crate::ground::{Area, FileId, Footprint, Nvm, Traffic};
use crate::options::{Fault, Options};
use crate::schema::{Changes, Key, Row, Schema, Table};
use crate::structures::{PageTree, Pages};
use crate::{Error, Result};

const FILE: u64 = 5 << 32;
/// Bytes of a page that are its slot's header in memory.
const PAGE_OVERHEAD: u64 = 8;

/// A page in memory.
struct Cached {
    at: u64,
    /// When it was used last.
    used: u64,
}

/// Pages of a file, and the page cache.
struct FilePages {
    file: FileId,
    page_bytes: u64,
    cached: HashMap<u64, Cached>,
    /// Clean pages by the time of their last use.
    clean: BTreeMap<u64, u64>,
    cached_max: usize,
    clock: u64,
    dirty: BTreeSet<u64>,
    /// Pages of the file that nothing needs.
    free: BTreeSet<u64>,
    /// How many pages there ever were; the first has the master record.
    pages: u64,
    /// Committed pages that the running batch replaced.
    replaced: Vec<u64>,
    reuses_early: bool,
}

impl FilePages {
    fn new(file: FileId, pages: u64, options: &Options) -> Self {
        Self {
            file,
            page_bytes: options.page_bytes,
            cached: HashMap::new(),
            clean: BTreeMap::new(),
            cached_max: options.cached_pages.max(1),
            clock: 0,
            dirty: BTreeSet::new(),
            free: BTreeSet::new(),
            pages,
            replaced: Vec::new(),
            reuses_early: options.has(Fault::EarlyReuse),
        }
    }

    fn usable(&self) -> u64 {
        self.page_bytes - PAGE_OVERHEAD
    }

    /// The page was used now.
    fn touch(&mut self, page: u64) {
        self.clock += 1;
        let cached = self.cached.get_mut(&page).expect("the page is in memory");
        let before = std::mem::replace(&mut cached.used, self.clock);
        if !self.dirty.contains(&page) {
            self.clean.remove(&before);
            self.clean.insert(self.clock, page);
        }
    }

    fn drop_page<D: Device>(&mut self, nvm: &mut Nvm<D>, page: u64) {
        if let Some(cached) = self.cached.remove(&page) {
            self.clean.remove(&cached.used);
            nvm.recycle(cached.at);
        }
    }

    fn make_space<D: Device>(&mut self, nvm: &mut Nvm<D>) {
        while self.clean.len() >= self.cached_max {
            let (_, page) = self.clean.pop_first().expect("there are some");
            self.drop_page(nvm, page);
        }
    }

    /// Writes the dirty pages and then the master record.
    fn commit<D: Device>(&mut self, nvm: &mut Nvm<D>, directory: u64, fault: bool) -> Result<()> {
        if fault {
            self.write_master(nvm, directory)?;
        }
        for page in self.dirty.clone() {
            let at = self.cached[&page].at;
            let mut bytes = nvm.memory.load(at, self.usable()).to_vec();
            bytes.resize(self.page_bytes as usize, 0);
            let offset = page * self.page_bytes;
            let size = nvm.file_size(self.file);
            if size < offset {
                // Pages before it were made and given up in this batch.
                nvm.write_file(self.file, size, &vec![0; (offset - size) as usize])?;
            }
            nvm.write_file(self.file, offset, &bytes)?;
            nvm.written.table += self.page_bytes;
        }
        nvm.sync_file(self.file);
        if !fault {
            self.write_master(nvm, directory)?;
        }
        for page in std::mem::take(&mut self.replaced) {
            self.drop_page(nvm, page);
            self.free.insert(page);
        }
        for page in std::mem::take(&mut self.dirty) {
            self.clean.insert(self.cached[&page].used, page);
        }
        self.make_space(nvm);
        Ok(())
    }

    fn write_master<D: Device>(&mut self, nvm: &mut Nvm<D>, directory: u64) -> Result<()> {
        nvm.write_file(self.file, 0, &directory.to_le_bytes())?;
        nvm.sync_file(self.file);
        Ok(())
    }
}

impl<D: Device> Pages<D> for FilePages {
    fn load(&mut self, nvm: &mut Nvm<D>, page: u64) -> Result<u64> {
        if !self.cached.contains_key(&page) {
            self.make_space(nvm);
            let mut bytes = vec![0; self.usable() as usize];
            nvm.read_file(self.file, page * self.page_bytes, &mut bytes)?;
            let at = nvm.allocate(self.usable(), Area::Cache)?;
            nvm.memory.store(at, &bytes);
            self.clock += 1;
            self.cached.insert(page, Cached { at, used: self.clock });
        }
        self.touch(page);
        Ok(self.cached[&page].at)
    }

    fn create(&mut self, nvm: &mut Nvm<D>) -> Result<u64> {
        let page = self.free.pop_first().unwrap_or(self.pages);
        self.pages = self.pages.max(page + 1);
        self.drop_page(nvm, page);
        let at = nvm.allocate(self.usable(), Area::Cache)?;
        self.clock += 1;
        self.cached.insert(page, Cached { at, used: self.clock });
        self.dirty.insert(page);
        Ok(page)
    }

    fn is_dirty(&self, page: u64) -> bool {
        self.dirty.contains(&page)
    }

    fn give_up(&mut self, nvm: &mut Nvm<D>, page: u64) {
        if self.dirty.remove(&page) || self.reuses_early {
            self.drop_page(nvm, page);
            self.free.insert(page);
        } else {
            self.replaced.push(page);
        }
    }
}

/// What a key had before the running transaction.
struct Undo {
    table: usize,
    key: Key,
    before: Option<Vec<u8>>,
}

/// The engine.
pub struct Cow<D: Device> {
    nvm: Nvm<D>,
    schema: Schema,
    options: Options,
    pages: FilePages,
    trees: Vec<PageTree>,
    roots: Vec<u64>,
    /// The page of the directory that was committed.
    directory: u64,
    undo: Vec<Undo>,
    /// Whether the running transaction has looked at the master record.
    has_begun: bool,
    groups: Groups,
}

/// Where a column is in a cell.
fn column_at(table: &Table, column: usize) -> u64 {
    table.columns[..column].iter().map(|most| 4 + u64::from(*most)).sum()
}

fn cell_bytes(table: &Table) -> usize {
    column_at(table, table.columns.len()) as usize
}

fn encode_column(value: &[u8]) -> Vec<u8> {
    let mut bytes = (value.len() as u32).to_le_bytes().to_vec();
    bytes.extend_from_slice(value);
    bytes
}

fn encode_row(table: &Table, row: &[Vec<u8>]) -> Vec<u8> {
    let mut cell = vec![0; cell_bytes(table)];
    for (column, value) in row.iter().enumerate() {
        let bytes = encode_column(value);
        cell[column_at(table, column) as usize..][..bytes.len()].copy_from_slice(&bytes);
    }
    cell
}

fn decode_row(table: &Table, cell: &[u8]) -> Result<Row> {
    let columns = 0..table.columns.len();
    let value = |column| {
        let cell = &cell[column_at(table, column) as usize..];
        let len = u32::from_le_bytes(*cell.first_chunk()?) as usize;
        Some(cell.get(4..4 + len)?.to_vec())
    };
    let row: Option<Row> = columns.map(value).collect();
    row.ok_or_else(|| Error::Corrupt("a tuple is longer than its page".into()))
}

fn trees(schema: &Schema, options: &Options) -> Result<Vec<PageTree>> {
    let usable = options.page_bytes - PAGE_OVERHEAD;
    let tables = schema.tables.iter();
    tables.map(|table| PageTree::new(table.key_words(), cell_bytes(table), usable, false)).collect()
}

impl<D: Device> Cow<D> {
    /// A transaction looks at the master record first.
    fn begin(&mut self) -> Result<()> {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.nvm.read_file(self.pages.file, 0, &mut [0; 8])?;
        }
        Ok(())
    }

    fn cell(&mut self, table: usize, key: &Key) -> Result<Option<Vec<u8>>> {
        self.begin()?;
        self.trees[table].get(&mut self.nvm, &mut self.pages, self.roots[table], key)
    }

    fn put(&mut self, table: usize, key: &Key, cell: &[u8]) -> Result<()> {
        let root = &mut self.roots[table];
        self.trees[table].insert(&mut self.nvm, &mut self.pages, root, key, cell)
    }

    fn store(&mut self, table: usize, key: &Key, part: (u64, &[u8])) -> Result<()> {
        let root = &mut self.roots[table];
        self.trees[table].store(&mut self.nvm, &mut self.pages, root, key, part)
    }

    fn remove(&mut self, table: usize, key: &Key) -> Result<()> {
        let root = &mut self.roots[table];
        self.trees[table].remove(&mut self.nvm, &mut self.pages, root, key)
    }

    /// Writes the roots into a new page, and commits.
    fn commit_batch(&mut self) -> Result<()> {
        if self.pages.dirty.is_empty() {
            return Ok(());
        }
        let old = self.directory;
        self.directory = self.pages.create(&mut self.nvm)?;
        let at = self.pages.load(&mut self.nvm, self.directory)?;
        self.nvm.memory.store_words(at, &self.roots);
        if old != 0 {
            self.pages.give_up(&mut self.nvm, old);
        }
        let fault = self.options.has(Fault::MasterFirst);
        self.pages.commit(&mut self.nvm, self.directory, fault)
    }

    /// Finds the pages that no root leads to.
    fn collect(&mut self) -> Result<()> {
        let mut used = BTreeSet::from([0, self.directory]);
        for (tree, root) in self.trees.iter().zip(&self.roots) {
            used.extend(tree.pages(&mut self.nvm, &mut self.pages, *root)?);
        }
        self.pages.free = (0..self.pages.pages).filter(|page| !used.contains(page)).collect();
        Ok(())
    }
}

impl<D: Device> Engine<D> for Cow<D> {
    const NAME: &'static str = "cow";

    fn create(device: Arc<D>, schema: &Schema, options: &Options) -> Result<Self> {
        let mut nvm = Nvm::create(device, magic(Self::NAME, schema), options.modelled)?;
        let file = nvm.create_file(FILE)?;
        nvm.write_file(file, 0, &vec![0; options.page_bytes as usize])?;
        let mut pages = FilePages::new(file, 1, options);
        let trees = trees(schema, options)?;
        let mut roots = Vec::new();
        for tree in &trees {
            roots.push(tree.create(&mut nvm, &mut pages)?);
        }
        let groups = Groups::new(options);
        let (schema, options, undo) = (schema.clone(), options.clone(), Vec::new());
        let (directory, has_begun) = (0, false);
        let mut engine =
            Self { nvm, schema, options, pages, trees, roots, directory, undo, has_begun, groups };
        engine.commit_batch()?;
        Ok(engine)
    }

    fn open(device: Arc<D>, schema: &Schema, options: &Options) -> Result<(Self, Recovery)> {
        let mut nvm = Nvm::open(device, magic(Self::NAME, schema), options.modelled)?;
        let file = nvm.list_files().into_iter().find(|(name, _)| *name == FILE);
        let (_, file) = file.ok_or_else(|| Error::Corrupt("there is no file of pages".into()))?;
        let mut master = [0; 8];
        nvm.read_file(file, 0, &mut master)?;
        let directory = u64::from_le_bytes(master);
        let pages = nvm.file_size(file).div_ceil(options.page_bytes);
        let mut pages = FilePages::new(file, pages, options);
        let recovery = end_recovery(&mut nvm, 0, 0);
        let at = pages.load(&mut nvm, directory)?;
        let roots = nvm.memory.load_words(at, schema.tables.len()).collect();
        let trees = trees(schema, options)?;
        let groups = Groups::new(options);
        let (schema, options, undo) = (schema.clone(), options.clone(), Vec::new());
        let has_begun = false;
        let mut engine =
            Self { nvm, schema, options, pages, trees, roots, directory, undo, has_begun, groups };
        engine.collect()?;
        Ok((engine, recovery))
    }

    fn insert(&mut self, table: usize, key: &Key, row: &[Vec<u8>]) -> Result<bool> {
        check_row(&self.schema, table, row)?;
        if self.cell(table, key)?.is_some() {
            return Ok(false);
        }
        let cell = encode_row(&self.schema.tables[table], row);
        self.undo.push(Undo { table, key: *key, before: None });
        self.put(table, key, &cell)?;
        Ok(true)
    }

    fn update(&mut self, table: usize, key: &Key, changes: Changes<'_>) -> Result<bool> {
        for (column, value) in changes {
            check_value(&self.schema, table, *column, value)?;
        }
        let Some(before) = self.cell(table, key)? else { return Ok(false) };
        self.undo.push(Undo { table, key: *key, before: Some(before) });
        for (column, value) in changes {
            let at = column_at(&self.schema.tables[table], *column);
            self.store(table, key, (at, &encode_column(value)))?;
        }
        Ok(true)
    }

    fn delete(&mut self, table: usize, key: &Key) -> Result<bool> {
        let Some(before) = self.cell(table, key)? else { return Ok(false) };
        self.undo.push(Undo { table, key: *key, before: Some(before) });
        self.remove(table, key)?;
        Ok(true)
    }

    fn get(&mut self, table: usize, key: &Key) -> Result<Option<Row>> {
        match self.cell(table, key)? {
            Some(cell) => Ok(Some(decode_row(&self.schema.tables[table], &cell)?)),
            None => Ok(None),
        }
    }

    fn scan(&mut self, table: usize, from: &Key, to: Option<&Key>, each: Visit<'_>) -> Result<()> {
        self.begin()?;
        let mut next = Some(*from);
        while let Some(from) = next.filter(|from| to.is_none_or(|to| from < to)) {
            let root = self.roots[table];
            let (entries, following) =
                self.trees[table].leaf_from(&mut self.nvm, &mut self.pages, root, &from)?;
            for (key, cell) in entries {
                let row = decode_row(&self.schema.tables[table], &cell)?;
                let is_over = to.is_some_and(|to| key >= *to);
                if is_over || each(&key, row) == ControlFlow::Break(()) {
                    return Ok(());
                }
            }
            next = following.filter(|next| *next > from);
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<u64> {
        self.undo.clear();
        self.has_begun = false;
        let number = self.groups.commit();
        if self.groups.is_full() {
            self.flush()?;
        }
        Ok(number)
    }

    fn abort(&mut self) -> Result<()> {
        self.has_begun = false;
        for Undo { table, key, before } in std::mem::take(&mut self.undo).into_iter().rev() {
            let exists = self.cell(table, &key)?.is_some();
            match before {
                None => self.remove(table, &key)?,
                Some(cell) if exists => self.store(table, &key, (0, &cell))?,
                Some(cell) => self.put(table, &key, &cell)?,
            }
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
        Ok(self.nvm.persisted_slots().abs_diff(self.nvm.extents_count()))
    }
}
