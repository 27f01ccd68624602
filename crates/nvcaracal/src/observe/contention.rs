//! The rows that calls contend for, over the last epochs.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use storage::{EpochNumber, TableId};

use crate::dynamic::{RowTypes, Value};
use crate::key::bytes::Key;
use crate::table::handle::Shape;
use crate::table::schema::Schema;

/// The rows that calls contended for in the last epochs. See
/// [`Database::contention`](crate::Database::contention).
#[derive(Debug, Default, Clone)]
#[non_exhaustive]
pub struct Contention {
    /// Epochs that it is about: as many as
    /// [`Options::contention_epochs`](crate::Options::contention_epochs) says, or all since the
    /// database was opened. Epochs without a contended row count, too.
    pub epochs: usize,
    /// Number of the last of them.
    pub last_epoch: u64,
    /// The rows, those that most calls wrote first. Rows that had but one writer whenever a worker
    /// waited for them come last, those that were waited for longest first.
    pub rows: Vec<ContendedRow>,
}

/// What calls did to a row for which they contended.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ContendedRow {
    /// The name of its table.
    pub table: &'static str,
    /// Its key as the table's type has it, for people: `7`, `"Ada"`, `[3,1]`.
    pub key: Value,
    /// Its key as the engine has it: [`ContendedRow::key_as`] reads it.
    pub key_bytes: Box<[u8]>,
    /// Calls that wrote it, in the epochs in which several did. A call counts that wrote it or had
    /// declared that it might, whether it committed or not; the runs of a call that was deferred
    /// count each. The same for any number of workers.
    pub writers: u64,
    /// Epochs in which several calls wrote it.
    pub epochs: u64,
    /// How often a call had to wait for another one's version of it.
    pub waits: u64,
    /// How long these waits were, added up.
    pub waited: Duration,
}

impl ContendedRow {
    /// Its key, if it is of this type.
    #[must_use]
    pub fn key_as<K: Key + ?Sized>(&self) -> Option<K::Owned> {
        K::from_key(&self.key_bytes)
    }
}

impl fmt::Display for Contention {
    /// A table for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { epochs, last_epoch, rows } = self;
        writeln!(f, "most contended rows of {epochs} epochs up to {last_epoch}")?;
        let head = ["writers", "epochs", "waits", "waited us"];
        let [a, b, c, d] = head;
        writeln!(f, "{a:>12} {b:>8} {c:>10} {d:>12}  row")?;
        for row in rows {
            let ContendedRow { table, key, writers, epochs, waits, waited, .. } = row;
            let us = waited.as_micros();
            writeln!(f, "{writers:>12} {epochs:>8} {waits:>10} {us:>12}  {table} {key}")?;
        }
        Ok(())
    }
}

/// The contended rows of one epoch.
type OfEpoch = Arc<[engine::ContendedRow]>;

/// The contended rows of the last epochs.
#[derive(Debug)]
pub(crate) struct Window {
    epochs_max: usize,
    epochs: VecDeque<OfEpoch>,
    last_epoch: EpochNumber,
}

impl Window {
    /// Of so many epochs; of none, if it is not asked for.
    pub(crate) fn new(epochs_max: usize) -> Self {
        Self { epochs_max, epochs: VecDeque::new(), last_epoch: EpochNumber::ZERO }
    }

    /// An epoch has ended.
    pub(crate) fn add(&mut self, epoch: EpochNumber, rows: Vec<engine::ContendedRow>) {
        if self.epochs_max == 0 {
            return;
        }
        if self.epochs.len() == self.epochs_max {
            self.epochs.pop_front();
        }
        assert!(epoch > self.last_epoch, "epoch {epoch} comes after {}", self.last_epoch);
        self.epochs.push_back(rows.into());
        assert!(self.epochs.len() <= self.epochs_max, "{} epochs are kept", self.epochs.len());
        self.last_epoch = epoch;
    }

    /// The epochs, to be added up where no caller waits for it, and the number of the last one.
    pub(crate) fn epochs(&self) -> Epochs {
        Epochs { contended: self.epochs.iter().cloned().collect(), last: self.last_epoch }
    }
}

