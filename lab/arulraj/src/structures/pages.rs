//! A copy-on-write B+tree of pages (the paper's 3.2 and 4.2): a page that was committed is never
//! changed. The first change of a page copies it and the path to the root, later ones of the same
//! batch change the copy; whatever is beside the path is shared.
//!
//! A page has a count, and cells of one size in the order of their keys: a key and a value, in
//! inner pages the least key of a child and the child. Full pages are split on the way down; pages
//! are never merged. Where pages are, and what makes them durable, is the matter of [`Pages`].

use std::collections::BTreeSet;

use pmem::Device;

use crate::ground::Nvm;
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

/// The shape of a tree; its root is the caller's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageTree {
    key_words: u64,
    value_bytes: u64,
    /// Bytes of a page that can be used.
    usable: u64,
    /// Whether the pages are where the table stays, and not copies of what is in a file.
    is_table: bool,
}

/// A key and its value.
type Cell = (Key, Vec<u8>);

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

impl PageTree {
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

    fn wrote<D: Device>(&self, nvm: &mut Nvm<D>, bytes: u64) {
        match self.is_table {
            true => nvm.written.table += bytes,
            false => nvm.written.memory += bytes,
        }
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

    fn load<D: Device, P: Pages<D>>(
        &self,
        nvm: &mut Nvm<D>,
        pages: &mut P,
        page: u64,
    ) -> Result<Page> {
        let at = pages.load(nvm, page)?;
        let word = nvm.memory.load_u64(at);
        let is_leaf = word & LEAF != 0;
        let (count, cell_bytes) = (word & !LEAF, self.cell_bytes(is_leaf));
        if count > self.capacity(is_leaf) {
            return Err(Error::Corrupt(format!("page {page} has {count} cells")));
        }
        Ok(Page { at, count, is_leaf, cell_bytes })
    }

    fn key<D: Device>(&self, nvm: &mut Nvm<D>, page: &Page, index: u64) -> Key {
        let words = nvm.memory.load_words(page.cell(index), self.key_words as usize);
        let mut key = Key::MIN;
        key.0.iter_mut().zip(words).for_each(|(to, word)| *to = word);
        key
    }

    fn value_at(&self, page: &Page, index: u64) -> u64 {
        page.cell(index) + self.key_words * 8
    }

    /// The first cell whose key is not less.
    fn lower_bound<D: Device>(&self, nvm: &mut Nvm<D>, page: &Page, key: &Key) -> u64 {
        let (mut low, mut high) = (0, page.count);
        while low < high {
            let middle = (low + high) / 2;
            match self.key(nvm, page, middle) < *key {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }

    /// The cell of an inner page that leads to a key.
    fn child<D: Device>(&self, nvm: &mut Nvm<D>, page: &Page, key: &Key) -> u64 {
        let at = self.lower_bound(nvm, page, key);
        match at < page.count && self.key(nvm, page, at) == *key {
            true => at,
            false => at.saturating_sub(1),
        }
    }

    /// The leaf of a key, and the least key of the next one.
    fn leaf<D: Device, P: Pages<D>>(
        &self,
        nvm: &mut Nvm<D>,
        pages: &mut P,
        root: u64,
        key: &Key,
    ) -> Result<(Page, Option<Key>)> {
        let (mut page, mut next) = (self.load(nvm, pages, root)?, None);
        let mut depth = 0;
        while !page.is_leaf {
            depth += 1;
            if depth > DEPTH_MAX {
                return Err(Error::Corrupt("a tree of pages leads into itself".into()));
            }
            let index = self.child(nvm, &page, key);
            if index + 1 < page.count {
                next = Some(self.key(nvm, &page, index + 1));
            }
            let child = nvm.memory.load_u64(self.value_at(&page, index));
            page = self.load(nvm, pages, child)?;
        }
        Ok((page, next))
    }

    /// The value of a key.
    pub(crate) fn get<D: Device, P: Pages<D>>(
        &self,
        nvm: &mut Nvm<D>,
        pages: &mut P,
        root: u64,
        key: &Key,
    ) -> Result<Option<Vec<u8>>> {
        let (leaf, _) = self.leaf(nvm, pages, root, key)?;
        let index = self.lower_bound(nvm, &leaf, key);
        if index == leaf.count || self.key(nvm, &leaf, index) != *key {
            return Ok(None);
        }
        let at = self.value_at(&leaf, index);
        Ok(Some(nvm.memory.load(at, self.value_bytes).to_vec()))
    }

    /// The entries of a leaf from a key on, and the least key of the next one.
    pub(crate) fn leaf_from<D: Device, P: Pages<D>>(
        &self,
        nvm: &mut Nvm<D>,
        pages: &mut P,
        root: u64,
        from: &Key,
    ) -> Result<(Vec<Cell>, Option<Key>)> {
        let (leaf, next) = self.leaf(nvm, pages, root, from)?;
        let first = self.lower_bound(nvm, &leaf, from);
        let entries = (first..leaf.count).map(|index| {
            let key = self.key(nvm, &leaf, index);
            let at = self.value_at(&leaf, index);
            (key, nvm.memory.load(at, self.value_bytes).to_vec())
        });
        Ok((entries.collect(), next))
    }

    /// A page that may be changed instead of this one.
    fn writable<D: Device, P: Pages<D>>(
        &self,
        nvm: &mut Nvm<D>,
        pages: &mut P,
        page: u64,
    ) -> Result<u64> {
        if pages.is_dirty(page) {
            return Ok(page);
        }
        let at = pages.load(nvm, page)?;
        let bytes = nvm.memory.load(at, self.usable).to_vec();
        let copy = pages.create(nvm)?;
        let at = pages.load(nvm, copy)?;
        nvm.memory.store(at, &bytes);
        self.wrote(nvm, self.usable);
        pages.give_up(nvm, page);
        Ok(copy)
    }

    /// The leaf of a key, to be changed: the path to it is copied as far as it was not, and with
    /// `with_room` full pages on it are split.
    fn writable_leaf<D: Device, P: Pages<D>>(
        &self,
        nvm: &mut Nvm<D>,
        pages: &mut P,
        root: &mut u64,
        key: &Key,
        with_room: bool,
    ) -> Result<Page> {
        *root = self.writable(nvm, pages, *root)?;
        let mut page = self.load(nvm, pages, *root)?;
        if with_room && page.count == self.capacity(page.is_leaf) {
            let old = *root;
            *root = pages.create(nvm)?;
            let at = pages.load(nvm, *root)?;
            nvm.memory.store_u64(at, 1);
            nvm.memory.store_words(at + HEADER_BYTES, &Key::MIN.0[..self.key_words as usize]);
            nvm.memory.store_u64(at + HEADER_BYTES + self.key_words * 8, old);
            self.split(nvm, pages, *root, 0)?;
            page = self.load(nvm, pages, *root)?;
        }
        let mut id = *root;
        while !page.is_leaf {
            let index = self.child(nvm, &page, key);
            let at = self.value_at(&page, index);
            let old = nvm.memory.load_u64(at);
            let child = self.writable(nvm, pages, old)?;
            page = self.load(nvm, pages, id)?;
            if child != old {
                let at = self.value_at(&page, index);
                nvm.memory.store_u64(at, child);
            }
            let loaded = self.load(nvm, pages, child)?;
            if with_room && loaded.count == self.capacity(loaded.is_leaf) {
                self.split(nvm, pages, id, index)?;
                page = self.load(nvm, pages, id)?;
                continue;
            }
            (page, id) = (loaded, child);
        }
        Ok(page)
    }

    /// Splits the child in a cell of a page that has room; both are dirty.
    fn split<D: Device, P: Pages<D>>(
        &self,
        nvm: &mut Nvm<D>,
        pages: &mut P,
        parent: u64,
        index: u64,
    ) -> Result<()> {
        let page = self.load(nvm, pages, parent)?;
        let child = nvm.memory.load_u64(self.value_at(&page, index));
        let child = self.load(nvm, pages, child)?;
        let (stay, kind) = (child.count / 2, if child.is_leaf { LEAF } else { 0 });
        let separator = self.key(nvm, &child, stay);
        let moved = (child.count - stay) * child.cell_bytes;
        let bytes = nvm.memory.load(child.cell(stay), moved).to_vec();
        nvm.memory.store_u64(child.at, kind | stay);
        let right = pages.create(nvm)?;
        let at = pages.load(nvm, right)?;
        nvm.memory.store_u64(at, kind | (child.count - stay));
        nvm.memory.store(at + HEADER_BYTES, &bytes);
        let page = self.load(nvm, pages, parent)?;
        self.add(nvm, &page, index + 1, &separator, &right.to_le_bytes());
        Ok(())
    }

    /// Puts a cell before the one with an index; there is room.
    fn add<D: Device>(&self, nvm: &mut Nvm<D>, page: &Page, index: u64, key: &Key, value: &[u8]) {
        let behind = (page.count - index) * page.cell_bytes;
        let bytes = nvm.memory.load(page.cell(index), behind).to_vec();
        nvm.memory.store(page.cell(index + 1), &bytes);
        nvm.memory.store_words(page.cell(index), &key.0[..self.key_words as usize]);
        nvm.memory.store(self.value_at(page, index), value);
        let kind = if page.is_leaf { LEAF } else { 0 };
        nvm.memory.store_u64(page.at, kind | (page.count + 1));
    }

    /// Inserts a key that is not there.
    pub(crate) fn insert<D: Device, P: Pages<D>>(
        &self,
        nvm: &mut Nvm<D>,
        pages: &mut P,
        root: &mut u64,
        key: &Key,
        value: &[u8],
    ) -> Result<()> {
        debug_assert!(value.len() as u64 <= self.value_bytes);
        let leaf = self.writable_leaf(nvm, pages, root, key, true)?;
        let index = self.lower_bound(nvm, &leaf, key);
        self.add(nvm, &leaf, index, key, value);
        self.wrote(nvm, value.len() as u64);
        Ok(())
    }

    /// Stores bytes into the value of a key that is there.
    pub(crate) fn store<D: Device, P: Pages<D>>(
        &self,
        nvm: &mut Nvm<D>,
        pages: &mut P,
        root: &mut u64,
        key: &Key,
        (offset, bytes): (u64, &[u8]),
    ) -> Result<()> {
        let leaf = self.writable_leaf(nvm, pages, root, key, false)?;
        let index = self.lower_bound(nvm, &leaf, key);
        nvm.memory.store(self.value_at(&leaf, index) + offset, bytes);
        self.wrote(nvm, bytes.len() as u64);
        Ok(())
    }

    /// Removes a key that is there.
    pub(crate) fn remove<D: Device, P: Pages<D>>(
        &self,
        nvm: &mut Nvm<D>,
        pages: &mut P,
        root: &mut u64,
        key: &Key,
    ) -> Result<()> {
        let leaf = self.writable_leaf(nvm, pages, root, key, false)?;
        let index = self.lower_bound(nvm, &leaf, key);
        let behind = (leaf.count - index - 1) * leaf.cell_bytes;
        let bytes = nvm.memory.load(leaf.cell(index + 1), behind).to_vec();
        nvm.memory.store(leaf.cell(index), &bytes);
        nvm.memory.store_u64(leaf.at, LEAF | (leaf.count - 1));
        Ok(())
    }

    /// All pages below a root.
    pub(crate) fn pages<D: Device, P: Pages<D>>(
        &self,
        nvm: &mut Nvm<D>,
        pages: &mut P,
        root: u64,
    ) -> Result<Vec<u64>> {
        let (mut all, mut at) = (vec![root], 0);
        let mut seen = BTreeSet::new();
        while let Some(id) = all.get(at).copied() {
            if !seen.insert(id) {
                return Err(Error::Corrupt(format!("two pages lead to page {id}")));
            }
            let page = self.load(nvm, pages, id)?;
            if !page.is_leaf {
                all.extend((0..page.count).map(|i| nvm.memory.load_u64(self.value_at(&page, i))));
            }
            at += 1;
        }
        Ok(all)
    }
}
