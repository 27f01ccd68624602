//! Strict serializability of a recorded history: its transactions could have run one by one, each
//! at a moment between its begin and its end.
//!
//! Rows are lists, to which transactions append values that are appended once (Elle: Kingsbury and
//! Alvaro, VLDB 2020). So a list that was read says which appends were before the read, and the
//! lists of the end say in which order all appends took place. [`check`] makes a graph of what was
//! before what, also by the clock, and looks for a cycle. It knows nothing of what ran the history.

mod graph;
#[cfg(test)]
mod tests;

use graph::{Graph, Why};
use std::collections::BTreeMap;

/// Lists by row; a row that is not there is an empty list.
pub type Lists = BTreeMap<u64, Vec<u64>>;

/// What a transaction did to a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// It appended a value that is appended only once in a history.
    Append {
        /// The row.
        row: u64,
        /// The value.
        value: u64,
    },
    /// It saw this list.
    Read {
        /// The row.
        row: u64,
        /// The whole list, what it appended before included.
        seen: Vec<u64>,
    },
}

/// What is known of the end of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was answered that it took place.
    Committed,
    /// It was answered that it did not, or never asked for.
    Aborted,
    /// It was asked for and not answered.
    Unknown,
}

/// A transaction as its client saw it.
#[derive(Debug, Clone)]
pub struct Observed {
    /// What a report calls it.
    pub name: String,
    /// When it was begun: numbers of one clock, no two of them equal.
    pub began: u64,
    /// When its end was known.
    pub ended: u64,
    /// Its end.
    pub outcome: Outcome,
    /// What it did, in its order.
    pub accesses: Vec<Access>,
}

/// Checks a history against the lists of its end.
///
/// # Errors
/// The first thing that no serial order explains.
pub fn check(history: &[Observed], last: &Lists) -> Result<(), String> {
    let places = places(history, last)?;
    let took_place = took_place(history, &places)?;
    let mut graph = Graph::new(history.len());
    for (row, list) in last {
        let writers: Vec<usize> = list.iter().map(|value| places[value].writer).collect();
        for pair in writers.windows(2).filter(|pair| pair[0] != pair[1]) {
            graph.add(pair[0], pair[1], Why::Appended(*row));
        }
    }
    for (at, transaction) in history.iter().enumerate().filter(|(at, _)| took_place[*at]) {
        let empty = Vec::new();
        let mut own: Lists = BTreeMap::new();
        for access in &transaction.accesses {
            match access {
                Access::Append { row, value } => own.entry(*row).or_default().push(*value),
                Access::Read { row, seen } => {
                    let mine = own.get(row).unwrap_or(&empty);
                    let whole = last.get(row).unwrap_or(&empty);
                    let others = of_others(seen, mine, whole)
                        .map_err(|what| format!("{} read row {row}: {what}", transaction.name))?;
                    let writer = |at: usize| whole.get(at).map(|value| places[value].writer);
                    let before = others.checked_sub(1).and_then(writer);
                    let after = writer(others);
                    let before = before.filter(|before| *before != at);
                    if let Some(before) = before.filter(|_| before == after) {
                        let writer = &history[before].name;
                        return Err(format!("{} read half of {writer}", transaction.name));
                    }
                    if let Some(before) = before {
                        graph.add(before, at, Why::Read(*row));
                    }
                    if let Some(after) = after.filter(|after| *after != at) {
                        graph.add(at, after, Why::Overwritten(*row));
                    }
                }
            }
        }
    }
    let clock = history.iter().enumerate().filter(|(at, _)| took_place[*at]);
    graph.add_clock(clock.map(|(at, one)| {
        let is_known = one.outcome == Outcome::Committed;
        (at, one.began, is_known.then_some(one.ended))
    }));
    match graph.cycle() {
        None => Ok(()),
        Some(cycle) => Err(told(&cycle, history)),
    }
}

/// Where a value is in the lists of the end.
struct Place {
    writer: usize,
    /// How many values are before it; `None` if it is not there.
    position: Option<usize>,
}

/// Who appended each value, and where it is at the end.
fn places(history: &[Observed], last: &Lists) -> Result<BTreeMap<u64, Place>, String> {
    let mut rows = BTreeMap::new();
    let mut places = BTreeMap::new();
    for (writer, transaction) in history.iter().enumerate() {
        for access in &transaction.accesses {
            let Access::Append { row, value } = access else { continue };
            rows.insert(*value, *row);
            let other = places.insert(*value, Place { writer, position: None });
            assert!(other.is_none(), "value {value} is appended by two transactions");
        }
    }
    for (row, list) in last {
        for (position, value) in list.iter().enumerate() {
            let place = places.get_mut(value).filter(|_| rows.get(value) == Some(row));
            let place = place.ok_or_else(|| format!("row {row} has {value}, never appended"))?;
            if place.position.replace(position).is_some() {
                return Err(format!("row {row} has {value} more than once"));
            }
        }
    }
    Ok(places)
}

/// Which transactions took place: all of what they appended is there, side by side.
fn took_place(history: &[Observed], places: &BTreeMap<u64, Place>) -> Result<Vec<bool>, String> {
    history.iter().map(|transaction| one_took_place(transaction, places)).collect()
}

fn one_took_place(transaction: &Observed, places: &BTreeMap<u64, Place>) -> Result<bool, String> {
    let name = &transaction.name;
    let appends = transaction.accesses.iter().filter_map(|access| match access {
        Access::Append { row, value } => Some((*row, *value, places[value].position)),
        Access::Read { .. } => None,
    });
    let appends: Vec<_> = appends.collect();
    let there = appends.iter().filter(|(_, _, position)| position.is_some()).count();
    let is_there = match transaction.outcome {
        Outcome::Committed => true,
        Outcome::Aborted => false,
        Outcome::Unknown => there > 0,
    };
    let expected = if is_there { appends.len() } else { 0 };
    if there != expected {
        let outcome = transaction.outcome;
        let count = appends.len();
        return Err(format!("{there} of {count} appends of {name} are there: {outcome:?}"));
    }
    let mut next: BTreeMap<u64, usize> = BTreeMap::new();
    for (row, value, position) in appends {
        let Some(position) = position else { continue };
        if next.insert(row, position + 1).is_some_and(|next| next != position) {
            return Err(format!("row {row} has {value} of {name} apart from what is before it"));
        }
    }
    Ok(is_there)
}

/// How many values of others a list has that was read by one that had appended `own`.
fn of_others(seen: &[u64], own: &[u64], last: &[u64]) -> Result<usize, String> {
    let Some(others) = seen.strip_suffix(own) else {
        return Err(format!("{seen:?} without its own {own:?}"));
    };
    if !last.starts_with(others) {
        return Err(format!("{others:?}, which is no beginning of {last:?}"));
    }
    Ok(others.len())
}

fn told(cycle: &[(usize, Why)], history: &[Observed]) -> String {
    let steps = cycle.iter().map(|(at, why)| {
        let why = match why {
            Why::Appended(row) => format!("appended to row {row} before"),
            Why::Read(row) => format!("wrote in row {row} what was read by"),
            Why::Overwritten(row) => format!("read row {row} before the append of"),
            Why::Ended => "ended before the begin of".to_owned(),
        };
        let one = &history[*at];
        format!("{} ({} to {}) {why}", one.name, one.began, one.ended)
    });
    let steps: Vec<String> = steps.collect();
    format!("no serial order: {} the first", steps.join(" "))
}
