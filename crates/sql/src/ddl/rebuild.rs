//! What a changed table means for its rows: one pass over them checks what is new, fills indexes
//! that are new, or writes all rows under new ids.

use super::draft::Draft;
use super::sequences::replace_in;
use crate::bind::keys_of;
use crate::catalog::{Delta, Sequence, Table, prefix};
use crate::ir::{ColumnNumber, Expression, ObjectId, Relation};
use crate::run::{
    Context, Pages, Pass, Rows, Scan, check_children, encode_row, fill_entry, passes, primary_key,
    refuse_primary, sequence_number, value_over,
};
use std::collections::{BTreeMap, BTreeSet};
use values::{Datum, Error, Result, SqlState, Type, key};

/// What has to be done.
#[derive(Default)]
pub(super) struct Rebuild {
    /// Whether all rows are written anew.
    rewrites: bool,
    /// Columns with other values, over the old row.
    conversions: BTreeMap<ColumnNumber, Expression>,
    /// Columns that may not have been NOT NULL before.
    nulls: BTreeSet<ColumnNumber>,
    /// Columns whose values are the numbers of their sequences, row by row.
    numbered: Vec<ColumnNumber>,
}

impl Rebuild {
    pub(super) fn number(&mut self, column: ColumnNumber) {
        self.rewrites = true;
        self.numbered.push(column);
    }

    pub(super) fn rewrite(&mut self) {
        self.rewrites = true;
    }

    pub(super) fn convert(&mut self, column: ColumnNumber, value: Expression) {
        self.rewrites = true;
        self.conversions.insert(column, value);
    }

    pub(super) fn converts(&self, column: ColumnNumber) -> bool {
        self.conversions.contains_key(&column)
    }

    pub(super) fn look_at_nulls(&mut self, column: ColumnNumber) {
        self.nulls.insert(column);
    }

    /// Whether the table has no rows.
    pub(super) fn is_empty(table: &Table, rows: &mut dyn Rows) -> Result<bool> {
        let (from, mut found) = (prefix(table.relation.id), Vec::new());
        let to = key::after_prefix(&from);
        let space = table.relation.space;
        let to = to.as_deref();
        let scan = Scan { space, from: &from, to, rows_max: 1, is_backward: false };
        rows.scan(scan, &mut found)?;
        Ok(found.is_empty())
    }

    /// Does it; `checks` of the table's are not new.
    pub(super) fn finish(
        self,
        mut draft: Draft<'_>,
        old: &Table,
        checks: usize,
        rows: &mut dyn Rows,
    ) -> Result<Delta> {
        let filled = self.indexes_to_fill(&mut draft, old);
        let nulls = self
            .nulls
            .iter()
            .copied()
            .filter(|column| !draft.table.relation.columns[usize::from(*column)].nullable);
        let nulls: Vec<ColumnNumber> = nulls.collect();
        let relation = draft.table.relation.clone();
        let has_new_checks = relation.checks.len() > checks;
        if self.rewrites || !filled.is_empty() || !nulls.is_empty() || has_new_checks {
            let numbered = self.sequences(&draft);
            let work =
                Work { rebuild: &self, relation: &relation, filled: &filled, numbered: &numbered };
            let pass = work.pass(old, &nulls, checks);
            let context = draft.context;
            let done = pass.run(rows, |rows| work.run(old, &nulls, checks, context, rows))?;
            for (_, sequence) in numbered {
                count_on(&mut draft, &sequence, done)?;
            }
        }
        let (mut delta, keys) = (draft.delta, draft.keys);
        if self.rewrites {
            delta.drop_table(old);
        }
        for index in old.relation.indexes.iter().filter(|_| !self.rewrites) {
            if !relation.indexes.iter().any(|own| own.id == index.id) {
                delta.clear(index.space, index.id);
            }
        }
        delta.put_table(&draft.table);
        delta.set_next_id(draft.next_id);
        if !keys.is_empty() {
            let next = draft.catalog.with(&delta)?;
            let (tables, keys) = keys_of(&next, &keys)?;
            let ids: Vec<ObjectId> = tables.iter().map(|table| table.id).collect();
            let context = draft.context;
            // The table's own rows are written by then.
            let pass = Pass::new("foreign keys", &ids, &(&tables, &keys));
            pass.run(rows, |rows| check_children(&tables, &keys, context, rows))?;
        }
        Ok(delta)
    }

    /// The columns that are numbered, with their sequences.
    fn sequences(&self, draft: &Draft<'_>) -> Vec<(ColumnNumber, Sequence)> {
        let of = |column: &ColumnNumber| {
            let own = draft.table.columns[usize::from(*column)].sequence?;
            Some((*column, draft.sequences.get(&own)?.clone()))
        };
        let numbered: Vec<_> = self.numbered.iter().filter_map(of).collect();
        assert_eq!(numbered.len(), self.numbered.len(), "their sequences are new");
        numbered
    }

    /// The places of indexes that have no entries yet: new ones, and those whose keys change.
    fn indexes_to_fill(&self, draft: &mut Draft<'_>, old: &Table) -> Vec<usize> {
        if self.rewrites {
            draft.table.relation.id = draft.new_id();
            super::table::choose_spaces(&mut draft.table);
        }
        let nullable = |relation: &Relation, column: ColumnNumber| {
            relation.columns.get(usize::from(column)).map(|column| column.nullable)
        };
        let mut filled = Vec::new();
        for at in 0..draft.table.relation.indexes.len() {
            let index = draft.table.relation.indexes[at].clone();
            let is_known = old.relation.indexes.iter().any(|own| own.id == index.id);
            let changes = index.columns.iter().any(|key| {
                nullable(&draft.table.relation, key.column) != nullable(&old.relation, key.column)
            });
            if is_known && (changes || self.rewrites) {
                draft.table.relation.indexes[at].id = draft.new_id();
            }
            if !is_known || changes || self.rewrites {
                filled.push(at);
            }
        }
        filled
    }
}

