//! What the schema of a database that is to be opened has in indexes, and how its tables change.

use std::borrow::Borrow;

use crate::data::value::Data;
use crate::database::options::{Options, in_range};
use crate::error::{Error, Result};
use crate::key::bytes::Key;
use crate::table::index::{Index, IndexRegistration};
use crate::table::schema::INDEXES_MAX;

impl Options {
    /// The database has this index, of a table that is registered, too. It is built from the rows.
    ///
    /// Indexes can be added, changed and dropped at every open. One that is changed or dropped is
    /// kept for logs of before by [`index_was`](Self::index_was).
    pub fn index<I, K, V, O>(mut self, index: Index<I, K, V, O>) -> Self
    where
        I: Key<Owned: Borrow<I>> + ?Sized + 'static,
        K: Key + ?Sized + 'static,
        V: Data + 'static,
    {
        let index = index.registration();
        match self.indexes.iter().find(|before| before.shape.name == index.shape.name) {
            None => self.indexes.push(index),
            Some(before) if before.is(&index) => {}
            Some(before) => {
                let what = format!("{index:?} has the name of {before:?}");
                self.mistake.get_or_insert(what);
            }
        }
        self
    }

    /// An index that there was, kept for logs of before as is a
    /// [procedure](Self::procedure_was): what calls of a log come to depends on the indexes that
    /// there were. Its handle may name the table as it was, or as it is. It goes if the database
    /// has it, as with [`drop_index`](Self::drop_index).
    pub fn index_was<I, K, V, O>(mut self, index: Index<I, K, V, O>) -> Self
    where
        I: Key<Owned: Borrow<I>> + ?Sized + 'static,
        K: Key + ?Sized + 'static,
        V: Data + 'static,
    {
        self.kept.indexes.push(index.registration());
        self
    }

    /// A table or a sequence gets another name, if it still has this one; nothing happens where it
    /// does not. The handle of the new name is to be registered.
    ///
    /// Keep this in the program for as long as there may be databases with the old name.
    pub fn rename_table(mut self, from: impl Into<String>, to: impl Into<String>) -> Self {
        self.renamed.push((from.into(), to.into()));
        self
    }

    /// A table or a sequence goes with all that is in it, if it is there. Its space is for other
    /// tables that are added.
    pub fn drop_table(mut self, name: impl Into<String>) -> Self {
        self.dropped.push(name.into());
        self
    }

    /// A table or a sequence stays as it is, if it is there: its rows are kept and cannot be read,
    /// its indexes come back with the next program that registers them. Without this, an open of a
    /// database with a table that the program neither registers nor drops is
    /// [refused](Error::is_schema): the program may be one of before.
    ///
    /// ```
    /// # use nvcaracal::{Database, HashTable, Table};
    /// const ACCOUNTS: HashTable<u64, i64> = Table::hash("accounts");
    /// const FEES: HashTable<u64, i64> = Table::hash("fees");
    /// # let room = tempfile::tempdir().expect("a directory");
    /// # let path = room.path().join("bank");
    /// # Database::options().table(ACCOUNTS).table(FEES).open(&path)?.close()?;
    /// let before = || Database::options().table(ACCOUNTS);
    /// let error = before().open(&path).unwrap_err();
    /// assert!(error.is_schema() && error.to_string().contains("table \"fees\""));
    /// before().ignore_table("fees").open(&path)?.close()?;
    /// # Ok::<(), nvcaracal::Error>(())
    /// ```
    pub fn ignore_table(mut self, name: impl Into<String>) -> Self {
        self.known.ignored.push(name.into());
        self
    }

    /// An index of this name goes, if it is there. [`Options::index_was`] says the same, and keeps
    /// what logs of before need of it. Without either, an open of a database with an index that the
    /// program does not register is [refused](Error::is_schema).
    pub fn drop_index(mut self, name: impl Into<String>) -> Self {
        self.known.dropped_indexes.push(name.into());
        self
    }

    /// A new table may have this name, although one that was renamed or dropped has had it. Without
    /// this such an open is [refused](Error::is_schema): a program of before would take an empty
    /// table for the one that it knew. With it, that program takes the new table for the old one,
    /// and one that renames or drops the old one does so with the new one.
    pub fn reuse_name(mut self, name: impl Into<String>) -> Self {
        self.known.reused_names.push(name.into());
        self
    }

    pub(super) fn check_indexes(&self) -> Result<()> {
        in_range("the number of indexes", self.indexes.len(), 0..=INDEXES_MAX)?;
        let table_is_there = |index: &&IndexRegistration| {
            self.shapes.iter().any(|shape| shape.tag == index.shape.table.tag)
        };
        match self.indexes.iter().find(|index| !table_is_there(index)) {
            None => Ok(()),
            Some(index) => Err(Error::mistake(format!(
                "{}: the table is not registered with this database: add it to its options",
                index.shape
            ))),
        }
    }

    /// What is renamed, dropped or ignored at one open must not be there again at the next one.
    pub(super) fn check_names(&self) -> Result<()> {
        let removed = self.renamed.iter().map(|(from, _)| from).chain(&self.dropped);
        let removed: Vec<&String> = removed.chain(&self.known.ignored).collect();
        let there = self.shapes.iter().map(|shape| shape.name);
        let mut there = there.chain(self.renamed.iter().map(|(_, to)| to.as_str()));
        let duplicate = removed.iter().enumerate().find(|(i, name)| removed[..*i].contains(name));
        let again = there.find(|name| removed.iter().any(|removed| removed == name));
        match again.or(duplicate.map(|(_, name)| name.as_str())) {
            None => Ok(()),
            Some(name) => Err(Error::mistake(format!(
                "table {name:?} is renamed, dropped or ignored, and also something else: say one \
                 thing only"
            ))),
        }
    }
}
