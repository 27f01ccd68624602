//! What tickets hold on to: the answers to some of the calls of an epoch.
//!
//! An answered ticket that is not looked at must not keep the answers of its whole epoch. So the
//! tickets of few calls hold a [`Share`], and only that holds the group of the epoch. Some epochs
//! later the sequencer copies what a share that is still there needs, and takes the group from it.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock, PoisonError, Weak};

use pmem::Process;

use crate::body;
use crate::call::group::{Group, Told};
use crate::error::{Error, Result};
use crate::sync::{RwLock, RwLockReadGuard};

/// Most calls of a share that were submitted one by one.
pub(crate) const SHARE_CALLS: usize = 64;

/// Epochs whose answers are left where they are: mostly they are read in this time.
const EPOCHS_LEFT: usize = 4;

/// Some calls of one group, as their tickets hold them. Few threads have them: all tickets of an
/// epoch would count in one place that their threads contend for.
#[derive(Debug)]
pub(crate) struct Share {
    /// Absent once the answers were moved out of it. Threads that look for answers, or wait for
    /// them, hold the lock for reading; it is only tried for writing, so that none of them waits
    /// for it, not even one that holds it already.
    group: RwLock<Option<Arc<Group>>>,
    /// Answers that were moved out, by the indices of the calls, in order.
    own: OnceLock<Vec<(u32, Told)>>,
    /// Where the answers come.
    process: Process,
}

impl Share {
    pub(crate) fn of(group: Arc<Group>) -> Arc<Self> {
        let group = RwLock::new(Some(group));
        Arc::new(Self { group, own: OnceLock::new(), process: Process::default() })
    }

    /// Looks for something in the group, or in the answer to a call, once that was moved out.
    pub(crate) fn look<R>(
        &self,
        index: u32,
        in_group: impl FnOnce(&Group) -> R,
        in_answer: impl FnOnce(&Told) -> R,
    ) -> R {
        let group = self.group.read().unwrap_or_else(PoisonError::into_inner);
        match &*group {
            Some(group) => in_group(group),
            None => {
                drop::<RwLockReadGuard<'_, _>>(group);
                in_answer(self.own(index))
            }
        }
    }

    /// The answer to a call that was moved out.
    fn own(&self, index: u32) -> &Told {
        let own = self.own.get().expect("the group is given up when they are here");
        let at = own.binary_search_by_key(&index, |&(index, _)| index);
        &own[at.expect("a call of this share")].1
    }

    /// Whether a call came to its end with its epoch, as far as that can be seen without waiting
    /// for anything.
    pub(crate) fn is_answered(&self, index: u32) -> bool {
        self.own.get().is_some()
            || self
                .group
                .try_read()
                .is_ok_and(|group| group.as_ref().is_some_and(|group| group.is_in_outcome(index)))
    }

    /// Why an answer must not be looked for: a procedure would come to something else when it runs
    /// again, and in a child of `fork` there are no answers, and locks that are never released.
    pub(crate) fn check_usable(&self) -> Result<()> {
        body::check_outside()?;
        if self.process.is_here() { Ok(()) } else { Err(Error::forked()) }
    }

    /// Copies the answers to these calls, which are all of the share, and gives up the group, if
    /// all of them are there and no thread looks for one at this moment. Whether that is done.
    fn settle(&self, calls: &[u32]) -> bool {
        let Ok(mut group) = self.group.try_write() else { return false };
        let Some(of) = &*group else { return true };
        let Some(own) = of.copies(calls) else { return false };
        self.own.set(own).expect("answers are moved out once");
        let of = group.take();
        // The last share frees the outcome of an epoch, without a lock.
        drop(group);
        drop(of);
        true
    }
}

/// A share, and the indices of its calls, in order.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) share: Weak<Share>,
    pub(crate) calls: Vec<u32>,
}

/// Shares of the last epochs, and those of epochs before from which the group could not be moved
/// yet: some of their calls are deferred, or threads wait for them.
#[derive(Debug, Default)]
pub(crate) struct HeldShares {
    epochs: VecDeque<Vec<Held>>,
    older: Vec<Held>,
}

impl HeldShares {
    /// An epoch was answered, whose tickets hold these shares.
    pub(crate) fn answered(&mut self, shares: Vec<Held>) {
        self.epochs.push_back(shares);
        if self.epochs.len() > EPOCHS_LEFT {
            self.older.extend(self.epochs.pop_front().into_iter().flatten());
        }
        let is_held =
            |held: &Held| held.share.upgrade().is_some_and(|share| !share.settle(&held.calls));
        self.older.retain(is_held);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_gives_up_its_group_once_all_its_calls_are_answered() {
        let group = Arc::<Group>::default();
        let (of_group, share) = (Arc::downgrade(&group), Share::of(Arc::clone(&group)));
        let told = |byte| Told { output: Ok(Box::from([byte])), was_deferred: byte == 2 };
        let read = |index| {
            let in_group = |group: &Group| (true, group.try_read::<u8>(index));
            share.look(index, in_group, |told| (false, Some(told.read())))
        };
        let mut held = HeldShares::default();
        group.answer_one(3, told(1));
        held.answered(vec![Held { share: Arc::downgrade(&share), calls: vec![3, 5] }]);
        (0..2 * EPOCHS_LEFT).for_each(|_| held.answered(Vec::new()));
        assert!(matches!(read(3), (true, Some(Ok(1)))), "the other one has no answer yet");
        assert!(matches!(read(5), (true, None)));

        group.answer_one(5, told(2));
        drop(group);
        share.look(3, |_| held.answered(Vec::new()), |_| unreachable!("it is in the group"));
        assert!(of_group.upgrade().is_some(), "a thread looked for an answer");
        held.answered(Vec::new());
        assert!(of_group.upgrade().is_none());
        assert!(matches!(read(3), (false, Some(Ok(1)))));
        assert!(matches!(read(5), (false, Some(Ok(2)))));
        assert!(share.look(5, |_| false, |told| told.was_deferred) && share.is_answered(3));
        assert!(held.older.is_empty() && held.epochs.iter().all(Vec::is_empty));
    }
}
