//! Whether what an engine answered is what a serial execution in the order that it tells comes to.
//!
//! The calls that were answered run once more, one by one in that order, through the serial oracle
//! of the workloads, each as an epoch of its own. Every answer must be the same, and so must every
//! row at the end. Engines with snapshot isolation have a check of their own (`snapshots`).

mod snapshots;

use workloads::digest::state_digest;
use workloads::oracle::{Oracle, OracleAnswer};
use workloads::{TableId, View, Workload};

use crate::run::calls::{Answered, Calls};
use crate::run::procedure::Outcome;

pub use snapshots::check_snapshots;

/// How many differing rows are shown.
const ROWS_SHOWN: usize = 3;

/// What the oracle made of a call, in the words of this crate.
pub(crate) fn is_same(answered: &Answered, expected: &OracleAnswer) -> bool {
    match (answered.outcome, expected) {
        (Outcome::Committed, OracleAnswer::Committed(output)) => answered.output == *output,
        (Outcome::Aborted(code), OracleAnswer::Aborted(expected)) => code == *expected,
        _ => false,
    }
}

/// Runs one answered call on the oracle, and compares the answers.
///
/// # Errors
/// What differs.
pub fn replay(oracle: &mut Oracle, calls: &Calls, answered: &Answered) -> Result<(), String> {
    let expected = oracle.run_epoch(&[calls.get(answered.call)], 0);
    if is_same(answered, &expected[0]) {
        return Ok(());
    }
    Err(format!(
        "call {} at place {} of the serial order was answered {:?} {:02x?}, but comes to {:02x?}",
        answered.call, answered.serial, answered.outcome, answered.output, expected[0]
    ))
}

/// Compares a history that began with the loaded data, and the state at its end, with the oracle.
/// `history` is sorted into the serial order; calls that have the same place have written nothing.
///
/// # Errors
/// What differs first.
pub fn check<W: Workload>(
    workload: &W,
    calls: &Calls,
    history: &mut [Answered],
    view: &dyn View,
) -> Result<(), String> {
    history.sort_unstable_by_key(|answered| answered.serial);
    let mut oracle = Oracle::loaded(workload);
    for answered in history.iter() {
        replay(&mut oracle, calls, answered)?;
    }
    compare_states(workload, &oracle, view)
}

/// Compares two states.
///
/// # Errors
/// Rows that differ.
pub fn compare_states<W: Workload>(
    workload: &W,
    expected: &dyn View,
    view: &dyn View,
) -> Result<(), String> {
    let tables = workload.tables();
    if state_digest(&tables, expected) == state_digest(&tables, view) {
        return Ok(());
    }
    let mut differences = Vec::new();
    for (id, spec) in tables.iter().enumerate() {
        let table = TableId(id as u16);
        let mut rows = [0_u64; 2];
        let name = spec.name;
        view.for_each(table, &mut |key, value| {
            rows[0] += 1;
            let row = expected.get(table, key);
            if row.as_deref() != Some(value) && differences.len() < ROWS_SHOWN {
                differences.push(format!("{name} {key:02x?}: {value:02x?}, expected {row:02x?}"));
            }
        });
        expected.for_each(table, &mut |_, _| rows[1] += 1);
        if rows[0] != rows[1] {
            differences.push(format!("{name} has {} rows, expected {}", rows[0], rows[1]));
        }
    }
    Err(differences.join("; "))
}
