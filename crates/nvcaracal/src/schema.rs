//! Which table of a database a handle means.
//!
//! Procedures are plain functions to the engine: they get their arguments and the transaction, and
//! nothing that belongs to the database. So what they need to know of it, the numbers that its
//! catalog gives to tables, lies in one of a few static arrays, and each procedure is registered as
//! a function for one of them ([`crate::procedure`]). Databases with the same tables in the same
//! order share an array, so a program meets the limit only if it has many *different* databases
//! open at a time.
//!
//! An array is written before its first database opens and not again while one is open. A lookup is
//! one load and one comparison.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::index::{IndexShape, entries_in};
use crate::range::Bytes;
use crate::rows::{Of, Wanted};
use crate::table::Shape;
use crate::{Error, Index, Key, KeyRange, Table};

/// Different schemas that can be in use at a time.
pub(crate) const SCHEMAS_MAX: usize = 16;
/// Most indexes of a database.
pub(crate) const INDEXES_MAX: usize = storage::format::TABLES_MAX;
/// Twice the most tables and indexes of a database, so that lookups end soon.
const PLACES: usize = 2 * (storage::format::TABLES_MAX + INDEXES_MAX);
/// Low bits of a place hold the table's number plus one, so that an empty place is zero.
const NUMBER_BITS: u32 = 16;

/// Tags of tables and indexes and their numbers, by the upper bits of the tag.
pub(crate) struct Schema {
    places: [AtomicU64; PLACES],
}

static SCHEMAS: [Schema; SCHEMAS_MAX] =
    [const { Schema { places: [const { AtomicU64::new(0) }; PLACES] } }; SCHEMAS_MAX];

/// Who uses which schema; also makes writing exclusive.
static USES: Mutex<[Use; SCHEMAS_MAX]> =
    Mutex::new([const { Use { databases: 0, tables: Vec::new() } }; SCHEMAS_MAX]);

struct Use {
    databases: usize,
    tables: Vec<(u64, u16)>,
}

impl Schema {
    /// The schema with a number.
    #[inline]
    pub(crate) fn get(number: usize) -> &'static Self {
        &SCHEMAS[number]
    }

    /// The number of a handle's table, if it was registered.
    #[inline]
    pub(crate) fn find(&self, tag: u64) -> Option<u16> {
        let first = tag as usize >> (usize::BITS - PLACES.ilog2());
        for step in 0..PLACES {
            let place = self.places[(first + step) % PLACES].load(Ordering::Relaxed);
            if place == 0 {
                return None;
            }
            if (place ^ tag) >> NUMBER_BITS == 0 {
                return Some((place & 0xffff) as u16 - 1);
            }
        }
        None
    }

    /// The number of a handle's index.
    fn index(&self, shape: &IndexShape) -> Result<u16, String> {
        self.find(shape.tag).ok_or_else(|| {
            format!("{shape} is not registered with this database: add it to its options")
        })
    }

    /// As [`Schema::find`], with words for people if there is none.
    #[inline]
    pub(crate) fn number(&self, shape: &Shape) -> Result<u16, String> {
        self.find(shape.tag).ok_or_else(|| unregistered(shape))
    }

    /// The rows of a table in a range.
    pub(crate) fn rows<K: Key + ?Sized, V, O>(
        &self,
        table: &Table<K, V, O>,
        range: &impl KeyRange<K>,
    ) -> Result<Wanted, String> {
        let of = Of::Table(self.number(&table.shape)?);
        Ok(Wanted { of, shape: table.shape, range: Bytes::new(table, range) })
    }

    /// The rows that an index has under keys in a range.
    pub(crate) fn rows_by<I: Key + ?Sized, K: Key + ?Sized, V, O>(
        &self,
        index: &Index<I, K, V, O>,
        range: &impl KeyRange<I>,
    ) -> Result<Wanted, String> {
        let of = Of::Index(self.index(&index.shape)?);
        Ok(Wanted { of, shape: index.table.shape, range: entries_in(range)? })
    }

    fn fill(&self, tables: &[(u64, u16)]) {
        self.places.iter().for_each(|place| place.store(0, Ordering::Relaxed));
        for &(tag, number) in tables {
            let first = tag as usize >> (usize::BITS - PLACES.ilog2());
            let free = (0..PLACES)
                .map(|step| &self.places[(first + step) % PLACES])
                .find(|place| place.load(Ordering::Relaxed) == 0)
                .expect("there are twice as many places as tables");
            free.store(
                tag >> NUMBER_BITS << NUMBER_BITS | u64::from(number + 1),
                Ordering::Relaxed,
            );
        }
    }
}

#[cold]
fn unregistered(shape: &Shape) -> String {
    format!("{shape} is not registered with this database: add it to its options")
}

/// One database's use of a schema, until it is dropped.
#[derive(Debug)]
pub(crate) struct Lease {
    number: usize,
}

impl Lease {
    /// Finds or fills a schema for these tables.
    pub(crate) fn new(tables: Vec<(u64, u16)>) -> Result<Self, Error> {
        for (i, (tag, _)) in tables.iter().enumerate() {
            if tables[..i].iter().any(|(other, _)| (tag ^ other) >> NUMBER_BITS == 0) {
                return Err(Error::mistake(
                    "two tables or indexes have names with the same hash: rename one",
                ));
            }
        }
        let mut uses = USES.lock().unwrap_or_else(PoisonError::into_inner);
        let same = uses.iter().position(|u| u.databases > 0 && u.tables == tables);
        let number = same.or_else(|| uses.iter().position(|u| u.databases == 0)).ok_or_else(|| {
            Error::limit(format!(
                "databases with {SCHEMAS_MAX} different schemas are open in this process, which is \
                 the most"
            ))
        })?;
        if same.is_none() {
            SCHEMAS[number].fill(&tables);
            uses[number].tables = tables;
        }
        uses[number].databases += 1;
        Ok(Self { number })
    }

    pub(crate) fn number(&self) -> usize {
        self.number
    }

    pub(crate) fn schema(&self) -> &'static Schema {
        Schema::get(self.number)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        USES.lock().unwrap_or_else(PoisonError::into_inner)[self.number].databases -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn databases_share_a_schema_and_find_their_tables() {
        let tag = |i: u64| (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let tables: Vec<_> = (0..128u16).map(|i| (tag(i.into()), i)).collect();
        let one = Lease::new(tables.clone()).unwrap();
        let two = Lease::new(tables.clone()).unwrap();
        assert_eq!(one.number(), two.number());
        for (tag, number) in tables {
            assert_eq!(one.schema().find(tag), Some(number));
        }
        assert_eq!(one.schema().find(tag(1000)), None);
        let other = Lease::new(vec![(tag(5), 0)]).unwrap();
        assert_ne!(other.number(), one.number());
        assert_eq!(other.schema().find(tag(5)), Some(0));
        assert_eq!(other.schema().find(tag(6)), None);

        let more = (0..).map(|i| Lease::new(vec![(tag(i), 77)]));
        let full: Vec<_> = more.take_while(Result::is_ok).collect();
        assert_eq!(full.len(), SCHEMAS_MAX - 2);
        assert!(Lease::new(vec![(tag(999), 77)]).unwrap_err().is_limit());
        drop(other);
        let next = Lease::new(vec![(tag(6), 1)]).unwrap();
        assert_eq!((next.schema().find(tag(6)), next.schema().find(tag(5))), (Some(1), None));
    }
}
