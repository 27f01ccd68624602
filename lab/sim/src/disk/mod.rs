//! The `file` device on a simulated disk: whole engines, power cuts, kills, faults and bad reads.
//!
//! The device runs on real files in a temporary directory, in memory where the system has one, and
//! a hook sees every call that it makes. From the recorded calls a model of the device makes what
//! a power cut may leave: between two syncs of a file each 512-byte sector written to it is old or
//! new, in any combination, growth is there or not, and a new file may lack its name until the
//! directory is synced. What is left is written into a fresh directory, an engine opens it, and the
//! serial oracle says whether it may look like that.
//!
//! The order of calls follows from the seed as long as snapshots are waited for. Half of the
//! histories overlap snapshots with the next epoch, as a real run does; there the exact order is
//! the operating system's choice, and [`Options::keep`] saves the directory that failed.
//!
//! Knows nothing of what the bytes mean.

mod contents;

mod hook;

mod story;

mod recover;
mod report;

mod cuts;
mod faults;
mod misread;

mod campaign;
mod explore;
mod library;

pub use campaign::{Campaign, campaign};
pub use explore::{Failure, explore, explore_large_snapshots};
pub use faults::{Fault, sweep};
pub use library::Disk;
pub use report::{Options, Report};

pub(crate) use contents::{Arrival, DiskContents};
pub(crate) use story::{Progress, Story, fast_dir, open_device, options};
