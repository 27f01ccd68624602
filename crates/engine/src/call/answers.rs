//! What came of the calls of an epoch: answers by position.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

use storage::{EpochChanges, EpochNumber, Position};

use crate::contention::rows::ContendedRow;
use crate::stats::EpochStats;

/// Why a transaction gave up. Its writes did not take place.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Abort {
    /// Application's own number; it is part of the answer.
    pub code: u32,
    /// Words for people.
    pub message: Cow<'static, str>,
    /// What the application says to its caller besides.
    pub payload: Vec<u8>,
}

impl Abort {
    /// Code of the abort of a call that would have given two rows one key of a unique index.
    pub const NOT_UNIQUE: u32 = u32::MAX - 1;

    /// An abort with words and code 0.
    pub fn new(message: impl Into<Cow<'static, str>>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }

    /// An abort with a number.
    pub fn code(code: u32) -> Self {
        Self { code, ..Self::default() }
    }

    /// Whether it says nothing but a number.
    pub(crate) fn is_code(&self) -> bool {
        self.message.is_empty() && self.payload.is_empty()
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
    /// It would have written what its write set did not predict, or what its declaration had read
    /// has changed: it runs again, in the serial part of the next epoch, and then has its answer.
    Deferred,
    /// Failed for a reason that is not the application's choice: panic, a key or value beyond its
    /// limit. Nothing was written.
    Failed(&'a str),
}

/// The answer to a call that did not commit.
#[derive(Debug, Clone)]
pub(crate) enum Failure {
    Aborted(Abort),
    Deferred,
    Failed(String),
}

/// A call that a worker ran. Most calls commit, so the other answers lie apart.
#[derive(Debug, Clone, Copy)]
struct Ran {
    position: Position,
    /// Number of its failure, from 1; 0 if it committed.
    failure: u32,
    /// Where its output ends; it begins where that of the call before ends.
    output_to: usize,
}

/// Answers of the calls that one worker ran.
#[derive(Debug, Default)]
pub(crate) struct WorkerAnswers {
    ran: Vec<Ran>,
    /// Those that did not commit, with their positions.
    failures: Vec<(Position, Failure)>,
    /// Answers of committed calls that are made later: places in `ran`, in order, and where they
    /// are, or what was put out for them until then.
    later: Vec<(u32, Range<usize>)>,
    pub(crate) output: Vec<u8>,
}

/// Instead of the number of a failure: the call committed, and its answer is in
/// [`WorkerAnswers::later`].
const LATER: u32 = u32::MAX;

impl WorkerAnswers {
    /// Makes room for so many answers, and so many bytes of them.
    pub(crate) fn reserve(&mut self, calls: usize, bytes: usize) {
        self.ran.reserve(calls);
        self.output.reserve(bytes);
    }

    /// The call at a position committed, with what was put out since the answer before.
    #[inline]
    pub(crate) fn commit(&mut self, position: Position) {
        debug_assert!(
            self.ran.last().is_none_or(|ran| ran.output_to <= self.output.len()),
            "answers that were made before stay"
        );
        self.ran.push(Ran { position, failure: 0, output_to: self.output.len() });
    }

    /// What was put out since the answer before.
    pub(crate) fn put_out(&self) -> &[u8] {
        &self.output[self.ran.last().map_or(0, |ran| ran.output_to)..]
    }

    /// As [`WorkerAnswers::commit`], with other bytes than were put out.
    pub(crate) fn commit_instead(&mut self, position: Position, bytes: &[u8]) {
        self.output.truncate(self.ran.last().map_or(0, |ran| ran.output_to));
        self.output.extend_from_slice(bytes);
        self.commit(position);
    }

    /// The call at a position committed, and its answer will be made later.
    pub(crate) fn commit_later(&mut self, position: Position) {
        let place = self.ran.len();
        self.ran.push(Ran { position, failure: LATER, output_to: self.output.len() });
        self.later.push((place as u32, self.put_out_by(place)));
    }

    /// Answers that are made later.
    pub(crate) fn later(&self) -> usize {
        self.later.len()
    }

    /// Position and what was put out of a call whose answer is made later.
    pub(crate) fn put_out_for(&self, later: usize) -> (Position, &[u8]) {
        let (place, put_out) = &self.later[later];
        (self.ran[*place as usize].position, &self.output[put_out.clone()])
    }

    /// Now the answer is made.
    pub(crate) fn finish(&mut self, later: usize, bytes: &[u8]) {
        let place = self.later[later].0 as usize;
        assert!(self.ran[place].failure == LATER, "the call was left for later");
        let from = self.output.len();
        self.output.extend_from_slice(bytes);
        self.later[later].1 = from..self.output.len();
    }

    fn put_out_by(&self, index: usize) -> Range<usize> {
        let from = index.checked_sub(1).map_or(0, |before| self.ran[before].output_to);
        from..self.ran[index].output_to
    }

    /// The call at a position did not commit; what it put out is forgotten.
    pub(crate) fn fail(&mut self, position: Position, failure: Failure) {
        let output_to = self.ran.last().map_or(0, |ran| ran.output_to);
        self.output.truncate(output_to);
        debug_assert!(
            self.failures.len() < LATER as usize - 1,
            "failures have numbers of their own"
        );
        self.failures.push((position, failure));
        self.ran.push(Ran { position, failure: self.failures.len() as u32, output_to });
    }

    /// Calls that were run.
    pub(crate) fn len(&self) -> usize {
        self.ran.len()
    }

    pub(crate) fn failures(&self) -> impl ExactSizeIterator<Item = &Failure> {
        self.failures.iter().map(|(_, failure)| failure)
    }

    fn answer(&self, index: usize) -> Answer<'_> {
        let ran = self.ran[index];
        if ran.failure == 0 {
            return Answer::Committed(&self.output[self.put_out_by(index)]);
        }
        if ran.failure == LATER {
            let at = self.later.binary_search_by_key(&(index as u32), |later| later.0);
            let bytes = &self.later[at.expect("it was left for later")].1;
            return Answer::Committed(&self.output[bytes.clone()]);
        }
        match &self.failures[ran.failure as usize - 1].1 {
            Failure::Aborted(abort) => Answer::Aborted(abort),
            Failure::Deferred => Answer::Deferred,
            Failure::Failed(why) => Answer::Failed(why),
        }
    }
}

/// Where the answer of each position is: worker and place in its list.
pub(crate) fn places(workers: &[WorkerAnswers], calls: usize) -> Vec<(u16, u32)> {
    let mut places = vec![(0, 0); calls];
    for (worker, list) in workers.iter().enumerate() {
        for (index, ran) in list.ran.iter().enumerate() {
            places[ran.position.index()] = (worker as u16, index as u32);
        }
    }
    debug_assert!(
        workers.iter().enumerate().all(|(worker, list)| is_in_places(&places, worker, list)),
        "each call is answered by one worker, once"
    );
    places
}

/// Whether each answer of a worker is where its position says.
fn is_in_places(places: &[(u16, u32)], worker: usize, list: &WorkerAnswers) -> bool {
    let mut ran = list.ran.iter().enumerate();
    ran.all(|(index, ran)| places[ran.position.index()] == (worker as u16, index as u32))
}

/// What became of an epoch.
#[derive(Debug)]
pub struct EpochOutcome {
    /// Its number.
    pub epoch: EpochNumber,
    /// The first answers are those to calls that an epoch before deferred: this many.
    pub deferred_in: usize,
    /// Which answers are [`Answer::Deferred`], in the order in which these calls run next.
    pub deferred: Vec<u32>,
    /// Procedures of which a call of the serial part said what it may write: it did not call
    /// [`crate::WriteSet::is_unknown`].
    pub predicted: BTreeSet<u16>,
    /// State hash at its end, if it is maintained.
    pub state_hash: Option<storage::StateHash>,
    /// What it did and how long each phase took.
    pub stats: EpochStats,
    /// The rows that several of its calls wrote, or that calls waited for, by table and key; none
    /// if [`crate::EngineConfig::contention`] is off.
    pub contention: Vec<ContendedRow>,
    /// How rows of watched tables have changed ([`crate::Engine::watch_changes`]).
    pub changes: EpochChanges,
    /// Which calls did not commit, in no order.
    pub(crate) uncommitted: Vec<u32>,
    pub(crate) places: Vec<(u16, u32)>,
    pub(crate) workers: Vec<WorkerAnswers>,
}

/// The calls that did not commit, by their positions.
pub(crate) fn uncommitted(workers: &[WorkerAnswers]) -> Vec<u32> {
    workers.iter().flat_map(|list| &list.failures).map(|&(position, _)| position.0).collect()
}

impl EpochOutcome {
    /// From now on calls have the numbers in which they were submitted; until now, their
    /// positions.
    pub(crate) fn number_as_submitted(&mut self, positions: &[Position]) {
        let calls = self.deferred_in + positions.len();
        assert!(calls == self.places.len(), "calls were deferred or submitted");
        let mut number_of: Vec<u32> = (0..self.places.len() as u32).collect();
        for (number, &position) in (self.deferred_in as u32..).zip(positions) {
            number_of[position.index()] = number;
        }
        let mut places = self.places.clone();
        for (position, &number) in number_of.iter().enumerate() {
            places[number as usize] = self.places[position];
        }
        self.places = places;
        let calls = self.deferred.iter_mut().chain(&mut self.uncommitted);
        calls.for_each(|call| *call = number_of[*call as usize]);
    }

    /// The calls that did not commit and their answers, in no order; numbers as those of
    /// [`EpochOutcome::answer`].
    pub fn uncommitted(&self) -> impl Iterator<Item = (usize, Answer<'_>)> {
        self.uncommitted.iter().map(|&number| (number as usize, self.answer(number as usize)))
    }

    /// Calls of the epoch, those deferred in included.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether the epoch was empty.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The answer to a call, in the order in which they were submitted: the first of the batch is
    /// at `deferred_in`.
    ///
    /// # Panics
    /// If the epoch had not as many calls.
    pub fn answer(&self, number: usize) -> Answer<'_> {
        let (worker, index) = self.places[number];
        self.workers[worker as usize].answer(index as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_keep_their_own_output() {
        let mut answers = WorkerAnswers::default();
        answers.output.extend_from_slice(b"dropped");
        answers.fail(Position(4), Failure::Aborted(Abort::code(9)));
        answers.output.extend_from_slice(b"one");
        answers.commit(Position(5));
        answers.commit(Position(1));
        answers.output.extend_from_slice(b"lost too");
        answers.fail(Position(2), Failure::Failed("why".into()));
        answers.fail(Position(3), Failure::Deferred);
        answers.output.extend_from_slice(b"two");
        answers.commit(Position(0));
        let places = places(std::slice::from_ref(&answers), 6);
        let expected = [
            Answer::Committed(b"two"),
            Answer::Committed(b""),
            Answer::Failed("why"),
            Answer::Deferred,
            Answer::Aborted(&Abort::code(9)),
            Answer::Committed(b"one"),
        ];
        for ((worker, index), expected) in places.into_iter().zip(expected) {
            assert_eq!(worker, 0);
            assert_eq!(answers.answer(index as usize), expected);
        }
        assert_eq!((answers.len(), answers.failures().len()), (6, 3));
        assert_eq!(uncommitted(&[answers]), [4, 2, 3]);
    }
}
