//! `reproduce`: makes the runs of the papers' figures, each in a process of its own, keeps what
//! they reported, and writes the reports. What is kept is not made again.

use std::fs::{self, File, OpenOptions};
use std::hash::{DefaultHasher, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};

use bench::{Progress, Stop};
use cli::output::{Done, Failure, json, print};
use cli::runs::workers;
use cli::signals::Signals;
use lab::reproduce::{
    Found, Machine, Outcome, Plan, Recorded, ReproduceReport, Run, Session, Suite, figures_named,
    render_html, report,
};

use crate::args::ReproduceArguments;
use crate::process::{self, Ended};

/// With this code a `bench` command refuses a command line: a design or option that it has not.
const REFUSED: i32 = 2;

/// Runs a `reproduce` command.
pub(crate) fn run(arguments: &ReproduceArguments) -> Done {
    let figures = figures_named(&arguments.figures)?;
    let plan = Plan {
        suite: Suite::of(&figures),
        scale: arguments.scale,
        rounds: arguments.rounds.unwrap_or(arguments.scale.rounds_default()),
        workers: workers(arguments.workers),
        seed: arguments.seed,
    };
    let default = || PathBuf::from(format!("reproduction-{}", plan.scale.name()));
    let directory = arguments.out.clone().unwrap_or_else(default);
    if arguments.redraw {
        return redraw(&plan, &directory, arguments.json);
    }
    let signals = Signals::listen()?;
    let program = std::env::current_exe()
        .map_err(|error| Failure::new(format!("cannot find this program: {error}")))?;
    let session = Session {
        scale: plan.scale,
        build: build_of(&program)?,
        commit: option_env!("NVCARACAL_COMMIT").map(str::to_string),
        machine: Machine::this(),
    };
    let (mut kept, mut found) = Kept::open(&directory, &session)?;
    let mut made = Made { kept: &mut kept, found: &mut found, session: &session, failed: 0 };
    let progress = if arguments.no_progress { Progress::Hidden } else { Progress::Shown };
    let interrupted = made.all(&plan, &program, progress, &signals.stop())?;
    let failed = made.failed;
    let report = report(&plan, &session, &found, interrupted);
    write_reports(&directory, &report, arguments.json)?;
    if interrupted {
        return Err(Failure { messages: Vec::new(), code: signals.exit_code() });
    }
    match failed {
        0 => Ok(()),
        _ => Err(Failure::new(format!("{failed} runs failed; the report says which"))),
    }
}

/// Writes the reports of the runs that are there; rules and words are those of this build.
fn redraw(plan: &Plan, directory: &Path, as_json: bool) -> Done {
    let path = directory.join("runs.jsonl");
    let text = fs::read_to_string(&path)
        .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
    let whole = &text[..text.rfind('\n').map_or(0, |at| at + 1)];
    let read = Found::session_of(whole).and_then(|session| {
        let session = Session { scale: plan.scale, ..session };
        Ok((Found::read(whole, &session)?, session))
    });
    let (found, session) = read.map_err(|error| {
        Failure::usage(format!("cannot redraw {}: {error}", directory.display()))
    })?;
    write_reports(directory, &report(plan, &session, &found, false), as_json)
}

/// Names the bytes of a program: runs of two builds are not compared.
fn build_of(program: &Path) -> Result<String, Failure> {
    let bytes = fs::read(program)
        .map_err(|error| Failure::new(format!("cannot read {}: {error}", program.display())))?;
    let mut hasher = DefaultHasher::new();
    hasher.write(&bytes);
    Ok(format!("{} {:016x}", env!("CARGO_PKG_VERSION"), hasher.finish()))
}

/// The file with one line for each run.
struct Kept {
    path: PathBuf,
    file: File,
}

impl Kept {
    /// Opens the file of a directory, which may be new, and reads what is in it.
    fn open(directory: &Path, session: &Session) -> Result<(Self, Found), Failure> {
        let path = directory.join("runs.jsonl");
        let failed = |error: std::io::Error| Failure::new(format!("{}: {error}", path.display()));
        fs::create_dir_all(directory).map_err(failed)?;
        let open = OpenOptions::new().create(true).append(true).read(true).open(&path);
        let file = open.map_err(failed)?;
        let text = fs::read_to_string(&path).map_err(failed)?;
        // A process that was killed while it wrote left a part of a line.
        let whole = text.rfind('\n').map_or(0, |at| at + 1);
        let found = Found::read(&text[..whole], session).map_err(|error| {
            Failure::usage(format!("cannot go on in {}: {error}", directory.display()))
        })?;
        if whole < text.len() {
            file.set_len(whole as u64).map_err(failed)?;
        }
        Ok((Self { path, file }, found))
    }

