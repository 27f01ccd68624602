//! A way to ask a run to stop early. Who wants that, and why, is not known here.

use std::fmt;
use std::sync::Arc;

/// A question that a run asks before each epoch, and never during one: should it stop here?
#[derive(Clone)]
pub struct Stop(Arc<dyn Fn() -> bool + Send + Sync>);

impl Stop {
    /// Stops before the first epoch for which `ask` says so.
    pub fn when(ask: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(ask))
    }

    /// Runs to the end.
    #[must_use]
    pub fn never() -> Self {
        Self::when(|| false)
    }

    /// The answer.
    #[must_use]
    pub fn asked(&self) -> bool {
        (self.0)()
    }
}

impl fmt::Debug for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stop(..)")
    }
}
