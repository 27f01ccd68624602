//! `--verify`: the same calls, one by one, through the serial oracle.
//!
//! An epoch of the stream is run by the library as one epoch, and then its deferred calls as
//! another one, before anything else is submitted: so does the oracle. Epochs of a few calls run in
//! the serial part, where nothing is deferred. On a resumed run the oracle first runs all epochs of
//! before, which it can generate.

use workloads::oracle::{Oracle, OracleAnswer};
use workloads::{Answer, IndexKind, ProcedureId, TableId, TableSpec, View};

use super::answers::Answers;
use super::calls::Calls;
use super::clients::SERIAL_CALLS_MAX;
use super::position;
use crate::library::LibraryView;
use crate::{BenchError, Job, Result};

/// How many differing rows are shown.
const ROWS_SHOWN: usize = 5;
/// How many bytes of an output or a value are shown.
const BYTES_SHOWN: usize = 48;

/// The oracle beside a run.
pub(super) struct Verifier<'j> {
    job: &'j Job,
    names: Vec<&'static str>,
    oracle: Oracle,
    /// Last epoch that the oracle has run.
    epoch: u64,
}

impl<'j> Verifier<'j> {
    pub(super) fn new(job: &'j Job) -> Self {
        Self { job, names: job.client_procedures().names, oracle: job.oracle(), epoch: 0 }
    }

    /// Runs everything up to and including `epoch`, answers unseen.
    pub(super) fn catch_up(&mut self, epoch: u64) -> Result<()> {
        let mut calls = Calls::default();
        while self.epoch < epoch {
            calls.fill(self.job, self.epoch + 1)?;
            self.run(&calls);
        }
        Ok(())
    }

    /// Runs the epoch that the library has just run, and compares every answer.
    pub(super) fn compare(&mut self, calls: &Calls, answers: &Answers) -> Result<()> {
        let expected = self.run(calls);
        for (position, (answer, expected)) in answers.iter().zip(&expected).enumerate() {
            if answer != expected.as_answer() {
                let (procedure, _) = calls.iter().nth(position).expect("it was answered");
                let name = self.names.get(usize::from(procedure)).copied().unwrap_or("unknown");
                return Err(BenchError::Difference(format!(
                    "{}, position {position}, {name}: the library answered {}, the oracle {}",
                    self.job.epoch_name(self.epoch),
                    shown(&answer),
                    shown(&expected.as_answer())
                )));
            }
        }
        Ok(())
    }

    /// Compares the whole state: row by row, and the number of rows of the database.
    pub(super) fn compare_state(&self, view: &LibraryView, rows: u64) -> Result<()> {
        let tables = self.job.tables();
        let mut differences = differing_rows(&tables, view, &self.oracle, "library");
        let expected = rows_of(&tables, &self.oracle) + position::ROWS;
        if rows != expected && differences.is_empty() && self.epoch > 0 {
            differences.push(format!("{rows} rows in all tables, {expected} by the oracle"));
        }
        if differences.is_empty() {
            return Ok(());
        }
        let after = self.job.epoch_name(self.epoch);
        Err(BenchError::Difference(format!("after {after}: {}", differences.join("; "))))
    }

    /// Runs an epoch, and what it deferred in epochs of their own: how each call ended.
    fn run(&mut self, calls: &Calls) -> Vec<OracleAnswer> {
        let batch: Vec<(ProcedureId, &[u8])> = calls.iter().collect();
        let is_serial = batch.len() + position::CALLS <= SERIAL_CALLS_MAX;
        let serial = if is_serial { batch.len() } else { 0 };
        let mut answers = self.oracle.run_epoch(&batch, serial);
        loop {
            let is_deferred = |&at: &usize| answers[at] == OracleAnswer::Deferred;
            let deferred: Vec<usize> = (0..batch.len()).filter(is_deferred).collect();
            if deferred.is_empty() {
                break;
            }
            let again: Vec<_> = deferred.iter().map(|&at| batch[at]).collect();
            let ended = self.oracle.run_epoch(&again, again.len());
            deferred.into_iter().zip(ended).for_each(|(at, answer)| answers[at] = answer);
        }
        self.epoch += 1;
        answers
    }
}

/// Names the first rows of these tables in which `who` and the oracle differ.
#[must_use]
pub fn differing_rows(
    tables: &[TableSpec],
    view: &dyn View,
    oracle: &Oracle,
    who: &str,
) -> Vec<String> {
    let mut differences = Vec::new();
    for (id, spec) in tables.iter().enumerate() {
        let (table, name) = (TableId(id as u16), spec.name);
        let mut compare = |key: &[u8], found: Option<&[u8]>, expected: Option<&[u8]>| {
            if found != expected && differences.len() < ROWS_SHOWN {
                let row = |row: Option<&[u8]>| row.map_or("no such row".to_string(), hex);
                let (key, found, expected) = (hex(key), row(found), row(expected));
                differences.push(format!(
                    "table {name:?}, key {key}: the {who} has {found}, the oracle {expected}"
                ));
            }
        };
        let (mut rows, mut expected_rows) = (0u64, 0u64);
        if spec.index == IndexKind::Sequence {
            oracle.for_each(table, &mut |key, next| {
                compare(key, view.get(table, key).as_deref(), Some(next));
            });
        } else {
            view.for_each(table, &mut |key, value| {
                rows += 1;
                compare(key, Some(value), oracle.get(table, key).as_deref());
            });
            oracle.for_each(table, &mut |_, _| expected_rows += 1);
        }
        if rows != expected_rows {
            differences.push(format!(
                "table {name:?}: the {who} has {rows} rows, the oracle {expected_rows}"
            ));
        }
    }
    differences
}

/// Rows of all tables, sequences included.
fn rows_of(tables: &[TableSpec], view: &dyn View) -> u64 {
    let mut rows = 0;
    for id in 0..tables.len() {
        view.for_each(TableId(id as u16), &mut |_, _| rows += 1);
    }
    rows
}

fn shown(answer: &Answer<'_>) -> String {
    match answer {
        Answer::Committed(output) => format!("committed with {}", hex(output)),
        Answer::Aborted(code) => format!("aborted with code {code}"),
        Answer::Deferred => "deferred".to_string(),
        Answer::Failed => "failed".to_string(),
    }
}

/// Bytes as people read them, with their number; of many, the first.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let shown: String = bytes.iter().take(BYTES_SHOWN).map(|b| format!("{b:02x}")).collect();
    match bytes.len() {
        0 => "nothing".to_string(),
        n if n > BYTES_SHOWN => format!("{n} bytes {shown}.."),
        n => format!("{n} bytes {shown}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_with_their_length_and_cut() {
        assert_eq!(hex(&[]), "nothing");
        assert_eq!(hex(&[0x0a, 0xff]), "2 bytes 0aff");
        assert!(hex(&[1; 100]).ends_with("01..") && hex(&[1; 100]).starts_with("100 bytes"));
    }
}
