//! What definitions ask about rows that are there.

use super::changes::check_length;
use super::context::Context;
use super::evaluate::Evaluator;
use super::foreign::check_child;
use super::pages::Pages;
use super::rows::Rows;
use super::scan::layout;
use crate::ir::{Check, ColumnNumber, Expression, ForeignKey, Relation};
use values::{Datum, Result};

/// The value of an expression over a row.
pub(crate) fn value_over(
    expression: &Expression,
    row: &[Datum],
    context: &Context,
    rows: &mut dyn Rows,
) -> Result<Datum> {
    Evaluator::new(context, rows).value(expression, row)
}

/// Whether a row passes a CHECK: NULL does, too.
pub(crate) fn passes(
    check: &Check,
    row: &[Datum],
    context: &Context,
    rows: &mut dyn Rows,
) -> Result<bool> {
    Ok(value_over(&check.condition, row, context, rows)? != Datum::Bool(false))
}

/// The bytes of a row.
pub(crate) fn encode_row(relation: &Relation, row: &[Datum]) -> Result<Vec<u8>> {
    let bytes = layout(relation).encode(row);
    check_length(bytes.len())?;
    Ok(bytes)
}

/// Refuses children that have no parent; the keys are between these tables.
pub(crate) fn check_children(
    tables: &[Relation],
    keys: &[ForeignKey],
    context: &Context,
    rows: &mut dyn Rows,
) -> Result<()> {
    for key in keys {
        let child = &tables[usize::from(key.child)];
        let all: Vec<ColumnNumber> = (0..child.columns.len()).map(ColumnNumber::at).collect();
        let mut pages = Pages::of(child, &all);
        loop {
            let page = pages.next_page(rows)?;
            if page.is_empty() {
                break;
            }
            let mut evaluator = Evaluator::new(context, rows);
            for row in page {
                check_child(tables, key, &row, &mut evaluator)?;
            }
        }
    }
    Ok(())
}
