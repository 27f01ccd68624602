//! Arrays as values: made of items, their parts, and comparisons with their items.

use super::binder::Binder;
use super::coerce::Bound;
use super::expression::{call, negate_if, no_operator, unsupported};
use super::kinds::{Willing, check_compares, compared};
use crate::ir::{ArrayFunction, Function};
use sqlparser::ast::{AccessExpr, BinaryOperator, Expr, Subscript};
use values::{Datum, Error, Result, SqlState, Type};

/// The number of a comparison in calls of [`ArrayFunction::CompareAny`].
fn comparison_number(op: &BinaryOperator) -> Option<i32> {
    Some(match op {
        BinaryOperator::Lt => 0,
        BinaryOperator::LtEq => 1,
        BinaryOperator::Eq => 2,
        BinaryOperator::NotEq => 3,
        BinaryOperator::GtEq => 4,
        BinaryOperator::Gt => 5,
        BinaryOperator::PGLikeMatch => 6,
        BinaryOperator::PGILikeMatch => 7,
        BinaryOperator::PGNotLikeMatch => 8,
        BinaryOperator::PGNotILikeMatch => 9,
        _ => return None,
    })
}

/// The first of the numbers of LIKE and its kin, which compare text.
const FIRST_OF_TEXT: i32 = 6;

/// A bound of a slice that is left out.
fn left_out() -> Bound {
    Bound::constant(Datum::Bool(false), Type::Bool)
}

impl Binder<'_> {
    /// `left op ANY (right)` and `left op ALL (right)`: both sides become of the type in which a
    /// value of the left one and an item of the right one are compared, so that neither is rounded.
    pub(super) fn compared_items(
        &mut self,
        left: &Expr,
        op: &BinaryOperator,
        right: &Expr,
        is_any: bool,
    ) -> Result<Bound> {
        let number = comparison_number(op).ok_or_else(|| {
            let name = if is_any { "ANY" } else { "ALL" };
            Error::unsupported(format!("operator {op} with {name} of an array"), "")
        })?;
        let (mut left, right) = (self.expression(left)?, self.expression(right)?);
        if number >= FIRST_OF_TEXT {
            left = self.coerce(left.with_blanks(), Type::Text, Willing::Implicit)?;
        }
        let no_array = || {
            let message = "op ANY/ALL (array) requires array on right side";
            Error::new(SqlState::WRONG_OBJECT, message)
        };
        let items = right.ty().map(|ty| ty.element().ok_or_else(no_array)).transpose()?;
        let ty = match (left.ty(), items) {
            (Some(own), Some(items)) => compared(own, items)
                .ok_or_else(|| no_operator(&format!("{} {op} {}", own.name(), items.name())))?,
            (own, items) => own.or(items).unwrap_or(Type::Text),
        };
        check_compares(Some(ty), "equality")?;
        let array = ty.array().ok_or_else(no_array)?;
        let left = self.coerce(left, ty, Willing::Implicit)?;
        let right = self.coerce(right, array, Willing::Explicit)?;
        match (op, is_any) {
            (BinaryOperator::Eq, true) | (BinaryOperator::NotEq, false) => {
                let equal = call(Function::EqualAny, vec![left, right], Type::Bool);
                Ok(negate_if(!is_any, equal))
            }
            _ => {
                let function =
                    if is_any { ArrayFunction::CompareAny } else { ArrayFunction::CompareAll };
                let number = Bound::constant(Datum::Int4(number), Type::Int4);
                let all = vec![left, number, right];
                Ok(call(Function::Array(function), all, Type::Bool))
            }
        }
    }

    /// An array of arrays, which have the same dimensions.
    pub(super) fn nested_array(&mut self, items: Vec<Bound>, ty: Type) -> Bound {
        call(Function::Array(ArrayFunction::Nest), items, ty)
    }

    /// An item of an array by several subscripts, or a part of it.
    pub(super) fn array_part(
        &mut self,
        root: &Expr,
        array: Bound,
        chain: &[AccessExpr],
    ) -> Result<Bound> {
        let (Some(ty), Some(element)) = (array.ty(), array.ty().and_then(Type::element)) else {
            return Err(unsupported(root));
        };
        let is_slice =
            |access: &AccessExpr| matches!(access, AccessExpr::Subscript(Subscript::Slice { .. }));
        let has_slice = chain.iter().any(is_slice);
        let mut all = vec![array];
        for access in chain {
            match access {
                AccessExpr::Subscript(Subscript::Index { index }) => {
                    if has_slice {
                        all.push(Bound::constant(Datum::Int4(1), Type::Int4));
                    }
                    all.push(self.subscript(index)?);
                }
                AccessExpr::Subscript(Subscript::Slice {
                    lower_bound,
                    upper_bound,
                    stride: None,
                }) => {
                    for bound in [lower_bound, upper_bound] {
                        all.push(match bound {
                            Some(bound) => self.subscript(bound)?,
                            None => left_out(),
                        });
                    }
                }
                _ => return Err(unsupported(root)),
            }
        }
        Ok(match has_slice {
            true => call(Function::Array(ArrayFunction::Slice), all, ty),
            false => call(Function::Array(ArrayFunction::Item), all, element),
        })
    }

    fn subscript(&mut self, index: &Expr) -> Result<Bound> {
        let index = self.expression(index)?;
        self.coerce(index, Type::Int4, Willing::Assignment)
    }
}
