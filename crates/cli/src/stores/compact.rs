//! `compact`: a store whose files are as short as they can be.

use bench::Progress;
use pmem::{Compacted, DeviceSpec};
use serde::Serialize;

use crate::args::StoreArguments;
use crate::output::{Done, Failure, show};

/// What became of the file with the pages.
#[derive(Debug, Serialize)]
struct Report {
    path: String,
    data_bytes_before: u64,
    data_bytes: u64,
    /// Of pages that are in use.
    used_bytes: u64,
    moved_bytes: u64,
    not_moved: Option<String>,
}

/// Runs a `compact` command.
pub(crate) fn run(arguments: &StoreArguments) -> Done {
    let DeviceSpec::File(directory) = bench::spec_of_path(&arguments.path)? else {
        let path = &arguments.path;
        return Err(Failure::usage(format!("{path} is no directory: only `file` is compacted")));
    };
    let bar = Progress::Shown.bar("moving", 100, "percent of what is given back");
    let mut progress = |done: u64, all: u64| bar.set(done * 100 / all.max(1), "");
    let compacted = pmem::compact(&directory, None, &mut progress);
    let compacted = compacted.map_err(|error| Failure::new(error.to_string()))?;
    let Compacted { bytes_before, bytes_after, bytes_used, moved_bytes, not_moved } = compacted;
    let report = Report {
        path: directory.display().to_string(),
        data_bytes_before: bytes_before,
        data_bytes: bytes_after,
        used_bytes: bytes_used,
        moved_bytes,
        not_moved,
    };
    show(&report, arguments.json, || report.text())?;
    match report.not_moved {
        None => Ok(()),
        Some(why) => Err(Failure::new(format!("a page was not moved: {why}"))),
    }
}

impl Report {
    fn text(&self) -> String {
        let Self { path, data_bytes_before, data_bytes, used_bytes, moved_bytes, .. } = self;
        format!(
            "compacted {path}\n  data before  {data_bytes_before} bytes\n  data         \
             {data_bytes} bytes\n  in use       {used_bytes} bytes\n  moved        {moved_bytes} \
             bytes\n"
        )
    }
}
