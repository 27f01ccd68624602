//! A buffer of writes over other rows: a statement's writes are all there or none, and savepoints
//! go back.

use super::deferred::{Deferred, KeyCheck, Modes};
use super::pass::Pass;
use super::rows::{Entry, Rows, Scan};
use super::temporary::is_temporary_key;
use super::weight;
use crate::ir::{Claim, ObjectId, Relation, Space};
use std::collections::BTreeMap;
use std::ops::Bound;
use values::Result;

type Place = (Space, Vec<u8>);

/// The bytes of a check that waits, without its values.
const CHECK_BYTES: usize = 64;

/// Writes by key; `None` deletes.
pub type Writes = BTreeMap<(Space, Vec<u8>), Option<Vec<u8>>>;

/// What listeners of a channel are told: the channel and the payload.
pub type Notice = (String, String);

#[derive(Debug)]
enum Undo {
    /// What a write replaced.
    Write(Place, Option<Option<Vec<u8>>>),
    Notice,
    /// A check that waits.
    Check,
    /// Places of checks that were made.
    Made(Vec<usize>),
    /// The modes of constraints before.
    Modes(Modes),
}

/// Writes without the rows that they are over, for as long as those are others from time to time.
#[derive(Debug, Default)]
pub struct Buffer {
    writes: Writes,
    /// What is undone to go back, for savepoints: the newest last.
    undo: Vec<Undo>,
    notices: Vec<Notice>,
    /// The bytes of all keys and rows that were written.
    bytes: usize,
    /// The checks of constraints that wait, of a block; `None` of a statement.
    pub(super) deferred: Option<Deferred>,
}

impl Buffer {
    /// The buffer of a block, at whose COMMIT deferred constraints are checked.
    pub fn of_block() -> Buffer {
        Buffer { deferred: Some(Deferred::default()), ..Buffer::default() }
    }

    /// SET CONSTRAINTS of these names, or of all if there are none. Checks that wait still do.
    pub fn set_constraints(&mut self, names: &[String], is_deferred: bool) {
        let Some(deferred) = &mut self.deferred else { return };
        let modes = deferred.modes_with(names, is_deferred);
        let before = deferred.set_modes(modes);
        self.undo.push(Undo::Modes(before));
    }

    /// The constraints of which checks wait, each with its child and its parent.
    pub fn waiting(&self) -> impl Iterator<Item = (&str, &[Relation; 2])> {
        self.deferred.iter().flat_map(Deferred::constraints)
    }

    /// A definition changes tables: none of those of checks that wait.
    pub fn tables_change(&mut self) {
        self.deferred.iter_mut().for_each(Deferred::tables_change);
    }

    pub(super) fn were_made(&mut self, made: Vec<usize>) {
        let Some(deferred) = &mut self.deferred else { return };
        deferred.make_known(&made);
        self.undo.push(Undo::Made(made));
    }

    /// A mark to come back to.
    pub fn savepoint(&self) -> usize {
        self.undo.len()
    }

    /// Forgets all writes since the mark. Numbers of sequences stay taken.
    pub fn roll_back(&mut self, savepoint: usize) {
        assert!(savepoint <= self.undo.len(), "a savepoint ends with the ones before it");
        for undo in self.undo.drain(savepoint..).rev() {
            match undo {
                Undo::Write(place, Some(before)) => drop(self.writes.insert(place, before)),
                Undo::Write(place, None) => drop(self.writes.remove(&place)),
                Undo::Notice => drop(self.notices.pop()),
                Undo::Check => self.deferred.iter_mut().for_each(Deferred::take_back),
                Undo::Made(made) => {
                    self.deferred.iter_mut().for_each(|deferred| deferred.unmake(&made));
                }
                Undo::Modes(before) => {
                    self.deferred.as_mut().map(|deferred| deferred.set_modes(before));
                }
            }
        }
    }

    /// Whether listeners are told anything.
    pub fn notifies(&self) -> bool {
        !self.notices.is_empty()
    }

