//! The hook between the `file` device and its files: records every call, and damages some.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use pmem::{DiskCall, DiskFile, DiskHook, DiskOperation, Outcome};

use super::contents::{Change, DiskContents};
use crate::history::Random;

pub(crate) const EINTR: i32 = 4;
pub(crate) const EIO: i32 = 5;
pub(crate) const ENOSPC: i32 = 28;

/// What happened, in order.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    Change(DiskFile, Change),
    /// The store is there and empty, or recovered.
    Opened,
    /// An epoch was begun; from now on it may be found after a crash.
    Started,
    /// The epoch's answers were given; from now on it must be found.
    Answered,
}

/// Calls that do not do what they should.
#[derive(Debug, Clone)]
pub(crate) struct FirstError {
    /// Only calls that ask for space count.
    pub(crate) only_growth: bool,
    /// Which of the calls that count, from zero.
    pub(crate) calls: Range<u64>,
    pub(crate) outcome: Outcome,
}

/// A read that returns something else than what was written.
#[derive(Debug, Clone)]
pub(crate) struct BadRead {
    /// Which of the reads, from zero.
    pub(crate) at: u64,
    pub(crate) how: BadReadKind,
    pub(crate) seed: u64,
    /// Where bytes from elsewhere or from earlier come from.
    pub(crate) donor: DiskContents,
}

/// How a read goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadReadKind {
    /// One bit is another one.
    Bit,
    /// A sector of noise.
    Noise,
    /// A sector that reads as zero.
    Zeros,
    /// A sector from another place of the file.
    Misdirected,
    /// The sector of another file.
    OtherFile,
    /// A sector as it was earlier: the disk lost a write and did not say so.
    Earlier,
}

pub(crate) const BAD_READ_KINDS: [BadReadKind; 6] = [
    BadReadKind::Bit,
    BadReadKind::Noise,
    BadReadKind::Zeros,
    BadReadKind::Misdirected,
    BadReadKind::OtherFile,
    BadReadKind::Earlier,
];

#[derive(Debug, Default)]
struct State {
    events: Vec<Event>,
    kinds: BTreeSet<(DiskFile, &'static str)>,
    damaged: Option<FirstError>,
    calls: u64,
    hits: u64,
    bad_read: Option<BadRead>,
    /// The file of each read.
    reads: Vec<DiskFile>,
    read_changed: bool,
    /// Epochs that were answered.
    answered: u64,
    /// Snapshots that were held back until epochs were answered.
    overlaps: u64,
}

/// Holds the writer of snapshots back, so that a snapshot is not durable before epochs that follow
/// it have ended, and the log was released beside it.
#[derive(Debug)]
struct Hold {
    /// The thread that runs epochs: any other one that calls is the writer.
    runner: ThreadId,
    /// Epochs that a snapshot waits for.
    epochs: u64,
}

/// No snapshot is held back longer: the thread that runs epochs may wait for it.
const HOLD: Duration = Duration::from_millis(20);

/// The hook.
#[derive(Debug, Default)]
pub(crate) struct Lab {
    state: Mutex<State>,
    answered: Condvar,
    hold: Option<Hold>,
}

impl Lab {
    pub(crate) fn recording() -> Arc<Self> {
        Arc::default()
    }

    /// One that records, and lets every snapshot wait for so many epochs that this thread runs.
    pub(crate) fn holding(epochs: u64) -> Arc<Self> {
        let runner = thread::current().id();
        Arc::new(Self { hold: Some(Hold { runner, epochs }), ..Self::default() })
    }

    pub(crate) fn damaging(damaged: FirstError) -> Arc<Self> {
        let lab = Self::default();
        lab.state().damaged = Some(damaged);
        Arc::new(lab)
    }

