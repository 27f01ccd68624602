//! `--verify`: the same calls, one by one, through the serial oracle.
//!
//! The oracle keeps its own list of deferred calls, so it needs nothing from the engine but the
//! answers to compare. On a resumed run it first runs all the epochs before, which it can generate.

use bench::{BenchError, Result, differing_rows, hex};
use engine::{Calls, EpochOutcome};
use workloads::ProcedureId;
use workloads::digest::state_digest;
use workloads::oracle::{Oracle, OracleAnswer};

use super::adapter::EngineView;
use crate::Job;

/// A call that must run again.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Deferred {
    procedure: ProcedureId,
    args: Vec<u8>,
}

/// The oracle beside a run.
pub(crate) struct Verifier<'j> {
    job: &'j Job,
    names: Vec<&'static str>,
    oracle: Oracle,
    deferred: Vec<Deferred>,
    /// Last epoch that the oracle has run.
    epoch: u64,
}

impl<'j> Verifier<'j> {
    pub(crate) fn new(job: &'j Job) -> Self {
        let mut oracle = job.oracle();
        oracle.watch_chains();
        Self { job, names: job.procedures().names, oracle, deferred: Vec::new(), epoch: 0 }
    }

    /// Calls in the longest chain of the last epoch in which each needs what the one before left.
    pub(crate) fn longest_chain(&self) -> u64 {
        self.oracle.longest_chain()
    }

    /// Runs everything up to and including `epoch`, answers unseen, and compares the digests.
    pub(crate) fn catch_up(&mut self, epoch: u64, digest: u128) -> Result<()> {
        let mut calls = Calls::new();
        while self.epoch < epoch {
            self.job.fill(self.epoch + 1, &mut calls)?;
            self.run_epoch(&calls);
        }
        self.compare_digest(digest)
    }

    /// Runs the epoch that the engine has just run, and compares every answer.
    pub(crate) fn compare(&mut self, calls: &Calls, outcome: &EpochOutcome) -> Result<()> {
        let deferred: Vec<ProcedureId> = self.deferred.iter().map(|call| call.procedure).collect();
        let expected = self.run_epoch(calls);
        if outcome.deferred_in != deferred.len() || outcome.len() != expected.len() {
            return Err(BenchError::Difference(format!(
                "{}: the engine ran {} calls, {} of them deferred; the oracle {} and {}",
                self.job.epoch_name(self.epoch),
                outcome.len(),
                outcome.deferred_in,
                expected.len(),
                deferred.len()
            )));
        }
        let where_at = |position: usize| {
            let fresh = || calls.get(position - deferred.len()).0;
            let procedure = deferred.get(position).copied().unwrap_or_else(fresh);
            let name = self.names.get(usize::from(procedure)).copied().unwrap_or("unknown");
            format!("{}, position {position}, {name}", self.job.epoch_name(self.epoch))
        };
        for (position, expected) in expected.iter().enumerate() {
            let answer = outcome.answer(position);
            if !same(&answer, expected) {
                return Err(BenchError::Difference(format!(
                    "{}: the engine answered {}, the oracle {}",
                    where_at(position),
                    show_engine(&answer),
                    show_oracle(expected)
                )));
            }
        }
        Ok(())
    }

    /// Compares the whole state, row by row, then the digest.
    pub(crate) fn compare_state(&self, view: &EngineView<'_>, digest: u128) -> Result<()> {
        let differences = differing_rows(&self.job.tables(), view, &self.oracle, "engine");
        if differences.is_empty() { self.compare_digest(digest) } else { self.differ(&differences) }
    }

    fn differ(&self, differences: &[String]) -> Result<()> {
        Err(BenchError::Difference(format!(
            "after {}: {}",
            self.job.epoch_name(self.epoch),
            differences.join("; ")
        )))
    }

    fn compare_digest(&self, digest: u128) -> Result<()> {
        let expected = state_digest(&self.job.tables(), &self.oracle);
        if digest == expected {
            return Ok(());
        }
        self.differ(&[format!(
            "the engine's digest is {digest:032x}, the oracle's {expected:032x}"
        )])
    }

