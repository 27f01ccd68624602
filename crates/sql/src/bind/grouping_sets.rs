//! GROUPING SETS, ROLLUP and CUBE: as a UNION ALL of a query for each set. What rows are not
//! grouped by in a set is NULL there.

use super::aggregates::aggregate_named;
use super::binder::{name_of, unsupported};
use super::copies::check_copies;
use super::items::shown_name;
use super::order::ordinal;
use sqlparser::ast::{
    Distinct, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Ident,
    OrderByKind, Query, Select, SelectItem, SetExpr, SetOperator, SetQuantifier, UnaryOperator,
    Value,
};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;
use values::{Error, Result, SqlState};

/// The most sets of a query.
const SETS_MAX: usize = 64;

/// The query with one of its own for each set; `None` if it has no sets.
pub(super) fn expanded(tree: &Select, query: &Query) -> Result<Option<Query>> {
    let GroupByExpr::Expressions(list, _) = &tree.group_by else { return Ok(None) };
    let (list, is_distinct) = plain_list(list);
    let list = &list;
    let is_of_sets =
        |expr: &Expr| matches!(expr, Expr::GroupingSets(_) | Expr::Rollup(_) | Expr::Cube(_));
    if !list.iter().any(is_of_sets) {
        let is_plain = !tree.projection.iter().any(has_grouping) && !list.contains(&nothing());
        return Ok(match is_plain && !is_distinct {
            true => None,
            false => Some(of_one_set(tree, query, list)?),
        });
    }
    let mut sets = sets_of(list, &tree.projection)?;
    if is_distinct {
        keep_distinct(&mut sets);
    }
    check_copies(tree, sets.len())?;
    let mut all: Vec<Expr> = Vec::new();
    for expr in sets.iter().flatten() {
        if !all.contains(expr) {
            all.push(expr.clone());
        }
    }
    let mut body: Option<SetExpr> = None;
    for set in &sets {
        let branch = SetExpr::Select(Box::new(of_set(tree, set, &all)?));
        body = Some(match body {
            None => branch,
            Some(before) => SetExpr::SetOperation {
                op: SetOperator::Union,
                set_quantifier: match tree.distinct {
                    Some(Distinct::Distinct) => SetQuantifier::None,
                    _ => SetQuantifier::All,
                },
                left: Box::new(before),
                right: Box::new(branch),
            },
        });
    }
    let body = body.ok_or_else(|| unsupported("an empty list of sets"))?;
    let mut made = Query { body: Box::new(body), ..query.clone() };
    order_by_places(&mut made, tree);
    Ok(Some(made))
}

/// The list of GROUP BY without the mark of DISTINCT before it, and whether it has that; ROLLUP and
/// CUBE that the parser took for functions are themselves.
fn plain_list(list: &[Expr]) -> (Vec<Expr>, bool) {
    let is_mark = |op: &UnaryOperator| *op == UnaryOperator::PGPrefixFactorial;
    let is_distinct = matches!(list.first(), Some(Expr::UnaryOp { op, .. }) if is_mark(op));
    let plain = |expr: &Expr| match expr {
        Expr::UnaryOp { op, expr } if is_mark(op) => (**expr).clone(),
        other => other.clone(),
    };
    let list = list.iter().map(plain).map(|expr| sets_called(&expr).unwrap_or(expr)).collect();
    (list, is_distinct)
}

/// ROLLUP or CUBE of a call.
fn sets_called(expr: &Expr) -> Option<Expr> {
    let Expr::Function(call) = expr else { return None };
    let FunctionArguments::List(list) = &call.args else { return None };
    let part = |argument: &FunctionArg| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Tuple(parts))) => Some(parts.clone()),
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(vec![expr.clone()]),
        _ => None,
    };
    let parts = list.args.iter().map(part).collect::<Option<Vec<_>>>();
    match call.name.to_string().to_ascii_lowercase().as_str() {
        "rollup" => parts.map(Expr::Rollup),
        "cube" => parts.map(Expr::Cube),
        _ => None,
    }
}

/// Removes sets that are there already, in any order.
fn keep_distinct(sets: &mut Vec<Vec<Expr>>) {
    let mut kept: Vec<Vec<Expr>> = Vec::new();
    for set in sets.drain(..) {
        let is_in = |own: &Vec<Expr>, other: &Vec<Expr>| own.iter().all(|one| other.contains(one));
        if !kept.iter().any(|own| is_in(own, &set) && is_in(&set, own)) {
            kept.push(set);
        }
    }
    *sets = kept;
}

/// `GROUP BY ()`
fn nothing() -> Expr {
    Expr::Tuple(Vec::new())
}

/// A query without sets that has `grouping`, or `()` in GROUP BY.
fn of_one_set(tree: &Select, query: &Query, list: &[Expr]) -> Result<Query> {
    check_copies(tree, 1)?;
    let set: Vec<Expr> = list.iter().filter(|expr| **expr != nothing()).cloned().collect();
    let select = of_set(tree, &set, &set)?;
    Ok(Query { body: Box::new(SetExpr::Select(Box::new(select))), ..query.clone() })
}

