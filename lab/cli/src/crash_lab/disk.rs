//! `sim --device file`: histories on the `file` device over a simulated disk.

use cli::output::{Done, JsonTarget};
use cli::signals::Signals;
use serde::Serialize;
use sim::disk::{Campaign, Failure, Options, Report, campaign};

use super::exploring::Exploring;
use crate::args::SimArguments;

/// What was explored, as shown.
#[derive(Debug, Serialize)]
struct Explored {
    device: &'static str,
    seed: u64,
    seconds: f64,
    jobs: usize,
    interrupted: bool,
    histories: u64,
    images: u64,
    power_cuts: u64,
    kills: u64,
    snapshots_beside_later_epochs: u64,
    faults: u64,
    runs_ended_by_a_fault: u64,
    epochs_refused: u64,
    bad_reads: u64,
    bad_reads_of_the_same: u64,
    opens_refused: u64,
    opens_at_an_older_epoch: u64,
    call_kinds: Vec<String>,
    violations: u64,
    failure: Option<FailureShown>,
}

#[derive(Debug, Serialize)]
struct FailureShown {
    seed: u64,
    violation: String,
    repeat: String,
}

/// Explores until the time is over, a violation is found, or a signal comes.
pub(super) fn run(arguments: &SimArguments, seed: u64, signals: &Signals) -> Done {
    let target = JsonTarget::open(arguments.json.as_deref())?;
    let exploring = Exploring::begin(arguments, arguments.cases, "histories", signals);
    let show = |report: &Report| {
        let message = format!("{} images, {} histories", report.images, report.histories);
        exploring.show(report.histories, message);
    };
    let jobs = cli::runs::workers(arguments.jobs);
    let stop = || exploring.is_over();
    let (report, failure) = campaign(&Campaign {
        seed,
        histories: arguments.cases,
        jobs,
        options: Options::default(),
        stop: &stop,
        progress: &show,
    });
    exploring.hide();
    let (seconds, interrupted) = (exploring.elapsed(), exploring.interrupted());
    let explored =
        Explored { seed, jobs, seconds, interrupted, ..explored(&report, failure.as_ref()) };
    target.write(&explored, || text(&explored, &report))?;
    exploring.end(explored.violations, signals)
}

fn explored(report: &Report, failure: Option<&Failure>) -> Explored {
    let kind = |(file, call): &(pmem::DiskFile, &str)| match file.name() {
        "" => format!("directory {call}"),
        name => format!("{name} {call}"),
    };
    Explored {
        device: "file",
        seed: 0,
        seconds: 0.0,
        jobs: 0,
        interrupted: false,
        histories: report.histories,
        images: report.images,
        power_cuts: report.power_cuts,
        kills: report.kills,
        snapshots_beside_later_epochs: report.overlaps,
        faults: report.faults,
        runs_ended_by_a_fault: report.failures,
        epochs_refused: report.refusals,
        bad_reads: report.bad_reads,
        bad_reads_of_the_same: report.unchanged_reads,
        opens_refused: report.refused_opens,
        opens_at_an_older_epoch: report.older_states,
        call_kinds: report.call_kinds.iter().map(kind).collect(),
        violations: failure.iter().count() as u64,
        failure: failure.map(|failure| FailureShown {
            seed: failure.seed,
            violation: failure.what.clone(),
            repeat: format!("nvcaracal-lab sim --device file --seed {} --cases 1", failure.seed),
        }),
    }
}

fn text(explored: &Explored, report: &Report) -> String {
    let Explored { seed, seconds, jobs, violations, call_kinds, .. } = explored;
    let mut text = format!(
        "{report}: {}\nhistories from seed {seed}, {jobs} jobs, {seconds:.1} s\n",
        call_kinds.join(", ")
    );
    if explored.interrupted {
        text += "interrupted\n";
    }
    text += &format!("{violations} violations\n");
    if let Some(FailureShown { seed, violation, repeat }) = &explored.failure {
        text += &format!("\nVIOLATION in the history of seed {seed}: {violation}\n");
        text += &format!("repeat with: {repeat}\n");
    }
    text
}
