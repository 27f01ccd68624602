//! The queries of a statement: each is computed once, or once for each row that it needs.

use super::budget::bytes_of_entry;
use super::compute;
use super::evaluate::{Evaluator, malformed};
use super::queries::{Answered, Members};
use super::scan::Each;
use super::select::{rows_of, visit_rows};
use super::weight;
use crate::ir::{Function, Query, QueryNumber, Use};
use std::collections::BTreeSet;
use std::rc::Rc;
use values::{Array, Datum, Error, Result, SqlState, Type};

/// The rows that become items of an array in a step.
const ITEMS_OF_STEP: u64 = 32;

impl Evaluator<'_> {
    /// The rows of a query that is computed in this row; `enough` are enough.
    pub(super) fn rows_within(
        &mut self,
        number: QueryNumber,
        row: &[Datum],
        enough: usize,
    ) -> Result<Answered> {
        let query = self.queries.list.get(usize::from(number)).ok_or_else(malformed)?;
        if !query.is_correlated {
            return self.rows_of(number, enough);
        }
        // A query of WITH may be in between, and computes others of this depth in its own rows.
        let outer = self.copy(row)?;
        let before = self.queries.enter(query.depth, outer);
        let answered = rows_of(query, self, enough)?;
        self.queries.enter(query.depth, before);
        Ok(Rc::new(answered))
    }

    /// The rows of a query beside the one that runs; `enough` are enough.
    pub(super) fn rows_of(&mut self, number: QueryNumber, enough: usize) -> Result<Answered> {
        let query = self.queries.list.get(usize::from(number)).ok_or_else(malformed)?;
        if query.is_correlated {
            return Ok(Rc::new(rows_of(query, self, enough)?));
        }
        if let Some(known) = self.queries.answered.get(&number) {
            return Ok(known.clone());
        }
        let before = self.taken_bytes();
        let answered = Rc::new(rows_of(query, self, enough)?);
        self.queries.kept += self.taken_bytes() - before;
        self.queries.answered.insert(number, answered.clone());
        Ok(answered)
    }

    /// Gives the rows of a query beside the one that runs to `each`. Those of one that is needed
    /// once are not kept.
    pub(super) fn visit_query(
        &mut self,
        number: QueryNumber,
        is_once: bool,
        each: &mut Each<'_, Vec<Datum>>,
    ) -> Result<()> {
        let query = self.queries.list.get(usize::from(number)).ok_or_else(malformed)?;
        if is_once && !query.is_correlated && self.queries.is_named_once(number) {
            return visit_rows(query, self, usize::MAX, each);
        }
        for row in self.rows_of(number, usize::MAX)?.iter() {
            let row = self.copy(row)?;
            if each(row, self)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Gives the rows of a query to `each`, whatever is known of it.
    pub(super) fn visit_anew(
        &mut self,
        query: &Query,
        each: &mut Each<'_, Vec<Datum>>,
    ) -> Result<()> {
        visit_rows(query, self, usize::MAX, each)
    }

    /// The memory that is taken, without that of queries that are kept until the end.
    pub(super) fn taken_bytes(&self) -> usize {
        self.memory.mark() - self.queries.kept
    }

    /// Releases memory until [`Evaluator::taken_bytes`] is `bytes`.
    pub(super) fn release_to(&mut self, bytes: usize) {
        self.memory.release(bytes + self.queries.kept);
    }

    fn is_correlated(&self, number: QueryNumber) -> bool {
        self.queries.list.get(usize::from(number)).is_none_or(|query| query.is_correlated)
    }

    /// What a query comes to in an expression over this row.
    pub(super) fn subquery(
        &mut self,
        how: Use,
        number: QueryNumber,
        row: &[Datum],
        stack: &mut Vec<Datum>,
    ) -> Result<Datum> {
        let before = self.taken_bytes();
        let result = match how {
            Use::Value => self.scalar(number, row),
            Use::Exists => {
                let found = self.rows_within(number, row, 1)?;
                Ok(Datum::Bool(!found.is_empty()))
            }
            Use::Any(function, count) | Use::All(function, count) => {
                let all = matches!(how, Use::All(..));
                let begin = stack.len().checked_sub(usize::from(count)).ok_or_else(malformed)?;
                let left = stack.split_off(begin);
                self.quantified(function, all, &left, number, row)
            }
            Use::Array(code) => {
                let element = Type::from_code(code).ok_or_else(malformed)?;
                self.array_of(element, number, row)
            }
            Use::ArrayOf(kind) => self.array_of(kind.ty, number, row),
        };
        if self.is_correlated(number) {
            self.release_to(before);
        }
        result
    }

    fn scalar(&mut self, number: QueryNumber, row: &[Datum]) -> Result<Datum> {
        let found = self.rows_within(number, row, 2)?;
        match &found[..] {
            [] => Ok(Datum::Null),
            [one] => one.first().cloned().ok_or_else(malformed),
            _ => Err(Error::new(
                SqlState::CARDINALITY_VIOLATION,
                "more than one row returned by a subquery used as an expression",
            )),
        }
    }

    fn array_of(&mut self, element: Type, number: QueryNumber, row: &[Datum]) -> Result<Datum> {
        let found = self.rows_within(number, row, usize::MAX)?;
        self.rows.steps(found.len() as u64 / ITEMS_OF_STEP)?;
        self.count_bytes(found.iter().map(|row| weight::heap_bytes(row)).sum())?;
        let items = found.iter().map(|row| row.first().cloned().ok_or_else(malformed));
        let items = items.collect::<Result<Vec<_>>>()?;
        if items.iter().any(|item| !item.fits(element)) {
            return Err(malformed());
        }
        Ok(Datum::Array(Box::new(Array::new(element, items)?)))
    }

    /// ANY and ALL: the rows are looked at in their order until one decides.
    fn quantified(
        &mut self,
        function: Function,
        all: bool,
        left: &[Datum],
        number: QueryNumber,
        row: &[Datum],
    ) -> Result<Datum> {
        let found = self.rows_within(number, row, usize::MAX)?;
        if found.is_empty() {
            return Ok(Datum::Bool(all));
        }
        let has_null = left.iter().any(Datum::is_null);
        if has_null && left.len() == 1 {
            return Ok(Datum::Null);
        }
        // A row with a NULL is a member of none, and may be unlike all.
        if function == Function::Equal && !all && !has_null && !self.is_correlated(number) {
            return self.is_member(left, number, &found);
        }
        let mut is_unknown = false;
        for row in found.iter() {
            self.rows.steps(1)?;
            match self.compare_rows(function, left, row)? {
                Some(result) if result != all => return Ok(Datum::Bool(result)),
                Some(_) => {}
                None => is_unknown = true,
            }
        }
        Ok(if is_unknown { Datum::Null } else { Datum::Bool(all) })
    }

    /// `=` and `<>` of rows, any comparison of single values.
    fn compare_rows(
        &mut self,
        function: Function,
        left: &[Datum],
        right: &[Datum],
    ) -> Result<Option<bool>> {
        if left.len() != right.len() {
            return Err(malformed());
        }
        let differs = function == Function::NotEqual;
        let mut result = Some(!differs);
        for (left, right) in left.iter().zip(right) {
            let both = [left.clone(), right.clone()];
            self.count_bytes(weight::heap_bytes(&both))?;
            match compute::call(function, &both, self.context, self.rows)? {
                Datum::Bool(value) if value == differs => return Ok(Some(value)),
                Datum::Bool(_) => {}
                Datum::Null => result = None,
                _ => return Err(malformed()),
            }
        }
        Ok(result)
    }

    /// Whether the values are one of the rows.
    fn is_member(
        &mut self,
        left: &[Datum],
        number: QueryNumber,
        found: &Answered,
    ) -> Result<Datum> {
        self.rows.steps(1)?;
        let members = match self.queries.sets.get(&number) {
            Some(members) => members.clone(),
            None => {
                let members = Rc::new(self.members(found)?);
                self.queries.sets.insert(number, members.clone());
                members
            }
        };
        if members.identities.contains(&self.identity(left, members.identities.len())?) {
            return Ok(Datum::Bool(true));
        }
        // A row with a NULL may be equal, if its other values are: one value has no others.
        let mut is_unknown = left.len() == 1 && !members.with_null.is_empty();
        for number in members.with_null.iter().take_while(|_| left.len() > 1) {
            self.rows.steps(1)?;
            let row = found.get(*number).ok_or_else(malformed)?;
            if self.compare_rows(Function::Equal, left, row)?.is_none() {
                is_unknown = true;
                break;
            }
        }
        Ok(if is_unknown { Datum::Null } else { Datum::Bool(false) })
    }

    fn members(&mut self, found: &Answered) -> Result<Members> {
        let mut members = Members { identities: BTreeSet::new(), with_null: Vec::new() };
        for (number, row) in found.iter().enumerate() {
            self.rows.steps(1)?;
            if row.iter().any(Datum::is_null) {
                // Of single values one is enough to know.
                if row.len() > 1 || members.with_null.is_empty() {
                    members.with_null.push(number);
                    self.memory.add_bytes(size_of::<usize>())?;
                    self.queries.kept += size_of::<usize>();
                }
                continue;
            }
            let identity = self.identity(row, members.identities.len())?;
            let bytes = bytes_of_entry(&identity, 0);
            if members.identities.insert(identity) {
                self.memory.add_bytes(bytes)?;
                self.queries.kept += bytes;
            }
        }
        Ok(members)
    }
}
