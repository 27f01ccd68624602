//! How much is tried for a seed, and what was counted.

use std::collections::BTreeSet;
use std::fmt;

use pmem::DiskFile;

/// How much is tried for each seed.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Most epochs of the history beyond two.
    pub epochs: u64,
    /// Moments at which the power is cut or the process killed.
    pub cuts: u64,
    /// A fault is put at every so-manyth call; 0 for none.
    pub fault_stride: u64,
    /// Opens with a bad read.
    pub bad_reads: u64,
    /// Whether the directory that failed is kept.
    pub keep: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { epochs: 6, cuts: 12, fault_stride: 19, bad_reads: 8, keep: false }
    }
}

/// What was tried.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Histories.
    pub histories: u64,
    /// Directories that an engine was opened on.
    pub images: u64,
    /// Power cuts, those in recoveries too.
    pub power_cuts: u64,
    /// Kills, those in recoveries too.
    pub kills: u64,
    /// Snapshots that were not durable before epochs after them were answered, and the log was
    /// released beside them.
    pub overlaps: u64,
    /// Runs with a fault.
    pub faults: u64,
    /// Runs that a fault ended.
    pub failures: u64,
    /// Epochs that were refused for lack of room, and ran when there was room.
    pub refusals: u64,
    /// Opens with a bad read.
    pub bad_reads: u64,
    /// Of these, how many read what was there all the same.
    pub unchanged_reads: u64,
    /// Of these, how many were refused.
    pub refused_opens: u64,
    /// Of these, how many came up with the right state of an earlier epoch than the last answered:
    /// what was damaged cannot be told from what a power cut tore.
    pub older_states: u64,
    /// Kinds of calls that were seen: which file, what.
    pub call_kinds: BTreeSet<(DiskFile, &'static str)>,
}

impl Report {
    /// Adds what another seed tried.
    pub fn add(&mut self, other: &Self) {
        self.histories += other.histories;
        self.images += other.images;
        self.power_cuts += other.power_cuts;
        self.kills += other.kills;
        self.overlaps += other.overlaps;
        self.faults += other.faults;
        self.failures += other.failures;
        self.refusals += other.refusals;
        self.bad_reads += other.bad_reads;
        self.unchanged_reads += other.unchanged_reads;
        self.refused_opens += other.refused_opens;
        self.older_states += other.older_states;
        self.call_kinds.extend(&other.call_kinds);
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} histories, {} images: {} power cuts, {} kills; {} snapshots beside later epochs",
            self.histories, self.images, self.power_cuts, self.kills, self.overlaps
        )?;
        writeln!(
            f,
            "{} runs with a fault: {} ended by it, {} epochs refused and run later",
            self.faults, self.failures, self.refusals
        )?;
        writeln!(
            f,
            "{} opens with a bad read: {} refused, {} of an earlier state, {} read nothing else",
            self.bad_reads, self.refused_opens, self.older_states, self.unchanged_reads
        )?;
        write!(f, "{} kinds of calls", self.call_kinds.len())
    }
}
