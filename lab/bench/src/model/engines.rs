//! Which engine is simulated, what comes of it, and the clocks of its cores.

use engine::{AppendMethod, Packing};

/// What an engine does, as far as the model knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Engine {
    /// One core, whatever there are.
    Serial,
    /// Versions whose places are made in one of these ways, and that any core then writes.
    Versions(Versions),
    /// Each core runs the pieces of its partition in order.
    Granola,
    /// Each core runs the pieces of its partition as they become ready.
    Pwv,
    /// One core requests all locks.
    Calvin,
}

/// How an engine with versions makes them, and who runs what updates contended rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Versions {
    pub(super) places: Places,
    /// Versions of a row from which on its pieces are split off; 0: never.
    pub(super) split_threshold: u32,
    pub(super) packing: Packing,
}

/// Who appends versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Places {
    /// The core that has the call, as the method says.
    Shared(AppendMethod),
    /// The owner of the key.
    Owner,
}

/// What an epoch came to. Times of all cores together are sums.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(super) struct Simulated {
    /// The part before execution.
    pub(super) control_ns: f64,
    pub(super) execute_ns: f64,
    /// Time that cores waited for versions, locks or each other.
    pub(super) waited_ns: f64,
    /// Lines that another core had written last.
    pub(super) hand_overs: u64,
    /// Pieces, writes or requests that one core left to another.
    pub(super) messages: u64,
}

impl Simulated {
    pub(super) fn total_ns(&self) -> f64 {
        self.control_ns + self.execute_ns
    }
}

/// Clocks of cores.
#[derive(Debug, Clone)]
pub(super) struct Cores(pub(super) Vec<f64>);

impl Cores {
    pub(super) fn new(cores: usize) -> Self {
        Self(vec![0.0; cores])
    }

    /// The core that is free first, the lowest of several.
    pub(super) fn first_free(&self) -> usize {
        let clocks = self.0.iter().enumerate();
        let first = clocks.min_by(|left, right| left.1.total_cmp(right.1));
        first.expect("there is a core").0
    }

    /// When all are done.
    pub(super) fn end(&self) -> f64 {
        self.0.iter().copied().fold(0.0, f64::max)
    }
}

/// The last version of a row: when it is there, and which core made it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Last {
    pub(super) at: f64,
    pub(super) core: usize,
}
