//! What a definition comes to.

use crate::catalog::Delta;
use values::{Datum, Error, Result, SqlState};

/// A definition that was made of a statement: the catalog and the store have to take it together.
#[derive(Clone, Debug)]
pub struct Definition {
    /// The command tag.
    pub tag: &'static str,
    /// What the catalog gets.
    pub delta: Delta,
    /// The rows of its answer, if it has any.
    pub rows: Vec<Vec<Datum>>,
    /// What the client is told although it is no error.
    pub notice: Option<String>,
}

impl Definition {
    pub(super) fn new(tag: &'static str, delta: Delta) -> Definition {
        Definition { tag, delta, rows: Vec::new(), notice: None }
    }

    /// The whole command tag.
    pub fn shown_tag(&self) -> String {
        match self.tag {
            "SELECT" => format!("SELECT {}", self.rows.len()),
            tag => tag.to_owned(),
        }
    }

    /// What CREATE does about a name that exists: nothing, if the statement says so.
    pub(super) fn existing(tag: &'static str, name: &str, skipped: bool) -> Result<Definition> {
        let message = format!("relation \"{name}\" already exists");
        if !skipped {
            return Err(Error::new(SqlState::DUPLICATE_TABLE, message));
        }
        let notice = Some(format!("{message}, skipping"));
        Ok(Definition { notice, ..Definition::new(tag, Delta::default()) })
    }

    /// What DROP does about an object that does not exist: a notice, if the statement says so.
    pub(super) fn skip_missing(&mut self, error: Error, skipped: bool) -> Result<()> {
        if !skipped {
            return Err(error);
        }
        self.notice = Some(format!("{}, skipping", error.message()));
        Ok(())
    }
}
