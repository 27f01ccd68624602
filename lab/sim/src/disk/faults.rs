//! Calls that fail: the first failure of a write or sync is final (O-57), no room is a refusal
//! (O-58), interruptions and short writes are nothing.

use std::sync::Arc;

use engine::EngineError;
use pmem::{AnyDevice, DeviceError, File, FileOptions, Outcome};

use super::contents::Arrival;
use super::hook::{EINTR, EIO, ENOSPC, Event, FirstError, Lab};
use super::recover::recover;
use super::report::Report;
use super::story::{Progress, Story, fast_dir};
use crate::history::{Pair, Random, compare_answers, compare_hash, info, to_calls};

/// What goes wrong with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It fails, as when the disk breaks.
    Broken,
    /// There is no room, once.
    Full,
    /// There is no room for growth from then on, until the epoch was refused a few times.
    FullForLong,
    /// It was interrupted by a signal, and did nothing.
    Interrupted,
    /// A write is made for a few bytes only.
    Short,
}

/// All of them.
pub(crate) const FAULTS: [Fault; 5] =
    [Fault::Broken, Fault::Full, Fault::FullForLong, Fault::Interrupted, Fault::Short];

/// How often an epoch is refused before there is room again.
const REFUSALS: u64 = 3;

impl Fault {
    fn at(self, call: u64, random: &mut Random) -> FirstError {
        let outcome = match self {
            Self::Broken => Outcome::Fail(EIO),
            Self::Full | Self::FullForLong => Outcome::Fail(ENOSPC),
            Self::Interrupted => Outcome::Fail(EINTR),
            Self::Short => Outcome::Short(random.pick(&[1, 100, 511, 512, 4096])),
        };
        let end = if self == Self::FullForLong { u64::MAX } else { call + 1 };
        FirstError { only_growth: self == Self::FullForLong, calls: call..end, outcome }
    }

    /// Whether it must not be noticed.
    fn is_harmless(self) -> bool {
        matches!(self, Self::Interrupted | Self::Short)
    }
}

/// Runs a random history again and again with the fault at the first call, the second, and so on
/// (or every so many, by `stride`), until a run has no such call.
///
/// # Errors
/// What was wrong, as text that names the call.
pub fn sweep(seed: u64, fault: Fault, stride: u64) -> Result<Report, String> {
    let mut random = Random::new(seed);
    let story = Story::random(&mut random, 3);
    let mut report = Report::default();
    sweep_story(&story, fault, stride, &mut random, &mut report)?;
    Ok(report)
}

/// The same for a given history.
pub(crate) fn sweep_story(
    story: &Story,
    fault: Fault,
    stride: u64,
    random: &mut Random,
    report: &mut Report,
) -> Result<(), String> {
    for call in (random.below(stride)..).step_by(stride as usize) {
        let reached = Run::new(story, fault, call, random)?
            .explore(random, report)
            .map_err(|error| format!("{fault:?} at call {call}, {:?}: {error}", story.setup))?;
        if !reached {
            return Ok(());
        }
        report.faults += 1;
    }
    unreachable!("a run has fewer than 2^64 calls")
}

/// One run with one fault.
struct Run<'a> {
    story: &'a Story,
    fault: Fault,
    lab: Arc<Lab>,
    dir: tempfile::TempDir,
    /// The first error that was reported and is no refusal.
    failure: Option<String>,
}

fn is_refusal(error: &EngineError) -> bool {
    error.is_limit()
}

impl<'a> Run<'a> {
    fn new(story: &'a Story, fault: Fault, call: u64, random: &mut Random) -> Result<Self, String> {
        let lab = Lab::damaging(fault.at(call, random));
        Ok(Self { story, fault, lab, dir: fast_dir()?, failure: None })
    }

    /// Returns whether the fault was met.
    fn explore(mut self, random: &mut Random, report: &mut Report) -> Result<bool, String> {
        self.run(report)?;
        let hits = self.lab.hits();
        if hits == 0 && self.failure.is_some() {
            return Err(format!("without any fault: {:?}", self.failure));
        }
        if hits > 0 && self.fault.is_harmless() && self.failure.is_some() {
            return Err(format!("harmless, but: {:?}", self.failure));
        }
        if self.failure.is_some() {
            report.failures += 1;
        }
        let events = self.lab.events();
        let (progress, contents) = Progress::after(&events);
        // As after a kill: the files are as the failed process left them.
        recover(self.dir.path(), self.story, progress, random)
            .map_err(|error| format!("{:?}, reopened: {error}", self.failure))?;
        // And as after a power cut at the end: a failed write may have arrived, or not.
        let arrival = Arrival::random(random, contents.units());
        let dir = fast_dir()?;
        contents.cut(arrival).write_to(dir.path()).map_err(|error| error.to_string())?;
        report.images += 2;
        recover(dir.path(), self.story, progress, random)
            .map_err(|error| format!("{:?}, {arrival:?} arrived: {error}", self.failure))?;
        Ok(hits > 0)
    }

