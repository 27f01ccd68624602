//! An ordered index: sorted leaves with a lock each, and a directory of their low ends.
//!
//! Leaves split and never merge. A leaf keeps its low end for ever; on a split it tells its new
//! high end and who comes after it, so a directory that does not know a leaf yet leads to one
//! before it, from which the way goes on. So no thread holds two locks at once, but for a split,
//! which enters the new leaf into the directories while it holds the leaf. There is a directory for
//! each worker: their locks are shared by everything but splits, and would else be lines that all
//! workers write.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{OnceLock, PoisonError, RwLock};

use super::found::{Found, Inserted, KeyBytes, Range, Seen};
use super::key::Key;
use crate::grace::Padded;

/// Keys of a full leaf.
const LEAF_KEYS: usize = 128;
/// Leaves are kept in blocks that never move; block `i` has `FIRST_BLOCK << i` of them.
const FIRST_BLOCK: usize = 64;
const BLOCKS: usize = 26;

struct Leaf<K> {
    /// Changes under the lock of `body`, and is read without.
    version: AtomicU64,
    /// Lowest key that can be here; `None`: any.
    low: Option<K>,
    body: RwLock<Body<K>>,
}

struct Body<K> {
    keys: Vec<K>,
    places: Vec<AtomicU64>,
    /// The keys from here on are in the next leaf.
    next: Option<(K, u32)>,
}

/// Leaves by their low ends; without the first leaf, which has none.
type Directory<K> = RwLock<BTreeMap<K, u32>>;
/// Leaves that never move.
type Block<K> = Box<[OnceLock<Leaf<K>>]>;

/// See the module's documentation.
pub(crate) struct Ordered<K> {
    directories: Box<[Padded<Directory<K>>]>,
    blocks: [OnceLock<Block<K>>; BLOCKS],
    leaves: AtomicU64,
}

/// Block and place of a leaf.
fn block_of(leaf: u32) -> (usize, usize) {
    let number = leaf as usize + FIRST_BLOCK;
    let block = (number.ilog2() - FIRST_BLOCK.ilog2()) as usize;
    (block, number - (FIRST_BLOCK << block))
}

impl<K: Key> Ordered<K> {
    pub(super) fn new(workers: usize) -> Self {
        let new = Self {
            directories: (0..workers.max(1)).map(|_| Padded::default()).collect(),
            blocks: [const { OnceLock::new() }; BLOCKS],
            leaves: AtomicU64::new(0),
        };
        new.add_leaf(None, Body { keys: Vec::new(), places: Vec::new(), next: None });
        new
    }

    fn add_leaf(&self, low: Option<K>, body: Body<K>) -> u32 {
        let number = self.leaves.fetch_add(1, Ordering::Relaxed) as u32;
        let (block, at) = block_of(number);
        let leaves = self.blocks[block]
            .get_or_init(|| (0..FIRST_BLOCK << block).map(|_| OnceLock::new()).collect());
        let leaf = Leaf { version: AtomicU64::new(0), low, body: RwLock::new(body) };
        assert!(leaves[at].set(leaf).is_ok(), "no other thread got the same number");
        number
    }

    fn leaf(&self, number: u32) -> &Leaf<K> {
        let (block, at) = block_of(number);
        let leaf = self.blocks[block].get().and_then(|leaves| leaves[at].get());
        leaf.expect("numbers of leaves are given out after the leaves are there")
    }

    /// The leaf that a worker's directory names for a key, or for the keys right below it.
    fn start(&self, worker: usize, key: &K, below: bool) -> u32 {
        let end = if below { Bound::Excluded(key) } else { Bound::Included(key) };
        let directory = &self.directories[worker % self.directories.len()].0;
        let directory = directory.read().unwrap_or_else(PoisonError::into_inner);
        directory.range((Bound::Unbounded, end)).next_back().map_or(0, |(_, leaf)| *leaf)
    }

