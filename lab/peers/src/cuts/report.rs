//! What power cuts came to, for machines and for people.

use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

use super::protocol::Phase;
use super::store::{Fault, Round};
use super::volume::{FileSystem, Part};
use crate::databases::Database;

/// All of it.
#[derive(Debug, Clone, Serialize)]
pub struct CutReport {
    /// Where the databases were.
    pub file_system: FileSystem,
    /// Names the calls and the cuts.
    pub seed: u64,
    /// Answers did not wait for the disk.
    pub is_unsynced: bool,
    /// A signal came before all cuts were made.
    pub interrupted: bool,
    /// What became of each database.
    pub rows: Vec<CutRow>,
}

/// What became of one database.
#[derive(Debug, Clone, Serialize)]
pub struct CutRow {
    /// Its name on the command line.
    pub database: Database,
    /// Name and version.
    pub peer: String,
    /// Power cuts.
    pub cuts: u64,
    /// Of them: the process was stopped, then the file system ended.
    pub cuts_of_file_system: u64,
    /// The process was stopped, then the disk ended, and lost what was not flushed.
    pub cuts_of_disk: u64,
    /// The disk ended while the process ran on, which met errors.
    pub cuts_of_running: u64,
    /// Cuts while it was opened or made, was checked, was used, and was closed.
    pub cuts_in_phases: [u64; Phase::ALL.len()],
    /// Calls that were answered.
    pub answered: u64,
    /// How often it was opened after a cut, and all of it compared.
    pub verified: u64,
    /// Answered calls that were not there; the process was stopped before each cut.
    pub lost: u64,
    /// The same where it ran on, and met errors, since it was last right.
    pub lost_after_errors: u64,
    /// States that no run of the calls comes to.
    pub wrong: u64,
    /// Opens that failed.
    pub refused: u64,
    /// Opens that failed where the rows were never said to be there, because the making was cut.
    pub not_made: u64,
    /// Damage that its own check found.
    pub damaged: u64,
    /// Failures while nothing was cut.
    pub failed: u64,
    /// What exactly.
    pub violations: Vec<Violation>,
    /// How long all of it took.
    pub seconds: f64,
}

/// A database that is not right.
#[derive(Debug, Clone, Serialize)]
pub struct Violation {
    /// The round that found it.
    pub round: u64,
    /// What was found.
    pub what: String,
    /// The cut before.
    pub after: Option<String>,
    /// Its files as they were after the cut, before anything opened them; of the first few.
    pub kept: Option<String>,
}

impl CutRow {
    pub(super) fn new(database: Database) -> Self {
        Self {
            database,
            peer: database.version(),
            cuts: 0,
            cuts_of_file_system: 0,
            cuts_of_disk: 0,
            cuts_of_running: 0,
            cuts_in_phases: [0; Phase::ALL.len()],
            answered: 0,
            verified: 0,
            lost: 0,
            lost_after_errors: 0,
            wrong: 0,
            refused: 0,
            not_made: 0,
            damaged: 0,
            failed: 0,
            violations: Vec::new(),
            seconds: 0.0,
        }
    }

    pub(super) fn add(&mut self, round: &Round) {
        self.answered += round.calls;
        self.verified += u64::from(round.is_verified);
        if let Some(cut) = round.cut {
            self.cuts += 1;
            *match (cut.is_failing, cut.part) {
                (true, _) => &mut self.cuts_of_running,
                (false, Part::FileSystem) => &mut self.cuts_of_file_system,
                (false, Part::Disk) => &mut self.cuts_of_disk,
            } += 1;
            self.cuts_in_phases[cut.phase as usize] += 1;
        }
        match round.violation {
            None => {}
            Some((Fault::Lost(calls), _)) if round.met_errors => self.lost_after_errors += calls,
            Some((Fault::Lost(calls), _)) => self.lost += calls,
            Some((Fault::Wrong, _)) => self.wrong += 1,
            Some((Fault::Refused, _)) => self.refused += 1,
            Some((Fault::NotMade, _)) => self.not_made += 1,
            Some((Fault::Damaged, _)) => self.damaged += 1,
            Some((Fault::Failed, _)) => self.failed += 1,
        }
    }

    /// Whether everything was right.
    #[must_use]
    pub fn is_right(&self) -> bool {
        self.violations.is_empty()
    }

    pub(super) fn so_far(&self) -> String {
        let wrong = self.violations.len();
        format!("{}: {} answered, {wrong} violations", self.database.name(), self.answered)
    }
}

const COLUMNS: [&str; 15] = [
    "",
    "cuts",
    "file system",
    "disk cache",
    "running",
    "open/check/run/close",
    "answered",
    "verified",
    "lost",
    "lost after errors",
    "wrong",
    "refused",
    "not made",
    "damaged",
    "failed",
];

/// Violations of a database that are told to people.
const TOLD_MAX: usize = 5;

/// For people.
#[must_use]
pub fn render_cuts(report: &CutReport) -> String {
    let mut table = Table::new();
    table.load_preset(presets::ASCII_BORDERS_ONLY_CONDENSED);
    table.set_header(COLUMNS);
    table.column_iter_mut().skip(1).for_each(|c| c.set_cell_alignment(CellAlignment::Right));
    for row in &report.rows {
        table.add_row(cells(row));
    }
    let waits = if report.is_unsynced { "do NOT wait" } else { "wait" };
    let mut text = format!(
        "power cuts of {} on a loop device, seed {}; answers {waits} for the disk\n{table}\n",
        report.file_system.name(),
        report.seed
    );
    for row in &report.rows {
        for Violation { round, what, after, kept } in row.violations.iter().take(TOLD_MAX) {
            let or_not = |what: &Option<String>| what.clone().unwrap_or_else(|| "-".into());
            text += &format!("{}, round {round}: {what}\n", row.peer);
            text += &format!("  after: {}; kept: {}\n", or_not(after), or_not(kept));
        }
        if let Some(more @ 1..) = row.violations.len().checked_sub(TOLD_MAX) {
            text += &format!("{}: {more} more violations\n", row.peer);
        }
    }
    let seconds: f64 = report.rows.iter().map(|row| row.seconds).sum();
    let cuts: u64 = report.rows.iter().map(|row| row.cuts).sum();
    let end = if report.interrupted { ", interrupted" } else { "" };
    text + &format!("{cuts} cuts in {seconds:.0} s{end}\n")
}

fn cells(row: &CutRow) -> [String; COLUMNS.len()] {
    [
        row.peer.clone(),
        row.cuts.to_string(),
        row.cuts_of_file_system.to_string(),
        row.cuts_of_disk.to_string(),
        row.cuts_of_running.to_string(),
        row.cuts_in_phases.map(|cuts| cuts.to_string()).join("/"),
        row.answered.to_string(),
        row.verified.to_string(),
        row.lost.to_string(),
        row.lost_after_errors.to_string(),
        row.wrong.to_string(),
        row.refused.to_string(),
        row.not_made.to_string(),
        row.damaged.to_string(),
        row.failed.to_string(),
    ]
}
