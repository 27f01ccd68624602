//! The state at the end of one epoch, for as long as it is wanted.

use std::borrow::Borrow;
use std::fmt;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use engine::{HASH_PARTS, Reader, ScanPart};
use storage::{EpochNumber, TableId};

use crate::body;
use crate::data::stored;
use crate::data::value::Data;
use crate::database::handle::{Database, Inner};
use crate::error::{Error, Result};
use crate::key::bytes::Key;
use crate::sequencer::standing::Held;
use crate::sync::mpsc::sync_channel;
use crate::table::handle::{HashTable, Scannable, Sequence, Shape, Table};
use crate::table::index::Index;
use crate::table::range::{Bytes, KeyRange, LAST_WORD};
use crate::table::rows::{Of, RowPage, Rows, Source, row, undecodable};

/// Rows that are counted at a time: an epoch may wait for them.
const COUNTED_ROWS_MAX: usize = 1024;

/// The state at the end of one epoch, which stays while others write; see
/// [`Database::snapshot`](crate::Database::snapshot).
///
/// It holds every transaction that was answered before it was made, whole, and none that came
/// later. A clone is the same snapshot. Rows that are overwritten while it lives are kept in memory
/// for it, once; where all snapshots together need more than
/// [`Options::snapshot_bytes_max`](crate::Options::snapshot_bytes_max), the oldest ends, and
/// reading from it is an error from then on. Drop it when you are done.
///
/// It is read on the threads of its readers, at most a thousand rows at a time, while epochs run:
/// a reader waits for no call and no log, but for a moment where indexes change, and an epoch waits
/// for such a part at most. Where snapshots are taken at least once a second, taking one waits for
/// nothing. The first one waits for the epoch that runs
/// ([`Database::snapshot_async`](crate::Database::snapshot_async) keeps no thread meanwhile).
///
/// ```
/// # use nvcaracal::{Procedure, Stop, Table, Transaction};
/// # const PRICES: Table<u32, u64> = Table::ordered("prices");
/// # nvcaracal::plain! { struct Set { item: u32, price: u32 } }
/// # impl Procedure for Set {
/// #     const NAME: &'static str = "set";
/// #     type Output = ();
/// #     fn run(&self, tx: &mut Transaction) -> Result<(), Stop> {
/// #         tx.insert(PRICES, self.item, &self.price.into())
/// #     }
/// # }
/// # let db = nvcaracal::Database::options().table(PRICES).procedure::<Set>()
/// #     .open_device(nvcaracal::DeviceSpec::Dram)?;
/// for item in 1..=5 {
///     db.call(Set { item, price: 10 * item })?;
/// }
/// let snapshot = db.snapshot()?;
/// db.call(Set { item: 5, price: 0 })?;
///
/// assert_eq!(snapshot.get(PRICES, 5)?, Some(50));
/// let mut dearest = snapshot.range(PRICES, ..).rev();
/// assert_eq!(dearest.next().transpose()?, Some((5, 50)));
/// assert_eq!(snapshot.count(PRICES, 2..4)?, 2);
/// assert_eq!(db.get(PRICES, 5)?, Some(0));
/// # Ok::<(), nvcaracal::Error>(())
/// ```
#[derive(Clone)]
pub struct Snapshot {
    held: Arc<Held>,
    database: Arc<Inner>,
}

impl Database {
    /// Takes a snapshot of the state at the end of the newest epoch, which holds every call that
    /// was answered before. Waits for the epoch that runs now if no snapshot was asked for in the
    /// second before it began, nor during the epoch before.
    ///
    /// # Errors
    /// [`Error::is_stopped`].
    pub fn snapshot(&self) -> Result<Snapshot> {
        body::check_may_wait()?;
        if let Some(held) = self.inner.standing_snapshot()? {
            return Ok(Snapshot::of(&self.inner, held));
        }
        let (sender, receiver) = sync_channel(1);
        let waiting = move |made| {
            // No thread waits any more if the caller was killed.
            let _ = sender.send(made);
        };
        let held = match self.inner.ask_for_snapshot(Box::new(waiting))? {
            Some(held) => held,
            None => receiver.recv().unwrap_or_else(|_| Err(Error::closed()))?,
        };
        Ok(Snapshot::of(&self.inner, held))
    }
}