    fn run_epoch(&mut self, calls: &Calls) -> Vec<OracleAnswer> {
        let before = std::mem::take(&mut self.deferred);
        let deferred = before.iter().map(|call| (call.procedure, call.args.as_slice()));
        let batch: Vec<(ProcedureId, &[u8])> =
            deferred.chain((0..calls.len()).map(|i| calls.get(i))).collect();
        let answers = self.oracle.run_epoch(&batch, before.len());
        let mut deferred = Vec::new();
        for ((procedure, args), answer) in batch.iter().zip(&answers) {
            if *answer == OracleAnswer::Deferred {
                deferred.push(Deferred { procedure: *procedure, args: args.to_vec() });
            }
        }
        self.deferred = deferred;
        self.epoch += 1;
        answers
    }
}

fn same(answer: &engine::Answer<'_>, expected: &OracleAnswer) -> bool {
    super::adapter::answer(answer) == expected.as_answer()
}

fn show_engine(answer: &engine::Answer<'_>) -> String {
    match answer {
        engine::Answer::Committed(output) => format!("committed with {}", hex(output)),
        engine::Answer::Aborted(abort) => abort.to_string(),
        engine::Answer::Deferred => "deferred".to_string(),
        engine::Answer::Failed(why) => format!("failed: {why}"),
    }
}

fn show_oracle(answer: &OracleAnswer) -> String {
    match answer {
        OracleAnswer::Committed(output) => format!("committed with {}", hex(output)),
        OracleAnswer::Aborted(code) => format!("aborted with code {code}"),
        OracleAnswer::Deferred => "deferred".to_string(),
        OracleAnswer::Failed => "failed".to_string(),
    }
}

#[cfg(test)]
mod tests {

    use bench::{Contention, Parameters, WorkloadParameters};
    use engine::{Engine, EngineConfig};
    use pmem::{AnyDevice, Dram};

    use super::*;

    fn job(seed: u64) -> Job {
        let workload = WorkloadParameters::smallbank(500, Contention::Low);
        let parameters = Parameters::new(workload, Contention::Low);
        let parameters = Parameters { seed, epoch_size: 100, ..parameters };
        Job::of(&parameters).expect("good parameters")
    }

    /// Runs so many epochs of a job on an engine, and compares each with the oracle of another.
    fn run_beside(job: &Job, beside: &Job, epochs: u64) -> Result<()> {
        let device = AnyDevice::new(Dram::new(1 << 30, 1 << 30)?);
        let (tables, procedures) = (job.table_definitions(), job.procedures().table);
        let (mut engine, _) = Engine::open(device, EngineConfig::default(), &tables, procedures)?;
        let mut verifier = Verifier::new(beside);
        let mut calls = Calls::new();
        for epoch in 1..=epochs {
            job.fill(epoch, &mut calls)?;
            let outcome = engine.run_epoch(&calls, job.info(epoch))?;
            // The oracle is told the engine's calls, or those of its own job.
            verifier.job.fill(epoch, &mut calls)?;
            verifier.compare(&calls, &outcome)?;
        }
        let view = EngineView::new(&engine, &job.tables());
        verifier.compare_state(&view, engine.state_hash().0)
    }

    #[test]
    fn equal_runs_are_equal() {
        run_beside(&job(1), &job(1), 4).expect("the same");
    }

    #[test]
    fn a_difference_in_an_answer_names_where_it_is_and_both_answers() {
        let message = run_beside(&job(1), &job(2), 4).expect_err("other calls").to_string();
        for word in ["epoch 3 (1 of the stream)", "position ", "smallbank_", "the engine answered"]
        {
            assert!(message.contains(word), "{message}");
        }
    }

    #[test]
    fn a_difference_in_the_state_names_the_table_and_the_key() {
        let message = run_beside(&job(1), &job(2), 1).expect_err("other data").to_string();
        for word in ["after epoch 1 (loading)", "table \"savings\", key 8 bytes", "the oracle"] {
            assert!(message.contains(word), "{message}");
        }
    }
}
