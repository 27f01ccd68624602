//! Rows in brackets: compared, in lists, and as values for several columns.

use super::binder::{Binder, name_of, row_parts, unsupported, written_name};
use super::coerce::Bound;
use super::expression::{call, negate_if};
use super::operators::{comparison, joined};
use super::scope::Resolved;
use crate::ir::Function;
use sqlparser::ast::{
    Assignment, AssignmentTarget, BinaryOperator, Expr, Function as Call, FunctionArg,
    FunctionArgExpr, FunctionArguments, Ident, Query, SelectItem, SetExpr, Statement, TableFactor,
};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;
use std::borrow::Cow;
use values::{Datum, Error, Position, Result, SqlState, Type};

impl Binder<'_> {
    /// A row as a value.
    pub(super) fn record(&mut self, expr: &Expr) -> Result<Bound> {
        let parts = match expr {
            Expr::Function(function) => self.written_parts(function)?,
            other => row_parts(other).unwrap_or_default().into_iter().cloned().collect(),
        };
        let mut fields = Vec::with_capacity(parts.len());
        for part in &parts {
            let field = self.expression(part)?;
            fields.push(self.settle(field)?);
        }
        Ok(call(Function::MakeRecord, fields, Type::Record))
    }

    /// The parts of `ROW(...)`, in which `table.*` stands for columns.
    fn written_parts(&self, function: &Call) -> Result<Vec<Expr>> {
        let FunctionArguments::List(list) = &function.args else { return Ok(Vec::new()) };
        let mut parts = Vec::with_capacity(list.args.len());
        for argument in &list.args {
            match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(part)) => parts.push(part.clone()),
                FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(name)) => {
                    let columns = self.columns_of(&written_name(name)?);
                    let columns = columns.ok_or_else(|| unsupported("this row of a table"))?;
                    parts.extend(columns.iter().map(column_of_table));
                }
                _ => return Err(unsupported("this form of ROW")),
            }
        }
        Ok(parts)
    }

    /// Whether a name means the row of a table of FROM, as no column is called so.
    pub(super) fn is_row_of_table(&self, ident: &Ident) -> bool {
        let name = name_of(ident);
        self.scope.has_table(&name)
            && matches!(self.scope.resolve(None, &name), Ok(None))
            && !matches!(self.scope.resolve(Some(&name), &name), Ok(Some(_)))
    }

    /// A field of a row that is written there, or of a table of FROM; `None` of anything else.
    pub(super) fn field_of_row(&mut self, row: &Expr, field: &Ident) -> Result<Option<Bound>> {
        if let Expr::Identifier(table) = row
            && self.is_row_of_table(table)
        {
            let column = vec![table.clone(), field.clone()];
            return self.expression(&Expr::CompoundIdentifier(column)).map(Some);
        }
        let Some(parts) = row_parts(row) else { return Ok(None) };
        let name = name_of(field);
        let place = name.strip_prefix('f').and_then(|place| place.parse::<usize>().ok());
        match place.and_then(|place| parts.get(place.checked_sub(1)?)) {
            Some(part) => {
                let value = self.expression(part)?;
                self.settle(value).map(Some)
            }
            None => {
                let message = format!("could not identify column \"{name}\" in record data type");
                Err(Error::new(SqlState::UNDEFINED_COLUMN, message))
            }
        }
    }

    /// The columns of a table whose row an expression names.
    pub(super) fn parts_of_row(&self, expr: &Expr) -> Option<Vec<Expr>> {
        let Expr::Identifier(ident) = expr else { return None };
        if !self.is_row_of_table(ident) {
            return None;
        }
        let columns = self.scope.all_of(&name_of(ident))?;
        Some(columns.iter().map(column_of_table).collect())
    }

    /// The row of a table that is called so, as a value.
    pub(super) fn whole_row(
        &mut self,
        name: &str,
        position: Option<Position>,
    ) -> Result<Option<Bound>> {
        let Some(columns) = self.scope.all_of(name).map(<[_]>::to_vec) else { return Ok(None) };
        let fields = columns.into_iter().map(|column| self.own_column(column, position));
        let fields = fields.collect::<Result<Vec<_>>>()?;
        Ok(Some(call(Function::TableRow, fields, Type::Record)))
    }

    /// A comparison of rows: the first parts that differ decide.
    pub(super) fn rows_compared(
        &mut self,
        left: &[&Expr],
        op: &BinaryOperator,
        right: &[&Expr],
    ) -> Result<Bound> {
        if left.len() != right.len() {
            let message = "unequal number of entries in row expressions";
            return Err(Error::new(SqlState::SYNTAX_ERROR, message));
        }
        let function = comparison(op)
            .ok_or_else(|| Error::unsupported(format!("operator {op} of rows"), ""))?;
        let mut pairs = Vec::with_capacity(left.len());
        for (left, right) in left.iter().zip(right) {
            let (left, right) = (self.expression(left)?, self.expression(right)?);
            pairs.push(self.comparable(left, op, right)?);
        }
        let compared = |function, pair: Vec<Bound>| call(function, pair, Type::Bool);
        let strict = match function {
            Function::Less | Function::LessEqual => Function::Less,
            _ => Function::Greater,
        };
        let mut all: Option<Bound> = None;
        for pair in pairs.into_iter().rev() {
            all = Some(match (function, all) {
                (_, None) => compared(function, pair),
                (Function::Equal, Some(rest)) => {
                    joined(compared(function, pair), rest, false, Function::And)
                }
                (Function::NotEqual, Some(rest)) => {
                    joined(compared(function, pair), rest, true, Function::Or)
                }
                (_, Some(rest)) => {
                    let equal = compared(Function::Equal, pair.clone());
                    let rest = joined(equal, rest, false, Function::And);
                    joined(compared(strict, pair), rest, true, Function::Or)
                }
            });
        }
        all.ok_or_else(|| Error::unsupported("an empty row", ""))
    }

    /// IS DISTINCT FROM of rows: whether any parts differ.
    pub(super) fn rows_distinct(
        &mut self,
        left: &[&Expr],
        right: &[&Expr],
        negated: bool,
    ) -> Result<Bound> {
        if left.len() != right.len() {
            let message = "unequal number of entries in row expressions";
            return Err(Error::new(SqlState::SYNTAX_ERROR, message));
        }
        let mut all: Option<Bound> = None;
        for (left, right) in left.iter().zip(right) {
            let (left, right) = (self.expression(left)?, self.expression(right)?);
            let both = self.comparable(left, &BinaryOperator::Eq, right)?;
            let one = call(Function::IsDistinct, both, Type::Bool);
            all = Some(match all {
                Some(all) => joined(all, one, true, Function::Or),
                None => one,
            });
        }
        let all = all.ok_or_else(|| Error::unsupported("an empty row", ""))?;
        Ok(negate_if(negated, all))
    }

    /// IS NULL or IS NOT NULL of all parts of a row.
    pub(super) fn all_are(&mut self, function: Function, parts: &[&Expr]) -> Result<Bound> {
        let mut all = Bound::constant(Datum::Bool(true), Type::Bool);
        for part in parts {
            let bound = self.expression(part)?;
            let one = call(function, vec![self.settle(bound)?], Type::Bool);
            all = joined(all, one, false, Function::And);
        }
        Ok(all)
    }

    /// A row in a list of rows.
    pub(super) fn row_in_list(
        &mut self,
        row: &[&Expr],
        list: &[Expr],
        negated: bool,
    ) -> Result<Bound> {
        let mut all: Option<Bound> = None;
        for item in list {
            let parts = row_parts(item).ok_or_else(|| unsupported("IN of rows and values"))?;
            let one = self.rows_compared(row, &BinaryOperator::Eq, &parts)?;
            all = Some(match all {
                Some(all) => joined(all, one, true, Function::Or),
                None => one,
            });
        }
        let all = all.ok_or_else(|| unsupported("an empty list"))?;
        Ok(negate_if(negated, all))
    }

    /// Assignments of one column each: `(a, b) = (1, 2)` and `(a, b) = (SELECT 1, 2)` are two.
    pub(super) fn single_assignments<'a>(
        &self,
        list: &'a [Assignment],
    ) -> Result<Vec<Cow<'a, Assignment>>> {
        let mut single = Vec::with_capacity(list.len());
        for assignment in list {
            let AssignmentTarget::Tuple(names) = &assignment.target else {
                single.push(Cow::Borrowed(assignment));
                continue;
            };
            let values = values_of(&assignment.value, names.len())?;
            if values.len() != names.len() {
                let message = "number of columns does not match number of values";
                let position = self.position_of_bracket(&assignment.value);
                return Err(Error::new(SqlState::SYNTAX_ERROR, message).at(position));
            }
            let pairs = names.iter().zip(values);
            single.extend(pairs.map(|(name, value)| {
                let target = AssignmentTarget::ColumnName(name.clone());
                Cow::Owned(Assignment { target, value })
            }));
        }
        Ok(single)
    }
}

