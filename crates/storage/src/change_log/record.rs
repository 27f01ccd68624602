//! A record of the change log: the changes of one epoch.
//!
//! | bytes | the record |
//! |---|---|
//! | 4 | bytes of the body |
//! | 4 | CRC-32 of the body |
//! | 8 | epoch: the body begins here |
//! | 4 | number of changes; 2^32 - 1 if they were too many to note |
//! | ... | each change: table (2), marks (1), key, value before, value after |
//!
//! Of the marks, 1 says that there is a value before, 2 one after. Key and values have their length
//! (4) before them.
//!
//! All numbers are little endian.

use crate::ids::{EpochNumber, TableId};

/// How a row has changed in an epoch.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    /// Number of its table.
    pub table: TableId,
    /// Its key.
    pub key: Box<[u8]>,
    /// Its value before the epoch; `None` if there was no row.
    pub before: Option<Box<[u8]>>,
    /// Its value after the epoch, which is another one; `None` if there is no row.
    pub after: Option<Box<[u8]>>,
}

/// What a change takes besides its key and values, about.
const CHANGE_BYTES: u64 = 64;

impl Change {
    /// What it takes in memory, about.
    pub fn bytes(&self) -> u64 {
        let len = |value: &Option<Box<[u8]>>| value.as_ref().map_or(0, |value| value.len() as u64);
        self.key.len() as u64 + len(&self.before) + len(&self.after) + CHANGE_BYTES
    }
}

/// How rows of watched tables have changed in an epoch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EpochChanges {
    /// By table and key.
    pub rows: Vec<Change>,
    /// They were too many: there are none in `rows`.
    pub are_too_many: bool,
}

impl EpochChanges {
    /// Whether anything has changed.
    pub fn are_any(&self) -> bool {
        self.are_too_many || !self.rows.is_empty()
    }

    /// Adds what another worker has noted.
    pub fn add(&mut self, others: Self) {
        self.are_too_many |= others.are_too_many;
        match self.are_too_many {
            true => self.rows = Vec::new(),
            false => self.rows.extend(others.rows),
        }
    }

    /// Puts all into their order, once each worker's are there.
    pub fn sort(&mut self) {
        self.rows.sort_unstable();
        let key = |change: &Change| (change.table, change.key.clone());
        debug_assert!(
            self.rows.windows(2).all(|two| key(&two[0]) < key(&two[1])),
            "a row is written once in an epoch"
        );
    }
}

/// Length and checksum.
pub(super) const HEAD_BYTES: usize = 8;
/// The number of changes of an epoch that has too many.
const TOO_MANY: u32 = u32::MAX;
const HAS_BEFORE: u8 = 1;
const HAS_AFTER: u8 = 2;

/// A record of an epoch, with the changes of those tables for which `is_kept` holds, and whether
/// they were too many: then they take more than `bytes_max` in memory, and the record has none.
pub(super) fn encode(
    epoch: EpochNumber,
    changes: &EpochChanges,
    bytes_max: u64,
    is_kept: impl Fn(TableId) -> bool,
) -> (Vec<u8>, bool) {
    let rows: Vec<_> = changes.rows.iter().filter(|change| is_kept(change.table)).collect();
    let bytes = rows.iter().map(|change| change.bytes()).sum::<u64>();
    if changes.are_too_many || bytes > bytes_max {
        return (encode_body(epoch, TOO_MANY, &[]), true);
    }
    let count = u32::try_from(rows.len()).expect("an epoch's changes are limited");
    (encode_body(epoch, count, &rows), false)
}

fn encode_body(epoch: EpochNumber, count: u32, rows: &[&Change]) -> Vec<u8> {
    let mut bytes = vec![0; HEAD_BYTES];
    bytes.extend(epoch.0.to_le_bytes());
    bytes.extend(count.to_le_bytes());
    for change in rows {
        let mark = |value: &Option<Box<[u8]>>, mark| if value.is_some() { mark } else { 0 };
        bytes.extend(change.table.0.to_le_bytes());
        bytes.push(mark(&change.before, HAS_BEFORE) | mark(&change.after, HAS_AFTER));
        let values = [Some(&change.key), change.before.as_ref(), change.after.as_ref()];
        for value in values.into_iter().flatten() {
            let len = u32::try_from(value.len()).expect("keys and values are limited");
            bytes.extend(len.to_le_bytes());
            bytes.extend_from_slice(value);
        }
    }
    let body = &bytes[HEAD_BYTES..];
    let len = u32::try_from(body.len()).expect("an epoch's changes are limited");
    let crc = crc32fast::hash(body);
    bytes[..4].copy_from_slice(&len.to_le_bytes());
    bytes[4..HEAD_BYTES].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// The length of a record's body and its checksum.
pub(super) fn head(bytes: [u8; HEAD_BYTES]) -> (usize, u32) {
    let half = |at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().expect("eight bytes"));
    (half(0) as usize, half(4))
}

/// The changes of a body; `None` if it is damaged.
pub(super) fn decode(body: &[u8], crc: u32) -> Option<(EpochNumber, EpochChanges)> {
    if crc32fast::hash(body) != crc {
        return None;
    }
    let mut rest = body;
    let epoch = EpochNumber(u64::from_le_bytes(take(&mut rest)?));
    let count = u32::from_le_bytes(take(&mut rest)?);
    if count == TOO_MANY {
        return Some((epoch, EpochChanges { rows: Vec::new(), are_too_many: true }));
    }
    let mut rows = Vec::new();
    for _ in 0..count {
        let table = TableId(u16::from_le_bytes(take(&mut rest)?));
        let [marks] = take(&mut rest)?;
        let key = value(&mut rest)?;
        let mut marked = |mark| match marks & mark {
            0 => Some(None),
            _ => value(&mut rest).map(Some),
        };
        let (before, after) = (marked(HAS_BEFORE)?, marked(HAS_AFTER)?);
        rows.push(Change { table, key, before, after });
    }
    rest.is_empty().then_some((epoch, EpochChanges { rows, are_too_many: false }))
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, behind) = rest.split_first_chunk::<N>()?;
    *rest = behind;
    Some(*taken)
}

fn value(rest: &mut &[u8]) -> Option<Box<[u8]>> {
    let len = u32::from_le_bytes(take(rest)?) as usize;
    let taken = rest.get(..len)?;
    *rest = &rest[len..];
    Some(taken.into())
}
