//! IN of a list of values.

use super::binder::{Binder, row_parts, unsupported};
use super::coerce::{Bound, Form};
use super::expression::{call, negate_if, not_equal, refuse_long};
use super::kinds::{check_compares, chosen, common, compared};
use super::operators::joined;
use crate::ir::Function;
use sqlparser::ast::{BinaryOperator, Expr};
use values::{Result, Type};

impl Binder<'_> {
    /// Binds `expr IN (list)`.
    pub(super) fn in_list(&mut self, expr: &Expr, list: &[Expr], negated: bool) -> Result<Bound> {
        if let Some(row) = row_parts(expr) {
            return self.row_in_list(&row, list, negated);
        }
        let value = self.expression(expr)?;
        let items = list.iter().map(|item| self.expression(item)).collect::<Result<Vec<_>>>()?;
        let found = match <[Bound; 1]>::try_from(items) {
            Ok([item]) => self.equals_item(value, item)?,
            // A list without columns is an array, whose type is chosen with that of the value.
            Err(items) if !items.iter().any(Bound::has_column) => {
                let all = self.unify_as([vec![value], items].concat(), chosen, not_equal)?;
                is_in(all)?
            }
            Err(items) if compare_alike(&value, &items) => {
                let all = self.unify([vec![value], items].concat())?;
                is_in(all)?
            }
            Err(items) => self.in_parts(expr, value, items)?,
        };
        Ok(negate_if(negated, found))
    }

    /// A list with columns of several types: each item with a column is compared by itself, as
    /// PostgreSQL does it, and the others as one array.
    fn in_parts(&mut self, expr: &Expr, value: Bound, items: Vec<Bound>) -> Result<Bound> {
        let (mut single, others): (Vec<_>, Vec<_>) = items.into_iter().partition(Bound::has_column);
        let mut found: Option<Bound> = None;
        if others.len() > 1 {
            let all = self.unify_as([vec![value.clone()], others].concat(), chosen, not_equal)?;
            found = Some(is_in(all)?);
        } else {
            single.extend(others);
        }
        for item in single {
            // A parameter has the type of the first comparison.
            let value = match value.form {
                Form::Parameter(_) => self.expression(expr)?,
                _ => value.clone(),
            };
            let one = self.equals_item(value, item)?;
            found = Some(match found {
                Some(found) => joined(found, one, true, Function::Or),
                None => one,
            });
            // Before it becomes long: the value is repeated for each item.
            refuse_long(found.as_ref().map_or(0, |found| found.code.len()))?;
        }
        found.ok_or_else(|| unsupported("an empty list"))
    }

    fn equals_item(&mut self, value: Bound, item: Bound) -> Result<Bound> {
        is_in(self.comparable(value, &BinaryOperator::Eq, item)?)
    }
}

/// Whether one of the others of these values equals the first one.
fn is_in(all: Vec<Bound>) -> Result<Bound> {
    check_compares(all[0].ty(), "equality")?;
    Ok(call(Function::In, all, Type::Bool))
}

/// Whether a value is compared with each of these in the type that all of them have in common.
fn compare_alike(value: &Bound, items: &[Bound]) -> bool {
    let own = value.ty();
    let mut types = own.into_iter().chain(items.iter().filter_map(Bound::ty));
    let first = types.next();
    let all = first.and_then(|first| types.try_fold(first, common));
    items.iter().filter_map(Bound::ty).all(|item| {
        let ty = own.map_or(Some(item), |own| compared(own, item));
        ty.is_some() && ty == all
    })
}
