//! The entrance: a statement with the types of its parameters becomes a plan.

use super::access::Choice;
use super::binder::Binder;
use super::coerce::Bound;
use super::copied::Copy;
use crate::catalog::Catalog;
use crate::ir::{Kind, Plan};
use crate::parse::Statement;
use sqlparser::ast::Statement as Tree;
use values::{Error, Result, SqlState, Type, Zone};

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
}

/// A column of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: Kind,
}

impl OutputColumn {
    pub(super) fn of(name: &str, bound: &Bound) -> OutputColumn {
        OutputColumn { name: name.to_owned(), kind: bound.kind.unwrap_or(Kind::plain(Type::Text)) }
    }
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
}

impl Default for Options {
    fn default() -> Options {
        Options { parameters: Vec::new(), zone: Zone::utc(), choice: Choice::Best }
    }
}

/// Plans SELECT, INSERT, UPDATE or DELETE.
pub fn prepare(catalog: &Catalog, statement: &Statement, options: &Options) -> Result<Prepared> {
    let mut binder = Binder::new(catalog, &statement.lines, &options.zone, &options.parameters);
    binder.choice = options.choice;
    let mut copy = None;
    let (plan, columns) = match &statement.tree {
        Tree::Copy { .. } => {
            let (plan, columns, form) = binder.copy(&statement.tree)?;
            copy = Some(form);
            (plan, columns)
        }
        Tree::Query(query) => {
            let (plan, columns) = binder.query(query)?;
            (Plan::Select(plan), columns)
        }
        Tree::Insert(tree) => {
            let (plan, columns) = binder.insert(tree)?;
            (Plan::Insert(plan), columns)
        }
        Tree::Update(tree) => {
            let (plan, columns) = binder.update(tree)?;
            (Plan::Update(plan), columns)
        }
        Tree::Delete(tree) => {
            let (plan, columns) = binder.delete(tree)?;
            (Plan::Delete(plan), columns)
        }
        other => {
            let shown: String = other.to_string().chars().take(40).collect();
            return Err(Error::unsupported(format!("statement is not supported: {shown}"), ""));
        }
    };
    let plan = super::guard::guarded(catalog, plan)?;
    assert_eq!(
        plan.output().len(),
        columns.len(),
        "an answer has the columns that clients are told"
    );
    let parameters = binder.parameters.iter().enumerate().map(|(at, ty)| {
        ty.ok_or_else(|| {
            let message = format!("could not determine data type of parameter ${}", at + 1);
            Error::new(SqlState::INDETERMINATE_TYPE, message)
        })
    });
    Ok(Prepared { plan, parameters: parameters.collect::<Result<Vec<_>>>()?, columns, copy })
}
