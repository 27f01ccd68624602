//! A reader of the changes of one table.

use std::fmt;
use std::future::poll_fn;
use std::io::ErrorKind;
use std::marker::PhantomData;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use storage::{EpochNumber, TableId};

use crate::body;
use crate::data::stored;
use crate::data::value::Data;
use crate::database::handle::{Database, Inner};
use crate::error::{Error, Result};
use crate::feed::kept::{Feeds, NextChanges, OfEpoch};
use crate::feed::logged::{Logged, failed};
use crate::host::driver::Driver;
use crate::key::bytes::Key;
use crate::sequencer::run::Shared;
use crate::table::handle::{Shape, Table};
use crate::table::rows::undecodable;

/// How a row has changed in an epoch: [`Changes`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change<K, V> {
    /// The epoch.
    pub epoch: u64,
    /// The key of the row.
    pub key: K,
    /// The row before the epoch; `None` if there was none.
    pub before: Option<V>,
    /// The row after the epoch; `None` if there is none.
    pub after: Option<V>,
}

/// The changes of a table, in order; see [`Database::changes`].
///
/// Where a table is changed by several calls of an epoch there is one change for each row that is
/// another one after the epoch than before it: together they are the difference of two states.
/// Epochs come in their order, and the changes of an epoch by key, as bytes. What they lead to is
/// what a [`Snapshot`](crate::Snapshot) of the epoch has.
///
/// # How much is kept
///
/// Changes are kept in memory while the table has a feed, up to
/// [`Options::change_bytes_max`](crate::Options::change_bytes_max) over all tables; then the oldest
/// are forgotten. No call waits for a reader. One that is too slow gets an error
/// ([`Error::kept_after`]): it takes a snapshot, reads what it needs from that, and
/// [goes on after](Changes::go_on_after) its epoch. So does one that begins with a table that has
/// rows, or that finds after a crash that it does not know what it has seen.
///
/// ```
/// use std::collections::BTreeMap;
///
/// use nvcaracal::{Database, DeviceSpec, Stop, Table, Transaction, procedure};
///
/// const STOCK: Table<u32, u64> = Table::ordered("stock");
///
/// #[procedure]
/// fn put(tx: &mut Transaction, item: u32, pieces: u64) -> Result<(), Stop> {
///     tx.insert(STOCK, item, &pieces)
/// }
///
/// # let options = Database::options().table(STOCK).procedure::<Put>();
/// # let db = options.open_device(DeviceSpec::Dram)?;
/// db.call(Put { item: 1, pieces: 10 })?;
///
/// // First the feed, then the rows that are there.
/// let mut changes = db.changes(STOCK, None)?;
/// let snapshot = db.snapshot()?;
/// let mut copy = snapshot.range(STOCK, ..).collect::<Result<BTreeMap<_, _>, _>>()?;
/// changes.go_on_after(snapshot.epoch())?;
///
/// db.call(Put { item: 1, pieces: 7 })?;
/// let change = changes.next_change()?;
/// assert_eq!((change.key, change.before, change.after), (1, Some(10), Some(7)));
/// copy.extend(change.after.map(|pieces| (change.key, pieces)));
/// # assert_eq!(copy[&1], 7);
/// assert!(changes.try_next()?.is_none());
/// # Ok::<(), nvcaracal::Error>(())
/// ```
pub struct Changes<K: Key + ?Sized, V> {
    open: OpenFeed,
    /// What is not in memory, where the database has a change log.
    logged: Option<Logged>,
    shape: Shape,
    /// All changes up to this epoch were handed out ...
    seen: EpochNumber,
    /// ... and the first of those of this one.
    current: Option<Current>,
    types: PhantomData<Marks<K, V>>,
}

/// The types of a table, as something that is only passed around.
type Marks<K, V> = fn(&K) -> V;

struct Current {
    epoch: EpochNumber,
    changes: OfEpoch,
    next: usize,
}

/// A feed, as long as it is read.
struct OpenFeed {
    database: Arc<Inner>,
    table: TableId,
}

impl Drop for OpenFeed {
    fn drop(&mut self) {
        let (shared, table) = (Arc::clone(self.database.shared()), self.table);
        let of_close = Arc::clone(&shared);
        // A database that is closed watches nothing.
        let _ = shared.queue.request(Box::new(move |driver| {
            let tables = of_close.feeds.close(table);
            if let Ok(driver) = driver {
                watch(&of_close, driver, &tables).expect("these tables are watched already");
            }
        }));
    }
}

/// Tells the engine which tables have feeds.
pub(super) fn watch(shared: &Shared, driver: &mut Driver, tables: &[TableId]) -> Result<()> {
    Ok(driver.watch_changes(tables, shared.feeds.bytes_max)?)
}

