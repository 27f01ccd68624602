//! What commands that run something share: how many workers there are, and how a run ends.

use bench::Job;
use pmem::DeviceSpec;

use crate::output::{Done, Failure};
use crate::signals::Signals;

/// As many as asked for, or as there are cores, up to the engine's limit.
#[must_use]
pub fn workers(asked: Option<u64>) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    asked.map_or_else(|| cores().min(64), |workers| workers as usize)
}

/// How a run ends that has reported.
///
/// # Errors
/// The problems that the workload's check found; nothing but the exit code of an interruption.
pub fn end(problems: &[String], workload: &str, interrupted: bool, signals: &Signals) -> Done {
    if !problems.is_empty() {
        let failed = |problem| format!("the consistency check of {workload} failed: {problem}");
        return Err(Failure::all(problems.iter().map(failed).collect()));
    }
    // The report has said what there is to say.
    let messages = Vec::new();
    if interrupted { Err(Failure { messages, code: signals.exit_code() }) } else { Ok(()) }
}

/// After which epoch of the run it was interrupted, whether any of the stream ran, and how it goes
/// on if its store is kept.
#[must_use]
pub fn ending(job: &Job, last: u64, ran: u64, kept: Option<DeviceSpec>) -> String {
    let after = job.epoch_name(last);
    let nothing = if ran == 0 { ", with no epoch of the stream to report" } else { "" };
    let resume =
        kept.map_or_else(String::new, |spec| format!("; --device {spec} --resume goes on"));
    format!("interrupted after {after}{nothing}{resume}")
}

/// A report as text, with how it was interrupted; if no epoch of the stream ran, only that.
#[must_use]
pub fn text_with(ending: Option<&str>, ran: u64, render: impl FnOnce() -> String) -> String {
    match ending {
        None => render(),
        Some(ending) if ran == 0 => format!("{ending}\n"),
        Some(ending) => format!("{}{ending}\n", render()),
    }
}
