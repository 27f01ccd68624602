//! A database on a volume, from power cut to power cut.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use super::calls::Plan;
use super::protocol::{Phase, Task};
use super::running::{Heard, Moment, Running, Until};
use super::settings::Context;
use super::verify::Known;
use super::volume::{self, Part, Volume};
use crate::databases::Database;
use crate::peer::{Error, Pace, Result, Shape};
use crate::value::Random;

/// Most milliseconds that callers call before the cut, and of calls between an open and a close.
const RUN_MS_MAX: u64 = 100;
/// Of 100 cuts so many are while the database opens.
const OPENING_SHARE: u64 = 30;
/// How long a process may go on where its disk has failed.
const FAILING: Duration = Duration::from_millis(20);

/// A cut, and what was found before it.
#[derive(Debug)]
pub(super) struct Round {
    /// What was cut, and when; none if there was none.
    pub(super) cut: Option<Cut>,
    /// Calls that were answered.
    pub(super) calls: u64,
    /// The database was opened, and what it holds was compared.
    pub(super) is_verified: bool,
    /// Since it was last found to be right, its process met errors of a disk that failed.
    pub(super) met_errors: bool,
    /// What was found, if it is not right.
    pub(super) violation: Option<(Fault, String)>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Cut {
    pub(super) part: Part,
    /// The process ran on, and met errors.
    pub(super) is_failing: bool,
    pub(super) phase: Phase,
}

impl std::fmt::Display for Cut {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let part = match self.part {
            Part::FileSystem => "the file system",
            Part::Disk => "the disk",
        };
        let how = if self.is_failing { "met its errors" } else { "was stopped before" };
        write!(to, "{part} ended, {:?}; the process {how}", self.phase)
    }
}

/// What is not right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// So many answered calls are not there.
    Lost(u64),
    /// It holds what no run of the calls comes to.
    Wrong,
    /// It does not open, or not in time.
    Refused,
    /// The same where it was never said that its rows were made.
    NotMade,
    /// Its own check finds damage.
    Damaged,
    /// It failed while nothing was cut.
    Failed,
}

/// The database, and what is known of it.
pub(super) struct Store {
    database: Database,
    /// Before the directory that it is in.
    volume: Volume,
    room: TempDir,
    plan: Plan,
    is_loaded: bool,
    known: Vec<Known>,
    /// How long the last open took.
    opened_in: Duration,
    /// The last cut but that of the round that is running.
    pub(super) last_cut: Option<Cut>,
    this_cut: Option<Cut>,
    met_errors: bool,
    pub(super) cuts: u64,
    /// It is better to begin anew: the disk is full, or the making was cut between two parts.
    pub(super) is_over: bool,
}

impl Store {
    /// A new volume, and a database that is not made yet.
    pub(super) fn new(database: Database, of: Context<'_>, random: &mut Random) -> Result<Self> {
        const CALLERS: [u64; 3] = [1, 4, 8];
        let callers = CALLERS[(random.next() % CALLERS.len() as u64) as usize];
        let shape = shape(callers, of.settings.is_unsynced, random);
        let room = tempfile::Builder::new().prefix("cuts-").tempdir_in(&of.settings.directory);
        let room = room.map_err(|error| Error::of("a directory of its own", error))?;
        let volume = Volume::make(room.path(), of.settings.file_system)?;
        Ok(Self {
            database,
            volume,
            room,
            plan: Plan { seed: random.next(), callers, shape },
            is_loaded: false,
            known: vec![Known::default(); callers as usize],
            opened_in: Duration::from_millis(10),
            last_cut: None,
            this_cut: None,
            met_errors: false,
            cuts: 0,
            is_over: false,
        })
    }

    /// Opens the database, lets callers use it, and cuts the power at a random moment.
    pub(super) fn round(&mut self, of: Context<'_>, random: &mut Random) -> Result<Round> {
        let moment = match random.next() % 100 {
            // A little longer than the last one took.
            0..OPENING_SHARE => {
                let most = self.opened_in.as_micros() as u64 * 5 / 4 + 1;
                Moment::AfterOpening(Duration::from_micros(random.next() % most))
            }
            _ => Moment::AfterRunning(Duration::from_micros(random.next() % (RUN_MS_MAX * 1000))),
        };
        let run_ms = 1 + random.next() % RUN_MS_MAX;
        self.run(of, moment, Some(run_ms), random)
    }

