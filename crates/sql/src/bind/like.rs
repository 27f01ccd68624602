//! LIKE and ILIKE, of a pattern or of an array of patterns.

use super::binder::{Binder, unsupported};
use super::coerce::Bound;
use super::expression::{call, negate_if, query_in};
use super::kinds::Willing;
use crate::ir::Function;
use sqlparser::ast::{BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments};
use values::{Result, Type};

/// How text is compared with patterns.
#[derive(Clone, Copy)]
pub(super) struct Like {
    /// LIKE or ILIKE.
    pub(super) function: Function,
    pub(super) negated: bool,
    /// Whether ANY stands before the pattern.
    pub(super) any: bool,
}

impl Like {
    fn operator(self) -> BinaryOperator {
        match (self.function, self.negated) {
            (Function::ILike, false) => BinaryOperator::PGILikeMatch,
            (Function::ILike, true) => BinaryOperator::PGNotILikeMatch,
            (_, false) => BinaryOperator::PGLikeMatch,
            (_, true) => BinaryOperator::PGNotLikeMatch,
        }
    }

    /// The array of ANY, SOME and ALL, and whether one item is enough.
    fn items(self, pattern: &Expr) -> Option<(&Expr, bool)> {
        if self.any {
            return Some((pattern, true));
        }
        let Expr::Function(call) = pattern else { return None };
        let name = call.name.to_string().to_ascii_lowercase();
        let FunctionArguments::List(list) = &call.args else { return None };
        let [FunctionArg::Unnamed(FunctionArgExpr::Expr(items))] = &list.args[..] else {
            return None;
        };
        matches!(&*name, "all" | "some").then_some((items, name == "some"))
    }
}

impl Binder<'_> {
    pub(super) fn like(
        &mut self,
        like: Like,
        [expr, pattern]: [&Expr; 2],
        escape: Option<&Expr>,
    ) -> Result<Bound> {
        if let Some((items, is_any)) = like.items(pattern) {
            if escape.is_some() || query_in(items).is_some() {
                return Err(unsupported("LIKE ANY of a query, or with ESCAPE"));
            }
            return self.compared_items(expr, &like.operator(), items, is_any);
        }
        let (left, right) = (self.expression(expr)?, self.expression(pattern)?);
        let left = self.coerce(left.with_blanks(), Type::Text, Willing::Implicit)?;
        let mut right = self.coerce(right, Type::Text, Willing::Implicit)?;
        if let Some(escape) = escape {
            let escape = self.expression(escape)?;
            let escape = self.coerce(escape, Type::Text, Willing::Implicit)?;
            right = call(Function::EscapedPattern, vec![right, escape], Type::Text);
        }
        Ok(negate_if(like.negated, call(like.function, vec![left, right], Type::Bool)))
    }
}
