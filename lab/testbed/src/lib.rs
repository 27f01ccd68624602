//! Rival engines for persistent memory, on the workloads and devices of NVCaracal.
//!
//! | engine | what it is |
//! |---|---|
//! | [`Zen`] | no log: the last version of a transaction has the mark that it committed |
//! | [`ZenMvcc`] | Zen, with snapshots for transactions that write nothing |
//! | [`Wbl`] | write-behind logging: versions are flushed in groups; the log says up to when |
//! | [`Dbx`] | atomic regions and redo logs: DBX, DBXN with its parity versions, and their steps |
//!
//! Each is made from its published description; `docs/comparison-engines.md` says what we had to
//! choose. An engine is a [`Rival`]: it makes a store on a device or recovers one, and gives each
//! worker a [`Session`], whose transactions [`Procedures`] runs. [`run`] measures one on a
//! workload, [`mod@check`] compares what it did with the serial oracle.
//!
//! Unlike NVCaracal, a rival orders transactions as they come: they may be in each other's way, and
//! run again then.

#![deny(unsafe_code)]

mod batch;
pub mod check;
mod dbx;
mod error;
mod grace;
mod image;
mod index;
mod memory;
mod occ;
mod rival;
mod rtm;
mod run;
#[cfg(test)]
mod tests;
mod transaction;
mod wbl;
mod zen;

pub use batch::{
    Aria, BatchCounts, BatchEngine, BatchReport, Bcdb, Bohm, Calvin, Caracal, EachAnswer, Granola,
    Order, Orthrus, Pwv, Serial, Waits, run_batches,
};
pub use dbx::{
    Dbx, DbxDesign, DbxDisk, DbxDram, DbxNaive, DbxNvm, DbxSyncDisk, Dbxn, DbxnLines, DbxnNvm,
    DbxnParity, DbxnPastCache, Pisces,
};
pub use error::{Error, Result};
pub use rival::{Accesses, Counts, Options, RecoveryReport, RegionCounts, Rival, Session, Stop};
pub use run::calls::{Answered, Calls, RivalView, load};
pub use run::procedure::{Done, Outcome, Procedures};
pub use run::{Report, Settings, run};
pub use wbl::Wbl;
pub use zen::{Zen, ZenEngine, ZenMvcc};

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Whether atomic regions are those of the processor.
#[must_use]
pub fn has_hardware_regions() -> bool {
    rtm::is_there()
}

/// Locks what is whole whenever it is not locked, whichever thread panicked meanwhile.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for a thread that will be done soon, unless it is not running.
pub(crate) fn pause(turns: &mut u32) {
    *turns += 1;
    if turns.is_multiple_of(256) {
        std::thread::yield_now();
    } else {
        std::hint::spin_loop();
    }
}
