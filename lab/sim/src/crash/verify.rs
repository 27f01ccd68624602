//! Recovers an image and compares everything with the oracle.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use engine::Engine;
use pmem::{AnyDevice, Traced};
use storage::{EpochNumber, StorageError};

use super::counts::Seldom;
use super::decide::{Came, open_deciding};
use super::life::{Known, Watching};
use super::points::{Class, Point, only};
use crate::history::{Model, Setup, compare_indexes, compare_state};

/// What kind of comparison failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ViolationKind {
    /// The engine and the oracle differ without a crash.
    Run,
    /// The checker finds something in what the crash left.
    LeftUnclean,
    /// The store does not open.
    DoesNotOpen,
    /// Something panicked.
    Panic,
    /// An epoch that was answered is not there.
    Lost,
    /// An epoch is there that cannot be.
    Invented,
    /// Replay gave other answers.
    OtherAnswers,
    /// The state is not that of the recovered epoch.
    OtherState,
    /// The checker finds something after the recovery.
    RecoveredUnclean,
}

impl ViolationKind {
    /// All kinds.
    pub const ALL: [ViolationKind; 9] = [
        ViolationKind::Run,
        ViolationKind::LeftUnclean,
        ViolationKind::DoesNotOpen,
        ViolationKind::Panic,
        ViolationKind::Lost,
        ViolationKind::Invented,
        ViolationKind::OtherAnswers,
        ViolationKind::OtherState,
        ViolationKind::RecoveredUnclean,
    ];

    /// In words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Run => "another result without a crash",
            Self::LeftUnclean => "the crash left an unclean store",
            Self::DoesNotOpen => "the store does not open",
            Self::Panic => "the engine panics",
            Self::Lost => "an answered epoch is lost",
            Self::Invented => "an epoch is there that was never committed",
            Self::OtherAnswers => "replay answers otherwise",
            Self::OtherState => "another state",
            Self::RecoveredUnclean => "recovery left an unclean store",
        }
    }

    /// The obligations that the comparison belongs to.
    #[must_use]
    pub fn obligations(self) -> &'static [&'static str] {
        match self {
            Self::Run => &[
                "O-06", "O-07", "O-14", "O-30", "O-48", "O-84", "O-86", "O-96", "O-97", "O-98",
                "O-100",
            ],
            Self::LeftUnclean => {
                &["O-22", "O-26", "O-28", "O-33", "O-34", "O-36", "O-38", "O-39", "O-41", "O-48"]
            }
            Self::DoesNotOpen => &["O-22", "O-24", "O-26", "O-27", "O-38", "O-43", "O-48"],
            Self::Panic => &["O-25", "O-29", "O-35", "O-43"],
            Self::Lost => &["O-13", "O-22", "O-24", "O-25"],
            Self::Invented => &["O-13", "O-23", "O-24", "O-25"],
            Self::OtherAnswers => &["O-10", "O-14", "O-25", "O-27", "O-47"],
            Self::OtherState => &["O-22", "O-23", "O-25", "O-27", "O-31", "O-38", "O-48", "O-100"],
            Self::RecoveredUnclean => &["O-28", "O-33", "O-35", "O-36", "O-38", "O-41", "O-48"],
        }
    }
}

/// A breach of what must hold.
#[derive(Debug, Clone)]
pub struct Violation {
    /// What kind of comparison failed.
    pub kind: ViolationKind,
    /// The difference.
    pub what: String,
    /// Obligations that come from where the crash was.
    pub more_obligations: Vec<&'static str>,
}

impl Violation {
    pub(super) fn new(kind: ViolationKind, what: impl Into<String>) -> Self {
        Self { kind, what: what.into(), more_obligations: Vec::new() }
    }

    /// All obligations that it may belong to.
    #[must_use]
    pub fn obligations(&self) -> Vec<&'static str> {
        let mut all = [self.kind.obligations(), &self.more_obligations].concat();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Adds the obligations of the place of the crash.
    pub(super) fn at(mut self, point: &Point) -> Self {
        self.more_obligations.extend(match point.class {
            Class::Creation => &["O-53"][..],
            Class::MajorGc => &["O-34", "O-36"],
            Class::Growth => &["O-56"],
            Class::Fenced | Class::NumberStored => &["O-23"],
            Class::Closing => &["O-62"],
            Class::Deciding => &["O-49"],
            Class::Changing => &["O-91", "O-92"],
            _ => &[],
        });
        if point.depth > 0 {
            self.more_obligations.push("O-29");
        }
        self
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.name(), self.what)
    }
}

/// What a recovery came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Recovered {
    pub(super) epoch: EpochNumber,
    /// Whether the state is the one after the change of the schema.
    pub(super) is_changed: bool,
    pub(super) replayed: u64,
    /// Whether it stored anything.
    pub(super) stored: bool,
    /// What few images come to, each 0 or 1.
    pub(super) seldom: Seldom,
}

