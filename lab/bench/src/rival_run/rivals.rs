//! The rival engines of `testbed` and `arulraj`, by name, and how a workload of a known type runs
//! on one.

use std::sync::Arc;

use arulraj::{AsRival, Cow, Engine, Inp, Log, NvmCow, NvmInp, NvmLog};
use bench::{BenchError, Result};
use pmem::Emulated;
use testbed::{Wbl, Zen, ZenMvcc};
use workloads::Workload;

use super::dbx::{self, Dbx};
use super::device::RivalDevice;

/// An engine that NVCaracal is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rival {
    /// Zen with optimistic concurrency control.
    Zen,
    /// Zen with snapshots for transactions that write nothing.
    ZenMvcc,
    /// Write-behind logging.
    Wbl,
    /// One of the six storage engines of Arulraj et al., which has one worker.
    OnePartition(arulraj::EngineName),
    /// One of the DBX family.
    Dbx(Dbx),
}

impl Rival {
    /// All of them.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let partitions = arulraj::EngineName::ALL.map(Self::OnePartition);
        let own = [Self::Zen, Self::ZenMvcc, Self::Wbl];
        own.into_iter().chain(partitions).chain(Dbx::ALL.map(Self::Dbx)).collect()
    }

    /// Name on the command line and in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Zen => "zen-occ",
            Self::ZenMvcc => "zen-mvcc",
            Self::Wbl => "wbl",
            Self::OnePartition(engine) => engine.name(),
            Self::Dbx(design) => design.name(),
        }
    }

    /// What it is, in a few words.
    #[must_use]
    pub fn what(self) -> &'static str {
        match self {
            Self::Zen => "Zen: no log, a commit mark with the last version of a transaction",
            Self::ZenMvcc => "Zen, with snapshots for transactions that write nothing",
            Self::Wbl => "write-behind logging: versions are flushed in groups, then logged",
            Self::OnePartition(engine) => engine.what(),
            Self::Dbx(design) => design.what(),
        }
    }

    /// Whether it keeps its log in a file, and nothing else.
    #[must_use]
    pub fn logs_to_file(self) -> bool {
        matches!(self, Self::Dbx(design) if design.logs_to_file())
    }

    /// Whether its groups end by time.
    #[must_use]
    pub fn has_timed_groups(self) -> bool {
        matches!(self, Self::Dbx(Dbx::Nvm | Dbx::Disk))
    }

    /// Whether transactions are serializable.
    #[must_use]
    pub fn is_serializable(self) -> bool {
        self != Self::Dbx(Dbx::Pisces)
    }

    /// Whether it keeps anything.
    #[must_use]
    pub fn keeps(self) -> bool {
        !matches!(self, Self::Dbx(design) if !design.keeps())
    }
}

/// Runs a workload, whose type is known.
pub(crate) fn run_typed<W: Workload>(
    workload: &W,
    rival: Rival,
    device: &RivalDevice,
    settings: &testbed::Settings,
) -> Result<testbed::Report> {
    let ran = match (rival, device) {
        (Rival::Dbx(design), _) => return dbx::run_typed(workload, design, device, settings),
        (_, RivalDevice::File(_)) => {
            let what = format!("design {} does not log to a file", rival.name());
            return Err(BenchError::Usage(what));
        }
        (Rival::Zen, RivalDevice::Emulated(device)) => {
            testbed::run::<Zen<Emulated>, W>(device, workload, settings)
        }
        (Rival::ZenMvcc, RivalDevice::Emulated(device)) => {
            testbed::run::<ZenMvcc<Emulated>, W>(device, workload, settings)
        }
        (Rival::Wbl, RivalDevice::Emulated(device)) => {
            testbed::run::<Wbl<Emulated>, W>(device, workload, settings)
        }
        (Rival::OnePartition(engine), RivalDevice::Emulated(device)) => {
            run_partition(workload, engine, device, settings)
        }
    };
    ran.map_err(error)
}

/// Runs a workload on an engine of one partition.
fn run_partition<W: Workload>(
    workload: &W,
    engine: arulraj::EngineName,
    device: &Arc<Emulated>,
    settings: &testbed::Settings,
) -> testbed::Result<testbed::Report> {
    use arulraj::EngineName;
    match engine {
        EngineName::Inp => run_one::<Inp<Emulated>, W>(workload, device, settings),
        EngineName::Cow => run_one::<Cow<Emulated>, W>(workload, device, settings),
        EngineName::Log => run_one::<Log<Emulated>, W>(workload, device, settings),
        EngineName::NvmInp => run_one::<NvmInp<Emulated>, W>(workload, device, settings),
        EngineName::NvmCow => run_one::<NvmCow<Emulated>, W>(workload, device, settings),
        EngineName::NvmLog => run_one::<NvmLog<Emulated>, W>(workload, device, settings),
    }
}

fn run_one<E: Engine<Emulated> + Send + 'static, W: Workload>(
    workload: &W,
    device: &Arc<Emulated>,
    settings: &testbed::Settings,
) -> testbed::Result<testbed::Report> {
    testbed::run::<AsRival<Emulated, E>, W>(device, workload, settings)
}

/// An error of `testbed` in the words of this crate.
pub(super) fn error(error: testbed::Error) -> BenchError {
    match error {
        testbed::Error::Device(error) => error.into(),
        testbed::Error::Limit(what) => BenchError::Usage(what),
        testbed::Error::Corrupt(what) | testbed::Error::Broken(what) => BenchError::Store(what),
    }
}
