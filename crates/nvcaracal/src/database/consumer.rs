//! Consumers: readers of changes whose positions outlive the process.

use std::fmt;
use std::io;
use std::sync::Arc;

use storage::ChangeLog;

use crate::data::value::Data;
use crate::database::changes::{Changes, Start};
use crate::database::handle::Database;
use crate::error::{Error, Result};
use crate::feed::logged::failed;
use crate::host::driver::Driver;
use crate::key::bytes::Key;
use crate::table::handle::Table;

/// The longest name of a consumer, in bytes.
const NAME_BYTES_MAX: usize = 255;

/// A named reader of the changes of a table, which goes on where it was after the database was
/// closed or the process has died; see [`Database::consumer`].
///
/// Every change is handed out at least once, in its order: changes after the last
/// [`confirm`](Consumer::confirm) come again after a restart. A consumer that passes changes on
/// names the epoch with them, so that its receiver can tell what comes again. One handle at a time
/// reads as a consumer: two would each get all changes, and the position is what either confirms
/// last.
///
/// # How much is kept
///
/// What a consumer has not confirmed is kept in the directory of the database, up to
/// [`Tuning::consumer_bytes_max`](crate::Tuning::consumer_bytes_max) over all tables; then the
/// oldest changes are deleted. No call waits for a consumer. One that is too slow is told with
/// [`Error::kept_after`]: it takes a [snapshot](Database::snapshot), reads what it needs from that,
/// [goes on after](Changes::go_on_after) its epoch, and confirms that.
///
/// A consumer is told the same, with the reason, where files of changes are missing or damaged, and
/// in a database that was [restored](Database::restore) or opened as a
/// [backup](Database::backup): a copy has no changes and no positions. Nothing is skipped in
/// silence.
pub struct Consumer<K: Key + ?Sized, V> {
    name: String,
    changes: Changes<K, V>,
}

/// A consumer, as [`Database::consumers`] lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConsumerPosition {
    /// Its name.
    pub name: String,
    /// The table that it follows.
    pub table: String,
    /// The epoch up to which it has confirmed.
    pub epoch: u64,
    /// Changes of later epochs than this one are kept. If it is later than `epoch`, the consumer
    /// has missed some.
    pub kept_after: u64,
}

impl Database {
    /// The consumer of a name, which follows a table. A new one begins with the changes after the
    /// last epoch, and is durable when this returns; one that is known goes on after the epoch that
    /// it has confirmed.
    ///
    /// ```
    /// use nvcaracal::{Database, Stop, Table, Transaction, procedure};
    ///
    /// const ORDERS: Table<u64, String> = Table::ordered("orders");
    ///
    /// #[procedure]
    /// fn order(tx: &mut Transaction, number: u64, what: String) -> Result<(), Stop> {
    ///     tx.insert(ORDERS, number, &what)
    /// }
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("shop");
    /// let open = || Database::options().table(ORDERS).procedure::<Order>().open(&path);
    /// let db = open()?;
    /// db.consumer("mailer", ORDERS)?;
    /// db.call(Order { number: 1, what: "a chair".into() })?;
    /// db.close()?;
    ///
    /// let db = open()?;
    /// let mut mailer = db.consumer("mailer", ORDERS)?;
    /// while let Some(order) = mailer.changes().try_next()? {
    ///     assert_eq!((order.key, order.after.as_deref()), (1, Some("a chair")));
    /// }
    /// mailer.confirm()?;
    /// # Ok::<(), nvcaracal::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::is_mistake`] if the database is not on `file` or only read, if the table is not
    /// registered, if the consumer follows another table, and for a name that is empty or longer
    /// than 255 bytes; the file system's if the position cannot be written;
    /// [`Error::is_stopped`].
    pub fn consumer<K: Key + ?Sized, V: Data, O>(
        &self,
        name: &str,
        table: Table<K, V, O>,
    ) -> Result<Consumer<K, V>> {
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            let what =
                format!("a consumer's name has 1 to {NAME_BYTES_MAX} bytes, not {}", name.len());
            return Err(Error::mistake(what));
        }
        let log = Arc::clone(self.change_log()?);
        let (of_start, table_name) = (name.to_owned(), table.shape.name);
        let start = move |driver: &mut Driver, number| {
            // No program that does not know of consumers may go on without them.
            driver.require_consumers()?;
            let epoch = driver.status().epoch;
            let after = log.add_consumer(&of_start, (number, table_name), epoch);
            let after = after.map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => Error::mistake(error.to_string()),
                _ => failed(&log, "write consumers to", error),
            })?;
            Ok(Start { after: Some(after), may_miss: true })
        };
        let changes = self.open_changes(table.shape, start)?;
        Ok(Consumer { name: name.into(), changes })
    }

    /// Forgets a consumer; changes are no longer kept for it. Returns whether there was one.
    ///
    /// # Errors
    /// [`Error::is_mistake`] if the database is not on `file` or only read; the file system's if
    /// that cannot be written; [`Error::is_stopped`].
    pub fn drop_consumer(&self, name: &str) -> Result<bool> {
        let (log, name) = (Arc::clone(self.change_log()?), name.to_owned());
        self.inner.request(move |driver| {
            let dropped = log.drop_consumer(&name);
            let was_there = dropped.map_err(|error| failed(&log, "write consumers to", error))?;
            driver.watch_again();
            Ok(was_there)
        })
    }

    /// All consumers, by name.
    ///
    /// # Errors
    /// [`Error::is_mistake`] if the database is not on `file` or only read.
    pub fn consumers(&self) -> Result<Vec<ConsumerPosition>> {
        let log = self.change_log()?;
        let position = |known: storage::ConsumerPosition| ConsumerPosition {
            kept_after: log.kept(known.table).map_or(known.epoch, |kept| kept.after).0,
            name: known.name,
            table: known.table_name,
            epoch: known.epoch.0,
        };
        Ok(log.consumers().into_iter().map(position).collect())
    }

    fn change_log(&self) -> Result<&Arc<ChangeLog>> {
        self.inner.shared().change_log.as_ref().ok_or_else(|| {
            let what = "consumers are for databases in a directory (file:DIRECTORY) that may be \
                        written; this one is on";
            Error::mistake(format!("{what} {}", self.device()))
        })
    }
}

impl<K: Key + ?Sized, V: Data> Consumer<K, V> {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The changes that come next.
    pub fn changes(&mut self) -> &mut Changes<K, V> {
        &mut self.changes
    }

    /// Confirms the changes of all epochs that were handed out whole
    /// ([`Changes::epoch`]): they do not come again. Durable when this returns, which takes two
    /// syncs of the disk, so confirm seldom where changes are many.
    ///
    /// # Errors
    /// [`Error::is_mistake`] if the consumer was dropped; [`Error::is_stopped`] once the database
    /// is closed or has stopped, as another process may have it; the file system's if the position
    /// cannot be written: then it is where it was, or where it was to be.
    pub fn confirm(&mut self) -> Result<()> {
        self.changes.confirm(&self.name)
    }
}

impl<K: Key + ?Sized, V> fmt::Debug for Consumer<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, changes } = self;
        f.debug_struct("Consumer").field("name", name).field("changes", changes).finish()
    }
}
