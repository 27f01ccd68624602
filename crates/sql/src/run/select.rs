//! Queries: rows go through the stages of a query one after the other, and only what has to wait
//! is kept.

use super::aggregate::{Groups, has_no_order};
use super::budget::{bytes_of, bytes_of_entry};
use super::evaluate::{Evaluator, malformed};
use super::join::joined;
use super::order::{compare, directions};
use super::recursion::{given_rows, recursed};
use super::row_functions::{function_rows, system_rows};
use super::scan::{Each, Order, Wanted, visit};
use super::set::combined;
use super::weight;
use super::window::windowed;
use crate::ir::{ColumnNumber, Expression, Input, Query, Relation, Select};
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use values::{Datum, Error, Result, SqlState};

/// The rows of a query of one table.
pub(super) fn select(query: &Select, evaluator: &mut Evaluator<'_>) -> Result<Vec<Vec<Datum>>> {
    let mut rows = Vec::new();
    let mut each = collect(&mut rows);
    let slice = Slice::of(query, evaluator)?;
    if slice.limit > 0 {
        let mut stages = Stages::of(query, slice, &mut each);
        stages.source(query, evaluator)?;
        stages.end(evaluator)?;
    }
    drop(each);
    Ok(rows)
}

/// The rows of any query; `enough` are enough.
pub(super) fn rows_of(
    query: &Query,
    evaluator: &mut Evaluator<'_>,
    enough: usize,
) -> Result<Vec<Vec<Datum>>> {
    let mut rows = Vec::new();
    visit_rows(query, evaluator, enough, &mut collect(&mut rows))?;
    Ok(rows)
}

/// What collects rows.
fn collect(
    rows: &mut Vec<Vec<Datum>>,
) -> impl FnMut(Vec<Datum>, &mut Evaluator<'_>) -> Result<ControlFlow<()>> {
    |row, evaluator| {
        evaluator.memory.add(&row)?;
        rows.push(row);
        Ok(ControlFlow::Continue(()))
    }
}

/// Gives the rows of any query to `each`; `enough` are enough.
pub(super) fn visit_rows(
    query: &Query,
    evaluator: &mut Evaluator<'_>,
    enough: usize,
    each: &mut Each<'_, Vec<Datum>>,
) -> Result<()> {
    let select = &query.select;
    let mut slice = Slice::of(select, evaluator)?;
    slice.limit = slice.limit.min(enough);
    if slice.limit == 0 {
        return Ok(());
    }
    let mut stages = Stages::of(select, slice, each);
    let is_once = !query.is_correlated;
    match &query.input {
        Input::Source => stages.source(select, evaluator)?,
        Input::Values(rows) => {
            for row in rows {
                let row = evaluator.values(row, &[])?;
                if stages.take(row, evaluator)?.is_break() {
                    break;
                }
            }
        }
        Input::Set(first, steps) => {
            let mut take = |row, evaluator: &mut Evaluator<'_>| stages.take(row, evaluator);
            combined(*first, steps, is_once, evaluator, &mut take)?;
        }
        Input::Joins(joins) => {
            let wanted = stages.wanted(None);
            let mut take = |row, evaluator: &mut Evaluator<'_>| stages.take(row, evaluator);
            joined(joins, wanted, is_once, evaluator, &mut take)?;
        }
        Input::System(name) => {
            for row in system_rows(name, evaluator)? {
                if stages.take(row, evaluator)?.is_break() {
                    break;
                }
            }
        }
        Input::Functions(calls, numbered) => {
            let mut take = |row, evaluator: &mut Evaluator<'_>| stages.take(row, evaluator);
            function_rows(calls, *numbered, evaluator, &mut take)?;
        }
        Input::Windows(windows) => {
            let mut take = |row, evaluator: &mut Evaluator<'_>| stages.take(row, evaluator);
            windowed(windows, is_once, evaluator, &mut take)?;
        }
        Input::Distinct(number, columns) => {
            let mut first = FirstOf { columns, last: None };
            evaluator.visit_query(*number, is_once, &mut |row, evaluator| match first
                .is_next(&row, evaluator)?
            {
                true => stages.take(row, evaluator),
                false => Ok(ControlFlow::Continue(())),
            })?;
        }
        Input::Recursive(recursive) => {
            let mut take = |row, evaluator: &mut Evaluator<'_>| stages.take(row, evaluator);
            recursed(recursive, is_once, evaluator, &mut take)?;
        }
        input @ (Input::Working(_) | Input::Returned(_)) => {
            let mut take = |row, evaluator: &mut Evaluator<'_>| stages.take(row, evaluator);
            given_rows(input, evaluator, &mut take)?;
        }
    }
    stages.end(evaluator)
}

