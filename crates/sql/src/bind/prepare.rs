//! The entrance: a statement with the types of its parameters becomes a plan.

use super::access::Choice;
use super::binder::Binder;
use super::copied::Copy;
use super::items::{Item, Untyped};
use super::output::OutputColumn;
use super::parts::has_parts;
use crate::catalog::Catalog;
use crate::ir::{Composed, Input, Main, Plan, QUERY_DEPTH_MAX, Writing};
use crate::memory::Grant;
use crate::parse::Statement;
use crate::system::SessionValues;
use sqlparser::ast::{Query, SetExpr, Statement as Tree};
use std::borrow::Cow;
use std::sync::Arc;
use values::{Error, Modifier, Result, SqlState, Type, Zone};

/// A plan, and what a client asks about it.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// What runs.
    pub plan: Plan,
    /// The types of the parameters.
    pub parameters: Vec<Type>,
    /// The columns of the answer; none if there are no rows.
    pub columns: Vec<OutputColumn>,
    /// How rows come or go, of a COPY.
    pub copy: Option<Copy>,
    /// The command, if FOR UPDATE or FOR SHARE locks rows of tables in PostgreSQL, which is refused
    /// where nothing may be written.
    pub locking: Option<&'static str>,
    /// Whether it writes and has functions of the session: it is planned again with their values
    /// before it runs.
    pub asks_session: bool,
}

/// What a plan depends on beside catalog and text.
#[derive(Clone, Debug)]
pub struct Options {
    /// The types of parameters that the client states.
    pub parameters: Vec<Option<Type>>,
    /// The session's zone, for literals.
    pub zone: Zone,
    /// How rows are found.
    pub choice: Choice,
    /// What stands in the place of functions of the session, for a plan that runs once.
    pub session: Option<SessionValues>,
    /// Whether a statement that writes may have functions of the session, whose values come later.
    pub asks_later: bool,
    /// What the plan's constants take of the memory that all statements share, if they do.
    pub grant: Option<Arc<Grant>>,
}

impl Default for Options {
    fn default() -> Options {
        let (parameters, zone) = (Vec::new(), Zone::utc());
        let (session, asks_later, grant) = (None, false, None);
        Options { parameters, zone, choice: Choice::Best, session, asks_later, grant }
    }
}

/// Plans SELECT, INSERT, UPDATE or DELETE.
pub fn prepare(catalog: &Catalog, statement: &Statement, options: &Options) -> Result<Prepared> {
    let mut binder = Binder::new(catalog, &statement.lines, &options.zone, &options.parameters);
    binder.choice = options.choice;
    binder.session = options.session.as_ref();
    binder.asks_later = options.asks_later;
    binder.grant = options.grant.as_deref();
    binder.no_queries = None;
    binder.expressions = &statement.expressions;
    if let Tree::Copy { .. } = &statement.tree {
        let (plan, columns, form) = binder.copy(&statement.tree)?;
        let prepared = binder.prepared(catalog, plan, columns)?;
        return Ok(Prepared { copy: Some(form), ..prepared });
    }
    let merged = match &statement.tree {
        Tree::Merge(merge) => Some(super::merge::as_written(merge)?),
        _ => None,
    };
    let (main, columns) = match merged.as_ref().unwrap_or(&statement.tree) {
        Tree::Query(query) => match binder.statement(query)? {
            Whole::Written(tree) => binder.written_main(tree)?,
            Whole::Query(query) => {
                let (plan, columns) = binder.whole_query(&query)?;
                match (plan, binder.parts.is_empty()) {
                    (Plan::Composed(Composed { queries, main }), false) => {
                        binder.queries = queries;
                        (main, columns)
                    }
                    (plan, _) => return binder.prepared(catalog, plan, columns),
                }
            }
        },
        tree => binder.written_main(tree)?,
    };
    let queries = std::mem::take(&mut binder.queries);
    let plan = match main {
        main if !binder.parts.is_empty() => {
            let mains = std::mem::take(&mut binder.parts).into_iter().chain([main]);
            let part = |main| super::guard::part(catalog, main);
            let parts = mains.map(part).collect::<Result<Vec<_>>>()?;
            let writing = Box::new(Writing { queries, parts });
            if merged.is_some() { Plan::Merge(writing) } else { Plan::Writing(writing) }
        }
        Main::Insert(plan) if queries.is_empty() => Plan::Insert(plan),
        Main::Update(plan) if queries.is_empty() => Plan::Update(plan),
        Main::Delete(plan) if queries.is_empty() => Plan::Delete(plan),
        main => Plan::Composed(Composed { queries, main }),
    };
    binder.prepared(catalog, plan, columns)
}

