//! Who has claimed what, and who waits for it.

use sql::ir::{ObjectId, Strength};
use sql::parse::LockMode;
use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{Hash as _, Hasher as _};
use std::ops::Bound;
use tokio::sync::oneshot;

/// What can be claimed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in super::super) enum Target {
    Relation(ObjectId),
    /// A row by its key, which begins with the table's id.
    Row(Vec<u8>),
}

/// How it is claimed. Rows and tables have modes of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Mode {
    Row(Strength),
    Relation(LockMode),
}

/// Who claims: a block, or a statement outside of blocks. Later ones have larger numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Owner {
    pub(super) number: u64,
    /// The number of its connection.
    pub(super) session: u64,
}

/// The sessions for whose other locks a session waits.
pub(super) type OtherWaits<'w> = &'w dyn Fn(u64) -> Vec<u64>;

/// Why one that waits goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Woken {
    /// It has the claim.
    Granted,
    /// It was in a circle, and does without.
    Without,
}

/// What came of the wish to wait.
pub(super) enum Waiting {
    /// It does not have to.
    Over(Woken),
    /// Told when it is over.
    For(oneshot::Receiver<Woken>),
}

struct Waiter {
    owner: Owner,
    mode: Mode,
    told: oneshot::Sender<Woken>,
}

/// The number of modes of a table.
const MODES: usize = 8;

/// What is claimed or waited for.
#[derive(Default)]
struct Place {
    /// The modes of each owner, as bits.
    held: BTreeMap<Owner, u8>,
    /// How many owners have each mode.
    counts: [u32; MODES],
    queue: VecDeque<Waiter>,
}

/// What an owner has, in the order in which it came to it, and what it waits for.
#[derive(Default)]
struct Owned {
    log: Vec<(Target, Mode)>,
    waits_for: Option<Target>,
}

/// The number of counters of releases.
const STAMPS: usize = 4_096;

/// All claims.
pub(super) struct Table {
    places: BTreeMap<Target, Place>,
    owners: BTreeMap<Owner, Owned>,
    /// The owners that wait, by their sessions.
    waiting: BTreeMap<u64, Owner>,
    /// How many releases there were, and of them the last one of any target with this hash.
    released: u64,
    stamps: Vec<u64>,
}

impl Mode {
    fn index(self) -> usize {
        match self {
            Mode::Row(strength) => strength as usize,
            Mode::Relation(mode) => mode as usize,
        }
    }

    fn bit(self) -> u8 {
        1 << self.index()
    }

    fn conflicts(self, other: Mode) -> bool {
        match (self, other) {
            (Mode::Row(own), Mode::Row(other)) => own.conflicts(other),
            (Mode::Relation(own), Mode::Relation(other)) => own.conflicts(other),
            _ => unreachable!("a target has modes of one kind"),
        }
    }

    /// The modes that others may not have beside it, as bits.
    fn conflicting(self) -> u8 {
        use Strength::{KeyShare, NoKeyUpdate, Share, Update};
        let add = |bits, mode: Mode| if self.conflicts(mode) { bits | mode.bit() } else { bits };
        match self {
            Mode::Row(_) => {
                [KeyShare, Share, NoKeyUpdate, Update].map(Mode::Row).into_iter().fold(0, add)
            }
            Mode::Relation(_) => LockMode::ALL.map(Mode::Relation).into_iter().fold(0, add),
        }
    }

    /// Whether who has these modes needs no more for this one.
    fn is_within(self, held: u8) -> bool {
        let stronger = |strength: Strength| u8::MAX << (strength as usize);
        match self {
            Mode::Row(strength) => held & stronger(strength) != 0,
            Mode::Relation(_) => held & self.bit() != 0,
        }
    }
}

fn slot(target: &Target) -> usize {
    let mut hasher = DefaultHasher::new();
    target.hash(&mut hasher);
    hasher.finish() as usize % STAMPS
}

impl Place {
    fn is_empty(&self) -> bool {
        self.held.is_empty() && self.queue.is_empty()
    }

