//! Checks of foreign keys that wait for COMMIT, or for SET CONSTRAINTS IMMEDIATE.
//!
//! A check that waits has values only, no row: at its time either a parent has them, or no child
//! does. So it stays right whatever the block makes of its rows meanwhile.

use crate::ir::{Deferral, ForeignKey, Relation};
use std::collections::BTreeMap;
use values::Datum;

/// Which side of a foreign key a statement has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Children have new values.
    Child,
    /// A parent with these values has gone.
    Parent,
}

/// A check that may wait.
#[derive(Clone, Copy, Debug)]
pub struct KeyCheck<'a> {
    /// The tables of the statement's keys.
    pub tables: &'a [Relation],
    /// The key.
    pub key: &'a ForeignKey,
    /// The values of the side that has changed.
    pub values: &'a [Datum],
    /// What has changed.
    pub side: Side,
}

/// When deferrable constraints are checked, as SET CONSTRAINTS says in a block.
#[derive(Clone, Debug, Default)]
pub(super) struct Modes {
    /// Whether those without a mode of their own are deferred; `None` for as they were defined.
    all: Option<bool>,
    named: BTreeMap<String, bool>,
}

impl Modes {
    fn defers(&self, key: &ForeignKey) -> bool {
        let initially = key.deferral == Deferral::Deferred;
        let stated = self.named.get(&key.name).copied().or(self.all);
        key.deferral != Deferral::No && stated.unwrap_or(initially)
    }
}

/// A foreign key with its tables: the child is the first.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) tables: [Relation; 2],
    pub(super) key: ForeignKey,
}

impl Group {
    fn is_of(&self, check: &KeyCheck<'_>) -> bool {
        let id = |place: u16| check.tables[usize::from(place)].id;
        self.key.name == check.key.name
            && self.tables[0].id == id(check.key.child)
            && self.tables[1].id == id(check.key.parent)
    }
}

/// A check that waits.
#[derive(Debug)]
pub(super) struct Waiting {
    group: usize,
    pub(super) values: Vec<Datum>,
    pub(super) side: Side,
    /// Whether SET CONSTRAINTS has made it.
    is_made: bool,
}

/// What a block remembers of constraints.
#[derive(Debug, Default)]
pub(super) struct Deferred {
    modes: Modes,
    groups: Vec<Group>,
    /// The first group that belongs to tables as they are now.
    first_current: usize,
    waiting: Vec<Waiting>,
}

impl Deferred {
    /// Keeps a check for later, if its constraint is deferred. Returns whether it is.
    pub(super) fn take(&mut self, check: &KeyCheck<'_>) -> bool {
        if !self.modes.defers(check.key) {
            return false;
        }
        let current = self.groups[self.first_current..].iter().rposition(|own| own.is_of(check));
        let group = current.map_or(self.groups.len(), |at| self.first_current + at);
        if group == self.groups.len() {
            let table = |place: u16| check.tables[usize::from(place)].clone();
            let tables = [table(check.key.child), table(check.key.parent)];
            let key = ForeignKey { child: 0, parent: 1, ..check.key.clone() };
            self.groups.push(Group { tables, key });
        }
        let values = check.values.to_vec();
        self.waiting.push(Waiting { group, values, side: check.side, is_made: false });
        true
    }

    /// Forgets the check that was kept last.
    pub(super) fn take_back(&mut self) {
        self.waiting.pop();
    }

    /// Checks at these places need no more waiting.
    pub(super) fn make_known(&mut self, made: &[usize]) {
        made.iter().for_each(|at| self.waiting[*at].is_made = true);
    }

    /// Checks that were made wait again.
    pub(super) fn unmake(&mut self, made: &[usize]) {
        made.iter().for_each(|at| self.waiting[*at].is_made = false);
    }

    /// Replaces the modes. Returns those before.
    pub(super) fn set_modes(&mut self, modes: Modes) -> Modes {
        std::mem::replace(&mut self.modes, modes)
    }

    /// The modes behind SET CONSTRAINTS of these names, or of all if there are none.
    pub(super) fn modes_with(&self, names: &[String], is_deferred: bool) -> Modes {
        if names.is_empty() {
            return Modes { all: Some(is_deferred), named: BTreeMap::new() };
        }
        let mut modes = self.modes.clone();
        modes.named.extend(names.iter().map(|name| (name.clone(), is_deferred)));
        modes
    }

    /// Tables may change from now on; those of checks that wait do not.
    pub(super) fn tables_change(&mut self) {
        self.first_current = self.groups.len();
    }

    /// The constraints of which checks wait, each with its child and its parent.
    pub(super) fn constraints(&self) -> impl Iterator<Item = (&str, &[Relation; 2])> {
        let waits = |at: usize| self.waiting.iter().any(|own| own.group == at && !own.is_made);
        let waiting = self.groups.iter().enumerate().filter(move |(at, _)| waits(*at));
        waiting.map(|(_, group)| (group.key.name.as_str(), &group.tables))
    }

    /// The checks that are due, in order, each with its place: all of them at COMMIT.
    pub(super) fn due(&self, is_commit: bool) -> impl Iterator<Item = (usize, &Group, &Waiting)> {
        let group = |waiting: &Waiting| &self.groups[waiting.group];
        let all = self.waiting.iter().enumerate().filter(|(_, waiting)| !waiting.is_made);
        let all = all.map(move |(at, waiting)| (at, group(waiting), waiting));
        all.filter(move |(_, group, _)| is_commit || !self.modes.defers(&group.key))
    }
}
