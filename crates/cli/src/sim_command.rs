//! `sim`: the crash lab. Explores until the time is over, a violation is found, or a signal comes.

use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use sim::crash::{
    Campaign, Class, DEPTH_MAX, Failure, Options, Outcome, Tally, minimise, run as explore,
};
use sim::history::shrink::{Step, describe};
use storage::plant::Plant;

use crate::args::{Planted, SimArguments, SimDevice};
use crate::exploring::Exploring;
use crate::output::{self, Done, JsonTarget};
use crate::signals::Signals;
use crate::{sim_damage, sim_disk};

/// Seeds that are made up are short enough to be typed.
const SEED_BELOW: u64 = 1_000_000_000;
/// The first seed if a bug is planted: always the same, so that its table is, too.
const PLANT_SEED: u64 = 1;
/// Cases in which a planted bug must be found.
const PLANT_CASES: u64 = 200;
/// Most images of a case if a bug is planted: most bugs need another case rather than more images.
const PLANT_IMAGES: u64 = 2000;
/// Images that the search for a smaller case may recover.
const MINIMISE_IMAGES: u64 = 100_000;

/// What was explored, as shown.
#[derive(Debug, Serialize)]
struct Explored {
    device: &'static str,
    planted: Option<PlantShown>,
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
    /// Lives that a call ended which could not be taken back.
    lives_ended_by_a_call: u64,
    seldom: SeldomShown,
    epochs: u64,
    epochs_refused: u64,
    /// Of these, the epochs for which only the log was too small.
    epochs_refused_by_log: u64,
    images: u64,
    images_per_second: f64,
    /// By the processor time of the whole process, whoever else uses the machine.
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
    images_with_a_carry: u64,
    images_with_a_last_try: u64,
    images_with_an_empty_epoch: u64,
    images_decided_about: u64,
    lives_after_a_larger_epoch: u64,
}

/// The bug that was planted.
#[derive(Debug, Serialize)]
struct PlantShown {
    name: &'static str,
    what: &'static str,
    obligations: &'static [&'static str],
    /// Cases up to the one that failed, if one did.
    found_after_cases: Option<u64>,
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

/// Carries a `sim` command out.
pub(crate) fn run(arguments: &SimArguments) -> Done {
    if arguments.plant.is_some() {
        if arguments.device != SimDevice::Crash {
            return Err(output::Failure::usage(
                "--plant needs --device crash: no bug is planted under `file`",
            ));
        }
        // A planted bug may well end in panics, which are caught and compared.
        std::panic::set_hook(Box::new(|_| {}));
    }
    if arguments.plant == Some(Planted::All) {
        return crate::plant_command::run_all(arguments, arguments.seed.unwrap_or(PLANT_SEED));
    }
    let signals = Signals::listen()?;
    let planted = one_planted(arguments);
    let seed = arguments.seed.or(planted.map(|_| PLANT_SEED)).unwrap_or_else(new_seed);
    eprintln!("note: the first seed is {seed}");
    if arguments.device == SimDevice::File {
        return sim_disk::run(arguments, seed, &signals);
    }
    if arguments.device == SimDevice::Damage {
        return sim_damage::run(arguments, seed, &signals);
    }
    let target = JsonTarget::open(arguments.json.as_deref())?;
    let cases = arguments.cases.or(planted.map(|_| PLANT_CASES));
    let exploring = Exploring::begin(arguments, cases, "cases", &signals);
    let explored = explore_crash(arguments, seed, cases, &exploring);
    target.write(&explored, || text(&explored))?;
    exploring.end(explored.violations, &signals)
}

fn one_planted(arguments: &SimArguments) -> Option<Plant> {
    match arguments.plant {
        Some(Planted::One(plant)) => Some(plant),
        _ => None,
    }
}

/// Cases in which a planted bug must be found.
pub(crate) fn plant_cases(arguments: &SimArguments) -> u64 {
    arguments.cases.unwrap_or(PLANT_CASES)
}

/// How much of each case is explored.
pub(crate) fn options(arguments: &SimArguments, plant: Option<Plant>) -> Options<'static> {
    let images_max = match plant {
        Some(_) => PLANT_IMAGES,
        None => Options::default().images_max,
    };
    Options {
        depth_max: arguments.depth as usize,
        run_on: arguments.run_on,
        images_max: arguments.images_per_case.unwrap_or(images_max),
        mixed: plant.is_none() && arguments.images_per_case.is_none(),
        plant,
        ..Options::default()
    }
}