    fn own(&self, owner: Owner) -> u8 {
        self.held.get(&owner).copied().unwrap_or_default()
    }

    /// Whether other owners have modes that exclude this one.
    fn is_held_against(&self, owner: Owner, mode: Mode) -> bool {
        let (own, conflicting) = (self.own(owner), mode.conflicting());
        let is_others = |at: usize| {
            let bit = 1 << at;
            conflicting & bit != 0 && self.counts[at] > u32::from(own & bit != 0)
        };
        (0..MODES).any(is_others)
    }

    /// Whether an owner must wait: others have it, or are before it.
    fn is_blocked(&self, owner: Owner, mode: Mode) -> bool {
        let is_before = |waiter: &Waiter| waiter.owner != owner && waiter.mode.conflicts(mode);
        self.is_held_against(owner, mode)
            || self.own(owner) == 0 && self.queue.iter().any(is_before)
    }

    fn add(&mut self, owner: Owner, mode: Mode) {
        let held = self.held.entry(owner).or_default();
        assert!(*held & mode.bit() == 0, "a mode is claimed once");
        *held |= mode.bit();
        self.counts[mode.index()] += 1;
    }

    fn remove(&mut self, owner: Owner, mode: Mode) {
        let held = self.held.get_mut(&owner).expect("what is released is held");
        assert!(*held & mode.bit() != 0, "what is released is held");
        *held &= !mode.bit();
        if *held == 0 {
            self.held.remove(&owner);
        }
        self.counts[mode.index()] -= 1;
    }

    /// Those that `owner` waits for.
    fn blockers(&self, owner: Owner) -> BTreeSet<Owner> {
        let Some(at) = self.queue.iter().position(|waiter| waiter.owner == owner) else {
            return BTreeSet::new();
        };
        let (mode, has_some) = (self.queue[at].mode, self.own(owner) != 0);
        let conflicting = mode.conflicting();
        let holders = self.held.iter().filter(|(_, held)| **held & conflicting != 0);
        let before = self.queue.iter().take(if has_some { 0 } else { at });
        let before = before.filter(|waiter| waiter.mode.conflicts(mode));
        let all = holders.map(|(holder, _)| *holder).chain(before.map(|waiter| waiter.owner));
        all.filter(|other| *other != owner).collect()
    }
}

impl Table {
    pub(super) fn new() -> Table {
        let (places, owners, waiting) = Default::default();
        Table { places, owners, waiting, released: 0, stamps: vec![0; STAMPS] }
    }

    /// How many releases there were.
    pub(super) fn released(&self) -> u64 {
        self.released
    }

    /// Whether a target was released after so many releases. Another one may be taken for it.
    pub(super) fn was_released(&self, target: &Target, since: u64) -> bool {
        self.stamps[slot(target)] > since
    }

    /// How many claims an owner has.
    pub(super) fn count(&self, owner: Owner) -> usize {
        self.owners.get(&owner).map_or(0, |owned| owned.log.len())
    }

    /// Whether an owner would have to wait.
    pub(super) fn is_blocked(&self, owner: Owner, target: &Target, mode: Mode) -> bool {
        self.places
            .get(target)
            .is_some_and(|place| !mode.is_within(place.own(owner)) && place.is_blocked(owner, mode))
    }

    /// Whether an owner has a claim.
    pub(super) fn has(&self, owner: Owner, target: &Target, mode: Mode) -> bool {
        self.places.get(target).is_some_and(|place| mode.is_within(place.own(owner)))
    }

    /// Claims, if nothing has to be waited for. Returns whether the owner has the claim.
    pub(super) fn claim(&mut self, owner: Owner, target: &Target, mode: Mode) -> bool {
        if self.has(owner, target, mode) {
            return true;
        }
        if self.is_blocked(owner, target, mode) {
            return false;
        }
        self.places.entry(target.clone()).or_default().add(owner, mode);
        self.owners.entry(owner).or_default().log.push((target.clone(), mode));
        true
    }

