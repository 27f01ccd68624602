//! `nvcaracal-differential`: random statements for the SQL server and for a PostgreSQL 15
//! beside it. Rows, tags, errors and contents must be the same, but for what docs/sql.md
//! lists.

#![forbid(unsafe_code)]

mod compare;
mod generate;
mod run;
mod tree;
mod wire;

use clap::Parser;
use generate::{Script, TOPICS, scenario};
use run::{End, Found, minimise, run, to_psql};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use wire::Address;

/// Random statements for the SQL server and for PostgreSQL, whose answers are compared.
///
/// scripts/differential.sh starts a PostgreSQL and runs this. Exit codes: 0 no difference, 1
/// some, or more than a third of the statements are refused, 2 the servers cannot be run.
#[derive(Parser)]
struct Options {
    /// The Unix socket of a PostgreSQL 15 with user and database nvcaracal, whose schema public is
    /// emptied
    #[arg(long)]
    postgresql: PathBuf,
    /// The program whose `serve` is compared
    #[arg(long, default_value = "target/debug/nvcaracal")]
    program: PathBuf,
    /// How long new scenarios begin
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// The first scenario's seed; the next ones follow
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many scenarios at most
    #[arg(long, default_value_t = u64::MAX)]
    scenarios: u64,
    /// One topic instead of all
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(TOPICS))]
    topic: Option<String>,
    /// How many seconds the search for the smallest scenario of a difference takes at most
    #[arg(long, default_value_t = 60)]
    minimise_seconds: u64,
    /// Write each difference into a file of this directory, too, which is made
    #[arg(long)]
    out: Option<PathBuf>,
    /// Fail for the faults of open.txt, too
    #[arg(long)]
    strict: bool,
    /// Leave out row limits, and portals that run again
    #[arg(long)]
    whole: bool,
    /// Print the scenario of the seed and end
    #[arg(long)]
    print: bool,
}

/// What all scenarios have come to.
#[derive(Default)]
struct Sums {
    /// Of each topic.
    scenarios: BTreeMap<&'static str, u64>,
    statements: u64,
    excused: u64,
    refused: u64,
    differences: u64,
    reasons: BTreeMap<String, u64>,
}

/// How many differences of one scenario are looked for.
const DIFFERENCES_MAX: usize = 4;

fn main() -> ExitCode {
    let options = Options::parse();
    if options.print {
        print_script(&scenario(options.seed, options.topic.as_deref()));
        return ExitCode::SUCCESS;
    }
    match compare_all(&options) {
        Ok(sums) => report(&sums),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn print_script(script: &Script) {
    for step in &script.steps {
        for statement in &step.statements {
            println!("{};", statement.tree.to_sql());
        }
    }
}

fn compare_all(options: &Options) -> std::io::Result<Sums> {
    if let Some(out) = &options.out {
        std::fs::create_dir_all(out)?;
    }
    let room = tempfile::tempdir()?;
    let postgresql = Address::Unix(options.postgresql.clone());
    let mut found = Found {
        postgresql: &postgresql,
        program: &options.program,
        room: room.path(),
        forms: run::Forms::default(),
    };
    let mut sums = Sums::default();
    let started = Instant::now();
    for seed in (options.seed..).take(usize::try_from(options.scenarios).unwrap_or(usize::MAX)) {
        if started.elapsed() >= Duration::from_secs(options.seconds) {
            break;
        }
        compare_one(options, seed, &mut found, &mut sums)?;
    }
    Ok(sums)
}

/// Runs the scenario of a seed, without the steps that had to go, until nothing differs.
fn compare_one(
    options: &Options,
    seed: u64,
    found: &mut Found,
    sums: &mut Sums,
) -> std::io::Result<()> {
    let mut script = scenario(seed, options.topic.as_deref());
    if options.whole {
        script.without_limits();
    }
    *sums.scenarios.entry(script.topic).or_default() += 1;
    sums.statements += script.steps.iter().map(|step| step.statements.len() as u64).sum::<u64>();
    let mut differences = 0;
    let mut gone = Vec::new();
    let reasons = loop {
        let mut reasons = Vec::new();
        match run(found, &script, &mut reasons)? {
            End::Same => break reasons,
            End::Excused { at } => {
                gone.extend(reasons.pop());
                script.steps.remove(at);
            }
            End::Differs { at, difference } => {
                if let Some(fault) = known(options, &script, at, &difference.label) {
                    gone.push(format!("OPEN FAULT: {fault}"));
                    if at >= script.steps.len() {
                        break reasons;
                    }
                    script.steps.remove(at);
                    continue;
                }
                differences += 1;
                sums.differences += 1;
                let patience = Duration::from_secs(options.minimise_seconds);
                let (smallest, difference) = minimise(found, &script, at, &difference, patience);
                tell(options, seed, sums.differences, &to_psql(&smallest, &difference));
                if differences == DIFFERENCES_MAX || at >= script.steps.len() {
                    break reasons;
                }
                script.steps.remove(at);
            }
        }
    };
    for reason in reasons.into_iter().chain(gone) {
        sums.excused += 1;
        sums.refused += u64::from(reason.starts_with("refused"));
        *sums.reasons.entry(reason).or_default() += 1;
    }
    Ok(())
}

/// The fault of open.txt that a difference at a step is.
fn known(options: &Options, script: &Script, at: usize, label: &str) -> Option<&'static str> {
    if options.strict {
        return None;
    }
    let of_step = |step: &generate::Step| -> String {
        step.statements.iter().map(|one| one.tree.to_sql() + "; ").collect()
    };
    let text = match script.steps.get(at) {
        Some(step) => of_step(step),
        // A difference in the contents may come of any step.
        None => script.steps.iter().map(of_step).collect(),
    };
    compare::open_fault(label, &text)
}

fn tell(options: &Options, seed: u64, number: u64, text: &str) {
    let topic = options.topic.as_ref().map_or(String::new(), |topic| format!(" --topic {topic}"));
    let head = format!("-- difference {number}: --seed {seed} --scenarios 1{topic}\n");
    println!("\n{head}{text}");
    if let Some(out) = &options.out
        && let Err(error) = std::fs::write(file(out, seed, number), format!("{head}{text}"))
    {
        eprintln!("warning: {error}");
    }
}

fn file(out: &Path, seed: u64, number: u64) -> PathBuf {
    out.join(format!("{seed}_{number}.sql"))
}

/// Prints what was compared and why answers were excused.
fn report(sums: &Sums) -> ExitCode {
    let mut reasons: Vec<_> = sums.reasons.iter().collect();
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    for (reason, count) in reasons {
        println!("{count:7}  {reason}");
    }
    let topics: Vec<_> =
        sums.scenarios.iter().map(|(topic, count)| format!("{topic} {count}")).collect();
    println!("scenarios: {}", topics.join(", "));
    #[expect(clippy::cast_precision_loss, reason = "a share for people")]
    let share = 100.0 * sums.refused as f64 / sums.statements.max(1) as f64;
    println!(
        "{} scenarios, {} statements, {} excused, of them {} refused ({share:.1} %); \
         {} differences",
        sums.scenarios.values().sum::<u64>(),
        sums.statements,
        sums.excused,
        sums.refused,
        sums.differences
    );
    if 3 * sums.refused > sums.statements {
        println!("FAILED: more than a third of the statements are refused");
        return ExitCode::FAILURE;
    }
    if sums.differences > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
