//! What goes into an epoch: calls in serial order, and which worker owns which of them.

use std::collections::BTreeMap;
use std::ops::Range;

use storage::Position;
use storage::format::EPOCH_CALLS_MAX;

use crate::emptied::empty;
use crate::error::{EngineError, Result};
use crate::worker_id::WorkerId;

/// Most bytes of one call's arguments. Programs may have a smaller limit; this one is part of the
/// log's format.
pub const ARGUMENT_BYTES_MAX: usize = 64 << 20;

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
    /// Of the lowest two bits.
    fn of(number: u16) -> Self {
        let all = [Self::Parallel, Self::Serial, Self::Deferred, Self::Refused];
        all[usize::from(number % 4)]
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
    /// Calls of one submitter keep their order (O-109); 0 for those that keep none.
    pub(crate) submitter: u16,
    pub(crate) arguments: &'c [u8],
}

/// Largest number of a submitter.
pub const SUBMITTERS_MAX: u16 = u16::MAX >> PART_BITS;

/// Bits of a [`Part`] below the number of a submitter.
const PART_BITS: u32 = 2;

/// The word in front of a call's arguments, of which each field is little-endian: procedure (2
/// bytes); [`Part`] (2 bits) and number of the submitter (14 bits); bytes of arguments (4). Part of
/// the log's format.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Header(pub(crate) u64);

impl Header {
    pub(crate) fn new(call: &Call<'_>) -> Self {
        let Call { procedure, part, submitter, arguments } = *call;
        assert!(submitter <= SUBMITTERS_MAX, "submitter {submitter}, at most {SUBMITTERS_MAX}");
        let part_and_submitter = part as u16 | submitter << PART_BITS;
        let bytes = arguments.len() as u64;
        Self(u64::from(procedure) | u64::from(part_and_submitter) << 16 | bytes << 32)
    }

    pub(crate) fn procedure(self) -> u16 {
        self.0 as u16
    }

    pub(crate) fn part(self) -> Part {
        Part::of((self.0 >> 16) as u16)
    }

