//! One client: makes calls, waits for answers, remembers how long that took.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use nvcaracal::{Added, Database, Ticket};
use workloads::{Observer, ProcedureId};

use super::answers::Answers;
use crate::library::{Callable, Output};
use crate::setup::OneOf;
use crate::{BenchError, Job, Result};

/// Bytes of answers that all clients together keep for the observer until they are over: it is not
/// their work to check them.
const ANSWER_BYTES_KEPT: usize = 512 << 20;

/// Answers that are read between two looks at the clock, where no client had to wait for them:
/// about a microsecond.
const ANSWERS_BY_CLOCK: u32 = 8;

/// A client before it runs.
pub(super) struct Client<'a> {
    pub(super) job: &'a Job,
    pub(super) database: &'a Database,
    pub(super) callables: &'a [Callable],
    pub(super) observer: Option<&'a Mutex<Box<dyn Observer>>>,
    /// Which client it is.
    pub(super) number: OneOf,
    /// Which stream of calls it makes.
    pub(super) stream: OneOf,
    /// Calls in flight, if it is closed.
    pub(super) depth: usize,
    /// Calls that it submits together, if it is closed.
    pub(super) batch: usize,
    /// From one arrival to the next, if it is open.
    pub(super) interval: Option<Duration>,
    /// Whether to submit nothing more.
    pub(super) is_over: &'a AtomicBool,
    /// The first calls, once [`Client::prepare`] has made them.
    pub(super) prepared: Prepared,
}

/// Calls that were made beforehand, one after the other in memory, as the engine alone has them.
#[derive(Default)]
pub(super) struct Prepared {
    /// Procedures, and the ends of their arguments.
    calls: Vec<(ProcedureId, usize)>,
    arguments: Vec<u8>,
    next: usize,
    from: usize,
}

impl Prepared {
    fn push(&mut self, procedure: ProcedureId, arguments: &[u8]) {
        self.arguments.extend_from_slice(arguments);
        self.calls.push((procedure, self.arguments.len()));
    }

    fn pop(&mut self) -> Option<(ProcedureId, &[u8])> {
        let &(procedure, end) = self.calls.get(self.next)?;
        let from = std::mem::replace(&mut self.from, end);
        self.next += 1;
        Some((procedure, &self.arguments[from..end]))
    }
}

/// What clients saw.
pub(super) struct Seen {
    pub(super) committed: u64,
    pub(super) aborted: u64,
    pub(super) failed: u64,
    pub(super) first_failure: Option<String>,
    pub(super) latency: Histogram<u64>,
    /// When the last answer was there.
    pub(super) ended: Option<Instant>,
}

/// A histogram that grows with what is in it.
fn histogram() -> Result<Histogram<u64>> {
    Histogram::new(3)
        .map_err(|error| BenchError::Store(format!("cannot make a histogram: {error}")))
}

impl Seen {
    pub(super) fn new() -> Result<Self> {
        let latency = histogram()?;
        Ok(Self { committed: 0, aborted: 0, failed: 0, first_failure: None, latency, ended: None })
    }

    pub(super) fn add(&mut self, other: Self) -> Result<()> {
        self.committed += other.committed;
        self.aborted += other.aborted;
        self.failed += other.failed;
        self.first_failure = self.first_failure.take().or(other.first_failure);
        self.ended = self.ended.max(other.ended);
        let add = self.latency.add(other.latency);
        add.map_err(|error| BenchError::Store(format!("cannot add up latencies: {error}")))
    }

    fn note(&mut self, elapsed: Duration, answer: &nvcaracal::Result<Output>) {
        let ns = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        // It grows as far as a u64 goes.
        let _ = self.latency.record(ns);
        match answer {
            Ok(_) => self.committed += 1,
            Err(error) if error.is_user_abort() => self.aborted += 1,
            Err(error) => {
                self.failed += 1;
                self.first_failure.get_or_insert_with(|| error.to_string());
            }
        }
    }
}

/// A call whose answer is awaited.
struct InFlight {
    ticket: Ticket<Output>,
    since: Instant,
}

/// A client while it runs.
struct Working<'a> {
    client: Client<'a>,
    /// Calls that were made, and those of them that the observer has seen.
    made: u64,
    observed: u64,
    in_flight: VecDeque<InFlight>,
    answers: Answers,
    seen: Seen,
    /// The clock, and answers that were there since it was read.
    now: Instant,
    since_clock: u32,
}

impl Client<'_> {
    /// Makes so many calls, before the clock starts.
    pub(super) fn prepare(&mut self, calls: u64) {
        for i in 0..calls {
            let (procedure, arguments) = self.job.client_call(self.stream, i);
            self.prepared.push(procedure, &arguments);
        }
    }

    /// Works until it is over and all answers are there.
    pub(super) fn run(self) -> Result<Seen> {
        let (depth, batch, interval) = (self.depth, self.batch, self.interval);
        let mut working = Working {
            client: self,
            made: 0,
            observed: 0,
            in_flight: VecDeque::new(),
            answers: Answers::default(),
            seen: Seen::new()?,
            now: Instant::now(),
            since_clock: 0,
        };
        match interval {
            Some(interval) => working.open(interval)?,
            None if depth == 1 => working.one_by_one()?,
            None if batch == 1 => working.closed(depth)?,
            None => working.in_batches(depth, batch)?,
        }
        while let Some(next) = working.in_flight.pop_front() {
            working.take(next)?;
        }
        working.seen.ended = Some(Instant::now());
        working.hand_over();
        Ok(working.seen)
    }
}

