//! The rival engines of `testbed`, by name, and how a workload of a known type runs on one.

use std::sync::Arc;

use bench::{BenchError, Result};
use pmem::Emulated;
use testbed::{Wbl, Zen, ZenMvcc};
use workloads::Workload;

/// An engine that NVCaracal is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rival {
    /// Zen with optimistic concurrency control.
    Zen,
    /// Zen with snapshots for transactions that write nothing.
    ZenMvcc,
    /// Write-behind logging.
    Wbl,
}

impl Rival {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Zen, Self::ZenMvcc, Self::Wbl];

    /// Name on the command line and in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Zen => "zen-occ",
            Self::ZenMvcc => "zen-mvcc",
            Self::Wbl => "wbl",
        }
    }

    /// What it is, in a few words.
    #[must_use]
    pub fn what(self) -> &'static str {
        match self {
            Self::Zen => "Zen: no log, a commit mark with the last version of a transaction",
            Self::ZenMvcc => "Zen, with snapshots for transactions that write nothing",
            Self::Wbl => "write-behind logging: versions are flushed in groups, then logged",
        }
    }
}

/// Runs a workload, whose type is known.
pub(crate) fn run_typed<W: Workload>(
    workload: &W,
    rival: Rival,
    device: &Arc<Emulated>,
    settings: &testbed::Settings,
) -> Result<testbed::Report> {
    let ran = match rival {
        Rival::Zen => testbed::run::<Zen<Emulated>, W>(device, workload, settings),
        Rival::ZenMvcc => testbed::run::<ZenMvcc<Emulated>, W>(device, workload, settings),
        Rival::Wbl => testbed::run::<Wbl<Emulated>, W>(device, workload, settings),
    };
    ran.map_err(error)
}

/// An error of `testbed` in the words of this crate.
pub(super) fn error(error: testbed::Error) -> BenchError {
    match error {
        testbed::Error::Device(error) => error.into(),
        testbed::Error::Limit(what) => BenchError::Usage(what),
        testbed::Error::Corrupt(what) | testbed::Error::Broken(what) => BenchError::Store(what),
    }
}
