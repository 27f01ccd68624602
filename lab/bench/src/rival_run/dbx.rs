//! The DBX family of `testbed`, by name, and how a workload of a known type runs on one.

use std::sync::Arc;

use bench::{BenchError, Result};
use pmem::{Device, Emulated, File};
use testbed::{
    DbxDisk, DbxDram, DbxNaive, DbxNvm, DbxSyncDisk, Dbxn, DbxnLines, DbxnNvm, DbxnParity,
    DbxnPastCache, Pisces, Report, Settings,
};
use workloads::Workload;

use super::device::RivalDevice;
use super::rivals::error;

/// A design of the family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dbx {
    /// DBX without a log.
    Dram,
    /// DBX with groups in a file.
    Disk,
    /// DBX with groups in persistent memory.
    Nvm,
    /// A sync of a file for each transaction.
    SyncDisk,
    /// A log record in persistent memory under the transaction's locks.
    Naive,
    /// The same behind the region, with parity versions.
    Parity,
    /// With records of whole lines.
    Lines,
    /// Stored past the cache.
    PastCache,
    /// DBXN.
    Dbxn,
    /// DBXN with all data in persistent memory.
    DbxnNvm,
    /// Pisces.
    Pisces,
}

/// Gives the type of a design to an expression.
macro_rules! with_design {
    ($self:expr, $design:ident => $what:expr) => {
        match $self {
            Dbx::Dram => with_design!(@ DbxDram, $design => $what),
            Dbx::Disk => with_design!(@ DbxDisk, $design => $what),
            Dbx::Nvm => with_design!(@ DbxNvm, $design => $what),
            Dbx::SyncDisk => with_design!(@ DbxSyncDisk, $design => $what),
            Dbx::Naive => with_design!(@ DbxNaive, $design => $what),
            Dbx::Parity => with_design!(@ DbxnParity, $design => $what),
            Dbx::Lines => with_design!(@ DbxnLines, $design => $what),
            Dbx::PastCache => with_design!(@ DbxnPastCache, $design => $what),
            Dbx::Dbxn => with_design!(@ Dbxn, $design => $what),
            Dbx::DbxnNvm => with_design!(@ DbxnNvm, $design => $what),
            Dbx::Pisces => with_design!(@ Pisces, $design => $what),
        }
    };
    (@ $type:ident, $design:ident => $what:expr) => {{
        type $design = $type;
        $what
    }};
}

impl Dbx {
    /// All of them: first those of the paper's Figure 9, then the steps between them.
    pub const ALL: [Self; 11] = [
        Self::Dram,
        Self::Disk,
        Self::Nvm,
        Self::Naive,
        Self::Dbxn,
        Self::DbxnNvm,
        Self::Pisces,
        Self::SyncDisk,
        Self::Parity,
        Self::Lines,
        Self::PastCache,
    ];

    /// Name on the command line and in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Dram => "dbx-dram",
            Self::Disk => "dbx-disk",
            Self::Nvm => "dbx-nvm",
            Self::SyncDisk => "dbx-sync-disk",
            Self::Naive => "dbx-naive",
            Self::Parity => "dbxn-parity",
            Self::Lines => "dbxn-64",
            Self::PastCache => "dbxn-nt",
            Self::Dbxn => "dbxn",
            Self::DbxnNvm => "dbxn-nvm",
            Self::Pisces => "pisces",
        }
    }

    /// What it is, in a few words.
    #[must_use]
    pub fn what(self) -> &'static str {
        match self {
            Self::Dram => "DBX without a log: optimistic, commits in atomic regions",
            Self::Disk => "DBX with a log of groups (--group-us) in a file",
            Self::Nvm => "DBX with a log of groups (--group-us) in persistent memory",
            Self::SyncDisk => "DBX with a sync of a file for each transaction, under its locks",
            Self::Naive => "DBX with a record in persistent memory under a transaction's locks",
            Self::Parity => "dbx-naive with parity versions: the record is written behind them",
            Self::Lines => "dbxn-parity with log records of whole lines",
            Self::PastCache => "dbxn-64 with log records stored past the cache",
            Self::Dbxn => "DBXN: dbxn-nt with long log records of whole blocks",
            Self::DbxnNvm => "DBXN with rows and indexes in persistent memory",
            Self::Pisces => "Pisces: snapshot isolation, two versions in persistent memory",
        }
    }

    /// Whether it logs to a file.
    #[must_use]
    pub fn logs_to_file(self) -> bool {
        matches!(self, Self::Disk | Self::SyncDisk)
    }

    /// Whether it keeps anything.
    #[must_use]
    pub fn keeps(self) -> bool {
        self != Self::Dram
    }
}

fn on<D: Device, N: testbed::DbxDesign, W: Workload>(
    workload: &W,
    device: &Arc<D>,
    settings: &Settings,
) -> Result<Report> {
    testbed::run::<testbed::Dbx<D, N>, W>(device, workload, settings).map_err(error)
}

/// Runs a workload, whose type is known.
pub(super) fn run_typed<W: Workload>(
    workload: &W,
    design: Dbx,
    device: &RivalDevice,
    settings: &Settings,
) -> Result<Report> {
    match (device, design) {
        (RivalDevice::File(file), Dbx::Disk) => on::<File, DbxDisk, W>(workload, file, settings),
        (RivalDevice::File(file), Dbx::SyncDisk) => {
            on::<File, DbxSyncDisk, W>(workload, file, settings)
        }
        (RivalDevice::Emulated(device), _) => {
            with_design!(design, N => on::<Emulated, N, W>(workload, device, settings))
        }
        (RivalDevice::File(_), _) => {
            let what = format!("design {} does not log to a file", design.name());
            Err(BenchError::Usage(what))
        }
    }
}