    /// Runs `visit` on the leaf that holds, or would hold, a key, under its shared lock.
    fn on_leaf<R>(
        &self,
        worker: usize,
        key: &K,
        below: bool,
        visit: impl FnOnce(u32, &Leaf<K>, &Body<K>) -> R,
    ) -> R {
        let mut number = self.start(worker, key, below);
        loop {
            let leaf = self.leaf(number);
            let body = leaf.body.read().unwrap_or_else(PoisonError::into_inner);
            match &body.next {
                Some((high, next)) if high < key || !below && high == key => number = *next,
                _ => return visit(number, leaf, &body),
            }
        }
    }

    /// As [`Self::on_leaf`], under the exclusive lock.
    fn on_leaf_mut<R>(
        &self,
        worker: usize,
        key: &K,
        change: impl FnOnce(u32, &Leaf<K>, &mut Body<K>) -> R,
    ) -> R {
        let mut number = self.start(worker, key, false);
        loop {
            let leaf = self.leaf(number);
            let mut body = leaf.body.write().unwrap_or_else(PoisonError::into_inner);
            match &body.next {
                Some((high, next)) if high <= key => number = *next,
                _ => return change(number, leaf, &mut body),
            }
        }
    }

    pub(super) fn get(&self, worker: usize, key: K) -> Result<u64, Seen> {
        self.on_leaf(worker, &key, false, |node, leaf, body| match body.keys.binary_search(&key) {
            Ok(at) => Ok(body.places[at].load(Ordering::Acquire)),
            Err(_) => Err(Seen { node, version: leaf.version.load(Ordering::Acquire) }),
        })
    }