/// The one pass over the rows.
struct Work<'a> {
    rebuild: &'a Rebuild,
    relation: &'a Relation,
    filled: &'a [usize],
    numbered: &'a [(ColumnNumber, Sequence)],
}

/// The sequence goes on behind the numbers that rows have got.
pub(super) fn count_on(draft: &mut Draft<'_>, sequence: &Sequence, given: u64) -> Result<()> {
    let Some(before) = given.checked_sub(1) else { return Ok(()) };
    let (last, is_called) = (sequence_number(sequence, before)?, true);
    let next = Sequence { last, is_called, ..sequence.clone() };
    replace_in(&mut draft.table, sequence.id, &next);
    draft.put_sequence(next);
    Ok(())
}

impl Work<'_> {
    fn pass(&self, old: &Table, nulls: &[ColumnNumber], checks: usize) -> Pass {
        let Rebuild { rewrites, conversions, .. } = self.rebuild;
        let before = (&old.relation, rewrites, conversions, checks);
        let after = (self.relation, self.filled, self.numbered, nulls);
        Pass::new("rows", &[old.relation.id], &(before, after))
    }

    fn run(
        &self,
        old: &Table,
        nulls: &[ColumnNumber],
        checks: usize,
        context: &Context,
        rows: &mut dyn Rows,
    ) -> Result<u64> {
        let all: Vec<ColumnNumber> =
            (0..old.relation.columns.len()).map(ColumnNumber::at).collect();
        let mut pages = Pages::of(&old.relation, &all);
        let writes = self.rebuild.rewrites || !self.filled.is_empty();
        let mut done = 0_u64;
        loop {
            let page = pages.next_page(rows)?;
            if page.is_empty() {
                return Ok(done);
            }
            if writes && done + page.len() as u64 > context.limits.filled_rows_max as u64 {
                return Err(too_many(context));
            }
            for row in page {
                rows.steps(1)?;
                let mut row = self.row(row, context, rows)?;
                for (column, sequence) in self.numbered {
                    let ty = self.relation.columns[usize::from(*column)].kind.ty;
                    row[usize::from(*column)] = number(sequence_number(sequence, done)?, ty);
                }
                done += 1;
                self.check(&row, nulls, checks, context, rows)?;
                self.write(&row, context, rows)?;
            }
        }
    }

    /// The row with the values that it has now.
    fn row(&self, old: Vec<Datum>, context: &Context, rows: &mut dyn Rows) -> Result<Vec<Datum>> {
        let mut row = old.clone();
        let later = &self.relation.columns[old.len()..];
        row.extend(later.iter().map(|column| column.missing.0.clone()));
        for (column, value) in &self.rebuild.conversions {
            row[usize::from(*column)] = value_over(value, &old, context, rows)?;
        }
        Ok(row)
    }

    fn check(
        &self,
        row: &[Datum],
        nulls: &[ColumnNumber],
        checks: usize,
        context: &Context,
        rows: &mut dyn Rows,
    ) -> Result<()> {
        for column in nulls {
            if row[usize::from(*column)].is_null() {
                let name = &self.relation.columns[usize::from(*column)].name;
                let message = format!(
                    "column \"{name}\" of relation \"{}\" contains null values",
                    self.relation.name
                );
                return Err(Error::new(SqlState::NOT_NULL_VIOLATION, message)
                    .with_table(&self.relation.name)
                    .with_column(name));
            }
        }
        for check in &self.relation.checks[checks..] {
            if !passes(check, row, context, rows)? {
                let message = format!(
                    "check constraint \"{}\" of relation \"{}\" is violated by some row",
                    check.name, self.relation.name
                );
                return Err(Error::new(SqlState::CHECK_VIOLATION, message)
                    .with_table(&self.relation.name)
                    .with_constraint(&check.name));
            }
        }
        Ok(())
    }

    fn write(&self, row: &[Datum], context: &Context, rows: &mut dyn Rows) -> Result<()> {
        let relation = self.relation;
        if self.rebuild.rewrites {
            let primary = primary_key(relation, row);
            refuse_primary(relation, row, &primary, rows)?;
            rows.put(relation.space, &primary, &encode_row(relation, row)?)?;
        }
        for at in self.filled {
            fill_entry(relation, &relation.indexes[*at], row, context, rows)?;
        }
        Ok(())
    }
}

/// A number of a sequence as a value of a column, whose numbers it has.
fn number(value: i64, ty: Type) -> Datum {
    match ty {
        Type::Int2 => i16::try_from(value).map_or(Datum::Null, Datum::Int2),
        Type::Int4 => i32::try_from(value).map_or(Datum::Null, Datum::Int4),
        _ => Datum::Int8(value),
    }
}

/// The error of more rows than a definition may write.
pub(super) fn too_many(context: &Context) -> Error {
    let message = format!(
        "a definition in a block writes at most {} rows or entries of rows",
        context.limits.filled_rows_max
    );
    Error::new(SqlState::LIMIT_EXCEEDED, message).with_hint("Define it outside of a block.")
}
