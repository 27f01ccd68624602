//! Joins: for each row of the items so far, the rows of the next one that belong to it. A loop
//! walks over the items, so their number is no depth of calls, and a joined row is handed on as
//! soon as it is there.

use super::budget::{bytes_of, bytes_of_entry};
use super::evaluate::{Evaluator, malformed};
use super::scan::{Each, Found, Order, Wanted, find, find_for, visit};
use super::weight;
use crate::ir::{Expression, Item, ItemRows, JoinKind, Joins, Method};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::ControlFlow;
use std::rc::Rc;
use values::{Datum, Result};

/// Gives the joined rows that count to `each`.
pub(super) fn joined(
    joins: &Joins,
    wanted: Wanted,
    is_once: bool,
    evaluator: &mut Evaluator<'_>,
    each: &mut Each<'_, Vec<Datum>>,
) -> Result<()> {
    let levels: Vec<Level<'_>> = joins.items.iter().map(Level::new).collect();
    let width = joins.items.iter().map(|item| usize::from(item.begin) + usize::from(item.width));
    let row = vec![Datum::Null; width.max().unwrap_or(0)];
    let stated = if wanted.order == Order::Any { &[] } else { &joins.stated[..] };
    let mut waiting = Waiting { rows: Vec::new(), held: 0, stated };
    let enough = if stated.is_empty() { wanted.enough } else { usize::MAX };
    let mut walk = Walk { levels, row, enough };
    walk.all(is_once, evaluator, &mut |row, levels, evaluator| match stated {
        [] => {
            let row = evaluator.copy(row)?;
            each(row, evaluator)
        }
        _ => waiting.add(row, levels, evaluator),
    })?;
    waiting.give(evaluator, each)
}

/// The items of a FROM while their rows are joined.
struct Walk<'p> {
    levels: Vec<Level<'p>>,
    /// The joined row so far.
    row: Vec<Datum>,
    /// How many joined rows may be enough.
    enough: usize,
}

/// What takes joined rows.
type EachJoined<'s> =
    dyn FnMut(&[Datum], &[Level<'_>], &mut Evaluator<'_>) -> Result<ControlFlow<()>> + 's;

impl<'p> Walk<'p> {
    fn all(
        &mut self,
        is_once: bool,
        evaluator: &mut Evaluator<'_>,
        each: &mut EachJoined<'_>,
    ) -> Result<()> {
        let first = self.levels.first().ok_or_else(malformed)?.item;
        let mut flow = if first.kind == JoinKind::Inner && first.method == Method::Loop {
            self.first(first, is_once, evaluator, each)?
        } else {
            self.levels[0].open(&self.row, evaluator)?;
            self.below(0, evaluator, each)?
        };
        // No rows are left before an item: now come its rows without partners.
        for at in 1..self.levels.len() {
            if flow.is_break() {
                break;
            }
            self.levels[at].end(&mut self.row, evaluator)?;
            flow = self.below(at, evaluator, each)?;
        }
        Ok(())
    }

    /// Joins the rows of the first item as they come.
    fn first(
        &mut self,
        item: &'p Item,
        is_once: bool,
        evaluator: &mut Evaluator<'_>,
        each: &mut EachJoined<'_>,
    ) -> Result<ControlFlow<()>> {
        let (mut count, mut flow) = (0, ControlFlow::Continue(()));
        let enough = self.enough;
        let mut take = |row: Vec<Datum>, evaluator: &mut Evaluator<'_>| {
            let slots = self.levels[0].slots(&mut self.row)?;
            if slots.len() != row.len() {
                return Err(malformed());
            }
            evaluator.count_bytes(weight::heap_bytes(&row))?;
            slots.clone_from_slice(&row);
            self.levels[0].current = Some(count);
            count += 1;
            evaluator.rows.steps(1)?;
            if evaluator.holds(&item.condition, &self.row)?
                && evaluator.holds(&item.filter, &self.row)?
            {
                flow = match self.levels.len() {
                    1 => each(&self.row, &self.levels, evaluator)?,
                    _ => {
                        self.levels[1].open(&self.row, evaluator)?;
                        self.below(1, evaluator, each)?
                    }
                };
            }
            Ok(flow)
        };
        match &item.rows {
            ItemRows::Table(source) => {
                let wanted = Wanted { order: Order::Canonical, enough };
                visit(source, &[], wanted, evaluator, &mut |found, evaluator| {
                    take(found.row, evaluator)
                })?;
            }
            ItemRows::Query(number) => evaluator.visit_query(*number, is_once, &mut take)?,
        }
        Ok(flow)
    }

    /// Gives the joined rows of an item that was opened, and those behind it, to `each`.
    fn below(
        &mut self,
        first: usize,
        evaluator: &mut Evaluator<'_>,
        each: &mut EachJoined<'_>,
    ) -> Result<ControlFlow<()>> {
        let mut at = first;
        loop {
            if self.levels[at].advance(&mut self.row, evaluator)? {
                if at + 1 < self.levels.len() {
                    at += 1;
                    self.levels[at].open(&self.row, evaluator)?;
                } else if each(&self.row, &self.levels, evaluator)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            } else if at > first {
                at -= 1;
            } else {
                return Ok(ControlFlow::Continue(()));
            }
        }
    }
}

