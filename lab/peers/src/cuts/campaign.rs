//! Power cuts of all databases, one after the other.

use std::time::Instant;

use bench::Stop;

use super::report::{CutReport, CutRow, Violation};
use super::settings::{Context, CutSettings, Programs};
use super::store::{Round, Store};
use crate::databases::Database;
use crate::peer::{Error, Result};
use crate::value::Random;

/// Cuts after which there is a new file system.
const CUTS_OF_VOLUME: u64 = 40;
/// Violations after which a database is given up, and of how many the files are kept.
const VIOLATIONS_MAX: usize = 100;
const KEPT_MAX: usize = 5;

/// Cuts the power of all databases; `tell` hears of each cut, and `stop` ends it between two.
///
/// # Errors
/// If file systems cannot be made, mounted or ended, or a process cannot be started. What is wrong
/// with a database is in the report.
pub fn cut_power(
    settings: &CutSettings,
    programs: &Programs<'_>,
    stop: &Stop,
    tell: &mut dyn FnMut(&str),
) -> Result<CutReport> {
    if let Some(database) = settings.databases.iter().find(|database| !database.is_built()) {
        let name = database.name();
        return Err(Error::of(name, format!("not in this build: build it with --features {name}")));
    }
    let context = Context { settings, programs };
    let mut rows = Vec::new();
    for &database in &settings.databases {
        rows.push(cut_one(database, context, stop, tell)?);
    }
    Ok(CutReport {
        file_system: settings.file_system,
        seed: settings.seed,
        is_unsynced: settings.is_unsynced,
        interrupted: stop.asked(),
        rows,
    })
}

fn cut_one(
    database: Database,
    of: Context<'_>,
    stop: &Stop,
    tell: &mut dyn FnMut(&str),
) -> Result<CutRow> {
    let started = Instant::now();
    let mut row = CutRow::new(database);
    let mut store = None;
    let mut number = 0;
    let is_given_up = |row: &CutRow| row.violations.len() >= VIOLATIONS_MAX;
    while row.cuts < of.settings.cuts && !is_given_up(&row) && !stop.asked() {
        // Each round has numbers of its own, whatever the ones before came to.
        number += 1;
        let mut random = Random::new(of.settings.seed << 32 | number);
        let mut one = match store.take() {
            Some(one) => one,
            None => Store::new(database, of, &mut random)?,
        };
        let round = one.round(of, &mut random)?;
        let is_right = round.violation.is_none();
        add(&mut row, round, &one, number, of)?;
        if is_right && one.cuts < CUTS_OF_VOLUME && !one.is_over {
            store = Some(one);
        } else if is_right {
            finish(one, number, of, &mut random, &mut row)?;
        }
        tell(&row.so_far());
    }
    if let Some(one) = store {
        finish(one, number, of, &mut Random::new(of.settings.seed), &mut row)?;
    }
    row.seconds = started.elapsed().as_secs_f64();
    Ok(row)
}

/// Opens a store a last time.
fn finish(
    mut store: Store,
    number: u64,
    of: Context<'_>,
    random: &mut Random,
    row: &mut CutRow,
) -> Result<()> {
    let round = store.finish(of, random)?;
    add(row, round, &store, number, of)
}

/// Adds a round; if it is not right, with the files as they were after the cut before it.
fn add(row: &mut CutRow, round: Round, store: &Store, number: u64, of: Context<'_>) -> Result<()> {
    row.add(&round);
    let Some((_, what)) = round.violation else { return Ok(()) };
    let CutSettings { seed, keep, .. } = of.settings;
    let mut kept = None;
    if row.violations.len() < KEPT_MAX {
        let path = keep.join(format!("power-cut-{}-{seed}-{number}", store.name()));
        store.keep(&path)?;
        kept = Some(path.display().to_string());
    }
    let after = store.last_cut.map(|cut| cut.to_string());
    row.violations.push(Violation { round: number, what, after, kept });
    Ok(())
}
