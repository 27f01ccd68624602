//! How a store is opened.

use nvcaracal::DeviceSpec;

/// Where a store is, and what it may take.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// Where it is; it is made if there is none.
    pub device: DeviceSpec,
    /// Threads that run calls; 0 for what the library chooses.
    pub workers: usize,
    /// Threads that parse, plan and read.
    pub threads: usize,
    /// The work that one statement may do, in steps.
    pub steps_max: u64,
    /// Bytes that one statement may collect.
    pub memory_bytes_max: usize,
    /// Bytes of plans that are kept for statements to come.
    pub plans_bytes_max: usize,
}

impl StoreOptions {
    /// A store on a device, with the usual limits.
    #[must_use]
    pub fn at(device: DeviceSpec) -> StoreOptions {
        StoreOptions {
            device,
            workers: 0,
            threads: 4,
            steps_max: 1_000_000,
            memory_bytes_max: 64 << 20,
            plans_bytes_max: 64 << 20,
        }
    }

    /// A store in memory, which ends with the process.
    #[must_use]
    pub fn memory() -> StoreOptions {
        StoreOptions::at(DeviceSpec::Dram)
    }
}

/// Why a store was not opened or closed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The library refused.
    #[error(transparent)]
    Database(#[from] nvcaracal::Error),
    /// The catalog in the store cannot be read.
    #[error("the catalog cannot be read: {0}")]
    Catalog(values::Error),
    /// No threads could be started.
    #[error("cannot start threads: {0}")]
    Threads(std::io::Error),
}