impl Snapshot {
    /// One that the engine has made.
    pub(super) fn of(database: &Arc<Inner>, held: Arc<Held>) -> Self {
        Self { database: Arc::clone(database), held }
    }

    /// The number of the epoch after which the state was this.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.held.epoch.0
    }

    fn number(&self, shape: &Shape) -> Result<TableId> {
        self.database.schema().number(shape).map_err(Error::mistake)
    }

    /// Reads something of it; `read` gets the number of this thread.
    fn read<R>(
        &self,
        read: impl FnOnce(&Reader, usize, EpochNumber) -> engine::Result<R>,
    ) -> Result<R> {
        let epoch = self.held.epoch;
        self.database.read_with(|reader, thread| read(reader, thread, epoch))
    }

    fn value(&self, table: TableId, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.read(|reader, thread, epoch| reader.get_at(thread, epoch, table, key))
    }

    /// Reads a row.
    ///
    /// # Errors
    /// [`Error::is_mistake`] if the table is not registered; [`Error::is_limit`] if the key is
    /// beyond its limit, or the snapshot has ended; [`Error::is_stopped`].
    pub fn get<K: Key + ?Sized, V: Data, O>(
        &self,
        table: Table<K, V, O>,
        key: impl Borrow<K>,
    ) -> Result<Option<V>> {
        let number = self.number(&table.shape)?;
        let bytes = key.borrow().with_key(|key| self.value(number, key))?;
        let Some(bytes) = bytes else { return Ok(None) };
        let value = stored::read::<V>(&bytes);
        value.map(Some).ok_or_else(|| Error::mistake(undecodable::<V>(&table.shape, "value")))
    }

    /// The rows of an ordered table in a range, in the order of their keys, from both ends.
    ///
    /// An error, of the same kinds as those of [`Snapshot::get`], is the last item.
    pub fn range<K: Key + ?Sized, V: Data, O: Scannable>(
        &self,
        table: Table<K, V, O>,
        range: impl KeyRange<K>,
    ) -> Rows<'static, K, V> {
        let wanted = self.database.schema().rows(&table, &range);
        Rows::new(self.clone(), wanted.map_err(Error::mistake))
    }

    /// How many rows of an ordered table are in a range.
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    pub fn count<K: Key + ?Sized, V: Data, O: Scannable>(
        &self,
        table: Table<K, V, O>,
        range: impl KeyRange<K>,
    ) -> Result<u64> {
        let number = self.number(&table.shape)?;
        let mut rest = Bytes::new(&table, &range);
        let mut count = 0;
        if rest.and_last {
            count += u64::from(self.value(number, &LAST_WORD)?.is_some());
        }
        while rest.low < rest.high {
            let part = scan_part(number, &rest, false, COUNTED_ROWS_MAX);
            let last = self.read(|reader, thread, epoch| {
                reader.scan_at(thread, epoch, part, &mut |_, _| {
                    count += 1;
                    ControlFlow::Continue(())
                })
            })?;
            assert!(last.as_ref().is_none_or(|last| *last >= rest.low), "the count goes back");
            rest.go_on_after(last);
        }
        Ok(count)
    }

    /// All rows of a hash table, in no order.
    ///
    /// An error, of the same kinds as those of [`Snapshot::get`], is the last item.
    pub fn all<K: Key + ?Sized, V: Data>(
        &self,
        table: HashTable<K, V>,
    ) -> impl Iterator<Item = Result<(K::Owned, V)>> + use<K, V> {
        let (snapshot, number) = (self.clone(), self.number(&table.shape));
        let part = move |part: usize| -> Result<Vec<(K::Owned, V)>> {
            let number = number.clone()?;
            let mut bytes = RowPage::default();
            snapshot.read(|reader, thread, epoch| {
                reader.visit_part_at(thread, epoch, number, part, &mut |key, value| {
                    bytes.push(key, value, usize::MAX);
                })
            })?;
            let mut rows = Vec::new();
            while let Some((key, value)) = bytes.take_first() {
                rows.push(row::<K, V>(&table.shape, key, value).map_err(Error::mistake)?);
            }
            Ok(rows)
        };
        let mut has_failed = false;
        (0..HASH_PARTS)
            .map_while(move |number| {
                let rows = (!has_failed).then(|| part(number))?;
                has_failed = rows.is_err();
                Some(rows)
            })
            .flat_map(|rows| {
                let (rows, error) = match rows {
                    Ok(rows) => (rows, None),
                    Err(error) => (Vec::new(), Some(Err(error))),
                };
                rows.into_iter().map(Ok).chain(error)
            })
    }

    /// The rows that an index has under keys in a range, in the order of those keys, from both
    /// ends.
    ///
    /// An error, of the same kinds as those of [`Snapshot::get`], is the last item.
    pub fn range_by<I: Key + ?Sized, K: Key + ?Sized, V: Data, O>(
        &self,
        index: Index<I, K, V, O>,
        range: impl KeyRange<I>,
    ) -> Rows<'static, K, V> {
        let wanted = self.database.schema().rows_by(&index, &range);
        Rows::new(self.clone(), wanted.map_err(Error::mistake))
    }

    /// The first row that an index has under a key: of a unique index the only one.
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    pub fn get_by<I: Key + ?Sized, K: Key + ?Sized, V: Data, O>(
        &self,
        index: Index<I, K, V, O>,
        key: impl Borrow<I>,
    ) -> Result<Option<(K::Owned, V)>> {
        let key = key.borrow();
        self.range_by(index, (Bound::Included(key), Bound::Included(key))).next().transpose()
    }

    /// What the next transaction that allocated from a sequence got.
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    pub fn sequence(&self, sequence: Sequence) -> Result<u64> {
        let number = self.number(&sequence.shape)?;
        let next = self.value(number, &sequence.key.to_be_bytes())?;
        Ok(next.and_then(|next| next.try_into().ok()).map_or(0, u64::from_le_bytes))
    }
}

