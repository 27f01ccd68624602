//! An engine of one partition as a rival of the testbed: the laboratory's workloads (YCSB,
//! SmallBank, TPC-C), their checks and their serial oracle, with one worker.
//!
//! A row is a tuple of one column, the value. TPC-C on one partition is the single-partition form:
//! every warehouse is local.

use std::ops::{ControlFlow, Range};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use pmem::{Counters, Device};
use testbed::{Accesses, Counts, RecoveryReport, Session, Stop};
use workloads::{IndexKind, TableId, TableSpec, Visit};

use crate::engines::{Engine, Recovery};
use crate::ground::{Footprint, Traffic};
use crate::options::Options;
use crate::partition::Partition;
use crate::schema::{Key, Schema, Table};
use crate::{Error, Result};

/// The column of a row's value.
const VALUE: usize = 0;
/// A value of that many bytes or less would have a fixed length.
const LONG_BYTES: u32 = 9;

/// An engine as the testbed uses it.
pub struct AsRival<D: Device, E: Engine<D>> {
    shared: Arc<Shared<D, E>>,
}

struct Shared<D: Device, E: Engine<D>> {
    partition: Mutex<Partition<D, E>>,
    /// Longest keys.
    keys: Vec<u32>,
}

impl<D: Device, E: Engine<D>> Shared<D, E> {
    fn lock(&self) -> MutexGuard<'_, Partition<D, E>> {
        self.partition.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn key(&self, table: TableId, bytes: &[u8]) -> Result<Key> {
        Key::of_bytes(bytes, self.keys[usize::from(table.0)])
    }

    /// The key of a bound of a scan, which may be shorter than keys are.
    fn bound(&self, table: TableId, bytes: &[u8]) -> Result<Key> {
        match self.keys[usize::from(table.0)] {
            8 if bytes.len() < 8 => {
                let mut padded = bytes.to_vec();
                padded.resize(8, 0);
                Key::of_bytes(&padded, 8)
            }
            most => Key::of_bytes(bytes, most),
        }
    }
}

fn schema(tables: &[TableSpec]) -> Result<Schema> {
    let tables = tables.iter().map(|spec| {
        let bytes = match spec.index {
            IndexKind::Sequence => 8,
            IndexKind::Hash | IndexKind::Ordered => spec.value_bytes_max.max(LONG_BYTES),
        };
        let key_bytes_max = match spec.index {
            IndexKind::Sequence => 8,
            IndexKind::Hash | IndexKind::Ordered => spec.key_bytes_max,
        };
        Table { key_bytes_max, columns: vec![bytes], indexes: Vec::new() }
    });
    Schema::new(tables.collect())
}

/// How an engine is made for a run of the testbed.
fn options(of: &testbed::Options) -> Result<Options> {
    match of.workers {
        1 => Ok(Options { group_transactions: of.group_calls.max(1), ..Options::default() }),
        workers => Err(Error::Limit(format!("{workers} workers, a partition's engine has one"))),
    }
}

impl From<Error> for testbed::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Device(error) => Self::Device(error),
            Error::Corrupt(what) => Self::Corrupt(what),
            Error::Limit(what) => Self::Limit(what),
        }
    }
}

impl From<testbed::Error> for Error {
    fn from(error: testbed::Error) -> Self {
        match error {
            testbed::Error::Device(error) => Self::Device(error),
            testbed::Error::Limit(what) => Self::Limit(what),
            other => Self::Corrupt(other.to_string()),
        }
    }
}

fn stop(error: Error) -> Stop {
    Stop::Failed(error.into())
}

