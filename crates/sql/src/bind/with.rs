//! WITH: queries that the rest of the statement can name.

use super::binder::{Binder, Named, name_of, unsupported};
use super::items::Untyped;
use crate::ir::{Kind, QueryNumber};
use sqlparser::ast::{ObjectName, With};
use values::{Error, Result, SqlState, Type};

impl Binder<'_> {
    pub(super) fn with(&mut self, with: &With) -> Result<()> {
        if with.recursive {
            return Err(unsupported("WITH RECURSIVE"));
        }
        let begin = self.named.len();
        for query in &with.cte_tables {
            let name = name_of(&query.alias.name);
            if self.named[begin..].iter().any(|other| other.name == name) {
                let message = format!("WITH query name \"{name}\" specified more than once");
                let at = self.position_of_name(&query.alias.name);
                return Err(Error::new(SqlState::DUPLICATE_ALIAS, message).at(at));
            }
            let before = std::mem::replace(&mut self.reaches, usize::MAX);
            let bound = self.query(&query.query, Untyped::Text);
            let reaches = std::mem::replace(&mut self.reaches, before);
            let bound = bound?;
            let mut columns: Vec<_> = bound
                .items
                .iter()
                .map(|item| (item.name.clone(), item.bound.kind.unwrap_or(Kind::plain(Type::Text))))
                .collect();
            let renamed = &query.alias.columns;
            if renamed.len() > columns.len() {
                let message = format!(
                    "WITH query \"{name}\" has {} columns available but {} columns specified",
                    columns.len(),
                    renamed.len()
                );
                let at = self.position_of_name(&query.alias.name);
                return Err(Error::new(SqlState::INVALID_COLUMN_REFERENCE, message).at(at));
            }
            for (column, alias) in columns.iter_mut().zip(renamed) {
                column.0 = name_of(&alias.name);
            }
            let number = self.push_query(bound.plan)?;
            self.named.push(Named { name, number, columns, reaches });
        }
        Ok(())
    }

    /// The query of WITH that a name in FROM means.
    pub(super) fn named_query(&self, name: &ObjectName) -> Option<Named> {
        let [part] = &name.0[..] else { return None };
        let own = name_of(part.as_ident()?);
        self.named.iter().rev().find(|named| named.name == own).cloned()
    }

    /// The current query needs the rows of this one: its number, and its columns.
    pub(super) fn use_named(&mut self, named: &Named) -> (QueryNumber, Vec<(usize, String, Kind)>) {
        self.reaches = self.reaches.min(named.reaches);
        let columns = named.columns.iter().enumerate();
        (named.number, columns.map(|(at, (name, kind))| (at, name.clone(), *kind)).collect())
    }
}