    /// Claims, or waits behind those that wait already.
    pub(super) fn wait(
        &mut self,
        owner: Owner,
        target: &Target,
        mode: Mode,
        others: OtherWaits<'_>,
    ) -> Waiting {
        if self.claim(owner, target, mode) {
            return Waiting::Over(Woken::Granted);
        }
        let (told, mut over) = oneshot::channel();
        let place = self.places.get_mut(target).expect("another owner has it");
        let waiter = Waiter { owner, mode, told };
        // Who has a weaker claim already cannot wait behind those that wait for its end.
        match place.own(owner) {
            0 => place.queue.push_back(waiter),
            _ => place.queue.push_front(waiter),
        }
        self.owners.entry(owner).or_default().waits_for = Some(target.clone());
        self.waiting.insert(owner.session, owner);
        self.break_circles(owner.session, others);
        over.try_recv().map_or(Waiting::For(over), Waiting::Over)
    }

    /// Ends all circles of sessions that wait for each other, and for whom this one waits: of each
    /// the youngest owner that waits for a claim does without it. A circle of other locks stays.
    pub(super) fn break_circles(&mut self, session: u64, others: OtherWaits<'_>) {
        while let Some(youngest) = self.youngest_of_circle(session, others) {
            let told = self.end_wait(youngest).expect("it waits, as it is in a circle");
            // Nothing hears it any more if this fails.
            let _ = told.send(Woken::Without);
        }
    }

    /// The youngest owner that waits for a claim in a circle of sessions.
    fn youngest_of_circle(&self, session: u64, others: OtherWaits<'_>) -> Option<Owner> {
        let mut path: Vec<(u64, Vec<u64>)> = vec![(session, self.blockers(session, others))];
        let mut seen = BTreeSet::from([session]);
        while let Some((_, next)) = path.last_mut() {
            let Some(other) = next.pop() else {
                path.pop();
                continue;
            };
            if other == session {
                let waiting = path.iter().filter_map(|(session, _)| self.waiting.get(session));
                if let Some(youngest) = waiting.max() {
                    return Some(*youngest);
                }
            } else if seen.insert(other) {
                path.push((other, self.blockers(other, others)));
            }
        }
        None
    }

    /// The sessions that a session waits for.
    fn blockers(&self, session: u64, others: OtherWaits<'_>) -> Vec<u64> {
        let mut all = others(session);
        if let Some(owner) = self.waiting.get(&session) {
            let target = self.owners.get(owner).and_then(|owned| owned.waits_for.as_ref());
            let place = target.and_then(|target| self.places.get(target));
            let own = place.into_iter().flat_map(|place| place.blockers(*owner));
            all.extend(own.map(|owner| owner.session));
        }
        all
    }

    /// Ends the waiting of an owner, if it waits.
    pub(super) fn end_wait(&mut self, owner: Owner) -> Option<oneshot::Sender<Woken>> {
        let target = self.owners.get_mut(&owner)?.waits_for.take()?;
        self.waiting.remove(&owner.session);
        self.forget_idle(owner);
        let place = self.places.get_mut(&target)?;
        let at = place.queue.iter().position(|waiter| waiter.owner == owner)?;
        let told = place.queue.remove(at).map(|waiter| waiter.told);
        self.grant(&target);
        told
    }

    /// Releases the claims of an owner but for the first ones.
    pub(super) fn release(&mut self, owner: Owner, first: usize) {
        let Some(owned) = self.owners.get_mut(&owner) else { return };
        let freed = owned.log.split_off(first.min(owned.log.len()));
        self.forget_idle(owner);
        for (target, mode) in freed.into_iter().rev() {
            self.released += 1;
            self.stamps[slot(&target)] = self.released;
            self.places.get_mut(&target).expect("it is claimed").remove(owner, mode);
            self.grant(&target);
        }
    }

    fn forget_idle(&mut self, owner: Owner) {
        let is_idle = |owned: &Owned| owned.log.is_empty() && owned.waits_for.is_none();
        if self.owners.get(&owner).is_some_and(is_idle) {
            self.owners.remove(&owner);
        }
    }

