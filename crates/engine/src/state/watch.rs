//! A hook for tests: it is told where an epoch is, and what a replay answered. It changes
//! nothing that the engine does.

use std::fmt;
use std::sync::Arc;

use storage::EpochNumber;

use crate::call::answers::EpochOutcome;
use crate::stats::Phase;

/// A moment of an epoch, as its first worker comes to it. Other workers may be a little ahead or
/// behind, up to the next barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// A phase begins. [`Phase::LogInputs`] comes twice: it begins again where the epoch waits
    /// for its log.
    Begin(Phase),
    /// All workers have fenced what the epoch wrote; its number is written next, if it ends in a
    /// checkpoint.
    Fenced,
    /// The number of the epoch is durable, if it ends in a checkpoint.
    Committed,
}

/// What watches an engine.
pub trait Watcher: Send + Sync {
    /// An epoch has come to a moment. Called by its first worker.
    fn moment(&self, epoch: EpochNumber, moment: Moment);

    /// Recovery has run an epoch again.
    fn replayed(&self, outcome: &EpochOutcome);
}

/// A watcher, or none.
#[derive(Clone, Default)]
pub struct Watch(Option<Arc<dyn Watcher>>);

impl Watch {
    /// Tells `watcher`.
    pub fn by(watcher: Arc<dyn Watcher>) -> Self {
        Self(Some(watcher))
    }

    pub(crate) fn moment(&self, epoch: EpochNumber, moment: Moment) {
        if let Some(watcher) = &self.0 {
            watcher.moment(epoch, moment);
        }
    }

    pub(crate) fn replayed(&self, outcome: &EpochOutcome) {
        if let Some(watcher) = &self.0 {
            watcher.replayed(outcome);
        }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Watch(..)" } else { "Watch(none)" })
    }
}
