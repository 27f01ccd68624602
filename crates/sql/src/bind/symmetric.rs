//! BETWEEN SYMMETRIC.

use sqlparser::ast::{Expr, UnaryOperator};

/// Whether the lower bound of BETWEEN begins with the mark that the parser has of SYMMETRIC.
pub(super) fn has_mark(low: &Expr) -> bool {
    let mut place = low;
    loop {
        place = match place {
            Expr::UnaryOp { op: UnaryOperator::PGPrefixFactorial, .. } => return true,
            Expr::BinaryOp { left, .. } => left,
            Expr::Cast { expr, .. } => expr,
            Expr::AtTimeZone { timestamp, .. } => timestamp,
            Expr::CompoundFieldAccess { root, .. } => root,
            _ => return false,
        };
    }
}

/// The lower bound of BETWEEN SYMMETRIC without its mark; `None` of another one.
pub(super) fn without_mark(low: &Expr) -> Option<Expr> {
    if !has_mark(low) {
        return None;
    }
    let mut low = low.clone();
    let mut place = &mut low;
    loop {
        match place {
            Expr::UnaryOp { op: UnaryOperator::PGPrefixFactorial, expr } => {
                let inner = (**expr).clone();
                *place = inner;
                return Some(low);
            }
            Expr::BinaryOp { left, .. } => place = left,
            Expr::Cast { expr, .. } => place = expr,
            Expr::AtTimeZone { timestamp, .. } => place = timestamp,
            Expr::CompoundFieldAccess { root, .. } => place = root,
            _ => return None,
        }
    }
}
