//! Which table of a database a handle means.
//!
//! A handle is a constant that belongs to no database. What a procedure needs to know of its own
//! one, the numbers that its catalog gives to tables and what the program gave it as context,
//! belongs to the procedure's object ([`crate::call::procedure`]).

use std::any::{Any, type_name};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use storage::TableId;

use crate::data::tags::Tags;
use crate::error::Error;
use crate::key::bytes::Key;
use crate::table::handle::{Shape, Table};
use crate::table::index::{Index, IndexShape, entries_in};
use crate::table::range::{Bytes, KeyRange};
use crate::table::rows::{Of, Wanted};

/// Most indexes of a database.
pub(crate) const INDEXES_MAX: usize = storage::format::TABLES_MAX;

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
    /// Tags of tables and indexes.
    tags: Tags,
    context: Context,
    /// Where calls of a log of a program of before run again.
    of_log: Option<OfLog>,
}

/// A body that runs for a log of a program of before.
#[derive(Debug, Clone)]
pub(crate) struct OfLog {
    /// Its procedure.
    pub(crate) procedure: &'static str,
    pub(crate) version: u32,
    pub(crate) missing: MissingHandles,
}

/// The first handle that a body asked for and the log was not written for.
#[derive(Debug, Clone, Default)]
pub(crate) struct MissingHandles(Arc<Mutex<Option<String>>>);

impl MissingHandles {
    /// Says which it is, if there is one.
    pub(crate) fn asked(&self) -> engine::Missing {
        let first = Arc::clone(&self.0);
        Arc::new(move || first.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

impl Schema {
    /// A schema of these tables and indexes: their tags, and the numbers that the store has for
    /// them.
    pub(crate) fn new(tables: &[(u64, u16)], context: Context) -> Result<Self, Error> {
        let tags = Tags::new(tables).ok_or_else(|| {
            Error::mistake("two tables or indexes have names with the same hash: rename one")
        })?;
        Ok(Self { tags, context, of_log: None })
    }

    /// The same for a body that runs for a log of a program of before.
    pub(crate) fn of_log(self, of_log: OfLog) -> Self {
        Self { of_log: Some(of_log), ..self }
    }

    #[cold]
    fn unregistered(&self, what: &dyn fmt::Display) -> String {
        let Some(OfLog { procedure, version, missing }) = &self.of_log else {
            return format!("{what} is not registered with this database: add it to its options");
        };
        let text = format!(
            "version {version} of procedure {procedure:?} uses {what}, which the log was not \
             written for"
        );
        let mut first = missing.0.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(text).clone()
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
        self.tags.find(shape.tag).ok_or_else(|| self.unregistered(shape))
    }

    /// The number of a handle's table.
    #[inline]
    pub(crate) fn number(&self, shape: &Shape) -> Result<TableId, String> {
        // By value: a handle that has an address is copied whenever it is passed on.
        self.tags.find(shape.tag).map(TableId).ok_or_else(|| self.unregistered_table(*shape))
    }

    #[cold]
    fn unregistered_table(&self, shape: Shape) -> String {
        self.unregistered(&shape)
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
        let range = entries_in(range).map_err(|what| format!("{}: {what}", index.shape))?;
        Ok(Wanted { of, shape: index.table.shape, range })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_tables_have_one_tag() {
        let duplicate = Schema::new(&[(1 << 20, 0), (1 << 20, 1)], Context::default());
        assert!(duplicate.err().unwrap().is_mistake());
    }
}
