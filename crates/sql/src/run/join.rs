//! Joins: for each row of the items so far, the rows of the next one that belong to it. A loop
//! walks over the items, so their number is no depth of calls, and a joined row is handed on as
//! soon as it is there.

use super::aggregate::identity;
use super::evaluate::{Evaluator, malformed};
use super::scan::{Found, find, find_for};
use crate::ir::{Expression, Item, ItemRows, Joins, Method};
use std::collections::BTreeMap;
use std::rc::Rc;
use values::{Datum, Result};

/// The joined rows that count, in canonical order; `enough` are enough.
pub(super) fn joined(
    joins: &Joins,
    evaluator: &mut Evaluator<'_>,
    enough: usize,
) -> Result<Vec<Vec<Datum>>> {
    let mut levels: Vec<Level<'_>> = joins.items.iter().map(Level::new).collect();
    let width = joins.items.iter().map(|item| usize::from(item.begin) + usize::from(item.width));
    let mut row = vec![Datum::Null; width.max().unwrap_or(0)];
    let mut answer = Answer { rows: Vec::new(), keys: Vec::new(), stated: &joins.stated };
    let Some(first) = levels.first_mut() else { return Err(malformed()) };
    first.open(&row, evaluator)?;
    let mut at = 0;
    loop {
        let is_last = at + 1 == levels.len();
        if levels[at].advance(&mut row, evaluator)? {
            if !is_last {
                at += 1;
                levels[at].open(&row, evaluator)?;
                continue;
            }
            answer.add(&row, &levels, evaluator)?;
            if answer.stated.is_empty() && answer.rows.len() >= enough {
                break;
            }
        } else if at > 0 && !levels[at].is_ending {
            at -= 1;
        } else if is_last {
            break;
        } else {
            // No rows are left before the next item: now come its rows without partners.
            at += 1;
            levels[at].end(&mut row, evaluator)?;
        }
    }
    Ok(answer.in_order())
}

/// Joined rows as they come.
struct Answer<'p> {
    rows: Vec<Vec<Datum>>,
    /// Where the rows belong, if they do not come in canonical order.
    keys: Vec<Vec<Place>>,
    stated: &'p [u16],
}

/// The place of an item's row among its rows; behind all others where it has none.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Number(usize),
    Key(Vec<u8>),
    Missing,
}

impl Answer<'_> {
    fn add(
        &mut self,
        row: &[Datum],
        levels: &[Level<'_>],
        evaluator: &mut Evaluator<'_>,
    ) -> Result<()> {
        evaluator.memory.add(row)?;
        self.rows.push(row.to_vec());
        if self.stated.is_empty() {
            return Ok(());
        }
        let mut key = Vec::with_capacity(self.stated.len());
        for at in self.stated {
            let place = levels.get(usize::from(*at)).ok_or_else(malformed)?.place();
            let bytes = if let Place::Key(key) = &place { key.len() } else { 0 };
            evaluator.memory.add_bytes(size_of::<Place>() + bytes)?;
            key.push(place);
        }
        self.keys.push(key);
        Ok(())
    }

    fn in_order(self) -> Vec<Vec<Datum>> {
        if self.stated.is_empty() {
            return self.rows;
        }
        let mut keyed: Vec<_> = self.keys.into_iter().zip(self.rows).collect();
        keyed.sort_by(|left, right| left.0.cmp(&right.0));
        keyed.into_iter().map(|(_, row)| row).collect()
    }
}

/// An item while rows are joined.
struct Level<'p> {
    item: &'p Item,
    /// All its rows, once they are collected.
    all: Option<Collected>,
    /// Those that may belong to the row before it.
    candidates: Candidates,
    /// How many of those were tried.
    tried: usize,
    /// The last candidate; `None` if there is NULL in its place.
    current: Option<usize>,
    is_matched: bool,
    /// Which of all its rows had a partner, if the others stay.
    matched: Vec<bool>,
    /// Whether all rows before it have been there.
    is_ending: bool,
    /// The memory that candidates take that were looked up.
    held: usize,
}

/// All rows of an item.
struct Collected {
    rows: Rc<Vec<Vec<Datum>>>,
    /// Their places by values.
    map: BTreeMap<Vec<u8>, Rc<Vec<usize>>>,
}

enum Candidates {
    None,
    All,
    Some(Rc<Vec<usize>>),
    Found(Vec<Found>),
    Queried(Rc<Vec<Vec<Datum>>>),
}