impl Database {
    /// The changes of a table after an epoch; `None`: after the last one that has ended. That of a
    /// [`Snapshot`](crate::Snapshot) is [known](crate::Snapshot::epoch), and so is that up to which
    /// a feed [was read](Changes::epoch), also where the database was closed since. Waits for the
    /// epoch that runs now.
    ///
    /// While a table has a feed its changes are kept in memory, and while it has a
    /// [consumer](Database::consumer), in the directory of the database; where it has neither, they
    /// are not, and cost nothing.
    ///
    /// # Errors
    /// [`Error::kept_after`] if changes after that epoch are not kept (any more);
    /// [`Error::is_mistake`] if the epoch is still to come, or the table is not registered;
    /// [`Error::is_stopped`].
    pub fn changes<K: Key + ?Sized, V: Data, O>(
        &self,
        table: Table<K, V, O>,
        after: impl Into<Option<u64>>,
    ) -> Result<Changes<K, V>> {
        let after = after.into().map(EpochNumber);
        self.open_changes(table.shape, move |_, _| Ok(Start { after, may_miss: false }))
    }

    /// Opens a feed for a reader that begins where `start` says, which is asked between two epochs.
    pub(super) fn open_changes<K: Key + ?Sized, V: Data>(
        &self,
        shape: Shape,
        start: impl FnOnce(&mut Driver, TableId) -> Result<Start> + Send + 'static,
    ) -> Result<Changes<K, V>> {
        let number = self.inner.schema().number(&shape).map_err(Error::mistake)?;
        let shared = Arc::clone(self.inner.shared());
        let seen = self.inner.request(move |driver| {
            let start = start(driver, number)?;
            let epoch = driver.status().epoch;
            let (seen, tables) = open_feed(&shared, number, start, epoch)?;
            let watched = watch(&shared, driver, &tables);
            watched.inspect_err(|_| drop(shared.feeds.close(number))).map(|()| seen)
        })?;
        let logged = self.inner.shared().change_log.as_ref();
        let logged = logged.map(|log| Logged::new(log, number));
        let open = OpenFeed { database: Arc::clone(&self.inner), table: number };
        Ok(Changes { open, logged, shape, seen, current: None, types: PhantomData })
    }
}

/// Where a reader begins.
#[derive(Clone, Copy)]
pub(super) struct Start {
    /// After this epoch; `None`: after the last one.
    pub(super) after: Option<EpochNumber>,
    /// Whether it opens all the same where changes after that epoch are not kept; its first read
    /// says so.
    pub(super) may_miss: bool,
}

/// Opens a feed; changes that are not in memory are to be in the change log. Returns the epoch
/// after which the reader begins, and which tables have feeds now.
fn open_feed(
    shared: &Shared,
    table: TableId,
    start: Start,
    epoch: EpochNumber,
) -> Result<(EpochNumber, Vec<TableId>)> {
    let error = match shared.feeds.open(table, start.after, epoch) {
        Err(error) if error.kept_after().is_some() => error,
        known => return known,
    };
    let after = start.after.expect("changes after the last epoch are kept");
    if !start.may_miss {
        match &shared.change_log {
            Some(log) => Logged::new(log, table).check(after, error)?,
            None => return Err(error),
        }
    }
    let (_, tables) = shared.feeds.open(table, None, epoch)?;
    Ok((after, tables))
}

impl<K: Key + ?Sized, V: Data> Changes<K, V> {
    /// The next change; waits until there is one.
    ///
    /// # Errors
    /// [`Error::kept_after`] if the changes that come next are no longer kept: nothing was
    /// skipped, and [`Changes::go_on_after`] goes on. [`Error::is_stopped`] once the database is
    /// closed or has stopped, and all changes before were read. [`Error::is_mistake`] for rows of
    /// another type.
    pub fn next_change(&mut self) -> Result<Change<K::Owned, V>> {
        loop {
            if let Some(change) = self.next_until(None)? {
                return Ok(change);
            }
        }
    }

    /// The next change, if there is one by now.
    ///
    /// # Errors
    /// As [`Changes::next_change`].
    pub fn try_next(&mut self) -> Result<Option<Change<K::Owned, V>>> {
        self.check_usable()?;
        self.step(|this| this.feeds().find(this.open.table, this.seen))
    }

    /// The next change; waits for one, but no longer than this.
    ///
    /// # Errors
    /// As [`Changes::next_change`].
    pub fn next_timeout(&mut self, most: Duration) -> Result<Option<Change<K::Owned, V>>> {
        self.next_until(Instant::now().checked_add(most))
    }

