//! Crash points: the places between two events of a trace, and what a crash there is called.

use engine::{Moment, Phase};
use pmem::{EventKind, SpaceKind, Trace};
use storage::EpochNumber;

/// How many crashes deep a recovery is cut.
pub const DEPTH_MAX: usize = 3;

/// A row of the crash matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// While the store is created.
    Creation,
    /// While the inputs are collected or logged.
    Log,
    /// In the insert step.
    Insert,
    /// In the major collection.
    MajorGc,
    /// While versions are evicted or appended: nothing is stored.
    EvictAppend,
    /// In the execution phase, before the first final write.
    BeforeFinalWrites,
    /// In the execution phase and after, until all workers have fenced.
    FinalWrites,
    /// After that, before the epoch's number is stored.
    Fenced,
    /// The number is stored and not fenced.
    NumberStored,
    /// The number is durable.
    AfterNumber,
    /// While a store is opened, before and between the epochs that are replayed.
    Opening,
    /// Right after a space has grown.
    Growth,
    /// While the store is closed.
    Closing,
    /// While a decision is applied about an epoch that a call has ended.
    Deciding,
    /// While the schema is changed.
    Changing,
}

impl Class {
    /// All classes.
    pub const ALL: [Class; 15] = [
        Class::Creation,
        Class::Log,
        Class::Insert,
        Class::MajorGc,
        Class::EvictAppend,
        Class::BeforeFinalWrites,
        Class::FinalWrites,
        Class::Fenced,
        Class::NumberStored,
        Class::AfterNumber,
        Class::Opening,
        Class::Growth,
        Class::Closing,
        Class::Deciding,
        Class::Changing,
    ];

    /// Name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Class::Creation => "store creation",
            Class::Log => "collecting, writing the log",
            Class::Insert => "insert step",
            Class::MajorGc => "major collection",
            Class::EvictAppend => "evict, append",
            Class::BeforeFinalWrites => "execution, before the first final write",
            Class::FinalWrites => "execution",
            Class::Fenced => "fenced, epoch number not stored",
            Class::NumberStored => "epoch number stored, not fenced",
            Class::AfterNumber => "after the epoch number",
            Class::Opening => "recovery, outside of replay",
            Class::Growth => "after a space has grown",
            Class::Closing => "closing",
            Class::Deciding => "leaving out, giving up",
            Class::Changing => "changing the schema",
        }
    }

    /// Whether it must be hit so many crashes deep; 0 is a run, 1 the recovery after a crash.
    #[must_use]
    pub fn is_at(self, depth: usize) -> bool {
        match self {
            Class::Opening => depth > 0,
            // Few cases are cut while the store is created, and fewer again deeper.
            Class::Creation => depth <= 1,
            // It comes after a crash, and few cases need it.
            Class::Deciding => depth == 1,
            // Replay logs nothing, and mostly finds its space there.
            Class::Closing | Class::Changing | Class::Growth | Class::Log => depth == 0,
            _ => true,
        }
    }
}

/// Where a life is, as it is marked in its trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The engine came to a moment of an epoch.
    Epoch(EpochNumber, Moment),
    /// The store is open.
    Opened,
    /// The epoch was answered.
    Answered(EpochNumber),
    /// The store is being closed.
    Closing,
    /// A decision is applied.
    Deciding,
    /// The schema is being changed.
    Changing,
    /// It was changed.
    Changed,
}

const NUMBER_BITS: u32 = 40;

impl Place {
    /// As the number of a mark.
    pub(super) fn encode(self) -> u64 {
        let none = EpochNumber::ZERO;
        let (kind, epoch) = match self {
            Self::Epoch(epoch, Moment::Begin(phase)) => (16 + phase as u64, epoch),
            Self::Epoch(epoch, Moment::Fenced) => (0, epoch),
            Self::Epoch(epoch, Moment::Committed) => (1, epoch),
            Self::Opened => (2, none),
            Self::Answered(epoch) => (3, epoch),
            Self::Closing => (4, none),
            Self::Deciding => (5, none),
            Self::Changing => (6, none),
            Self::Changed => (7, none),
        };
        kind << NUMBER_BITS | epoch.0
    }

    fn decode(number: u64) -> Self {
        let epoch = EpochNumber(number & ((1 << NUMBER_BITS) - 1));
        match number >> NUMBER_BITS {
            0 => Self::Epoch(epoch, Moment::Fenced),
            1 => Self::Epoch(epoch, Moment::Committed),
            2 => Self::Opened,
            3 => Self::Answered(epoch),
            4 => Self::Closing,
            5 => Self::Deciding,
            6 => Self::Changing,
            7 => Self::Changed,
            phase => Self::Epoch(epoch, Moment::Begin(Phase::ALL[phase as usize - 16])),
        }
    }
}

/// A crash point: as many events have happened as there are points before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Point {
    pub(super) class: Class,
    /// 0 in a run, otherwise how many crashes deep.
    pub(super) depth: usize,
    /// The phase of the engine, if it is in an epoch.
    pub(super) phase: Option<Phase>,
    /// The oldest epoch that may be recovered, and the newest.
    pub(super) epochs: (EpochNumber, EpochNumber),
    /// Whether the schema may be the one of before, and the one of after a change.
    pub(super) schemas: Schemas,
}