impl Working<'_> {
    fn is_over(&self) -> bool {
        self.client.is_over.load(Ordering::Relaxed)
    }

    /// Does something with the next call: with how it is called, the database, its arguments.
    fn with_next_call<R>(&mut self, then: impl FnOnce(Callable, &Database, &[u8]) -> R) -> R {
        let Client { job, stream, database, callables, prepared, .. } = &mut self.client;
        self.made += 1;
        if let Some((procedure, arguments)) = prepared.pop() {
            return then(callables[usize::from(procedure)], database, arguments);
        }
        let (procedure, arguments) = job.client_call(*stream, self.made - 1);
        then(callables[usize::from(procedure)], database, &arguments)
    }

    /// Calls, and waits for the answer.
    fn one_by_one(&mut self) -> Result<()> {
        while !self.is_over() {
            let (since, answer) = self.with_next_call(|callable, database, arguments| {
                (Instant::now(), (callable.call)(database, arguments))
            });
            self.answered(since.elapsed(), &answer)?;
        }
        Ok(())
    }

    /// Keeps so many calls in flight. A call follows the answer that made room for it at once.
    fn closed(&mut self, depth: usize) -> Result<()> {
        self.now = Instant::now();
        while !self.is_over() {
            while self.in_flight.len() < depth {
                self.submit(self.now)?;
            }
            let oldest = self.in_flight.pop_front().expect("more than one is in flight");
            self.take(oldest)?;
        }
        Ok(())
    }

    /// Keeps up to so many calls in flight, and submits a batch when there is room for one.
    fn in_batches(&mut self, depth: usize, size: usize) -> Result<()> {
        let mut added = Vec::with_capacity(size);
        self.now = Instant::now();
        while !self.is_over() {
            while self.in_flight.len() + size <= depth {
                self.submit_batch(&mut added, size, self.now)?;
            }
            for _ in 0..size {
                let oldest = self.in_flight.pop_front().expect("a batch or more is in flight");
                self.take(oldest)?;
            }
        }
        Ok(())
    }

    /// Submits calls at fixed times.
    fn open(&mut self, interval: Duration) -> Result<()> {
        let OneOf { index, count } = self.client.number;
        // Clients alternate.
        let mut next = Instant::now() + interval.mul_f64(index as f64 / count as f64);
        while !self.is_over() {
            let left = next.saturating_duration_since(Instant::now());
            if left.is_zero() {
                self.submit(next)?;
                next += interval;
                continue;
            }
            match self.in_flight.pop_front() {
                None => thread::sleep(left.min(Duration::from_millis(10))),
                Some(oldest) => match oldest.ticket.wait_timeout(left) {
                    None => self.in_flight.push_front(oldest),
                    Some(answer) => self.answered(oldest.since.elapsed(), &answer)?,
                },
            }
        }
        Ok(())
    }

    /// Submits a call that arrived at a time.
    fn submit(&mut self, since: Instant) -> Result<()> {
        let ticket = self.with_next_call(|callable, database, arguments| {
            (callable.submit)(database, arguments)
        })?;
        self.in_flight.push_back(InFlight { ticket, since });
        Ok(())
    }

    /// Submits calls together that arrived at a time.
    fn submit_batch(
        &mut self,
        added: &mut Vec<Added<Output>>,
        size: usize,
        since: Instant,
    ) -> Result<()> {
        let mut batch = self.client.database.batch();
        for _ in 0..size {
            let add =
                |callable: Callable, _: &_, arguments: &_| (callable.add)(&mut batch, arguments);
            added.push(self.with_next_call(add)?);
        }
        let submitted = batch.submit()?;
        let tickets = added.drain(..).map(|added| submitted.ticket(added));
        self.in_flight.extend(tickets.map(|ticket| InFlight { ticket, since }));
        Ok(())
    }

    /// Waits for an answer. Many are there together, so the clock is read for some of them.
    fn take(&mut self, next: InFlight) -> Result<()> {
        let there = (self.since_clock < ANSWERS_BY_CLOCK).then(|| next.ticket.try_get()).flatten();
        let answer = match there {
            Some(answer) => {
                self.since_clock += 1;
                answer
            }
            None => {
                let answer = next.ticket.wait();
                (self.now, self.since_clock) = (Instant::now(), 0);
                answer
            }
        };
        self.answered(self.now.saturating_duration_since(next.since), &answer)
    }

    /// An answer is here.
    ///
    /// # Errors
    /// If the database has stopped: no call would be answered any more.
    fn answered(&mut self, elapsed: Duration, answer: &nvcaracal::Result<Output>) -> Result<()> {
        self.seen.note(elapsed, answer);
        if let Err(stopped) = answer
            && stopped.is_stopped()
        {
            return Err(stopped.clone().into());
        }
        if self.client.observer.is_some() {
            self.answers.push(answer);
            if self.answers.memory() > ANSWER_BYTES_KEPT / self.client.number.count as usize {
                self.hand_over();
            }
        }
        Ok(())
    }

    /// Hands answers to the observer, which gets their calls made once more.
    fn hand_over(&mut self) {
        let Some(observer) = self.client.observer else { return };
        let mut observer = observer.lock().unwrap_or_else(PoisonError::into_inner);
        let Client { job, stream, .. } = self.client;
        let observed = &mut self.observed;
        for answer in self.answers.iter() {
            let (procedure, args) = job.client_call(stream, *observed);
            *observed += 1;
            observer.observe(procedure, &args, answer);
        }
        self.answers.clear();
    }
}
