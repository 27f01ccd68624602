//! Which calls run at this moment, for what looks at an engine from another thread: a call that
//! does not end is named, by an open that replays it, too. It changes nothing that the engine does.
//!
//! The words are no part of what the engine's own threads tell each other, so they are the standard
//! library's, also where schedules are explored.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use storage::{EpochNumber, Position, SerialId};

use crate::worker_id::{WORKERS_MAX, WorkerId};

/// What a worker runs, in a line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Word {
    /// The serial id of the call; 0 for none.
    sid: AtomicU64,
    procedure: AtomicU32,
}

/// The calls that the workers of an engine run.
#[derive(Debug, Clone)]
pub struct RunningCalls(Arc<Words>);

#[derive(Debug)]
struct Words {
    of_workers: [Word; WORKERS_MAX],
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
pub(crate) struct Before {
    sid: u64,
    procedure: u32,
}

impl Default for RunningCalls {
    fn default() -> Self {
        let of_workers = std::array::from_fn(|_| Word::default());
        Self(Arc::new(Words { of_workers, names: Mutex::default() }))
    }
}

impl RunningCalls {
    /// The call with the smallest serial id: the one that waits for no other.
    #[must_use]
    pub fn first(&self) -> Option<RunningCall> {
        let Words { of_workers, names } = &*self.0;
        let running = of_workers.iter().filter_map(|word| {
            let sid = word.sid.load(Ordering::Acquire);
            (sid != 0).then(|| (sid, word.procedure.load(Ordering::Relaxed)))
        });
        let (sid, procedure) = running.min()?;
        let names = names.lock().unwrap_or_else(PoisonError::into_inner);
        let name = names.get(procedure as usize).map_or("?", String::as_str);
        let sid = SerialId(sid);
        let procedure = name.to_string();
        Some(RunningCall { epoch: sid.epoch(), position: sid.position(), procedure })
    }

    /// The procedures of the engine that runs calls from now on.
    pub(crate) fn set_names<'n>(&self, names: impl Iterator<Item = &'n str>) {
        let mut all = self.0.names.lock().unwrap_or_else(PoisonError::into_inner);
        *all = names.map(str::to_string).collect();
    }

    /// A worker begins with a part of a call.
    #[inline]
    pub(crate) fn enter(&self, worker: WorkerId, sid: SerialId, procedure: u16) -> Before {
        let word = &self.0.of_workers[worker.index()];
        // Only this worker writes it.
        let before = Before {
            sid: word.sid.load(Ordering::Relaxed),
            procedure: word.procedure.load(Ordering::Relaxed),
        };
        word.procedure.store(u32::from(procedure), Ordering::Relaxed);
        word.sid.store(sid.0, Ordering::Release);
        before
    }

    /// A worker goes on with what it did before.
    #[inline]
    pub(crate) fn leave(&self, worker: WorkerId, before: Before) {
        let word = &self.0.of_workers[worker.index()];
        word.procedure.store(before.procedure, Ordering::Relaxed);
        word.sid.store(before.sid, Ordering::Release);
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
