//! What a database must hold after a power cut: the calls of each caller up to one of them, which
//! is the last one that was answered or the one after it, all of each, each once.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::calls::Plan;
use crate::peer::{Does, Peer, Result};
use crate::value;

/// What a database holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Found {
    /// Rows that are there, of those from the beginning.
    pub(super) rows: u64,
    /// Calls of each caller that took place; none if there are no rows at all.
    pub(super) counts: Vec<u64>,
    /// Calls that were answered and are not there.
    pub(super) lost: u64,
    /// What else no run of the calls comes to; the first of it.
    pub(super) wrong: Vec<String>,
}

impl Found {
    pub(super) fn is_right(&self) -> bool {
        self.lost == 0 && self.wrong.is_empty()
    }
}

/// Differences that are told.
const TOLD_MAX: usize = 5;

/// What is known of the calls of a caller: how many of them must be there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Known {
    /// Calls that were answered.
    pub(super) answered: u64,
    /// Calls that were there after a recovery: that is what readers were shown.
    pub(super) shown: u64,
}

/// Reads all rows, where this is known of each caller.
pub(super) fn verify(peer: &dyn Peer, plan: &Plan, known: &[Known]) -> Result<Found> {
    let mut rows = Rows::default();
    peer.rows(&mut |row, value| {
        rows.add(plan, row, value);
        Ok(())
    })?;
    Ok(rows.judge(plan, known))
}

/// Rows as they were read.
#[derive(Default)]
struct Rows {
    /// Counters of the rows that are there from the beginning.
    counters: Vec<u64>,
    inserted: BTreeSet<u64>,
    wrong: Vec<String>,
}

impl Rows {
    fn add(&mut self, plan: &Plan, row: u64, found: &[u8]) {
        let counter = value::counter(row, found).unwrap_or_default();
        if found != value::value(row, counter, plan.shape.value_bytes) {
            self.wrong.push(format!("row {row} holds what was not written"));
        }
        if row >= plan.shape.rows {
            if !self.inserted.insert(row) {
                self.wrong.push(format!("row {row} is there more than once"));
            }
            if counter != 0 {
                self.wrong.push(format!("row {row}, which is never updated, counts {counter}"));
            }
            return;
        }
        if row != self.counters.len() as u64 {
            self.wrong.push(format!("row {row} comes where row {} should", self.counters.len()));
        }
        self.counters.push(counter);
    }

    fn judge(mut self, plan: &Plan, known: &[Known]) -> Found {
        if self.counters.is_empty() && self.inserted.is_empty() {
            let lost = known.iter().map(|of| of.answered).sum();
            return Found { lost, ..Found::default() };
        }
        let rows = self.counters.len() as u64;
        self.counters.resize(plan.shape.rows as usize, 0);
        let own = |caller| self.counters[Plan::row_of(caller) as usize];
        let counts: Vec<u64> = (0..plan.callers).map(own).collect();
        let mut lost = 0;
        for (caller, (&count, known)) in counts.iter().zip(known).enumerate() {
            let Known { answered, shown } = *known;
            lost += answered.saturating_sub(count);
            let what = format!("{count} calls of caller {caller}, {answered} were answered");
            if count > answered.max(shown) + 1 {
                self.wrong.push(what + " and one more was made at most");
            } else if (answered..shown).contains(&count) {
                self.wrong.push(format!("{what} and {shown} were there after a recovery"));
            }
        }
        self.compare(plan, &counts);
        self.wrong.truncate(TOLD_MAX);
        Found { rows, counts, lost, wrong: self.wrong }
    }

