//! What callers did and were told, and whether the database may have done that: the calls that are
//! in its ledger, one after the other on the model, come to the same answers and the same rows.

use std::collections::BTreeMap;

use nvcaracal::{Abort, Error};

use crate::items::{Image, SEQUENCES};
use crate::program::{Act, Done, End, Entry, Model, What, model, place_of};

/// Bits of a serial id below its epoch.
const POSITION_BITS: u32 = storage::format::POSITION_BITS;

fn epoch_of(serial: u64) -> u64 {
    serial >> POSITION_BITS
}

/// A moment of a life: by the clock of all callers, and by the changes of the disk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) tick: u64,
    pub(crate) changes: usize,
}

/// What became of a call, as its caller knows.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// The entry is what it wrote into the ledger.
    Done(Entry),
    /// It ended in another way, at this serial id and time.
    Ended { end: End, serial: u64, timestamp: u64 },
    /// It ended because two items would have one tag: that is told without a place.
    NotUnique,
    /// It was refused, or never submitted: it did not take place.
    Refused,
    /// The database stopped.
    Unknown,
}

/// A call.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub(crate) act: Act,
    pub(crate) submitted: Moment,
    /// Absent if nobody waited for it.
    pub(crate) answer: Option<(Answer, Moment)>,
    /// Its batch, and its place there.
    pub(crate) batch: Option<(u64, usize)>,
    /// Its submitter, and its place in the order of that.
    pub(crate) order: Option<(u64, usize)>,
}

impl Record {
    /// What an answer says.
    ///
    /// # Errors
    /// It is not an answer to this call.
    pub(crate) fn read(&self, answer: Result<Done, Error>) -> Result<Answer, String> {
        let is_own = |id: u64| match id == self.act.id {
            true => Ok(()),
            false => Err(format!("call {} got the answer of call {id}", self.act.id)),
        };
        match answer {
            Ok(done) => is_own(done.id).map(|()| Answer::Done(done.entry)),
            Err(error) if error.is_limit() => Ok(Answer::Refused),
            Err(error) if error.is_stopped() => Ok(Answer::Unknown),
            Err(error) if error.abort().is_some_and(|of| of.code == Abort::NOT_UNIQUE) => {
                let act = &self.act;
                match act.what == What::Item && !act.looks_first() {
                    true => Ok(Answer::NotUnique),
                    false => Err(format!("{act:?} came to {error}")),
                }
            }
            Err(error) => {
                let [id, serial, timestamp] = place_of(&error)
                    .ok_or_else(|| format!("call {} got an unknown error: {error}", self.act.id))?;
                is_own(id)?;
                let end = error.abort().map_or(End::Panicked, |abort| End::Aborted(abort.code));
                Ok(Answer::Ended { end, serial, timestamp })
            }
        }
    }
}

/// A snapshot that somebody read.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) asked: Moment,
    pub(crate) got: Moment,
    pub(crate) epoch: u64,
    pub(crate) image: Image,
}

/// What is in a database.
#[derive(Debug, Clone, Default)]
pub(crate) struct Content {
    pub(crate) image: Image,
    pub(crate) ledger: BTreeMap<u64, Entry>,
}

/// What is known of a database between two lives.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    pub(crate) model: Model,
    ledger: BTreeMap<u64, Entry>,
    serial: u64,
    timestamp: u64,
    /// The next numbers of the sequences.
    numbers: [u64; SEQUENCES],
}

/// A call that ran.
struct Ran<'r> {
    serial: u64,
    timestamp: u64,
    end: End,
    record: &'r Record,
}

/// What happened in a life.
#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    pub(crate) records: Vec<Record>,
    pub(crate) seen: Vec<Seen>,
}

impl History {
    /// What was known after so many changes of the disk: later answers never came.
    pub(crate) fn until(&self, changes: usize) -> Self {
        let records = self.records.iter().filter(|record| record.submitted.changes <= changes);
        let seen = self.seen.iter().filter(|seen| seen.got.changes <= changes);
        let (records, seen) = (records.cloned().collect(), seen.cloned().collect());
        let mut until = Self { records, seen };
        for record in &mut until.records {
            record.answer.take_if(|(_, moment)| moment.changes > changes);
        }
        until
    }

    /// All of it lies before the changes of the next disk.
    pub(crate) fn is_past(&mut self) {
        for record in &mut self.records {
            record.submitted.changes = 0;
            record.answer.iter_mut().for_each(|(_, moment)| moment.changes = 0);
        }
        self.seen.iter_mut().for_each(|seen| seen.got.changes = 0);
    }

