//! Counts of single procedures.

use std::time::Duration;

use engine::Answer;

use crate::observe::events;
use crate::observe::histogram::Histogram;

/// Counts of the calls of one procedure since the database was opened.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcedureStats {
    /// Its name.
    pub name: &'static str,
    /// Calls that committed.
    pub committed: u64,
    /// Calls that gave up on purpose.
    pub aborted: u64,
    /// Calls that failed.
    pub failed: u64,
    /// How often a call was deferred.
    pub deferred: u64,
    /// Calls that ran for longer than
    /// [`Tuning::procedure_time_warning`](crate::Tuning::procedure_time_warning), those of a replay
    /// included.
    pub slow: u64,
    /// From the first submission for an epoch to its answers: half of the calls were answered by
    /// epochs that took at most this, within an eighth. A call that was deferred counts for the
    /// epoch that answered it.
    pub latency_p50: Duration,
    /// 99 of 100 calls.
    pub latency_p99: Duration,
    /// All but one in a thousand.
    pub latency_p999: Duration,
}

/// What the calls of a procedure came to in an epoch.
#[derive(Debug, Default, Clone)]
struct ProcedureCounts {
    committed: u64,
    aborted: u64,
    failed: u64,
    deferred: u64,
}

/// The same for all procedures, by their numbers. Filled where no caller waits for it.
#[derive(Debug)]
pub(crate) struct EpochCounts {
    names: Vec<&'static str>,
    counts: Vec<ProcedureCounts>,
}

impl EpochCounts {
    pub(crate) fn new(procedures: &[Procedure]) -> Self {
        let names: Vec<_> = procedures.iter().map(|procedure| procedure.counts.name).collect();
        Self { counts: vec![ProcedureCounts::default(); names.len()], names }
    }

    /// Tells of them who listens. No lock is held.
    pub(crate) fn tell(&self) {
        for (name, counts) in self.names.iter().zip(&self.counts) {
            let ProcedureCounts { committed, aborted, failed, deferred } = *counts;
            events::calls(name, "committed", committed);
            events::calls(name, "aborted", aborted);
            events::calls(name, "failed", failed);
            events::calls(name, "deferred", deferred);
        }
    }

    pub(crate) fn count(&mut self, procedure: u16, answer: Answer<'_>) {
        let counts = &mut self.counts[usize::from(procedure)];
        *match answer {
            Answer::Committed(_) => &mut counts.committed,
            Answer::Aborted(_) => &mut counts.aborted,
            Answer::Failed(_) => &mut counts.failed,
            Answer::Deferred => &mut counts.deferred,
        } += 1;
    }

    /// Counts a call as if it had committed, as most do.
    pub(crate) fn commit(&mut self, procedure: u16) {
        self.counts[usize::from(procedure)].committed += 1;
    }

    /// A call that was counted as if it had committed did not.
    pub(crate) fn did_not_commit(&mut self, procedure: u16, answer: Answer<'_>) {
        let counts = &mut self.counts[usize::from(procedure)];
        assert!(counts.committed > 0, "a call of procedure {procedure} was not counted");
        counts.committed -= 1;
        self.count(procedure, answer);
    }
}

/// What is known of a procedure.
#[derive(Debug)]
pub(crate) struct Procedure {
    counts: ProcedureStats,
    latencies: Histogram,
}

impl Procedure {
    pub(crate) fn new(name: &'static str) -> Self {
        let counts = ProcedureStats { name, ..ProcedureStats::default() };
        Self { counts, latencies: Histogram::default() }
    }

    fn add(&mut self, counts: ProcedureCounts, latency: Option<Duration>) {
        let ProcedureCounts { committed, aborted, failed, deferred } = counts;
        self.counts.committed += committed;
        self.counts.aborted += aborted;
        self.counts.failed += failed;
        self.counts.deferred += deferred;
        if let Some(latency) = latency {
            self.latencies.record(latency, committed + aborted + failed);
        }
    }

    pub(crate) fn stats(&self) -> ProcedureStats {
        ProcedureStats {
            latency_p50: self.latencies.at_most(500),
            latency_p99: self.latencies.at_most(990),
            latency_p999: self.latencies.at_most(999),
            ..self.counts
        }
    }
}

/// Adds what an epoch came to, and empties the counts.
pub(crate) fn add(
    procedures: &mut [Procedure],
    epoch: &mut EpochCounts,
    latency: Option<Duration>,
) {
    assert_eq!(procedures.len(), epoch.counts.len(), "counts of other procedures");
    for (procedure, counts) in procedures.iter_mut().zip(&mut epoch.counts) {
        procedure.add(std::mem::take(counts), latency);
    }
}
