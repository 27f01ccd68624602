//! What is known while a statement is bound.

use super::coerce::{Bound, Coercer};
use super::kinds::Willing;
pub(crate) use super::name::{name_of, new_name, own_name, written_name};
use super::scope::{Noted, Resolved, Scope};
use super::window_list::WindowList;
use super::working::{Recursion, Reference};
use crate::catalog::{Catalog, Table, Written};
use crate::ir::{Aggregate, AggregateKind, ColumnNumber, Kind, Main, Name, Op, Query, QueryNumber};
use crate::memory::Grant;
use crate::parse::Lines;
use crate::system::SessionValues;
use sqlparser::ast::{
    Expr, Function as Call, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName,
    Spanned,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use values::{Error, Position, Result, SqlState, Type, Zone};

/// Binds the expressions of one statement.
pub(crate) struct Binder<'a> {
    pub(super) catalog: &'a Catalog,
    pub(super) lines: &'a Lines,
    pub(super) zone: &'a Zone,
    pub(super) parameters: Vec<Option<Type>>,
    pub(super) scope: Scope,
    pub(super) grouping: Option<Grouping>,
    pub(super) choice: super::access::Choice,
    /// What stands in the place of functions of the session.
    pub(super) session: Option<&'a SessionValues>,
    /// Whether functions of the session may stand where their values are put later.
    pub(super) asks_later: bool,
    /// The queries in which the current one is computed, from the outermost on.
    pub(super) levels: Vec<Level>,
    /// The outermost of those that the current one needs a row of.
    pub(super) reaches: usize,
    /// What is known of recursive queries while their steps are bound.
    pub(super) recursion: Recursion,
    /// The queries that the statement has beside its own.
    pub(super) queries: Vec<Query>,
    /// Queries of WITH that can be named, the innermost last.
    pub(super) named: Vec<Named>,
    /// Where queries in expressions are refused.
    pub(super) no_queries: Option<&'static str>,
    /// Tables beside the query that is bound, which it does not see.
    pub(super) beside: Vec<String>,
    /// The clause that is bound, for messages.
    pub(super) clause: &'static str,
    /// The zone of literals, if it is not the session's.
    pub(super) literal_zone: Option<Zone>,
    /// In how many views the query is that is bound.
    pub(super) view_depth: usize,
    /// What is noted of a view that is made.
    pub(super) noted: Option<Noted>,
    /// The parts of the statement so far that write.
    pub(super) parts: Vec<Main>,
    /// Whether the WITH of the whole statement is bound, and no query in it.
    pub(super) is_whole: bool,
    /// Whether the session's zone is written into an expression that was bound.
    pub(super) uses_zone: bool,
    /// The expressions in targets of ON CONFLICT, for which names stand in the tree.
    pub(super) expressions: &'a [Expr],
    /// The queries of WITH that were named.
    pub(super) of_with: BTreeSet<QueryNumber>,
    /// The command that locks rows, if one does.
    pub(super) locking: Option<&'static str>,
    /// The memory of constants, if it is counted.
    pub(crate) grant: Option<&'a Grant>,
    /// Whether what is bound may name no parameters.
    has_no_parameters: bool,
}

/// A query while one is bound that is computed in its rows.
pub(super) struct Level {
    pub(super) scope: Scope,
    pub(super) grouping: Option<Grouping>,
}

/// The groups of the query that is bound.
#[derive(Default)]
pub(super) struct Grouping {
    /// What rows of a group have in common, as written and as bound.
    pub(super) keys: Vec<(Expr, Bound)>,
    /// The aggregates so far.
    pub(super) aggregates: Vec<Aggregate>,
    /// The first column that is neither grouped nor aggregated.
    pub(super) ungrouped: Option<Error>,
    /// Whether an aggregate's arguments are being bound.
    pub(super) inside: bool,
    /// Where the first aggregate is.
    pub(super) position: Option<Position>,
    pub(super) windows: WindowList,
}

/// A query of WITH.
#[derive(Clone)]
pub(super) struct Named {
    pub(super) name: String,
    pub(super) number: QueryNumber,
    pub(super) columns: Vec<(String, Kind)>,
    /// The outermost query that it needs a row of.
    pub(super) reaches: usize,
    /// What naming it means.
    pub(super) reference: Reference,
}

impl Grouping {
    /// The column of the groups that a column of the rows is: a key, or one that the keys decide as
    /// they have a whole primary key. `None` is noted: it is an error if there are groups.
    pub(super) fn column(
        &mut self,
        scope: &Scope,
        found: &Resolved,
        message: impl FnOnce() -> String,
        position: Option<Position>,
    ) -> Result<Option<ColumnNumber>> {
        if let Some(at) = self.keys.iter().position(|(_, key)| key.code == found.code) {
            return Ok(Some(ColumnNumber::at(at)));
        }
        let is_key = |code: &[Op]| self.keys.iter().any(|(_, key)| key.code == code);
        if scope.is_decided(found, is_key) {
            return self
                .place(Aggregate {
                    kind: AggregateKind::First,
                    arguments: vec![found.bound().expression()],
                    distinct: false,
                    filter: None,
                })
                .map(Some);
        }
        self.note_ungrouped(message(), position);
        Ok(None)
    }

