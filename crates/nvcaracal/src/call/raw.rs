//! Procedures that are objects: arguments and answers are bytes.

use std::sync::Arc;

use engine::{Abort, Steps};

use crate::body;
use crate::call::declare::{Sequences, WriteSet};
use crate::call::transaction::Transaction;
use crate::stop::Stop;
use crate::table::schema::Schema;

/// A procedure as an object. What it knows besides its arguments must never change while a database
/// is open with it, and must be the same in a recovery.
///
/// What [`crate::Procedure`] says of procedures holds for it, too. Pieces it has none.
pub trait Procedure: Send + Sync + 'static {
    /// The name under which calls are logged: different for each procedure of a database.
    fn name(&self) -> &str;

    /// What is to be the same where logged calls run again, in words: versions of the form of its
    /// arguments, of what runs them, and so on. A log of calls with other words is refused until it
    /// is empty.
    fn semantics(&self) -> String {
        String::new()
    }

    /// Whether [`Procedure::sequences`] does anything; it is not called otherwise.
    fn has_sequences(&self) -> bool {
        false
    }

    /// As [`crate::Procedure::sequences`].
    ///
    /// # Errors
    /// An abort ends the transaction, and it allocates nothing.
    fn sequences(&self, arguments: &[u8], sequences: &mut Sequences) -> Result<(), Abort> {
        let _ = (arguments, sequences);
        Ok(())
    }

    /// As [`crate::Procedure::write_set`].
    fn write_set(&self, arguments: &[u8], set: &mut WriteSet) {
        let _ = arguments;
        set.unknown();
    }

    /// As [`crate::Procedure::run`].
    ///
    /// # Errors
    /// As there; an [`Abort`] has a code, words and a payload of bytes.
    fn run(&self, arguments: &[u8], tx: &mut Transaction) -> Result<Vec<u8>, Stop>;
}

/// A procedure of a database, by which calls name it: from
/// [`Database::raw_procedure`](crate::Database::raw_procedure), and for that database only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProcedureNumber(pub(crate) u16);

/// A procedure of one database, as the engine calls it.
pub(crate) struct Object {
    pub(crate) schema: Arc<Schema>,
    pub(crate) procedure: Arc<dyn Procedure>,
}

/// What is compared of a procedure where its calls run again.
pub(crate) fn types(procedure: &dyn Procedure) -> String {
    let semantics = procedure.semantics();
    match semantics.is_empty() {
        true => "Vec<u8> -> Vec<u8>".into(),
        false => format!("Vec<u8> -> Vec<u8>; {semantics}"),
    }
}

impl engine::Procedure for Object {
    fn name(&self) -> &str {
        self.procedure.name()
    }

    fn steps(&self) -> Steps {
        Steps { sequences: self.procedure.has_sequences(), ..Steps::default() }
    }

    fn sequences(&self, arguments: &[u8], inner: &mut engine::Sequences<'_>) -> Result<(), Abort> {
        let mut sequences = Sequences { inner, schema: &self.schema };
        body::within(|| self.procedure.sequences(arguments, &mut sequences))
    }

    fn write_set(&self, arguments: &[u8], inner: &mut engine::WriteSet<'_>) -> Result<(), Abort> {
        let mut set = WriteSet { inner, schema: &self.schema };
        body::within(|| self.procedure.write_set(arguments, &mut set));
        Ok(())
    }

    fn run(
        &self,
        arguments: &[u8],
        inner: &mut engine::Transaction<'_>,
    ) -> Result<(), engine::Stop> {
        let mut tx = Transaction { inner, schema: &self.schema };
        body::within(|| {
            let answer = self.procedure.run(arguments, &mut tx).map_err(|stop| stop.inner)?;
            tx.inner.output().extend_from_slice(&answer);
            Ok(())
        })
    }
}
