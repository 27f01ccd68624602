//! Calls of functions whose results are rows within the columns of a query.

use super::aggregates::aggregate_named;
use super::items::shown_name;
use super::row_functions::function_named;
use super::scope::AMONG_COLUMNS;
use sqlparser::ast::{
    BinaryOperator, Expr, Function as Call, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    SelectItem, UnaryOperator,
};
use values::{Error, Result};

/// Takes the calls out of a column, which keeps its name. What is in their places are the columns
/// of the table of all calls.
pub(super) fn take_calls(item: &mut SelectItem, calls: &mut Vec<Call>) -> Result<()> {
    let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else {
        return Ok(());
    };
    let (name, before) = (shown_name(expr), calls.len());
    take(expr, calls)?;
    if calls.len() > before
        && let SelectItem::UnnamedExpr(expr) = item
    {
        let alias = Ident::with_quote('"', name);
        *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
    }
    Ok(())
}

/// Takes the calls out of an expression.
fn take(expr: &mut Expr, calls: &mut Vec<Call>) -> Result<()> {
    if matches!(expr, Expr::Function(call) if function_named(&call.name).is_some()) {
        let parts = [AMONG_COLUMNS.to_owned(), calls.len().to_string()];
        let parts = parts.map(|part| Ident::with_quote('"', part)).into();
        let taken = std::mem::replace(expr, Expr::CompoundIdentifier(parts));
        if let Expr::Function(call) = taken {
            calls.push(call);
        }
        return Ok(());
    }
    let refused = refused(expr);
    let before = calls.len();
    for part in parts_of(expr) {
        take(part, calls)?;
    }
    match refused.filter(|_| calls.len() > before) {
        Some(message) => Err(Error::unsupported(message, HINT)),
        None => Ok(()),
    }
}

const HINT: &str = "You might be able to move the set-returning function into a LATERAL FROM item.";

/// Why no call may be within an expression, of one that is not computed for each row.
fn refused(expr: &Expr) -> Option<String> {
    let what = match expr {
        Expr::Case { .. } => "CASE",
        Expr::Function(call) => match own_name(call).as_str() {
            "coalesce" => "COALESCE",
            name if call.over.is_none() && aggregate_named(name).is_some() => {
                let calls = "aggregate function calls cannot contain";
                return Some(format!("{calls} set-returning function calls"));
            }
            _ => return None,
        },
        _ => return None,
    };
    Some(format!("set-returning functions are not allowed in {what}"))
}

fn own_name(call: &Call) -> String {
    let name = call.name.0.last().and_then(|part| part.as_ident());
    name.map(super::binder::name_of).unwrap_or_default()
}

/// The expressions that one is computed from, if it is computed for each row of a call within them.
fn parts_of(expr: &mut Expr) -> Vec<&mut Expr> {
    match expr {
        Expr::Nested(part)
        | Expr::Cast { expr: part, .. }
        | Expr::Collate { expr: part, .. }
        | Expr::IsNull(part)
        | Expr::IsNotNull(part)
        | Expr::Extract { expr: part, .. }
        | Expr::CompoundFieldAccess { root: part, .. } => vec![part],
        Expr::UnaryOp { op, expr } if *op != UnaryOperator::Not => vec![expr],
        Expr::BinaryOp { left, op, right } if !is_logical(op) => vec![left, right],
        Expr::IsDistinctFrom(left, right) | Expr::IsNotDistinctFrom(left, right) => {
            vec![left, right]
        }
        Expr::Like { expr, pattern, .. } | Expr::ILike { expr, pattern, .. } => {
            vec![expr, pattern]
        }
        Expr::Tuple(parts) => parts.iter_mut().collect(),
        Expr::Array(array) => array.elem.iter_mut().collect(),
        Expr::Case { operand, conditions, else_result, .. } => {
            let conditions = conditions.iter_mut();
            let conditions = conditions.flat_map(|when| [&mut when.condition, &mut when.result]);
            let others = operand.iter_mut().chain(else_result).map(|part| &mut **part);
            conditions.chain(others).collect()
        }
        Expr::Function(call) => arguments_of(call),
        _ => Vec::new(),
    }
}

fn is_logical(op: &BinaryOperator) -> bool {
    matches!(op, BinaryOperator::And | BinaryOperator::Or)
}

/// The arguments of a function, but of one over windows.
fn arguments_of(call: &mut Call) -> Vec<&mut Expr> {
    let is_of_value = call.over.is_none();
    let FunctionArguments::List(list) = &mut call.args else { return Vec::new() };
    let argument = |argument| match argument {
        &mut FunctionArg::Unnamed(FunctionArgExpr::Expr(ref mut expr)) => Some(expr),
        _ => None,
    };
    list.args.iter_mut().filter(|_| is_of_value).filter_map(argument).collect()
}
