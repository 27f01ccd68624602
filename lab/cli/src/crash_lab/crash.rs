//! `sim`: the crash lab. Explores until the time is over, a violation is found, or a signal comes.

use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use cli::output::{Done, JsonTarget};
use cli::signals::Signals;
use serde::Serialize;
use sim::crash::{
    Campaign, Class, Counts, DEPTH_MAX, Failure, Grown, Options, Outcome, minimise, run as explore,
};
use sim::history::shrink::{Step, describe};

use super::exploring::Exploring;
use super::{damage, disk};
use crate::args::{SimArguments, SimDevice};

/// Seeds that are made up are short enough to be typed.
const SEED_BELOW: u64 = 1_000_000_000;
/// Images that the search for a smaller case may recover.
const MINIMISE_IMAGES: u64 = 100_000;

/// What was explored, as shown.
#[derive(Debug, Serialize)]
struct Explored {
    device: &'static str,
    seed: u64,
    seconds: f64,
    jobs: usize,
    interrupted: bool,
    histories: u64,
    /// Of these, the histories that were explored deeply, the others a little.
    histories_deep: u64,
    histories_per_core_second: f64,
    lives: u64,
    kills: u64,
    /// Lives that a call ended which could not be undone.
    lives_ended_by_a_call: u64,
    seldom: SeldomShown,
    epochs: u64,
    epochs_refused: u64,
    /// Of these, the epochs for which only the log was too small.
    epochs_refused_by_log: u64,
    images: u64,
    images_per_second: f64,
    /// By the processor time of the whole process, whatever else uses the machine.
    images_per_core_second: f64,
    images_skipped_as_same: u64,
    crash_points: u64,
    violations: u64,
    /// Rows of the crash matrix, by depth, that must be hit, and how many were.
    rows: usize,
    rows_hit: usize,
    /// Rows of the crash matrix.
    classes: Vec<ClassCounts>,
    never_hit: Vec<String>,
    failure: Option<FailureShown>,
}

/// Images that came to what few of them come to.
#[derive(Debug, Serialize)]
struct SeldomShown {
    images_with_deferred_calls: u64,
    images_with_an_empty_epoch: u64,
    images_decided_about: u64,
    lives_after_a_larger_epoch: u64,
}

/// A row of the crash matrix; the columns are a run, then recoveries by depth.
#[derive(Debug, Serialize)]
struct ClassCounts {
    class: &'static str,
    crash_points: [u64; DEPTH_MAX + 1],
    images: [u64; DEPTH_MAX + 1],
}

#[derive(Debug, Serialize)]
struct FailureShown {
    seed: u64,
    violation: String,
    obligations: Vec<&'static str>,
    crashes: Vec<String>,
    setup: String,
    image_limit_bytes: u64,
    log_limit_bytes: u64,
    history: String,
    repeat: String,
}

/// Runs a `sim` command.
pub(crate) fn run(arguments: &SimArguments) -> Done {
    let signals = Signals::listen()?;
    let seed = arguments.seed.unwrap_or_else(new_seed);
    eprintln!("note: the first seed is {seed}");
    if arguments.device == SimDevice::File {
        return disk::run(arguments, seed, &signals);
    }
    if arguments.device == SimDevice::Damage {
        return damage::run(arguments, seed, &signals);
    }
    let target = JsonTarget::open(arguments.json.as_deref())?;
    let exploring = Exploring::begin(arguments, arguments.cases, "cases", &signals);
    let explored = explore_crash(arguments, seed, &exploring);
    target.write(&explored, || text(&explored))?;
    exploring.end(explored.violations, &signals)
}

/// How much of each case is explored.
fn options(arguments: &SimArguments) -> Options<'static> {
    let options = Options::default();
    Options {
        depth_max: arguments.depth as usize,
        run_on: arguments.run_on,
        images_max: arguments.images_per_case.unwrap_or(options.images_max),
        mixed: arguments.images_per_case.is_none(),
        ..options
    }
}

pub(super) fn new_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (now.as_nanos() as u64 ^ u64::from(std::process::id()) << 20) % SEED_BELOW
}

fn explore_crash(arguments: &SimArguments, seed: u64, exploring: &Exploring) -> Explored {
    let before = processor_seconds();
    let stop = || exploring.is_over();
    let show = |images: u64, cases: u64| {
        let rate = images as f64 / exploring.elapsed().max(0.001);
        exploring.show(cases, format!("{images} images, {rate:.0} per second, {cases} cases"));
    };
    let options = options(arguments);
    let jobs = cli::runs::workers(arguments.jobs);
    let campaign =
        Campaign { seed, cases: arguments.cases, jobs, options, stop: &stop, progress: &show };
    let Outcome { counts, failure } = explore(&campaign);
    let (seconds, processor) = (exploring.elapsed(), processor_seconds() - before);
    let spent = Spent { seconds, processor };
    exploring.hide();
    let failure = failure.map(|failure| shown(&made_small(failure, arguments, &stop), arguments));
    let interrupted = exploring.interrupted();
    Explored { interrupted, ..explored(&counts, failure, seed, jobs, spent) }
}

