//! What is to run, and how.

use pmem::DeviceSpec;

use crate::options::Options;
use crate::ycsb::{Mix, Skew};

/// The engines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineName {
    /// [`crate::Inp`]
    Inp,
    /// [`crate::Cow`]
    Cow,
    /// [`crate::Log`]
    Log,
    /// [`crate::NvmInp`]
    NvmInp,
    /// [`crate::NvmCow`]
    NvmCow,
    /// [`crate::NvmLog`]
    NvmLog,
}

impl EngineName {
    /// All, in the order of the paper.
    pub const ALL: [Self; 6] =
        [Self::Inp, Self::Cow, Self::Log, Self::NvmInp, Self::NvmCow, Self::NvmLog];

    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Inp => "inp",
            Self::Cow => "cow",
            Self::Log => "log",
            Self::NvmInp => "nvm-inp",
            Self::NvmCow => "nvm-cow",
            Self::NvmLog => "nvm-log",
        }
    }

    /// What it is.
    #[must_use]
    pub fn what(self) -> &'static str {
        match self {
            Self::Inp => "updates in place; a log and checkpoints in files",
            Self::Cow => "copies of pages with tuples in them, in a file",
            Self::Log => "an LSM tree of files, and a log",
            Self::NvmInp => "updates in place; a log of pointers, which undoes",
            Self::NvmCow => "copies of tuples, and of pages with their addresses, in memory",
            Self::NvmLog => "an LSM tree of MemTables; a log of pointers, which undoes",
        }
    }
}

/// What to run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The engine.
    pub engine: EngineName,
    /// `dram` or `emulated:...`; every partition gets one.
    pub device: DeviceSpec,
    /// Threads, each with a partition of its own.
    pub partitions: u64,
    /// Tuples of all partitions.
    pub tuples: u64,
    /// Transactions of all partitions.
    pub transactions: u64,
    /// TPC-C instead of YCSB: a warehouse of this size in each partition.
    pub tpcc: Option<TpccSize>,
    /// How many of them read.
    pub mix: Mix,
    /// How much they agree.
    pub skew: Skew,
    /// Names the data and the transactions.
    pub seed: u64,
    /// Whether the log is emptied after the load: a checkpoint, or an empty MemTable.
    pub settle: bool,
    /// Whether to compare every tuple with what it must be.
    pub verify: bool,
    /// Whether to end without ending the last group, and open the stores again.
    pub recover: bool,
    /// Whether to run the same once more in DRAM without a modelled cache, for what it costs.
    pub cost: bool,
    /// Whether to measure what that time is for, which makes it longer.
    pub shares: bool,
    /// How the engine is made.
    pub options: Options,
}

/// How large the warehouses are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TpccSize {
    /// Items; every warehouse stocks them all.
    pub items: u32,
    /// Customers, and initial orders, of a district.
    pub customers_per_district: u32,
}

impl TpccSize {
    /// More bytes than a warehouse needs in any engine.
    pub(crate) fn bytes(self) -> u64 {
        u64::from(self.items) * 8_000 + u64::from(self.customers_per_district) * 400_000
    }
}

/// The part of a number that falls to a partition.
#[must_use]
pub fn share(of: u64, partitions: u64, partition: u64) -> u64 {
    of / partitions + u64::from(partition < of % partitions)
}