    fn open(&self) -> Result<Arc<AnyDevice>, DeviceError> {
        let options = FileOptions { hook: Some(self.lab.clone()), ..super::story::options() };
        File::open(self.dir.path(), &options).map(AnyDevice::new)
    }

    /// Runs the history as far as it goes.
    fn run(&mut self, report: &mut Report) -> Result<(), String> {
        let device = match self.open() {
            Ok(device) => device,
            Err(error) => return self.failed_open(&error.to_string()),
        };
        let story = self.story;
        let engine = match story.setup.open(&device) {
            Ok(engine) => engine,
            Err(error) => return self.failed_open(&error.to_string()),
        };
        self.lab.mark(Event::Opened);
        let mut pair = Pair::new(engine, story.models[0].clone());
        for epoch in 1..=story.batches.len() {
            if !self.epoch(&mut pair, epoch, report)? {
                return self.assert_dead(&mut pair, epoch);
            }
            if story.settled {
                // An error is remembered, and the next epoch reports it.
                let _ = pmem::Device::settle(device.as_ref());
            }
        }
        let closed = pair.engine.close();
        match closed {
            Ok(()) if self.fault == Fault::Broken && self.lab.hits() > 0 => {
                Err("a failed call was never reported, not even at close".into())
            }
            Ok(()) => Ok(()),
            Err(error) => {
                self.failure = Some(error.to_string());
                Ok(())
            }
        }
    }

    fn failed_open(&mut self, error: &str) -> Result<(), String> {
        self.failure = Some(error.to_string());
        if error.contains("panicked") { Err(format!("open: {error}")) } else { Ok(()) }
    }

    /// Runs an epoch, again as long as it is refused; whether it was answered.
    fn epoch(
        &mut self,
        pair: &mut Pair,
        epoch: usize,
        report: &mut Report,
    ) -> Result<bool, String> {
        let calls = to_calls(&self.story.batches[epoch - 1]);
        for refusals in 1.. {
            self.lab.mark(Event::Started);
            match pair.engine.run_epoch(&calls, info(epoch as u64)) {
                Ok(outcome) => {
                    compare_answers(&outcome, &self.story.expected[epoch - 1])?;
                    pair.model = self.story.models[epoch].clone();
                    compare_hash(&outcome, &pair.engine, &pair.model)?;
                    self.lab.mark(Event::Answered);
                    return Ok(true);
                }
                Err(error) if is_refusal(&error) => {
                    report.refusals += 1;
                    let text = error.to_string();
                    if !text.contains("free space") {
                        return Err(format!("epoch {epoch} refused without advice: {text}"));
                    }
                    pair.compare_state().map_err(|e| format!("after a refusal: {e}"))?;
                    if refusals >= REFUSALS {
                        self.lab.heal();
                    }
                    if refusals > REFUSALS + 1 {
                        return Err(format!("epoch {epoch} is refused although there is room"));
                    }
                }
                // Healed or not, nothing fails that is not growth: the refusal was none.
                Err(error) if refusals > 1 => {
                    return Err(format!(
                        "epoch {epoch} was refused for lack of room, then: {error}"
                    ));
                }
                Err(error) => {
                    self.failure = Some(error.to_string());
                    if error.to_string().contains("panicked") {
                        return Err(format!("epoch {epoch}: {error}"));
                    }
                    return Ok(false);
                }
            }
        }
        unreachable!("refusals are counted")
    }

    /// O-57: nothing is acknowledged after the first failure, even if the disk is well again.
    fn assert_dead(&self, pair: &mut Pair, epoch: usize) -> Result<(), String> {
        self.lab.heal();
        for _ in 0..2 {
            let calls = to_calls(&self.story.batches[epoch - 1]);
            if pair.engine.run_epoch(&calls, info(epoch as u64)).is_ok() {
                return Err(format!("epoch {epoch} was answered after {:?}", self.failure));
            }
            if pair.engine.checkpoint().is_ok() {
                return Err(format!("a checkpoint was made after {:?}", self.failure));
            }
        }
        Ok(())
    }
}
