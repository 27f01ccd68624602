//! Secondary indexes of the table that has some, and what they must hold: the oracle computes them
//! from its rows (O-96, O-100).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::{IndexDefinition, IndexKeyFn};

use super::program::{Bounds, Entries, INDEXED, Op, Step, WORD};

/// How many there are: the first is an ordinary one, the second unique.
pub const INDEXES: u16 = 2;
/// The unique one.
const UNIQUE: u16 = 1;
/// Above every key of an index.
pub const INDEX_END: [u8; 2] = [u8::MAX; 2];

/// Rows of shorter values are not in the unique index.
const UNIQUE_BYTES_MIN: usize = 8;
/// First bytes of a value that make different keys of the unique index: so few that random values
/// often meet.
const UNIQUE_FIRSTS: u8 = 12;

/// Rows of values that long have two keys in the ordinary index, which may be the same.
const TWO_KEYS_BYTES_MIN: usize = 16;

/// The keys that a row with a value has in an index. Each says itself where it ends.
fn index_keys(index: u16, value: &[u8]) -> BTreeSet<Vec<u8>> {
    if index != UNIQUE {
        // Writes that leave the length as it is do not change the index.
        let len = value.len();
        let first = (len > 0).then_some(len);
        let second = (len >= TWO_KEYS_BYTES_MIN).then_some(len / TWO_KEYS_BYTES_MIN);
        return first.into_iter().chain(second).map(|key| vec![(key % 241) as u8]).collect();
    }
    if value.len() < UNIQUE_BYTES_MIN {
        return BTreeSet::new();
    }
    let first = value[0] % UNIQUE_FIRSTS;
    let key = if first.is_multiple_of(3) { vec![first] } else { vec![first, value[1] % 2] };
    BTreeSet::from([key])
}

/// An insert of a row, the `unique`-th key in the unique index.
///
/// # Panics
/// If there are not so many keys.
#[must_use]
pub fn insert_under(row: u8, unique: u8) -> Step {
    let insert = |tag| Step::new(Op::Insert, INDEXED, row).size(WORD).tag(tag);
    let is_it = |step: &Step| index_keys(UNIQUE, &step.value(0)).contains(&[unique * 3][..]);
    (0..=u8::MAX).map(insert).find(is_it).expect("some value has this key")
}

/// The indexes, as an engine takes them.
#[must_use]
pub fn index_definitions() -> Vec<IndexDefinition> {
    let definition = |index: u16| IndexDefinition {
        name: ["by length", "by first bytes"][usize::from(index)].into(),
        table: INDEXED.into(),
        is_unique: index == UNIQUE,
        types: "bytes".into(),
        key: key_function(index),
    };
    (0..INDEXES).map(definition).collect()
}

fn key_function(index: u16) -> IndexKeyFn {
    Arc::new(move |_, value, keys| {
        index_keys(index, value).iter().for_each(|key| keys.add(key));
        Ok(())
    })
}

/// Whether a write of a row changes any index.
pub(super) fn differ(before: Option<&[u8]>, after: Option<&[u8]>) -> bool {
    let keys = |index, value: Option<&[u8]>| value.map(|value| index_keys(index, value));
    let differ =
        |index| keys(index, before).unwrap_or_default() != keys(index, after).unwrap_or_default();
    (0..INDEXES).any(differ)
}

/// An index over rows: keys that end with the row's own, with that.
pub(super) fn index_of<'r>(
    index: u16,
    rows: impl Iterator<Item = (&'r Vec<u8>, &'r Vec<u8>)>,
) -> BTreeMap<Vec<u8>, Vec<u8>> {
    rows.flat_map(|(key, value)| {
        let entry = |own: Vec<u8>| ([&own[..], key].concat(), key.clone());
        index_keys(index, value).into_iter().map(entry)
    })
    .collect()
}

/// What a scan of an index over rows finds.
pub(super) fn scan_index<'r>(
    index: u16,
    rows: impl Iterator<Item = (&'r Vec<u8>, &'r Vec<u8>)>,
    bounds: Bounds<'_>,
    is_descending: bool,
    limit: usize,
) -> Entries {
    let entries = index_of(index, rows).into_iter();
    let found = entries.filter(|(key, _)| bounds.low <= &key[..] && &key[..] < bounds.high);
    if is_descending { found.rev().take(limit).collect() } else { found.take(limit).collect() }
}

/// Whether no two rows have one key in the unique index (O-98).
pub(super) fn are_unique<'r>(mut values: impl Iterator<Item = &'r Vec<u8>>) -> bool {
    let mut keys = BTreeSet::new();
    values.all(|value| index_keys(UNIQUE, value).into_iter().all(|key| keys.insert(key)))
}
