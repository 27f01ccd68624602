//! What goes into an epoch and what comes out: calls in serial order, answers by position.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

use storage::format::EPOCH_CALLS_MAX;

use crate::contention::rows::ContendedRow;
use crate::error::{EngineError, Result};
use crate::stats::EpochStats;

/// Most bytes of one call's arguments.
pub const ARGUMENT_BYTES_MAX: usize = 1 << 20;

/// Most calls that one worker publishes: more would be published faster by all.
const FEW_CALLS: usize = 1000;

/// In which part of its epoch a call runs. Part of the log's format, so that a replay
/// decides nothing (O-65).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum Part {
    /// In parallel with others, after it has declared its write set.
    Parallel = 0,
    /// In the serial part.
    Serial = 1,
    /// In the serial part, because an epoch before deferred it.
    Deferred = 2,
    /// Nowhere: it was deferred, and there is no space for it by itself, or the process died in it
    /// twice. That is its answer (O-75, O-79).
    Refused = 3,
}

impl Part {
    fn of(number: u16) -> Option<Self> {
        let all = [Self::Parallel, Self::Serial, Self::Deferred, Self::Refused];
        all.into_iter().find(|&part| part as u16 == number)
    }

    /// Whether an epoch before deferred the call.
    pub(crate) fn was_deferred(self) -> bool {
        matches!(self, Self::Deferred | Self::Refused)
    }
}

/// One call in a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Call<'c> {
    pub(crate) procedure: u16,
    pub(crate) part: Part,
    pub(crate) arguments: &'c [u8],
}

/// The word in front of a call's arguments, of which each field is little-endian: procedure (2
/// bytes), [`Part`] (2), bytes of arguments (4). Part of the log's format.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Header(pub(crate) u64);

impl Header {
    pub(crate) fn new(procedure: u16, part: Part, bytes: usize) -> Self {
        Self(u64::from(procedure) | (part as u64) << 16 | (bytes as u64) << 32)
    }

    pub(crate) fn procedure(self) -> u16 {
        self.0 as u16
    }

    /// The part of the epoch; `None` for a word that is no header.
    pub(crate) fn part(self) -> Option<Part> {
        Part::of((self.0 >> 16) as u16)
    }

    pub(crate) fn bytes(self) -> usize {
        (self.0 >> 32) as usize
    }
}

/// Bytes of a [`Header`].
pub(crate) const HEADER_BYTES: usize = 8;

/// A batch of calls, in serial order. They lie in one buffer as they are logged, each a record of a
/// header and its arguments, padded with zeros to a multiple of 8 bytes, so that fixed-layout
/// arguments are read in place.
#[derive(Debug, Default, Clone)]
pub struct Calls {
    /// Where the record of each call begins.
    starts: Vec<usize>,
    /// The records. 8-byte words keep the buffer aligned.
    words: Vec<u64>,
    /// One more than the largest number of a procedure.
    procedures: usize,
    /// Calls that are to run in the serial part ...
    serial: usize,
    /// ... and those of them that an epoch before deferred.
    deferred: usize,
}

impl Calls {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Calls in the batch.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// Bytes of all arguments.
    pub fn bytes(&self) -> usize {
        self.records_bytes() - self.len() * HEADER_BYTES
    }

    /// Bytes of all records.
    pub(crate) fn records_bytes(&self) -> usize {
        self.words.len() * 8
    }

    /// Empties the batch and keeps its memory.
    pub fn clear(&mut self) {
        self.starts.clear();
        self.words.clear();
        self.procedures = 0;
        (self.serial, self.deferred) = (0, 0);
    }

    /// Appends a call; its position is the number of calls before it.
    ///
    /// # Errors
    /// `Limit` if the arguments are longer than 1 MiB or the batch has 2^24 - 1 calls.
    pub fn push(&mut self, procedure: u16, arguments: &[u8]) -> Result<()> {
        self.push_to(Part::Parallel, procedure, arguments)
    }

    /// Appends a call that runs in the serial part of the epoch: before all others and alone, so
    /// that it need not say what it will write. It is never deferred.
    ///
    /// # Errors
    /// As [`Calls::push`].
    pub fn push_serial(&mut self, procedure: u16, arguments: &[u8]) -> Result<()> {
        self.push_to(Part::Serial, procedure, arguments)
    }

