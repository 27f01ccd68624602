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
use std::sync::Arc;

use pmem::Device;

use super::base::Base;
use super::engine::{Before, Engine, Recovery};
use super::names::FileKind;
use crate::ground::{Area, FileId, Nvm, Part, Task};
use crate::options::{Fault, Options};
use crate::schema::{Changes, Key, Row, Schema, Table};
use crate::structures::{Leaf, PageShape, PageTree, Pages};
use crate::{Error, Result};

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

/// The engine.
pub struct Cow<D: Device> {
    base: Base<D>,
    pages: FilePages,
    shapes: Vec<PageShape>,
    roots: Vec<u64>,
    /// The page of the directory that was committed.
    directory: u64,
    undo: Vec<Before<Vec<u8>>>,
    /// Whether the running transaction has looked at the master record.
    has_begun: bool,
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

impl<D: Device> Cow<D> {
    fn new(base: Base<D>, pages: FilePages, directory: u64) -> Result<Self> {
        let usable = pages.usable();
        let tables = base.schema.tables.iter();
        let shapes = tables
            .map(|table| PageShape::new(table.key_words(), cell_bytes(table), usable, false))
            .collect::<Result<_>>()?;
        let (roots, undo) = (Vec::new(), Vec::new());
        Ok(Self { base, pages, shapes, roots, directory, undo, has_begun: false })
    }

    /// A transaction looks at the master record first.
    fn begin(&mut self) -> Result<()> {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.base.nvm.read_file(self.pages.file, 0, &mut [0; 8])?;
        }
        Ok(())
    }

    fn tree(&mut self, table: usize) -> PageTree<'_, D, FilePages> {
        let (nvm, pages) = (&mut self.base.nvm, &mut self.pages);
        PageTree::new(self.shapes[table], &mut self.roots[table], nvm, pages)
    }

    /// Writes the roots into a new page, and commits.
    fn commit_batch(&mut self) -> Result<()> {
        if self.pages.dirty.is_empty() {
            return Ok(());
        }
        let nvm = &mut self.base.nvm;
        let directory = self.pages.create(nvm)?;
        let old = std::mem::replace(&mut self.directory, directory);
        let at = self.pages.load(nvm, directory)?;
        nvm.within(Part::Page, |nvm| nvm.memory.store_words(at, &self.roots));
        if old != 0 {
            self.pages.give_up(nvm, old);
        }
        self.pages.commit(nvm, directory, self.base.options.has(Fault::MasterFirst))
    }

    /// Finds the pages that no root leads to.
    fn collect(&mut self) -> Result<()> {
        let mut used = BTreeSet::from([0, self.directory]);
        for table in 0..self.roots.len() {
            used.extend(self.tree(table).pages()?);
        }
        self.pages.free = (0..self.pages.pages).filter(|page| !used.contains(page)).collect();
        Ok(())
    }
}

impl<D: Device> Engine<D> for Cow<D> {
    const NAME: &'static str = "cow";
    const COMMITS_GROUPS: bool = true;
    type Found = Vec<u8>;

    fn create(device: Arc<D>, schema: &Schema, options: &Options) -> Result<Self> {
        let mut base = Base::create(Self::NAME, device, schema, options)?;
        let file = base.nvm.create_file(FileKind::Pages.name(0))?;
        base.nvm.write_file(file, 0, &vec![0; options.page_bytes as usize])?;
        let mut engine = Self::new(base, FilePages::new(file, 1, options), 0)?;
        for shape in &engine.shapes {
            engine.roots.push(shape.create(&mut engine.base.nvm, &mut engine.pages)?);
        }
        engine.commit_batch()?;
        Ok(engine)
    }

    fn open(device: Arc<D>, schema: &Schema, options: &Options) -> Result<(Self, Recovery)> {
        let mut base = Base::open(Self::NAME, device, schema, options)?;
        let files = base.nvm.list_files();
        let file = files.into_iter().find(|(name, _)| FileKind::Pages.has(*name));
        let (_, file) = file.ok_or_else(|| Error::Corrupt("there is no file of pages".into()))?;
        let mut master = [0; 8];
        base.nvm.read_file(file, 0, &mut master)?;
        let directory = u64::from_le_bytes(master);
        let pages = base.nvm.file_size(file).div_ceil(options.page_bytes);
        let recovery = base.end_recovery(0, 0);
        let mut engine = Self::new(base, FilePages::new(file, pages, options), directory)?;
        let at = engine.pages.load(&mut engine.base.nvm, directory)?;
        engine.roots = engine.base.nvm.memory.load_words(at, schema.tables.len()).collect();
        engine.collect()?;
        Ok((engine, recovery))
    }

    fn base(&self) -> &Base<D> {
        &self.base
    }

    fn base_mut(&mut self) -> &mut Base<D> {
        &mut self.base
    }

    fn find(&mut self, table: usize, key: &Key) -> Result<Option<Vec<u8>>> {
        self.begin()?;
        self.tree(table).get(key)
    }

    fn leaf(&mut self, table: usize, from: &Key, _: Option<&Key>) -> Result<Leaf<Vec<u8>>> {
        self.begin()?;
        self.tree(table).leaf_from(from)
    }

    fn read(&mut self, table: usize, _: &Key, cell: Vec<u8>) -> Result<Option<Row>> {
        decode_row(self.base.table(table), &cell).map(Some)
    }

    fn put(&mut self, table: usize, key: &Key, row: &[Vec<u8>]) -> Result<()> {
        let cell = encode_row(self.base.table(table), row);
        self.undo.push(Before { table, key: *key, before: None });
        self.tree(table).insert(key, &cell)
    }

    fn change(
        &mut self,
        table: usize,
        key: &Key,
        cell: Vec<u8>,
        changes: Changes<'_>,
    ) -> Result<()> {
        self.undo.push(Before { table, key: *key, before: Some(cell) });
        for (column, value) in changes {
            let at = column_at(self.base.table(table), *column);
            self.tree(table).store(key, at, &encode_column(value))?;
        }
        Ok(())
    }

    fn remove(&mut self, table: usize, key: &Key, cell: Vec<u8>) -> Result<()> {
        self.undo.push(Before { table, key: *key, before: Some(cell) });
        self.tree(table).remove(key)
    }

    fn keep(&mut self) -> Result<()> {
        self.undo.clear();
        self.has_begun = false;
        Ok(())
    }

    fn abort(&mut self) -> Result<()> {
        self.has_begun = false;
        for Before { table, key, before } in std::mem::take(&mut self.undo).into_iter().rev() {
            let exists = self.find(table, &key)?.is_some();
            let mut tree = self.tree(table);
            match before {
                None => tree.remove(&key)?,
                Some(cell) if exists => tree.store(&key, 0, &cell)?,
                Some(cell) => tree.insert(&key, &cell)?,
            }
        }
        Ok(())
    }

    fn end_group(&mut self) -> Result<()> {
        let before = self.base.nvm.begin(Some(Task::Recovery));
        self.commit_batch()?;
        self.base.nvm.begin(before);
        Ok(())
    }
}
