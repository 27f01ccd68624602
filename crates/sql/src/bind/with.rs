//! WITH: queries that the rest of the statement can name.

use super::binder::{Binder, Named, name_of};
use super::door::check_part;
use super::items::{Bounded, Item, Untyped};
use super::parts::is_written;
use super::working::Reference;
use crate::ir::{Kind, QueryNumber};
use sqlparser::ast::{Cte, ObjectName, With};
use std::collections::BTreeSet;
use values::{Error, Result, SqlState, Type};

/// Places, names and types of columns.
type Columns = Vec<(usize, String, Kind)>;

impl Binder<'_> {
    pub(super) fn with(&mut self, with: &With) -> Result<()> {
        for (at, query) in with.cte_tables.iter().enumerate() {
            let name = name_of(&query.alias.name);
            let before = &with.cte_tables[..at];
            if before.iter().any(|other| name_of(&other.alias.name) == name) {
                let message = format!("WITH query name \"{name}\" specified more than once");
                let at = self.position_of_name(&query.alias.name);
                return Err(Error::new(SqlState::DUPLICATE_ALIAS, message).at(at));
            }
        }
        if with.recursive {
            return self.with_recursive(with);
        }
        for query in &with.cte_tables {
            let named = match is_written(&query.query) {
                true => self.part(query)?,
                false => {
                    let is_whole = std::mem::take(&mut self.is_whole);
                    let named = self.item(query);
                    self.is_whole = is_whole;
                    named?
                }
            };
            self.named.push(named);
        }
        Ok(())
    }

    /// A query of WITH that does not name itself.
    pub(super) fn item(&mut self, query: &Cte) -> Result<Named> {
        let before = std::mem::replace(&mut self.reaches, usize::MAX);
        let working = std::mem::take(&mut self.recursion.working);
        let bound = self.query(&query.query, Untyped::Text);
        let reaches = std::mem::replace(&mut self.reaches, before);
        let needed = std::mem::replace(&mut self.recursion.working, working);
        self.named_item(query, bound?, reaches, needed)
    }

    /// A query of WITH that can be named from now on.
    pub(super) fn named_item(
        &mut self,
        query: &Cte,
        bound: Bounded,
        reaches: usize,
        working: BTreeSet<u16>,
    ) -> Result<Named> {
        let name = name_of(&query.alias.name);
        let columns = self.with_columns(query, &bound.items)?;
        let number = self.push_query(bound.plan)?;
        Ok(Named { name, number, columns, reaches, reference: Reference::Rows(working) })
    }

    /// The columns of a query of WITH, by the names that it states.
    pub(super) fn with_columns(&self, query: &Cte, items: &[Item]) -> Result<Vec<(String, Kind)>> {
        self.aliased(query, columns_of(items))
    }

    /// The same of columns that are known.
    pub(super) fn aliased(
        &self,
        query: &Cte,
        mut columns: Vec<(String, Kind)>,
    ) -> Result<Vec<(String, Kind)>> {
        check_part(query)?;
        let renamed = &query.alias.columns;
        if renamed.len() > columns.len() {
            let message = format!(
                "WITH query \"{}\" has {} columns available but {} columns specified",
                name_of(&query.alias.name),
                columns.len(),
                renamed.len()
            );
            let at = self.position_of_name(&query.alias.name);
            return Err(Error::new(SqlState::INVALID_COLUMN_REFERENCE, message).at(at));
        }
        for (column, alias) in columns.iter_mut().zip(renamed) {
            column.0 = name_of(&alias.name);
        }
        Ok(columns)
    }

    /// The query of WITH that a name in FROM means.
    pub(super) fn named_query(&self, name: &ObjectName) -> Option<Named> {
        let [part] = &name.0[..] else { return None };
        let own = name_of(part.as_ident()?);
        self.named.iter().rev().find(|named| named.name == own).cloned()
    }

    /// The current query needs the rows of this one: its number, and its columns.
    pub(super) fn use_named(
        &mut self,
        named: &Named,
        name: &ObjectName,
    ) -> Result<(QueryNumber, Columns)> {
        let position = self.position(name);
        self.use_reference(named, position)?;
        self.reaches = self.reaches.min(named.reaches);
        let columns = named.columns.iter().enumerate();
        let columns = columns.map(|(at, (name, kind))| (at, name.clone(), *kind)).collect();
        Ok((named.number, columns))
    }
}

/// The names and types of the columns of a query.
fn columns_of(items: &[Item]) -> Vec<(String, Kind)> {
    let kind = |item: &Item| item.bound.kind.unwrap_or(Kind::plain(Type::Text));
    items.iter().map(|item| (item.name.clone(), kind(item))).collect()
}
