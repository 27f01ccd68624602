//! The columns of an answer, by SELECT or RETURNING.

use super::binder::{Binder, name_of, unsupported, written_name};
use super::coerce::Bound;
use super::conditions::Conjunct;
use super::door::check_wildcard;
use super::output::OutputColumn;
use super::scope::Resolved;
use crate::catalog::{Catalog, Written};
use crate::ir::{ColumnNumber, Expression, Op, Query as Plan, Relation};
use sqlparser::ast::{
    AccessExpr, ArrayElemTypeDef, DataType, Expr, ObjectNamePart, Query, SelectItem, SetExpr,
    TrimWhereField,
};
use values::{Error, Result, SqlState, Type};

/// A query with the columns of its answer.
pub(super) struct Bounded {
    pub(super) plan: Plan,
    /// Their code is that of the plan's output.
    pub(super) items: Vec<Item>,
    /// The table whose rows it filters and computes, if it does nothing else.
    pub(super) table: Option<Filtered>,
}

/// A table with conditions on its rows.
#[derive(Clone)]
pub(super) struct Filtered {
    pub(super) relation: Box<Relation>,
    pub(super) conditions: Vec<Conjunct>,
    /// Whether it puts them in order, too, which says nothing where they are written.
    pub(super) is_sorted: bool,
}

/// What becomes of literals and parameters without a type among the columns of an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Untyped {
    /// They are text.
    Text,
    /// What the query is for says.
    Kept,
}

/// The most columns of an answer, as in PostgreSQL.
pub(super) const COLUMNS_MAX: usize = 1_664;

/// A column of an answer while it is bound.
#[derive(Clone)]
pub(super) struct Item {
    pub(super) name: String,
    pub(super) bound: Bound,
    pub(super) expr: Option<Expr>,
}

impl Item {
    /// What a client is told of it.
    pub(super) fn column(&self) -> OutputColumn {
        OutputColumn::of(&self.name, &self.bound)
    }
}

impl Binder<'_> {
    /// The columns of an answer, by SELECT or RETURNING.
    pub(super) fn items(&mut self, projection: &[SelectItem]) -> Result<Vec<Item>> {
        if projection.len() > COLUMNS_MAX {
            return Err(too_many());
        }
        let mut items = Vec::new();
        for item in projection {
            match item {
                SelectItem::UnnamedExpr(expr) => {
                    let bound = self.expression(expr)?;
                    items.push(Item { name: shown_name(expr), bound, expr: Some(expr.clone()) });
                }
                SelectItem::ExprWithAlias { expr, alias } => {
                    let bound = self.expression(expr)?;
                    items.push(Item { name: name_of(alias), bound, expr: Some(expr.clone()) });
                }
                SelectItem::Wildcard(star) => {
                    check_wildcard(star)?;
                    let columns = self.wildcard(None, &mut items)?;
                    self.note_star(star, None, &columns)?;
                }
                SelectItem::QualifiedWildcard(
                    sqlparser::ast::SelectItemQualifiedWildcardKind::ObjectName(name),
                    star,
                ) => {
                    check_wildcard(star)?;
                    let table = written_name(name)?;
                    let columns = self.wildcard(Some(&table), &mut items)?;
                    self.note_star(star, Some(&table.own), &columns)?;
                }
                _ => return Err(unsupported("this form of column")),
            }
        }
        Ok(items)
    }

    /// The columns of a table of FROM; `None` if there is no such table.
    pub(super) fn columns_of(&self, table: &Written) -> Option<Vec<Resolved>> {
        let schema = table.schema.as_ref().and_then(|schema| self.catalog.schema_named(schema));
        let of_schema = schema.and_then(|schema| self.scope.all_in(schema, &table.own));
        of_schema.or_else(|| self.scope.all_of(&table.own)).map(<[_]>::to_vec)
    }

    /// Adds the columns that `*` means.
    fn wildcard(
        &mut self,
        table: Option<&Written>,
        items: &mut Vec<Item>,
    ) -> Result<Vec<Resolved>> {
        let wanted = match table {
            None if self.scope.width() == 0 => {
                let message = "SELECT * with no tables specified is not valid";
                return Err(Error::new(SqlState::SYNTAX_ERROR, message));
            }
            None => self.scope.all().to_vec(),
            Some(table) => {
                let missing = || super::scope::missing(Some(&table.own), "*");
                self.columns_of(table).ok_or_else(missing)?
            }
        };
        if items.len() + wanted.len() > COLUMNS_MAX {
            return Err(too_many());
        }
        for column in &wanted {
            let name = column.name.clone();
            let bound = self.own_column(column.clone(), None)?;
            items.push(Item { name, bound, expr: None });
        }
        Ok(wanted)
    }
}

/// All columns of a row.
pub(super) fn identity(width: usize) -> Vec<Expression> {
    (0..width).map(|at| Expression::of(Op::Column(ColumnNumber::at(at)))).collect()
}

fn too_many() -> Error {
    let message = format!("target lists can have at most {COLUMNS_MAX} entries");
    Error::new(SqlState::TOO_MANY_COLUMNS, message)
}