    /// The column of the groups that an aggregate is.
    pub(super) fn place(&mut self, aggregate: Aggregate) -> Result<ColumnNumber> {
        let at = match self.aggregates.iter().position(|other| *other == aggregate) {
            Some(at) => at,
            None => {
                self.aggregates.push(aggregate);
                self.aggregates.len() - 1
            }
        };
        let place = self.keys.len() + at;
        if place > ColumnNumber::MAX {
            let message =
                format!("query has more than {} groups and aggregates", ColumnNumber::MAX);
            return Err(Error::new(SqlState::TOO_MANY_COLUMNS, message));
        }
        Ok(ColumnNumber::at(place))
    }

    /// The first column that is neither grouped nor aggregated is an error if there are groups.
    fn note_ungrouped(&mut self, message: String, position: Option<Position>) {
        let error = || Error::new(SqlState::GROUPING_ERROR, message).at(position);
        self.ungrouped.get_or_insert_with(error);
    }
}

/// The most parameters of a statement, as in the protocol.
const PARAMETERS_MAX: usize = 65_535;

/// What statements may say and this does not do.
pub(crate) fn unsupported(what: &str) -> Error {
    Error::unsupported(format!("{what} is not supported"), "")
}

/// Whether it is `ROW(...)`.
pub(super) fn is_row(function: &Call) -> bool {
    matches!(&function.name.0[..], [part] if part.as_ident().is_some_and(|ident| {
        ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case("row")
    }))
}

/// The parts of a row: `(a, b)` or `ROW(a, b)`.
pub(super) fn row_parts(expr: &Expr) -> Option<Vec<&Expr>> {
    let function = match expr {
        Expr::Tuple(parts) => return Some(parts.iter().collect()),
        Expr::Function(function) if is_row(function) => function,
        _ => return None,
    };
    let FunctionArguments::List(list) = &function.args else { return None };
    let part = |argument| match argument {
        &FunctionArg::Unnamed(FunctionArgExpr::Expr(ref part)) => Some(part),
        _ => None,
    };
    list.args.iter().map(part).collect()
}

