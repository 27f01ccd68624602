//! What is seen in the nodes of an index, and what is asked of it.

use smallvec::SmallVec;

use super::key::Key;

/// The bytes of a key, without memory of the heap.
pub(crate) type KeyBytes = SmallVec<[u8; 64]>;

/// A node and how often its set of keys had changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) node: u32,
    pub(crate) version: u64,
}

/// What an insertion did to a node: how it was before and after, and the node that was split off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Inserted {
    pub(crate) before: Seen,
    pub(crate) after: u64,
    pub(crate) split_off: Option<Seen>,
}

/// Rows of a scan that lie in one node, in the order of the scan.
#[derive(Debug, Default)]
pub(crate) struct Found {
    keys: Vec<u8>,
    ends: Vec<u32>,
    places: Vec<u64>,
    /// The node.
    pub(crate) seen: Option<Seen>,
    /// Where to go on, if the range does not end here: the new low or high end.
    pub(crate) rest: Option<KeyBytes>,
}

impl Found {
    pub(super) fn clear(&mut self) {
        self.keys.clear();
        self.ends.clear();
        self.places.clear();
        self.seen = None;
        self.rest = None;
    }

    pub(super) fn push(&mut self, key: &impl Key, place: u64) {
        key.with_bytes(|bytes| self.keys.extend_from_slice(bytes));
        self.ends.push(self.keys.len() as u32);
        self.places.push(place);
    }

    /// How many rows there are.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// Key and place of a row.
    pub(crate) fn get(&self, i: usize) -> (&[u8], u64) {
        let start = i.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        (&self.keys[start..self.ends[i] as usize], self.places[i])
    }
}

/// Which part of an ordered index to read: `low <= key < high`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Range<'a> {
    pub(crate) low: &'a [u8],
    pub(crate) high: &'a [u8],
    pub(crate) descending: bool,
    /// At most so many rows at a time.
    pub(crate) limit: usize,
}