    pub(crate) fn submitter(self) -> u16 {
        (self.0 >> 16) as u16 >> PART_BITS
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
    /// Whether any keep an order.
    are_ordered: bool,
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

    /// Empties the batch and keeps its memory, unless that is much.
    pub fn clear(&mut self) {
        empty(&mut self.starts);
        empty(&mut self.words);
        self.procedures = 0;
        (self.serial, self.deferred) = (0, 0);
        self.are_ordered = false;
    }

    /// Appends a call; its position is the number of calls before it.
    ///
    /// # Errors
    /// `Limit` if the arguments are longer than 64 MiB or the batch has 2^24 - 1 calls.
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

    /// Appends a call of a submitter, whose calls keep their order: where one is deferred, those
    /// behind it that are in its epoch are deferred, too, and run after it (O-109). They may be for
    /// the serial part; then those before are, too ([`Calls::in_order_of_submitters`]). 0 is no
    /// submitter.
    ///
    /// # Errors
    /// As [`Calls::push`].
    ///
    /// # Panics
    /// For a number above [`SUBMITTERS_MAX`].
    pub fn push_of(
        &mut self,
        submitter: u16,
        is_serial: bool,
        procedure: u16,
        arguments: &[u8],
    ) -> Result<()> {
        let part = if is_serial { Part::Serial } else { Part::Parallel };
        self.push_call(&Call { procedure, part, submitter, arguments })
    }

    pub(crate) fn push_to(&mut self, part: Part, procedure: u16, arguments: &[u8]) -> Result<()> {
        self.push_call(&Call { procedure, part, submitter: 0, arguments })
    }

    #[inline(always)]
    pub(crate) fn push_call(&mut self, call: &Call<'_>) -> Result<()> {
        let args = call.arguments;
        if args.len() > ARGUMENT_BYTES_MAX {
            return Err(EngineError::Limit(format!(
                "arguments of {} bytes, at most {ARGUMENT_BYTES_MAX}",
                args.len()
            )));
        }
        check_count(self.len() + 1)?;
        self.starts.push(self.words.len());
        // Of a long call nothing is moved while it comes.
        self.words.reserve(1 + args.len().div_ceil(8));
        self.words.push(Header::new(call).0.to_le());
        self.serial += usize::from(call.part != Part::Parallel);
        self.deferred += usize::from(call.part.was_deferred());
        self.are_ordered |= call.submitter != 0;
        let (whole, rest) = args.as_chunks();
        self.words.extend(whole.iter().map(|&word| u64::from_ne_bytes(word)));
        if !rest.is_empty() {
            let mut last = [0u8; 8];
            last[..rest.len()].copy_from_slice(rest);
            self.words.push(u64::from_ne_bytes(last));
        }
        self.procedures = self.procedures.max(usize::from(call.procedure) + 1);
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
        self.are_ordered |= calls.are_ordered;
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
        self.serial_where(|position| position < count)
    }

    /// The same calls, of which some more are for the serial part.
    fn serial_where(&self, is_serial: impl Fn(usize) -> bool) -> Self {
        assert!(self.deferred == 0, "calls that were deferred are in the serial part already");
        let mut calls = Self::new();
        for position in 0..self.len() {
            let call = self.call(position);
            let part = if is_serial(position) { Part::Serial } else { call.part };
            calls.push_call(&Call { part, ..call }).expect("they were in a batch before");
        }
        calls
    }

    /// The same calls; but where one is for the serial part, those of its submitter that come
    /// before it are, too: the serial part comes first.
    pub fn in_order_of_submitters(self) -> Self {
        if !self.are_ordered || self.serial == 0 || self.serial == self.len() {
            return self;
        }
        let mut last_serial = BTreeMap::<u16, usize>::new();
        for position in 0..self.len() {
            let Call { part, submitter, .. } = self.call(position);
            if submitter != 0 && part != Part::Parallel {
                last_serial.insert(submitter, position);
            }
        }
        if last_serial.is_empty() {
            return self;
        }
        let is_before_serial = |position| {
            let last = last_serial.get(&self.call(position).submitter);
            last.is_some_and(|&last| position < last)
        };
        self.serial_where(is_before_serial)
    }

    /// Whether any keep an order.
    pub(crate) fn are_ordered(&self) -> bool {
        self.are_ordered
    }

    /// Whether one worker runs an epoch of them in any case: all are for the serial part, and they
    /// are few enough to be published by one.
    pub fn are_few(&self) -> bool {
        self.serial == self.len() && self.len() <= FEW_CALLS
    }

    /// Whether the call at a position is to run in the serial part.
    pub fn is_serial(&self, position: usize) -> bool {
        self.call(position).part != Part::Parallel
    }

    /// Calls that are to run in the serial part. In an epoch they are the first.
    pub(crate) fn serial(&self) -> usize {
        self.serial
    }

    /// Those of them that an epoch before deferred: the first.
    pub(crate) fn deferred(&self) -> usize {
        self.deferred
    }

    /// How many were not deferred.
    pub(crate) fn new_calls(&self) -> usize {
        self.len() - self.deferred
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
    pub(crate) fn in_serial_order(deferred: &Self, calls: &Self) -> Result<(Self, Vec<Position>)> {
        assert!(deferred.deferred == deferred.len(), "only deferred calls come first");
        assert!(calls.deferred == 0, "no call of a batch is deferred before it has run");
        let (mut all, mut positions) = (deferred.clone(), vec![Position(0); calls.len()]);
        check_count(deferred.len() + calls.len())?;
        for is_serial in [true, false] {
            for (number, position) in positions.iter_mut().enumerate() {
                let call = calls.call(number);
                if (call.part != Part::Parallel) == is_serial {
                    *position = Position::from_index(all.len());
                    all.push_call(&call)?;
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
        Call { procedure, part: header.part(), submitter: header.submitter(), arguments }
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
        debug_assert!(positions.end <= self.len(), "the batch has {} calls", self.len());
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

/// Calls are dealt to workers in runs of this many, round robin, for the initialization phase. Part
/// of the log's format: stream s of S has the runs s, s+S, s+2S...
pub(crate) const RUN_CALLS: usize = 4;

/// Which worker owns a position, and which of its calls it is.
#[inline]
pub(crate) fn owner(position: usize, workers: usize) -> (WorkerId, usize) {
    // Small numbers, which are divided twice as fast.
    let (run, workers) = ((position / RUN_CALLS) as u32, workers as u32);
    let (worker, before) = (run % workers, run / workers);
    (WorkerId(worker), before as usize * RUN_CALLS + position % RUN_CALLS)
}

/// Positions that a worker owns, in order.
pub(crate) fn owned(worker: WorkerId, workers: usize, calls: usize) -> impl Iterator<Item = usize> {
    owned_runs(worker, workers, calls).flatten()
}

/// The same, by runs.
pub(crate) fn owned_runs(
    worker: WorkerId,
    workers: usize,
    calls: usize,
) -> impl Iterator<Item = Range<usize>> {
    assert!(worker.index() < workers, "worker {worker} of {workers} owns no calls");
    (worker.index() * RUN_CALLS..calls)
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
    fn o_109_what_comes_before_a_serial_call_of_its_submitter_is_serial_too() {
        let mut calls = Calls::new();
        let pushed = [(1, false), (2, false), (0, false), (1, true), (1, false), (2, false)];
        for (submitter, is_serial) in pushed {
            calls.push_of(submitter, is_serial, 7, &[submitter as u8; 3]).unwrap();
        }
        let before = calls.clone();
        let calls = calls.in_order_of_submitters();
        let serial: Vec<_> = (0..calls.len()).filter(|&at| calls.is_serial(at)).collect();
        assert_eq!((serial, calls.serial()), (vec![0, 3], 2));
        for position in 0..calls.len() {
            let (call, before) = (calls.call(position), before.call(position));
            assert_eq!(call, Call { part: call.part, ..before });
        }
        assert!(calls.are_ordered() && calls.cut(0..1).are_ordered());
        let whole = calls.first_serial(6).in_order_of_submitters();
        assert_eq!((whole.serial(), whole.call(5).submitter), (6, 2));
        let mut last = Calls::new();
        last.push_of(SUBMITTERS_MAX, true, u16::MAX, &[]).unwrap();
        assert_eq!((last.call(0).submitter, last.call(0).part), (SUBMITTERS_MAX, Part::Serial));
    }

    #[test]
    fn o_11_every_position_has_one_owner_who_meets_it_in_order() {
        for workers in 1..6 {
            for calls in [0, 1, 3, 4, 5, 31, 32, 100] {
                let mut seen = vec![0; calls];
                for worker in 0..workers {
                    let mut last = None;
                    for (index, position) in
                        owned(WorkerId::from_index(worker), workers, calls).enumerate()
                    {
                        assert_eq!(owner(position, workers), (WorkerId::from_index(worker), index));
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