/// Finds the first of the rows one after the other that have the same values in these columns.
struct FirstOf<'q> {
    columns: &'q [ColumnNumber],
    last: Option<Vec<u8>>,
}

impl FirstOf<'_> {
    fn is_next(&mut self, row: &[Datum], evaluator: &mut Evaluator<'_>) -> Result<bool> {
        let value = |column: &ColumnNumber| row.get(usize::from(*column)).cloned();
        let values: Option<Vec<Datum>> = self.columns.iter().map(value).collect();
        let own = Some(evaluator.identity(&values.ok_or_else(malformed)?, 1)?);
        let is_next = self.last != own;
        self.last = own;
        Ok(is_next)
    }
}

/// What is done with the rows of a query one after the other: groups, order, columns.
struct Stages<'q, 's, 'e> {
    groups: Option<Groups<'q>>,
    answer: Answer<'q, 's, 'e>,
}

impl<'q, 's, 'e> Stages<'q, 's, 'e> {
    fn of(query: &'q Select, slice: Slice, each: &'s mut Each<'e, Vec<Datum>>) -> Self {
        let answer = Answer {
            query,
            slice,
            passed: 0,
            seen: BTreeSet::new(),
            kept: Vec::new(),
            compared: 0,
            is_sorted: false,
            held: 0,
            each,
        };
        Stages { groups: query.group.as_ref().map(Groups::of), answer }
    }

    /// Takes the rows of the select's own source.
    fn source(&mut self, query: &Select, evaluator: &mut Evaluator<'_>) -> Result<()> {
        let wanted = self.wanted(query.source.relation.as_ref());
        visit(&query.source, &[], wanted, evaluator, &mut |found, evaluator| {
            self.take(found.row, evaluator)
        })
    }

    /// In which order the rows have to come, and how many may be enough.
    fn wanted(&self, relation: Option<&Relation>) -> Wanted {
        let Answer { query, slice, .. } = &self.answer;
        let order = match &query.group {
            Some(group) if has_no_order(group, relation) => Order::Any,
            _ => Order::Canonical,
        };
        let takes_all = query.group.is_some() || !query.sort.is_empty();
        Wanted { order, enough: if takes_all { usize::MAX } else { slice.end() } }
    }

    fn take(&mut self, row: Vec<Datum>, evaluator: &mut Evaluator<'_>) -> Result<ControlFlow<()>> {
        match &mut self.groups {
            Some(groups) => {
                groups.add(&row, evaluator)?;
                Ok(ControlFlow::Continue(()))
            }
            None => self.answer.take(row, evaluator),
        }
    }

    /// After the last row.
    fn end(mut self, evaluator: &mut Evaluator<'_>) -> Result<()> {
        if let Some(groups) = self.groups.take() {
            groups.finish(evaluator, &mut |row, evaluator| self.answer.take(row, evaluator))?;
        }
        self.answer.end(evaluator)
    }
}

/// The rows of the answer: they are given on at once, or wait to be sorted.
struct Answer<'q, 's, 'e> {
    query: &'q Select,
    slice: Slice,
    /// How many rows were there, of those that need not wait.
    passed: usize,
    /// With DISTINCT, those that were there.
    seen: BTreeSet<Vec<u8>>,
    kept: Vec<Keyed>,
    /// The bytes of the keys that came since the last sort.
    compared: usize,
    /// Whether those that wait are sorted, and enough.
    is_sorted: bool,
    /// The memory that all of this takes.
    held: usize,
    each: &'s mut Each<'e, Vec<Datum>>,
}

/// A row that waits: with DISTINCT one of the answer, else one from which the answer's is computed
/// when its place is known.
struct Keyed {
    keys: Vec<Datum>,
    row: Vec<Datum>,
}

impl Keyed {
    fn bytes(&self) -> usize {
        bytes_of(&self.keys) + bytes_of(&self.row)
    }
}