/// Whether the time is over.
type IsOver<'a> = &'a (dyn Fn() -> bool + Sync);

/// A failure as it is to be shown: made small, until `is_over`, unless that is not asked for.
fn made_small(
    failure: Box<Failure>,
    arguments: &SimArguments,
    is_over: IsOver<'_>,
) -> Box<Failure> {
    if arguments.no_minimise {
        return failure;
    }
    eprintln!("note: a violation, {}; making it small", failure.violation);
    let go_on = || !is_over();
    let options = Options { go_on: &go_on, ..options(arguments).for_seed(failure.case.seed) };
    minimise(failure, &options, MINIMISE_IMAGES)
}

/// What this process has used of all cores.
fn processor_seconds() -> f64 {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
}

/// What a campaign took, in seconds.
struct Spent {
    seconds: f64,
    /// Of all cores.
    processor: f64,
}

fn explored(
    counts: &Counts,
    failure: Option<FailureShown>,
    seed: u64,
    jobs: usize,
    spent: Spent,
) -> Explored {
    let Spent { seconds, processor } = spent;
    let images = counts.images as f64;
    let (rows_hit, rows) = counts.rows_hit();
    let classes = Class::ALL.into_iter().map(|class| ClassCounts {
        class: class.name(),
        crash_points: counts.points[class as usize],
        images: counts.images_of[class as usize],
    });
    Explored {
        device: "crash",
        seed,
        seconds,
        jobs,
        interrupted: false,
        histories: counts.cases,
        histories_deep: counts.cases_deep,
        histories_per_core_second: counts.cases as f64 / processor,
        lives: counts.lives,
        kills: counts.kills,
        lives_ended_by_a_call: counts.ended,
        seldom: SeldomShown {
            images_with_deferred_calls: counts.seldom.deferred,
            images_with_an_empty_epoch: counts.seldom.empty,
            images_decided_about: counts.seldom.decided,
            lives_after_a_larger_epoch: counts.seldom.smaller,
        },
        epochs: counts.epochs,
        epochs_refused: counts.refused,
        epochs_refused_by_log: counts.refused_by_log,
        images: counts.images,
        images_per_second: images / seconds,
        images_per_core_second: images / processor,
        images_skipped_as_same: counts.same,
        crash_points: counts.points_total(),
        violations: counts.violations,
        rows,
        rows_hit,
        classes: classes.collect(),
        never_hit: counts.never_hit().into_iter().map(|(class, d)| never_hit(class, d)).collect(),
        failure,
    }
}

fn never_hit(class: Class, depth: usize) -> String {
    match depth {
        0 => class.name().to_string(),
        depth => format!("{}, in recovery {depth} deep", class.name()),
    }
}

fn shown(failure: &Failure, arguments: &SimArguments) -> FailureShown {
    let Failure { case, violation, cuts } = failure;
    let history: Vec<Step<()>> =
        case.batches.iter().map(|calls| Step { calls: calls.clone(), after: None }).collect();
    let mut repeat = format!("nvcaracal-lab sim --device crash --seed {} --cases 1", case.seed);
    let given = [
        ("depth", Some(arguments.depth).filter(|&depth| depth != DEPTH_MAX as u64)),
        ("run-on", Some(arguments.run_on).filter(|&epochs| epochs != Options::default().run_on)),
        ("images-per-case", arguments.images_per_case),
    ];
    for (name, given) in given.into_iter().filter_map(|(name, given)| Some((name, given?))) {
        let _ = write!(repeat, " --{name} {given}");
    }
    FailureShown {
        seed: case.seed,
        violation: violation.to_string(),
        obligations: violation.obligations(),
        crashes: cuts.iter().map(ToString::to_string).collect(),
        setup: match &case.grown {
            None => format!("{:?}", case.setup),
            Some(Grown { value_bytes_max, batches }) => format!(
                "{:?}, after {} epochs with values of up to {value_bytes_max:?} bytes",
                case.setup,
                batches.len()
            ),
        },
        image_limit_bytes: case.image_limit_bytes,
        log_limit_bytes: case.log_limit_bytes,
        history: describe(&history),
        repeat,
    }
}

fn text(explored: &Explored) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = render(explored, &mut text);
    text
}

