//! What was made for a text and serves again: bounded, and what is not used goes.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

/// Two generations: what is used moves to the young one; when that is full, the old one goes.
pub(super) struct Cache<K, V> {
    young: HashMap<K, (V, usize)>,
    old: HashMap<K, (V, usize)>,
    bytes: usize,
    bytes_max: usize,
}

impl<K: Eq + Hash, V: Clone> Cache<K, V> {
    /// Keeps about so many bytes.
    pub(super) fn new(bytes_max: usize) -> Cache<K, V> {
        Cache { young: HashMap::new(), old: HashMap::new(), bytes: 0, bytes_max: bytes_max / 2 }
    }

    pub(super) fn get<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        if let Some((value, _)) = self.young.get(key) {
            return Some(value.clone());
        }
        let (key, (value, bytes)) = self.old.remove_entry(key)?;
        self.put(key, value.clone(), bytes);
        Some(value)
    }

    pub(super) fn put(&mut self, key: K, value: V, bytes: usize) {
        if bytes > self.bytes_max {
            return;
        }
        if self.bytes + bytes > self.bytes_max {
            self.old = std::mem::take(&mut self.young);
            self.bytes = 0;
        }
        self.bytes += bytes;
        if let Some((_, before)) = self.young.insert(key, (value, bytes)) {
            self.bytes -= before;
        }
    }

    pub(super) fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_the_rest_goes() {
        let mut cache = Cache::new(100);
        for number in 0..1000 {
            cache.put(number, number, 10);
            assert_eq!(cache.get(&0), Some(0), "{number}");
            let kept = cache.young.len() + cache.old.len();
            assert!((5.min(number + 1)..=10).contains(&(kept as i32)), "{kept} of {number}");
        }
        assert_eq!(cache.get(&10), None);
        cache.put(5000, 1, 51);
        assert_eq!(cache.get(&5000), None, "longer than all others together may be");
        cache.clear();
        assert_eq!(cache.get(&0), None);
    }
}
