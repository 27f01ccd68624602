//! A B+tree of small nodes, volatile or not (the paper's 4.1).
//!
//! A node has a word of bits, one for each place of an entry, and entries in no order: a key and a
//! word. An inner node's entries are the least key of a child and the child. A change of a node is
//! the store of one word: an entry is written to a free place and made durable first, and the bit
//! that makes it count is stored then; a value is stored over the old one.
//!
//! A split: (1) the tree's header remembers the new node and its parent; (2) the new node with the
//! upper half is durable and persisted; (3) its entry in the parent makes it count; (4) the old
//! node's bits of the upper half are cleared; (5) the header forgets. After a crash between (3) and
//! (4) recovery clears those bits; before (3) it frees the new node. Full nodes are split on the
//! way down, so that a parent has room. Nodes are never merged.
//!
//! A volatile tree is the same without flushes; its nodes are never persisted.

use pmem::Device;

use crate::Result;
use crate::ground::{Area, Nvm, Part};
use crate::schema::Key;

const LEAF: u64 = 1 << 63;
/// Bits of a node's word that are for entries.
const PLACES_MAX: u64 = 56;
const ROOT_AT: u64 = 0;
const PARENT_AT: u64 = 8;
const PENDING_AT: u64 = 16;
const HEADER_BYTES: u64 = 24;

/// A B+tree.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BTree {
    /// The slot of the header.
    pub(crate) header: u64,
    key_words: usize,
    places: u64,
    node_bytes: u64,
    is_durable: bool,
}

/// A part of a range: the entries of one leaf, in order.
#[derive(Debug)]
pub struct Leaf<V> {
    pub(crate) entries: Vec<(Key, V)>,
    /// The least key of the next leaf.
    pub(crate) next: Option<Key>,
}

impl<V: Default> Leaf<V> {
    /// All keys of a range, of which some may be there more often.
    pub(crate) fn of_keys(mut keys: Vec<Key>) -> Self {
        keys.sort_unstable();
        keys.dedup();
        Self { entries: keys.into_iter().map(|key| (key, V::default())).collect(), next: None }
    }
}

/// An entry, and its place in the node.
#[derive(Debug, Clone, Copy)]
struct Found {
    key: Key,
    value: u64,
    place: u64,
}

/// A node as it was loaded.
struct Node {
    at: u64,
    bits: u64,
    entries: Vec<Found>,
}

impl Node {
    fn is_leaf(&self) -> bool {
        self.bits & LEAF != 0
    }

    /// The entry of an inner node that leads to a key.
    fn child(&self, key: &Key) -> Found {
        let below = self.entries.iter().filter(|found| found.key <= *key);
        *below.max_by_key(|found| found.key).expect("the first child's key is the least of all")
    }

    /// The least key above, if any.
    fn above(&self, key: &Key) -> Option<Key> {
        self.entries.iter().map(|found| found.key).filter(|other| other > key).min()
    }
}

impl BTree {
    /// The tree whose header is in a slot.
    pub(crate) fn at(header: u64, key_words: usize, node_bytes: u64, is_durable: bool) -> Self {
        let words = node_bytes / 8 - 2;
        let places = (words / (key_words as u64 + 1)).min(PLACES_MAX);
        assert!(places >= 3, "nodes of {node_bytes} bytes are too small");
        Self { header, key_words, places, node_bytes, is_durable }
    }

    /// Makes an empty tree. A durable one is persisted, but for a name that leads to it.
    pub(crate) fn create<D: Device>(
        nvm: &mut Nvm<D>,
        key_words: usize,
        node_bytes: u64,
        is_durable: bool,
    ) -> Result<Self> {
        nvm.within(Part::Index, |nvm| {
            let header = nvm.allocate(HEADER_BYTES, Area::Index)?;
            let tree = Self::at(header, key_words, node_bytes, is_durable);
            let root = tree.new_node(nvm, LEAF, &[])?;
            nvm.memory.store_words(header, &[root, 0, 0]);
            tree.persist(nvm, header, HEADER_BYTES);
            Ok(tree)
        })
    }

    /// Nodes and header are made durable by something else, or no longer.
    pub(crate) fn durable(self, is_durable: bool) -> Self {
        Self { is_durable, ..self }
    }

    fn sync<D: Device>(&self, nvm: &mut Nvm<D>, at: u64, len: u64) {
        if self.is_durable {
            nvm.memory.sync(at, len);
        }
    }

    fn sync_u64<D: Device>(&self, nvm: &mut Nvm<D>, at: u64, word: u64) {
        nvm.memory.store_u64(at, word);
        self.sync(nvm, at, 8);
    }