    pub(crate) fn push_to(&mut self, part: Part, procedure: u16, args: &[u8]) -> Result<()> {
        if args.len() > ARGUMENT_BYTES_MAX {
            return Err(EngineError::Limit(format!(
                "arguments of {} bytes, at most {ARGUMENT_BYTES_MAX}",
                args.len()
            )));
        }
        check_count(self.len() + 1)?;
        self.starts.push(self.words.len());
        self.words.push(Header::new(procedure, part, args.len()).0.to_le());
        self.serial += usize::from(part != Part::Parallel);
        self.deferred += usize::from(part.was_deferred());
        let (whole, rest) = args.as_chunks();
        self.words.extend(whole.iter().map(|&word| u64::from_ne_bytes(word)));
        if !rest.is_empty() {
            let mut last = [0u8; 8];
            last[..rest.len()].copy_from_slice(rest);
            self.words.push(u64::from_ne_bytes(last));
        }
        self.procedures = self.procedures.max(usize::from(procedure) + 1);
        Ok(())
    }

    /// Appends the calls of another batch.
    ///
    /// # Errors
    /// `Limit` if there would be more than 2^24 - 1; nothing is appended then.
    pub fn append(&mut self, calls: &Calls) -> Result<()> {
        self.append_some(calls, 0..calls.len())
    }

    /// Appends some calls of another batch, as they are.
    ///
    /// # Errors
    /// `Limit` if there would be more than 2^24 - 1; nothing is appended then.
    pub fn append_some(&mut self, calls: &Calls, positions: Range<usize>) -> Result<()> {
        check_count(self.len() + positions.len())?;
        let Some(&from) = calls.starts.get(positions.start) else { return Ok(()) };
        let to = calls.starts.get(positions.end).copied().unwrap_or(calls.words.len());
        let end = self.words.len();
        self.starts.extend(calls.starts[positions.clone()].iter().map(|at| end + at - from));
        self.words.extend_from_slice(&calls.words[from..to]);
        self.procedures = self.procedures.max(calls.procedures);
        if calls.serial > 0 {
            let parts = || positions.clone().map(|position| calls.call(position).part);
            self.serial += parts().filter(|&part| part != Part::Parallel).count();
            self.deferred += parts().filter(|part| part.was_deferred()).count();
        }
        Ok(())
    }

    /// Some of the calls, as they are.
    pub fn cut(&self, positions: Range<usize>) -> Self {
        let mut calls = Self::new();
        calls.append_some(self, positions).expect("they were in a batch before");
        calls
    }

    /// The same calls, of which the first `count` are for the serial part.
    pub fn first_serial(&self, count: usize) -> Self {
        let mut calls = Self::new();
        for position in 0..self.len() {
            let Call { procedure, part, arguments } = self.call(position);
            let part = if position < count { Part::Serial } else { part };
            calls.push_to(part, procedure, arguments).expect("they were in a batch before");
        }
        calls
    }

    /// Whether one worker runs an epoch of them in any case: all are for the serial part, and they
    /// are few enough to be published by one.
    pub fn are_few(&self) -> bool {
        self.serial == self.len() && self.len() <= FEW_CALLS
    }

    /// Calls that are to run in the serial part. In an epoch they are the first.
    pub(crate) fn serial(&self) -> usize {
        self.serial
    }

    /// Those of them that an epoch before deferred: the first.
    pub(crate) fn deferred(&self) -> usize {
        self.deferred
    }

    /// Some of the calls, for a part of an epoch.
    pub(crate) fn some(&self, positions: Range<usize>, part: Part) -> Result<Self> {
        let mut some = Self::new();
        for position in positions {
            let (procedure, arguments) = self.get(position);
            some.push_to(part, procedure, arguments)?;
        }
        Ok(some)
    }

    /// Deferred calls and others in their serial order (O-71): those that were deferred, those for
    /// the serial part, the rest; and the position of each of the others.
    pub(crate) fn in_serial_order(deferred: &Self, calls: &Self) -> Result<(Self, Vec<u32>)> {
        let (mut all, mut positions) = (deferred.clone(), vec![0; calls.len()]);
        check_count(deferred.len() + calls.len())?;
        for is_serial in [true, false] {
            for (number, position) in positions.iter_mut().enumerate() {
                let call = calls.call(number);
                if (call.part != Part::Parallel) == is_serial {
                    *position = all.len() as u32;
                    all.push_to(call.part, call.procedure, call.arguments)?;
                }
            }
        }
        Ok((all, positions))
    }

