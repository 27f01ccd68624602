//! Sequences, which calls allocate from in the order of the batch before anything runs.

use std::collections::BTreeMap;

use smallvec::SmallVec;
use workloads::TableId;

/// A sequence, by its table and its key.
pub(super) type Name = (TableId, [u8; 8]);
/// The numbers of a call: few need no memory of the heap.
pub(super) type Numbers = SmallVec<[u64; 2]>;

/// The next number of each sequence, and where it was when the batch began.
#[derive(Debug, Default)]
pub(super) struct Sequences {
    next: BTreeMap<Name, u64>,
    starts: BTreeMap<Name, u64>,
}

/// The key of a sequence.
pub(super) fn key_of(key: &[u8]) -> [u8; 8] {
    key.try_into().expect("the key of a sequence has 8 bytes")
}

impl Sequences {
    /// A batch begins.
    pub(super) fn begin(&mut self) {
        self.starts.clone_from(&self.next);
    }

    /// Gives a call what it wants: a number, or only a look at the next one.
    pub(super) fn allocate(&mut self, wanted: &[(Name, bool)], numbers: &mut Numbers) {
        for (name, only_peek) in wanted {
            if *only_peek {
                numbers.push(self.next.get(name).copied().unwrap_or(0));
                continue;
            }
            let next = self.next.entry(*name).or_insert(0);
            numbers.push(*next);
            *next += 1;
        }
    }

    /// Where a sequence was when the batch began.
    pub(super) fn start(&self, table: TableId, key: &[u8]) -> u64 {
        self.starts.get(&(table, key_of(key))).copied().unwrap_or(0)
    }

    /// The next number, if anything was ever allocated.
    pub(super) fn get(&self, table: TableId, key: &[u8]) -> Option<u64> {
        self.next.get(&(table, key.try_into().ok()?)).copied()
    }

    /// Visits the sequences of a table in the order of their keys.
    pub(super) fn for_each(&self, table: TableId, each: &mut dyn FnMut(&[u8], &[u8])) {
        let all = (table, [0; 8])..=(table, [u8::MAX; 8]);
        self.next.range(all).for_each(|((_, key), next)| each(key, &next.to_le_bytes()));
    }
}
