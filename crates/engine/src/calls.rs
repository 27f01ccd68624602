//! What goes into an epoch and what comes out: calls in serial order, answers by position.

use std::borrow::Cow;

use storage::format::EPOCH_CALLS_MAX;

use crate::stats::EpochStats;
use crate::{EngineError, Result};

/// Most bytes of one call's arguments.
pub const ARGUMENT_BYTES_MAX: usize = 1 << 20;

/// One call in a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) procedure: u16,
    /// How often it was re-submitted before.
    pub(crate) attempt: u16,
    pub(crate) bytes: u32,
    pub(crate) offset: usize,
}

/// A batch of calls, in serial order. Arguments lie in one buffer, each at a multiple of 8 bytes,
/// so that fixed-layout arguments are read in place.
#[derive(Debug, Default, Clone)]
pub struct Calls {
    calls: Vec<Call>,
    /// 8-byte words keep the buffer aligned.
    words: Vec<u64>,
}

impl Calls {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Calls in the batch.
    pub fn len(&self) -> usize {
        self.calls.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Bytes of all arguments.
    pub fn bytes(&self) -> usize {
        self.words.len() * 8
    }

    /// Empties the batch and keeps its memory.
    pub fn clear(&mut self) {
        self.calls.clear();
        self.words.clear();
    }

    /// Appends a call; its position is the number of calls before it.
    ///
    /// # Errors
    /// `Limit` if the arguments are longer than 1 MiB or the batch has 2^24 - 1 calls.
    pub fn push(&mut self, procedure: u16, arguments: &[u8]) -> Result<()> {
        self.push_attempt(procedure, 0, arguments)
    }

    pub(crate) fn push_attempt(&mut self, procedure: u16, attempt: u16, args: &[u8]) -> Result<()> {
        if args.len() > ARGUMENT_BYTES_MAX {
            return Err(EngineError::Limit(format!(
                "arguments of {} bytes, at most {ARGUMENT_BYTES_MAX}",
                args.len()
            )));
        }
        if self.calls.len() as u64 >= EPOCH_CALLS_MAX {
            return Err(EngineError::Limit(format!(
                "more than {EPOCH_CALLS_MAX} calls in an epoch"
            )));
        }
        let offset = self.words.len() * 8;
        let mut chunks = args.chunks_exact(8);
        self.words.extend(chunks.by_ref().map(|c| u64::from_ne_bytes(c.try_into().expect("8"))));
        let rest = chunks.remainder();
        if !rest.is_empty() {
            let mut last = [0u8; 8];
            last[..rest.len()].copy_from_slice(rest);
            self.words.push(u64::from_ne_bytes(last));
        }
        self.calls.push(Call { procedure, attempt, bytes: args.len() as u32, offset });
        Ok(())
    }

    pub(crate) fn call(&self, position: usize) -> Call {
        self.calls[position]
    }

    /// Procedure and arguments of the call at a position.
    pub fn get(&self, position: usize) -> (u16, &[u8]) {
        let call = self.calls[position];
        (call.procedure, self.arguments(call))
    }

    pub(crate) fn arguments(&self, call: Call) -> &[u8] {
        let words = &self.words[call.offset / 8..][..(call.bytes as usize).div_ceil(8)];
        &crate::version::bytes_of_words(words)[..call.bytes as usize]
    }
}

/// Why a transaction gave up. Its writes did not take place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Abort {
    /// Application's own number; it is part of the answer.
    pub code: u32,
    /// Words for people.
    pub message: Cow<'static, str>,
}

impl Abort {
    /// An abort with words and code 0.
    pub fn new(message: impl Into<Cow<'static, str>>) -> Self {
        Self { code: 0, message: message.into() }
    }

    /// An abort with a number.
    pub fn code(code: u32) -> Self {
        Self { code, message: Cow::Borrowed("") }
    }
}

impl std::fmt::Display for Abort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&*self.message, self.code) {
            ("", code) => write!(f, "aborted with code {code}"),
            (message, 0) => write!(f, "aborted: {message}"),
            (message, code) => write!(f, "aborted with code {code}: {message}"),
        }
    }
}