    /// The call at a position.
    #[inline]
    pub(crate) fn call(&self, position: usize) -> Call<'_> {
        let (procedure, arguments) = self.get(position);
        let header = Header(u64::from_le(self.words[self.starts[position]]));
        let part = header.part().expect("a header that was made here");
        Call { procedure, part, arguments }
    }

    /// Procedure and arguments of the call at a position.
    #[inline]
    pub fn get(&self, position: usize) -> (u16, &[u8]) {
        let record = &self.words[self.starts[position]..];
        let header = Header(u64::from_le(record[0]));
        (header.procedure(), &crate::version::bytes_of_words(&record[1..])[..header.bytes()])
    }

    /// The records of some calls that follow each other, as they are logged.
    #[inline]
    pub(crate) fn records(&self, positions: Range<usize>) -> &[u8] {
        let end = self.starts.get(positions.end).copied().unwrap_or(self.words.len());
        crate::version::bytes_of_words(&self.words[self.starts[positions.start]..end])
    }

    /// The first call that names none of so many procedures: its position, and which it names.
    pub(crate) fn find_unknown(&self, procedures: usize) -> Option<(usize, u16)> {
        let all_known = self.procedures <= procedures;
        let mut calls = (0..if all_known { 0 } else { self.len() }).map(|p| (p, self.get(p).0));
        calls.find(|&(_, procedure)| usize::from(procedure) >= procedures)
    }
}

fn check_count(calls: usize) -> Result<()> {
    if calls as u64 <= EPOCH_CALLS_MAX {
        return Ok(());
    }
    Err(EngineError::Limit(format!("more than {EPOCH_CALLS_MAX} calls in an epoch")))
}

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
    position: u32,
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
    failures: Vec<(u32, Failure)>,
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
    pub(crate) fn commit(&mut self, position: u32) {
        self.ran.push(Ran { position, failure: 0, output_to: self.output.len() });
    }

    /// What was put out since the answer before.
    pub(crate) fn put_out(&self) -> &[u8] {
        &self.output[self.ran.last().map_or(0, |ran| ran.output_to)..]
    }

    /// What the last call put out that ran, if it committed.
    pub(crate) fn last_output(&self) -> &[u8] {
        self.ran.len().checked_sub(1).map_or(&[], |last| &self.output[self.put_out_by(last)])
    }

    /// As [`WorkerAnswers::commit`], with other bytes than were put out.
    pub(crate) fn commit_instead(&mut self, position: u32, bytes: &[u8]) {
        self.output.truncate(self.ran.last().map_or(0, |ran| ran.output_to));
        self.output.extend_from_slice(bytes);
        self.commit(position);
    }

    /// The call at a position committed, and its answer will be made later.
    pub(crate) fn commit_later(&mut self, position: u32) {
        let place = self.ran.len();
        self.ran.push(Ran { position, failure: LATER, output_to: self.output.len() });
        self.later.push((place as u32, self.put_out_by(place)));
    }

    /// Answers that are made later.
    pub(crate) fn later(&self) -> usize {
        self.later.len()
    }

    /// Position and what was put out of a call whose answer is made later.
    pub(crate) fn put_out_for(&self, later: usize) -> (u32, &[u8]) {
        let (place, put_out) = &self.later[later];
        (self.ran[*place as usize].position, &self.output[put_out.clone()])
    }

    /// Now the answer is made.
    pub(crate) fn finish(&mut self, later: usize, bytes: &[u8]) {
        let from = self.output.len();
        self.output.extend_from_slice(bytes);
        self.later[later].1 = from..self.output.len();
    }

    fn put_out_by(&self, index: usize) -> Range<usize> {
        let from = index.checked_sub(1).map_or(0, |before| self.ran[before].output_to);
        from..self.ran[index].output_to
    }

    /// The call at a position did not commit; what it put out is forgotten.
    pub(crate) fn fail(&mut self, position: u32, failure: Failure) {
        let output_to = self.ran.last().map_or(0, |ran| ran.output_to);
        self.output.truncate(output_to);
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
            places[ran.position as usize] = (worker as u16, index as u32);
        }
    }
    places
}

/// Calls are dealt to workers in runs of this many, round robin, for the initialization phase. Part
/// of the log's format: stream s of S has the runs s, s+S, s+2S...
pub(crate) const RUN_CALLS: usize = 4;

/// Which worker owns a position, and which of its calls it is.
#[inline]
pub(crate) fn owner(position: usize, workers: usize) -> (usize, usize) {
    // Small numbers, which are divided twice as fast.
    let (run, workers) = ((position / RUN_CALLS) as u32, workers as u32);
    let (worker, before) = (run % workers, run / workers);
    (worker as usize, before as usize * RUN_CALLS + position % RUN_CALLS)
}

