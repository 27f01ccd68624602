//! A run of a batch engine on a workload: load, batches, report; every answer and the state are
//! compared with the serial oracle, if that is asked for.

use std::time::Instant;

use hdrhistogram::Histogram;
use workloads::digest::state_digest;
use workloads::oracle::{Oracle, OracleAnswer};
use workloads::{StreamEpoch, Workload};

use super::engine::{BatchCounts, BatchEngine, Order};
use crate::check::{compare_states, is_same};
use crate::error::{Error, Result};
use crate::run::Settings;
use crate::run::calls::{Answered, Calls};
use crate::run::procedure::Outcome;

/// Calls that load data in one batch.
const LOADS: u64 = 1 << 10;
/// Longer latencies count as this one.
const LATENCY_MAX_NS: u64 = 100_000_000_000;

/// What a run came to.
#[derive(Debug, Clone)]
pub struct BatchReport {
    /// Name of the engine.
    pub engine: &'static str,
    /// Name of the workload.
    pub workload: &'static str,
    /// Worker threads.
    pub workers: usize,
    /// Calls that committed.
    pub committed: u64,
    /// Calls that gave up on purpose.
    pub aborted: u64,
    /// Nanoseconds of all measured batches.
    pub elapsed_ns: u64,
    /// Nanoseconds that all threads ran in them.
    pub cpu_ns: u64,
    /// Nanoseconds of the batch, for each of its calls: all are answered at its end.
    pub latency_ns: Histogram<u64>,
    /// What the engine counted in the measured batches.
    pub counts: BatchCounts,
    /// Digest of the state at the end.
    pub digest: u128,
}

/// Runs an engine: a round of the settings is a batch.
///
/// # Errors
/// The engine's failure, and a difference from the oracle.
pub fn run_batches<E: BatchEngine, W: Workload>(
    workload: &W,
    settings: &Settings,
) -> Result<BatchReport> {
    let tables = workload.tables();
    let mut engine = E::create(&tables, &settings.options)?;
    // Twice, so that memory of versions has been used once, too. It comes to the same data.
    load(&mut engine, workload)?;
    load(&mut engine, workload)?;
    let mut oracle = settings.verify.then(|| Oracle::loaded(workload));
    let no_histogram = |error| Error::Broken(format!("no histogram: {error}"));
    let mut report = BatchReport {
        engine: E::NAME,
        workload: workload.name(),
        workers: settings.options.workers,
        committed: 0,
        aborted: 0,
        elapsed_ns: 0,
        cpu_ns: 0,
        latency_ns: Histogram::new_with_bounds(1, LATENCY_MAX_NS, 3).map_err(no_histogram)?,
        counts: BatchCounts::default(),
        digest: 0,
    };
    for batch in 0..settings.warm_up_rounds + settings.rounds {
        let calls = Calls::of_epoch(workload, StreamEpoch(1 + batch), settings.calls_per_round);
        let (start, started_cpu_ns) = (Instant::now(), (settings.cpu_ns)());
        engine.run(workload, &calls)?;
        let elapsed_ns = start.elapsed().as_nanos() as u64;
        let cpu_ns = (settings.cpu_ns)() - started_cpu_ns;
        let counts = engine.take_counts();
        if batch >= settings.warm_up_rounds {
            report.elapsed_ns += elapsed_ns;
            report.cpu_ns += cpu_ns;
            report.counts.add(&counts);
            report.latency_ns.saturating_record_n(elapsed_ns, calls.len() as u64);
            report.count_answers(&engine);
        }
        if let Some(oracle) = &mut oracle {
            check_batch(&engine, oracle, &calls).map_err(Error::Broken)?;
        }
    }
    if let Some(oracle) = &oracle {
        compare_states(workload, oracle, engine.view()).map_err(Error::Broken)?;
    }
    report.digest = state_digest(&tables, engine.view());
    Ok(report)
}

/// Loads a workload's data, in batches.
fn load<E: BatchEngine, W: Workload>(engine: &mut E, workload: &W) -> Result<()> {
    let count = workload.load_count();
    for first in (0..count).step_by(LOADS as usize) {
        let calls = Calls::of_loads(workload, first..(first + LOADS).min(count));
        engine.run(workload, &calls)?;
        let mut failed = None;
        engine.for_each_answer(&mut |call, _, outcome, _| {
            if let Outcome::Aborted(code) = outcome {
                failed = Some(format!("loading call {} gave up: {code}", first + call as u64));
            }
        });
        failed.map_or(Ok(()), |failed| Err(Error::Broken(failed)))?;
    }
    engine.take_counts();
    Ok(())
}

impl BatchReport {
    fn count_answers<E: BatchEngine>(&mut self, engine: &E) {
        engine.for_each_answer(&mut |_, _, outcome, _| match outcome {
            Outcome::Committed => self.committed += 1,
            Outcome::Aborted(_) => self.aborted += 1,
        });
    }

    /// Answers in a second.
    #[must_use]
    pub fn calls_per_second(&self) -> f64 {
        self.calls() as f64 * 1e9 / self.elapsed_ns.max(1) as f64
    }

    /// Calls that were answered.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.committed + self.aborted
    }
}

/// Compares the answers to a batch with those of the oracle, which runs it as an epoch, too, with
/// the bodies in the order that the engine tells.
fn check_batch<E: BatchEngine>(
    engine: &E,
    oracle: &mut Oracle,
    calls: &Calls,
) -> Result<(), String> {
    let mut answers = Vec::with_capacity(calls.len());
    engine.for_each_answer(&mut |call, serial, outcome, output| {
        let (snapshot, output) = (None, output.to_vec());
        answers.push(Answered { call, serial, snapshot, outcome, output });
    });
    answers.sort_unstable_by_key(|answered| answered.call);
    if !answers.iter().map(|answered| answered.call).eq(0..calls.len()) {
        return Err(format!("{} calls have {} answers", calls.len(), answers.len()));
    }
    let mut order: Vec<usize> = (0..calls.len()).collect();
    if E::ORDER == Order::Told {
        order.sort_by_key(|call| answers[*call].serial);
    }
    let epoch: Vec<_> = (0..calls.len()).map(|call| calls.get(call)).collect();
    let expected = oracle.run_epoch_in(&epoch, &order);
    let mut pairs = answers.iter().zip(&expected);
    match pairs.find(|(answered, expected)| !is_same(answered, expected)) {
        None => Ok(()),
        Some((answered, expected)) => Err(differs(answered, expected)),
    }
}

fn differs(answered: &Answered, expected: &OracleAnswer) -> String {
    let Answered { call, outcome, output, .. } = answered;
    format!("call {call} was answered {outcome:?} {output:02x?}, but comes to {expected:02x?}")
}
