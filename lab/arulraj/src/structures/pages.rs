//! A copy-on-write B+tree of pages (the paper's 3.2 and 4.2): a page that was committed is never
//! changed. The first change of a page copies it and the path to the root, later ones of the same
//! batch change the copy; whatever is beside the path is shared.
//!
//! A page has a count, and cells of one size in the order of their keys: a key and a value, in
//! inner pages the least key of a child and the child. Full pages are split on the way down; pages
//! are never merged. Where pages are, and what makes them durable, is the matter of [`Pages`].

use std::collections::BTreeSet;

use pmem::Device;

use super::btree::Leaf;
use crate::ground::{Nvm, Part};
use crate::schema::Key;
use crate::{Error, Result};

const LEAF: u64 = 1 << 63;
const HEADER_BYTES: u64 = 8;
/// More levels than any tree has.
const DEPTH_MAX: u64 = 64;

/// Where pages are.
pub(crate) trait Pages<D: Device> {
    /// Where the bytes of a page are in memory, for as long as no other page is used.
    fn load(&mut self, nvm: &mut Nvm<D>, page: u64) -> Result<u64>;
    /// A new page of the running batch.
    fn create(&mut self, nvm: &mut Nvm<D>) -> Result<u64>;
    /// Whether the running batch made the page.
    fn is_dirty(&self, page: u64) -> bool;
    /// The running batch has no use for the page any more.
    fn give_up(&mut self, nvm: &mut Nvm<D>, page: u64);
}

/// The shape of the trees of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageShape {
    key_words: u64,
    value_bytes: u64,
    /// Bytes of a page that can be used.
    usable: u64,
    /// Whether the pages are where the table stays, and not copies of what is in a file.
    is_table: bool,
}

/// A page as it was found.
#[derive(Clone, Copy)]
struct Page {
    /// Where its bytes are.
    at: u64,
    count: u64,
    is_leaf: bool,
    cell_bytes: u64,
}

impl Page {
    fn cell(&self, index: u64) -> u64 {
        self.at + HEADER_BYTES + index * self.cell_bytes
    }
}

impl PageShape {
    /// A tree of pages with so many usable bytes.
    ///
    /// # Errors
    /// [`Error::Limit`] if two cells do not fit into a page.
    pub(crate) fn new(
        key_words: usize,
        value_bytes: usize,
        usable: u64,
        is_table: bool,
    ) -> Result<Self> {
        let (key_words, value_bytes) = (key_words as u64, value_bytes.next_multiple_of(8) as u64);
        let tree = Self { key_words, value_bytes, usable, is_table };
        if tree.capacity(true) < 2 || tree.capacity(false) < 3 {
            return Err(Error::Limit(format!(
                "two tuples of {value_bytes} bytes do not fit into a page of {usable}"
            )));
        }
        Ok(tree)
    }

    fn cell_bytes(&self, is_leaf: bool) -> u64 {
        self.key_words * 8 + if is_leaf { self.value_bytes } else { 8 }
    }

    fn capacity(&self, is_leaf: bool) -> u64 {
        (self.usable - HEADER_BYTES) / self.cell_bytes(is_leaf)
    }

    fn value_at(&self, page: &Page, index: u64) -> u64 {
        page.cell(index) + self.key_words * 8
    }

    /// An empty tree: its root.
    pub(crate) fn create<D: Device, P: Pages<D>>(
        &self,
        nvm: &mut Nvm<D>,
        pages: &mut P,
    ) -> Result<u64> {
        let root = pages.create(nvm)?;
        let at = pages.load(nvm, root)?;
        nvm.memory.store_u64(at, LEAF);
        Ok(root)
    }
}

/// A tree at work: its shape, its root, and what they need.
pub(crate) struct PageTree<'a, D: Device, P: Pages<D>> {
    shape: PageShape,
    root: &'a mut u64,
    nvm: &'a mut Nvm<D>,
    pages: &'a mut P,
    /// What accesses were of before.
    outer: Part,
}

impl<D: Device, P: Pages<D>> Drop for PageTree<'_, D, P> {
    fn drop(&mut self) {
        self.nvm.memory.enter(self.outer);
    }
}

impl<'a, D: Device, P: Pages<D>> PageTree<'a, D, P> {
    /// A tree, whose accesses are of pages for as long as it is here.
    pub(crate) fn new(
        shape: PageShape,
        root: &'a mut u64,
        nvm: &'a mut Nvm<D>,
        pages: &'a mut P,
    ) -> Self {
        let outer = nvm.memory.enter(Part::Page);
        Self { shape, root, nvm, pages, outer }
    }
}