    /// With what so many calls of each caller come to.
    fn compare(&mut self, plan: &Plan, counts: &[u64]) {
        let mut counters = vec![0; plan.shape.rows as usize];
        let mut inserted = BTreeSet::new();
        plan.for_each(counts, |operation| match operation.does {
            Does::Read => {}
            Does::Update => counters[operation.row as usize] += 1,
            Does::Insert => drop(inserted.insert(operation.row)),
        });
        for (row, (found, expected)) in self.counters.iter().zip(&counters).enumerate() {
            if found != expected {
                self.wrong.push(format!("row {row} counts {found} updates, and not {expected}"));
            }
        }
        for row in self.inserted.symmetric_difference(&inserted) {
            let what = if inserted.contains(row) { "is missing" } else { "has no call" };
            self.wrong.push(format!("inserted row {row} {what}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::calls::tests::plan;
    use super::*;

    /// What is found where so many calls took place, after a change of the rows.
    fn found(counts: &[u64], answered: &[u64], change: fn(&mut Vec<(u64, Vec<u8>)>)) -> Found {
        let known: Vec<_> = answered.iter().map(|&answered| Known { answered, shown: 0 }).collect();
        found_of(counts, &known, change)
    }

    fn found_of(counts: &[u64], known: &[Known], change: fn(&mut Vec<(u64, Vec<u8>)>)) -> Found {
        let plan = plan();
        let value = |row, counter| value::value(row, counter, plan.shape.value_bytes);
        let mut counters = vec![0; plan.shape.rows as usize];
        let mut rows = Vec::new();
        plan.for_each(counts, |operation| match operation.does {
            Does::Insert => rows.push((operation.row, value(operation.row, 0))),
            _ => counters[operation.row as usize] += 1,
        });
        rows.extend((0..).zip(counters).map(|(row, counter)| (row, value(row, counter))));
        rows.sort_unstable();
        change(&mut rows);
        let mut read = Rows::default();
        rows.iter().for_each(|(row, value)| read.add(&plan, *row, value));
        read.judge(&plan, known)
    }

    #[test]
    fn calls_are_there_once_up_to_the_one_after_the_last_answer() {
        for answered in [[5, 9, 0], [4, 8, 0]] {
            let all = found(&[5, 9, 0], &answered, |_| ());
            let expected = Found { rows: plan().shape.rows, ..Found::default() };
            assert_eq!(all, Found { counts: vec![5, 9, 0], ..expected });
        }
        assert_eq!(found(&[5, 9, 0], &[7, 9, 1], |_| ()).lost, 3);
        assert_eq!(found(&[], &[0, 1, 2], Vec::clear).lost, 3);
    }

    #[test]
    fn what_no_run_comes_to_is_told() {
        let wrong = |change| found(&[20, 9, 4], &[20, 9, 4], change).wrong.join("; ");
        assert_eq!(wrong(|_| ()), "");
        assert!(wrong(|rows| drop(rows.pop())).contains("is missing"));
        assert!(wrong(|rows| drop(rows.remove(9))).contains("row 10 comes where row 9 should"));
        let more =
            |rows: &mut Vec<(u64, Vec<u8>)>| rows.push((1 << 40, value::value(1 << 40, 0, 40)));
        assert!(wrong(more).contains("has no call"));
        assert!(
            wrong(|rows| rows.push(rows.last().unwrap().clone()))
                .contains("is there more than once")
        );
        assert!(wrong(|rows| rows[5].1[39] ^= 1).contains("row 5 holds what was not written"));
        assert!(wrong(|rows| rows[5].1 = value::value(5, 77, 40)).contains("row 5 counts 77"));
        let ahead = found(&[20, 9, 4], &[18, 9, 4], |_| ()).wrong;
        assert!(ahead[0].contains("20 calls of caller 0, 18 were answered"), "{ahead:?}");
        let shown = |shown| {
            [(20, shown), (9, 9), (4, 0)].map(|(answered, shown)| Known { answered, shown })
        };
        assert!(found_of(&[21, 9, 4], &shown(21), |_| ()).is_right());
        assert!(found_of(&[22, 9, 4], &shown(21), |_| ()).is_right());
        let gone = found_of(&[20, 9, 4], &shown(21), |_| ());
        assert!(gone.lost == 0 && gone.wrong[0].contains("21 were there after a recovery"));
    }
}
