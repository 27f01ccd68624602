//! A check, in debug builds only, that no index is read while it changes.

#[cfg(debug_assertions)]
use std::sync::atomic::{AtomicIsize, Ordering};

/// Counts who is inside; costs nothing where debug assertions are off.
#[derive(Debug, Default)]
pub(super) struct PhaseCheck {
    /// Readers if positive, changers if negative.
    #[cfg(debug_assertions)]
    inside: AtomicIsize,
}

/// Someone inside; leaves when dropped.
#[derive(Debug)]
#[must_use = "the check ends when this is dropped"]
pub(super) struct Inside<'c> {
    #[cfg(debug_assertions)]
    check: Option<(&'c AtomicIsize, isize)>,
    #[cfg(not(debug_assertions))]
    check: std::marker::PhantomData<&'c ()>,
}

impl Inside<'_> {
    /// Of no index.
    pub(super) const NOWHERE: Self = Self {
        #[cfg(debug_assertions)]
        check: None,
        #[cfg(not(debug_assertions))]
        check: std::marker::PhantomData,
    };
}

impl PhaseCheck {
    /// Enters to read, along with other readers.
    #[inline]
    pub(super) fn read(&self) -> Inside<'_> {
        self.enter(1)
    }

    /// Enters to change, along with others that change what is their own or under a lock.
    #[inline]
    pub(super) fn change(&self) -> Inside<'_> {
        self.enter(-1)
    }

    /// Enters to change all of it, alone.
    #[inline]
    pub(super) fn change_alone(&self) -> Inside<'_> {
        self.enter(ALONE)
    }

    #[cfg(debug_assertions)]
    fn enter(&self, step: isize) -> Inside<'_> {
        // Relaxed, so that the check orders nothing that the barriers should.
        let before = self.inside.fetch_add(step, Ordering::Relaxed);
        let is_free = before == 0 || (before > 0 && step > 0);
        let is_shared = before < 0 && before > ALONE && step == -1;
        assert!(is_free || is_shared, "an index changes in phases of its own");
        Inside { check: Some((&self.inside, step)) }
    }

    #[cfg(not(debug_assertions))]
    #[inline]
    fn enter(&self, _step: isize) -> Inside<'_> {
        Inside { check: std::marker::PhantomData }
    }
}

/// Far below any number of workers that change together.
const ALONE: isize = -(1 << 32);

#[cfg(debug_assertions)]
impl Drop for Inside<'_> {
    fn drop(&mut self) {
        if let Some((inside, step)) = self.check {
            inside.fetch_sub(step, Ordering::Relaxed);
        }
    }
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::*;

    #[test]
    fn readers_share_and_changers_share_but_not_with_each_other() {
        let check = PhaseCheck::default();
        let readers = (check.read(), check.read());
        drop(readers);
        let changers = (check.change(), check.change());
        drop(changers);
        drop(check.change_alone());
        drop(check.read());
    }

    #[test]
    #[should_panic(expected = "phases of its own")]
    fn reading_while_it_changes_is_a_bug() {
        let check = PhaseCheck::default();
        let _changer = check.change();
        let _reader = check.read();
    }
}
