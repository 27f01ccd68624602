//! How every report of a workload begins: what ran, on what, and which data and calls those were.

use bench::{Job, Parameters};
use pmem::Description;
use serde::Serialize;

/// What ran where; its names and units are the same in the reports of all engines.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Head {
    /// `ycsb`, `smallbank`, `tpcc`.
    pub workload: &'static str,
    /// The engine.
    pub design: &'static str,
    /// The device, as named on the command line.
    pub device: String,
    /// Whether what was answered survives a power cut.
    pub durable: bool,
    /// What the figures of this device mean.
    pub device_note: String,
    /// Worker threads.
    pub workers: usize,
    /// Epochs of the stream that this run executed; rounds of as many calls for an engine without
    /// epochs.
    pub epochs: u64,
    /// New transactions of an epoch or a round.
    pub epoch_size: u64,
    /// Name of data and stream.
    pub seed: u64,
    /// Preset.
    pub contention: String,
    /// Everything that data and stream depend on.
    pub parameters: Parameters,
}

/// How many workers ran how many epochs of which size.
pub(crate) struct Ran {
    pub(crate) workers: usize,
    pub(crate) epochs: u64,
    pub(crate) epoch_size: u64,
}

impl Head {
    /// The head of a job's report, before the device is known.
    pub(crate) fn new(job: &Job, design: &'static str, ran: Ran) -> Self {
        let Ran { workers, epochs, epoch_size } = ran;
        let parameters = job.parameters();
        Self {
            workload: job.name(),
            design,
            device: String::new(),
            durable: false,
            device_note: String::new(),
            workers,
            epochs,
            epoch_size,
            seed: parameters.seed,
            contention: parameters.contention.to_string(),
            parameters: parameters.clone(),
        }
    }

    /// Takes in what the device says of itself.
    pub(crate) fn describe_device(&mut self, device: &Description) {
        self.device.clone_from(&device.name);
        self.durable = device.durable;
        self.device_note.clone_from(&device.note);
    }
}
