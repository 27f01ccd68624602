//! The calls that were deferred to the next epoch.

use crate::call::answers::EpochOutcome;
use crate::call::batch::{Calls, EpochInfo, Part};
use crate::engine::Engine;
use crate::error::Result;

impl Engine {
    /// Runs an epoch of deferred calls only: of as many as there is space for. One that has no
    /// space by itself is refused: it fails, and the log says so. For callers whose own calls were
    /// refused; each such epoch brings at least one deferred call to its end (O-75).
    ///
    /// # Errors
    /// As [`Engine::run_epoch`]; `Limit` only if there is no space even in the log.
    pub fn run_deferred(&mut self, info: EpochInfo) -> Result<EpochOutcome> {
        self.check(&Calls::new())?;
        let before = self.deferred_calls.len();
        let outcome = self.run_as_many_deferred(info)?;
        assert!(
            before == 0 || self.deferred_calls.len() < before,
            "an epoch of deferred calls brings one to its end (O-75)"
        );
        Ok(outcome)
    }

    /// Runs the first deferred calls, as many as there is space for.
    fn run_as_many_deferred(&mut self, info: EpochInfo) -> Result<EpochOutcome> {
        let mut count = self.deferred_calls.len();
        loop {
            let first = self.deferred_calls.cut(0..count);
            match self.run(&first, info, None) {
                Err(error) if error.is_limit() && count > 1 => count /= 2,
                Err(error) if error.is_limit() && count == 1 => {
                    let first = self.deferred_calls.some(0..1, Part::Refused)?;
                    return self.run(&first, info, None);
                }
                result => return result,
            }
        }
    }

    /// The deferred calls that an epoch of these calls does not run: the last ones.
    pub(super) fn still_deferred(&self, calls: &Calls) -> Calls {
        self.deferred_calls.cut(calls.deferred()..self.deferred_calls.len())
    }

    /// A deferred call will not run: its answer is that it was refused.
    pub(crate) fn refuse_deferred(&mut self, position: usize) -> Result<()> {
        assert!(position < self.deferred_calls.len(), "deferred call {position} is not there");
        let mut deferred_calls = self.deferred_calls.cut(0..position);
        deferred_calls.append(&self.deferred_calls.some(position..position + 1, Part::Refused)?)?;
        deferred_calls.append(&self.deferred_calls.cut(position + 1..self.deferred_calls.len()))?;
        self.deferred_calls = deferred_calls;
        Ok(())
    }

    pub(crate) fn set_deferred_calls(&mut self, deferred_calls: Calls) {
        assert!(self.deferred_calls.is_empty(), "calls are handed over before any epoch runs");
        assert!(
            deferred_calls.deferred() == deferred_calls.len(),
            "what a checkpoint hands over was deferred"
        );
        self.deferred_calls = deferred_calls;
    }

    /// Calls that are deferred; they are the first of the next epoch.
    pub fn deferred(&self) -> usize {
        self.deferred_calls.len()
    }

    /// A deferred call: procedure and arguments.
    ///
    /// # Panics
    /// If there are not as many.
    pub fn deferred_call(&self, index: usize) -> (u16, &[u8]) {
        self.deferred_calls.get(index)
    }
}
