//! What a program keeps for the logs of those before it, and which tables and indexes its handles
//! mean while such a log is replayed (O-107).
//!
//! The catalog and the log say which tables and indexes there were, so the handles of before need
//! no registration. A handle of now means the table that it will be, as long as the rows are of the
//! same type: a body that did not change finds a table that was renamed, or takes longer values.

use std::sync::Arc;

use engine::{
    Body, EngineError, IndexDefinition, KeptProcedure, LoggedSchema, LoggedTable, RecoveryReport,
};

use crate::call::procedure::Registration;
use crate::error::{Error, Result};
use crate::table::handle::{Shape, tag_of_index, tag_of_table};
use crate::table::index::{IndexRegistration, IndexShape};
use crate::table::schema::{Context, MissingHandles, OfLog, Schema};

/// What a program keeps.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kept {
    pub(crate) procedures: Vec<Registration>,
    pub(crate) indexes: Vec<IndexRegistration>,
    /// Names of procedures that are called otherwise now, each with the version behind the last
    /// one of that name.
    pub(crate) superseded: Vec<(String, u32)>,
}

/// What a program has besides.
#[derive(Clone, Copy)]
pub(crate) struct OfNow<'p> {
    pub(crate) shapes: &'p [Shape],
    pub(crate) renamed: &'p [(String, String)],
    pub(crate) indexes: &'p [IndexRegistration],
    pub(crate) procedures: &'p [Registration],
    pub(crate) context: &'p Context,
}

impl Kept {
    /// Each body has a name and a version of its own.
    pub(crate) fn check(&self, procedures: &[Registration]) -> Result<()> {
        for (at, kept) in self.procedures.iter().enumerate() {
            let others = procedures.iter().chain(&self.procedures[..at]);
            let mut same = others.filter(|other| named(other) == named(kept));
            if same.any(|other| !other.is(kept)) {
                let (name, version) = named(kept);
                return Err(Error::mistake(format!(
                    "procedure {name:?} has two bodies of version {version}: give the later one a \
                     greater version"
                )));
            }
        }
        Ok(())
    }

    /// The indexes as the engine knows them, with the names of their tables.
    pub(crate) fn definitions(&self) -> Vec<(IndexDefinition, String)> {
        let of =
            |index: &IndexRegistration| (index.definition(0), index.shape.table.name.to_string());
        self.indexes.iter().map(of).collect()
    }

    /// All bodies, for the tables and indexes of a log.
    pub(crate) fn bodies(
        &self,
        logged: &LoggedSchema,
        now: &OfNow<'_>,
        missing: &MissingHandles,
    ) -> engine::Result<Vec<Body>> {
        let tags = self.tags(logged, now);
        let body = |of: &Registration, is_kept: bool| {
            let schema = Schema::new(&tags, now.context.clone())
                .map_err(|error| EngineError::Limit(error.to_string()))?;
            let (procedure, version) = (of.name, of.version);
            let schema = schema.of_log(OfLog { procedure, version, missing: missing.clone() });
            let procedure = of.object(Arc::new(schema));
            Ok(Body { procedure, types: of.types(), version, is_kept })
        };
        let of_now = now.procedures.iter().map(|of| body(of, false));
        of_now.chain(self.procedures.iter().map(|of| body(of, true))).collect()
    }

    /// The numbers that tables and indexes have in a log, by the handles of before and of now.
    fn tags(&self, logged: &LoggedSchema, now: &OfNow<'_>) -> Vec<(u64, u16)> {
        let mut tags: Vec<(u64, u16)> = Vec::new();
        let mut add = |tag: u64, number: u16| {
            if tags.iter().all(|(there, _)| *there != tag) {
                tags.push((tag, number));
            }
        };
        for table in &logged.tables {
            add(tag_of(table), table.number.0);
        }
        for shape in now.shapes {
            if let Some(table) = table_of(logged, now, shape) {
                add(shape.tag, table.number.0);
            }
        }
        for (number, index) in (0..).zip(&logged.indexes) {
            let is_its = |table: &&LoggedTable| table.number == index.table;
            let table = logged.tables.iter().find(is_its).expect("an index is of a table");
            add(tag_of_index(tag_of(table), &index.name, index.is_unique), number);
            for shape in self.indexes.iter().chain(now.indexes).map(|of| &of.shape) {
                let IndexShape { name, table: of, is_unique, tag } = shape;
                let is_of = table_of(logged, now, of).is_some_and(|of| of.number == index.table);
                if is_of && *name == index.name && *is_unique == index.is_unique {
                    add(*tag, number);
                }
            }
        }
        tags
    }

    /// Adds what no log needed.
    pub(crate) fn add_unneeded(&self, report: &mut RecoveryReport) {
        for kept in &self.procedures {
            let (name, version) = named(kept);
            let is_there =
                |there: &KeptProcedure| (there.name.as_str(), there.version) == (name, version);
            if !report.kept_procedures.iter().any(is_there) {
                let name = name.to_string();
                report.kept_procedures.push(KeptProcedure { name, version, was_needed: false });
            }
        }
    }
}

fn named(of: &Registration) -> (&'static str, u32) {
    (of.name, of.version)
}

/// The tag of a handle that a program of before had for a table.
fn tag_of(table: &LoggedTable) -> u64 {
    let definition = &table.definition;
    let (key_bytes_max, value_bytes_max) = (definition.key_bytes_max, definition.value_bytes_max);
    let versions = table.versions as u8;
    tag_of_table(&definition.name, definition.index, key_bytes_max, value_bytes_max, versions)
}

/// The table of a log that a handle of now means, if its rows are of the same type.
fn table_of<'l>(
    logged: &'l LoggedSchema,
    now: &OfNow<'_>,
    shape: &Shape,
) -> Option<&'l LoggedTable> {
    let find = |name: &str| logged.tables.iter().find(|table| table.definition.name == name);
    let before = now.renamed.iter().find(|(_, to)| to == shape.name);
    let table = find(shape.name).or_else(|| find(&before?.0))?;
    (table.versions == u32::from(shape.versions)).then_some(table)
}