    /// Whether the database may have this content after what was known of it.
    ///
    /// # Errors
    /// What is wrong.
    pub(crate) fn verify(&self, known: &Known, content: &Content) -> Result<Known, String> {
        let ran = self.ran(known, content)?;
        check_order(&ran, known)?;
        self.check_real_time(&ran)?;
        check_batches(&ran)?;
        check_submitters(&ran)?;
        self.check_numbers(&ran, known, content)?;
        let mut rows = known.model.clone();
        let mut snapshots = self.seen.iter().collect::<Vec<_>>();
        snapshots.sort_by_key(|seen| seen.epoch);
        let mut snapshots = snapshots.into_iter().peekable();
        for call in &ran {
            while let Some(seen) = snapshots.next_if(|seen| seen.epoch < epoch_of(call.serial)) {
                let compared = seen.image.compare(&rows);
                compared.map_err(|what| format!("the snapshot of epoch {}: {what}", seen.epoch))?;
            }
            let expected = model(&call.record.act, &mut rows, call.end);
            if expected != call.end {
                let (serial, act) = (call.serial, &call.record.act);
                let place = (epoch_of(serial), serial & ((1 << POSITION_BITS) - 1));
                return Err(format!(
                    "{act:?} at {place:?} came to {:?} and not to {expected:?}",
                    call.end
                ));
            }
        }
        for seen in snapshots {
            let compared = seen.image.compare(&rows);
            compared.map_err(|what| format!("the snapshot of epoch {}: {what}", seen.epoch))?;
        }
        let compared = content.image.compare(&rows);
        compared.map_err(|what| format!("the rows at the end: {what}"))?;
        let last = ran.iter().max_by_key(|call| call.serial);
        Ok(Known {
            model: rows,
            ledger: content.ledger.clone(),
            serial: last.map_or(known.serial, |call| call.serial),
            timestamp: last.map_or(known.timestamp, |call| call.timestamp),
            numbers: content.image.numbers,
        })
    }

    /// Numbers of a sequence go up with the serial ids, and with the snapshots between them. Of
    /// those that were allocated none is missing but for calls that gave up, or may have.
    fn check_numbers(
        &self,
        ran: &[Ran<'_>],
        known: &Known,
        content: &Content,
    ) -> Result<(), String> {
        for sequence in 0..SEQUENCES {
            let sequences = |record: &Record| record.act.sequence() == Some(sequence);
            let (mut next, mut allocation) = (known.numbers[sequence], 0);
            let mut seen: Vec<_> = self.seen.iter().map(|seen| (seen.epoch, &seen.image)).collect();
            seen.sort_by_key(|(epoch, _)| *epoch);
            let mut seen = seen.into_iter().peekable();
            let mut at_least = |number: u64, what: &str| match number < next {
                true => Err(format!("number {number} of sequence {sequence} {what} after {next}")),
                false => {
                    next = number;
                    Ok(())
                }
            };
            for call in ran.iter().filter(|call| sequences(call.record)) {
                while let Some((_, image)) = seen.next_if(|of| of.0 < epoch_of(call.serial)) {
                    at_least(image.numbers[sequence], "in a snapshot")?;
                }
                let End::Done(number) = call.end else { continue };
                at_least(number as u64, "is allocated")?;
                at_least(number as u64 + 1, "comes")?;
                allocation += 1;
            }
            for (_, image) in seen {
                at_least(image.numbers[sequence], "in a snapshot")?;
            }
            at_least(content.image.numbers[sequence], "at the end")?;
            let may_have_allocated = |record: &&Record| {
                let answer = record.answer.as_ref().map(|(answer, _)| answer);
                sequences(record) && !matches!(answer, Some(Answer::Done(_) | Answer::Refused))
            };
            let others = self.records.iter().filter(may_have_allocated).count() as u64;
            let used = content.image.numbers[sequence] - known.numbers[sequence];
            if used < allocation || used > allocation + others {
                return Err(format!(
                    "{used} numbers of sequence {sequence} are no longer there, {allocation} of \
                    them were allocated by calls that committed, and up to {others} by others"
                ));
            }
        }
        Ok(())
    }

    /// The calls that ran, in their order.
    fn ran(&self, known: &Known, content: &Content) -> Result<Vec<Ran<'_>>, String> {
        let mut ran = Vec::new();
        let mut new = content.ledger.clone();
        for (id, entry) in &known.ledger {
            if new.remove(id) != Some(*entry) {
                return Err(format!("call {id} was known to be done, and is not"));
            }
        }
        for record in &self.records {
            let (id, entry) = (record.act.id, new.remove(&record.act.id));
            match (entry, record.answer.as_ref().map(|(answer, _)| answer)) {
                (Some(found), Some(Answer::Done(told))) if found != *told => {
                    return Err(format!("call {id} was told {told:?}, and did {found:?}"));
                }
                (None, Some(Answer::Done(told))) => {
                    return Err(format!("call {id} was told {told:?}, and is lost"));
                }
                (Some(found), Some(Answer::Ended { .. } | Answer::NotUnique | Answer::Refused)) => {
                    let told = &record.answer;
                    return Err(format!("call {id} was told {told:?}, and did {found:?}"));
                }
                (Some(Entry { serial, timestamp, value }), _) => {
                    ran.push(Ran { serial, timestamp, end: End::Done(value), record });
                }
                (None, Some(Answer::Ended { end, serial, timestamp })) => {
                    let (serial, timestamp, end) = (*serial, *timestamp, *end);
                    ran.push(Ran { serial, timestamp, end, record });
                }
                (None, _) => {}
            }
        }
        if let Some((id, entry)) = new.first_key_value() {
            return Err(format!("call {id} was not submitted, and did {entry:?}"));
        }
        ran.sort_by_key(|call| call.serial);
        Ok(ran)
    }