/// Positions that a worker owns, in order.
pub(crate) fn owned(worker: usize, workers: usize, calls: usize) -> impl Iterator<Item = usize> {
    owned_runs(worker, workers, calls).flatten()
}

/// The same, by runs.
pub(crate) fn owned_runs(
    worker: usize,
    workers: usize,
    calls: usize,
) -> impl Iterator<Item = Range<usize>> {
    (worker * RUN_CALLS..calls)
        .step_by(workers * RUN_CALLS)
        .map(move |first| first..(first + RUN_CALLS).min(calls))
}

/// What the outside world tells an epoch; logged, so that replay sees the same (O-47).
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct EpochInfo {
    /// Nanoseconds since 1970.
    pub timestamp_ns: u64,
    /// Seed of the epoch's random numbers.
    pub seed: u64,
}

/// What became of an epoch.
#[derive(Debug)]
pub struct EpochOutcome {
    /// Its number.
    pub epoch: u64,
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
    /// Which calls did not commit, in no order.
    pub(crate) uncommitted: Vec<u32>,
    pub(crate) places: Vec<(u16, u32)>,
    pub(crate) workers: Vec<WorkerAnswers>,
}

/// The calls that did not commit, by their positions.
pub(crate) fn uncommitted(workers: &[WorkerAnswers]) -> Vec<u32> {
    workers.iter().flat_map(|list| &list.failures).map(|&(position, _)| position).collect()
}

impl EpochOutcome {
    /// From now on calls have the numbers in which they were submitted; until now, their
    /// positions.
    pub(crate) fn number_as_submitted(&mut self, positions: &[u32]) {
        let mut number_of: Vec<u32> = (0..self.places.len() as u32).collect();
        for (number, &position) in (self.deferred_in as u32..).zip(positions) {
            number_of[position as usize] = number;
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

    fn batch(lengths: &[usize]) -> Calls {
        let mut calls = Calls::new();
        for (number, &len) in lengths.iter().enumerate() {
            calls.push_serial(number as u16, &vec![number as u8 + 1; len]).unwrap();
        }
        calls
    }

    #[test]
    fn a_record_is_header_and_arguments_and_zeros() {
        let calls = batch(&[0, 1, 8, 9, 1000]);
        for (position, len) in [0, 1, 8, 9, 1000].into_iter().enumerate() {
            let arguments = vec![position as u8 + 1; len];
            let call = calls.call(position);
            assert_eq!((call.procedure, call.part), (position as u16, Part::Serial));
            assert_eq!(call.arguments, arguments);
            assert!(call.arguments.as_ptr().addr().is_multiple_of(8));
            let mut record = vec![position as u8, 0, 1, 0, len as u8, (len >> 8) as u8, 0, 0];
            record.extend(arguments);
            record.resize(record.len().next_multiple_of(8), 0);
            assert_eq!(calls.records(position..position + 1), record);
        }
        assert_eq!(calls.bytes(), 8 + 8 + 16 + 1000);
        assert_eq!(calls.records_bytes(), calls.bytes() + 5 * HEADER_BYTES);
    }

    #[test]
    fn joined_batches_hold_the_calls_of_both() {
        let (mut all, more) = (batch(&[3, 24]), batch(&[5, 0, 16]));
        all.append(&more).unwrap();
        assert_eq!(all.len(), 5);
        for position in 0..3 {
            assert_eq!(all.get(2 + position), more.get(position));
        }
        assert_eq!(all.serial(), 5);
        let some = all.cut(1..4);
        assert_eq!((some.len(), some.serial()), (3, 3));
        for position in 0..3 {
            assert_eq!(some.call(position), all.call(1 + position));
        }
        assert!(all.cut(5..5).is_empty());
        assert_eq!(all.find_unknown(3), None);
        assert_eq!(all.find_unknown(2), Some((4, 2)));
        assert_eq!(all.find_unknown(1), Some((1, 1)));
        all.clear();
        assert_eq!((all.len(), all.bytes(), all.find_unknown(0)), (0, 0, None));
    }

    #[test]
    fn answers_keep_their_own_output() {
        let mut answers = WorkerAnswers::default();
        answers.output.extend_from_slice(b"dropped");
        answers.fail(4, Failure::Aborted(Abort::code(9)));
        answers.output.extend_from_slice(b"one");
        answers.commit(5);
        answers.commit(1);
        answers.output.extend_from_slice(b"lost too");
        answers.fail(2, Failure::Failed("why".into()));
        answers.fail(3, Failure::Deferred);
        answers.output.extend_from_slice(b"two");
        answers.commit(0);
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
