//! Replays that ended with the death of their process by a call: an abort or a stack overflow in a
//! body, which nothing can catch. The same is noted while deferred calls run, because they come
//! back at each open, too; one in which the process died twice is refused instead of run (O-79).
//!
//! A thread that ends the process while it runs a call leaves the position in a word that outlives
//! it ([`pmem::ReplayMarks::noting`]). The next replay finds it, and runs its epochs on one worker,
//! so that all deaths come in the same order. A call in which the process died twice would end it
//! each time: the open is refused with its name.
//!
//! A process that was ended from outside (a kill, a container's limit of memory) leaves no word,
//! and proves nothing about the call that it was at.

use pmem::{AnyDevice, Device, ReplayMarks};
use storage::{EpochNumber, Position};

/// Places of the words: the epoch that is replayed; the position of the call, plus one, in which a
/// thread ended the process; and the same two of the last replay that ended so. Places from 8 on
/// were those of releases that counted other deaths, too.
const EPOCH: usize = 0;
const DIED_IN: usize = 1;
const LAST_EPOCH: usize = 2;
const LAST: usize = 3;

/// What is known of replays that died.
#[derive(Default)]
pub(crate) struct Deaths {
    marks: Option<ReplayMarks>,
    /// A call in which the process died twice: epoch and position.
    stuck: Option<(EpochNumber, Position)>,
    died: bool,
    /// Whether the disk has no room for the words.
    are_lost: bool,
}

/// The words of a device, and whether its disk has no room for them. Nothing else depends on them:
/// a store on a full disk is opened without, because what frees room comes behind the open.
fn words_of(device: &AnyDevice) -> Result<(Option<ReplayMarks>, bool), pmem::DeviceError> {
    match device.replay_marks() {
        Ok(marks) => Ok((marks, false)),
        Err(full) if full.is_limit() => Ok((None, true)),
        Err(error) => Err(error),
    }
}

impl Deaths {
    /// Looks at what earlier replays left, and begins to leave something for the next.
    pub(crate) fn open(device: &AnyDevice) -> Result<Self, pmem::DeviceError> {
        let (marks, are_lost) = words_of(device)?;
        let mut deaths = Self { marks, are_lost, ..Self::default() };
        let Some(marks) = &deaths.marks else { return Ok(deaths) };
        let Some(position) = position(marks.get(DIED_IN)) else {
            // The last one ended well, between two calls or from outside; what is known of another
            // stays.
            deaths.died = marks.get(LAST_EPOCH) != 0;
            return Ok(deaths);
        };
        let (epoch, died_in) = (marks.get(EPOCH), marks.get(DIED_IN));
        let is_same_epoch = marks.get(LAST_EPOCH) == epoch;
        if is_same_epoch && marks.get(LAST) == died_in {
            deaths.stuck = Some((EpochNumber(epoch), position));
            return Ok(deaths);
        }
        marks.set(LAST, died_in);
        marks.set(LAST_EPOCH, epoch);
        marks.set(DIED_IN, 0);
        deaths.died = true;
        Ok(deaths)
    }

    /// Begins to leave something for the next process while an epoch runs whose first calls were
    /// deferred: they run before anything is logged, so that no replay would meet them.
    pub(crate) fn live(device: &AnyDevice, epoch: EpochNumber) -> Result<Self, pmem::DeviceError> {
        let (marks, are_lost) = words_of(device)?;
        let deaths = Self { marks, are_lost, ..Self::default() };
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

    /// Whether a death of this process leaves nothing for the next one: the disk is full.
    pub(crate) fn are_lost(&self) -> bool {
        self.are_lost
    }

    /// An epoch is about to be replayed.
    pub(crate) fn begin(&self, epoch: EpochNumber) {
        if let Some(marks) = &self.marks {
            marks.set(DIED_IN, 0);
            marks.set(EPOCH, epoch.0);
        }
    }

    /// Runs a part of a call.
    #[inline]
    pub(crate) fn noting<R>(&self, position: Position, run: impl FnOnce() -> R) -> R {
        match &self.marks {
            Some(marks) => marks.noting(DIED_IN, u64::from(position.0) + 1, run),
            None => run(),
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
            marks.set(DIED_IN, 0);
            let _ = marks.remove();
        }
    }
}

/// The position that stands in a word.
fn position(word: u64) -> Option<Position> {
    u32::try_from(word.checked_sub(1)?).ok().map(Position)
}
