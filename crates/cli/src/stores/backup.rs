//! `backup` and `restore`: copies of stores.

use std::path::Path;

use bench::Progress;
use pmem::DeviceSpec;
use serde::Serialize;
use storage::input_log::{LogError, Until};
use storage::{Copied, CopyKind, EpochNumber, Restore, StorageError, copy_store};

use crate::args::{BackupArguments, RestoreArguments, StorePath, time};
use crate::output::{Done, Failure, show};

/// A copy that was made.
#[derive(Debug, Serialize)]
struct Copy {
    copy: String,
    checkpoint_epoch: u64,
    epoch: u64,
    /// The state hash that opening the copy comes to at an epoch, if one is known.
    hash: Option<Hash>,
    data_bytes: u64,
    /// Bytes of data that were written: pages that had changed.
    written_bytes: u64,
    log_bytes: u64,
    /// Timestamp of the last epoch.
    time: String,
}

#[derive(Debug, Serialize)]
struct Hash {
    epoch: u64,
    state_hash: String,
}

/// Runs a `backup` command.
pub(crate) fn backup(arguments: &BackupArguments) -> Done {
    let copy = copy(&arguments.path, &arguments.target, CopyKind::Backup)?;
    show(&copy, arguments.json, || copy.text())
}

/// Runs a `restore` command.
pub(crate) fn restore(arguments: &RestoreArguments) -> Done {
    let until = match (arguments.to_epoch, arguments.to_time) {
        (Some(epoch), _) => Until::Epoch(EpochNumber(epoch)),
        (None, Some(time)) => Until::Time(time),
        (None, None) => Until::Newest,
    };
    let kind = CopyKind::Restored(Restore { until, archive: arguments.archive.clone() });
    let copy = copy(&arguments.copy, &arguments.target, kind)?;
    show(&copy, arguments.json, || copy.text())
}

fn copy(source: &StorePath, target: &Path, kind: CopyKind) -> Result<Copy, Failure> {
    let DeviceSpec::File(directory) = bench::spec_of_path(source)? else {
        return Err(Failure::usage(format!(
            "{source} is no directory: only a store on `file` is copied while it runs; close any \
             other one, and copy its file"
        )));
    };
    let bar = Progress::Shown.bar("copying", 100, "percent of the pages");
    let mut progress = |done: u64, all: u64| bar.set(done * 100 / all.max(1), "");
    let copied = copy_store(&directory, target, kind, &mut progress);
    let copied = copied.map_err(|error| Failure::new(not_copied(&error)))?;
    let Copied { checkpoint, last, hash, page_bytes, written_bytes, log_bytes, timestamp_ns } =
        copied;
    let hash = hash.map(|(epoch, hash)| Hash { epoch: epoch.0, state_hash: hash.to_string() });
    Ok(Copy {
        copy: target.display().to_string(),
        checkpoint_epoch: checkpoint.0,
        epoch: last.0,
        hash,
        data_bytes: page_bytes,
        written_bytes,
        log_bytes,
        time: time::show(timestamp_ns),
    })
}

/// What is said of an error, with times as the command line has them.
fn not_copied(error: &StorageError) -> String {
    match error {
        StorageError::Log(LogError::NotReached { asked_ns, epoch, timestamp_ns }) => {
            let (asked, newest) = (time::show(*asked_ns), time::show(*timestamp_ns));
            format!(
                "no epoch of {asked} or later is there, so it is not known whether all up to then \
                 are: the newest is {epoch}, of {newest}; restore to that (--to-epoch {epoch}), or \
                 from an archive that has later ones"
            )
        }
        StorageError::Log(LogError::TooEarly { asked_ns, epoch, timestamp_ns }) => {
            let (asked, first) = (time::show(*asked_ns), time::show(*timestamp_ns));
            format!(
                "the copy has no state of {asked}: it begins with epoch {epoch}, which is of a \
                 later time, {first}; restore to that time or a later one, or from an earlier copy"
            )
        }
        error => error.to_string(),
    }
}

impl Copy {
    fn text(&self) -> String {
        let Self { copy, checkpoint_epoch, epoch, data_bytes, written_bytes, log_bytes, .. } = self;
        let mut text = format!("copied to {copy}\n");
        for (name, value) in [
            ("last epoch", epoch.to_string()),
            ("of", self.time.clone()),
            ("checkpoint", checkpoint_epoch.to_string()),
            ("data", format!("{data_bytes} bytes, {written_bytes} of them written")),
            ("log", format!("{log_bytes} bytes")),
        ] {
            text += &format!("  {name:<12} {value}\n");
        }
        if let Some(Hash { epoch, state_hash }) = &self.hash {
            text += &format!("  state hash   {state_hash} at the end of epoch {epoch}\n");
        }
        text + &format!("verify it with: nvcaracal check {copy}\n")
    }
}