    /// O-80: a call comes after all that were answered before it was submitted. A snapshot has
    /// them, and none that was submitted when it was there.
    fn check_real_time(&self, ran: &[Ran<'_>]) -> Result<(), String> {
        let answered = ran.iter().filter_map(|call| {
            let (_, moment) = call.record.answer.as_ref()?;
            Some((moment.tick, call.serial))
        });
        let mut answered: Vec<_> = answered.collect();
        answered.sort_unstable();
        let greatest = answered.iter().scan(0, |most, (tick, serial)| {
            *most = (*most).max(*serial);
            Some((*tick, *most))
        });
        let greatest: Vec<_> = greatest.collect();
        let before = |tick| match greatest.partition_point(|(answered, _)| *answered < tick) {
            0 => 0,
            count => greatest[count - 1].1,
        };
        for call in ran {
            let earlier = before(call.record.submitted.tick);
            if earlier >= call.serial {
                let (id, serial) = (call.record.act.id, call.serial);
                return Err(format!(
                    "call {id} is at {serial:x}, but {earlier:x} was answered before"
                ));
            }
        }
        for seen in &self.seen {
            let least = epoch_of(before(seen.asked.tick));
            if least > seen.epoch {
                return Err(format!("a snapshot of epoch {}, {least} was answered", seen.epoch));
            }
            let later = ran.iter().filter(|call| call.record.submitted.tick > seen.got.tick);
            if let Some(call) = later.min_by_key(|call| call.serial)
                && epoch_of(call.serial) <= seen.epoch
            {
                let (id, epoch) = (call.record.act.id, seen.epoch);
                return Err(format!("the snapshot of epoch {epoch} was there before call {id}"));
            }
        }
        Ok(())
    }
}

/// Serial ids are used once and go on; timestamps never go back, over opens neither.
fn check_order(ran: &[Ran<'_>], known: &Known) -> Result<(), String> {
    if let Some(first) = ran.first()
        && first.serial <= known.serial
    {
        return Err(format!("serial id {:x} after {:x}", first.serial, known.serial));
    }
    if let Some(first) = ran.first()
        && first.timestamp < known.timestamp
    {
        return Err(format!("timestamp {} after {}", first.timestamp, known.timestamp));
    }
    for pair in ran.windows(2) {
        let [one, next] = pair else { continue };
        let ids = (one.record.act.id, next.record.act.id);
        if one.serial == next.serial {
            return Err(format!("calls {ids:?} have the serial id {:x}", one.serial));
        }
        let epochs = (epoch_of(one.serial), epoch_of(next.serial));
        if one.timestamp > next.timestamp || epochs.0 == epochs.1 && one.timestamp != next.timestamp
        {
            let times = (one.timestamp, next.timestamp);
            return Err(format!("timestamps {times:?} of calls {ids:?}, in their order"));
        }
    }
    Ok(())
}

/// O-109: calls of a submitter have serial ids in their order, whichever are deferred.
fn check_submitters(ran: &[Ran<'_>]) -> Result<(), String> {
    let mut last = BTreeMap::<u64, (usize, &Ran<'_>)>::new();
    for call in ran {
        let Some((submitter, at)) = call.record.order else { continue };
        if let Some((before, of)) = last.insert(submitter, (at, call))
            && before >= at
        {
            let (act, other) = (&call.record.act, &of.record.act);
            return Err(format!(
                "call {at} of a submitter, {act:?}, is at {:x}, after call {before}, {other:?}, at \
                 {:x}",
                call.serial, of.serial
            ));
        }
    }
    Ok(())
}

/// Calls of a batch have serial ids in their order. One that came after a later one was deferred:
/// it may have written what it had not predicted, and ran in a later epoch than that one.
fn check_batches(ran: &[Ran<'_>]) -> Result<(), String> {
    let mut batches = BTreeMap::<u64, Vec<(usize, &Ran<'_>)>>::new();
    for call in ran {
        if let Some((batch, at)) = call.record.batch {
            batches.entry(batch).or_default().push((at, call));
        }
    }
    for calls in batches.values() {
        for (index, (at, call)) in calls.iter().enumerate() {
            // The calls of the batch that ran before it and were added after it.
            for (later, before) in calls[..index].iter().filter(|(before, _)| before > at) {
                let act = &call.record.act;
                let is_deferred = epoch_of(call.serial) > epoch_of(before.serial);
                if !act.what.may_be_deferred() || !is_deferred {
                    return Err(format!("call {at} of a batch, {act:?}, came after call {later}"));
                }
            }
        }
    }
    Ok(())
}