impl Answer<'_, '_, '_> {
    fn take(&mut self, row: Vec<Datum>, evaluator: &mut Evaluator<'_>) -> Result<ControlFlow<()>> {
        let query = self.query;
        if !evaluator.holds(&query.having, &row)? {
            return Ok(ControlFlow::Continue(()));
        }
        if query.distinct {
            let output = evaluator.values(&query.output, &row)?;
            let identity = evaluator.identity(&output, self.seen.len())?;
            let bytes = bytes_of_entry(&identity, 0);
            if !self.seen.insert(identity) {
                return Ok(ControlFlow::Continue(()));
            }
            self.hold(bytes, evaluator)?;
            if query.sort.is_empty() {
                return self.pass(output, evaluator);
            }
            // The order is over columns of the answer, which are computed from the row, too.
            let keys = self.keys(&row, evaluator)?;
            return self.keep(Keyed { keys, row: output }, evaluator);
        }
        if !query.sort.is_empty() {
            let keys = self.keys(&row, evaluator)?;
            return self.keep(Keyed { keys, row }, evaluator);
        }
        if self.passed < self.slice.offset {
            self.passed += 1;
            return Ok(ControlFlow::Continue(()));
        }
        let output = evaluator.values(&query.output, &row)?;
        self.pass(output, evaluator)
    }

    fn keys(&self, row: &[Datum], evaluator: &mut Evaluator<'_>) -> Result<Vec<Datum>> {
        self.query.sort.iter().map(|key| evaluator.value(&key.value, row)).collect()
    }

    fn hold(&mut self, bytes: usize, evaluator: &mut Evaluator<'_>) -> Result<()> {
        self.held += bytes;
        evaluator.memory.add_bytes(bytes)
    }

    /// Gives a row on, if it is behind OFFSET.
    fn pass(
        &mut self,
        output: Vec<Datum>,
        evaluator: &mut Evaluator<'_>,
    ) -> Result<ControlFlow<()>> {
        self.passed += 1;
        if self.passed > self.slice.offset && (self.each)(output, evaluator)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        Ok(match self.passed >= self.slice.end() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        })
    }

    /// Keeps a row, unless enough others come before it.
    fn keep(&mut self, keyed: Keyed, evaluator: &mut Evaluator<'_>) -> Result<ControlFlow<()>> {
        const SPARE: usize = 64;
        let enough = self.slice.end();
        let sort = &self.query.sort;
        self.compared += weight::heap_bytes(&keyed.keys);
        if self.is_sorted
            && compare(&self.kept[enough - 1].keys, &keyed.keys, directions(sort))
                != Ordering::Greater
        {
            return Ok(ControlFlow::Continue(()));
        }
        self.hold(keyed.bytes(), evaluator)?;
        self.kept.push(keyed);
        if self.kept.len() >= enough.saturating_mul(2).saturating_add(SPARE) {
            self.sort(evaluator)?;
            let bytes: usize = self.kept.drain(enough..).map(|keyed| keyed.bytes()).sum();
            self.held -= bytes;
            evaluator.memory.subtract(bytes);
            self.is_sorted = true;
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Stable: rows that are equal here stay in canonical order.
    fn sort(&mut self, evaluator: &mut Evaluator<'_>) -> Result<()> {
        evaluator.count_sort(std::mem::take(&mut self.compared), self.kept.len())?;
        let sort = &self.query.sort;
        self.kept.sort_by(|left, right| compare(&left.keys, &right.keys, directions(sort)));
        Ok(())
    }

    fn end(mut self, evaluator: &mut Evaluator<'_>) -> Result<()> {
        self.sort(evaluator)?;
        for keyed in self.slice.cut(std::mem::take(&mut self.kept).into_iter()) {
            let bytes = keyed.bytes();
            let output = match self.query.distinct {
                true => keyed.row,
                false => evaluator.values(&self.query.output, &keyed.row)?,
            };
            self.held -= bytes;
            evaluator.memory.subtract(bytes);
            if (self.each)(output, evaluator)?.is_break() {
                break;
            }
        }
        evaluator.memory.subtract(self.held);
        Ok(())
    }
}

/// LIMIT and OFFSET.
#[derive(Clone, Copy)]
struct Slice {
    limit: usize,
    offset: usize,
}

impl Slice {
    fn of(query: &Select, evaluator: &mut Evaluator<'_>) -> Result<Slice> {
        let limit = count(&query.limit, evaluator, SqlState::INVALID_LIMIT, "LIMIT")?;
        let offset = count(&query.offset, evaluator, SqlState::INVALID_OFFSET, "OFFSET")?;
        Ok(Slice { limit: limit.unwrap_or(usize::MAX), offset: offset.unwrap_or(0) })
    }

    /// The number of rows, from the first on, that are enough.
    fn end(&self) -> usize {
        self.limit.saturating_add(self.offset)
    }

    fn cut<T>(&self, rows: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
        rows.skip(self.offset).take(self.limit)
    }
}

/// The number of a LIMIT or OFFSET; NULL is none.
fn count(
    expression: &Option<Expression>,
    evaluator: &mut Evaluator<'_>,
    state: SqlState,
    name: &str,
) -> Result<Option<usize>> {
    let Some(expression) = expression else { return Ok(None) };
    match evaluator.value(expression, &[])? {
        Datum::Null => Ok(None),
        Datum::Int8(count) => match usize::try_from(count) {
            Ok(count) => Ok(Some(count)),
            Err(_) => Err(Error::new(state, format!("{name} must not be negative"))),
        },
        _ => Err(Error::new(SqlState::DATA_CORRUPTED, format!("plan has a malformed {name}"))),
    }
}
