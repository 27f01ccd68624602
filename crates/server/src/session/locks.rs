//! LOCK TABLE.

use super::conversation::Conversation;
use super::queue::Outcome;
use super::sending::outcome;
use crate::store::BlockOperation;
use sql::catalog::{Catalog, Written};
use sql::ir::{Name, ObjectId, Wait};
use sql::parse::LockTable;
use std::collections::BTreeSet;
use values::{Error, Result, SqlState};

impl Conversation {
    pub(super) async fn lock_tables(&mut self, lock: &LockTable) -> Result<&'static str> {
        if !self.is_in_block() && self.is_one_of_several {
            self.open_implicit().await?;
        }
        if !self.is_in_block() {
            let message = "LOCK TABLE can only be used in transaction blocks";
            return Err(Error::new(SqlState::NO_ACTIVE_TRANSACTION, message));
        }
        let tables = tables_of(&self.connection.catalog(), &lock.tables)?;
        let wait = if lock.fails { Wait::Fail } else { Wait::Wait };
        self.connection.set_lock_timeout(self.settings.lock_timeout());
        let pending = self.connection.block(BlockOperation::Lock(tables, lock.mode, wait));
        outcome(Outcome::Pending(pending), self.ends_by(self.deadline())).await?;
        Ok("LOCK TABLE")
    }
}

/// The tables of these names, and those that views among them name.
fn tables_of(catalog: &Catalog, names: &[Written]) -> Result<Vec<ObjectId>> {
    let (mut tables, mut seen) = (Vec::new(), BTreeSet::new());
    let found = |written: &Written| {
        let name = catalog.relation(written)?;
        if catalog.is_named(&name) { Ok(name) } else { Err(written.missing()) }
    };
    let mut open: Vec<Name> = names.iter().rev().map(found).collect::<Result<_>>()?;
    while let Some(name) = open.pop() {
        if let Some(table) = catalog.table(&name) {
            if seen.insert(table.relation.id) {
                tables.push(table.relation.id);
            }
        } else if let Some(view) = catalog.view(&name) {
            if seen.insert(view.id) {
                open.extend(view.uses.iter().rev().map(|used| used.relation.clone()));
            }
        } else {
            let message = format!("\"{name}\" is not a table or view");
            return Err(Error::new(SqlState::WRONG_OBJECT, message));
        }
    }
    Ok(tables)
}
