//! The search for a smaller scenario with the same difference.

use super::scenario::{Difference, End, Found, run};
use crate::generate::{Script, Sending, Step};
use std::time::{Duration, Instant};

/// A scenario that still differs with `label`, and its difference. Ends after `patience`.
pub(crate) fn minimise(
    found: &mut Found,
    script: &Script,
    at: usize,
    difference: &Difference,
    patience: Duration,
) -> (Script, Difference) {
    let mut best = script.clone();
    best.steps.truncate(at + 1);
    let mut search =
        Search { found, label: &difference.label, until: Instant::now() + patience, last: None };
    if at < script.steps.len() {
        // The contents do not matter for a difference in an answer.
        let bare = Script { tables: Vec::new(), ..best.clone() };
        if search.differs(&bare) {
            best = bare;
        }
    }
    search.drop_steps(&mut best);
    loop {
        let before = best.clone();
        search.send_simply(&mut best);
        search.shrink_steps(&mut best);
        search.drop_steps(&mut best);
        if best == before || search.is_over() {
            break;
        }
    }
    let last = search.last.take();
    (best, last.unwrap_or_else(|| difference.clone()))
}

struct Search<'a, 'b> {
    found: &'a mut Found<'b>,
    label: &'a str,
    until: Instant,
    last: Option<Difference>,
}

impl Search<'_, '_> {
    fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }

    /// Whether a scenario has the difference; notes what it is there.
    fn differs(&mut self, script: &Script) -> bool {
        if self.is_over() {
            return false;
        }
        match run(self.found, script, &mut Vec::new()) {
            Ok(End::Differs { difference, .. }) if difference.label == self.label => {
                self.last = Some(difference);
                true
            }
            _ => false,
        }
    }

    /// Leaves out steps, many at a time first.
    fn drop_steps(&mut self, best: &mut Script) {
        let mut count = best.steps.len().div_ceil(2).max(1);
        loop {
            let mut end = best.steps.len();
            while end > 0 {
                let start = end.saturating_sub(count);
                let mut fewer = best.clone();
                fewer.steps.drain(start..end);
                if self.differs(&fewer) {
                    *best = fewer;
                }
                end = start;
            }
            if count == 1 {
                return;
            }
            count = count.div_ceil(2);
        }
    }

    /// Sends steps by the simple protocol, or their statements one by one.
    fn send_simply(&mut self, best: &mut Script) {
        for at in 0..best.steps.len() {
            let mut simple = best.clone();
            simple.steps[at].sending = Sending::Simple;
            if simple != *best && self.differs(&simple) {
                *best = simple;
            }
        }
        let mut at = 0;
        while at < best.steps.len() {
            let step = best.steps[at].clone();
            if step.statements.len() > 1 {
                let mut single = best.clone();
                let sending = step.sending;
                let steps = step.statements.into_iter();
                single
                    .steps
                    .splice(at..=at, steps.map(|one| Step { statements: vec![one], sending }));
                if self.differs(&single) {
                    *best = single;
                }
            }
            at += 1;
        }
    }

    /// Makes statements smaller, the last one first.
    fn shrink_steps(&mut self, best: &mut Script) {
        for at in (0..best.steps.len()).rev() {
            for which in 0..best.steps[at].statements.len() {
                while let Some(smaller) = self.smaller(best, at, which) {
                    *best = smaller;
                }
            }
        }
    }

    /// A scenario in which one statement is smaller.
    fn smaller(&mut self, best: &Script, at: usize, which: usize) -> Option<Script> {
        for tree in best.steps[at].statements[which].tree.reductions() {
            if self.is_over() {
                return None;
            }
            let mut script = best.clone();
            script.steps[at].statements[which].tree = tree;
            if self.differs(&script) {
                return Some(script);
            }
        }
        None
    }
}
