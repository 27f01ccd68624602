//! `sim --plant all`: each planted bug in turn, and how soon the crash lab finds it.

use std::fmt::Write;
use std::time::Instant;

use serde::Serialize;
use sim::crash::{Campaign, Outcome, run as explore};
use storage::plant::Plant;

use crate::args::SimArguments;
use crate::output::{self, Done, JsonTarget};
use crate::signals::Signals;
use crate::sim_command::{options, plant_cases};

/// What came of all of them.
#[derive(Debug, Serialize)]
struct Table {
    seed: u64,
    cases_max: u64,
    jobs: usize,
    seconds: f64,
    planted: usize,
    found: usize,
    interrupted: bool,
    plants: Vec<Row>,
}

/// What came of one of them.
#[derive(Debug, Serialize)]
struct Row {
    name: &'static str,
    what: &'static str,
    obligations: &'static [&'static str],
    found: bool,
    /// The comparison that failed.
    noticed_by: Option<&'static str>,
    violation: Option<String>,
    /// Cases up to the one that failed; if none did, all of them.
    cases: u64,
    images: u64,
    seconds: f64,
}

/// Explores with each of the bugs; an error if one is not found, or on a signal.
pub(crate) fn run_all(arguments: &SimArguments, seed: u64) -> Done {
    let signals = Signals::listen()?;
    let target = JsonTarget::open(arguments.json.as_deref())?;
    let stop = signals.stop();
    let jobs = crate::bench_command::workers(arguments.jobs);
    let cases_max = plant_cases(arguments);
    let started = Instant::now();
    let mut plants = Vec::new();
    for &plant in Plant::ALL {
        if stop.asked() {
            break;
        }
        let row = try_one(plant, arguments, seed, jobs, &|| stop.asked());
        if !arguments.no_progress {
            let found = if row.found { "found" } else { "not found" };
            eprintln!("note: {plant}: {found}, {} cases, {:.1} s", row.cases, row.seconds);
        }
        plants.push(row);
    }
    let found = plants.iter().filter(|row| row.found).count();
    let table = Table {
        seed,
        cases_max,
        jobs,
        seconds: started.elapsed().as_secs_f64(),
        planted: Plant::ALL.len(),
        found,
        interrupted: stop.asked(),
        plants,
    };
    target.write(&table, || text(&table))?;
    let failed = |code| Err(output::Failure { messages: Vec::new(), code });
    match (table.interrupted, table.found == table.planted) {
        (true, _) => failed(signals.exit_code()),
        (_, false) => failed(1),
        _ => Ok(()),
    }
}

fn try_one(
    plant: Plant,
    arguments: &SimArguments,
    seed: u64,
    jobs: usize,
    stop: &(dyn Fn() -> bool + Sync),
) -> Row {
    let started = Instant::now();
    let campaign = Campaign {
        seed,
        cases: Some(plant_cases(arguments)),
        jobs,
        options: options(arguments, Some(plant)),
        stop,
        progress: &|_, _| {},
    };
    let Outcome { tally, failure } = explore(&campaign);
    Row {
        name: plant.name(),
        what: plant.what(),
        obligations: plant.obligations(),
        found: failure.is_some(),
        noticed_by: failure.as_ref().map(|failure| failure.violation.kind.name()),
        violation: failure.as_ref().map(|failure| failure.violation.what.clone()),
        cases: failure.as_ref().map_or(tally.cases, |f| f.case.seed.wrapping_sub(seed) + 1),
        images: tally.images,
        seconds: started.elapsed().as_secs_f64(),
    }
}

fn text(table: &Table) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = render(table, &mut text);
    text
}

fn render(table: &Table, to: &mut String) -> std::fmt::Result {
    let Table { seed, cases_max, jobs, seconds, planted, found, .. } = table;
    writeln!(
        to,
        "{:<26}{:<12}{:<40}{:>6}{:>9}{:>8}",
        "planted bug", "breaks", "noticed by", "seeds", "images", "s"
    )?;
    for row in &table.plants {
        writeln!(
            to,
            "{:<26}{:<12}{:<40}{:>6}{:>9}{:>8.1}",
            row.name,
            row.obligations.join(", "),
            row.noticed_by.unwrap_or("NOT FOUND"),
            row.cases,
            row.images,
            row.seconds
        )?;
    }
    if table.interrupted {
        writeln!(to, "interrupted")?;
    }
    writeln!(
        to,
        "{found} of {planted} planted bugs found, at most {cases_max} seeds each, from seed \
         {seed}; {jobs} jobs, {seconds:.1} s"
    )
}
