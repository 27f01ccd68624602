//! What a store is opened for: tables, indexes and procedures, and how they may differ from those
//! that it has (O-91 to O-95).
//!
//! What is new is added at any open. Everything else that changes, changes only where neither the
//! log nor the record of deferred calls has calls: they were made, or are to be made again, under
//! the definitions of before. Where there are some, and the program has kept what they need
//! ([`crate::program::earlier`]), they run first. All of a change begins to count with one
//! checkpoint record, after the replay if there is one (`storage`: `catalog.rs`).

use storage::input_log::Recovered;
use storage::{CatalogChange, CatalogRequest, Store, TableId, TableRequest, TypesMark};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::error::{EngineError, Result};
use crate::program::definitions::{Definitions, TableSchema};
use crate::program::earlier;
use crate::program::procedure::ProcedureTable;
use crate::program::record::Program;
use crate::program::remembered::{Remembered, remember};
use crate::secondary::IndexDefinition;
use crate::state::core::Missing;
use crate::stats::KeptProcedure;

/// What a store and a program have agreed on.
pub(crate) struct Agreed {
    pub(crate) change: CatalogChange,
    /// The numbers of the tables that the program, and its indexes, name by their positions.
    pub(crate) table_ids: Vec<TableId>,
    pub(crate) indexes: Vec<IndexDefinition>,
    /// By the numbers that the log has for them.
    pub(crate) procedures: ProcedureTable,
    /// The number of each procedure, in the order of registration.
    pub(crate) procedure_ids: Vec<u16>,
    pub(crate) program: Program,
    /// Whether these are the definitions of a log of before, under which it is to be replayed
    /// before anything else: the procedures for it that the program had kept.
    pub(crate) of_log: Option<Vec<KeptProcedure>>,
    /// Then, what a body asked for that is not there.
    pub(crate) missing: Option<Missing>,
}

/// Compares a store with what it is opened for. Changes nothing.
///
/// # Errors
/// `OtherTypes` for a table whose rows are something else, `NotKnown` if the program would forget
/// something that the store has, `OtherProgram` if there are calls that
/// would not mean the same; as [`Store::plan_catalog`]; those of making the procedures.
pub(crate) fn agree(
    store: &Store,
    log: &Recovered,
    definitions: &mut Definitions<'_>,
) -> Result<Agreed> {
    let logged = Program::decode(&store.log().program().unwrap_or_default())?;
    let change = plan(store, definitions, logged.as_ref())?;
    let registered = (definitions.procedures)(&change.numbers)?;
    let remembered = remember(store, definitions, logged.as_ref(), &registered)?;
    // Calls that were logged or deferred, and must run again.
    let has_past = !log.committed.is_empty() || store.checkpoint().deferred_calls > 0;
    let past = logged.filter(|_| has_past);
    let current = Current { registered: &registered, remembered };
    match (agree_on(definitions, change, current, past.as_ref()), past) {
        (Err(EngineError::OtherProgram(difference)), Some(past)) => {
            let Some(mut earlier) = definitions.earlier.take() else {
                return Err(EngineError::OtherProgram(difference));
            };
            let agreed = earlier::agree(store, past, definitions, &mut earlier);
            definitions.earlier = Some(earlier);
            agreed
        }
        (agreed, _) => agreed,
    }
}

/// What a program of now registers, and what of those before it is to be remembered.
struct Current<'a> {
    registered: &'a ProcedureTable,
    remembered: Remembered,
}

/// Agrees on the definitions of the program, if they mean the same to the calls of the past.
fn agree_on(
    definitions: &Definitions<'_>,
    change: CatalogChange,
    Current { registered, remembered }: Current<'_>,
    past: Option<&Program>,
) -> Result<Agreed> {
    let (procedures, procedure_ids) = number(registered, past, definitions.in_order)?;
    let program = Program::current(definitions, &procedures, remembered);
    if let Some(past) = past {
        if let Some(difference) = change.differences.first() {
            return Err(EngineError::OtherProgram(difference.clone()));
        }
        past.check(&program)?;
    }
    let (table_ids, indexes) = (change.numbers.clone(), definitions.indexes.to_vec());
    let (of_log, missing) = (None, None);
    Ok(Agreed { change, table_ids, indexes, procedures, procedure_ids, program, of_log, missing })
}

/// What has to change in the catalog.
fn plan(
    store: &Store,
    definitions: &Definitions<'_>,
    logged: Option<&Program>,
) -> Result<CatalogChange> {
    let mut tables = Vec::with_capacity(definitions.tables.len());
    for table in definitions.tables {
        check_types(store, definitions, table, logged)?;
        tables.push(TableRequest {
            definition: table.definition.clone(),
            row_bytes_if_new: table.row_bytes_if_new,
            types: mark(&table.types),
        });
    }
    let (renamed, dropped) = (definitions.renamed.to_vec(), definitions.dropped.to_vec());
    Ok(store.plan_catalog(&CatalogRequest { tables, renamed, dropped })?)
}

