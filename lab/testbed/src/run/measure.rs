//! A run of an engine on a workload: load, rounds of calls, report; then recovery, if asked for.
//!
//! The calls of a round are made before its clock starts, as the papers make theirs before a run.
//! Then each worker takes the next call whenever it is free, and repeats it until it has an answer.
//! The clock of a round stops when all its calls may be answered, which includes that the last
//! group is durable.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use hdrhistogram::Histogram;
use pmem::{Counters, Device};
use workloads::Workload;
use workloads::digest::state_digest;

use crate::check::{check, check_snapshots};
use crate::error::{Error, Result};
use crate::rival::{Counts, Options, RecoveryReport, Rival, Session};
use crate::run::calls::{Answered, Calls, Dealer, RivalView, load, on_workers};
use crate::run::procedure::{Outcome, Procedures};

/// Longer latencies count as this one.
const LATENCY_MAX_NS: u64 = 100_000_000_000;

/// How to run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How the engine is made; its workers are those of the run.
    pub options: Options,
    /// Rounds that are measured.
    pub rounds: u64,
    /// Rounds before them.
    pub warm_up_rounds: u64,
    /// Calls of a round.
    pub calls_per_round: u64,
    /// Whether to compare every answer and the state with the serial oracle.
    pub verify: bool,
    /// Whether to forget all but the device at the end, and to recover from that.
    pub recover: bool,
    /// Nanoseconds that all threads of the process have run.
    pub cpu_ns: fn() -> u64,
}

impl Settings {
    /// One round of so many calls after one of the same size that is not measured, without a clock
    /// of threads.
    #[must_use]
    pub fn new(workers: usize, calls_per_round: u64) -> Self {
        let options = Options::new(workers);
        let (rounds, warm_up_rounds) = (1, 1);
        Self {
            options,
            rounds,
            warm_up_rounds,
            calls_per_round,
            verify: false,
            recover: false,
            cpu_ns: || 0,
        }
    }
}

/// What a run came to.
#[derive(Debug, Clone)]
pub struct Report {
    /// Name of the engine.
    pub engine: &'static str,
    /// Name of the workload.
    pub workload: &'static str,
    /// Name of the device.
    pub device: String,
    /// Worker threads.
    pub workers: usize,
    /// Calls that committed.
    pub committed: u64,
    /// Calls that gave up on purpose.
    pub aborted: u64,
    /// Runs of calls that were rolled back because of others.
    pub retries: u64,
    /// Nanoseconds of all measured rounds.
    pub elapsed_ns: u64,
    /// Nanoseconds that all threads ran in them.
    pub cpu_ns: u64,
    /// Nanoseconds from the start of a call to its answer.
    pub latency_ns: Histogram<u64>,
    /// What went through the device in the measured rounds.
    pub counters: Counters,
    /// What the engine counted besides in the measured rounds.
    pub counts: Counts,
    /// Digest of the state at the end.
    pub digest: u128,
    /// Recovery, if it was asked for.
    pub recovery: Option<RecoveryReport>,
}

impl Report {
    /// Answers in a second.
    #[must_use]
    pub fn calls_per_second(&self) -> f64 {
        self.calls() * 1e9 / self.elapsed_ns.max(1) as f64
    }

    /// A count of the report, for each answer.
    #[must_use]
    pub fn per_call(&self, count: u64) -> f64 {
        count as f64 / self.calls().max(1.0)
    }

    fn calls(&self) -> f64 {
        (self.committed + self.aborted) as f64
    }
}

/// What a worker did in a round.
struct Share {
    cpu_ns: u64,
    committed: u64,
    aborted: u64,
    retries: u64,
    latency_ns: Histogram<u64>,
    counters: Counters,
    counts: Counts,
    history: Vec<Answered>,
}

impl Share {
    fn new() -> Result<Self> {
        let failed = |error| Error::Broken(format!("no histogram: {error}"));
        Ok(Self {
            cpu_ns: 0,
            committed: 0,
            aborted: 0,
            retries: 0,
            latency_ns: Histogram::new_with_bounds(1, LATENCY_MAX_NS, 3).map_err(failed)?,
            counters: Counters::default(),
            counts: Counts::default(),
            history: Vec::new(),
        })
    }

    fn add(&mut self, other: Self) {
        self.cpu_ns += other.cpu_ns;
        self.committed += other.committed;
        self.aborted += other.aborted;
        self.retries += other.retries;
        // Both have the same bounds, which grow as needed.
        let _ = self.latency_ns.add(&other.latency_ns);
        self.counters.add(&other.counters);
        self.counts.add(&other.counts);
        self.history.extend(other.history);
    }
}