/// The name that PostgreSQL gives a column without one.
pub(super) fn shown_name(expr: &Expr) -> String {
    match expr {
        Expr::Identifier(ident) => name_of(ident),
        Expr::CompoundIdentifier(parts) => parts.last().map(name_of).unwrap_or_default(),
        Expr::Nested(inner) => shown_name(inner),
        Expr::Collate { expr, .. } => shown_name(expr),
        Expr::CompoundFieldAccess { root, access_chain } => {
            let field = access_chain.iter().rev().find_map(|access| match access {
                AccessExpr::Dot(field) => Some(field),
                AccessExpr::Subscript(_) => None,
            });
            shown_name(field.unwrap_or(root))
        }
        Expr::Cast { expr, .. } if has_own_name(expr) => shown_name(expr),
        Expr::Cast { data_type, .. } => name_of_type(data_type),
        Expr::TypedString(typed) => name_of_type(&typed.data_type),
        Expr::Interval(_) => "interval".to_owned(),
        Expr::Function(function) => {
            let shown = function.name.to_string().to_ascii_lowercase();
            shown.rsplit('.').next().unwrap_or_default().to_owned()
        }
        Expr::Case { else_result: Some(otherwise), .. } if has_own_name(otherwise) => {
            shown_name(otherwise)
        }
        Expr::Case { .. } => "case".to_owned(),
        Expr::Array(_) => "array".to_owned(),
        Expr::Tuple(_) => "row".to_owned(),
        Expr::Exists { negated: false, .. } => "exists".to_owned(),
        Expr::Subquery(query) => name_of_query(query),
        Expr::Extract { .. } => "extract".to_owned(),
        Expr::Substring { shorthand: true, .. } => "substr".to_owned(),
        Expr::Substring { .. } => "substring".to_owned(),
        Expr::Overlay { .. } => "overlay".to_owned(),
        Expr::AtTimeZone { .. } => "timezone".to_owned(),
        Expr::Trim { trim_where: Some(TrimWhereField::Leading), .. } => "ltrim".to_owned(),
        Expr::Trim { trim_where: Some(TrimWhereField::Trailing), .. } => "rtrim".to_owned(),
        Expr::Trim { .. } => "btrim".to_owned(),
        Expr::Position { .. } => "position".to_owned(),
        Expr::Ceil { .. } => "ceil".to_owned(),
        Expr::Floor { .. } => "floor".to_owned(),
        _ => "?column?".to_owned(),
    }
}

/// Whether a cast of an expression is called like it, and not like the type.
fn has_own_name(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(expr) | Expr::Collate { expr, .. } | Expr::Cast { expr, .. } => {
            has_own_name(expr)
        }
        Expr::CompoundFieldAccess { root, access_chain }
            if !access_chain.iter().any(|access| matches!(access, AccessExpr::Dot(_))) =>
        {
            has_own_name(root)
        }
        Expr::Case { else_result, .. } => else_result.as_deref().is_some_and(has_own_name),
        Expr::TypedString(_) | Expr::Interval(_) => false,
        // Also where its column has none.
        Expr::Subquery(_) => true,
        expr => is_name(expr) || shown_name(expr) != "?column?",
    }
}

/// Whether an expression is the name of a column, which may be any.
pub(super) fn is_name(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_name(inner),
        other => matches!(other, Expr::Identifier(_) | Expr::CompoundIdentifier(_)),
    }
}

/// A query in an expression is called like its column.
fn name_of_query(query: &Query) -> String {
    let mut body = &*query.body;
    loop {
        body = match body {
            SetExpr::Select(tree) => {
                return match tree.projection.first() {
                    Some(SelectItem::UnnamedExpr(expr)) => shown_name(expr),
                    Some(SelectItem::ExprWithAlias { alias, .. }) => name_of(alias),
                    _ => "?column?".to_owned(),
                };
            }
            SetExpr::Query(inner) => &inner.body,
            SetExpr::SetOperation { left, .. } => left,
            SetExpr::Values(_) => return "column1".to_owned(),
            _ => return "?column?".to_owned(),
        };
    }
}

/// The name of a type that a statement names, without the brackets of arrays.
fn name_of_type(data_type: &DataType) -> String {
    match data_type {
        DataType::Array(ArrayElemTypeDef::SquareBracket(element, _)) => name_of_type(element),
        DataType::Custom(name, _) => {
            name.0.last().and_then(ObjectNamePart::as_ident).map(name_of).unwrap_or_default()
        }
        known => super::kinds::kind_of(&Catalog::default(), known)
            .map_or_else(|_| "?column?".to_owned(), |kind| cast_name(kind.ty)),
    }
}

/// PostgreSQL's short names of types.
fn cast_name(ty: Type) -> String {
    let short = match ty.element().unwrap_or(ty) {
        Type::Letter => "char",
        Type::Bool => "bool",
        Type::Int2 => "int2",
        Type::Int4 => "int4",
        Type::Int8 => "int8",
        Type::Float4 => "float4",
        Type::Float8 => "float8",
        Type::Varchar => "varchar",
        Type::Char => "bpchar",
        Type::Time => "time",
        Type::Timestamp => "timestamp",
        Type::Timestamptz => "timestamptz",
        Type::Varbit => "varbit",
        other => return other.name(),
    };
    short.to_owned()
}
