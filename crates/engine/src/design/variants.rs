//! What only experiments change: the designs that NVCaracal is compared with (NV 6.4, 6.7) and its
//! parts (NV 6.6, CA 5.5), as options of one engine, so that they differ in nothing else.
//!
//! No option changes an answer or the state, but only NVCaracal itself recovers what was answered.
//! What a design keeps on the device is written back and charged there, as far as the device
//! charges anything; where it lies is memory all the same, because it is not recovered.

use crate::design::append_method::AppendMethod;
use crate::design::packing::Packing;

/// The options of experiments. A database has the defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lab {
    /// Where versions and inputs go. Default NVCaracal.
    pub design: Design,
    /// Which values are cached, where there is a cache. Default all.
    pub cache_policy: CachePolicy,
    /// K: cached versions that were not accessed in the last K epochs are evicted (NV 5.2). Default
    /// 20.
    pub cache_epochs: u64,
    /// Whether a final write overwrites a stale inline version (minor collection, NV 4.4). If not,
    /// the major collector clears it an epoch later. Default true.
    pub minor_collection: bool,
    /// How rows that several calls of an epoch write get their versions. Default batch.
    pub append: AppendMethod,
    /// How pieces of contended rows are packed onto workers. Default line.
    pub packing: Packing,
    /// Whether a hash of the whole state is maintained with every final write, is stored with the
    /// checkpoint, and is compared at recovery. Without it checkpoints say that it is not known; an
    /// engine that is opened with it again computes it from the rows. Default true.
    pub state_hash: bool,
    /// Whether an open visits all rows where the indexes are kept, and compares these with what it
    /// finds. Default false.
    pub scans_rows: bool,
}

impl Default for Lab {
    fn default() -> Self {
        Self {
            design: Design::default(),
            cache_policy: CachePolicy::default(),
            cache_epochs: 20,
            minor_collection: true,
            append: AppendMethod::default(),
            packing: Packing::default(),
            state_hash: true,
            scans_rows: false,
        }
    }
}

/// Where versions and inputs go.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Design {
    /// Inputs are logged; versions that are not a row's last of their epoch stay in DRAM.
    #[default]
    Nvcaracal,
    /// The same without a log: what was answered after the last checkpoint is lost in a crash
    /// (NV 6.7).
    NoLogging,
    /// No log; each version of a row is written to the device and kept in DRAM, too, version
    /// arrays are in DRAM (NV 6.4).
    Hybrid,
    /// No log; all versions and version arrays are on the device, and nothing is cached (NV 6.4).
    AllNvmm,
}

impl Design {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Nvcaracal, Self::NoLogging, Self::Hybrid, Self::AllNvmm];

    /// Name in options and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Nvcaracal => "nvcaracal",
            Self::NoLogging => "no-logging",
            Self::Hybrid => "hybrid",
            Self::AllNvmm => "all-nvmm",
        }
    }

    /// What it does, in a few words.
    #[must_use]
    pub fn what(self) -> &'static str {
        match self {
            Self::Nvcaracal => "inputs are logged, transient versions are in DRAM",
            Self::NoLogging => "nothing is logged, transient versions are in DRAM",
            Self::Hybrid => "nothing is logged, all versions are written to the device",
            Self::AllNvmm => "nothing is logged, versions and their arrays are on the device",
        }
    }

    /// Whether inputs are logged.
    pub(crate) fn logs(self) -> bool {
        self == Self::Nvcaracal
    }

    /// Whether transient versions are written to the device.
    pub(crate) fn writes_transient(self) -> bool {
        matches!(self, Self::Hybrid | Self::AllNvmm)
    }

    /// Whether transient versions are read from the device, and version arrays are there.
    pub(crate) fn is_all_nvmm(self) -> bool {
        self == Self::AllNvmm
    }
}

/// Which values are kept in the cache, where there is one (NV 4.2, 7).
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum CachePolicy {
    /// What is read from the device, and every new value (NV 4.2).
    #[default]
    All,
    /// New values of rows that several calls of an epoch write: they are likely to be read again.
    Hot,
}

impl CachePolicy {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::All, Self::Hot];

    /// Name in options and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Hot => "hot",
        }
    }

    /// What it does, in a few words.
    #[must_use]
    pub fn what(self) -> &'static str {
        match self {
            Self::All => "what is read, and every new value",
            Self::Hot => "new values of rows that several transactions of an epoch write",
        }
    }
}
