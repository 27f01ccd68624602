//! What a comparison came to, for machines and for people.

mod text;

use bench::report::Spread;
use serde::Serialize;

use crate::databases::Database;
use crate::order::Measured;
use crate::settings::{Chosen, Load, Settings};

pub use text::render;

/// One database under one load.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// Name and version.
    pub peer: String,
    /// Threads that waited at the same time.
    pub clients: usize,
    /// Of ten operations so many read.
    pub read_ratio: u64,
    /// Rows that operations chose from.
    pub rows: Chosen,
    /// Why there are no figures, or not those of all rounds.
    pub does_not_run: Option<String>,
    /// Transactions of all rounds.
    pub transactions: u64,
    /// The figures; none if it did not run.
    #[serde(flatten)]
    pub figures: Option<Figures>,
}

/// What is measured.
#[derive(Debug, Clone, Serialize)]
pub struct Figures {
    /// Transactions in a second.
    pub per_second: Spread,
    /// Half of the transactions took at most this, nanoseconds.
    pub p50_ns: Spread,
    /// 99 of 100 took at most this.
    pub p99_ns: Spread,
    /// `p50_ns` in units of what the disk took by itself shortly before.
    pub p50_of_fdatasync: Spread,
    /// Processor time of the database's process for a transaction, callers included, microseconds.
    pub cpu_us: Spread,
    /// Bytes that the process wrote to the disk for a transaction; none where the system does not
    /// count them.
    pub written_bytes: Option<Spread>,
}

impl Row {
    /// Of measurements, each with what the disk took shortly before.
    pub(crate) fn new(
        peer: String,
        load: Load,
        measured: &[(Measured, u64)],
        does_not_run: Option<String>,
    ) -> Self {
        let Load { clients, read_ratio, rows } = load;
        let transactions = measured.iter().map(|(of, _)| of.transactions).sum();
        let figures = Figures::of(measured);
        Self { peer, clients, read_ratio, rows, does_not_run, transactions, figures }
    }
}

impl Figures {
    fn of(measured: &[(Measured, u64)]) -> Option<Self> {
        let spread = |of: fn(&Measured) -> f64| Spread::of(measured.iter().map(|(m, _)| of(m)));
        fn count(of: &Measured) -> f64 {
            of.transactions.max(1) as f64
        }
        let written: Option<Vec<f64>> = measured
            .iter()
            .map(|(of, _)| of.written_bytes.map(|bytes| bytes as f64 / count(of)))
            .collect();
        let of_fdatasync = |(of, sync_ns): &(Measured, u64)| of.p50_ns as f64 / *sync_ns as f64;
        Some(Self {
            per_second: spread(|of| of.transactions as f64 / of.seconds)?,
            p50_ns: spread(|of| of.p50_ns as f64)?,
            p99_ns: spread(|of| of.p99_ns as f64)?,
            p50_of_fdatasync: Spread::of(measured.iter().map(of_fdatasync))?,
            cpu_us: spread(|of| of.cpu_ns as f64 / 1000.0 / count(of))?,
            written_bytes: written.and_then(Spread::of),
        })
    }
}

/// One database after all loads.
#[derive(Debug, Clone, Serialize)]
pub struct AtEnd {
    /// Name and version.
    pub peer: String,
    /// The way that was chosen for it.
    pub way: String,
    /// Why it did not run, or not to the end.
    pub does_not_run: Option<String>,
    /// How long it took to load the rows.
    pub load_seconds: Option<f64>,
    /// Rows that were compared with what was answered after it was closed and opened again.
    pub checked_rows: Option<u64>,
    /// Updates of rows that were answered.
    pub updates: Option<u64>,
    /// Bytes that were written after loading, what was written later and at the close included,
    /// for each of them.
    pub written_bytes_per_update: Option<f64>,
    /// Bytes of its files on the disk after the last load.
    pub disk_bytes: Option<u64>,
    /// The same once it was closed.
    pub closed_disk_bytes: Option<u64>,
}

/// All of it.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Where the databases were.
    pub directory: String,
    /// That is in memory, so that nothing was durable.
    pub is_memory: bool,
    /// Seconds of each measurement.
    pub seconds: f64,
    /// Measurements of each row.
    pub rounds: u64,
    /// Rows of the table.
    pub table_rows: u64,
    /// Bytes of each value.
    pub value_bytes: usize,
    /// Operations of a transaction.
    pub operations: usize,
    /// The limit of memory of each database, if there was one.
    pub memory_bytes: Option<u64>,
    /// Databases that this build has.
    pub built: Vec<&'static str>,
    /// Databases that it could have.
    pub not_built: Vec<&'static str>,
    /// The median time that the disk takes to make 4,096 bytes durable, nanoseconds: of several
    /// measurements, one for each round of each load.
    pub fdatasync_p50_ns: u64,
    /// What was measured.
    pub rows: Vec<Row>,
    /// What was left.
    pub at_end: Vec<AtEnd>,
}

impl Report {
    pub(crate) fn new(
        settings: &Settings,
        fdatasync_ns: &[u64],
        is_memory: bool,
        rows: Vec<Row>,
        at_end: Vec<AtEnd>,
    ) -> Self {
        let names = |built: bool| {
            let some = Database::ALL.into_iter().filter(|of| of.is_built() == built);
            some.map(Database::name).collect()
        };
        let sync = Spread::of(fdatasync_ns.iter().map(|&ns| ns as f64));
        Self {
            directory: settings.directory.display().to_string(),
            is_memory,
            seconds: settings.time.as_secs_f64(),
            rounds: settings.rounds,
            table_rows: settings.rows,
            value_bytes: settings.value_bytes,
            operations: settings.operations,
            memory_bytes: settings.memory.as_ref().map(|memory| memory.bytes),
            built: names(true),
            not_built: names(false),
            fdatasync_p50_ns: sync.map_or(0, |sync| sync.median as u64),
            rows,
            at_end,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_has_the_middle_and_both_ends() {
        let of = |figures: &[f64]| {
            Spread::of(figures.iter().copied()).map(|of| (of.least, of.median, of.most))
        };
        assert_eq!(of(&[3.0, 1.0, 2.0]), Some((1.0, 2.0, 3.0)));
        assert_eq!(of(&[4.0, 1.0, 2.0, 3.0]), Some((1.0, 2.5, 4.0)));
        assert_eq!(of(&[]), None);
    }
}
