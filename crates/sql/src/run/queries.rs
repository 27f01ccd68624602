//! What is known of a statement's queries while it runs.

use super::context::malformed;
use crate::ir::{ColumnNumber, Query, QueryNumber};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use values::{Datum, Result};

/// The rows of a query.
pub(super) type Answered = Rc<Vec<Vec<Datum>>>;

/// The queries of a statement, and what is known of them so far.
pub(super) struct Queries<'a> {
    pub(super) list: &'a [Query],
    /// The rows in which the query that runs is computed, by depth.
    outer: Vec<Vec<Datum>>,
    /// The rows of those that need no other row.
    pub(super) answered: BTreeMap<QueryNumber, Answered>,
    /// Their rows as sets, for IN.
    pub(super) sets: BTreeMap<QueryNumber, Rc<Members>>,
    /// The working tables of recursive queries that run, by their numbers.
    working: BTreeMap<u16, Answered>,
    /// The rows that the parts of the statement have returned so far.
    returned: Vec<Answered>,
    /// The memory that `answered` and `sets` take.
    pub(super) kept: usize,
    /// In how many places of queries each is named, once that was asked.
    named: Vec<u32>,
}

/// The rows of a query, to find equal ones.
pub(super) struct Members {
    pub(super) identities: BTreeSet<Vec<u8>>,
    /// Places of rows with a NULL; of single values of one.
    pub(super) with_null: Vec<usize>,
}

impl<'a> Queries<'a> {
    pub(super) fn of(list: &'a [Query]) -> Queries<'a> {
        Queries {
            list,
            outer: Vec::new(),
            answered: BTreeMap::new(),
            sets: BTreeMap::new(),
            working: BTreeMap::new(),
            returned: Vec::new(),
            kept: 0,
            named: Vec::new(),
        }
    }

    /// Whether one place of all queries names this one.
    pub(super) fn is_named_once(&mut self, number: QueryNumber) -> bool {
        if self.named.is_empty() {
            let mut named = vec![0; self.list.len()];
            for query in self.list {
                query.each_number(&mut |number| {
                    if let Some(count) = named.get_mut(usize::from(number)) {
                        *count += 1;
                    }
                });
            }
            self.named = named;
        }
        self.named.get(usize::from(number)) == Some(&1)
    }

    /// The rows of a working table.
    pub(super) fn working(&self, number: u16) -> Result<Answered> {
        self.working.get(&number).cloned().ok_or_else(malformed)
    }

    /// The rows that a part of the statement has returned.
    pub(super) fn returned(&self, part: u16) -> Result<Answered> {
        self.returned.get(usize::from(part)).cloned().ok_or_else(malformed)
    }

    /// The next part of the statement has returned these rows.
    pub(super) fn add_returned(&mut self, rows: Vec<Vec<Datum>>) {
        self.returned.push(Rc::new(rows));
    }

    /// A working table has these rows from now on, or none; those before.
    pub(super) fn set_working(&mut self, number: u16, rows: Option<Answered>) -> Option<Answered> {
        match rows {
            Some(rows) => self.working.insert(number, rows),
            None => self.working.remove(&number),
        }
    }

    pub(super) fn outer(&self, depth: u16, column: ColumnNumber) -> Result<Datum> {
        let row = self.outer.get(usize::from(depth)).ok_or_else(malformed)?;
        row.get(usize::from(column)).cloned().ok_or_else(malformed)
    }

    /// Queries of this depth are computed in this row from now on; the row before.
    pub(super) fn enter(&mut self, depth: u16, row: Vec<Datum>) -> Vec<Datum> {
        let Some(at) = usize::from(depth).checked_sub(1) else { return Vec::new() };
        if self.outer.len() <= at {
            self.outer.resize(at + 1, Vec::new());
        }
        std::mem::replace(&mut self.outer[at], row)
    }
}
