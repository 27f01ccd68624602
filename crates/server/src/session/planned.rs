//! Statements that were prepared, and portals: statements with their values.

use crate::codec::Format;
use crate::limits::{ANSWER_BYTES_GUESSED, PREPARED_BYTES_MAX, PREPARED_MAX};
use crate::store::{Answer, Control, OutputColumn, Statement};
use sql::Grant;
use sql::parse::{Declared, Explain, SessionColumn, SetConfig};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;
use values::{Datum, Error, Result, SqlState, Timestamp, Type};

/// What a statement is for a session.
#[derive(Clone)]
pub(super) enum Work {
    /// No statement at all.
    Nothing,
    /// About the session.
    Control(Control),
    /// A query about the session, and the types of its parameters.
    Session(Vec<SessionColumn>, Vec<Type>),
    /// For the store.
    Store(Arc<Statement>),
    /// A cursor and its query.
    Declare(Declared, Arc<Statement>),
    /// PREPARE: a name for a statement, and the text of both.
    Prepare(String, Arc<Prepared>, Arc<str>),
    /// EXPLAIN
    Explain(Arc<Explaining>),
}

/// EXPLAIN of a statement.
pub(super) struct Explaining {
    pub(super) asked: Explain,
    pub(super) prepared: Arc<Prepared>,
    /// The statement of that.
    pub(super) statement: Arc<Statement>,
    /// The time that its plan took.
    pub(super) planning: Duration,
}

/// A statement that can be bound and run.
pub(super) struct Prepared {
    pub(super) work: Work,
    pub(super) columns: Arc<[OutputColumn]>,
    /// The values that EXECUTE gives: then the client gives none.
    pub(super) given: Option<Vec<Datum>>,
    /// The memory of those.
    pub(super) memory: Option<Arc<Grant>>,
    /// What it sets before it runs.
    pub(super) configs: Vec<SetConfig>,
    /// The bytes of its text.
    pub(super) bytes: usize,
    /// What an answer takes, as far as is known.
    pub(super) cost: Arc<AtomicUsize>,
}

impl Prepared {
    pub(super) fn new(work: Work, columns: Arc<[OutputColumn]>, bytes: usize) -> Prepared {
        let cost = Arc::new(AtomicUsize::new(ANSWER_BYTES_GUESSED));
        let (given, memory, configs) = (None, None, Vec::new());
        Prepared { work, columns, given, memory, configs, bytes, cost }
    }

    /// What it says about the session.
    pub(super) fn control(&self) -> Option<&Control> {
        match &self.work {
            Work::Control(control) => Some(control),
            _ => None,
        }
    }

    /// Whether a state is read already when it is prepared, so that its transaction has begun to
    /// read.
    pub(super) fn is_analyzed(&self) -> bool {
        match &self.work {
            Work::Store(statement) => !statement.is_definition() && statement.copy.is_none(),
            Work::Session(..) | Work::Declare(..) | Work::Explain(_) => true,
            Work::Nothing | Work::Control(_) | Work::Prepare(..) => false,
        }
    }

    /// Whether its answer is rows.
    pub(super) fn has_rows(&self) -> bool {
        match &self.work {
            Work::Store(statement) => statement.has_rows(),
            _ => !self.columns.is_empty(),
        }
    }

    pub(super) fn parameters(&self) -> &[Type] {
        match &self.work {
            _ if self.given.is_some() => &[],
            // The parameter of a COPY is not the client's.
            Work::Store(statement) if statement.copy.is_none() => &statement.parameters,
            Work::Declare(_, statement) => &statement.parameters,
            Work::Session(_, types) => types,
            Work::Explain(explaining) => explaining.prepared.parameters(),
            _ => &[],
        }
    }
}

/// A prepared statement of the session.
pub(super) struct Known {
    pub(super) prepared: Arc<Prepared>,
    /// The text that it came with.
    pub(super) text: Arc<str>,
    /// When it was prepared.
    pub(super) at: Timestamp,
    /// Whether PREPARE made it, and no message.
    pub(super) is_sql: bool,
}

/// Where a portal is.
pub(super) enum Progress {
    /// It has not run.
    New,
    /// Its statement is held, and its rows are limited.
    Held,
    /// It has run, and these rows are left; none at its end.
    Left(Answer),
    /// It cannot be run: its statement answers no rows and has run, or has failed.
    Done,
}

/// A statement with its values.
pub(super) struct Portal {
    /// Which Bind of the session made it: a later portal of the same name has another number.
    pub(super) number: u64,
    pub(super) prepared: Arc<Prepared>,
    pub(super) values: Vec<Datum>,
    /// The memory of the values, if they are long.
    pub(super) memory: Option<Arc<Grant>>,
    pub(super) formats: Arc<[Format]>,
    /// The bytes of its values.
    pub(super) bytes: usize,
    pub(super) progress: Progress,
    /// How many savepoints the block had when it was bound.
    pub(super) savepoints: usize,
}

/// A cursor that is open.
pub(super) struct Cursor {
    /// The text that declared it.
    pub(super) text: Arc<str>,
    /// When it was declared.
    pub(super) at_time: Timestamp,
    pub(super) columns: Arc<[OutputColumn]>,
    pub(super) rows: Vec<Vec<Datum>>,
    /// The memory of the rows.
    pub(super) _memory: Option<Arc<Grant>>,
    /// The number of the row that it is on, from 1; 0 before the first one, and one more than there
    /// are behind the last.
    pub(super) at: usize,
    /// What its rows take.
    pub(super) bytes: usize,
    /// Whether it may not go back.
    pub(super) is_forward: bool,
    /// Whether it was declared as BINARY, which its rows are only if the client asks for it.
    pub(super) is_binary: bool,
    pub(super) is_held: bool,
    /// Whether the transaction that declared it goes on.
    pub(super) is_of_transaction: bool,
    /// How many savepoints the block had.
    pub(super) savepoints: usize,
}