fn new_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (now.as_nanos() as u64 ^ u64::from(std::process::id()) << 20) % SEED_BELOW
}

fn explore_crash(
    arguments: &SimArguments,
    seed: u64,
    cases: Option<u64>,
    exploring: &Exploring,
) -> Explored {
    let before = processor_seconds();
    let plant = one_planted(arguments);
    let stop = || exploring.is_over();
    let show = |images: u64, cases: u64| {
        let rate = images as f64 / exploring.elapsed().max(0.001);
        exploring.show(cases, format!("{images} images, {rate:.0} per second, {cases} cases"));
    };
    let options = options(arguments, plant);
    let jobs = crate::bench_command::workers(arguments.jobs);
    let campaign = Campaign { seed, cases, jobs, options, stop: &stop, progress: &show };
    let Outcome { tally, failure } = explore(&campaign);
    let (elapsed, processor) = (exploring.elapsed(), processor_seconds() - before);
    exploring.hide();
    let failure = failure.map(|failure| {
        eprintln!("note: a violation, {}; making it small", failure.violation);
        let go_on = || !exploring.is_over();
        let options = Options { go_on: &go_on, ..options.for_seed(failure.case.seed) };
        shown(&minimise(failure, &options, MINIMISE_IMAGES), arguments)
    });
    let planted = plant.map(|plant| PlantShown {
        name: plant.name(),
        what: plant.what(),
        obligations: plant.obligations(),
        found_after_cases: failure.as_ref().map(|f| f.seed.wrapping_sub(seed) + 1),
    });
    let interrupted = exploring.interrupted();
    Explored { planted, interrupted, ..explored(&tally, failure, seed, jobs, (elapsed, processor)) }
}

/// What this process has used of all cores.
fn processor_seconds() -> f64 {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
}

fn explored(
    tally: &Tally,
    failure: Option<FailureShown>,
    seed: u64,
    jobs: usize,
    (seconds, processor): (f64, f64),
) -> Explored {
    let images = tally.images as f64;
    let (rows_hit, rows) = tally.rows_hit();
    let classes = Class::ALL.into_iter().map(|class| ClassCounts {
        class: class.name(),
        crash_points: tally.points[class as usize],
        images: tally.images_of[class as usize],
    });
    Explored {
        device: "crash",
        planted: None,
        seed,
        seconds,
        jobs,
        interrupted: false,
        histories: tally.cases,
        histories_deep: tally.cases_deep,
        histories_per_core_second: tally.cases as f64 / processor,
        lives: tally.lives,
        kills: tally.kills,
        lives_ended_by_a_call: tally.ended,
        seldom: SeldomShown {
            images_with_a_carry: tally.seldom.carried,
            images_with_a_last_try: tally.seldom.last_try,
            images_with_an_empty_epoch: tally.seldom.empty,
            images_decided_about: tally.seldom.decided,
            lives_after_a_larger_epoch: tally.seldom.smaller,
        },
        epochs: tally.epochs,
        epochs_refused: tally.refused,
        epochs_refused_by_log: tally.refused_by_log,
        images: tally.images,
        images_per_second: images / seconds,
        images_per_core_second: images / processor,
        images_skipped_as_same: tally.same,
        crash_points: tally.points_total(),
        violations: tally.violations,
        rows,
        rows_hit,
        classes: classes.collect(),
        never_hit: tally.never_hit().into_iter().map(|(class, d)| never_hit(class, d)).collect(),
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
    let mut repeat = format!("nvcaracal sim --device crash --seed {} --cases 1", case.seed);
    if let Some(plant) = one_planted(arguments) {
        let _ = write!(repeat, " --plant {plant}");
    }
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
        setup: format!("{:?}", case.setup),
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
    if let Some(PlantShown { name, what, found_after_cases, .. }) = &explored.planted {
        let found = match found_after_cases {
            Some(cases) => format!("found in case {cases}, with {images} images until then"),
            None => "NOT FOUND".to_string(),
        };
        writeln!(to, "\nthe bug {name} was planted on purpose: {what}; {found}")?;
    }
    if let Some(failure) = &explored.failure {
        render_failure(failure, to)?;
    }
    Ok(())
}

fn render_seldom(explored: &Explored, to: &mut String) -> std::fmt::Result {
    let seldom = &explored.seldom;
    writeln!(
        to,
        "{} images with calls to be made again, {} at their last try; {} with an epoch without \
         calls; {} lives after the loss of a larger epoch",
        seldom.images_with_a_carry,
        seldom.images_with_a_last_try,
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