    fn add(&mut self, run: &Recorded) -> Done {
        let line = serde_json::to_string(run)
            .map_err(|error| Failure::new(format!("cannot write a run as JSON: {error}")))?;
        self.file
            .write_all(format!("{line}\n").as_bytes())
            .map_err(|error| Failure::new(format!("{}: {error}", self.path.display())))
    }
}

/// Runs that were made, and where they go.
struct Made<'a> {
    kept: &'a mut Kept,
    found: &'a mut Found,
    session: &'a Session,
    failed: usize,
}

impl Made<'_> {
    /// Makes all runs that are not there; whether a signal came before the last one had ended.
    fn all(
        &mut self,
        plan: &Plan,
        program: &Path,
        progress: Progress,
        stop: &Stop,
    ) -> Result<bool, Failure> {
        let runs = plan.runs();
        let left: Vec<&Run> = runs.iter().filter(|run| !self.found.has(run)).collect();
        eprintln!("note: {} of {} runs are to be made", left.len(), runs.len());
        let bar = progress.bar("reproduce", left.len() as u64, "runs");
        for run in left {
            bar.say(run.what.clone());
            let failed = |why| Failure::new(format!("{}: {why}", run.what));
            if stop.asked() {
                return Ok(true);
            }
            let outcome = match process::run(program, &run.words, stop).map_err(failed)? {
                Ended::Report(report) => Outcome::Report(report),
                Ended::Stopped => return Ok(true),
                Ended::Failed(status, said) if status.code() == Some(REFUSED) => {
                    Outcome::Unsupported(said)
                }
                Ended::Failed(status, said) => {
                    self.failed += 1;
                    eprintln!("note: {}: {status}: {said}", run.what);
                    Outcome::Failed(format!("{status}: {said}"))
                }
            };
            let recorded = Recorded::new(self.session, run, outcome);
            self.kept.add(&recorded)?;
            self.found.add(recorded);
            bar.step(run.what.clone());
        }
        Ok(false)
    }
}

fn write_reports(directory: &Path, report: &ReproduceReport, as_json: bool) -> Done {
    let write = |name: &str, text: &str| {
        let path = directory.join(name);
        fs::write(&path, text)
            .map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display())))
    };
    let text = json(report)?;
    write("report.json", &text)?;
    write("report.html", &render_html(report))?;
    if as_json {
        return print(&text);
    }
    let (runs, planned) = (report.runs, report.runs_planned);
    let page = directory.join("report.html");
    print(&format!(
        "{}{runs} of {planned} runs are in {}\n{}",
        report.summary(),
        page.display(),
        if report.interrupted { "interrupted: the same command goes on\n" } else { "" }
    ))
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use cli::runs::Options;
    use lab::reproduce::Scale;

    use super::*;
    use crate::args::{Arguments, BenchCommand, Command, LabRunArguments};

    #[test]
    fn every_run_is_a_command_with_sound_settings() {
        let names = figures_named(&["all".to_string()]).expect("known");
        for scale in Scale::ALL {
            let suite = Suite::of(&names);
            let runs = Plan { suite, scale, rounds: 1, workers: 2, seed: 1 }.runs();
            assert!(runs.len() > 100, "{} runs", runs.len());
            runs.iter().for_each(check_sound);
        }
    }

    /// The settings of a run fit together, and its design runs on its device.
    fn check_sound(run: &Run) {
        let words = ["nvcaracal-lab", "bench"].map(str::to_string).into_iter();
        let words = words.chain(run.words.clone());
        let command = match Arguments::try_parse_from(words) {
            Ok(arguments) => arguments.command,
            Err(error) => panic!("{}: {error}", run.command()),
        };
        match command {
            Command::Bench(BenchCommand::Ycsb(options)) => check_options(&options, run),
            Command::Bench(BenchCommand::Smallbank(options)) => check_options(&options, run),
            Command::Bench(BenchCommand::Tpcc(options)) => check_options(&options, run),
            Command::Bench(BenchCommand::Arulraj(options)) => {
                let is_measured = options.cost || options.shares;
                assert!(is_measured && !options.verify, "{}", run.command());
            }
            // Their options fit together, whichever they are.
            Command::Bench(BenchCommand::Interfaces(_)) => {}
            _ => panic!("not a workload: {}", run.command()),
        }
    }

    fn check_options(options: &impl Options<Run = LabRunArguments>, run: &Run) {
        let job = options.parameters(None).job();
        assert!(job.is_ok(), "{}: {:?}", run.command(), job.err());
        let LabRunArguments { design, run: common, .. } = options.run();
        let device = design.device(common.device.clone());
        assert!(device.is_ok(), "{}: {:?}", run.command(), device.err());
    }
}
