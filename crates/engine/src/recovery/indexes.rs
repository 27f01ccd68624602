//! Building an index from the rows of its table, at an open and to compare.

use std::collections::BTreeMap;

use storage::EpochNumber;

use crate::engine::Engine;
use crate::error::{EngineError, Result};
use crate::secondary::{EntryKey, IndexEntry, SecondaryIndex};

type Entry<'e> = (&'e Box<[u8]>, &'e IndexEntry);

impl Engine {
    /// Builds all secondary indexes from the rows.
    ///
    /// # Errors
    /// `Limit` if a key cannot be made, or a unique index would have two rows under one key.
    pub(crate) fn build_indexes(&mut self) -> Result<()> {
        for number in 0..self.core.secondary.indexes.len() {
            let entries = self.built_index(number)?;
            let mut index = self.core.secondary.indexes[number].write();
            let index = index.as_mut().expect("no panic while locked");
            assert!(index.entries.is_empty(), "an index is built before any call changes it");
            index.entries = entries;
        }
        Ok(())
    }

    /// Compares each secondary index with one that is built anew (O-100).
    ///
    /// # Errors
    /// `Limit` with the first index that is another one, or cannot be built.
    pub fn check_indexes(&self) -> Result<()> {
        for number in 0..self.core.secondary.indexes.len() {
            let built = self.built_index(number)?;
            let index = self.core.secondary.indexes[number].read().expect("no panic while locked");
            let same = |((key, entry), (other, built)): (Entry<'_>, Entry<'_>)| {
                key == other && entry.prefix == built.prefix
            };
            let is_other =
                index.entries.len() != built.len() || !index.entries.iter().zip(&built).all(same);
            if is_other {
                let (name, entries) = (&index.definition.name, index.entries.len());
                return Err(EngineError::Limit(format!(
                    "index {name:?} is not that of its rows: {entries} entries, {} of the rows",
                    built.len()
                )));
            }
        }
        Ok(())
    }

    fn built_index(&self, number: usize) -> Result<BTreeMap<Box<[u8]>, IndexEntry>> {
        let index = self.core.secondary.indexes[number].read().expect("no panic while locked");
        let (mut entries, mut failed) = (Vec::new(), None);
        self.for_each(index.table, &mut |key, value| match index.entry_keys(key, Some(value)) {
            Ok(keys) => entries.extend(keys.into_iter().map(|EntryKey { bytes, prefix }| {
                (bytes, IndexEntry { prefix, since: EpochNumber(0) })
            })),
            Err(what) if failed.is_none() => failed = Some(format!("{what}, of row {key:02x?}")),
            Err(_) => {}
        })?;
        entries.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        match failed.or_else(|| find_duplicate(&index, &entries)) {
            Some(what) => Err(EngineError::Limit(what)),
            None => Ok(entries.into_iter().collect()),
        }
    }
}

/// Two rows under one key of a unique index.
fn find_duplicate(index: &SecondaryIndex, entries: &[(Box<[u8]>, IndexEntry)]) -> Option<String> {
    let split = |(key, entry): &(Box<[u8]>, IndexEntry)| {
        let (own, of_row) = key.split_at(usize::from(entry.prefix));
        (own.to_vec(), of_row.to_vec())
    };
    let duplicate = |pair: &&[(Box<[u8]>, IndexEntry)]| split(&pair[0]).0 == split(&pair[1]).0;
    let pair = entries.windows(2).filter(|_| index.definition.is_unique).find(duplicate)?;
    let ((key, first), (_, second)) = (split(&pair[0]), split(&pair[1]));
    Some(format!(
        "unique index {:?} would have two rows under key {key:02x?}: {first:02x?} and \
         {second:02x?}",
        index.definition.name
    ))
}