    /// Opens the database a last time.
    pub(super) fn finish(&mut self, of: Context<'_>, random: &mut Random) -> Result<Round> {
        self.run(of, Moment::Never, None, random)
    }

    fn run(
        &mut self,
        of: Context<'_>,
        moment: Moment,
        run_ms: Option<u64>,
        random: &mut Random,
    ) -> Result<Round> {
        self.last_cut = self.this_cut.take();
        self.volume.mount()?;
        self.copy()?;
        if let Some(what) = self.check(of) {
            self.volume.unmount(Part::FileSystem);
            let violation = Some((Fault::Damaged, what));
            let met_errors = self.met_errors;
            return Ok(Round { cut: None, calls: 0, is_verified: false, met_errors, violation });
        }
        let task = Task {
            database: self.database,
            path: self.path(),
            plan: self.plan,
            is_loaded: self.is_loaded,
            known: self.known.clone(),
            run_ms,
        };
        let errors = self.room.path().join("errors");
        let mut running = Running::start((of.programs.process)(), &task, &errors)?;
        let until = running.until(moment);
        let mut cut = None;
        if until == Until::Moment {
            cut = Some(self.cut(&mut running, random)?);
        }
        let (heard, status) = running.end();
        let is_full = self.volume.is_full();
        self.volume.unmount(cut.map_or(Part::FileSystem, |(part, _)| part));
        self.is_over = is_full || heard.is_partial;
        self.cuts += u64::from(cut.is_some());
        self.opened_in = heard.opened_in.unwrap_or(self.opened_in);
        self.is_loaded |= heard.is_loaded;
        self.this_cut = cut.map(|(part, is_failing)| Cut { part, is_failing, phase: heard.phase });
        let round = Round {
            cut: self.this_cut,
            calls: heard.calls,
            is_verified: heard.found.is_some(),
            met_errors: self.met_errors,
            violation: violation(&until, moment, &heard, &status)
                .or_else(|| self.panicked(&errors)),
        };
        self.met_errors &= !round.is_verified;
        self.met_errors |= self.this_cut.is_some_and(|cut| cut.is_failing);
        self.known = heard.known;
        Ok(round)
    }

    /// Cuts the power of a part of the volume; the process is stopped before, or runs on a while.
    fn cut(&self, running: &mut Running, random: &mut Random) -> Result<(Part, bool)> {
        let is_failing = random.next().is_multiple_of(2);
        // A file system that ends under a sync may say that it took place; one whose disk fails
        // does not.
        let part = match random.next() % 2 {
            0 if !is_failing => Part::FileSystem,
            _ => Part::Disk,
        };
        if !is_failing {
            running.freeze()?;
        }
        self.volume.cut(part, random)?;
        if is_failing {
            running.hear_for(FAILING);
        }
        Ok((part, is_failing))
    }