    /// [`Changes::next_change`] for a task of any runtime.
    ///
    /// # Errors
    /// As [`Changes::next_change`].
    pub async fn next_async(&mut self) -> Result<Change<K::Owned, V>> {
        poll_fn(|context| {
            if let Err(error) = self.check_usable() {
                return Poll::Ready(Err(error));
            }
            let found = self.step(|this| {
                this.feeds().find_or_wake(this.open.table, this.seen, context.waker())
            });
            match found {
                Ok(Some(change)) => Poll::Ready(Ok(change)),
                Ok(None) => Poll::Pending,
                Err(error) => Poll::Ready(Err(error)),
            }
        })
        .await
    }

    /// The epoch up to which all changes were handed out: [`Database::changes`] with it goes on
    /// from here. Changes of a later epoch that were handed out come again then.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.seen.0
    }

    /// Goes on with the changes after an epoch, a later one or an earlier one.
    ///
    /// # Errors
    /// [`Error::kept_after`] if they are not kept; [`Error::is_mistake`] if the epoch is still to
    /// come. Nothing has changed then.
    pub fn go_on_after(&mut self, epoch: u64) -> Result<()> {
        self.check_usable()?;
        let epoch = EpochNumber(epoch);
        match (self.feeds().check_kept(self.open.table, epoch), &self.logged) {
            (Err(error), Some(logged)) if error.kept_after().is_some() => {
                logged.check(epoch, error)?;
            }
            (checked, _) => checked?,
        }
        (self.seen, self.current) = (epoch, None);
        self.logged.iter_mut().for_each(Logged::clear);
        Ok(())
    }

    /// Confirms what was handed out whole, for a consumer.
    pub(super) fn confirm(&self, name: &str) -> Result<()> {
        self.check_usable()?;
        let log = self.open.database.shared().change_log.as_ref().expect("it has consumers");
        log.confirm(name, self.seen).map_err(|error| match error.kind() {
            ErrorKind::NotFound => Error::mistake(error.to_string()),
            ErrorKind::NotConnected => self.feeds().ended().unwrap_or_else(Error::closed),
            _ => failed(log, "write consumers to", error),
        })
    }

    fn feeds(&self) -> &Feeds {
        &self.open.database.shared().feeds
    }

    fn check_usable(&self) -> Result<()> {
        body::check_outside()?;
        self.open.database.shared().queue.check_here()
    }

    fn next_until(&mut self, until: Option<Instant>) -> Result<Option<Change<K::Owned, V>>> {
        self.check_usable()?;
        self.step(|this| this.feeds().find_or_wait(this.open.table, this.seen, until))
    }

    /// What `find` finds in memory, or what comes before that in the change log.
    fn found(&mut self, find: impl Fn(&Self) -> Result<NextChanges>) -> Result<NextChanges> {
        loop {
            let error = match find(self) {
                Err(error) => error,
                found => return found,
            };
            let in_memory_after = error.kept_after().map(EpochNumber);
            let (Some(in_memory_after), Some(logged)) = (in_memory_after, &mut self.logged) else {
                return Err(error);
            };
            if let Some((epoch, rows)) = logged.next(self.seen, in_memory_after, error)? {
                return Ok(NextChanges::Changes(epoch, rows));
            }
            self.seen = in_memory_after;
        }
    }

    /// The next change, of the epoch that is being read or of what is found behind it.
    fn step(
        &mut self,
        find: impl Fn(&Self) -> Result<NextChanges>,
    ) -> Result<Option<Change<K::Owned, V>>> {
        loop {
            if let Some(current) = &mut self.current {
                let (epoch, next) = (current.epoch, current.next);
                if let Some(change) = current.changes.get(next) {
                    let change = decode::<K, V>(&self.shape, epoch, change)?;
                    current.next += 1;
                    return Ok(Some(change));
                }
                (self.seen, self.current) = (epoch, None);
            }
            match self.found(&find)? {
                NextChanges::Changes(epoch, changes) => {
                    self.current = Some(Current { epoch, changes, next: 0 });
                }
                NextChanges::NothingUpTo(epoch) => {
                    self.seen = epoch;
                    return Ok(None);
                }
            }
        }
    }
}

fn decode<K: Key + ?Sized, V: Data>(
    shape: &Shape,
    epoch: EpochNumber,
    change: &engine::Change,
) -> Result<Change<K::Owned, V>> {
    let key = K::from_key(&change.key)
        .ok_or_else(|| Error::mistake(undecodable::<K::Owned>(shape, "key")))?;
    let value = |bytes: &Option<Box<[u8]>>| {
        let read = |bytes: &[u8]| {
            stored::read::<V>(bytes).ok_or_else(|| Error::mistake(undecodable::<V>(shape, "value")))
        };
        bytes.as_deref().map(read).transpose()
    };
    let epoch = epoch.0;
    Ok(Change { epoch, key, before: value(&change.before)?, after: value(&change.after)? })
}

impl<K: Key + ?Sized, V> fmt::Debug for Changes<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Changes").field("epoch", &self.seen.0).finish_non_exhaustive()
    }
}