/// A statement without its WITH, or a query with one that writes nothing.
enum Whole<'t> {
    Query(Box<Cow<'t, Query>>),
    Written(&'t Tree),
}

fn is_array(column: &OutputColumn) -> bool {
    column.kind.ty.element().is_some()
}

impl Binder<'_> {
    /// The plan of a statement that is a query, and its columns.
    pub(super) fn whole_query(&mut self, query: &Query) -> Result<(Plan, Vec<OutputColumn>)> {
        let mut bound = self.query(query, Untyped::Text)?;
        // Clients see objects by their names.
        for (item, output) in bound.items.iter_mut().zip(&mut bound.plan.select.output) {
            if item.bound.ty().is_some_and(Type::is_named_object) {
                item.bound.code = std::mem::take(&mut output.code);
                item.bound = super::coerce::name_of_object(item.bound.clone(), Type::Text);
                output.code = item.bound.code.clone();
            }
        }
        let columns: Vec<OutputColumn> = bound.items.iter().map(Item::column).collect();
        if columns.iter().any(|column| column.kind.modifier == Modifier::PAIR && is_array(column)) {
            let message = "a record as a column of an answer is not supported";
            return Err(Error::unsupported(message, "Select its fields."));
        }
        if self.queries.is_empty() && bound.plan.input == Input::Source {
            return Ok((Plan::Select(bound.plan.select), columns));
        }
        let main = Main::Query(self.push_query(bound.plan)?);
        let queries = std::mem::take(&mut self.queries);
        Ok((Plan::Composed(Composed { queries, main }), columns))
    }

    /// The statement behind a WITH, whose queries it can name.
    fn statement<'t>(&mut self, query: &'t Query) -> Result<Whole<'t>> {
        match &*query.body {
            SetExpr::Insert(inner) | SetExpr::Update(inner) | SetExpr::Delete(inner) => {
                if let Some(with) = &query.with {
                    self.whole_with(with)?;
                }
                Ok(Whole::Written(inner))
            }
            _ if has_parts(query.with.as_ref()) => {
                let mut query = query.clone();
                if let Some(with) = query.with.take() {
                    self.whole_with(&with)?;
                }
                Ok(Whole::Query(Box::new(Cow::Owned(query))))
            }
            _ => Ok(Whole::Query(Box::new(Cow::Borrowed(query)))),
        }
    }

    /// The plan with what clients ask about it.
    fn prepared(
        self,
        catalog: &Catalog,
        plan: Plan,
        columns: Vec<OutputColumn>,
    ) -> Result<Prepared> {
        if plan.is_too_deep() {
            let message = format!("queries are nested deeper than {QUERY_DEPTH_MAX} levels");
            return Err(Error::new(SqlState::STATEMENT_TOO_COMPLEX, message));
        }
        let is_logged = !plan.is_query() || !plan.numbers().is_empty() || plan.notifies();
        if is_logged && plan.has_effects() {
            return Err(Error::unsupported(
                "advisory locks and pg_sleep are not there for statements that write, notify or \
                 take numbers of sequences",
                "Such a statement is logged, and comes to the same when it is repeated after a \
                 crash. Call them in a query of its own before it, in the same block.",
            ));
        }
        if plan.has_effects() && !plan.claims().is_empty() {
            return Err(Error::unsupported(
                "advisory locks and pg_sleep are not there for queries that lock rows",
                "Call them in a query of its own, in the same block.",
            ));
        }
        let asks_session = is_logged && plan.needs_system() && plan.needs_session_only();
        if is_logged && plan.needs_system() && !(asks_session && self.asks_later) {
            return Err(Error::unsupported(
                "the system catalog and the session are not there for statements that write or \
                 take numbers of sequences",
                "Such a statement is logged, and comes to the same when it is repeated after a \
                 crash. Ask in a query of its own, and give what it says as a parameter.",
            ));
        }
        let plan = super::guard::guarded(catalog, plan)?;
        assert_eq!(
            plan.output().len(),
            columns.len(),
            "an answer has the columns that clients are told"
        );
        let parameters = self.parameters.iter().enumerate().map(|(at, ty)| {
            ty.ok_or_else(|| {
                let message = format!("could not determine data type of parameter ${}", at + 1);
                Error::new(SqlState::INDETERMINATE_TYPE, message)
            })
        });
        let parameters = parameters.collect::<Result<Vec<_>>>()?;
        let (copy, locking) = (None, self.locking);
        Ok(Prepared { plan, parameters, columns, copy, locking, asks_session })
    }
}
