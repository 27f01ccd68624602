//! The openings of a store: which of them wrote which epochs, and what two lists have in common.
//!
//! A store that lost epochs without a trace, as an older state that was put back or a disk that
//! lost writes, goes on with other epochs of the same numbers. Each opening that may write epochs
//! is noted with the first of them and a random number, durably before one of them is answered. So
//! two stores of an instance and a branch have the same epochs as far as their lists agree (S23).
//!
//! This must not know what an epoch is: the user of a device says which is the first.

use crate::epoch_number::EpochNumber;

/// Most openings that are kept.
pub(crate) const OPENINGS_MAX: usize = 1024;

/// An opening that may have written epochs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Opening {
    /// The first epoch that it may have written.
    pub first: EpochNumber,
    /// A random number.
    pub id: u64,
}

/// The openings that wrote the epochs of a database, from some epoch on. The firsts increase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Openings {
    from: EpochNumber,
    list: Vec<Opening>,
}

impl Openings {
    /// A list that knows nothing of the epochs before `from`, and of no opening yet.
    #[must_use]
    pub fn known_from(from: EpochNumber) -> Self {
        Self { from, list: Vec::new() }
    }

    /// A list that was stored; `None` if its firsts do not increase from `from` on, or if it is
    /// too long.
    pub(crate) fn of(from: EpochNumber, list: Vec<Opening>) -> Option<Self> {
        let is_sorted = list.windows(2).all(|pair| pair[0].first < pair[1].first);
        let begins = list.first().is_none_or(|opening| opening.first >= from);
        (is_sorted && begins && list.len() <= OPENINGS_MAX).then_some(Self { from, list })
    }

    /// The first epoch whose opening the list knows, if it has one.
    #[must_use]
    pub fn from(&self) -> EpochNumber {
        self.from
    }

    /// The openings, by their first epochs.
    #[must_use]
    pub fn list(&self) -> &[Opening] {
        &self.list
    }

    /// The last epoch that the newest opening found when it was noted.
    #[must_use]
    pub fn found_last(&self) -> Option<EpochNumber> {
        self.list.last().map(|opening| opening.first.previous())
    }

    /// Notes an opening. Those that began at its first epoch or later wrote nothing that is left.
    pub(crate) fn note(&mut self, opening: Opening) {
        self.list.retain(|earlier| earlier.first < opening.first);
        self.list.push(opening);
        self.from = self.from.min(opening.first);
        let dropped = self.list.len().saturating_sub(OPENINGS_MAX);
        if dropped > 0 {
            self.list.drain(..dropped);
            self.from = self.list[0].first;
        }
        assert!(self.list.is_sorted_by_key(|opening| opening.first), "openings are in order");
    }

    /// Drops the openings that wrote later epochs than `last` only.
    #[must_use]
    pub fn until(mut self, last: EpochNumber) -> Self {
        self.list.retain(|opening| opening.first <= last);
        self
    }

    /// The opening that wrote an epoch; `None` if that is not known.
    #[must_use]
    pub fn of_epoch(&self, epoch: EpochNumber) -> Option<Opening> {
        self.list.iter().rev().find(|opening| opening.first <= epoch).copied()
    }

    /// The first epoch, up to `last`, that another opening wrote here than there; `None` if there
    /// is none. Epochs before those that both lists know are not compared.
    #[must_use]
    pub fn first_difference(&self, other: &Self, last: EpochNumber) -> Option<EpochNumber> {
        let known = self.from.max(other.from)..=last;
        let of = |list: &Self| {
            let list = list.list.iter().copied().filter(|opening| known.contains(&opening.first));
            list.collect::<Vec<_>>()
        };
        let (here, there) = (of(self), of(other));
        let same = here.iter().zip(&there).take_while(|(a, b)| a == b).count();
        let firsts = [here.get(same), there.get(same)].into_iter().flatten();
        firsts.map(|opening| opening.first).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A list with an opening for each first epoch and number.
    fn list(from: u64, openings: &[(u64, u64)]) -> Openings {
        let mut list = Openings::known_from(EpochNumber(from));
        openings.iter().for_each(|&(first, id)| list.note(opening(first, id)));
        list
    }

    fn opening(first: u64, id: u64) -> Opening {
        Opening { first: EpochNumber(first), id }
    }

    #[test]
    fn s_23_an_opening_replaces_those_that_left_nothing() {
        let mut noted = list(1, &[(1, 7), (5, 8), (5, 9), (12, 10)]);
        assert_eq!(noted.list(), [opening(1, 7), opening(5, 9), opening(12, 10)]);
        noted.note(opening(4, 11));
        assert_eq!(noted.list(), [opening(1, 7), opening(4, 11)]);
        assert_eq!(noted.of_epoch(EpochNumber(3)), Some(opening(1, 7)));
        assert_eq!(noted.of_epoch(EpochNumber(0)), None);
        assert_eq!(noted.until(EpochNumber(3)).list(), [opening(1, 7)]);
    }

    #[test]
    fn s_23_lists_agree_up_to_an_epoch() {
        let difference = |a: &Openings, b: &Openings, last: u64| {
            let found = a.first_difference(b, EpochNumber(last));
            assert_eq!(found, b.first_difference(a, EpochNumber(last)));
            found.map(|epoch| epoch.0)
        };
        let store = list(1, &[(1, 7), (5, 8), (12, 9)]);
        for (copy, last, expected) in [
            (list(1, &[(1, 7), (5, 8)]), 11, None),
            (list(1, &[(1, 7), (5, 8)]), 12, Some(12)),
            (list(1, &[(1, 7), (5, 6)]), 4, None),
            (list(1, &[(1, 7), (5, 6)]), 5, Some(5)),
            (list(1, &[(1, 7)]), 11, Some(5)),
            (list(1, &[(1, 7), (3, 6)]), 11, Some(3)),
            (list(5, &[(5, 8)]), 11, None),
            (list(6, &[(7, 8)]), 11, Some(7)),
            (list(20, &[]), 19, None),
        ] {
            assert_eq!(difference(&store, &copy, last), expected, "{copy:?} up to {last}");
        }
    }

    #[test]
    fn s_23_the_oldest_openings_are_forgotten() {
        let mut noted = list(1, &[]);
        (1..=2000).for_each(|epoch| noted.note(opening(epoch, epoch)));
        assert_eq!((noted.list().len(), noted.from().0), (OPENINGS_MAX, 2001 - 1024));
        let copy = list(1, &[(1, 1)]);
        assert_eq!(noted.first_difference(&copy, EpochNumber(900)), None, "it is not known");
        assert_eq!(noted.first_difference(&copy, EpochNumber(1000)), Some(EpochNumber(977)));
    }
}