    pub(super) fn swap(&self, worker: usize, key: K, old: u64, new: u64) -> bool {
        self.on_leaf(worker, &key, false, |_, _, body| {
            let exchange = |at: usize| {
                let place = &body.places[at];
                place.compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed).is_ok()
            };
            body.keys.binary_search(&key).is_ok_and(exchange)
        })
    }

    pub(super) fn insert(&self, worker: usize, key: K, place: u64) -> Result<Inserted, u64> {
        self.on_leaf_mut(worker, &key, |node, leaf, body| {
            let at = match body.keys.binary_search(&key) {
                Ok(at) => return Err(body.places[at].load(Ordering::Acquire)),
                Err(at) => at,
            };
            let mut inserted = Self::changed(leaf, node);
            if body.keys.len() < LEAF_KEYS {
                body.keys.insert(at, key);
                body.places.insert(at, AtomicU64::new(place));
                return Ok(inserted);
            }
            // A key behind all others begins a new leaf, so that growing keys fill their leaves.
            let middle = if at == LEAF_KEYS { at } else { LEAF_KEYS / 2 };
            let mut upper = Body {
                keys: body.keys.split_off(middle),
                places: body.places.split_off(middle),
                next: body.next,
            };
            let into = if at < middle { &mut *body } else { &mut upper };
            let at = if at < middle { at } else { at - middle };
            into.keys.insert(at, key);
            into.places.insert(at, AtomicU64::new(place));
            let low = upper.keys[0];
            let new = self.add_leaf(Some(low), upper);
            body.next = Some((low, new));
            for directory in &self.directories {
                directory.0.write().unwrap_or_else(PoisonError::into_inner).insert(low, new);
            }
            inserted.split_off = Some(Seen { node: new, version: 0 });
            Ok(inserted)
        })
    }

    pub(super) fn remove(&self, worker: usize, key: K, place: u64) -> Option<Inserted> {
        self.on_leaf_mut(worker, &key, |node, leaf, body| {
            let at = body.keys.binary_search(&key).ok()?;
            if body.places[at].load(Ordering::Acquire) != place {
                return None;
            }
            body.keys.remove(at);
            body.places.remove(at);
            Some(Self::changed(leaf, node))
        })
    }

    /// Counts a change, under the leaf's lock.
    fn changed(leaf: &Leaf<K>, node: u32) -> Inserted {
        let version = leaf.version.fetch_add(1, Ordering::AcqRel);
        Inserted { before: Seen { node, version }, after: version + 1, split_off: None }
    }

    pub(super) fn version_word(&self, node: u32) -> &AtomicU64 {
        &self.leaf(node).version
    }

    pub(super) fn scan(&self, worker: usize, range: Range<'_>, found: &mut Found) {
        let (low, high) = (K::of(range.low), K::of(range.high));
        let start = if range.descending { &high } else { &low };
        self.on_leaf(worker, start, range.descending, |node, leaf, body| {
            found.seen = Some(Seen { node, version: leaf.version.load(Ordering::Acquire) });
            let first = body.keys.partition_point(|key| *key < low);
            let end = body.keys.partition_point(|key| *key < high);
            let all = end.saturating_sub(first);
            let visited = all.min(range.limit);
            let mut push = |at: usize| {
                found.push(&body.keys[at], body.places[at].load(Ordering::Acquire));
            };
            // Where the next part ends or begins: in this leaf, or in the one beside it.
            let rest = if range.descending {
                (end - visited..end).rev().for_each(&mut push);
                let here = (visited < all).then(|| body.keys[end - visited]);
                here.or_else(|| leaf.low.filter(|leaf_low| *leaf_low > low))
            } else {
                (first..first + visited).for_each(&mut push);
                let here = (visited < all).then(|| body.keys[first + visited]);
                here.or_else(|| body.next.map(|(next_low, _)| next_low).filter(|next| *next < high))
            };
            found.rest = rest.map(|key| key.with_bytes(KeyBytes::from_slice));
        });
    }

    pub(super) fn for_each(&self, mut each: impl FnMut(&K, u64)) {
        let mut number = Some(0);
        while let Some(leaf) = number {
            let body = self.leaf(leaf).body.read().unwrap_or_else(PoisonError::into_inner);
            for (key, place) in body.keys.iter().zip(&body.places) {
                each(key, place.load(Ordering::Acquire));
            }
            number = body.next.map(|(_, next)| next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All keys of a range, read in parts of `limit`.
    fn keys(index: &Ordered<u64>, low: u64, high: u64, descending: bool, limit: usize) -> Vec<u64> {
        let [mut low, mut high] = [low, high].map(|key| KeyBytes::from_slice(&key.to_be_bytes()));
        let (mut keys, mut found) = (Vec::new(), Found::default());
        loop {
            found.clear();
            index.scan(0, Range { low: &low, high: &high, descending, limit }, &mut found);
            keys.extend((0..found.len()).map(|i| u64::of(found.get(i).0)));
            match found.rest.take() {
                Some(rest) if descending => high = rest,
                Some(rest) => low = rest,
                None => return keys,
            }
        }
    }

    #[test]
    fn scans_see_all_keys_in_order_however_they_came() {
        let index = Ordered::<u64>::new(2);
        let mut all: Vec<u64> = (0..3_000).map(|i| i * 7 % 3_000 * 2).collect();
        for key in &all {
            index.insert(1, *key, key + 1).unwrap();
            assert_eq!(index.insert(0, *key, 0), Err(key + 1));
        }
        all.sort_unstable();
        for limit in [1, 7, 1_000] {
            assert_eq!(keys(&index, 0, u64::MAX, false, limit), all);
            let mut back = keys(&index, 0, u64::MAX, true, limit);
            back.reverse();
            assert_eq!(back, all);
        }
        assert_eq!(keys(&index, 101, 107, false, 2), [102, 104, 106]);
        assert_eq!(keys(&index, 102, 106, true, 9), [104, 102]);
        assert!(keys(&index, 7, 7, false, 9).is_empty());
        assert_eq!(index.get(0, 500), Ok(501));
    }

    #[test]
    fn a_node_counts_what_comes_and_goes_but_not_what_moves() {
        let index = Ordered::<u64>::new(1);
        let version = |node| index.version_word(node).load(Ordering::Acquire);
        let missing = index.get(0, 5).unwrap_err();
        index.insert(0, 6, 60).unwrap();
        assert_ne!(version(missing.node), missing.version);
        let missing = index.get(0, 5).unwrap_err();
        assert!(index.swap(0, 6, 60, 61));
        assert!(!index.swap(0, 6, 60, 62));
        assert_eq!(version(missing.node), missing.version);
        assert!(index.remove(0, 6, 60).is_none());
        assert!(index.remove(0, 6, 61).is_some());
        assert_ne!(version(missing.node), missing.version);
        assert!(index.get(0, 6).is_err());
    }
}