/// What became of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer<'a> {
    /// Committed, with what the body put out.
    Committed(&'a [u8]),
    /// Aborted on purpose.
    Aborted(&'a Abort),
    /// What its declaration read changed before it could run; it runs again in the next epoch.
    Resubmitted,
    /// Failed for a reason that is not the application's choice: panic, undeclared write, a key or
    /// value beyond its limit, too many re-submissions. Nothing was written.
    Failed(&'a str),
}

#[derive(Debug, Clone)]
pub(crate) enum StoredAnswer {
    Committed { from: usize, to: usize },
    Aborted(Abort),
    Resubmitted,
    Failed(String),
}

/// Answers of the calls that one worker ran, each with its position.
#[derive(Debug, Default)]
pub(crate) struct WorkerAnswers {
    pub(crate) answers: Vec<(u32, StoredAnswer)>,
    pub(crate) output: Vec<u8>,
}

/// Where the answer of each position is: worker and place in its list.
pub(crate) fn places(workers: &[WorkerAnswers], calls: usize) -> Vec<(u16, u32)> {
    let mut places = vec![(0, 0); calls];
    for (worker, list) in workers.iter().enumerate() {
        for (index, (position, _)) in list.answers.iter().enumerate() {
            places[*position as usize] = (worker as u16, index as u32);
        }
    }
    places
}

/// Calls are dealt to workers in runs of this many, round robin, for the initialization phase. Part
/// of the log's format: stream s of S has the runs s, s+S, s+2S...
pub(crate) const RUN_CALLS: usize = 4;

/// Which worker owns a position, and which of its calls it is.
pub(crate) fn owner(position: usize, workers: usize) -> (usize, usize) {
    let run = position / RUN_CALLS;
    (run % workers, run / workers * RUN_CALLS + position % RUN_CALLS)
}

/// Positions that a worker owns, in order.
pub(crate) fn owned(worker: usize, workers: usize, calls: usize) -> impl Iterator<Item = usize> {
    (worker * RUN_CALLS..calls)
        .step_by(workers * RUN_CALLS)
        .flat_map(move |first| first..(first + RUN_CALLS).min(calls))
}

/// What became of an epoch.
#[derive(Debug)]
pub struct EpochOutcome {
    /// Its number.
    pub epoch: u64,
    /// The first calls of the epoch are those that the epoch before re-submitted: this many.
    pub carried_in: usize,
    /// State hash at its end, if it is kept up.
    pub state_hash: Option<storage::StateHash>,
    /// What it did and how long each phase took.
    pub stats: EpochStats,
    pub(crate) places: Vec<(u16, u32)>,
    pub(crate) workers: Vec<WorkerAnswers>,
}

impl EpochOutcome {
    /// Calls of the epoch, those carried in included.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether the epoch was empty.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The answer to the call at a position; the batch's first call is at `carried_in`.
    ///
    /// # Panics
    /// If the epoch had no such position.
    pub fn answer(&self, position: usize) -> Answer<'_> {
        let (worker, index) = self.places[position];
        let answers = &self.workers[worker as usize];
        match &answers.answers[index as usize].1 {
            StoredAnswer::Committed { from, to } => Answer::Committed(&answers.output[*from..*to]),
            StoredAnswer::Aborted(abort) => Answer::Aborted(abort),
            StoredAnswer::Resubmitted => Answer::Resubmitted,
            StoredAnswer::Failed(why) => Answer::Failed(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn o_11_every_position_has_one_owner_who_meets_it_in_order() {
        for workers in 1..6 {
            for calls in [0, 1, 3, 4, 5, 31, 32, 100] {
                let mut seen = vec![0; calls];
                for worker in 0..workers {
                    let mut last = None;
                    for (index, position) in owned(worker, workers, calls).enumerate() {
                        assert_eq!(owner(position, workers), (worker, index));
                        assert!(last < Some(position));
                        last = Some(position);
                        seen[position] += 1;
                    }
                }
                assert!(seen.iter().all(|&n| n == 1));
            }
        }
    }
}
