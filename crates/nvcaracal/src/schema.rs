//! Which table of a database a handle means.
//!
//! A handle is a constant that belongs to no database. What a procedure needs to know of its own
//! one, the numbers that its catalog gives to tables and what the program gave it as context,
//! belongs to the procedure's object ([`crate::procedure`]). A lookup is one load and one
//! comparison.

use std::any::{Any, type_name};
use std::fmt;
use std::sync::Arc;

use crate::index::{IndexShape, entries_in};
use crate::range::Bytes;
use crate::rows::{Of, Wanted};
use crate::table::Shape;
use crate::{Error, Index, Key, KeyRange, Table};

/// Most indexes of a database.
pub(crate) const INDEXES_MAX: usize = storage::format::TABLES_MAX;
/// Low bits of a place hold the table's number plus one, so that an empty place is zero.
const NUMBER_BITS: u32 = 16;
/// Fewest places, as a power of two.
const PLACE_BITS_MIN: u32 = 4;

/// What procedures know besides their arguments, if the program says so.
#[derive(Clone, Default)]
pub(crate) struct Context(Option<Arc<dyn Any + Send + Sync>>);

impl Context {
    pub(crate) fn new<T: Any + Send + Sync>(context: T) -> Self {
        Self(Some(Arc::new(context)))
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "some" } else { "none" })
    }
}

/// What procedures and readers know of their database.
pub(crate) struct Schema {
    /// Tags of tables and indexes and their numbers, by the upper bits of the tag. At least half of
    /// the places are empty, so that lookups end soon.
    places: Box<[u64]>,
    context: Context,
}

impl Schema {
    /// A schema of these tables and indexes: their tags, and the numbers that the store has for
    /// them.
    pub(crate) fn new(tables: &[(u64, u16)], context: Context) -> Result<Self, Error> {
        let bits = PLACE_BITS_MIN.max((2 * tables.len()).next_power_of_two().ilog2());
        let mut schema = Self { places: vec![0; 1 << bits].into(), context };
        for &(tag, number) in tables {
            if schema.find(tag).is_some() {
                return Err(Error::mistake(
                    "two tables or indexes have names with the same hash: rename one",
                ));
            }
            let place = schema.places_of(tag).find(|&place| schema.places[place] == 0);
            let place = place.expect("there are twice as many places as tables");
            schema.places[place] = tag >> NUMBER_BITS << NUMBER_BITS | u64::from(number + 1);
        }
        Ok(schema)
    }

    /// Where a tag may be, in the order of search.
    #[inline]
    fn places_of(&self, tag: u64) -> impl Iterator<Item = usize> + use<> {
        let mask = self.places.len() - 1;
        let first = (tag >> (u64::BITS - self.places.len().ilog2())) as usize;
        (0..=mask).map(move |step| (first + step) & mask)
    }

    /// The number of a handle's table, if it was registered.
    #[inline]
    pub(crate) fn find(&self, tag: u64) -> Option<u16> {
        for at in self.places_of(tag) {
            let place = self.places[at];
            if place == 0 {
                return None;
            }
            if (place ^ tag) >> NUMBER_BITS == 0 {
                return Some((place & 0xffff) as u16 - 1);
            }
        }
        None
    }

    /// The context, if it is of this type.
    #[inline]
    pub(crate) fn context<T: Any>(&self) -> Result<&T, String> {
        let context = self.context.0.as_deref().and_then(|any| any.downcast_ref());
        context.ok_or_else(|| {
            let of = type_name::<T>();
            format!("the database has no context of type {of}: add it to its options")
        })
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
}

#[cold]
fn unregistered(shape: &Shape) -> String {
    format!("{shape} is not registered with this database: add it to its options")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_found_with_their_numbers() {
        let tag = |i: u64| (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for count in [0, 1, 7, 8, 9, 256] {
            let tables: Vec<_> = (0..count).map(|i| (tag(i.into()), 300 - i)).collect();
            let schema = Schema::new(&tables, Context::default()).unwrap();
            for (tag, number) in tables {
                assert_eq!(schema.find(tag), Some(number));
            }
            assert_eq!(schema.find(tag(1000)), None);
        }
        let twice = Schema::new(&[(tag(1), 0), (tag(1), 1)], Context::default());
        assert!(twice.err().unwrap().is_mistake());
    }
}
