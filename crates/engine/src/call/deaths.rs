//! Replays that ended with the death of their process: an abort or a stack overflow in a body,
//! which nothing can catch. The same is noted while deferred calls run, because they come back at
//! each open, too; one in which the process died twice is refused instead of run (O-79).
//!
//! While a call runs in a replay, its position stands in a word that outlives the process
//! ([`pmem::ReplayMarks`]). The next replay finds it, and runs its epochs on one worker, so that
//! the word is exact. A call in which the process died twice would end it each time: the open is
//! refused with its name.

use pmem::{Device, ReplayMarks};
use storage::{EpochNumber, Position};

use crate::worker_id::{WORKERS_MAX, WorkerId};

/// Places of the words: the epoch that is replayed; for each worker the position of the call that
/// it runs, plus one; and the same of the last replay that ended in a death.
const EPOCH: usize = 0;
const RUNNING: usize = 8;
const LAST_EPOCH: usize = RUNNING + WORKERS_MAX;
const LAST: usize = LAST_EPOCH + 8;

const _: () = assert!(LAST + WORKERS_MAX <= pmem::REPLAY_WORDS);

/// What is known of replays that died.
#[derive(Default)]
pub(crate) struct Deaths {
    marks: Option<ReplayMarks>,
    /// A call in which the process died twice: epoch and position.
    stuck: Option<(EpochNumber, Position)>,
    died: bool,
}

impl Deaths {
    /// Looks at what earlier replays left, and begins to leave something for the next.
    pub(crate) fn open<D: Device>(device: &D) -> Result<Self, pmem::DeviceError> {
        let mut deaths = Self { marks: device.replay_marks()?, stuck: None, died: false };
        let Some(marks) = &deaths.marks else { return Ok(deaths) };
        let (epoch, died_in) = (marks.get(EPOCH), positions(marks, RUNNING));
        if died_in.is_empty() {
            // The last one ended well, or between two calls; what is known of another stays.
            deaths.died = marks.get(LAST_EPOCH) != 0;
            return Ok(deaths);
        }
        let before = positions(marks, LAST);
        let second_run = died_in.iter().find(|position| before.contains(position));
        if let Some(&position) = second_run.filter(|_| marks.get(LAST_EPOCH) == epoch) {
            deaths.stuck = Some((EpochNumber(epoch), position));
            return Ok(deaths);
        }
        for worker in 0..WORKERS_MAX {
            marks.set(LAST + worker, marks.get(RUNNING + worker));
            marks.set(RUNNING + worker, 0);
        }
        marks.set(LAST_EPOCH, epoch);
        deaths.died = true;
        Ok(deaths)
    }

    /// Begins to leave something for the next process while an epoch runs whose first calls were
    /// deferred: they run before anything is logged, so that no replay would meet them.
    pub(crate) fn live<D: Device>(
        device: &D,
        epoch: EpochNumber,
    ) -> Result<Self, pmem::DeviceError> {
        let deaths = Self { marks: device.replay_marks()?, stuck: None, died: false };
        deaths.begin(epoch);
        Ok(deaths)
    }

    /// The epoch in which the process died last, if it did.
    pub(crate) fn last_epoch(&self) -> Option<EpochNumber> {
        self.marks
            .as_ref()
            .map(|marks| marks.get(LAST_EPOCH))
            .filter(|&epoch| epoch != 0)
            .map(EpochNumber)
    }

    /// A call in which the process died twice: epoch and position.
    pub(crate) fn stuck(&self) -> Option<(EpochNumber, Position)> {
        self.stuck
    }

    /// Whether a replay before this one ended in a death: then calls must run one by one.
    pub(crate) fn are_known(&self) -> bool {
        self.died || self.stuck.is_some()
    }

    /// An epoch is about to be replayed.
    pub(crate) fn begin(&self, epoch: EpochNumber) {
        if let Some(marks) = &self.marks {
            (0..WORKERS_MAX).for_each(|worker| marks.set(RUNNING + worker, 0));
            marks.set(EPOCH, epoch.0);
        }
    }

    /// A worker begins to run a call; returns what it ran until then.
    pub(crate) fn enter(&self, worker: WorkerId, position: Position) -> u64 {
        let Some(marks) = &self.marks else { return 0 };
        let before = marks.get(RUNNING + worker.index());
        marks.set(RUNNING + worker.index(), u64::from(position.0) + 1);
        before
    }

    /// A worker goes on with what it ran before.
    pub(crate) fn leave(&self, worker: WorkerId, before: u64) {
        if let Some(marks) = &self.marks {
            marks.set(RUNNING + worker.index(), before);
        }
    }

    /// What is known of a call stays for the next open.
    pub(crate) fn keep(&mut self) {
        self.marks = None;
    }
}

impl Drop for Deaths {
    /// The process lives, so there is nothing to tell the next one.
    fn drop(&mut self) {
        if let Some(marks) = &self.marks {
            // If the file stays, the next replay is slower, and finds no call in which this one
            // died.
            (0..WORKERS_MAX).for_each(|worker| marks.set(RUNNING + worker, 0));
            let _ = marks.remove();
        }
    }
}

/// The positions that stand in the words from a place on.
fn positions(marks: &ReplayMarks, from: usize) -> Vec<Position> {
    let words = (0..WORKERS_MAX).map(|worker| marks.get(from + worker));
    words.filter_map(|word| u32::try_from(word.checked_sub(1)?).ok().map(Position)).collect()
}