/// Recovers the image on a device, which was cut at `point`, and compares. The checker always runs
/// after the recovery; `check_first`: before it too.
///
/// # Errors
/// The first violation.
pub(super) fn verify(
    device: &Arc<Traced>,
    setup: &Setup,
    known: &Known,
    point: &Point,
    check_first: bool,
) -> Result<Recovered, Violation> {
    let run = || {
        // What a decision leaves that was cut by a crash only the same decision makes clean.
        if check_first && (known.ended.is_none() || point.depth == 0) {
            check(device, ViolationKind::LeftUnclean, point, None)?;
        }
        recover(device, setup, known, point)
    };
    caught(run).map_err(|violation| violation.at(point))
}

/// Makes a panic a violation.
pub(super) fn caught<T>(run: impl FnOnce() -> Result<T, Violation>) -> Result<T, Violation> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_string()));
        Err(Violation::new(ViolationKind::Panic, text.unwrap_or_else(|| "no message".into())))
    })
}

fn recover(
    device: &Arc<Traced>,
    setup: &Setup,
    known: &Known,
    point: &Point,
) -> Result<Recovered, Violation> {
    let watching = Watching::new(device, known);
    let opened = open_deciding(device, setup, known, &watching);
    let Came { mut engine, report, decided } =
        opened.map_err(|error| Violation::new(ViolationKind::DoesNotOpen, error.to_string()))?;
    let epoch = engine.epoch();
    let (oldest, newest) = (point.epochs.0, point.epochs.1.min(known.newest()));
    let range = format!("epoch {epoch} is recovered, expected {oldest} to {newest}");
    if epoch < oldest {
        return Err(Violation::new(ViolationKind::Lost, range));
    }
    if epoch > newest {
        return Err(Violation::new(ViolationKind::Invented, range));
    }
    if let Some(difference) = watching.difference() {
        return Err(Violation::new(ViolationKind::OtherAnswers, difference));
    }
    let is_changed = find_state(&engine, known, point)?;
    let model = known.state(epoch, is_changed).expect("it was found");
    compare_indexes(&mut engine, model)
        .map_err(|difference| Violation::new(ViolationKind::OtherState, difference))?;
    let stored = device.stores() > 0;
    let expected = (epoch, engine.state_hash());
    let kind = if stored { ViolationKind::RecoveredUnclean } else { ViolationKind::LeftUnclean };
    check(device, kind, point, Some(expected))?;
    let replayed = report.epochs_replayed;
    let seldom = seldom(known, epoch, replayed, decided);
    Ok(Recovered { epoch, is_changed, replayed, stored, seldom })
}

/// Which of the states that may be there is: whether it is that after a change of the schema.
fn find_state(engine: &Engine, known: &Known, point: &Point) -> Result<bool, Violation> {
    let epoch = engine.epoch();
    let at_change = known.changed.as_ref().is_some_and(|(changed, _)| *changed == epoch);
    let may_be = if at_change { point.schemas } else { only(false) };
    let mut difference = String::from("no state is expected");
    for is_changed in
        [false, true].into_iter().filter(|&is_changed| may_be[usize::from(is_changed)])
    {
        let Some(model) = known.state(epoch, is_changed) else { continue };
        match compare_state(engine, model) {
            Ok(()) => return Ok(is_changed),
            Err(what) => difference = what,
        }
    }
    Err(Violation::new(ViolationKind::OtherState, difference))
}

fn seldom(known: &Known, epoch: EpochNumber, replayed: u64, decided: bool) -> Seldom {
    let Model { deferred_calls, .. } = &*known.models[epoch.0 as usize];
    let replayed = &known.answers[(epoch.0 - replayed + 1) as usize..=epoch.0 as usize];
    Seldom {
        deferred: u64::from(!deferred_calls.is_empty()),
        empty: u64::from(replayed.iter().any(|answers| answers.is_empty())),
        decided: u64::from(decided),
        smaller: 0,
    }
}

/// Accounts for every slot (O-28, O-33, O-41, O-48); after a recovery the checkpoint must be the
/// recovered epoch.
fn check(
    device: &Arc<Traced>,
    kind: ViolationKind,
    point: &Point,
    recovered: Option<(EpochNumber, storage::StateHash)>,
) -> Result<(), Violation> {
    let report = match storage::check::check(AnyDevice::of(device)) {
        Err(StorageError::Missing(_)) if point.class == Class::Creation => return Ok(()),
        report => report.map_err(|error| Violation::new(kind, error.to_string()))?,
    };
    if let Some(first) = report.problems.first() {
        let count = report.problems.len();
        return Err(Violation::new(kind, format!("{first} ({count} problems)")));
    }
    let last = report.committed_epochs.last().copied().unwrap_or(report.epoch);
    match recovered {
        Some(expected) if (report.epoch, report.state_hash) != expected || last != expected.0 => {
            let what = format!(
                "the checkpoint is of epoch {} with hash {}, committed up to {last}; recovered \
                 were epoch {} with hash {}",
                report.epoch, report.state_hash, expected.0, expected.1
            );
            Err(Violation::new(kind, what))
        }
        _ => Ok(()),
    }
}
