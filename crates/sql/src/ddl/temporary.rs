//! Definitions of temporary objects, which only their session has.

use crate::bind::{new_name, written_name};
use crate::catalog::{Catalog, OnCommit, Written};
use crate::ir::{Name, Plan, SchemaId};
use crate::parse::{CommentTarget, Statement};
use sqlparser::ast::{ObjectName, ObjectNamePart, Statement as Tree};
use values::{Error, Result, SqlState};

impl Statement {
    /// Whether it is a definition of temporary objects, by the names of a catalog.
    pub fn defines_temporary(&self, catalog: &Catalog) -> bool {
        self.makes_temporary(catalog) || self.changes_temporary(catalog)
    }

    /// What becomes of the temporary table that it makes, at the end of each transaction.
    pub fn on_commit(&self) -> Option<OnCommit> {
        use sqlparser::ast::OnCommit as Stated;
        let stated = match (&self.table_as, &self.tree) {
            (Some(tree), _) => tree.on_commit.as_ref(),
            (None, Tree::CreateTable(tree)) => tree.on_commit.as_ref(),
            _ => None,
        };
        match stated {
            Some(Stated::DeleteRows) => Some(OnCommit::DeleteRows),
            Some(Stated::Drop) => Some(OnCommit::Drop),
            Some(Stated::PreserveRows) | None => None,
        }
    }

    /// The query whose rows the table gets that it makes, as a statement.
    pub fn query_of_table(&self) -> Option<Statement> {
        let tree = self.table_as.as_ref().filter(|tree| tree.has_data)?;
        Some(self.part(&tree.query))
    }

    fn makes_temporary(&self, catalog: &Catalog) -> bool {
        let (is_stated, name) = match (&self.table_as, &self.tree) {
            (Some(tree), _) => (tree.is_temporary, &tree.name),
            (None, Tree::CreateTable(tree)) => (tree.temporary, &tree.name),
            (None, Tree::CreateView(tree)) => (tree.temporary, &tree.name),
            (None, Tree::CreateSequence { temporary, name, .. }) => (*temporary, name),
            _ => return false,
        };
        is_stated || states_temporary(name) || new_name(catalog, name).is_ok_and(is_own)
    }

    fn changes_temporary(&self, catalog: &Catalog) -> bool {
        let is_own = |name: &ObjectName| {
            written_name(name).and_then(|own| catalog.relation(&own)).is_ok_and(is_own)
        };
        if let Some(tree) = &self.sequence {
            return is_own(&tree.name);
        }
        if let Some(tree) = &self.view_change {
            return is_own(&tree.name);
        }
        if let Some(tree) = &self.set_schema {
            return is_own(&tree.name);
        }
        if let Some(tree) = &self.comment {
            return match &tree.target {
                CommentTarget::Table(name)
                | CommentTarget::Index(name)
                | CommentTarget::Sequence(name) => is_own(name),
                CommentTarget::Column(name) => table_of(name).is_some_and(|name| is_own(&name)),
                _ => false,
            };
        }
        match &self.tree {
            Tree::CreateIndex(tree) => is_own(&tree.table_name),
            Tree::AlterTable(tree) => is_own(&tree.name),
            Tree::AlterIndex { name, .. } => is_own(name),
            Tree::Drop { names, .. } => names.iter().any(is_own),
            Tree::Truncate(tree) => tree.table_names.iter().any(|target| is_own(&target.name)),
            _ => false,
        }
    }
}

/// The table that is named before a column.
fn table_of(column: &ObjectName) -> Option<ObjectName> {
    let (_, table) = column.0.split_last()?;
    (!table.is_empty()).then(|| ObjectName(table.to_vec()))
}

fn is_own(name: Name) -> bool {
    name.schema == SchemaId::TEMPORARY
}

/// Whether a name states the schema `pg_temp`, which is there from the first object on.
fn states_temporary(name: &ObjectName) -> bool {
    match &name.0[..] {
        [ObjectNamePart::Identifier(schema), _] => crate::bind::name_of(schema) == "pg_temp",
        _ => false,
    }
}

/// The name of a new relation, which is temporary if the statement says so.
pub(super) fn name_of_new(
    catalog: &Catalog,
    name: &ObjectName,
    is_temporary: bool,
) -> Result<Name> {
    let written: Written = written_name(name)?;
    match is_temporary {
        true => catalog.new_temporary_name(&written),
        false => catalog.new_name(&written),
    }
}

/// Refuses a query of temporary tables in a definition of other objects, which all sessions have.
pub(super) fn refuse_query(plan: &Plan, name: Option<&Name>, what: &str) -> Result<()> {
    let is_temporary = name.is_some_and(|name| name.schema == SchemaId::TEMPORARY);
    if is_temporary || !plan.reads_temporary() {
        return Ok(());
    }
    let message = format!("{what} of temporary tables is not supported");
    Err(Error::unsupported(message, "Use a table of another kind, or INSERT ... SELECT."))
}

/// Refuses a foreign key between a temporary table and one of another kind.
pub(super) fn check_key(child: &Name, parent: &Name, is_deferrable: bool) -> Result<()> {
    let is_temporary = child.schema == SchemaId::TEMPORARY;
    if is_temporary == (parent.schema == SchemaId::TEMPORARY) {
        return match is_temporary && is_deferrable {
            true => Err(Error::unsupported("DEFERRABLE in a temporary table", "")),
            false => Ok(()),
        };
    }
    let kind = if is_temporary { "temporary" } else { "permanent" };
    let message = format!("constraints on {kind} tables may reference only {kind} tables");
    Err(Error::new(SqlState::INVALID_TABLE_DEFINITION, message))
}