/// Whether the schema of before a change is expected, and that of after it.
pub(super) type Schemas = [bool; 2];

/// The schema of before a change, or that of after it.
pub(super) fn only(is_changed: bool) -> Schemas {
    [!is_changed, is_changed]
}

/// How a life begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Beginning {
    /// The oldest epoch that it may come to if it is cut before it is open.
    pub(super) oldest: EpochNumber,
    /// The epoch that it recovers to.
    pub(super) epoch: EpochNumber,
    /// How many crashes were before.
    pub(super) depth: usize,
    /// [`Class::Opening`], or [`Class::Creation`] if there may be no store yet.
    pub(super) opening: Class,
    /// Whether only a few of its points are explored.
    pub(super) few: bool,
    /// Which schemas there may be before it is open, and whether it is the changed one then.
    pub(super) schemas: Schemas,
    pub(super) is_changed: bool,
}

/// All points of a trace.
pub(super) fn points(trace: &Trace, beginning: Beginning) -> Vec<Point> {
    let Beginning { oldest, epoch, depth, opening, schemas, .. } = beginning;
    let mut now = Point { class: opening, depth, phase: None, epochs: (oldest, epoch), schemas };
    let mut points = vec![now];
    let (mut storing_begins, mut moment) = (None, None);
    let mut grown = false;
    for event in trace.events() {
        match event.kind {
            EventKind::Mark => {
                let place = Place::decode(event.offset);
                if place_is_committed(place)
                    && let Some(from) = storing_begins.take()
                {
                    // The number is the last word that was stored.
                    points[from..]
                        .iter_mut()
                        .for_each(|p: &mut Point| p.class = Class::NumberStored);
                }
                storing_begins = None;
                moment = Some(place);
                now = after(now, place, beginning);
            }
            EventKind::Store | EventKind::StorePastCache if event.space == SpaceKind::Image => {
                if now.class == Class::BeforeFinalWrites {
                    now.class = Class::FinalWrites;
                }
                if matches!(moment, Some(Place::Epoch(_, Moment::Fenced))) {
                    storing_begins = Some(points.len());
                }
            }
            _ => {}
        }
        grown = event.kind == EventKind::Grow || grown && event.kind == EventKind::Mark;
        let in_creation = now.class == Class::Creation;
        let class = if grown && !in_creation { Class::Growth } else { now.class };
        points.push(Point { class, ..now });
    }
    points
}

fn place_is_committed(place: Place) -> bool {
    matches!(place, Place::Epoch(_, Moment::Committed))
}

/// What follows a mark.
fn after(before: Point, place: Place, beginning: Beginning) -> Point {
    let Point { class, depth, epochs, schemas, .. } = before;
    let opening = beginning.opening;
    match place {
        Place::Opened => {
            let (_, epoch) = epochs;
            let class = Class::AfterNumber;
            let schemas = only(beginning.is_changed);
            Point { class, depth: 0, phase: None, epochs: (epoch, epoch), schemas }
        }
        Place::Answered(epoch) => {
            let class = Class::AfterNumber;
            Point { phase: None, class, epochs: (epoch, epoch), depth, schemas }
        }
        Place::Closing => Point { class: Class::Closing, phase: None, ..before },
        Place::Deciding => Point { class: Class::Deciding, phase: None, ..before },
        Place::Changing => {
            Point { class: Class::Changing, phase: None, schemas: [true, true], ..before }
        }
        Place::Changed => Point { class: Class::AfterNumber, schemas: only(true), ..before },
        Place::Epoch(epoch, moment) => {
            let phase = match moment {
                Moment::Begin(phase) => Some(phase),
                _ => Some(Phase::Checkpoint),
            };
            let class = match moment {
                Moment::Fenced => Class::Fenced,
                Moment::Committed => Class::AfterNumber,
                Moment::Begin(phase) => class_of(phase, class, opening, depth),
            };
            // A run may have committed it; what a recovery comes to is known.
            let newest = if depth == 0 { epoch } else { epochs.1 };
            Point { class, depth, phase, epochs: (epochs.0, newest), schemas }
        }
    }
}

fn class_of(phase: Phase, before: Class, opening: Class, depth: usize) -> Class {
    match phase {
        Phase::Serial | Phase::Declare if depth > 0 => opening,
        // The epoch waits for its log.
        Phase::LogInputs if before == Class::BeforeFinalWrites => Class::FinalWrites,
        Phase::LogInputs if depth > 0 => opening,
        Phase::Serial | Phase::Declare | Phase::LogInputs => Class::Log,
        Phase::Insert => Class::Insert,
        Phase::MajorGc => Class::MajorGc,
        Phase::EvictCache | Phase::Append => Class::EvictAppend,
        Phase::Execute => Class::BeforeFinalWrites,
        Phase::Remove | Phase::Checkpoint => Class::FinalWrites,
    }
}
