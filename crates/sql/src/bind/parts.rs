//! Parts of WITH that write.

use super::binder::{Binder, Named, name_of};
use super::items::identity;
use super::output::OutputColumn;
use super::working::Reference;
use crate::ir::{Input, Kind, Main, Select};
use sqlparser::ast::{Cte, Query, SetExpr, Statement as Tree, With};
use std::collections::BTreeSet;
use values::{Error, Result};

/// Whether a query of WITH writes.
pub(super) fn is_written(query: &Query) -> bool {
    matches!(*query.body, SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_))
}

/// Whether a WITH has parts that write.
pub(crate) fn has_parts(with: Option<&With>) -> bool {
    with.is_some_and(|with| with.cte_tables.iter().any(|query| is_written(&query.query)))
}

impl Binder<'_> {
    /// The WITH of the whole statement, whose queries may write.
    pub(super) fn whole_with(&mut self, with: &With) -> Result<()> {
        if with.recursive && has_parts(Some(with)) {
            let message = "writing statements within WITH RECURSIVE are not supported";
            return Err(Error::unsupported(message, "Write in a statement of its own."));
        }
        self.is_whole = true;
        let result = self.with(with);
        self.is_whole = false;
        result
    }

    /// Binds a part that writes: its rows can be named if it returns some.
    pub(super) fn part(&mut self, cte: &Cte) -> Result<Named> {
        if !std::mem::take(&mut self.is_whole) {
            let message =
                "WITH clause containing a data-modifying statement must be at the top level";
            let at = self.position_of_name(&cte.alias.name);
            return Err(Error::unsupported(message, "").at(at));
        }
        let named = self.named.len();
        let bound = self.apart(|binder| binder.part_of(&cte.query));
        self.named.truncate(named);
        // RETURNING and ON CONFLICT refuse queries; what comes next does not.
        self.no_queries = None;
        self.is_whole = true;
        let (main, columns) = bound?;
        let column = |column: &OutputColumn| (column.name.clone(), column.kind);
        let columns: Vec<(String, Kind)> = columns.iter().map(column).collect();
        let width = columns.len();
        let number = self.parts.len() as u16;
        self.parts.push(main);
        let plan = self.apart(|binder| {
            Ok(binder.plan(Input::Returned(number), Select::of(identity(width))))
        })?;
        let reference = match width {
            0 => Reference::Silent,
            _ => Reference::Rows(BTreeSet::new()),
        };
        Ok(Named {
            name: name_of(&cte.alias.name),
            number: self.push_query(plan)?,
            columns: self.aliased(cte, columns)?,
            reaches: usize::MAX,
            reference,
        })
    }

    fn part_of(&mut self, query: &Query) -> Result<(Main, Vec<OutputColumn>)> {
        if let Some(with) = &query.with {
            self.with(with)?;
        }
        match &*query.body {
            SetExpr::Insert(tree) | SetExpr::Update(tree) | SetExpr::Delete(tree) => {
                self.written_main(tree)
            }
            _ => Err(super::binder::unsupported("this form of query")),
        }
    }

    /// INSERT, UPDATE or DELETE.
    pub(super) fn written_main(&mut self, tree: &Tree) -> Result<(Main, Vec<OutputColumn>)> {
        match tree {
            Tree::Insert(tree) => {
                let (plan, columns) = self.insert(tree)?;
                Ok((Main::Insert(plan), columns))
            }
            Tree::Update(tree) => self.update(tree),
            Tree::Delete(tree) => self.delete(tree),
            other => {
                let shown: String = other.to_string().chars().take(40).collect();
                Err(Error::unsupported(format!("statement is not supported: {shown}"), ""))
            }
        }
    }
}
