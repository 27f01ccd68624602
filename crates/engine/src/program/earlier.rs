//! The log of a program of before, under a program that still has what the log needs.
//!
//! Calls that were logged run again by the bodies that ran them, on the tables and with the indexes
//! that there were (O-107). So an open that meets such a log replays it under the definitions of
//! the log, comes to the checkpoint that a close by the program of before would have left, and only
//! then begins with what the program of now asks for ([`crate::recovery`]).

use std::sync::Arc;

use storage::{CatalogRequest, Store, TableId};

use crate::error::{EngineError, Result};
use crate::program::definitions::{
    Body, Definitions, Earlier, LoggedIndex, LoggedSchema, LoggedTable,
};
use crate::program::procedure::ProcedureTable;
use crate::program::record::{IndexInWords, Program, TypedName};
use crate::program::schema::{Agreed, fields};
use crate::secondary::IndexDefinition;
use crate::stats::KeptProcedure;

/// Agrees on the definitions of the log.
///
/// # Errors
/// `OtherProgram` if the program does not have all that they need.
pub(crate) fn agree(
    store: &Store,
    past: Program,
    definitions: &Definitions<'_>,
    earlier: &mut Earlier<'_>,
) -> Result<Agreed> {
    past.check_rules()?;
    let tables = tables(store);
    let found = past.indexes_of_tables()?;
    let (mut logged, mut indexes) = (Vec::new(), Vec::new());
    for (index, of) in &found {
        let table = tables.iter().find(|table| table.definition.name == *of);
        let Some(table) = table.map(|table| table.number) else {
            return Err(other(format!("index {:?} is of table {of:?}, which is gone", index.name)));
        };
        let definition = index_as_logged(index, of, definitions, earlier)?;
        indexes.push(IndexDefinition { table: table.index(), ..definition });
        logged.push(LoggedIndex { name: index.name.clone(), table, is_unique: index.is_unique });
    }
    let bodies = (earlier.bodies)(&LoggedSchema { tables, indexes: logged })?;
    let (mut procedures, mut kept) = (ProcedureTable::new(), Vec::new());
    for logged in &past.procedures {
        let body = body_as_logged(logged, &bodies)?;
        let (procedure, version) = (Arc::clone(&body.procedure), body.version);
        procedures.add_version(procedure, logged.types.clone(), version);
        if body.is_kept {
            kept.push(KeptProcedure { name: logged.name.clone(), version, was_needed: true });
        }
    }
    let change = store.plan_catalog(&CatalogRequest::default())?;
    assert!(!change.is_change, "what is asked for is what there is");
    let table_ids = (0..store.tables().len()).map(|number| TableId(number as u16)).collect();
    let (of_log, missing) = (Some(kept), Some(Arc::clone(&earlier.missing)));
    let (program, procedure_ids) = (past, Vec::new());
    Ok(Agreed { change, table_ids, indexes, procedures, procedure_ids, program, of_log, missing })
}

fn tables(store: &Store) -> Vec<LoggedTable> {
    let used = (0..).map(TableId).zip(store.tables()).filter(|(_, table)| table.is_used());
    let table = |(number, table): (TableId, &storage::StoredTable)| LoggedTable {
        number,
        definition: table.definition.clone(),
        versions: table.types.versions.max(1),
    };
    used.map(table).collect()
}

/// What makes the keys of an index of the log: of those that are kept, or of those of now.
fn index_as_logged(
    logged: &IndexInWords,
    table: &str,
    definitions: &Definitions<'_>,
    earlier: &Earlier<'_>,
) -> Result<IndexDefinition> {
    let is_same = |index: &IndexDefinition, of: &str| {
        let is_of_table = of == table || definitions.name_before(of) == table;
        is_of_table && logged.is(&index.name, index.is_unique, &index.types)
    };
    let kept = earlier.indexes.iter().find(|(index, of)| is_same(index, of));
    let of_now = || {
        definitions.indexes.iter().find(|index| {
            let table = definitions.tables.get(index.table);
            table.is_some_and(|table| is_same(index, &table.definition.name))
        })
    };
    let found = kept.map(|(index, _)| index).or_else(of_now);
    found.cloned().ok_or_else(|| {
        let words = if logged.is_unique { "unique index" } else { "index" };
        let IndexInWords { name, types, .. } = logged;
        other(format!("{words} {name:?} ({types}) of table {table:?} is not registered"))
    })
}

/// The body that ran the calls of a procedure of the log.
fn body_as_logged<'b>(logged: &TypedName, bodies: &'b [Body]) -> Result<&'b Body> {
    let named: Vec<_> = bodies.iter().filter(|b| b.procedure.name() == logged.name).collect();
    let of_version = named.iter().find(|body| body.version == logged.version);
    let TypedName { name, version, types } = logged;
    let Some(body) = of_version else {
        let versions: Vec<_> = named.iter().map(|body| body.version.to_string()).collect();
        return Err(other(match versions.is_empty() {
            true => format!("procedure {name:?} is not registered"),
            false => format!(
                "procedure {name:?} was version {version} and is version {} only",
                versions.join(", ")
            ),
        }));
    };
    let is_same = body.types == *types || body.is_kept && fields(&body.types) == fields(types);
    if is_same {
        return Ok(body);
    }
    Err(other(format!("procedure {name:?} was {types} and is {}", body.types)))
}

fn other(what: String) -> EngineError {
    EngineError::OtherProgram(what)
}