/// The names of tables, and the types of their rows where these are of the kind that can be read.
#[derive(Debug, Default)]
pub(crate) struct Names(BTreeMap<TableId, (&'static str, Option<RowTypes>)>);

impl Names {
    pub(crate) fn new(schema: &Schema, shapes: &[Shape]) -> Self {
        let name = |shape: &Shape| {
            let types = RowTypes::parse(&shape.schema().types).ok();
            Some((schema.number(shape).ok()?, (shape.name, types)))
        };
        Self(shapes.iter().filter_map(name).collect())
    }

    fn name(&self, table: TableId, key: &[u8]) -> (&'static str, Value) {
        match self.0.get(&table) {
            Some((name, Some(types))) => (name, types.key(key)),
            Some((name, None)) => (name, Value::Bytes(key.to_vec())),
            None => ("?", Value::Bytes(key.to_vec())),
        }
    }
}

#[derive(Debug, Default)]
struct Sum {
    writers: u64,
    epochs: u64,
    waits: u64,
    waited_ns: u64,
}

/// Epochs that are added up.
pub(crate) struct Epochs {
    contended: Vec<OfEpoch>,
    /// The number of the last one.
    last: EpochNumber,
}

/// Adds epochs up, and names the first rows.
pub(crate) fn add_up(epochs: Epochs, names: &Names, rows_max: usize) -> Contention {
    let Epochs { contended: epochs, last: last_epoch } = epochs;
    let mut sums: BTreeMap<(u16, &[u8]), Sum> = BTreeMap::new();
    for row in epochs.iter().flat_map(|rows| rows.iter()) {
        let sum = sums.entry((row.table.0, &row.key)).or_default();
        sum.writers += u64::from(row.writers);
        sum.epochs += u64::from(row.writers > 0);
        sum.waits += row.waits;
        sum.waited_ns += row.waited_ns;
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    // Times differ from run to run, so they decide only where there are no writers to count.
    let ns_of_readers = |sum: &Sum| if sum.writers == 0 { sum.waited_ns } else { 0 };
    sums.sort_by_key(|(_, sum)| Reverse((sum.writers, ns_of_readers(sum))));
    let row = |((number, key), sum): ((u16, &[u8]), Sum)| {
        let (table, shown) = names.name(TableId(number), key);
        let Sum { writers, epochs, waits, waited_ns } = sum;
        let waited = Duration::from_nanos(waited_ns);
        ContendedRow { table, key: shown, key_bytes: key.into(), writers, epochs, waits, waited }
    };
    let rows = sums.into_iter().take(rows_max).map(row).collect();
    Contention { epochs: epochs.len(), last_epoch: last_epoch.0, rows }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(key: u8, writers: u32, waited_ns: u64) -> engine::ContendedRow {
        let waits = u64::from(waited_ns > 0);
        engine::ContendedRow { table: TableId(0), key: [key].into(), writers, waits, waited_ns }
    }

    #[test]
    fn a_window_forgets_the_epoch_that_is_too_old_and_adds_up_the_others() {
        let mut window = Window::new(2);
        window.add(EpochNumber(7), vec![row(1, 100, 5)]);
        window.add(EpochNumber(8), vec![row(1, 3, 1), row(2, 4, 0), row(3, 0, 8)]);
        window.add(EpochNumber(9), vec![row(1, 2, 1), row(2, 4, 0), row(4, 0, 9), row(5, 8, 0)]);
        let found = add_up(window.epochs(), &Names::default(), 4);
        assert_eq!((found.epochs, found.last_epoch), (2, 9));
        let of = |row: &ContendedRow| (row.key_bytes[0], row.writers, row.epochs);
        let rows: Vec<_> = found.rows.iter().map(of).collect();
        assert_eq!(rows, [(2, 8, 2), (5, 8, 1), (1, 5, 2), (4, 0, 0)]);
        assert_eq!((found.rows[2].waits, found.rows[2].waited), (2, Duration::from_nanos(2)));
        let mut none = Window::new(0);
        none.add(EpochNumber(1), vec![row(1, 2, 3)]);
        assert_eq!(add_up(none.epochs(), &Names::default(), 4).epochs, 0);
    }
}