    /// Gives a target to those that wait for it and need wait no more, in their order.
    fn grant(&mut self, target: &Target) {
        let Some(place) = self.places.get_mut(target) else { return };
        let (mut kept, mut unheard) = (VecDeque::<Waiter>::new(), Vec::new());
        for waiter in std::mem::take(&mut place.queue) {
            let Waiter { owner, mode, .. } = waiter;
            let is_behind =
                place.own(owner) == 0 && kept.iter().any(|before| before.mode.conflicts(mode));
            if is_behind || place.is_held_against(owner, mode) {
                kept.push_back(waiter);
                continue;
            }
            let owned = self.owners.get_mut(&owner).expect("it waits");
            owned.waits_for = None;
            self.waiting.remove(&owner.session);
            if waiter.told.send(Woken::Granted).is_ok() {
                place.add(owner, mode);
                owned.log.push((target.clone(), mode));
            } else {
                unheard.push(owner);
            }
        }
        place.queue = kept;
        if place.is_empty() {
            self.places.remove(target);
        }
        unheard.into_iter().for_each(|owner| self.forget_idle(owner));
    }

    /// The keys of rows of a table that others have claimed against this mode, in their order; at
    /// most `max`, and whether there are more.
    pub(super) fn claimed_rows(
        &self,
        relation: ObjectId,
        mode: Mode,
        max: usize,
    ) -> (Vec<Vec<u8>>, bool) {
        let prefix = relation.to_bytes();
        let from = (Bound::Included(Target::Row(prefix.to_vec())), Bound::Unbounded);
        let conflicting = mode.conflicting();
        let mut keys = Vec::new();
        for (target, place) in self.places.range(from) {
            let Target::Row(key) = target else { continue };
            if !key.starts_with(&prefix) {
                break;
            }
            if place.held.values().any(|held| held & conflicting != 0) {
                if keys.len() == max {
                    return (keys, true);
                }
                keys.push(key.clone());
            }
        }
        (keys, false)
    }

    /// Whether nothing is claimed or waited for.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty() && self.owners.is_empty() && self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Owner = Owner { number: 1, session: 10 };
    const B: Owner = Owner { number: 2, session: 30 };
    const C: Owner = Owner { number: 3, session: 20 };
    const UPDATE: Mode = Mode::Row(Strength::Update);
    const SHARE: Mode = Mode::Row(Strength::Share);

    /// No other locks.
    const NONE: OtherWaits<'static> = &|_| Vec::new();

    fn row(number: u8) -> Target {
        Target::Row([&ObjectId::new(7).to_bytes()[..], &[number]].concat())
    }

    fn waits(waiting: Waiting) -> oneshot::Receiver<Woken> {
        match waiting {
            Waiting::For(over) => over,
            Waiting::Over(woken) => panic!("it is over: {woken:?}"),
        }
    }

    #[test]
    fn a_claim_is_given_to_those_that_wait_in_their_order() {
        let mut table = Table::new();
        assert!(table.claim(A, &row(1), UPDATE) && table.claim(A, &row(1), SHARE));
        assert!(!table.claim(B, &row(1), SHARE) && table.claim(B, &row(2), SHARE));
        let mut b = waits(table.wait(B, &row(1), SHARE, NONE));
        let mut c = waits(table.wait(C, &row(1), UPDATE, NONE));
        let since = table.released();
        table.release(A, 0);
        assert_eq!(b.try_recv(), Ok(Woken::Granted));
        assert!(c.try_recv().is_err(), "it is behind");
        assert!(!table.claim(A, &row(1), SHARE), "who comes later waits behind it");
        assert!(table.was_released(&row(1), since) && !table.was_released(&row(1), since + 1));
        table.release(B, 1);
        assert_eq!(c.try_recv(), Ok(Woken::Granted));
        assert!(table.has(B, &row(2), SHARE), "what was claimed before the mark stays");
        table.release(B, 0);
        table.release(C, 0);
        assert!(table.is_empty());
    }