    /// Makes a new slot durable, and its mark with it: after a crash something knows of it.
    fn persist<D: Device>(&self, nvm: &mut Nvm<D>, slot: u64, len: u64) {
        if self.is_durable {
            nvm.sync_persisted(slot, len);
            nvm.memory.fence();
        }
    }

    fn entry_at(&self, node: u64, place: u64) -> u64 {
        node + 8 + place * (self.key_words as u64 + 1) * 8
    }

    fn new_node<D: Device>(
        &self,
        nvm: &mut Nvm<D>,
        kind: u64,
        entries: &[(Key, u64)],
    ) -> Result<u64> {
        let len = self.node_bytes - 8;
        let node = nvm.allocate(len, Area::Index)?;
        nvm.memory.store_u64(node, kind | ((1 << entries.len()) - 1));
        for (place, (key, value)) in (0..).zip(entries) {
            self.store_entry(nvm, self.entry_at(node, place), key, *value);
        }
        self.persist(nvm, node, len);
        Ok(node)
    }

    fn store_entry<D: Device>(&self, nvm: &mut Nvm<D>, at: u64, key: &Key, value: u64) {
        nvm.memory.store_words(at, &key.0[..self.key_words]);
        nvm.memory.store_u64(at + self.key_words as u64 * 8, value);
    }

    fn load<D: Device>(&self, nvm: &mut Nvm<D>, at: u64) -> Node {
        let entry_words = self.key_words + 1;
        let words: Vec<u64> =
            nvm.memory.load_words(at, 1 + self.places as usize * entry_words).collect();
        let bits = words[0];
        let entries = (0..self.places).filter(|place| bits >> place & 1 == 1).map(|place| {
            let entry = &words[1 + place as usize * entry_words..][..entry_words];
            let key = Key::of_words(&entry[..self.key_words]);
            Found { key, value: entry[self.key_words], place }
        });
        Node { at, bits, entries: entries.collect() }
    }

    fn root<D: Device>(&self, nvm: &mut Nvm<D>) -> Node {
        let root = nvm.memory.load_u64(self.header + ROOT_AT);
        self.load(nvm, root)
    }

    /// The leaf of a key, and the least key of the next leaf.
    fn leaf<D: Device>(&self, nvm: &mut Nvm<D>, key: &Key) -> (Node, Option<Key>) {
        let mut node = self.root(nvm);
        let mut next = None;
        while !node.is_leaf() {
            let child = node.child(key);
            next = node.above(key).or(next);
            node = self.load(nvm, child.value);
        }
        (node, next)
    }

    pub(crate) fn get<D: Device>(&self, nvm: &mut Nvm<D>, key: &Key) -> Option<u64> {
        let (leaf, _) = nvm.within(Part::Index, |nvm| self.leaf(nvm, key));
        leaf.entries.iter().find(|found| found.key == *key).map(|found| found.value)
    }

    /// Inserts a key or replaces its value; the value before.
    pub(crate) fn insert<D: Device>(
        &self,
        nvm: &mut Nvm<D>,
        key: &Key,
        value: u64,
    ) -> Result<Option<u64>> {
        nvm.within(Part::Index, |nvm| self.put(nvm, key, value))
    }

    fn put<D: Device>(&self, nvm: &mut Nvm<D>, key: &Key, value: u64) -> Result<Option<u64>> {
        let (leaf, _) = self.leaf(nvm, key);
        if let Some(found) = leaf.entries.iter().find(|found| found.key == *key) {
            let at = self.entry_at(leaf.at, found.place) + self.key_words as u64 * 8;
            self.sync_u64(nvm, at, value);
            return Ok(Some(found.value));
        }
        if self.is_full(&leaf) {
            self.make_room(nvm, key)?;
            return self.put(nvm, key, value);
        }
        self.add(nvm, &leaf, key, value);
        Ok(None)
    }

    fn is_full(&self, node: &Node) -> bool {
        node.entries.len() as u64 == self.places
    }

    /// Adds an entry to a node that has room: the entry first, then its bit.
    fn add<D: Device>(&self, nvm: &mut Nvm<D>, node: &Node, key: &Key, value: u64) {
        let place = u64::from((!node.bits).trailing_zeros());
        debug_assert!(place < self.places);
        let at = self.entry_at(node.at, place);
        self.store_entry(nvm, at, key, value);
        self.sync(nvm, at, (self.key_words as u64 + 1) * 8);
        self.sync_u64(nvm, node.at, node.bits | 1 << place);
    }

    /// Removes a key; its value.
    pub(crate) fn remove<D: Device>(&self, nvm: &mut Nvm<D>, key: &Key) -> Option<u64> {
        nvm.within(Part::Index, |nvm| {
            let (leaf, _) = self.leaf(nvm, key);
            let found = leaf.entries.iter().find(|found| found.key == *key)?;
            self.sync_u64(nvm, leaf.at, leaf.bits & !(1 << found.place));
            Some(found.value)
        })
    }