/// Things by their names, of which there may be so many.
pub(super) struct Named<T> {
    all: HashMap<String, T>,
    bytes: usize,
}

/// What is counted of a thing.
pub(super) trait Counted {
    const NAME: &'static str;
    /// The bytes that the client gave for it.
    fn bytes(&self) -> usize;
    /// The code of a name that exists, and of one that does not.
    const CODES: (SqlState, SqlState);
}

impl Counted for Known {
    const NAME: &'static str = "prepared statement";
    const CODES: (SqlState, SqlState) =
        (SqlState::DUPLICATE_STATEMENT, SqlState::UNDEFINED_STATEMENT);
    fn bytes(&self) -> usize {
        self.prepared.bytes
    }
}

impl Counted for Cursor {
    const NAME: &'static str = "cursor";
    const CODES: (SqlState, SqlState) = (SqlState::DUPLICATE_CURSOR, SqlState::UNDEFINED_CURSOR);
    fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Counted for Portal {
    const NAME: &'static str = "portal";
    const CODES: (SqlState, SqlState) = (SqlState::DUPLICATE_CURSOR, SqlState::UNDEFINED_CURSOR);
    fn bytes(&self) -> usize {
        self.bytes
    }
}

fn missing<T: Counted>(name: &str) -> Error {
    Error::new(T::CODES.1, format!("{} \"{name}\" does not exist", T::NAME))
}

impl<T: Counted> Named<T> {
    pub(super) fn new() -> Named<T> {
        Named { all: HashMap::new(), bytes: 0 }
    }

    /// Whether something of this name can come; the one without a name is replaced.
    pub(super) fn check(&self, name: &str, bytes: usize) -> Result<()> {
        let kind = T::NAME;
        if !name.is_empty() && self.all.contains_key(name) {
            return Err(Error::new(T::CODES.0, format!("{kind} \"{name}\" already exists")));
        }
        let message = if self.all.len() >= PREPARED_MAX {
            format!("there are {PREPARED_MAX} {kind}s in this session")
        } else if self.bytes + bytes > PREPARED_BYTES_MAX {
            format!("the {kind}s of this session take more than {PREPARED_BYTES_MAX} bytes")
        } else {
            return Ok(());
        };
        let hint = format!("Close a {kind} that is not needed any more.");
        Err(Error::new(SqlState::LIMIT_EXCEEDED, message).with_hint(hint))
    }

    pub(super) fn insert(&mut self, name: String, thing: T) {
        self.remove(&name);
        self.bytes += thing.bytes();
        self.all.insert(name, thing);
    }

    pub(super) fn get(&mut self, name: &str) -> Result<&mut T> {
        self.all.get_mut(name).ok_or_else(|| missing::<T>(name))
    }

    pub(super) fn look(&self, name: &str) -> Result<&T> {
        self.all.get(name).ok_or_else(|| missing::<T>(name))
    }

    /// Whether there is one of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.all.contains_key(name)
    }

    /// All of them, in no order.
    pub(super) fn all(&self) -> impl Iterator<Item = &T> {
        self.all.values()
    }

    /// All of them with their names, by name.
    pub(super) fn by_name(&self) -> Vec<(&String, &T)> {
        let mut all: Vec<_> = self.all.iter().collect();
        all.sort_unstable_by_key(|(name, _)| *name);
        all
    }

    /// Removes those that are not to stay.
    pub(super) fn retain(&mut self, mut stays: impl FnMut(&mut T) -> bool) {
        self.all.retain(|_, thing| stays(thing));
        self.bytes = self.all.values().map(Counted::bytes).sum();
    }

    /// Removes it, if it is there.
    pub(super) fn remove(&mut self, name: &str) -> Option<T> {
        let thing = self.all.remove(name)?;
        assert!(self.bytes >= thing.bytes(), "what is removed was counted");
        self.bytes -= thing.bytes();
        Some(thing)
    }

    pub(super) fn clear(&mut self) {
        self.all.clear();
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_counted() {
        let prepared = |bytes| Known {
            prepared: Arc::new(Prepared::new(Work::Nothing, Arc::new([]), bytes)),
            text: "".into(),
            at: Timestamp::from_bits(0).unwrap(),
            is_sql: false,
        };
        let mut named = Named::new();
        for at in 0..PREPARED_MAX {
            named.check(&at.to_string(), 1).unwrap();
            named.insert(at.to_string(), prepared(1));
        }
        let code = |result: Result<()>| result.unwrap_err().state().code().to_owned();
        assert_eq!(code(named.check("x", 1)), "54000");
        assert_eq!(code(named.check("7", 1)), "42P05");
        assert!(named.remove("7").is_some());
        named.check("x", 1).unwrap();
        assert_eq!(code(named.check("x", PREPARED_BYTES_MAX)), "54000");
        assert_eq!(named.get("7").err().unwrap().state().code(), "26000");
        named.clear();
        named.check("x", PREPARED_BYTES_MAX).unwrap();
    }
}
