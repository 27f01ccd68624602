//! `bench ablation`: makes the runs that say what the options of the engine are worth, each in a
//! process of its own, one after the other.

use std::path::PathBuf;

use bench::{Progress, Stop};
use cli::output::{Done, Failure, JsonTarget};
use cli::runs::workers;
use cli::signals::Signals;
use lab::ablation::{Ablation, Run, Settings, WORKS};
use serde_json::Value;

use crate::args::AblationArguments;
use crate::process::{self, Ended};

const ROUNDS_DEFAULT: u64 = 3;

/// Runs a `bench ablation` command.
pub(super) fn run(arguments: &AblationArguments) -> Done {
    let signals = Signals::listen()?;
    let programs = Programs::find(arguments)?;
    let quick = arguments.quick;
    let asked = arguments.work.iter().copied();
    let mut ablation = Ablation::new(Settings {
        works: if arguments.work.is_empty() { WORKS.to_vec() } else { asked.collect() },
        rounds: arguments.rounds.unwrap_or(if quick { 1 } else { ROUNDS_DEFAULT }),
        quick,
        workers: workers(arguments.workers),
        seed: arguments.seed,
        device: arguments.device.to_string(),
        against: arguments.against.is_some(),
    });
    let target = JsonTarget::open(arguments.json.as_deref())?;
    let interrupted = make_runs(arguments, &programs, &mut ablation, &signals.stop())?;
    let report = ablation.report(interrupted);
    target.write(&report, || text(&report))?;
    let messages = Vec::new();
    if interrupted { Err(Failure { messages, code: signals.exit_code() }) } else { Ok(()) }
}

fn text(report: &lab::ablation::AblationReport) -> String {
    let ending = if report.interrupted { "interrupted: not all rounds are in it\n" } else { "" };
    format!("{}{ending}", lab::render_ablation(report))
}

/// Makes all runs; whether a signal came before the last one had ended.
fn make_runs(
    arguments: &AblationArguments,
    programs: &Programs,
    ablation: &mut Ablation,
    stop: &Stop,
) -> Result<bool, Failure> {
    let progress = if arguments.no_progress { Progress::Hidden } else { Progress::Shown };
    let runs = ablation.runs();
    let bar = progress.bar("ablation", runs.len() as u64, "runs");
    for run in &runs {
        bar.say(run.what.clone());
        let Some(report) = programs.report_of(run, stop)? else { return Ok(true) };
        ablation.add(run, &report).map_err(Failure::new)?;
        bar.step(run.what.clone());
    }
    Ok(false)
}

/// What makes the runs.
struct Programs {
    this: PathBuf,
    other: Option<PathBuf>,
}

impl Programs {
    fn find(arguments: &AblationArguments) -> Result<Self, Failure> {
        let this = std::env::current_exe()
            .map_err(|error| Failure::new(format!("cannot find this program: {error}")))?;
        if let Some(other) = arguments.against.as_deref().filter(|other| !other.is_file()) {
            return Err(Failure::usage(format!("there is no program {}", other.display())));
        }
        // A name without a slash would be looked for elsewhere.
        let other = arguments.against.as_deref().map(std::fs::canonicalize).transpose();
        let other = other.map_err(|error| Failure::usage(format!("--against: {error}")))?;
        Ok(Self { this, other })
    }

    /// Makes a run and reads its report; nothing if a signal came first.
    fn report_of(&self, run: &Run, stop: &Stop) -> Result<Option<Value>, Failure> {
        let program = if run.by_other { self.other.as_ref() } else { None };
        let program = program.unwrap_or(&self.this);
        let failed = |why: String| {
            let line = format!("{} bench {}", program.display(), run.words.join(" "));
            Failure::new(format!("{}: {why}: {line}", run.what))
        };
        match process::run(program, &run.words, stop).map_err(failed)? {
            Ended::Report(report) => Ok(Some(report)),
            Ended::Stopped => Ok(None),
            Ended::Failed(status, said) => Err(failed(format!("{status}: {said}"))),
        }
    }
}
