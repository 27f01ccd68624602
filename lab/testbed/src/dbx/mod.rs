//! The DBX family (Wei, Lu, Chen, Chen, Zang: "Reducing Transaction Processing Latency in Hardware
//! Transactional Memory-based Database with Non-volatile Memory", International Journal of Software
//! and Informatics 12(1), 2022): optimistic concurrency control with regions that are atomic, and
//! redo logs.
//!
//! * A record in DRAM is a version and where the row's content is; an update puts another content
//!   in its place (`tables`).
//! * A read takes version and content in one region. The commit checks all versions that were read,
//!   and puts all new contents into their places, in one region (`access`, `commit`).
//! * A region cannot write to a device. So DBX logs in groups, by a thread of its own (`group`),
//!   and DBXN behind the region: until its log record is durable, what a transaction wrote has an
//!   *odd* version, and one that read it cannot commit.
//! * Recovery reads all logs; of two versions of a row the larger one counts (`recover`).
//!
//! Pisces, which the paper compares DBXN with, reads snapshots and has no regions (`snapshots`,
//! `pisces`); tables, log and recovery are the same.
//!
//! All designs are options of this one engine (`design`). What is atomic, and that the software
//! which stands in for the hardware says nothing of its speed, is in `region`.

mod access;
mod checkpoint;
mod commit;
mod design;
mod group;
mod log;
mod pisces;
mod recover;
mod region;
mod session;
mod shared;
mod snapshots;
mod tables;
mod write;

use std::sync::Arc;
use std::thread::JoinHandle;

use pmem::Device;
use workloads::{TableId, TableSpec};

pub use design::{
    DbxDisk, DbxDram, DbxNaive, DbxNvm, DbxSyncDisk, Dbxn, DbxnLines, DbxnNvm, DbxnParity,
    DbxnPastCache, Design as DbxDesign, Pisces,
};

use crate::error::{Error, Result};
use crate::rival::{Options, RecoveryReport, Rival};
use design::{Design, Durable};
use log::Log;
use session::DbxSession;
use shared::{Shared, fingerprint};

/// An engine of the family. See the module's documentation.
pub struct Dbx<D: Device, N: Design> {
    shared: Arc<Shared<D, N>>,
    /// Writes the log, where there are groups.
    logger: Option<JoinHandle<()>>,
}

impl<D: Device, N: Design> Dbx<D, N> {
    fn start(shared: Shared<D, N>) -> Result<Self> {
        let shared = Arc::new(shared);
        let logger = match shared.group {
            None => None,
            Some(_) => {
                let of_thread = Arc::clone(&shared);
                let run = move || {
                    if let (Some(group), Some(log)) = (&of_thread.group, &of_thread.log) {
                        group.run(Arc::clone(&of_thread.device), log);
                    }
                };
                let thread = std::thread::Builder::new().name("dbx-log".into()).spawn(run);
                Some(thread.map_err(|error| Error::Broken(format!("no thread: {error}")))?)
            }
        };
        Ok(Self { shared, logger })
    }
}

impl<D: Device, N: Design> Drop for Dbx<D, N> {
    fn drop(&mut self) {
        if let Some(group) = &self.shared.group {
            group.stop();
        }
        if let Some(logger) = self.logger.take() {
            // It reports what went wrong to those who wait for it.
            let _ = logger.join();
        }
    }
}

impl<D: Device, N: Design> Rival for Dbx<D, N> {
    type Device = D;
    type Session = DbxSession<D, N>;
    const NAME: &'static str = N::NAME;
    const SERIALIZABLE: bool = !N::SNAPSHOTS;

    fn create(device: Arc<D>, tables: &[TableSpec], options: &Options) -> Result<Self> {
        device.accept()?;
        let log = match N::DURABLE {
            Durable::Never => None,
            _ => {
                let tables = fingerprint(tables, options);
                Some(Log::create(Arc::clone(&device), N::WAY, options.page_bytes, tables)?)
            }
        };
        Self::start(Shared::new(device, tables, log, options)?)
    }

    fn open(
        device: Arc<D>,
        tables: &[TableSpec],
        options: &Options,
    ) -> Result<(Self, RecoveryReport)> {
        device.accept()?;
        let (shared, report) = recover::recover(device, tables, options)?;
        Ok((Self::start(shared)?, report))
    }

    fn session(&self, worker: usize) -> Self::Session {
        DbxSession::new(Arc::clone(&self.shared), worker)
    }

    fn for_each(&self, table: TableId, each: &mut dyn FnMut(&[u8], &[u8])) {
        let table = &self.shared.tables[usize::from(table.0)];
        let mut payload = Vec::new();
        table.index.for_each(|key, place| {
            if table.read_alone(place as u32, &mut payload) {
                each(key, table.layout.value(&payload));
            }
        });
    }

    fn get(&self, table: TableId, key: &[u8]) -> Option<Vec<u8>> {
        let table = &self.shared.tables[usize::from(table.0)];
        let place = table.index.get(0, key).ok()?;
        let mut payload = Vec::new();
        table.read_alone(place as u32, &mut payload).then(|| table.layout.value(&payload).to_vec())
    }

    fn close(self) -> Result<()> {
        // Sessions have finished: everything is durable that ever will be.
        self.shared.check()
    }
}