/// The sets: one of each item, in all combinations.
fn sets_of(list: &[Expr], projection: &[SelectItem]) -> Result<Vec<Vec<Expr>>> {
    let too_many = || {
        let message = format!("a query has more than {SETS_MAX} grouping sets");
        Error::new(SqlState::STATEMENT_TOO_COMPLEX, message)
    };
    let mut sets: Vec<Vec<Expr>> = vec![Vec::new()];
    for item in list {
        let own: Vec<Vec<Expr>> = match item {
            Expr::GroupingSets(own) => {
                let mut all = Vec::new();
                for set in own {
                    let inner = match &set[..] {
                        [one] => sets_called(one),
                        _ => None,
                    };
                    match inner {
                        Some(inner) => all.extend(sets_of(&[inner], projection)?),
                        None => all.push(set.clone()),
                    }
                }
                all
            }
            Expr::Rollup(parts) => {
                (0..=parts.len()).rev().map(|count| parts[..count].concat()).collect()
            }
            Expr::Cube(parts) => {
                if parts.len() > SETS_MAX.ilog2() as usize {
                    return Err(too_many());
                }
                let is_in = |set: usize, at: usize| set >> (parts.len() - 1 - at) & 1 == 1;
                let of = |set: usize| {
                    let own = parts.iter().enumerate().filter(|(at, _)| is_in(set, *at));
                    own.flat_map(|(_, part)| part.clone()).collect()
                };
                (0..1_usize << parts.len()).rev().map(of).collect()
            }
            Expr::Tuple(parts) => vec![parts.clone()],
            other => vec![vec![other.clone()]],
        };
        if sets.len() * own.len() > SETS_MAX {
            return Err(too_many());
        }
        let with = |set: &Vec<Expr>| -> Vec<Vec<Expr>> {
            own.iter().map(|own| [&set[..], own].concat()).collect()
        };
        sets = sets.iter().flat_map(with).collect();
    }
    let meant = |expr: Expr| match ordinal(&expr).and_then(|at| projection.get(at.wrapping_sub(1)))
    {
        Some(SelectItem::UnnamedExpr(own) | SelectItem::ExprWithAlias { expr: own, .. }) => {
            own.clone()
        }
        _ => expr,
    };
    Ok(sets.into_iter().map(|set| set.into_iter().map(meant).collect()).collect())
}

/// The query of one set.
fn of_set(tree: &Select, set: &[Expr], all: &[Expr]) -> Result<Select> {
    if matches!(tree.distinct, Some(Distinct::On(_))) {
        return Err(unsupported("DISTINCT ON with GROUPING SETS"));
    }
    let rewriter = Rewriter { set, all };
    let mut made = tree.clone();
    made.group_by = GroupByExpr::Expressions(set.to_vec(), Vec::new());
    for item in &mut made.projection {
        let (expr, alias) = match item {
            SelectItem::UnnamedExpr(expr) => {
                let name = shown_name(expr);
                (expr.clone(), Ident::with_quote('"', name))
            }
            SelectItem::ExprWithAlias { expr, alias } => (expr.clone(), alias.clone()),
            _ => continue,
        };
        let expr = rewriter.rewritten(&expr)?;
        *item = SelectItem::ExprWithAlias { expr, alias };
    }
    made.having = match &tree.having {
        Some(having) => Some(rewriter.rewritten(having)?),
        // Rows are grouped, whatever the columns are.
        None => Some(Expr::value(Value::Boolean(true))),
    };
    Ok(made)
}

/// Whether a column has `grouping`.
fn has_grouping(item: &SelectItem) -> bool {
    match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
            matches!(expr, Expr::Function(call) if is_grouping(call))
        }
        _ => false,
    }
}

fn is_grouping(call: &Function) -> bool {
    call.name.to_string().eq_ignore_ascii_case("grouping")
}

/// ORDER BY of a column of the answer by its place: only those are in the order of a UNION.
fn order_by_places(query: &mut Query, tree: &Select) {
    let Some(order) = &mut query.order_by else { return };
    let OrderByKind::Expressions(list) = &mut order.kind else { return };
    for each in list {
        let is_it = |item: &SelectItem| match item {
            SelectItem::UnnamedExpr(expr) => *expr == each.expr,
            SelectItem::ExprWithAlias { expr, .. } => *expr == each.expr,
            _ => false,
        };
        if let Some(at) = tree.projection.iter().position(is_it) {
            each.expr = Expr::value(Value::Number((at + 1).to_string(), false));
        }
    }
}

/// Puts NULL in the place of what rows of a set are not grouped by.
struct Rewriter<'a> {
    set: &'a [Expr],
    all: &'a [Expr],
}

