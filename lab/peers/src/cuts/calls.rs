//! What callers do: each call follows from its caller and its number, so that what a database must
//! hold follows from how many calls of each caller took place.

use serde::{Deserialize, Serialize};

use crate::peer::{Does, Operation, Shape};
use crate::value::Random;

/// As many of the shared rows are updated often.
const HOT_ROWS: u64 = 4;
/// Most shared rows that one call updates.
const UPDATES_MAX: u64 = 3;

/// The calls of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) callers: u64,
    /// Its rows are there before the first call: one for each caller, and those that all share.
    pub(super) shape: Shape,
}

impl Plan {
    /// The row that a caller counts its calls in.
    pub(super) fn row_of(caller: u64) -> u64 {
        caller
    }

    /// A call of a caller, which counts them from 1: it adds 1 to the caller's row and to some
    /// shared ones, and half of the calls insert a row that no other call does.
    pub(super) fn call(&self, caller: u64, number: u64, into: &mut Vec<Operation>) {
        into.clear();
        let mut random = Random::new(self.seed ^ (caller << 48) ^ number);
        let shared = self.shape.rows - self.callers;
        let choices = if random.next().is_multiple_of(2) { HOT_ROWS } else { shared };
        let updates = random.next() % (UPDATES_MAX + 1);
        into.push(Operation { row: Self::row_of(caller), does: Does::Update });
        while (into.len() as u64) < updates + 1 {
            let row = self.callers + random.next() % choices;
            if into.iter().all(|operation| operation.row != row) {
                into.push(Operation { row, does: Does::Update });
            }
        }
        if random.next().is_multiple_of(2) {
            let row = self.shape.rows + number * self.callers + caller;
            into.push(Operation { row, does: Does::Insert });
        }
        into.sort_unstable();
    }

    /// All operations of the first calls of each caller, so many of each.
    pub(super) fn for_each(&self, counts: &[u64], mut each: impl FnMut(&Operation)) {
        let mut call = Vec::new();
        for (caller, &count) in (0..).zip(counts) {
            for number in 1..=count {
                self.call(caller, number, &mut call);
                call.iter().for_each(&mut each);
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::peer::Pace;

    pub(crate) fn plan() -> Plan {
        let callers = 3;
        let shape = Shape {
            rows: callers + 200,
            value_bytes: 40,
            cache_bytes: 0,
            is_limited: false,
            pace: Pace::Short(0),
        };
        Plan { seed: 7, callers, shape }
    }

    #[test]
    fn a_call_counts_itself_and_no_two_insert_the_same_row() {
        let plan = plan();
        let (mut call, mut inserted) = (Vec::new(), Vec::new());
        for caller in 0..plan.callers {
            for number in 1..=100 {
                plan.call(caller, number, &mut call);
                assert_eq!(call[0], Operation { row: caller, does: Does::Update });
                assert!(call.is_sorted_by(|a, b| a.row < b.row), "{call:?}");
                let inserts = call.iter().filter(|of| of.does == Does::Insert);
                inserted.extend(inserts.map(|of| of.row));
            }
        }
        let count = inserted.len();
        assert!((100..200).contains(&count), "{count}");
        inserted.sort_unstable();
        inserted.dedup();
        assert_eq!(inserted.len(), count);
        assert!(inserted[0] >= plan.shape.rows);
    }
}
