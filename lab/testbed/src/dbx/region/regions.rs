//! Regions of whichever kind there is.

use std::sync::atomic::AtomicU64;

use super::access::{Body, Ended, Limits};
use super::hardware::{Hardware, Instructions};
use super::software::Software;
use crate::rival::RegionCounts;

/// What makes regions atomic.
pub(crate) enum Regions {
    Software(Box<Software>),
    Hardware(Hardware<Instructions>),
}

impl Regions {
    /// Regions of the hardware where there are such. Places come after `clock`.
    pub(crate) fn new(clock: u64) -> Self {
        match Instructions::detect() {
            Some(instructions) => Self::Hardware(Hardware::new(instructions)),
            None => Self::Software(Box::new(Software::new(clock, Limits::default()))),
        }
    }

    /// Runs a body; `None` if it gave up.
    pub(crate) fn run<'w, B: Body<'w>>(
        &self,
        counts: &mut RegionCounts,
        body: &mut B,
    ) -> Option<Ended<B::Output>> {
        match self {
            Self::Software(regions) => regions.run(counts, body),
            Self::Hardware(regions) => regions.run(counts, body),
        }
    }

    /// Runs a body with locks in place of a region, and `inside` before its stores are seen, with
    /// its place; `None` if it gave up. For what leaves the cache: its region would always be
    /// aborted, so that none is begun; it counts as one that was.
    pub(crate) fn run_locked<'w, B: Body<'w>, E>(
        &self,
        counts: &mut RegionCounts,
        body: &mut B,
        inside: impl FnMut(u64) -> Result<(), E>,
    ) -> Result<Option<Ended<B::Output>>, E> {
        counts.forbidden += 1;
        counts.fallbacks += 1;
        let ended = match self {
            Self::Software(regions) => regions.run_locked(body, inside)?,
            Self::Hardware(regions) => regions.run_locked(body, inside)?,
        };
        match ended {
            Some(_) => counts.ended += 1,
            None => counts.gave_up += 1,
        }
        Ok(ended)
    }

    /// Stores words outside of a region. Regions that have read one of them are aborted.
    pub(crate) fn store_all<'w>(&self, words: impl Iterator<Item = (&'w AtomicU64, u64)>) {
        match self {
            Self::Software(regions) => regions.store_all(words),
            Self::Hardware(regions) => regions.store_all(words),
        }
    }
}
