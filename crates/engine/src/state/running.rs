//! Which calls run at this moment, for what looks at an engine from another thread: a call that
//! does not end is named, by an open that replays it, too. It changes nothing that the engine does.
//!
//! The words are no part of what the engine's own threads tell each other, so they are the standard
//! library's, also where schedules are explored.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use storage::{EpochNumber, Position, SerialId};

use crate::worker_id::{WORKERS_MAX, WorkerId};

/// Bits of the number of a procedure, below those of a serial id, which loses as many: the first of
/// its epoch.
const PROCEDURE_BITS: u32 = u16::BITS;

/// What a worker runs, in a line of its own: serial id and procedure, 0 for nothing. The first call
/// of each 2^24th epoch may look like nothing.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Word(AtomicU64);

/// The calls that the workers of an engine run.
#[derive(Debug, Clone)]
pub struct RunningCalls(Arc<Words>);

#[derive(Debug)]
struct Words {
    of_workers: [Word; WORKERS_MAX],
    /// The epoch that runs, or ran last.
    epoch: AtomicU64,
    /// Names of the procedures, by their numbers.
    names: Mutex<Vec<String>>,
}

/// A call that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningCall {
    /// Its epoch.
    pub epoch: EpochNumber,
    /// Its position in the epoch.
    pub position: Position,
    /// The name of its procedure.
    pub procedure: String,
}

/// What a worker ran before it began with something else.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Before(u64);

impl Default for RunningCalls {
    fn default() -> Self {
        let of_workers = std::array::from_fn(|_| Word::default());
        let (epoch, names) = (AtomicU64::new(0), Mutex::default());
        Self(Arc::new(Words { of_workers, epoch, names }))
    }
}

impl RunningCalls {
    /// The call with the smallest serial id: the one that waits for no other.
    #[must_use]
    pub fn first(&self) -> Option<RunningCall> {
        let Words { of_workers, epoch, names } = &*self.0;
        let words = of_workers.iter().map(|word| word.0.load(Ordering::Acquire));
        let word = words.filter(|word| *word != 0).min()?;
        let position = SerialId(word >> PROCEDURE_BITS).position();
        let names = names.lock().unwrap_or_else(PoisonError::into_inner);
        let number = (word & ((1 << PROCEDURE_BITS) - 1)) as usize;
        let procedure = names.get(number).map_or("?", String::as_str).to_string();
        let epoch = EpochNumber(epoch.load(Ordering::Relaxed));
        Some(RunningCall { epoch, position, procedure })
    }

    /// The procedures of the engine that runs calls from now on.
    pub(crate) fn set_names<'n>(&self, names: impl Iterator<Item = &'n str>) {
        let mut all = self.0.names.lock().unwrap_or_else(PoisonError::into_inner);
        *all = names.map(str::to_string).collect();
    }

    /// An epoch begins.
    pub(crate) fn begin(&self, epoch: EpochNumber) {
        self.0.epoch.store(epoch.0, Ordering::Relaxed);
    }

    /// A worker begins with a part of a call.
    #[inline]
    pub(crate) fn enter(&self, worker: WorkerId, sid: SerialId, procedure: u16) -> Before {
        let word = &self.0.of_workers[worker.index()].0;
        // Only this worker writes it.
        let before = Before(word.load(Ordering::Relaxed));
        word.store(sid.0 << PROCEDURE_BITS | u64::from(procedure), Ordering::Release);
        before
    }

    /// A worker goes on with what it did before.
    #[inline]
    pub(crate) fn leave(&self, worker: WorkerId, before: Before) {
        self.0.of_workers[worker.index()].0.store(before.0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_call_is_told_also_where_one_runs_within_another() {
        let calls = RunningCalls::default();
        assert_eq!(calls.first(), None);
        calls.set_names(["a", "b"].into_iter());
        calls.begin(EpochNumber(7));
        let sid = |position| SerialId::new(EpochNumber(7), Position(position));
        let [one, two] = [0, 1].map(WorkerId::from_index);
        let outer = calls.enter(one, sid(5), 1);
        let told = |position, procedure: &str| {
            let (epoch, position) = (EpochNumber(7), Position(position));
            Some(RunningCall { epoch, position, procedure: procedure.into() })
        };
        assert_eq!(calls.first(), told(5, "b"));
        let inner = calls.enter(one, sid(3), 0);
        let other = calls.enter(two, sid(4), 9);
        assert_eq!(calls.first(), told(3, "a"));
        calls.leave(one, inner);
        assert_eq!(calls.first(), told(4, "?"));
        calls.leave(two, other);
        assert_eq!(calls.first(), told(5, "b"));
        calls.leave(one, outer);
        assert_eq!(calls.first(), None);
    }
}