    /// Splits the full nodes on the way to a key.
    fn make_room<D: Device>(&self, nvm: &mut Nvm<D>, key: &Key) -> Result<()> {
        let mut node = self.root(nvm);
        if self.is_full(&node) {
            node = self.grow(nvm, node.at)?;
        }
        while !node.is_leaf() {
            let mut child = self.load(nvm, node.child(key).value);
            if self.is_full(&child) {
                self.split(nvm, &node, &child)?;
                node = self.load(nvm, node.at);
                child = self.load(nvm, node.child(key).value);
            }
            node = child;
        }
        Ok(())
    }

    /// A new root above the old one.
    fn grow<D: Device>(&self, nvm: &mut Nvm<D>, old: u64) -> Result<Node> {
        let root = self.pending_node(nvm, 0, 0, &[(Key::MIN, old)])?;
        self.sync_u64(nvm, self.header + ROOT_AT, root);
        self.sync_u64(nvm, self.header + PENDING_AT, 0);
        Ok(self.load(nvm, root))
    }

    /// Makes a node that the header remembers until it counts.
    fn pending_node<D: Device>(
        &self,
        nvm: &mut Nvm<D>,
        parent: u64,
        kind: u64,
        entries: &[(Key, u64)],
    ) -> Result<u64> {
        let node = self.durable(false).new_node(nvm, kind, entries)?;
        // Both are in one line, whose stores become durable in order.
        nvm.memory.store_u64(self.header + PARENT_AT, parent);
        self.sync_u64(nvm, self.header + PENDING_AT, node);
        self.persist(nvm, node, self.node_bytes - 8);
        Ok(node)
    }

    fn split<D: Device>(&self, nvm: &mut Nvm<D>, parent: &Node, old: &Node) -> Result<()> {
        let mut entries = old.entries.clone();
        entries.sort_unstable_by_key(|found| found.key);
        let upper = entries.split_off(entries.len() / 2);
        let moved: Vec<_> = upper.iter().map(|found| (found.key, found.value)).collect();
        let node = self.pending_node(nvm, parent.at, old.bits & LEAF, &moved)?;
        self.add(nvm, parent, &moved[0].0, node);
        let gone = upper.iter().fold(0, |bits, found| bits | 1 << found.place);
        self.sync_u64(nvm, old.at, old.bits & !gone);
        self.sync_u64(nvm, self.header + PENDING_AT, 0);
        Ok(())
    }

    /// Ends a split that a crash interrupted, or takes it back.
    pub(crate) fn recover<D: Device>(&self, nvm: &mut Nvm<D>) {
        let pending = nvm.memory.load_u64(self.header + PENDING_AT);
        if pending == 0 {
            return;
        }
        let parent = nvm.memory.load_u64(self.header + PARENT_AT);
        let is_linked = if parent == 0 {
            nvm.memory.load_u64(self.header + ROOT_AT) == pending
        } else {
            self.end_split(nvm, parent, pending)
        };
        if !is_linked {
            nvm.mark_free(pending);
            nvm.memory.fence();
        }
        self.sync_u64(nvm, self.header + PENDING_AT, 0);
    }

    fn end_split<D: Device>(&self, nvm: &mut Nvm<D>, parent: u64, pending: u64) -> bool {
        let parent = self.load(nvm, parent);
        let Some(link) = parent.entries.iter().find(|found| found.value == pending) else {
            return false;
        };
        let left = parent.entries.iter().filter(|found| found.key < link.key);
        let left = left.max_by_key(|found| found.key).expect("the node that was split");
        let left = self.load(nvm, left.value);
        let stale = left.entries.iter().filter(|found| found.key >= link.key);
        let stale = stale.fold(0, |bits, found| bits | 1 << found.place);
        self.sync_u64(nvm, left.at, left.bits & !stale);
        true
    }

    /// The entries of a leaf from a key on.
    pub(crate) fn leaf_from<D: Device>(&self, nvm: &mut Nvm<D>, from: &Key) -> Leaf<u64> {
        let (leaf, next) = nvm.within(Part::Index, |nvm| self.leaf(nvm, from));
        let entries = leaf.entries.iter().filter(|found| found.key >= *from);
        let mut entries: Vec<_> = entries.map(|found| (found.key, found.value)).collect();
        entries.sort_unstable_by_key(|(key, _)| *key);
        Leaf { entries, next }
    }