    /// Takes out what listeners are told, for good.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        self.undo.retain(|undo| !matches!(undo, Undo::Notice));
        std::mem::take(&mut self.notices)
    }

    /// The writes, in the order of their keys.
    pub fn writes(&self) -> &Writes {
        &self.writes
    }

    /// The writes to tables that are not temporary, in the order of their keys.
    pub fn lasting_writes(&self) -> impl Iterator<Item = (&(Space, Vec<u8>), &Option<Vec<u8>>)> {
        self.writes.iter().filter(|((space, key), _)| !is_temporary_key(*space, key))
    }

    /// Whether it writes to tables that are not temporary.
    pub fn has_lasting_writes(&self) -> bool {
        // In each space but the catalog's the keys of temporary tables are the last.
        let mut from = self.writes.first_key_value().map(|(place, _)| place.clone());
        while let Some(place) = from {
            if !is_temporary_key(place.0, &place.1) {
                return true;
            }
            let behind = (Bound::Excluded((place.0, vec![u8::MAX; 5])), Bound::Unbounded);
            from = self.writes.range(behind).next().map(|(place, _)| place.clone());
        }
        false
    }

    /// What was written to temporary tables since a mark, in the order of keys.
    pub fn temporary_since(&self, mark: usize) -> Writes {
        let place = |undo: &Undo| match undo {
            Undo::Write(place, _) if is_temporary_key(place.0, &place.1) => Some(place.clone()),
            _ => None,
        };
        let places = self.undo[mark..].iter().filter_map(place);
        places.filter_map(|place| self.writes.get_key_value(&place)).map(own).collect()
    }

    /// The bytes of all keys and rows that were written, also of those that were rolled back.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes these writes out, for good; savepoints of before are none any more.
    pub fn take_writes(&mut self, is_taken: impl Fn(Space, &[u8]) -> bool) -> Writes {
        let Buffer { writes: all, notices, deferred, .. } = std::mem::take(self);
        self.deferred = deferred;
        let (taken, left) = all.into_iter().partition(|((space, key), _)| is_taken(*space, key));
        let left: Writes = left;
        let bytes = |((_, key), row): (&Place, &Option<Vec<u8>>)| {
            key.len() + row.as_ref().map_or(0, Vec::len)
        };
        self.bytes = left.iter().map(bytes).sum();
        self.writes = left;
        notices.iter().for_each(|(channel, payload)| self.notify(channel, payload));
        taken
    }

    fn write(&mut self, space: Space, key: &[u8], row: Option<Vec<u8>>) {
        self.bytes += key.len() + row.as_ref().map_or(0, Vec::len);
        let place = (space, key.to_vec());
        let before = self.writes.insert(place.clone(), row);
        self.undo.push(Undo::Write(place, before));
    }

    /// Keeps a check for later, if it is a block's and its constraint is deferred.
    fn defer(&mut self, check: &KeyCheck<'_>) -> bool {
        let is_taken = self.deferred.as_mut().is_some_and(|deferred| deferred.take(check));
        if is_taken {
            self.bytes += weight::heap_bytes(check.values) + CHECK_BYTES;
            self.undo.push(Undo::Check);
        }
        is_taken
    }

    fn notify(&mut self, channel: &str, payload: &str) {
        self.bytes += channel.len() + payload.len() + size_of::<Notice>();
        self.notices.push((channel.to_owned(), payload.to_owned()));
        self.undo.push(Undo::Notice);
    }
}

fn own((place, row): (&Place, &Option<Vec<u8>>)) -> (Place, Option<Vec<u8>>) {
    (place.clone(), row.clone())
}

/// Rows with writes that are not in them yet.
pub struct Overlay<'a> {
    below: &'a mut dyn Rows,
    buffer: Buffer,
    /// Whether reads see the writes.
    are_seen: bool,
}