impl<D: Device, P: Pages<D>> PageTree<'_, D, P> {
    fn wrote(&mut self, bytes: u64) {
        match self.shape.is_table {
            true => self.nvm.written.table += bytes,
            false => self.nvm.written.memory += bytes,
        }
    }

    fn load(&mut self, page: u64) -> Result<Page> {
        let at = self.pages.load(self.nvm, page)?;
        let word = self.nvm.memory.load_u64(at);
        let is_leaf = word & LEAF != 0;
        let (count, cell_bytes) = (word & !LEAF, self.shape.cell_bytes(is_leaf));
        if count > self.shape.capacity(is_leaf) {
            return Err(Error::Corrupt(format!("page {page} has {count} cells")));
        }
        Ok(Page { at, count, is_leaf, cell_bytes })
    }

    fn key(&mut self, page: &Page, index: u64) -> Key {
        let words = self.nvm.memory.load_words(page.cell(index), self.shape.key_words as usize);
        let mut key = Key::MIN;
        key.0.iter_mut().zip(words).for_each(|(to, word)| *to = word);
        key
    }

    /// The first cell whose key is not less.
    fn lower_bound(&mut self, page: &Page, key: &Key) -> u64 {
        let (mut low, mut high) = (0, page.count);
        while low < high {
            let middle = (low + high) / 2;
            match self.key(page, middle) < *key {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }

    /// The cell of an inner page that leads to a key.
    fn child(&mut self, page: &Page, key: &Key) -> u64 {
        let at = self.lower_bound(page, key);
        match at < page.count && self.key(page, at) == *key {
            true => at,
            false => at.saturating_sub(1),
        }
    }

    /// The leaf of a key, and the least key of the next one.
    fn leaf(&mut self, key: &Key) -> Result<(Page, Option<Key>)> {
        let (mut page, mut next) = (self.load(*self.root)?, None);
        let mut depth = 0;
        while !page.is_leaf {
            depth += 1;
            if depth > DEPTH_MAX {
                return Err(Error::Corrupt("a tree of pages leads into itself".into()));
            }
            let index = self.child(&page, key);
            if index + 1 < page.count {
                next = Some(self.key(&page, index + 1));
            }
            let child = self.nvm.memory.load_u64(self.shape.value_at(&page, index));
            page = self.load(child)?;
        }
        Ok((page, next))
    }

    /// The value of a key.
    pub(crate) fn get(&mut self, key: &Key) -> Result<Option<Vec<u8>>> {
        let (leaf, _) = self.leaf(key)?;
        let index = self.lower_bound(&leaf, key);
        if index == leaf.count || self.key(&leaf, index) != *key {
            return Ok(None);
        }
        let at = self.shape.value_at(&leaf, index);
        Ok(Some(self.nvm.memory.load(at, self.shape.value_bytes).to_vec()))
    }

    /// The entries of a leaf from a key on.
    pub(crate) fn leaf_from(&mut self, from: &Key) -> Result<Leaf<Vec<u8>>> {
        let (leaf, next) = self.leaf(from)?;
        let first = self.lower_bound(&leaf, from);
        let cells = (first..leaf.count).map(|index| {
            let key = self.key(&leaf, index);
            let at = self.shape.value_at(&leaf, index);
            (key, self.nvm.memory.load(at, self.shape.value_bytes).to_vec())
        });
        Ok(Leaf { entries: cells.collect(), next })
    }

    /// A page that may be changed instead of this one.
    fn writable(&mut self, page: u64) -> Result<u64> {
        if self.pages.is_dirty(page) {
            return Ok(page);
        }
        let at = self.pages.load(self.nvm, page)?;
        let bytes = self.nvm.memory.load(at, self.shape.usable).to_vec();
        let copy = self.pages.create(self.nvm)?;
        let at = self.pages.load(self.nvm, copy)?;
        self.nvm.memory.store(at, &bytes);
        self.wrote(self.shape.usable);
        self.pages.give_up(self.nvm, page);
        Ok(copy)
    }

    /// The leaf of a key, to be changed: the path to it is copied as far as it was not, and with
    /// `with_room` full pages on it are split.
    fn writable_leaf(&mut self, key: &Key, with_room: bool) -> Result<Page> {
        *self.root = self.writable(*self.root)?;
        let mut page = self.load(*self.root)?;
        if with_room && page.count == self.shape.capacity(page.is_leaf) {
            let old = *self.root;
            *self.root = self.pages.create(self.nvm)?;
            let at = self.pages.load(self.nvm, *self.root)?;
            self.nvm.memory.store_u64(at, 1);
            let least = &Key::MIN.0[..self.shape.key_words as usize];
            self.nvm.memory.store_words(at + HEADER_BYTES, least);
            self.nvm.memory.store_u64(at + HEADER_BYTES + self.shape.key_words * 8, old);
            self.split(*self.root, 0)?;
            page = self.load(*self.root)?;
        }
        let mut id = *self.root;
        while !page.is_leaf {
            let index = self.child(&page, key);
            let at = self.shape.value_at(&page, index);
            let old = self.nvm.memory.load_u64(at);
            let child = self.writable(old)?;
            page = self.load(id)?;
            if child != old {
                let at = self.shape.value_at(&page, index);
                self.nvm.memory.store_u64(at, child);
            }
            let loaded = self.load(child)?;
            if with_room && loaded.count == self.shape.capacity(loaded.is_leaf) {
                self.split(id, index)?;
                page = self.load(id)?;
                continue;
            }
            (page, id) = (loaded, child);
        }
        Ok(page)
    }

    /// Splits the child in a cell of a page that has room; both are dirty.
    fn split(&mut self, parent: u64, index: u64) -> Result<()> {
        let page = self.load(parent)?;
        let child = self.nvm.memory.load_u64(self.shape.value_at(&page, index));
        let child = self.load(child)?;
        let (stay, kind) = (child.count / 2, if child.is_leaf { LEAF } else { 0 });
        let separator = self.key(&child, stay);
        let moved = (child.count - stay) * child.cell_bytes;
        let bytes = self.nvm.memory.load(child.cell(stay), moved).to_vec();
        self.nvm.memory.store_u64(child.at, kind | stay);
        let right = self.pages.create(self.nvm)?;
        let at = self.pages.load(self.nvm, right)?;
        self.nvm.memory.store_u64(at, kind | (child.count - stay));
        self.nvm.memory.store(at + HEADER_BYTES, &bytes);
        let page = self.load(parent)?;
        self.add(&page, index + 1, &separator, &right.to_le_bytes());
        Ok(())
    }

    /// Puts a cell before the one with an index; there is room.
    fn add(&mut self, page: &Page, index: u64, key: &Key, value: &[u8]) {
        let behind = (page.count - index) * page.cell_bytes;
        let bytes = self.nvm.memory.load(page.cell(index), behind).to_vec();
        self.nvm.memory.store(page.cell(index + 1), &bytes);
        self.nvm.memory.store_words(page.cell(index), &key.0[..self.shape.key_words as usize]);
        self.nvm.memory.store(self.shape.value_at(page, index), value);
        let kind = if page.is_leaf { LEAF } else { 0 };
        self.nvm.memory.store_u64(page.at, kind | (page.count + 1));
    }

    /// Inserts a key that is not there.
    pub(crate) fn insert(&mut self, key: &Key, value: &[u8]) -> Result<()> {
        debug_assert!(value.len() as u64 <= self.shape.value_bytes);
        let leaf = self.writable_leaf(key, true)?;
        let index = self.lower_bound(&leaf, key);
        self.add(&leaf, index, key, value);
        self.wrote(value.len() as u64);
        Ok(())
    }

    /// Stores bytes at an offset of the value of a key that is there.
    pub(crate) fn store(&mut self, key: &Key, offset: u64, bytes: &[u8]) -> Result<()> {
        let leaf = self.writable_leaf(key, false)?;
        let index = self.lower_bound(&leaf, key);
        self.nvm.memory.store(self.shape.value_at(&leaf, index) + offset, bytes);
        self.wrote(bytes.len() as u64);
        Ok(())
    }

    /// Removes a key that is there.
    pub(crate) fn remove(&mut self, key: &Key) -> Result<()> {
        let leaf = self.writable_leaf(key, false)?;
        let index = self.lower_bound(&leaf, key);
        let behind = (leaf.count - index - 1) * leaf.cell_bytes;
        let bytes = self.nvm.memory.load(leaf.cell(index + 1), behind).to_vec();
        self.nvm.memory.store(leaf.cell(index), &bytes);
        self.nvm.memory.store_u64(leaf.at, LEAF | (leaf.count - 1));
        Ok(())
    }

    /// All pages of the tree.
    pub(crate) fn pages(&mut self) -> Result<Vec<u64>> {
        let (mut all, mut at) = (vec![*self.root], 0);
        let mut seen = BTreeSet::new();
        while let Some(id) = all.get(at).copied() {
            if !seen.insert(id) {
                return Err(Error::Corrupt(format!("two pages lead to page {id}")));
            }
            let page = self.load(id)?;
            if !page.is_leaf {
                let children = (0..page.count).map(|index| self.shape.value_at(&page, index));
                all.extend(children.map(|at| self.nvm.memory.load_u64(at)));
            }
            at += 1;
        }
        Ok(all)
    }
}
