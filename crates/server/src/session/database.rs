//! CREATE DATABASE and DROP DATABASE: they are done at once, and are no part of a transaction.

use super::conversation::Conversation;
use crate::codec::Severity;
use crate::databases::missing;
use sql::parse::DatabaseStatement;
use values::{Error, Result, SqlState};

impl Conversation {
    /// Makes or drops a database; returns the tag.
    pub(super) async fn database_statement(
        &mut self,
        statement: &DatabaseStatement,
    ) -> Result<&'static str> {
        match statement {
            DatabaseStatement::Create { name, options } => {
                self.check_alone("CREATE DATABASE")?;
                sql::check_database_options(options)?;
                self.shared.databases.create(name).await?;
                Ok("CREATE DATABASE")
            }
            DatabaseStatement::Drop { name, if_exists, is_forced } => {
                self.check_alone("DROP DATABASE")?;
                if name == self.connection.database() {
                    let message = "cannot drop the currently open database";
                    return Err(Error::new(SqlState::OBJECT_IN_USE, message));
                }
                if !self.shared.databases.remove(name, *is_forced).await? {
                    self.was_missing(name, *if_exists)?;
                }
                Ok("DROP DATABASE")
            }
        }
    }

    /// Says that there was no database to drop: in an error, or a notice with IF EXISTS.
    fn was_missing(&mut self, name: &str, if_exists: bool) -> Result<()> {
        let error = missing(name);
        if !if_exists {
            return Err(error);
        }
        if self.settings.wants_notices() {
            let message = format!("{}, skipping", error.message());
            let notice = Error::new(SqlState::SUCCESSFUL_COMPLETION, message);
            self.out.report(Severity::Notice, &notice);
        }
        Ok(())
    }
}