    pub(crate) fn misreading(bad_read: BadRead) -> Arc<Self> {
        let lab = Self::default();
        lab.state().bad_read = Some(bad_read);
        Arc::new(lab)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what the program did between calls.
    pub(crate) fn mark(&self, event: Event) {
        let mut state = self.state();
        state.answered += u64::from(matches!(event, Event::Answered));
        state.events.push(event);
        self.answered.notify_all();
    }

    /// Holds the commit point of a snapshot back.
    fn hold(&self, call: &DiskCall<'_>) {
        let Some(Hold { runner, epochs }) = &self.hold else { return };
        let commits = (call.file, call.operation) == (DiskFile::Table, DiskOperation::Sync);
        if *epochs == 0 || !commits || thread::current().id() == *runner {
            return;
        }
        let state = self.state();
        let enough = state.answered + epochs;
        let wait = self.answered.wait_timeout_while(state, HOLD, |s| s.answered < enough);
        let (mut state, _) = wait.unwrap_or_else(PoisonError::into_inner);
        state.overlaps += u64::from(state.answered >= enough);
    }

    /// Snapshots that were held back until epochs were answered.
    pub(crate) fn overlaps(&self) -> u64 {
        self.state().overlaps
    }

    /// From now on all calls do what they should.
    pub(crate) fn heal(&self) {
        self.state().damaged = None;
    }

    /// How many calls were damaged.
    pub(crate) fn hits(&self) -> u64 {
        self.state().hits
    }

    /// The file of each read.
    pub(crate) fn reads(&self) -> Vec<DiskFile> {
        self.state().reads.clone()
    }

    /// Whether a read returned other bytes than the file has.
    pub(crate) fn read_changed(&self) -> bool {
        self.state().read_changed
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        self.state().events.clone()
    }

    /// How many there are.
    pub(crate) fn events_count(&self) -> usize {
        self.state().events.len()
    }

    /// Kinds of calls that were seen.
    pub(crate) fn kinds(&self) -> BTreeSet<(DiskFile, &'static str)> {
        self.state().kinds.clone()
    }
}

impl State {
    fn decide(&mut self, operation: DiskOperation<'_>) -> Outcome {
        let Some(damaged) = &self.damaged else { return Outcome::Proceed };
        if damaged.only_growth && !matches!(operation, DiskOperation::Allocate { .. }) {
            return Outcome::Proceed;
        }
        let short = matches!(damaged.outcome, Outcome::Short(_));
        if short && !matches!(operation, DiskOperation::Write { .. }) {
            return Outcome::Proceed;
        }
        let call = self.calls;
        self.calls += 1;
        if !damaged.calls.contains(&call) {
            return Outcome::Proceed;
        }
        self.hits += 1;
        damaged.outcome
    }
}

impl DiskHook for Lab {
    fn before(&self, call: &DiskCall<'_>) -> Outcome {
        self.hold(call);
        let mut state = self.state();
        let outcome = state.decide(call.operation);
        let (kind, change) = match (call.operation, outcome) {
            // A write that failed may have reached the device all the same, or in part; one that
            // was interrupted did not begin.
            (DiskOperation::Write { .. }, Outcome::Fail(EINTR)) => ("write", None),
            (DiskOperation::Write { offset, bytes }, outcome) => {
                let made = if let Outcome::Short(len) = outcome { len } else { bytes.len() };
                ("write", Some(Change::Write(offset, bytes[..made.min(bytes.len())].into())))
            }
            (DiskOperation::Allocate { len }, Outcome::Proceed) => {
                ("allocate", Some(Change::Allocate(len)))
            }
            (DiskOperation::Allocate { .. }, _) => ("allocate", None),
            (DiskOperation::Truncate { len }, Outcome::Proceed) => {
                ("truncate", Some(Change::Truncate(len)))
            }
            (DiskOperation::Truncate { .. }, _) => ("truncate", None),
            (DiskOperation::Sync, Outcome::Proceed) => ("sync", Some(Change::Sync)),
            (DiskOperation::Sync, _) => ("sync", None),
            (DiskOperation::Open { .. }, _) => ("open", None),
            (DiskOperation::Read { .. }, _) => ("read", None),
        };
        state.kinds.insert((call.file, kind));
        state.events.extend(change.map(|change| Event::Change(call.file, change)));
        outcome
    }

    fn after_read(&self, file: DiskFile, offset: u64, bytes: &mut [u8]) {
        let mut state = self.state();
        let read = state.reads.len() as u64;
        state.reads.push(file);
        if let Some(bad) = state.bad_read.as_ref().filter(|bad| bad.at == read) {
            let before = bytes.to_vec();
            bad.damage(file, offset, bytes);
            state.read_changed = before != bytes;
        }
    }
}

impl BadRead {
    fn damage(&self, file: DiskFile, offset: u64, bytes: &mut [u8]) {
        if bytes.is_empty() {
            return;
        }
        let mut random = Random::new(self.seed);
        // Half of the bytes read at open are zeros: prefer a place where something is.
        let mut at = random.below(bytes.len() as u64);
        for _ in 0..20 {
            if bytes[at as usize] != 0 {
                break;
            }
            at = random.below(bytes.len() as u64);
        }
        let start = at.saturating_sub((offset + at) % 512) as usize;
        let end = bytes.len().min(start + 512);
        let sector = &mut bytes[start..end];
        let place = offset + start as u64;
        match self.how {
            BadReadKind::Bit => bytes[at as usize] ^= 1 << random.below(8),
            BadReadKind::Noise => sector.fill_with(|| random.byte(256)),
            BadReadKind::Zeros => sector.fill(0),
            BadReadKind::Misdirected => {
                let distance = 512 * random.pick(&[1, 2, 7, 8, 16, 64]);
                let from = if random.percent(50) && place >= distance {
                    place - distance
                } else {
                    place + distance
                };
                self.donor.read(file, from, sector);
            }
            BadReadKind::OtherFile => {
                let files = [DiskFile::Meta, DiskFile::Data, DiskFile::Table, DiskFile::Log];
                self.donor.read(random.pick(&files), place, sector);
            }
            BadReadKind::Earlier => self.donor.read(file, place, sector),
        }
    }
}
