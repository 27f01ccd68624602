//! Compares the events of a step.

use super::equal::canonical;
use super::reasons::{excuse, kind_of_error, numbers_taken};
use crate::generate::{Order, Step};
use crate::wire::{Column, Event};

/// What a comparison says.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Verdict {
    Same,
    /// Another answer, for a reason that is listed. What follows is not changed by it if it is
    /// harmless.
    Excused {
        reason: String,
        is_harmless: bool,
    },
    /// Another answer, and what differs.
    Differs(String),
}

/// The first numbers of types that each server gives by itself.
const OWN_TYPES: u32 = 16_384;

/// Compares the answers of PostgreSQL and of the server under test to a step.
pub(crate) fn compare(step: &Step, theirs: &[Event], ours: &[Event]) -> Verdict {
    let is_ordered = step.statements.iter().all(|one| one.order == Order::Total);
    let is_loose = step.statements.iter().any(|one| one.is_loose);
    let mut theirs_read = Answer::read(theirs, is_ordered, is_loose);
    let mut ours_read = Answer::read(ours, is_ordered, is_loose);
    if !is_ordered && theirs.contains(&Event::Suspended) {
        // Which rows come before a row limit is free.
        theirs_read.rows.clear();
        ours_read.rows.clear();
    }
    if theirs_read == ours_read {
        return match numbers_taken(step, theirs) {
            Some(reason) => Verdict::Excused { reason, is_harmless: false },
            None => Verdict::Same,
        };
    }
    let label = difference(&theirs_read, &ours_read);
    match excuse(step, theirs, ours) {
        Some(reason) => Verdict::Excused { reason, is_harmless: is_harmless(step, theirs, ours) },
        None => Verdict::Differs(label),
    }
}

/// Whether both have the same rows.
pub(crate) fn contents(theirs: &[Event], ours: &[Event]) -> bool {
    Answer::read(theirs, false, false) == Answer::read(ours, false, false)
}

/// Whether both servers are in the same state behind other answers: nothing was written.
fn is_harmless(step: &Step, theirs: &[Event], ours: &[Event]) -> bool {
    let reads = |text: &str| {
        let is_query = text.starts_with("SELECT") || text.starts_with("WITH");
        let writes = ["INSERT", "UPDATE", "DELETE", "nextval", "setval"];
        is_query && !writes.iter().any(|word| text.contains(word))
    };
    step.statements.iter().all(|one| reads(&one.tree.to_sql())) && theirs.last() == ours.last()
}

/// An answer as it is compared.
#[derive(PartialEq, Debug)]
struct Answer {
    /// All but the values of rows.
    shape: Vec<Event>,
    rows: Vec<Vec<Option<Vec<u8>>>>,
}

impl Answer {
    fn read(events: &[Event], is_ordered: bool, is_loose: bool) -> Answer {
        let mut columns: Vec<Column> = Vec::new();
        let mut answer = Answer { shape: Vec::new(), rows: Vec::new() };
        for event in events {
            match event {
                Event::Columns(found) => {
                    columns.clone_from(found);
                    answer.shape.push(Event::Columns(found.iter().map(comparable).collect()));
                }
                Event::Row(values) => {
                    let values = values.iter().enumerate().map(|(at, value)| {
                        let value = value.as_ref()?;
                        Some(canonical(value, columns.get(at), is_loose))
                    });
                    answer.rows.push(values.collect());
                    answer.shape.push(Event::Row(Vec::new()));
                }
                Event::Failed { code, .. } => {
                    let message = String::new();
                    answer.shape.push(Event::Failed { code: code.clone(), message });
                }
                other => answer.shape.push(other.clone()),
            }
        }
        if !is_ordered {
            answer.rows.sort();
        }
        answer
    }
}

fn comparable(column: &Column) -> Column {
    let is_own = column.type_number >= OWN_TYPES;
    Column { type_number: if is_own { 0 } else { column.type_number }, ..column.clone() }
}

/// A short name of what differs.
fn difference(theirs: &Answer, ours: &Answer) -> String {
    let codes = (kind_of_error(&theirs.shape), kind_of_error(&ours.shape));
    if codes.0 != codes.1 {
        let name = |code: Option<&str>| code.unwrap_or("no error").to_owned();
        return format!("{} for {}", name(codes.1), name(codes.0));
    }
    let pick = |answer: &Answer, wanted: fn(&Event) -> bool| {
        answer.shape.iter().filter(|event| wanted(event)).cloned().collect::<Vec<_>>()
    };
    let is_column = |event: &Event| matches!(event, Event::Columns(_) | Event::NoColumns);
    let is_tag = |event: &Event| matches!(event, Event::Complete(_));
    let is_row = |event: &Event| matches!(event, Event::Row(_));
    if pick(theirs, is_column) != pick(ours, is_column) {
        return "columns".to_owned();
    }
    if pick(theirs, is_row).len() != pick(ours, is_row).len() {
        return "number of rows".to_owned();
    }
    if pick(theirs, is_tag) != pick(ours, is_tag) {
        return "tag".to_owned();
    }
    if theirs.shape != ours.shape {
        return "messages".to_owned();
    }
    "values of rows".to_owned()
}