    /// All entries with `from <= key < to`, in order.
    pub(crate) fn range<D: Device>(
        &self,
        nvm: &mut Nvm<D>,
        from: &Key,
        to: Option<&Key>,
    ) -> Vec<(Key, u64)> {
        let mut all = Vec::new();
        let mut next = Some(*from);
        while let Some(from) = next.filter(|from| to.is_none_or(|to| from < to)) {
            let leaf = self.leaf_from(nvm, &from);
            all.extend(leaf.entries.into_iter().filter(|(key, _)| to.is_none_or(|to| key < to)));
            next = leaf.next;
        }
        all
    }

    /// The keys of a range.
    pub(crate) fn keys<D: Device>(
        &self,
        nvm: &mut Nvm<D>,
        from: &Key,
        to: Option<&Key>,
    ) -> Vec<Key> {
        self.range(nvm, from, to).into_iter().map(|(key, _)| key).collect()
    }

    /// The slots of all nodes and of the header.
    pub(crate) fn slots<D: Device>(&self, nvm: &mut Nvm<D>) -> Vec<u64> {
        let root = nvm.memory.load_u64(self.header + ROOT_AT);
        let mut slots = vec![self.header, root];
        let mut at = 1;
        while let Some(node) = slots.get(at).copied() {
            let node = self.load(nvm, node);
            if !node.is_leaf() {
                slots.extend(node.entries.iter().map(|found| found.value));
            }
            at += 1;
        }
        slots
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use pmem::{AllNewest, AllOldest, Crash, Random};

    use super::*;
    use crate::ground::Modelled;

    fn key(i: u64) -> Key {
        Key::of_u64(i.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn all<D: Device>(tree: &BTree, nvm: &mut Nvm<D>) -> BTreeMap<Key, u64> {
        let entries = tree.range(nvm, &Key::MIN, None);
        assert!(entries.is_sorted_by(|a, b| a.0 < b.0), "in order, no key twice");
        entries.into_iter().collect()
    }

    fn change(tree: &BTree, nvm: &mut Nvm<Crash>, i: u64, model: &mut BTreeMap<Key, u64>) {
        if i % 3 == 2 {
            let key = key(i / 2);
            assert_eq!(tree.remove(nvm, &key), model.remove(&key));
        } else {
            assert_eq!(tree.insert(nvm, &key(i), i).unwrap(), model.insert(key(i), i));
        }
    }

    #[test]
    fn it_is_a_map_in_order() {
        let device = Arc::new(Crash::new(1 << 22, 0).unwrap());
        let mut nvm = Nvm::create(device, 1, Modelled::default()).unwrap();
        for is_durable in [false, true] {
            let tree = BTree::create(&mut nvm, 1, 128, is_durable).unwrap();
            let mut model = BTreeMap::new();
            (0..600).for_each(|i| change(&tree, &mut nvm, i, &mut model));
            assert_eq!(all(&tree, &mut nvm), model);
            assert!(model.iter().all(|(key, value)| tree.get(&mut nvm, key) == Some(*value)));
            assert_eq!(tree.get(&mut nvm, &key(9999)), None);
        }
    }

    /// Every change is whole or not there after a power cut, and no node is lost.
    #[test]
    fn each_change_is_atomic() {
        let changes = 40;
        let mut cut = 0;
        loop {
            let device = Arc::new(Crash::new(1 << 20, 0).unwrap());
            let mut nvm = Nvm::create(Arc::clone(&device), 1, Modelled::default()).unwrap();
            let tree = BTree::create(&mut nvm, 1, 96, true).unwrap();
            device.cut_at(device.events() + cut);
            let mut models = vec![BTreeMap::new()];
            let mut done = 0;
            for i in 0..changes {
                let mut model = models[i as usize].clone();
                change(&tree, &mut nvm, i, &mut model);
                models.push(model);
                done += usize::from(!device.is_cut());
            }
            for seed in 0..4 {
                let after = match seed {
                    0 => device.image_after_power_cut(&mut AllOldest),
                    1 => device.image_after_power_cut(&mut AllNewest),
                    seed => device.image_after_power_cut(&mut Random::new(seed + cut)),
                };
                let mut nvm = Nvm::open(Arc::new(after), 1, Modelled::default()).unwrap();
                tree.recover(&mut nvm);
                nvm.reclaim();
                let found = all(&tree, &mut nvm);
                let next = (done + 1).min(changes as usize);
                assert!(found == models[done] || found == models[next], "cut at {cut}");
                let slots = tree.slots(&mut nvm);
                let used = nvm.used().of(Area::Index);
                assert_eq!(used, 64 + (slots.len() as u64 - 1) * 128, "no node is lost");
            }
            if !device.is_cut() {
                return;
            }
            cut += 1;
        }
    }
}