impl<'a> Overlay<'a> {
    /// No writes over these rows.
    pub fn new(below: &'a mut dyn Rows) -> Overlay<'a> {
        Overlay::over(below, Buffer::default())
    }

    /// Earlier writes over these rows.
    pub fn over(below: &'a mut dyn Rows, buffer: Buffer) -> Overlay<'a> {
        Overlay { below, buffer, are_seen: true }
    }

    /// The writes, for other rows below.
    pub fn into_buffer(self) -> Buffer {
        self.buffer
    }

    /// Writes everything to the rows below.
    pub fn apply(self) -> Result<()> {
        for ((space, key), row) in self.buffer.writes {
            match row {
                Some(row) => self.below.put(space, &key, &row)?,
                None => self.below.delete(space, &key)?,
            }
        }
        for (channel, payload) in self.buffer.notices {
            self.below.notify(&channel, &payload)?;
        }
        Ok(())
    }

    /// The writes, in the order of their keys.
    pub fn writes(&self) -> &Writes {
        &self.buffer.writes
    }

    /// The own writes with keys from `begin` on and before `end`, in the order of a scan.
    fn own(
        &self,
        space: Space,
        begin: Vec<u8>,
        end: Option<Bound<Vec<u8>>>,
        is_backward: bool,
    ) -> Vec<(&Place, &Option<Vec<u8>>)> {
        let is_empty = match &end {
            Some(Bound::Excluded(end)) => begin >= *end,
            Some(Bound::Included(end)) => begin > *end,
            _ => false,
        };
        let end = end.map_or(Bound::Unbounded, |end| end.map(|key| (space, key)));
        let writes = &self.buffer.writes;
        let own = (!is_empty).then(|| writes.range((Bound::Included((space, begin)), end)));
        let own = own.into_iter().flatten().take_while(|((own, _), _)| *own == space);
        let mut own: Vec<_> = own.collect();
        if is_backward {
            own.reverse();
        }
        own
    }
}

impl Rows for Overlay<'_> {
    fn get(&mut self, space: Space, key: &[u8]) -> Result<Option<Vec<u8>>> {
        if self.are_seen
            && !self.buffer.writes.is_empty()
            && let Some(row) = self.buffer.writes.get(&(space, key.to_vec()))
        {
            return Ok(row.clone());
        }
        self.below.get(space, key)
    }

    fn scan(&mut self, scan: Scan<'_>, found: &mut Vec<Entry>) -> Result<()> {
        if !self.are_seen {
            return self.below.scan(scan, found);
        }
        let Scan { space, rows_max, is_backward, .. } = scan;
        let target = found.len() + rows_max;
        let (mut from, mut to) = (scan.from.to_vec(), scan.to.map(<[u8]>::to_vec));
        loop {
            let mut below = Vec::new();
            let wanted = target - found.len();
            let rest = Scan { from: &from, to: to.as_deref(), rows_max: wanted, ..scan };
            self.below.scan(rest, &mut below)?;
            assert!(below.len() <= wanted, "rows below give no more than was asked for");
            // Own writes count up to where the rows below are known.
            let more = below.len() == wanted;
            let known = if more { below.last().map(|(key, _)| key.clone()) } else { None };
            let (begin, end) = match (&known, is_backward) {
                (Some(known), true) => (known.clone(), to.clone().map(Bound::Excluded)),
                (Some(known), false) => (from.clone(), Some(Bound::Included(known.clone()))),
                (None, _) => (from.clone(), to.clone().map(Bound::Excluded)),
            };
            let own = self.own(space, begin, end, is_backward);
            merge(below, own.into_iter(), is_backward, found);
            found.truncate(target);
            match known {
                Some(known) if found.len() < target => {
                    assert!(known >= from, "a scan finds no key before its first");
                    match is_backward {
                        true => to = Some(known),
                        false => from = [&known[..], &[0]].concat(),
                    }
                }
                _ => return Ok(()),
            }
        }
    }

    fn put(&mut self, space: Space, key: &[u8], row: &[u8]) -> Result<()> {
        self.buffer.write(space, key, Some(row.to_vec()));
        Ok(())
    }

    fn delete(&mut self, space: Space, key: &[u8]) -> Result<()> {
        self.buffer.write(space, key, None);
        Ok(())
    }

    fn next(&mut self, sequence: ObjectId) -> Result<u64> {
        self.below.next(sequence)
    }

    fn given(&mut self, sequence: ObjectId) -> Result<u64> {
        self.below.given(sequence)
    }

    fn pass(&mut self, pass: &Pass) -> Result<Option<Vec<u8>>> {
        self.below.pass(pass)
    }

    fn passed(&mut self, outcome: Vec<u8>) {
        self.below.passed(outcome);
    }

    fn passes_by(&mut self, key: &[u8], claim: &Claim) -> Result<bool> {
        self.below.passes_by(key, claim)
    }

    fn claim(&mut self, key: Vec<u8>, claim: &Claim) -> Result<()> {
        self.below.claim(key, claim)
    }

    fn see_writes(&mut self, are_seen: bool) -> bool {
        std::mem::replace(&mut self.are_seen, are_seen)
    }

    fn notify(&mut self, channel: &str, payload: &str) -> Result<()> {
        self.buffer.notify(channel, payload);
        Ok(())
    }

    fn defer(&mut self, check: &KeyCheck<'_>) -> Result<bool> {
        match self.buffer.deferred {
            Some(_) => Ok(self.buffer.defer(check)),
            None => self.below.defer(check),
        }
    }

    fn steps(&mut self, count: u64) -> Result<()> {
        self.below.steps(count)
    }
}

/// Both in the order of keys, or in the opposite one; own writes replace and delete.
fn merge<'a>(
    below: Vec<Entry>,
    own: impl Iterator<Item = (&'a Place, &'a Option<Vec<u8>>)>,
    is_backward: bool,
    found: &mut Vec<Entry>,
) {
    let mut below = below.into_iter().peekable();
    for ((_, key), row) in own {
        let is_before = |(other, _): &Entry| if is_backward { other > key } else { other < key };
        while let Some(entry) = below.next_if(is_before) {
            found.push(entry);
        }
        below.next_if(|(other, _)| other == key);
        if let Some(row) = row {
            found.push((key.clone(), row.clone()));
        }
    }
    found.extend(below);
}

