//! A hash index: shards with a lock each, which is shared by everything but changes of the set of
//! keys.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use super::found::{Inserted, Seen};
use super::key::{BuildMixer, Key};
use crate::grace::Padded;

/// A power of two, so large that two workers rarely meet in a shard.
const SHARDS: usize = 1024;

struct Shard<K> {
    /// Changes under the lock of `places`, and is read without.
    version: AtomicU64,
    places: RwLock<HashMap<K, AtomicU64, BuildMixer>>,
}

/// See the module's documentation.
pub(crate) struct Hash<K> {
    shards: Box<[Padded<Shard<K>>]>,
}

impl<K: Key> Hash<K> {
    pub(super) fn new() -> Self {
        let shard = || Shard { version: AtomicU64::new(0), places: RwLock::default() };
        Self { shards: (0..SHARDS).map(|_| Padded(shard())).collect() }
    }

    fn node(key: &K) -> u32 {
        // The upper bits: the map within the shard uses the others.
        (key.mixed() >> (64 - SHARDS.ilog2())) as u32
    }

    pub(super) fn get(&self, _: usize, key: K) -> Result<u64, Seen> {
        let node = Self::node(&key);
        let shard = &self.shards[node as usize].0;
        let places = shard.places.read().unwrap_or_else(PoisonError::into_inner);
        match places.get(&key) {
            Some(place) => Ok(place.load(Ordering::Acquire)),
            None => Err(Seen { node, version: shard.version.load(Ordering::Acquire) }),
        }
    }

    pub(super) fn swap(&self, _: usize, key: K, old: u64, new: u64) -> bool {
        let shard = &self.shards[Self::node(&key) as usize].0;
        let places = shard.places.read().unwrap_or_else(PoisonError::into_inner);
        let exchange = |place: &AtomicU64| {
            place.compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        places.get(&key).is_some_and(exchange)
    }

    pub(super) fn insert(&self, _: usize, key: K, place: u64) -> Result<Inserted, u64> {
        let node = Self::node(&key);
        let shard = &self.shards[node as usize].0;
        let mut places = shard.places.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(there) = places.get(&key) {
            return Err(there.load(Ordering::Acquire));
        }
        places.insert(key, AtomicU64::new(place));
        Ok(Self::changed(shard, node))
    }

    pub(super) fn remove(&self, _: usize, key: K, place: u64) -> Option<Inserted> {
        let node = Self::node(&key);
        let shard = &self.shards[node as usize].0;
        let mut places = shard.places.write().unwrap_or_else(PoisonError::into_inner);
        if places.get(&key)?.load(Ordering::Acquire) != place {
            return None;
        }
        places.remove(&key);
        Some(Self::changed(shard, node))
    }

    /// Counts a change, under the shard's lock.
    fn changed(shard: &Shard<K>, node: u32) -> Inserted {
        let version = shard.version.fetch_add(1, Ordering::AcqRel);
        Inserted { before: Seen { node, version }, after: version + 1, split_off: None }
    }

    pub(super) fn version_word(&self, node: u32) -> &AtomicU64 {
        &self.shards[node as usize].0.version
    }

    pub(super) fn for_each(&self, mut each: impl FnMut(&K, u64)) {
        for shard in &self.shards {
            let places = shard.0.places.read().unwrap_or_else(PoisonError::into_inner);
            places.iter().for_each(|(key, place)| each(key, place.load(Ordering::Acquire)));
        }
    }
}
