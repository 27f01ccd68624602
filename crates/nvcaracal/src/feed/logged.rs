//! Changes that are no longer in memory, from the change log.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use pmem::DeviceError;
use storage::{ChangeLog, EpochNumber, StorageError, TableId};

use crate::error::{Error, Result};
use crate::feed::kept::OfEpoch;

/// The folder of the change log in the directory of a database.
pub(crate) const DIRECTORY: &str = "changes";

/// Bytes of changes that are read at a time, about.
const PART_BYTES: u64 = 1 << 20;

/// An error of the change log.
pub(crate) fn failed(log: &ChangeLog, what: &str, source: io::Error) -> Error {
    if source.kind() == io::ErrorKind::InvalidData {
        return StorageError::Corrupt(source.to_string()).into();
    }
    let path = log.directory().to_path_buf();
    DeviceError::Io { what: what.into(), path, source }.into()
}

/// What a reader of a table has read from the change log and not handed out yet.
pub(crate) struct Logged {
    log: Arc<ChangeLog>,
    table: TableId,
    epochs: VecDeque<(EpochNumber, OfEpoch)>,
}

impl Logged {
    pub(crate) fn new(log: &Arc<ChangeLog>, table: TableId) -> Self {
        Self { log: Arc::clone(log), table, epochs: VecDeque::new() }
    }

    /// Whether the changes after an epoch are in the log.
    ///
    /// # Errors
    /// [`Error::kept_after`] if not; `otherwise` if no consumer follows the table.
    pub(crate) fn check(&self, after: EpochNumber, otherwise: Error) -> Result<()> {
        match self.log.kept(self.table) {
            None => Err(otherwise),
            Some(kept) if after < kept.after => {
                Err(Error::changes_lost(after.0, kept.after.0, kept.why))
            }
            Some(_) => Ok(()),
        }
    }

    /// The changes of the next epoch after `after` that has any, up to `until`.
    ///
    /// # Errors
    /// As [`Logged::check`]; [`Error::is_corrupt`] if a file is damaged; those of reading it.
    pub(crate) fn next(
        &mut self,
        after: EpochNumber,
        until: EpochNumber,
        otherwise: Error,
    ) -> Result<Option<(EpochNumber, OfEpoch)>> {
        while self.epochs.front().is_some_and(|(epoch, _)| *epoch <= after) {
            self.epochs.pop_front();
        }
        if self.epochs.is_empty() {
            let part = self.log.read(self.table, (after, until), PART_BYTES);
            // Files may have been deleted while they were looked for.
            self.check(after, otherwise)?;
            let part = part.map_err(|error| failed(&self.log, "read", error))?;
            self.epochs.extend(part.into_iter().map(|(epoch, rows)| (epoch, OfEpoch::from(rows))));
        }
        Ok(self.epochs.pop_front())
    }

    /// Forgets what was read: the reader goes on elsewhere.
    pub(crate) fn clear(&mut self) {
        self.epochs.clear();
    }
}