impl<'a> Binder<'a> {
    /// A binder of what is kept, or computed before there are parameters: it may name none.
    pub(crate) fn without_parameters(
        catalog: &'a Catalog,
        lines: &'a Lines,
        zone: &'a Zone,
    ) -> Binder<'a> {
        Binder { has_no_parameters: true, ..Binder::new(catalog, lines, zone, &[]) }
    }

    pub(crate) fn new(
        catalog: &'a Catalog,
        lines: &'a Lines,
        zone: &'a Zone,
        parameters: &[Option<Type>],
    ) -> Binder<'a> {
        Binder {
            catalog,
            lines,
            zone,
            parameters: parameters.iter().map(|ty| ty.map(|ty| catalog.current(ty))).collect(),
            scope: Scope::default(),
            grouping: None,
            choice: super::access::Choice::Best,
            session: None,
            asks_later: false,
            levels: Vec::new(),
            reaches: usize::MAX,
            recursion: Recursion::default(),
            queries: Vec::new(),
            named: Vec::new(),
            no_queries: Some("check constraint"),
            beside: Vec::new(),
            clause: "",
            literal_zone: None,
            view_depth: 0,
            noted: None,
            parts: Vec::new(),
            is_whole: false,
            uses_zone: false,
            expressions: &[],
            of_with: BTreeSet::new(),
            locking: None,
            grant: None,
            has_no_parameters: false,
        }
    }

    /// Where a part of the statement begins; a view's text is not the statement's.
    pub(crate) fn position(&self, part: &impl Spanned) -> Option<Position> {
        if self.view_depth > 0 {
            return None;
        }
        self.lines.position(part.span().start)
    }

    /// Where a name begins.
    pub(super) fn position_of_name(&self, name: &Ident) -> Option<Position> {
        if self.view_depth > 0 {
            return None;
        }
        self.lines.position(name.span.start)
    }

    /// The table with this name.
    pub(super) fn table(&self, name: &ObjectName) -> Result<Arc<Table>> {
        let own = self.relation_name(name)?;
        if self.catalog.view(&own).is_some() {
            let message = format!("view \"{own}\" cannot be copied");
            let hint = "Copy the table that it selects from, or use COPY (SELECT ...) TO.";
            return Err(Error::unsupported(message, hint).at(self.position(name)));
        }
        if self.catalog.sequence(&own).is_some() {
            let message = format!("cannot change sequence \"{own}\"");
            return Err(Error::new(SqlState::WRONG_OBJECT, message));
        }
        let missing = |written: Written| written.missing().at(self.position(name));
        match self.catalog.table(&own) {
            Some(table) => Ok(Arc::clone(table)),
            None => Err(missing(written_name(name)?)),
        }
    }

    /// The relation that a query means; a schema that does not exist has none.
    pub(super) fn relation_name(&self, name: &ObjectName) -> Result<Name> {
        let written = written_name(name)?;
        self.catalog.check_database(&written)?;
        let missing = |_| written.missing().at(self.position(name));
        self.catalog.relation(&written).map_err(missing)
    }

    /// Adds a query, which needs only those before it.
    pub(super) fn push_query(&mut self, query: Query) -> Result<QueryNumber> {
        let place = self.queries.len();
        if place >= QueryNumber::COUNT_MAX {
            let message = format!("statement has more than {} queries", QueryNumber::COUNT_MAX);
            return Err(Error::new(SqlState::STATEMENT_TOO_COMPLEX, message));
        }
        self.queries.push(query);
        Ok(QueryNumber::at(place))
    }

    fn coercer(&mut self) -> Coercer<'_> {
        let zone = self.literal_zone.as_ref().unwrap_or(self.zone);
        let (catalog, grant) = (self.catalog, self.grant);
        Coercer { parameters: &mut self.parameters, zone, catalog, grant }
    }

    pub(super) fn coerce(&mut self, bound: Bound, ty: Type, willing: Willing) -> Result<Bound> {
        self.coercer().coerce(bound, ty, willing)
    }

    pub(super) fn assign(&mut self, bound: Bound, kind: Kind, willing: Willing) -> Result<Bound> {
        self.coercer().assign(bound, kind, willing)
    }

    /// What has no type yet is text.
    pub(super) fn settle(&mut self, bound: Bound) -> Result<Bound> {
        match bound.kind {
            Some(_) => Ok(bound),
            None => self.coerce(bound, Type::Text, Willing::Implicit),
        }
    }

    /// The number of a parameter, from `$1`.
    pub(super) fn parameter(&mut self, name: &str) -> Result<u16> {
        if self.has_no_parameters {
            let message = format!("there is no parameter {name}");
            return Err(Error::new(SqlState::UNDEFINED_PARAMETER, message));
        }
        let number = name.strip_prefix('$').and_then(|digits| digits.parse::<usize>().ok());
        let at = match number {
            Some(number @ 1..=PARAMETERS_MAX) => number - 1,
            _ => {
                let message = format!("there is no parameter {name}");
                return Err(Error::new(SqlState::UNDEFINED_PARAMETER, message));
            }
        };
        if self.parameters.len() <= at {
            self.parameters.resize(at + 1, None);
        }
        Ok(at as u16)
    }

    /// The expression of a column as a table's column takes it.
    pub(crate) fn bind_for(&mut self, expr: &Expr, kind: Kind) -> Result<Bound> {
        self.no_queries = Some("DEFAULT expression");
        let bound = self.expression(expr)?;
        let position = self.position(expr);
        self.assign(bound, kind, Willing::Assignment).map_err(|error| error.at(position))
    }

    /// The value of a generated column.
    pub(crate) fn generation(&mut self, expr: &Expr, kind: Kind) -> Result<Bound> {
        self.no_queries = Some("column generation expression");
        let bound = self.expression(expr)?;
        let position = self.position(expr);
        self.assign(bound, kind, Willing::Assignment).map_err(|error| error.at(position))
    }

    /// The value of EXECUTE for the parameter at this place.
    pub(crate) fn argument(&mut self, expr: &Expr, kind: Kind, place: usize) -> Result<Bound> {
        self.no_queries = Some("EXECUTE parameter");
        let bound = self.expression(expr)?;
        let (position, own) = (self.position(expr), bound.type_name());
        let assigned = self.assign(bound, kind, Willing::Assignment);
        assigned.map_err(|error| match error.state() {
            SqlState::CANNOT_COERCE => {
                let (number, ty) = (place + 1, kind.ty.name());
                let message = format!(
                    "parameter ${number} of type {own} cannot be coerced to the expected type {ty}"
                );
                Error::new(SqlState::DATATYPE_MISMATCH, message)
                    .with_hint("You will need to rewrite or cast the expression.")
                    .at(position)
            }
            _ => error.at(position),
        })
    }

    /// A condition.
    pub(crate) fn condition(&mut self, expr: &Expr, clause: &str) -> Result<Bound> {
        let bound = self.expression(expr)?;
        match bound.ty() {
            None | Some(Type::Bool) => self.coerce(bound, Type::Bool, Willing::Implicit),
            Some(ty) => Err(Error::new(
                SqlState::DATATYPE_MISMATCH,
                format!("argument of {clause} must be type boolean, not type {}", ty.name()),
            )
            .at(self.position(expr))),
        }
    }

    /// Only this table's columns can be named.
    pub(crate) fn over(&mut self, name: &str, relation: &crate::ir::Relation) {
        self.scope = Scope::default();
        self.scope.add(name, relation);
    }
}
