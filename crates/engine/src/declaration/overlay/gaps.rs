//! Where all rows of an ordered index are deleted by the serial part, so that a scan need not step
//! over them one by one: the k-th call that takes the first row costs what the first one did
//! (O-77).

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::reads::KeyRange;

/// Spans of keys, from the first to before the last, that have no live row of the index; they do
/// not touch.
#[derive(Debug, Default)]
pub(super) struct Gaps(BTreeMap<Vec<u8>, Vec<u8>>);

/// The least key that is greater.
fn successor(key: &[u8], is_word: bool) -> Option<Vec<u8>> {
    if !is_word {
        return Some([key, &[0]].concat());
    }
    let word = u64::from_be_bytes(key.try_into().expect("a key that is a word"));
    word.checked_add(1).map(|next| next.to_be_bytes().to_vec())
}

impl Gaps {
    /// The gap that a key lies in.
    fn around(&self, key: &[u8]) -> Option<(&[u8], &[u8])> {
        self.last_up_to(key)
            .filter(|(_, high)| key < high.as_slice())
            .map(|(l, h)| (&l[..], &h[..]))
    }

    /// The last gap that begins at a key or before it.
    fn last_up_to(&self, key: &[u8]) -> Option<(&Vec<u8>, &Vec<u8>)> {
        self.0.range::<[u8], _>((Bound::Unbounded, Bound::Included(key))).next_back()
    }

    /// Nothing is live from `low` to before `high`.
    fn add(&mut self, mut low: Vec<u8>, mut high: Vec<u8>) {
        debug_assert!(low < high, "a gap is of keys that a scan has come through");
        while let Some((first, last)) = self.last_up_to(&high)
            && *last >= low
        {
            let (first, last) = (first.clone(), last.clone());
            self.0.remove(&first);
            low = low.min(first);
            high = high.max(last);
        }
        self.0.insert(low, high);
    }

    /// The row of a key is live again.
    pub(super) fn revive(&mut self, key: &[u8], is_word: bool) {
        let Some((low, high)) = self.around(key) else { return };
        let (low, high) = (low.to_vec(), high.to_vec());
        self.0.remove(&low);
        if let Some(next) = successor(key, is_word).filter(|next| *next < high) {
            self.0.insert(next, high);
        }
        if low.as_slice() < key {
            self.0.insert(low, key.to_vec());
        }
    }

    /// A scan begins.
    pub(super) fn walk(&mut self, keys: KeyRange<'_>, is_word: bool) -> Walk<'_> {
        let KeyRange { low, high, is_descending } = keys;
        let bounds = Some((low.to_vec(), high.to_vec()));
        let (low, high) = (low.to_vec(), high.to_vec());
        Walk { gaps: self, low, high, bounds, is_descending, is_word, dead: None }
    }
}

/// A scan on its way: it skips the gaps that are known, and notes those that it finds.
pub(super) struct Walk<'g> {
    gaps: &'g mut Gaps,
    low: Vec<u8>,
    high: Vec<u8>,
    /// What is to be searched next.
    bounds: Option<(Vec<u8>, Vec<u8>)>,
    is_descending: bool,
    is_word: bool,
    /// The near end of the deleted rows that it has come through last: the first of their keys, or
    /// what is behind it where it goes downwards.
    dead: Option<Vec<u8>>,
}

impl Walk<'_> {
    /// From where to where to search next.
    pub(super) fn next_bounds(&mut self) -> Option<(Vec<u8>, Vec<u8>)> {
        self.bounds.take().filter(|(low, high)| low < high)
    }

    /// Meets a deleted row; whether to search anew, behind others.
    pub(super) fn skip(&mut self, key: &[u8]) -> bool {
        let known = self.gaps.around(key).map(|(low, high)| (low.to_vec(), high.to_vec()));
        if self.is_descending {
            let behind = known.as_ref().map(|gap| gap.1.clone());
            self.dead = self.dead.take().or(behind).or_else(|| successor(key, self.is_word));
            let Some((from, _)) = known else { return false };
            self.bounds = Some((self.low.clone(), from));
        } else {
            let first = known.as_ref().map_or_else(|| key.to_vec(), |gap| gap.0.clone());
            self.dead.get_or_insert(first);
            let Some((_, to)) = known else { return false };
            self.bounds = Some((to, self.high.clone()));
        }
        true
    }

    /// Meets a row that is live.
    pub(super) fn live(&mut self, key: &[u8]) {
        if let Some(dead) = self.dead.take() {
            if !self.is_descending {
                self.gaps.add(dead, key.to_vec());
            } else if let Some(behind) = successor(key, self.is_word) {
                self.gaps.add(behind, dead);
            }
        }
    }

    /// Meets no further row.
    pub(super) fn end(&mut self) {
        let Some(dead) = self.dead.take() else { return };
        if self.is_descending {
            self.gaps.add(self.low.clone(), dead);
        } else {
            self.gaps.add(dead, self.high.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gaps(spans: &[(u8, u8)]) -> Gaps {
        let mut gaps = Gaps::default();
        spans.iter().for_each(|&(low, high)| gaps.add(vec![low], vec![high]));
        gaps
    }

    fn spans(gaps: &Gaps) -> Vec<(Vec<u8>, Vec<u8>)> {
        gaps.0.iter().map(|(low, high)| (low.clone(), high.clone())).collect()
    }

    #[test]
    fn gaps_that_touch_become_one() {
        for order in [[(1, 3), (3, 5), (7, 9)], [(3, 5), (1, 3), (7, 9)], [(7, 9), (3, 5), (1, 4)]]
        {
            assert_eq!(spans(&gaps(&order)), [(vec![1], vec![5]), (vec![7], vec![9])]);
        }
        assert_eq!(spans(&gaps(&[(1, 3), (5, 7), (2, 6)])), [(vec![1], vec![7])]);
        assert_eq!(spans(&gaps(&[(1, 9), (2, 3)])), [(vec![1], vec![9])]);
    }

    #[test]
    fn a_row_that_lives_again_parts_its_gap() {
        let mut parted = gaps(&[(1, 9)]);
        parted.revive(&[4], false);
        assert_eq!(spans(&parted), [(vec![1], vec![4]), (vec![4, 0], vec![9])]);
        parted.revive(&[1], false);
        assert_eq!(spans(&parted)[0], (vec![1, 0], vec![4]));
        parted.revive(&[20], false);
        assert_eq!(parted.0.len(), 2);
        let word = |n: u64| n.to_be_bytes().to_vec();
        let mut words = Gaps::default();
        words.add(word(u64::MAX - 1), word(u64::MAX));
        words.revive(&word(u64::MAX - 1), true);
        assert!(words.0.is_empty());
    }
}