/// A part of a table as the engine takes it.
fn scan_part(table: TableId, range: &Bytes, is_descending: bool, rows_max: usize) -> ScanPart<'_> {
    ScanPart { table, low: &range.low, high: &range.high, is_descending, rows_max }
}

impl Source for Snapshot {
    type Error = Error;

    fn sizes(&self, of: Of) -> (usize, usize) {
        match of {
            Of::Table(_) => (64, 1024),
            Of::Index(_) => (16, 256),
        }
    }

    fn part(
        &mut self,
        of: Of,
        range: &Bytes,
        is_descending: bool,
        rows_max: usize,
    ) -> Result<RowPage> {
        let mut found = RowPage::default();
        let each: engine::Visit<'_> = &mut |key, value| match found.push(key, value, rows_max) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        let part = |number| scan_part(number, range, is_descending, rows_max);
        let last = self.read(|reader, thread, epoch| match of {
            Of::Table(table) => reader.scan_at(thread, epoch, part(table), each),
            Of::Index(index) => reader.scan_index_at(thread, epoch, part(TableId(index)), each),
        });
        found.last = last?;
        Ok(found)
    }

    fn value(&mut self, table: TableId, key: &[u8]) -> Result<Option<Vec<u8>>> {
        Self::value(self, table, key)
    }

    fn mistake(&mut self, what: String) -> Error {
        Error::mistake(what)
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("epoch", &self.held.epoch).finish_non_exhaustive()
    }
}