impl<'p> Level<'p> {
    fn new(item: &'p Item) -> Level<'p> {
        Level {
            item,
            all: None,
            candidates: Candidates::None,
            tried: 0,
            current: None,
            is_matched: false,
            matched: Vec::new(),
            is_ending: false,
            held: 0,
        }
    }

    /// Begins with the candidates for the row of the items before.
    fn open(&mut self, row: &[Datum], evaluator: &mut Evaluator<'_>) -> Result<()> {
        (self.tried, self.is_matched, self.current) = (0, false, None);
        self.candidates = match (&self.item.method, &self.item.rows) {
            (Method::Loop, _) => {
                self.collect(&[], evaluator)?;
                Candidates::All
            }
            (Method::Map { own, other }, _) => {
                self.collect(own, evaluator)?;
                let values = evaluator.values(other, row)?;
                let places = self.all.as_ref().and_then(|all| all.map.get(&identity(&values)));
                let has_null = values.iter().any(Datum::is_null);
                places.filter(|_| !has_null).cloned().map_or(Candidates::None, Candidates::Some)
            }
            (Method::Lookup, ItemRows::Table(source)) => {
                let before = self.release(evaluator);
                let found = find_for(source, row, evaluator, usize::MAX)?;
                self.held = evaluator.taken_bytes() - before;
                Candidates::Found(found)
            }
            (Method::Lookup, ItemRows::Query(number)) => {
                let before = self.release(evaluator);
                let found = evaluator.rows_within(*number, row, usize::MAX)?;
                self.held = evaluator.taken_bytes() - before;
                Candidates::Queried(found)
            }
        };
        Ok(())
    }

    /// The candidates of the row before are gone. What is taken without them.
    fn release(&mut self, evaluator: &mut Evaluator<'_>) -> usize {
        self.candidates = Candidates::None;
        let mark = evaluator.memory.mark() - std::mem::take(&mut self.held);
        evaluator.memory.release(mark);
        evaluator.taken_bytes()
    }

    fn collect(&mut self, own: &[Expression], evaluator: &mut Evaluator<'_>) -> Result<()> {
        if self.all.is_some() {
            return Ok(());
        }
        let rows = match &self.item.rows {
            ItemRows::Table(source) => {
                let found = find(source, evaluator, usize::MAX)?;
                Rc::new(found.into_iter().map(|found| found.row).collect())
            }
            ItemRows::Query(number) => evaluator.rows_of(*number, usize::MAX)?,
        };
        let mut map: BTreeMap<Vec<u8>, Vec<usize>> = BTreeMap::new();
        if !own.is_empty() {
            let begin = usize::from(self.item.begin);
            let mut alone = vec![Datum::Null; begin];
            for (place, row) in rows.iter().enumerate() {
                alone.truncate(begin);
                alone.extend_from_slice(row);
                let values = evaluator.values(own, &alone)?;
                if values.iter().any(Datum::is_null) {
                    continue;
                }
                let key = identity(&values);
                evaluator.memory.add_bytes(key.len() + size_of::<usize>())?;
                map.entry(key).or_default().push(place);
            }
        }
        if self.item.kind.keeps_own() {
            self.matched = vec![false; rows.len()];
        }
        let map = map.into_iter().map(|(key, places)| (key, Rc::new(places))).collect();
        self.all = Some(Collected { rows, map });
        Ok(())
    }

    /// Goes to the next joined row; `false` if there is none for the row before.
    fn advance(&mut self, row: &mut [Datum], evaluator: &mut Evaluator<'_>) -> Result<bool> {
        loop {
            let has_candidate = self.next(row)?;
            if !has_candidate {
                let is_alone = !self.is_ending && !self.is_matched;
                if !is_alone || !self.item.kind.keeps_other() {
                    return Ok(false);
                }
                self.is_matched = true;
                self.current = None;
                self.slots(row)?.fill(Datum::Null);
            } else {
                evaluator.rows.steps(1)?;
                if !self.is_ending {
                    if !evaluator.holds(&self.item.condition, row)? {
                        continue;
                    }
                    self.is_matched = true;
                    if let Some(matched) = self.current.and_then(|at| self.matched.get_mut(at)) {
                        *matched = true;
                    }
                }
            }
            if evaluator.holds(&self.item.filter, row)? {
                return Ok(true);
            }
        }
    }

    /// Puts the next candidate into the row.
    fn next(&mut self, row: &mut [Datum]) -> Result<bool> {
        if self.is_ending {
            let left = |place: &usize| !self.matched[*place];
            match (self.tried..self.matched.len()).find(left) {
                Some(place) => self.tried = place,
                None => return Ok(false),
            }
        }
        let tried = self.tried;
        let all = self.all.as_ref().map(|all| &all.rows[..]).unwrap_or_default();
        let (place, found) = match &self.candidates {
            Candidates::None => (0, None),
            Candidates::All => (tried, all.get(tried)),
            Candidates::Some(places) => match places.get(tried) {
                Some(place) => (*place, all.get(*place)),
                None => (0, None),
            },
            Candidates::Found(found) => (tried, found.get(tried).map(|found| &found.row)),
            Candidates::Queried(rows) => (tried, rows.get(tried)),
        };
        let Some(found) = found else { return Ok(false) };
        let (begin, width) = (usize::from(self.item.begin), usize::from(self.item.width));
        let slots = row.get_mut(begin..begin + width).ok_or_else(malformed)?;
        if slots.len() != found.len() {
            return Err(malformed());
        }
        slots.clone_from_slice(found);
        self.tried += 1;
        self.current = Some(place);
        Ok(true)
    }

    fn slots<'r>(&self, row: &'r mut [Datum]) -> Result<&'r mut [Datum]> {
        let (begin, width) = (usize::from(self.item.begin), usize::from(self.item.width));
        row.get_mut(begin..begin + width).ok_or_else(malformed)
    }

    /// Begins with the rows that had no partner, if they stay.
    fn end(&mut self, row: &mut [Datum], evaluator: &mut Evaluator<'_>) -> Result<()> {
        row.fill(Datum::Null);
        (self.is_ending, self.tried, self.candidates) = (true, 0, Candidates::None);
        if self.item.kind.keeps_own() {
            // Without any row before it nothing has collected them.
            self.collect(&[], evaluator)?;
            self.candidates = Candidates::All;
        }
        Ok(())
    }

    fn place(&self) -> Place {
        match (&self.candidates, self.current) {
            (_, None) => Place::Missing,
            (Candidates::Found(found), Some(at)) => {
                found.get(at).map_or(Place::Missing, |found| Place::Key(found.key.clone()))
            }
            (_, Some(at)) => Place::Number(at),
        }
    }
}
