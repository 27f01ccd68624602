//! `bench WORKLOAD --epochs N`: the workload's stream through the library.

use bench::{Job, Place, Settings, StreamSettings, render_stream, run_stream};

use super::ending::{end, ending, text_with};
use crate::args::RunArguments;
use crate::output::{Done, JsonTarget};
use crate::signals::Signals;

/// Whether options are for a stream, and not for clients.
pub(super) fn is_asked_for(arguments: &RunArguments) -> bool {
    let RunArguments { epochs, verify, resume, ack_log, die_at, .. } = arguments;
    epochs.is_some() || *verify || *resume || ack_log.is_some() || die_at.is_some()
}

/// What is asked for.
pub(super) struct Asked<'a> {
    pub(super) arguments: &'a RunArguments,
    /// Epochs of the stream.
    pub(super) epochs: u64,
}

/// Runs so many epochs and reports.
pub(super) fn run(
    job: &Job,
    place: Place,
    settings: &Settings,
    asked: Asked<'_>,
    signals: &Signals,
) -> Done {
    let Asked { arguments, epochs } = asked;
    let RunArguments { verify, resume, ack_log, json, .. } = arguments;
    let stream =
        StreamSettings { epochs, verify: *verify, ack_log: ack_log.clone(), resume: *resume };
    let target = JsonTarget::open(json.as_deref())?;
    eprintln!("note: {}", place.describe());
    let result = run_stream(job, &place, settings, &stream);
    let kept = place.is_kept().then(|| place.spec.clone());
    let removed = place.remove();
    let report = result?;
    removed?;
    let ran = report.epochs;
    let ending = report.interrupted.then(|| ending(job, report.done, ran, kept));
    if let (Some(ending), JsonTarget::Standard) = (&ending, &target) {
        eprintln!("note: {ending}");
    }
    target.write(&report, || text_with(ending.as_deref(), ran, || render_stream(&report)))?;
    end(&report.problems, report.workload, report.interrupted, signals)
}