/// Whether the rows of a table are what the program takes them for: of versions of their type that
/// it knows, too.
fn check_types(
    store: &Store,
    definitions: &Definitions<'_>,
    asked: &TableSchema,
    logged: Option<&Program>,
) -> Result<()> {
    let name = &asked.definition.name;
    let find = |name: &str| {
        let goes = definitions.dropped.iter().any(|dropped| dropped == name);
        store.tables().iter().find(|table| !goes && table.definition.name == name)
    };
    let Some(stored) = find(name).or_else(|| find(definitions.name_before(name))) else {
        return Ok(());
    };
    let TypesMark { hash, versions } = stored.types;
    let known = asked.types.get(..versions as usize);
    if hash == 0 || asked.types.is_empty() || known.is_some_and(|known| mark(known).hash == hash) {
        return Ok(());
    }
    let texts = logged.and_then(|program| program.types_of(&stored.definition.name));
    let was = match texts.filter(|texts| mark(texts).hash == hash) {
        Some(texts) => texts.join("; then "),
        None => "of other types".to_string(),
    };
    let is = asked.types.join("; then ");
    Err(EngineError::OtherTypes(format!("the rows of table {name:?} are {was}, not {is}")))
}

/// What the catalog keeps of types.
fn mark(types: &[String]) -> TypesMark {
    let hash = types.iter().fold(0, |hash, text| xxh3_64_with_seed(fields(text).as_bytes(), hash));
    // Zero is for no types at all.
    let hash = if types.is_empty() { 0 } else { hash.max(1) };
    TypesMark { hash, versions: types.len() as u32 }
}

/// A type in words without the names of structs: one may be renamed, its fields may not.
pub(super) fn fields(text: &str) -> String {
    let mut fields = String::with_capacity(text.len());
    for part in text.split_inclusive(" {") {
        match part.strip_suffix(" {") {
            Some(before) => {
                let is_of_name = |c: char| c.is_alphanumeric() || c == '_';
                fields.push_str(before.trim_end_matches(is_of_name));
                fields.push('{');
            }
            None => fields.push_str(part),
        }
    }
    fields
}

/// The procedures by the numbers that calls of the past have for them, and new ones behind those;
/// with the number of each in the order of registration. Without a past they are numbered in that
/// order (O-92).
///
/// # Errors
/// `OtherProgram` if one of the past is not there, or has another number although it has to keep
/// that of its registration.
fn number(
    registered: &ProcedureTable,
    past: Option<&Program>,
    in_order: bool,
) -> Result<(ProcedureTable, Vec<u16>)> {
    let mut table = ProcedureTable::new();
    for name in past.iter().flat_map(|past| past.procedures()) {
        let other = |what: String| Err(EngineError::OtherProgram(what));
        let number = table.len() as u16;
        match registered.number(name) {
            None => return other(format!("procedure {name:?} is not registered")),
            Some(now) if in_order && now != number => {
                let instead = registered.get(number).expect("it has this number").name();
                return other(format!(
                    "procedure {number} was {name:?} and is {instead:?}: register them in the \
                     same order"
                ));
            }
            Some(now) => table.take_from(registered, now),
        };
    }
    let numbers = (0..registered.len() as u16).map(|position| {
        let name = registered.get(position).expect("a registered procedure").name();
        table.number(name).unwrap_or_else(|| table.take_from(registered, position))
    });
    let numbers = numbers.collect();
    Ok((table, numbers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_structs_do_not_count_and_those_of_fields_do() {
        let hash = |text: &str| mark(&[text.to_string()]).hash;
        let seat = "u64 -> Seat { price: u64, at: Place { row: u32 } }";
        assert_eq!(fields(seat), "u64 -> { price: u64, at: { row: u32 } }");
        assert_eq!(hash(seat), hash("u64 -> SeatV1 { price: u64, at: P { row: u32 } }"));
        for other in [
            "u32 -> Seat { price: u64, at: Place { row: u32 } }",
            "u64 -> Seat { price: f64, at: Place { row: u32 } }",
            "u64 -> Seat { cents: u64, at: Place { row: u32 } }",
            "u64 -> Seat { price: u64 }",
        ] {
            assert_ne!(hash(seat), hash(other), "{other}");
        }
        assert_ne!(mark(&["a".into(), "b".into()]).hash, mark(&["b".into(), "a".into()]).hash);
        assert_eq!(mark(&[]), TypesMark::default());
    }
}