#[cfg(test)]
mod tests {
    use super::super::rows::Memory;
    use super::*;

    /// All keys of a space, read in pages of `rows_max` rows.
    fn keys(rows: &mut dyn Rows, space: Space, rows_max: usize, is_backward: bool) -> Vec<u8> {
        let (mut keys, mut from, mut to) = (Vec::new(), vec![0], None::<Vec<u8>>);
        loop {
            let mut found = Vec::new();
            let scan = Scan { space, from: &from, to: to.as_deref(), rows_max, is_backward };
            rows.scan(scan, &mut found).unwrap();
            keys.extend(found.iter().map(|(key, _)| key[0]));
            match found.last() {
                Some((last, _)) if found.len() == rows_max && is_backward => {
                    to = Some(last.clone());
                }
                Some((last, _)) if found.len() == rows_max => from = [&last[..], &[0]].concat(),
                _ => return keys,
            }
        }
    }

    #[test]
    fn scans_see_own_writes_in_pages_of_any_size() {
        let space = Space::Row256;
        let mut memory = Memory::new(u64::MAX);
        for key in [1_u8, 3, 5, 7, 9] {
            memory.put(space, &[key], &[key]).unwrap();
        }
        let mut overlay = Overlay::new(&mut memory);
        for key in [1_u8, 3, 5] {
            overlay.delete(space, &[key]).unwrap();
        }
        for key in [0_u8, 4, 7, 8] {
            overlay.put(space, &[key], &[key + 100]).unwrap();
        }
        let expected: Vec<u8> = vec![0, 4, 7, 8, 9];
        for page in 1..8 {
            assert_eq!(keys(&mut overlay, space, page, false), expected, "pages of {page}");
            let backward: Vec<u8> = expected.iter().rev().copied().collect();
            assert_eq!(keys(&mut overlay, space, page, true), backward, "pages of {page}");
        }
        let mut buffer = overlay.into_buffer();
        buffer.roll_back(3);
        let mut overlay = Overlay::over(&mut memory, buffer);
        assert_eq!(overlay.get(space, &[7]).unwrap(), Some(vec![7]));
        assert_eq!(overlay.get(space, &[5]).unwrap(), None);
        let mut buffer = overlay.into_buffer();
        buffer.roll_back(0);
        let mut overlay = Overlay::over(&mut memory, buffer);
        assert_eq!(overlay.get(space, &[5]).unwrap(), Some(vec![5]));
    }
}