impl<D: Device, E: Engine<D> + Send + 'static> AsRival<D, E> {
    fn of(partition: Partition<D, E>, tables: &Schema) -> Self {
        let keys = tables.tables.iter().map(|table| table.key_bytes_max).collect();
        Self { shared: Arc::new(Shared { partition: Mutex::new(partition), keys }) }
    }

    /// An empty one, made as the options say.
    pub(crate) fn create_with(
        device: Arc<D>,
        tables: &[TableSpec],
        options: &Options,
    ) -> Result<Self> {
        let schema = schema(tables)?;
        Ok(Self::of(Partition::create(device, &schema, options)?, &schema))
    }

    /// What such a one left.
    pub(crate) fn open_with(
        device: Arc<D>,
        tables: &[TableSpec],
        options: &Options,
    ) -> Result<(Self, Recovery)> {
        let schema = schema(tables)?;
        let (partition, did) = Partition::open(device, &schema, options)?;
        Ok((Self::of(partition, &schema), did))
    }

    /// Empties the log.
    pub(crate) fn settle(&self) -> Result<()> {
        self.shared.lock().settle()
    }

    /// What went to and from the device.
    pub(crate) fn traffic(&self) -> Traffic {
        self.shared.lock().engine().traffic()
    }

    /// Most bytes in use at a time.
    pub(crate) fn footprint_max(&self) -> Footprint {
        self.shared.lock().engine().footprint().1
    }
}

impl<D: Device, E: Engine<D> + Send + 'static> testbed::Rival for AsRival<D, E> {
    type Device = D;
    type Session = OneSession<D, E>;
    const NAME: &'static str = E::NAME;

    fn create(
        device: Arc<D>,
        tables: &[TableSpec],
        options: &testbed::Options,
    ) -> testbed::Result<Self> {
        let schema = schema(tables)?;
        let partition = Partition::create(device, &schema, &self::options(options)?)?;
        Ok(Self::of(partition, &schema))
    }

    fn open(
        device: Arc<D>,
        tables: &[TableSpec],
        options: &testbed::Options,
    ) -> testbed::Result<(Self, RecoveryReport)> {
        let schema = schema(tables)?;
        let start = Instant::now();
        let (partition, did) = Partition::open(device, &schema, &self::options(options)?)?;
        let report = RecoveryReport {
            versions: did.slots,
            rows: did.redone,
            uncommitted: did.undone,
            build_ns: start.elapsed().as_nanos() as u64,
            counters: did.engine.counters,
            ..RecoveryReport::default()
        };
        Ok((Self::of(partition, &schema), report))
    }

    fn session(&self, worker: usize) -> OneSession<D, E> {
        assert_eq!(worker, 0, "a partition has one worker");
        let counted = self.shared.lock().engine().traffic();
        let shared = Arc::clone(&self.shared);
        OneSession { shared, value: Vec::new(), counted, counts: Counts::default() }
    }

    fn for_each(&self, table: TableId, each: &mut dyn FnMut(&[u8], &[u8])) {
        let most = self.shared.keys[usize::from(table.0)];
        let visited = self.shared.lock().scan(table.0.into(), &Key::MIN, None, &mut |key, row| {
            each(&key.to_bytes(most), &row[VALUE]);
            ControlFlow::Continue(())
        });
        visited.expect("a store whose rows can be read");
    }

    fn get(&self, table: TableId, key: &[u8]) -> Option<Vec<u8>> {
        let key = self.shared.key(table, key).ok()?;
        let row = self.shared.lock().get(table.0.into(), &key);
        row.expect("a store whose rows can be read").map(|mut row| row.swap_remove(VALUE))
    }

    fn close(self) -> testbed::Result<()> {
        Ok(self.shared.lock().flush()?)
    }
}

/// The transactions of a partition.
pub struct OneSession<D: Device, E: Engine<D>> {
    shared: Arc<Shared<D, E>>,
    /// What was read last.
    value: Vec<u8>,
    counted: Traffic,
    counts: Counts,
}

impl<D: Device, E: Engine<D>> OneSession<D, E> {
    fn read(&mut self, table: TableId, key: &[u8]) -> Result<bool> {
        let key = self.shared.key(table, key)?;
        let row = self.shared.lock().get(table.0.into(), &key)?;
        let found = row.is_some();
        self.value = row.map(|mut row| row.swap_remove(VALUE)).unwrap_or_default();
        Ok(found)
    }

    /// Overwrites a row with the value that was read and changed.
    fn write_back(&mut self, table: TableId, key: &[u8]) -> Result<bool> {
        let key = self.shared.key(table, key)?;
        self.counts.tuples_written += 1;
        self.shared.lock().update(table.0.into(), &key, &[(VALUE, self.value.as_slice())])
    }
}