/// Joined rows that do not come in canonical order.
struct Waiting<'p> {
    rows: Vec<(Vec<Place>, Vec<Datum>)>,
    /// The memory that they take.
    held: usize,
    stated: &'p [u16],
}

/// The place of an item's row among its rows; behind all others where it has none.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Number(usize),
    Key(Vec<u8>),
    Missing,
}

impl Waiting<'_> {
    fn add(
        &mut self,
        row: &[Datum],
        levels: &[Level<'_>],
        evaluator: &mut Evaluator<'_>,
    ) -> Result<ControlFlow<()>> {
        let mut bytes = bytes_of(row);
        let mut key = Vec::with_capacity(self.stated.len());
        for at in self.stated {
            let place = levels.get(usize::from(*at)).ok_or_else(malformed)?.place();
            let own = if let Place::Key(key) = &place { key.len() } else { 0 };
            bytes += size_of::<Place>() + own;
            key.push(place);
        }
        self.held += bytes;
        evaluator.memory.add_bytes(bytes)?;
        self.rows.push((key, evaluator.copy(row)?));
        Ok(ControlFlow::Continue(()))
    }

    /// Gives them on in canonical order.
    fn give(
        mut self,
        evaluator: &mut Evaluator<'_>,
        each: &mut Each<'_, Vec<Datum>>,
    ) -> Result<()> {
        self.rows.sort_by(|left, right| left.0.cmp(&right.0));
        for (_, row) in self.rows {
            if each(row, evaluator)?.is_break() {
                break;
            }
        }
        evaluator.memory.subtract(self.held);
        Ok(())
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
    /// The first and the last place of the rows with the same values, by these.
    map: BTreeMap<Vec<u8>, (usize, usize)>,
    /// By place of a row, the next one with the same values; 0 of the last one.
    later: Vec<usize>,
}

enum Candidates {
    None,
    All,
    /// Those with the same values, from this place on.
    Same(Option<usize>),
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
                let others = self.all.as_ref().map_or(0, |all| all.map.len());
                let identity = evaluator.identity(&values, others)?;
                let ends = self.all.as_ref().and_then(|all| all.map.get(&identity));
                let has_null = values.iter().any(Datum::is_null);
                Candidates::Same(ends.filter(|_| !has_null).map(|(first, _)| *first))
            }
            (Method::Lookup, ItemRows::Table(source)) => {
                let before = self.release(evaluator);
                let found = find_for(source, row, evaluator)?;
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
                let found = find(source, evaluator)?;
                Rc::new(found.into_iter().map(|found| found.row).collect())
            }
            ItemRows::Query(number) => evaluator.rows_of(*number, usize::MAX)?,
        };
        let (mut map, mut later) = (BTreeMap::<Vec<u8>, (usize, usize)>::new(), Vec::new());
        if !own.is_empty() {
            evaluator.memory.add_bytes(rows.len() * size_of::<usize>())?;
            later.resize(rows.len(), 0);
            let begin = usize::from(self.item.begin);
            let mut alone = vec![Datum::Null; begin];
            for (place, row) in rows.iter().enumerate() {
                alone.truncate(begin);
                evaluator.count_bytes(weight::heap_bytes(row))?;
                alone.extend_from_slice(row);
                let values = evaluator.values(own, &alone)?;
                if values.iter().any(Datum::is_null) {
                    continue;
                }
                let key = evaluator.identity(&values, map.len())?;
                match map.entry(key) {
                    Entry::Occupied(mut ends) => {
                        let last = std::mem::replace(&mut ends.get_mut().1, place);
                        later[last] = place;
                    }
                    Entry::Vacant(new) => {
                        let ends = (place, place);
                        evaluator
                            .memory
                            .add_bytes(bytes_of_entry(new.key(), size_of_val(&ends)))?;
                        new.insert(ends);
                    }
                }
            }
        }
        if self.item.kind.keeps_own() {
            self.matched = vec![false; rows.len()];
        }
        self.all = Some(Collected { rows, map, later });
        Ok(())
    }

    /// Goes to the next joined row; `false` if there is none for the row before.
    fn advance(&mut self, row: &mut [Datum], evaluator: &mut Evaluator<'_>) -> Result<bool> {
        loop {
            let has_candidate = self.next(row, evaluator)?;
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
    fn next(&mut self, row: &mut [Datum], evaluator: &mut Evaluator<'_>) -> Result<bool> {
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
            Candidates::Same(place) => (place.unwrap_or(0), place.and_then(|place| all.get(place))),
            Candidates::Found(found) => (tried, found.get(tried).map(|found| &found.row)),
            Candidates::Queried(rows) => (tried, rows.get(tried)),
        };
        let Some(found) = found else { return Ok(false) };
        let (begin, width) = (usize::from(self.item.begin), usize::from(self.item.width));
        let slots = row.get_mut(begin..begin + width).ok_or_else(malformed)?;
        if slots.len() != found.len() {
            return Err(malformed());
        }
        evaluator.count_bytes(weight::heap_bytes(found))?;
        slots.clone_from_slice(found);
        self.tried += 1;
        self.current = Some(place);
        if let (Candidates::Same(next), Some(all)) = (&mut self.candidates, &self.all) {
            *next = all.later.get(place).copied().filter(|later| *later > 0);
        }
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