/// A column of a table, by both their names.
fn column_of_table(column: &Resolved) -> Expr {
    let quoted = |name: &str| Ident::with_quote('"', name);
    Expr::CompoundIdentifier(vec![quoted(&column.table), quoted(&column.name)])
}

/// Refuses a query of more or fewer columns than a row has parts, as far as its text says so.
pub(super) fn check_width(query: &Query, count: usize) -> Result<()> {
    let SetExpr::Select(select) = &*query.body else { return Ok(()) };
    let is_star = |item: &SelectItem| {
        matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..))
    };
    if select.projection.iter().any(is_star) || select.projection.len() == count {
        return Ok(());
    }
    let few = if select.projection.len() < count { "few" } else { "many" };
    Err(Error::new(SqlState::SYNTAX_ERROR, format!("subquery has too {few} columns")))
}

/// A value for each column: the parts of a row, or the columns of a query of one row.
pub(super) fn values_of(value: &Expr, count: usize) -> Result<Vec<Expr>> {
    if let Some(parts) = row_parts(value) {
        return Ok(parts.into_iter().cloned().collect());
    }
    let query = match value {
        Expr::Subquery(query) => query,
        Expr::Nested(inner) => return Ok(vec![(**inner).clone()]),
        _ => return Err(unsupported("assignment of this to several columns at once")),
    };
    let is_star = |item: &SelectItem| {
        matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..))
    };
    match &*query.body {
        SetExpr::Select(select)
            if select.projection.len() != count && !select.projection.iter().any(is_star) =>
        {
            // As many as there are: the caller says that they are too few or too many.
            Ok(vec![value.clone(); select.projection.len()])
        }
        _ => (0..count).map(|at| column_of(query, at, count)).collect(),
    }
}

/// A query of one column of another one, of so many.
fn column_of(query: &Query, at: usize, count: usize) -> Result<Expr> {
    let names: Vec<String> = (0..count).map(|at| format!("c{at}")).collect();
    let text = format!("SELECT c{at} FROM (SELECT) AS q ({})", names.join(", "));
    let bug = || Error::new(SqlState::INTERNAL, "a query of a column is none");
    let parsed = Parser::parse_sql(&PostgreSqlDialect {}, &text).map_err(|_| bug())?.pop();
    let Some(Statement::Query(mut made)) = parsed else { return Err(bug()) };
    let SetExpr::Select(select) = &mut *made.body else { return Err(bug()) };
    match select.from.first_mut().map(|from| &mut from.relation) {
        Some(TableFactor::Derived { subquery, .. }) => **subquery = query.clone(),
        _ => return Err(bug()),
    }
    Ok(Expr::Subquery(made))
}