impl<D: Device, E: Engine<D>> Accesses for OneSession<D, E> {
    fn get(&mut self, table: TableId, key: &[u8]) -> Result<Option<&[u8]>, Stop> {
        let found = self.read(table, key).map_err(stop)?;
        Ok(found.then_some(self.value.as_slice()))
    }

    fn scan(
        &mut self,
        table: TableId,
        low: &[u8],
        high: &[u8],
        descending: bool,
        each: Visit<'_>,
    ) -> Result<(), Stop> {
        let most = self.shared.keys[usize::from(table.0)];
        let from = self.shared.bound(table, low).map_err(stop)?;
        let to = self.shared.bound(table, high).map_err(stop)?;
        let mut behind = Vec::new();
        let visited = self.shared.lock().scan(table.0.into(), &from, Some(&to), &mut |key, row| {
            if descending {
                behind.push((key.to_bytes(most), row));
                return ControlFlow::Continue(());
            }
            each(&key.to_bytes(most), &row[VALUE])
        });
        visited.map_err(stop)?;
        for (key, row) in behind.iter().rev() {
            if each(key, &row[VALUE]) == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(())
    }

    fn insert(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<(), Stop> {
        let key = self.shared.key(table, key).map_err(stop)?;
        let mut partition = self.shared.lock();
        self.counts.tuples_written += 1;
        if !partition.insert(table.0.into(), &key, &[value.to_vec()]).map_err(stop)? {
            partition.update(table.0.into(), &key, &[(VALUE, value)]).map_err(stop)?;
        }
        Ok(())
    }

    fn update(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<bool, Stop> {
        self.value = value.to_vec();
        self.write_back(table, key).map_err(stop)
    }

    fn modify(
        &mut self,
        table: TableId,
        key: &[u8],
        change: impl FnOnce(&mut [u8]),
    ) -> Result<bool, Stop> {
        if !self.read(table, key).map_err(stop)? {
            return Ok(false);
        }
        change(&mut self.value);
        self.write_back(table, key).map_err(stop)
    }

    fn modify_part(
        &mut self,
        table: TableId,
        key: &[u8],
        part: Range<usize>,
        change: impl FnOnce(&[u8], &mut [u8]),
    ) -> Result<bool, Stop> {
        if !self.read(table, key).map_err(stop)? {
            return Ok(false);
        }
        let Some(mut copy) = self.value.get(part.clone()).map(<[u8]>::to_vec) else {
            let len = self.value.len();
            return Err(stop(Error::Limit(format!("a part {part:?} of a value of {len} bytes"))));
        };
        change(&self.value, &mut copy);
        self.value[part].copy_from_slice(&copy);
        self.write_back(table, key).map_err(stop)
    }

    fn delete(&mut self, table: TableId, key: &[u8]) -> Result<bool, Stop> {
        let key = self.shared.key(table, key).map_err(stop)?;
        self.counts.tuples_written += 1;
        self.shared.lock().delete(table.0.into(), &key).map_err(stop)
    }
}

impl<D: Device, E: Engine<D> + Send + 'static> Session for OneSession<D, E> {
    fn begin(&mut self) {}

    fn commit(&mut self) -> Result<u64, Stop> {
        self.shared.lock().commit().map_err(stop)
    }

    fn give_up(&mut self) -> Result<u64, Stop> {
        let mut partition = self.shared.lock();
        partition.abort().map_err(stop)?;
        // What it read holds at a place of its own, at which nothing is written.
        partition.commit().map_err(stop)
    }

    fn roll_back(&mut self) {
        // Only a failure comes here, which is reported itself.
        let _ = self.shared.lock().abort();
    }

    fn durable(&self) -> u64 {
        self.shared.lock().engine().durable()
    }

    fn finish(&mut self) -> testbed::Result<()> {
        Ok(self.shared.lock().flush()?)
    }

    fn take_counters(&mut self) -> Counters {
        let now = self.shared.lock().engine().traffic();
        let since = now.since(&self.counted);
        self.counted = now;
        since.counters
    }

    fn count(&self) -> Counts {
        self.counts
    }
}