/// Runs an engine on a device.
///
/// # Errors
/// The engine's failure, and a difference from the oracle.
pub fn run<R: Rival, W: Workload>(
    device: &Arc<R::Device>,
    workload: &W,
    settings: &Settings,
) -> Result<Report> {
    let (options, tables) = (&settings.options, workload.tables());
    let rival = R::create(Arc::clone(device), &tables, options)?;
    load(&rival, workload, options.workers)?;
    let mut measured = Share::new()?;
    let (mut elapsed_ns, mut all_calls, mut history) = (0, Calls::default(), Vec::new());
    for round in 0..settings.warm_up_rounds + settings.rounds {
        let numbers = round * settings.calls_per_round..(round + 1) * settings.calls_per_round;
        let calls = Calls::of_stream(workload, numbers);
        let first = all_calls.len();
        let (mut share, ns) = run_round(&rival, workload, &calls, settings)?;
        if settings.verify {
            all_calls.append(&calls);
            share.history.iter_mut().for_each(|answered| answered.call += first);
            history.append(&mut share.history);
        }
        if round >= settings.warm_up_rounds {
            measured.add(share);
            elapsed_ns += ns;
        }
    }
    if settings.verify {
        let view = RivalView(&rival);
        let check = if R::SERIALIZABLE { check::<W> } else { check_snapshots::<W> };
        check(workload, &all_calls, &mut history, &view).map_err(Error::Broken)?;
    }
    let digest = state_digest(&tables, &RivalView(&rival));
    rival.close()?;
    let recovery = if settings.recover {
        let (recovered, report) = R::open(Arc::clone(device), &tables, options)?;
        let after = state_digest(&tables, &RivalView(&recovered));
        if after != digest {
            let what = format!("recovery came to the state {after:x}, the run to {digest:x}");
            return Err(Error::Broken(what));
        }
        Some(report)
    } else {
        None
    };
    Ok(Report {
        engine: R::NAME,
        workload: workload.name(),
        device: device.description().name,
        workers: options.workers,
        committed: measured.committed,
        aborted: measured.aborted,
        retries: measured.retries,
        elapsed_ns,
        cpu_ns: measured.cpu_ns,
        latency_ns: measured.latency_ns,
        counters: measured.counters,
        counts: measured.counts,
        digest,
        recovery,
    })
}

/// Runs the calls of a round with all workers; what they did, and how long it took.
fn run_round<R: Rival, W: Workload>(
    rival: &R,
    workload: &W,
    calls: &Calls,
    settings: &Settings,
) -> Result<(Share, u64)> {
    let mut procedures = Procedures::default();
    workload.register(&mut procedures);
    let dealer = calls.dealer();
    let (start, started_cpu_ns) = (Instant::now(), (settings.cpu_ns)());
    let shares = on_workers(settings.options.workers, |worker| {
        run_worker(&mut rival.session(worker), &procedures, calls, &dealer, settings.verify)
    })?;
    let elapsed_ns = start.elapsed().as_nanos() as u64;
    let mut all = Share::new()?;
    all.cpu_ns = (settings.cpu_ns)() - started_cpu_ns;
    shares.into_iter().for_each(|share| all.add(share));
    Ok((all, elapsed_ns))
}

/// One worker's part of a round.
fn run_worker<S: Session>(
    session: &mut S,
    procedures: &Procedures<S>,
    calls: &Calls,
    dealer: &Dealer<'_>,
    record: bool,
) -> Result<Share> {
    let mut share = Share::new()?;
    let mut output = Vec::new();
    // Calls that have committed and are not durable yet: place in the serial order, and start.
    let mut waiting = VecDeque::new();
    loop {
        let dealt = dealer.take();
        if dealt.is_empty() {
            break;
        }
        for call in dealt {
            let start = Instant::now();
            let (procedure, args) = calls.get(call);
            let done = procedures.run(session, procedure, args, &mut output)?;
            match done.outcome {
                Outcome::Committed => share.committed += 1,
                Outcome::Aborted(_) => share.aborted += 1,
            }
            share.retries += done.retries;
            if record {
                share.history.push(Answered::new(call, &done, &output));
            }
            waiting.push_back((done.serial, start));
            answer(session, &mut waiting, &mut share.latency_ns);
        }
    }
    session.finish()?;
    answer(session, &mut waiting, &mut share.latency_ns);
    assert!(waiting.is_empty(), "a session that has finished can answer everything");
    share.counters = session.take_counters();
    share.counts = session.count();
    Ok(share)
}

/// Answers the calls that are durable.
fn answer<S: Session>(
    session: &S,
    waiting: &mut VecDeque<(u64, Instant)>,
    latency_ns: &mut Histogram<u64>,
) {
    let durable = session.durable();
    while let Some((_, start)) = waiting.pop_front_if(|(serial, _)| *serial <= durable) {
        latency_ns.saturating_record(start.elapsed().as_nanos() as u64);
    }
}