impl Rewriter<'_> {
    fn rewritten(&self, expr: &Expr) -> Result<Expr> {
        let mut made = expr.clone();
        self.rewrite(&mut made)?;
        Ok(made)
    }

    /// Whether rows are grouped by an expression in this set.
    fn is_grouped(&self, expr: &Expr) -> bool {
        self.set.iter().any(|own| is_same(own, expr))
    }

    fn is_missing(&self, expr: &Expr) -> bool {
        self.all.iter().any(|own| is_same(own, expr)) && !self.is_grouped(expr)
    }

    fn rewrite(&self, expr: &mut Expr) -> Result<()> {
        if self.is_missing(expr) {
            *expr = null_like(expr)?;
            return Ok(());
        }
        if self.is_grouped(expr) {
            // Its columns need not be in the set.
            return Ok(());
        }
        match expr {
            Expr::Function(call) if is_grouping(call) => {
                *expr = self.grouping(call)?;
                Ok(())
            }
            Expr::Function(call) if call.over.is_some() => {
                Err(unsupported("window functions with GROUPING SETS"))
            }
            Expr::Function(call) => self.rewrite_call(call),
            Expr::Nested(inner)
            | Expr::UnaryOp { expr: inner, .. }
            | Expr::Cast { expr: inner, .. }
            | Expr::IsNull(inner)
            | Expr::IsNotNull(inner)
            | Expr::IsTrue(inner)
            | Expr::IsNotTrue(inner)
            | Expr::IsFalse(inner)
            | Expr::IsNotFalse(inner)
            | Expr::Extract { expr: inner, .. }
            | Expr::Collate { expr: inner, .. } => self.rewrite(inner),
            Expr::BinaryOp { left, right, .. }
            | Expr::IsDistinctFrom(left, right)
            | Expr::IsNotDistinctFrom(left, right) => {
                self.rewrite(left)?;
                self.rewrite(right)
            }
            Expr::Between { expr, low, high, .. } => {
                self.rewrite(expr)?;
                self.rewrite(low)?;
                self.rewrite(high)
            }
            Expr::Case { operand, conditions, else_result, .. } => {
                operand.iter_mut().try_for_each(|operand| self.rewrite(operand))?;
                for when in conditions {
                    self.rewrite(&mut when.condition)?;
                    self.rewrite(&mut when.result)?;
                }
                else_result.iter_mut().try_for_each(|otherwise| self.rewrite(otherwise))
            }
            Expr::Tuple(parts) => parts.iter_mut().try_for_each(|part| self.rewrite(part)),
            _ => Ok(()),
        }
    }

    /// The arguments of an aggregate are those of each row, whatever rows are grouped by.
    fn rewrite_call(&self, call: &mut Function) -> Result<()> {
        if aggregate_named(&call.name.to_string().to_ascii_lowercase()).is_some() {
            return Ok(());
        }
        let FunctionArguments::List(list) = &mut call.args else { return Ok(()) };
        for argument in &mut list.args {
            if let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = argument {
                self.rewrite(expr)?;
            }
        }
        Ok(())
    }

    /// `grouping`: a bit for each argument, which is 1 where rows are not grouped by it.
    fn grouping(&self, call: &Function) -> Result<Expr> {
        let FunctionArguments::List(list) = &call.args else {
            return Err(unsupported("grouping without arguments"));
        };
        let mut bits = 0_u32;
        for argument in &list.args {
            let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = argument else {
                return Err(unsupported("this form of grouping"));
            };
            if !self.all.iter().any(|own| is_same(own, expr)) {
                let message = "arguments to GROUPING must be grouping expressions of the \
                               associated query level";
                return Err(Error::new(SqlState::GROUPING_ERROR, message));
            }
            bits = bits << 1 | u32::from(self.is_missing(expr));
        }
        Ok(Expr::value(Value::Number(bits.to_string(), false)))
    }
}

/// Whether two expressions are one, with the table before the name of a column or not.
fn is_same(left: &Expr, right: &Expr) -> bool {
    let last = |expr: &Expr| match expr {
        Expr::Identifier(ident) => Some((name_of(ident), true)),
        Expr::CompoundIdentifier(parts) => parts.last().map(|ident| (name_of(ident), false)),
        _ => None,
    };
    match (last(left), last(right)) {
        (Some((own, is_short)), Some((other, other_short))) if is_short || other_short => {
            own == other
        }
        _ => left == right,
    }
}

/// NULL of the type of an expression: an item of an array of no rows.
fn null_like(expr: &Expr) -> Result<Expr> {
    let bug = || Error::new(SqlState::INTERNAL, "a NULL of a type is none");
    let mut parser = Parser::new(&PostgreSqlDialect {})
        .try_with_sql("(array_agg(NULL) FILTER (WHERE false))[1]")
        .map_err(|_| bug())?;
    let mut made = parser.parse_expr().map_err(|_| bug())?;
    let Expr::CompoundFieldAccess { root, .. } = &mut made else { return Err(bug()) };
    let Expr::Nested(inner) = &mut **root else { return Err(bug()) };
    let Expr::Function(call) = &mut **inner else { return Err(bug()) };
    let FunctionArguments::List(list) = &mut call.args else { return Err(bug()) };
    match list.args.first_mut() {
        Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(place))) => *place = expr.clone(),
        _ => return Err(bug()),
    }
    Ok(made)
}
