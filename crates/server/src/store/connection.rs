//! What one client does.

use super::pending::{Pending, Promise};
use super::pipeline::{Pipeline, Work};
use super::shared::Shared;
use super::statement::{Parsed, Statement};
use std::sync::Arc;
use values::{Datum, Error, Result, SqlState, Type, Zone};

/// One client's connection: its statements take effect in the order in which they are submitted,
/// however many are under way.
pub struct Connection {
    pub(super) shared: Arc<Shared>,
    pub(super) pipeline: Arc<Pipeline>,
    pub(super) zone: Zone,
}

impl Connection {
    pub(super) fn new(shared: Arc<Shared>) -> Connection {
        let pipeline = Pipeline::new(Arc::clone(&shared));
        Connection { shared, pipeline, zone: Zone::utc() }
    }

    /// The session's zone, for literals of statements that are prepared from now on, and for
    /// functions of those that are submitted.
    pub fn set_zone(&mut self, zone: Zone) {
        self.zone = zone;
    }

    /// The statements of a text, which semicolons separate; none of an empty one.
    ///
    /// # Errors
    /// What is wrong with the text, and where.
    pub fn parse(&self, text: &str) -> Result<Vec<Parsed>> {
        self.shared.parse(text)
    }

    /// Plans a statement; types that are not stated come from how parameters are used.
    ///
    /// # Errors
    /// What is wrong with the statement, and where.
    pub fn prepare(&self, parsed: &Parsed, types: &[Option<Type>]) -> Result<Arc<Statement>> {
        self.shared.prepare(parsed, types, &self.zone)
    }

    /// Waits for all that was submitted.
    pub(super) async fn all_done(&mut self) -> Result<()> {
        // A query is answered behind all that came before it.
        let parsed = self.parse("SELECT 1")?;
        let [query] = &parsed[..] else { unreachable!("it is one statement") };
        let query = self.prepare(query, &[])?;
        self.submit(&query, Vec::new()).await.map(|_| ())
    }

    /// Runs a statement; returns before it has. Parameters have the statement's types.
    pub fn submit(&mut self, statement: &Arc<Statement>, parameters: Vec<Datum>) -> Pending {
        let (promise, pending) = Promise::new();
        let types = &statement.parameters;
        let is_typed = parameters.len() == types.len()
            && parameters.iter().zip(types).all(|(value, ty)| value.fits(*ty));
        if !is_typed {
            let message = "parameters are not of the types of the statement";
            promise.answer(Err(Error::new(SqlState::DATATYPE_MISMATCH, message)));
            return pending;
        }
        let now = (self.shared.options.clock)();
        let (statement, zone) = (Arc::clone(statement), self.zone.clone());
        self.pipeline.submit(Work { statement, parameters, now, zone, promise });
        pending
    }
}
