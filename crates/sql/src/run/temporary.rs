//! Rows of temporary tables, which a session has in memory. A call that reads some gets them with
//! its statement.

use super::overlay::Writes;
use super::rows::{Entry, Scan};
use crate::ir::{ObjectId, Space};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Bound;

/// What a row takes beside its key and value.
const ROW_BYTES: usize = 96;

/// Whether a key is one of a temporary table or index.
pub fn is_temporary_key(space: Space, key: &[u8]) -> bool {
    let id = key.first_chunk().map(|id| ObjectId::from_bytes(*id));
    space != Space::Catalog && id.is_some_and(ObjectId::is_temporary)
}

/// Rows and entries of temporary tables.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TemporaryRows {
    rows: BTreeMap<(Space, Vec<u8>), Vec<u8>>,
    /// About how much memory they take; not logged.
    #[serde(skip)]
    bytes: usize,
}

fn bytes_of(key: &[u8], row: &[u8]) -> usize {
    ROW_BYTES + key.len() + row.len()
}

impl TemporaryRows {
    /// The row with this key.
    pub fn get(&self, space: Space, key: &[u8]) -> Option<Vec<u8>> {
        self.rows.get(&(space, key.to_vec())).cloned()
    }

    /// Appends the rows of a scan.
    pub fn scan(&self, scan: &Scan<'_>, found: &mut Vec<Entry>) {
        let Scan { space, from, to, rows_max, is_backward } = *scan;
        let end = match to {
            Some(to) => Bound::Excluded((space, to.max(from).to_vec())),
            None => Bound::Unbounded,
        };
        let all = self.rows.range((Bound::Included((space, from.to_vec())), end));
        let is_own = |((own, _), _): &(&(Space, Vec<u8>), &Vec<u8>)| *own == space;
        let entry = |((_, key), row): (&(Space, Vec<u8>), &Vec<u8>)| (key.clone(), row.clone());
        match is_backward {
            false => found.extend(all.take_while(is_own).take(rows_max).map(entry)),
            true => {
                let own = all.rev().skip_while(|row| !is_own(row)).take_while(is_own);
                found.extend(own.take(rows_max).map(entry));
            }
        }
    }

    /// The rows and entries at these places, under what a transaction has written.
    #[must_use]
    pub fn part(&self, places: &[(Space, ObjectId)], writes: &Writes) -> TemporaryRows {
        let mut part = TemporaryRows::default();
        for (space, id) in places {
            let from = (*space, id.to_bytes().to_vec());
            let is_meant = |(own, key): &(Space, Vec<u8>)| own == space && key.starts_with(&from.1);
            let rows = self.rows.range(from.clone()..).take_while(|(place, _)| is_meant(place));
            rows.for_each(|((_, key), row)| part.put(*space, (key.clone(), row.clone())));
            let own = writes.range(from.clone()..).take_while(|(place, _)| is_meant(place));
            part.apply(own.map(|(place, row)| (place.clone(), row.clone())).collect());
        }
        part
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Takes what a transaction has written.
    pub fn apply(&mut self, writes: Writes) {
        for ((space, key), row) in writes {
            match row {
                Some(row) => self.put(space, (key, row)),
                None => self.remove(space, key),
            }
        }
    }

    /// Writes a row.
    pub fn put(&mut self, space: Space, (key, row): Entry) {
        let (len, own) = (key.len(), bytes_of(&key, &row));
        let before = self.rows.insert((space, key), row);
        self.bytes += own;
        self.bytes -= before.map_or(0, |row| ROW_BYTES + len + row.len());
    }

    fn remove(&mut self, space: Space, key: Vec<u8>) {
        let len = key.len();
        let before = self.rows.remove(&(space, key));
        self.bytes -= before.map_or(0, |row| ROW_BYTES + len + row.len());
    }

    /// Keeps the rows and entries of these objects only.
    pub fn retain(&mut self, stays: impl Fn(ObjectId) -> bool) {
        let id = |key: &[u8]| key.first_chunk().map(|id| ObjectId::from_bytes(*id));
        self.rows.retain(|(_, key), _| id(key).is_some_and(&stays));
        self.bytes = self.rows.iter().map(|((_, key), row)| bytes_of(key, row)).sum();
    }

    /// About how much memory they take.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::super::overlay::{Buffer, Overlay};
    use super::super::rows::{Memory, Rows};
    use super::*;

    fn key(id: u32, last: u8) -> Vec<u8> {
        [&id.to_be_bytes()[..], &[last]].concat()
    }

    #[test]
    fn writes_of_both_kinds_are_told_apart() {
        const OWN: u32 = 1 << 30 | 7;
        let mut memory = Memory::new(u64::MAX);
        let mut overlay = Overlay::over(&mut memory, Buffer::default());
        for last in 0..3 {
            overlay.put(Space::Row256, &key(OWN, last), b"own").unwrap();
        }
        let mut buffer = overlay.into_buffer();
        assert!(!buffer.has_lasting_writes());
        let mark = buffer.savepoint();
        let mut overlay = Overlay::over(&mut memory, buffer);
        overlay.put(Space::Row256, &key(20_000, 1), b"other").unwrap();
        overlay.put(Space::Catalog, b"t\0\0\x40\0", b"table").unwrap();
        overlay.delete(Space::Row256, &key(OWN, 0)).unwrap();
        buffer = overlay.into_buffer();
        assert!(buffer.has_lasting_writes());
        assert_eq!(buffer.lasting_writes().count(), 2);
        let since = buffer.temporary_since(mark);
        assert_eq!(since.into_iter().collect::<Vec<_>>(), [((Space::Row256, key(OWN, 0)), None)]);
        let mut rows = TemporaryRows::default();
        rows.put(Space::Row256, (key(OWN, 0), b"before".to_vec()));
        rows.put(Space::Row256, (key(OWN + 1, 0), b"another".to_vec()));
        let part = rows.part(&[(Space::Row256, ObjectId::new(OWN))], buffer.writes());
        let (mut found, mut back) = (Vec::new(), Vec::new());
        let (from, to) = (key(OWN, 0), key(OWN, 9));
        let scan = Scan {
            space: Space::Row256,
            from: &from,
            to: Some(&to),
            rows_max: 9,
            is_backward: false,
        };
        part.scan(&scan, &mut found);
        part.scan(&Scan { is_backward: true, ..scan }, &mut back);
        back.reverse();
        let own = |last| (key(OWN, last), b"own".to_vec());
        assert_eq!((found, back), (vec![own(1), own(2)], vec![own(1), own(2)]));
        rows.apply(buffer.take_writes(is_temporary_key));
        assert_eq!(buffer.writes().len(), 2, "what is no session's stays");
        assert_eq!(rows.get(Space::Row256, &key(OWN, 0)), None);
        rows.retain(|id| id.number() == OWN + 1);
        assert_eq!(rows.bytes(), bytes_of(&key(OWN + 1, 0), b"another"));
    }
}
