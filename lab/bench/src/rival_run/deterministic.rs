//! The deterministic rivals of `testbed`, by name, and how a workload of a known type runs on one.

use bench::Result;
use testbed::{
    Aria, BatchReport, Bcdb, Bohm, Calvin, Caracal, Granola, Orthrus, Pwv, Serial, run_batches,
};
use workloads::Workload;

/// A deterministic engine that Caracal is compared with (CA 2, 5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deterministic {
    /// One thread.
    Serial,
    /// One lock manager.
    Calvin,
    /// Several lock managers.
    Orthrus,
    /// Versions made by partitions.
    Bohm,
    /// Version arrays that stay.
    Caracal,
    /// Partitions, each in the order of the batch.
    Granola,
    /// Partitions with dependency graphs.
    Pwv,
    /// Reservations, reordering and a fall-back.
    Aria,
    /// Serializable snapshot isolation within a block.
    Bcdb,
}

impl Deterministic {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Serial,
        Self::Calvin,
        Self::Orthrus,
        Self::Bohm,
        Self::Caracal,
        Self::Granola,
        Self::Pwv,
        Self::Aria,
        Self::Bcdb,
    ];

    /// Name on the command line and in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Serial => "serial",
            Self::Calvin => "calvin",
            Self::Orthrus => "orthrus",
            Self::Bohm => "bohm",
            Self::Caracal => "caracal",
            Self::Granola => "granola",
            Self::Pwv => "pwv",
            Self::Aria => "aria",
            Self::Bcdb => "bcdb",
        }
    }

    /// What it is, in a few words.
    #[must_use]
    pub fn what(self) -> &'static str {
        match self {
            Self::Serial => "serial execution: one thread, in the order of the batch, in dram",
            Self::Calvin => "Calvin: one thread requests all locks in order, others run calls",
            Self::Orthrus => "Orthrus: as Calvin, with a lock manager for each part of the keys",
            Self::Bohm => "Bohm: owners of keys make pending versions, then all threads run calls",
            Self::Caracal => "Caracal with its own memory management: version arrays that stay",
            Self::Granola => "Granola: each thread runs its partition's pieces in order",
            Self::Pwv => "PWV: as Granola, with a dependency graph for each partition",
            Self::Aria => "Aria: no write sets, reservations decide which calls commit",
            Self::Bcdb => "BCDB: no write sets, serializable snapshot isolation by block",
        }
    }
}

/// Runs a workload, whose type is known.
pub(crate) fn run_typed<W: Workload>(
    workload: &W,
    engine: Deterministic,
    settings: &testbed::Settings,
) -> Result<BatchReport> {
    let ran = match engine {
        Deterministic::Serial => run_batches::<Serial, W>(workload, settings),
        Deterministic::Calvin => run_batches::<Calvin, W>(workload, settings),
        Deterministic::Orthrus => run_batches::<Orthrus, W>(workload, settings),
        Deterministic::Bohm => run_batches::<Bohm, W>(workload, settings),
        Deterministic::Caracal => run_batches::<Caracal, W>(workload, settings),
        Deterministic::Granola => run_batches::<Granola, W>(workload, settings),
        Deterministic::Pwv => run_batches::<Pwv, W>(workload, settings),
        Deterministic::Aria => run_batches::<Aria, W>(workload, settings),
        Deterministic::Bcdb => run_batches::<Bcdb, W>(workload, settings),
    };
    ran.map_err(super::rivals::error)
}