fn render(explored: &Explored, to: &mut String) -> std::fmt::Result {
    let Explored { seed, seconds, jobs, histories, lives, epochs, images, .. } = explored;
    let crash_points = explored.crash_points;
    writeln!(to, "{images} images recovered and compared, from {crash_points} crash points")?;
    writeln!(
        to,
        "{:.0} images per second, {:.0} images and {:.2} histories per second of a core, {jobs} \
         jobs, {seconds:.1} s; {} images of the same bytes skipped",
        explored.images_per_second,
        explored.images_per_core_second,
        explored.histories_per_core_second,
        explored.images_skipped_as_same
    )?;
    writeln!(
        to,
        "{histories} histories from seed {seed}, {} of them deeply; {} of {} rows of the crash \
         matrix",
        explored.histories_deep, explored.rows_hit, explored.rows
    )?;
    writeln!(
        to,
        "{lives} records, {} kills, {epochs} epochs run or replayed, {} refused, {} of them for \
         want of log",
        explored.kills, explored.epochs_refused, explored.epochs_refused_by_log
    )?;
    render_seldom(explored, to)?;
    writeln!(
        to,
        "\n{:<42}{:>10}{:>36}",
        "crash points (images)", "in a run", "in recovery, by depth"
    )?;
    for ClassCounts { class, crash_points, images } in &explored.classes {
        write!(to, "{class:<40}")?;
        for (points, images) in crash_points.iter().zip(images) {
            let cell = if *points == 0 { "-".into() } else { format!("{points} ({images})") };
            write!(to, "{cell:>17}")?;
        }
        writeln!(to)?;
    }
    writeln!(to)?;
    for never in &explored.never_hit {
        writeln!(to, "never hit: {never}")?;
    }
    if explored.interrupted {
        writeln!(to, "interrupted")?;
    }
    writeln!(to, "{} violations", explored.violations)?;
    if let Some(failure) = &explored.failure {
        render_failure(failure, to)?;
    }
    Ok(())
}

fn render_seldom(explored: &Explored, to: &mut String) -> std::fmt::Result {
    let seldom = &explored.seldom;
    writeln!(
        to,
        "{} images with deferred calls; {} with an epoch without calls; {} lives after the loss of \
         a larger epoch",
        seldom.images_with_deferred_calls,
        seldom.images_with_an_empty_epoch,
        seldom.lives_after_a_larger_epoch
    )?;
    writeln!(
        to,
        "{} lives ended by a call, {} images to decide about",
        explored.lives_ended_by_a_call, seldom.images_decided_about
    )
}

fn render_failure(failure: &FailureShown, to: &mut String) -> std::fmt::Result {
    writeln!(to, "\nVIOLATION in the case of seed {}: {}", failure.seed, failure.violation)?;
    for (number, crash) in failure.crashes.iter().enumerate() {
        writeln!(to, "  {}. {crash}", number + 1)?;
    }
    writeln!(to, "obligations: {}", failure.obligations.join(", "))?;
    writeln!(to, "{}", failure.setup)?;
    let FailureShown { image_limit_bytes, log_limit_bytes, .. } = failure;
    writeln!(to, "an image of {image_limit_bytes} bytes at most, a log of {log_limit_bytes}")?;
    write!(to, "{}", failure.history)?;
    writeln!(to, "repeat with: {}", failure.repeat)
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use sim::crash::{Case, explore_case};
    use sim::history::{HASHED, Op, Program, Step};

    use super::*;
    use crate::args::{Arguments, Command};

    fn arguments(more: &[&str]) -> SimArguments {
        let line = ["nvcaracal-lab", "sim"].into_iter().chain(more.iter().copied());
        match Arguments::try_parse_from(line).unwrap().command {
            Command::Sim(arguments) => arguments,
            other => panic!("{other:?}"),
        }
    }

    /// A violation: a call commits and aborts then, in a way that the lab does not expect.
    fn violation() -> Box<Failure> {
        let body =
            vec![Step::new(Op::CommitPoint, HASHED, 0), Step::new(Op::AbortIfAbsent, HASHED, 99)];
        let mut case = Case { log_limit_bytes: 4 << 20, ..Case::of_seed(7) };
        case.batches.push(vec![Program { body, ..Program::default() }.encode()]);
        explore_case(&case, &Options::default(), &mut Counts::default()).unwrap_err()
    }

    fn calls(failure: &Failure) -> usize {
        failure.case.batches.iter().map(Vec::len).sum()
    }

    /// A violation is shown with all that is needed to look into it.
    #[test]
    fn a_violation_is_shown() {
        let given = arguments(&["--images-per-case", "5", "--depth", "2"]);
        let failure = shown(&violation(), &given);
        let counts = Counts { violations: 1, ..Counts::default() };
        let text =
            text(&explored(&counts, Some(failure), 3, 1, Spent { seconds: 1.0, processor: 1.0 }));
        let repeat = "repeat with: nvcaracal-lab sim --device crash --seed 7 --cases 1 --depth 2 \
                      --images-per-case 5\n";
        for expected in [
            "1 violations",
            "VIOLATION in the case of seed 7: another result without a crash: epoch ",
            "obligations: O-06, O-07, ",
            "Insert",
            repeat,
        ] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
    }

    /// A violation is made small, but not longer than there is time, and not if that is not wanted.
    #[test]
    fn a_violation_is_made_small_within_the_time() {
        let found = violation();
        let small = |more: &[&str], over| made_small(found.clone(), &arguments(more), &|| over);
        assert_eq!(calls(&small(&[], false)), 1);
        assert_eq!(calls(&small(&[], true)), calls(&found));
        assert_eq!(calls(&small(&["--no-minimise"], false)), calls(&found));
        assert!(calls(&found) > 1);
    }
}