    #[test]
    fn who_ends_waiting_lets_those_behind_it_go_on() {
        let mut table = Table::new();
        assert!(table.claim(A, &row(1), SHARE));
        let b = waits(table.wait(B, &row(1), UPDATE, NONE));
        let mut c = waits(table.wait(C, &row(1), SHARE, NONE));
        drop(b);
        assert!(table.end_wait(B).is_some());
        assert_eq!(c.try_recv(), Ok(Woken::Granted));
        // One that is not heard any more is passed over.
        drop(waits(table.wait(B, &row(1), UPDATE, NONE)));
        table.release(A, 0);
        table.release(C, 0);
        assert!(!table.has(B, &row(1), UPDATE));
        table.end_wait(B);
        assert!(table.is_empty());
    }

    #[test]
    fn the_youngest_of_a_circle_does_without() {
        let mut table = Table::new();
        for (owner, number) in [(A, 1), (B, 2), (C, 3)] {
            assert!(table.claim(owner, &row(number), UPDATE));
        }
        let mut b = waits(table.wait(B, &row(3), UPDATE, NONE));
        let mut c = waits(table.wait(C, &row(1), UPDATE, NONE));
        let mut a = waits(table.wait(A, &row(2), UPDATE, NONE));
        assert_eq!(c.try_recv(), Ok(Woken::Without));
        assert!(a.try_recv().is_err() && b.try_recv().is_err());
        table.release(C, 0);
        assert_eq!(b.try_recv(), Ok(Woken::Granted));
        table.release(B, 0);
        assert_eq!(a.try_recv(), Ok(Woken::Granted));
        table.release(A, 0);
        assert!(table.is_empty());
        // The youngest comes last.
        assert!(table.claim(A, &row(1), SHARE) && table.claim(B, &row(1), SHARE));
        let mut a = waits(table.wait(A, &row(1), UPDATE, NONE));
        assert!(matches!(table.wait(B, &row(1), UPDATE, NONE), Waiting::Over(Woken::Without)));
        table.release(B, 0);
        assert_eq!(a.try_recv(), Ok(Woken::Granted));
        table.release(A, 0);
        assert!(table.is_empty());
    }

    #[test]
    fn a_circle_with_other_locks_ends_by_a_claim() {
        let mut table = Table::new();
        assert!(table.claim(A, &row(1), UPDATE));
        // The owner of the row waits for another lock, which the session of who wants the row has.
        let others = |session| if session == A.session { vec![B.session] } else { Vec::new() };
        assert!(matches!(table.wait(B, &row(1), UPDATE, &others), Waiting::Over(Woken::Without)));
        let mut b = waits(table.wait(B, &row(1), UPDATE, NONE));
        table.break_circles(C.session, &others);
        assert!(b.try_recv().is_err(), "no circle goes through this session");
        table.break_circles(A.session, &others);
        assert_eq!(b.try_recv(), Ok(Woken::Without));
        // One without claims stays.
        table.break_circles(A.session, &|_| vec![A.session]);
        table.release(A, 0);
        assert!(table.is_empty());
    }

    #[test]
    fn claimed_rows_of_a_table_are_listed() {
        let mut table = Table::new();
        for number in 0..5 {
            table.claim(A, &row(number), if number == 3 { SHARE } else { UPDATE });
        }
        table.claim(A, &Target::Row(ObjectId::new(8).to_bytes().to_vec()), UPDATE);
        let (id, share) = (ObjectId::new(7), Mode::Row(Strength::KeyShare));
        let (keys, has_more) = table.claimed_rows(id, UPDATE, 9);
        assert_eq!((keys.len(), has_more), (5, false));
        assert!(table.claimed_rows(id, UPDATE, 4).1);
        assert_eq!(table.claimed_rows(id, share, 4).0.len(), 4);
        assert!(table.claimed_rows(ObjectId::new(6), UPDATE, 4).0.is_empty());
    }
}
