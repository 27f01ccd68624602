//! The columns, expressions and predicates of indexes, where an index is made and where ON CONFLICT
//! looks for one.

use super::binder::Binder;
use super::coerce::Form;
use super::immutable::is_immutable;
use super::items::{is_name, shown_name};
use super::known::Known;
use crate::ir::{ColumnNumber, Computed, Expression, Index, KeyColumn, Kind, Relation};
use sqlparser::ast::Expr;
use values::{Error, Result, SqlState, Type};

/// What a part of an index's key is of.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum KeyPart {
    /// A column of the table.
    Column(ColumnNumber),
    /// An expression over its columns.
    Computed(Computed),
}

/// The name that an expression has in the name of its index, and among its columns.
pub(crate) fn index_column_name(expr: &Expr) -> String {
    match shown_name(expr) {
        name if name == "?column?" && !is_name(expr) => "expr".to_owned(),
        name => name,
    }
}

/// Whether an expression may stand in the list of an index without brackets of its own.
pub(crate) fn is_index_element(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::Identifier(_)
            | Expr::CompoundIdentifier(_)
            | Expr::Function(_)
            | Expr::Nested(_)
            | Expr::Substring { .. }
            | Expr::Trim { .. }
            | Expr::Extract { .. }
            | Expr::Position { .. }
            | Expr::Overlay { .. }
            | Expr::Ceil { .. }
            | Expr::Floor { .. }
            | Expr::Collate { .. }
    ) || matches!(expr, Expr::Cast { kind: sqlparser::ast::CastKind::Cast, .. })
}

impl Binder<'_> {
    /// A part of an index's key.
    pub(crate) fn key_part(&mut self, expr: &Expr) -> Result<KeyPart> {
        self.no_queries = Some("index expression");
        self.clause = "index expressions";
        let bound = self.expression(expr)?;
        if let Form::Column(column) = bound.form {
            return Ok(KeyPart::Column(column));
        }
        let bound = self.settle(bound)?;
        let kind = Kind::plain(bound.ty().unwrap_or(Type::Text));
        Ok(KeyPart::Computed(Computed { value: bound.expression(), kind }))
    }

    /// The conditions of an index's predicate.
    pub(crate) fn index_predicate(&mut self, expr: &Expr) -> Result<Vec<Expression>> {
        self.no_queries = Some("index predicate");
        let conjuncts = self.conjuncts(Some(expr), "WHERE")?;
        Ok(conjuncts.into_iter().map(|conjunct| conjunct.bound.expression()).collect())
    }

    /// Refuses what may come to something else for the same row later, of what was bound last.
    pub(crate) fn refuse_mutable(
        &self,
        value: &Expression,
        relation: &Relation,
        what: &str,
    ) -> Result<()> {
        if is_immutable(&value.code, relation, false) && !self.uses_zone {
            return Ok(());
        }
        let message = format!("functions in index {what} must be marked IMMUTABLE");
        Err(Error::new(SqlState::INVALID_OBJECT_DEFINITION, message))
    }

    /// Whether what was bound last comes to the same for the same row, as long as that is kept.
    pub(crate) fn is_lasting(&self, value: &Expression, relation: &Relation) -> bool {
        is_immutable(&value.code, relation, true) && !self.uses_zone
    }

    /// What a predicate says of rows.
    pub(super) fn known_by(&mut self, predicate: Option<&Expr>) -> Result<Known> {
        self.no_queries = Some("index predicate");
        let conjuncts = self.conjuncts(predicate, "WHERE")?;
        Ok(super::conditions::filter_of(conjuncts).1)
    }
}

/// Whether a key is of just these parts, in any order.
pub(super) fn is_of(index: Option<&Index>, key: &[KeyColumn], parts: &[KeyPart]) -> bool {
    let part = |column: &KeyColumn| match index.and_then(|index| index.expression_of(column)) {
        Some(computed) => KeyPart::Computed(computed.clone()),
        None => KeyPart::Column(column.column),
    };
    let own: Vec<KeyPart> = key.iter().map(part).collect();
    own.iter().all(|part| parts.contains(part)) && parts.iter().all(|part| own.contains(part))
}
