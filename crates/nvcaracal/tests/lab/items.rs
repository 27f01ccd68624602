//! Rows that secondary indexes lead to, and a sequence: in a database, and as they must be.

use std::collections::{BTreeMap, BTreeSet};

use nvcaracal::{Data, Index, Options, Result, Sequence, Snapshot, Stop, Table, Transaction};

use crate::program::{Model, ROWS, Row};

pub(crate) const ITEMS: Table<u64, Item> = Table::ordered("items");
pub(crate) const BY_OWNER: Index<u64, u64, Item> = ITEMS.index("by owner", |_, item| item.owner);
const BY_TAG: Index<str, u64, Item> = ITEMS.unique_index("by tag", |_, item| {
    // Not all rows are in it.
    (!item.tag.is_empty()).then(|| item.tag.clone())
});
/// Calls allocate from two sequences.
pub(crate) const NUMBERS: Sequence = Sequence::new("numbers");
pub(crate) const SEQUENCES: usize = 2;

/// What a table with indexes holds.
#[derive(Debug, Clone, PartialEq, Data)]
pub(crate) struct Item {
    pub(crate) owner: Option<u64>,
    pub(crate) tag: String,
    /// In no index.
    pub(crate) count: i64,
}

/// Items by key.
pub(crate) type Items = Vec<(u64, Item)>;

/// Which items of an index.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Of<'t> {
    Everyone,
    Owner(u64),
    Tag(&'t str),
}

/// Adds the tables, indexes and sequences.
pub(crate) fn with_items(options: Options) -> Options {
    options.table(ITEMS).index(BY_OWNER).index(BY_TAG).sequence(NUMBERS)
}

/// What a transaction sees by an index.
pub(crate) fn find(tx: &mut Transaction, of: Of<'_>) -> std::result::Result<Items, Stop> {
    match of {
        Of::Everyone => tx.range_by(BY_OWNER, ..).collect(),
        Of::Owner(owner) => tx.range_by(BY_OWNER, owner..=owner).collect(),
        Of::Tag(tag) => Ok(tx.get_by(BY_TAG, tag)?.into_iter().collect()),
    }
}

/// The same in order, of items as they must be.
pub(crate) fn find_in(items: &BTreeMap<u64, Item>, of: Of<'_>) -> Items {
    let is_found = |item: &Item| match of {
        Of::Everyone => item.owner.is_some(),
        Of::Owner(owner) => item.owner == Some(owner),
        Of::Tag(tag) => item.tag == tag,
    };
    let mut found: Items = items.clone().into_iter().filter(|(_, item)| is_found(item)).collect();
    found.sort_by_key(|(key, item)| (item.owner, *key));
    found
}

/// Whether no two items have one tag.
pub(crate) fn are_unique(items: &BTreeMap<u64, Item>) -> bool {
    let tags = || items.values().map(|item| &item.tag).filter(|tag| !tag.is_empty());
    tags().collect::<BTreeSet<_>>().len() == tags().count()
}

/// What a snapshot has, read in every way.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Image {
    rows: Vec<(u64, Row)>,
    items: Items,
    by_owner: Items,
    by_tag: Items,
    /// The next numbers.
    pub(crate) numbers: [u64; SEQUENCES],
}

impl Image {
    pub(crate) fn read(snapshot: &Snapshot) -> Result<Self> {
        let mut numbers = [0; SEQUENCES];
        for (sequence, number) in (0..).zip(&mut numbers) {
            *number = snapshot.sequence(NUMBERS.at(sequence))?;
        }
        Ok(Self {
            rows: snapshot.range(ROWS, ..).collect::<Result<_>>()?,
            items: snapshot.range(ITEMS, ..).collect::<Result<_>>()?,
            by_owner: snapshot.range_by(BY_OWNER, ..).collect::<Result<_>>()?,
            by_tag: snapshot.range_by(BY_TAG, ..).collect::<Result<_>>()?,
            numbers,
        })
    }

    /// Whether it is what must be there.
    ///
    /// # Errors
    /// What is not.
    pub(crate) fn compare(&self, expected: &Model) -> std::result::Result<(), String> {
        compare("row", &expected.rows, &self.rows)?;
        compare("item", &expected.items, &self.items)?;
        let by_owner = find_in(&expected.items, Of::Everyone);
        let mut by_tag: Items = expected.items.clone().into_iter().collect();
        by_tag.retain(|(_, item)| !item.tag.is_empty());
        by_tag.sort_by(|(_, one), (_, other)| one.tag.cmp(&other.tag));
        for (name, expected, found) in
            [("owner", by_owner, &self.by_owner), ("tag", by_tag, &self.by_tag)]
        {
            if expected != *found {
                return Err(format!("by {name} there are {found:?} and not {expected:?}"));
            }
        }
        Ok(())
    }
}

fn compare<V: PartialEq + std::fmt::Debug>(
    what: &str,
    expected: &BTreeMap<u64, V>,
    found: &[(u64, V)],
) -> std::result::Result<(), String> {
    let found: BTreeMap<_, _> = found.iter().map(|(key, row)| (key, row)).collect();
    let expected: BTreeMap<_, _> = expected.iter().collect();
    let keys: BTreeSet<_> = found.keys().chain(expected.keys()).collect();
    for key in keys {
        let (expected, found) = (expected.get(*key), found.get(*key));
        if expected != found {
            return Err(format!("{what} {key} is {found:?} and not {expected:?}"));
        }
    }
    Ok(())
}