    pub(super) fn name(&self) -> &'static str {
        self.database.name()
    }

    fn path(&self) -> PathBuf {
        self.volume.path().join("store")
    }

    fn copied(&self) -> PathBuf {
        self.room.path().join("copy")
    }

    /// Keeps what is on the disk, until the next round.
    fn copy(&self) -> Result<()> {
        let failed = |error| Error::of("a copy of a store", error);
        if self.copied().exists() {
            std::fs::remove_dir_all(self.copied()).map_err(failed)?;
        }
        let mut copy = Command::new("cp");
        copy.args(["-a", "--sparse=always"]).arg(self.volume.path()).arg(self.copied());
        volume::run(&mut copy)
    }

    /// Moves what was on the disk before the last open to where it is kept, with what was answered.
    pub(super) fn keep(&self, to: &Path) -> Result<()> {
        let failed = |error: &dyn std::fmt::Display| Error::of(&to.display().to_string(), error);
        volume::run(Command::new("cp").arg("-a").arg(self.copied()).arg(to))?;
        let known = serde_json::json!({"plan": self.plan, "known": self.known});
        let known = serde_json::to_vec(&known).map_err(|error| failed(&error))?;
        std::fs::write(to.join("known.json"), known).map_err(|error| failed(&error))
    }

    /// A panic of the library, also where its disk has failed: that is an error, and no bug.
    fn panicked(&self, errors: &Path) -> Option<(Fault, String)> {
        let errors = std::fs::read_to_string(errors).unwrap_or_default();
        let from = errors.find("panicked at").filter(|_| self.database == Database::Nvcaracal)?;
        Some((Fault::Failed, errors[from..].trim().replace('\n', " ")))
    }

    /// What the program finds that checks stores of the library, before anything opens this one.
    fn check(&self, of: Context<'_>) -> Option<String> {
        if self.database != Database::Nvcaracal || !self.is_loaded {
            return None;
        }
        let mut check = (of.programs.check)(&self.path());
        match check.stdin(Stdio::null()).output() {
            Ok(ran) if ran.status.success() => None,
            Ok(ran) => Some(String::from_utf8_lossy(&ran.stderr).trim().replace('\n', " ")),
            Err(error) => Some(error.to_string()),
        }
    }
}

/// How large a database is, and what it may have in memory: of four one is larger than that, or
/// than what the library reads before it is open.
fn shape(callers: u64, is_unsynced: bool, random: &mut Random) -> Shape {
    const VALUE_BYTES: [usize; 4] = [40, 100, 1000, 3000];
    const SHARED_ROWS: u64 = 200;
    const LARGE_VALUE_BYTES: usize = 2000;
    const LARGE_SHARED_ROWS: u64 = 6000;
    const CACHE_BYTES: u64 = 16 << 20;
    let value_bytes = VALUE_BYTES[(random.next() % VALUE_BYTES.len() as u64) as usize];
    let is_large = random.next().is_multiple_of(4);
    let is_limited = random.next().is_multiple_of(2) && is_large;
    let (shared_rows, value_bytes) = match is_large {
        true => (LARGE_SHARED_ROWS, LARGE_VALUE_BYTES),
        false => (SHARED_ROWS, value_bytes),
    };
    Shape {
        rows: callers + shared_rows,
        value_bytes,
        cache_bytes: CACHE_BYTES,
        is_limited,
        pace: if is_unsynced { Pace::Unsynced } else { Pace::Short(random.next()) },
    }
}

/// What is not right with what a process said until its time was over.
fn violation(
    until: &Until,
    moment: Moment,
    heard: &Heard,
    status: &str,
) -> Option<(Fault, String)> {
    let found = heard.found.as_ref();
    let wrong = found.map_or_else(String::new, |found| found.wrong.join("; "));
    match until {
        Until::Moment => None,
        Until::Wrong => Some(match found.map_or(0, |found| found.lost) {
            0 => (Fault::Wrong, wrong),
            lost => (Fault::Lost(lost), format!("{lost} answered calls are not there; {wrong}")),
        }),
        Until::Hangs => Some((Fault::Refused, "it says nothing for two minutes".into())),
        // As it should be, if it has said what it holds.
        Until::Ended if heard.is_partial => None,
        Until::Ended if matches!(moment, Moment::Never) && heard.failed.is_none() => {
            let is_whole = found.is_some() || heard.is_made;
            (!is_whole).then(|| (Fault::Refused, format!("its process ended: {status}")))
        }
        Until::Ended => {
            let ended = || format!("its process ended: {status}");
            let what = heard.failed.as_ref().map_or_else(ended, ToString::to_string);
            let fault = match heard.phase {
                Phase::Opening | Phase::Checking if !heard.is_loaded => Fault::NotMade,
                Phase::Opening => Fault::Refused,
                Phase::Checking => Fault::Damaged,
                Phase::Running | Phase::Closing => Fault::Failed,
            };
            Some((fault, what))
        }
    }
}
