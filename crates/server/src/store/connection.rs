//! What one client does.

use super::open::Store;
use super::pending::{Answer, Pending, Slot};
use super::statement::{Parsed, Statement};
use sql::bind::Options;
use sql::ir::Space;
use sql::run::{Context, Overlay, Rows, run};
use std::sync::Arc;
use values::{Datum, Error, Result, SqlState, Timestamp, Type, Zone};

/// One client's connection: its statements take effect in the order in which they are submitted,
/// however many are under way.
pub struct Connection {
    store: Store,
    zone: Zone,
}

impl Connection {
    pub(super) fn new(store: Store) -> Connection {
        Connection { store, zone: Zone::utc() }
    }

    /// The session's zone, for literals and functions of statements that are prepared from now on.
    pub fn set_zone(&mut self, zone: Zone) {
        self.zone = zone;
    }

    /// The statements of a text, which semicolons separate; none of an empty one.
    ///
    /// # Errors
    /// What is wrong with the text, and where.
    pub fn parse(&self, text: &str) -> Result<Vec<Parsed>> {
        self.store.parse(text)
    }

    /// Plans a statement; types that are not stated come from how parameters are used.
    ///
    /// # Errors
    /// What is wrong with the statement, and where.
    pub fn prepare(&self, parsed: &Parsed, types: &[Option<Type>]) -> Result<Arc<Statement>> {
        let catalog = self.store.shared.state.lock().unwrap().0.clone();
        let version = catalog.version();
        let (parsed, types, zone) = (parsed.clone(), types.to_vec(), self.zone.clone());
        if parsed.is_definition() {
            return Ok(Arc::new(Statement {
                parameters: Vec::new(),
                columns: Vec::new(),
                parsed,
                types,
                zone,
                version,
                plan: None,
            }));
        }
        let work = move || {
            let options =
                Options { parameters: types.clone(), zone: zone.clone(), ..Options::default() };
            let prepared = sql::prepare(&catalog, parsed.tree(), &options)?;
            Ok(Arc::new(Statement {
                parameters: prepared.parameters,
                columns: prepared.columns,
                parsed,
                types,
                zone,
                version,
                plan: Some(prepared.plan),
            }))
        };
        let ended = || Err(Error::new(SqlState::INTERNAL, "the statement could not be planned"));
        self.store.shared.pool.run(work).unwrap_or_else(ended)
    }

    /// Runs a statement; returns before it has.
    pub fn submit(&mut self, statement: &Arc<Statement>, parameters: Vec<Datum>) -> Pending {
        Pending { slot: Slot::answered(self.run(statement, parameters)) }
    }

    fn run(&self, statement: &Statement, parameters: Vec<Datum>) -> Result<Answer> {
        let now = Timestamp::parse("2024-02-29 12:00:00")?;
        let context = Context { parameters, ..Context::at(now) };
        let mut state = self.store.shared.state.lock().unwrap();
        let (catalog, memory) = &mut *state;
        memory.begin();
        let Some(plan) = &statement.plan else {
            let mut overlay = Overlay::new(memory);
            let tree = statement.parsed.tree();
            let Some(definition) = sql::define(catalog, tree, &context, &mut overlay)? else {
                return Err(Error::unsupported("this definition", ""));
            };
            for (key, row) in definition.delta.rows() {
                match row {
                    Some(row) => overlay.put(Space::Catalog, key, row)?,
                    None => overlay.delete(Space::Catalog, key)?,
                }
            }
            overlay.apply()?;
            for (space, prefix) in definition.delta.cleared() {
                memory.clear(*space, prefix);
            }
            for sequence in definition.delta.counters() {
                memory.restart(*sequence);
            }
            *catalog = Arc::new(catalog.with(&definition.delta)?);
            let (tag, notice) = (definition.tag.to_owned(), definition.notice);
            return Ok(Answer { tag, rows: Vec::new(), notice });
        };
        let answer = run(plan, &context, memory)?;
        Ok(Answer { tag: answer.tag.to_string(), rows: answer.rows, notice: None })
    }
}
