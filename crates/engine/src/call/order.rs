//! Calls that keep an order: those of one submitter (O-109).
//!
//! A call that runs in parallel with the one before it of the same submitter waits until that has
//! come to its end. Where that is deferred this one is, unrun: both run in the serial part of the
//! next epoch, in their order, and those of the submitter in that epoch come after. Which calls are
//! of one submitter is in the log, so a replay defers the same ones.
//!
//! It waits for a smaller serial id only, so the smallest unfinished call can always run (O-11).

use std::collections::HashMap;

use pmem::sync::atomic::{AtomicU32, Ordering};
use storage::Position;

use crate::call::batch::{Call, Calls, Part};
use crate::version::{Stopped, Waiter};

/// What became of a call.
const NOT_YET: u32 = 0;
const HAS_RUN: u32 = 1;
const DEFERRED: u32 = 2;

/// The order of the calls of an epoch, as far as there is one.
#[derive(Debug, Default)]
pub(crate) struct SubmissionOrder {
    /// By position: the position before which the submitter's last parallel call is, from 1; 0 if
    /// there is none. Empty where no call keeps an order.
    before: Vec<u32>,
    /// By position: what became of the call, of those that keep an order.
    ends: Vec<AtomicU32>,
}

impl SubmissionOrder {
    /// Of the calls of an epoch. Those of the serial part are in their order there, and before all
    /// others.
    pub(crate) fn of(calls: &Calls) -> Self {
        if !calls.are_ordered() {
            return Self::default();
        }
        let (mut last, mut before) = (HashMap::new(), vec![0; calls.len()]);
        for (position, before) in before.iter_mut().enumerate().skip(calls.serial()) {
            let Call { part, submitter, .. } = calls.call(position);
            assert!(part == Part::Parallel, "the serial part comes first");
            if submitter != 0 {
                *before = last.insert(submitter, position as u32 + 1).unwrap_or(0);
            }
        }
        Self { before, ends: (0..calls.len()).map(|_| AtomicU32::new(NOT_YET)).collect() }
    }

    /// Waits until the call before the one at a position has come to its end, if there is one:
    /// whether that was deferred.
    pub(crate) fn wait_for_before(
        &self,
        position: Position,
        waiter: &mut Waiter<'_>,
    ) -> Result<bool, Stopped> {
        let Some(before) = self.before[position.index()].checked_sub(1) else { return Ok(false) };
        assert!(before < position.0, "a call waits for smaller serial ids only (O-11)");
        let end = || match self.ends[before as usize].load(Ordering::Acquire) {
            NOT_YET => None,
            end => Some(end),
        };
        let end = match end() {
            Some(end) => end,
            None => waiter.until(end, || Ok(false))?,
        };
        Ok(end == DEFERRED)
    }

    /// A call has come to its end.
    pub(crate) fn note(&self, position: Position, is_deferred: bool) {
        let end = if is_deferred { DEFERRED } else { HAS_RUN };
        let of_call = &self.ends[position.index()];
        debug_assert!(of_call.load(Ordering::Relaxed) == NOT_YET, "call {position} ends once");
        of_call.store(end, Ordering::Release);
    }
}

#[cfg(all(test, not(any(feature = "loom", feature = "shuttle"))))]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn o_109_a_call_waits_for_the_one_before_of_its_submitter_only() {
        let mut calls = Calls::new();
        for (submitter, is_serial) in [(1, true), (1, false), (2, false), (0, false), (1, false)] {
            calls.push_of(submitter, is_serial, 0, &[]).unwrap();
        }
        let (order, stopped) = (SubmissionOrder::of(&calls), AtomicBool::new(false));
        assert_eq!(order.before, [0, 0, 0, 0, 2]);
        let mut waiter = Waiter::new(&stopped);
        let mut was_deferred = |at| order.wait_for_before(Position(at), &mut waiter);
        assert_eq!(was_deferred(1), Ok(false), "one of the serial part has run");
        assert_eq!((was_deferred(2), was_deferred(3)), (Ok(false), Ok(false)));
        order.note(Position(1), true);
        assert_eq!(was_deferred(4), Ok(true));
        assert_eq!(waiter.waits, 0);
        stopped.store(true, Ordering::Relaxed);
        let order = SubmissionOrder::of(&calls);
        let mut waiter = Waiter::new(&stopped);
        assert_eq!(order.wait_for_before(Position(4), &mut waiter), Err(Stopped));
        let mut none = Calls::new();
        none.push(0, &[]).unwrap();
        assert!(SubmissionOrder::of(&none).ends.is_empty(), "it costs nothing where there is none");
    }
}
