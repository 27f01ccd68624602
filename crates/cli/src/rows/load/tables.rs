//! The tables that rows are loaded into: those of the store, or of a new one as the files say.

use std::sync::Arc;

use engine::{IndexDefinition, IndexInWords, IndexKeyFn, TableSchema};
use storage::{IndexKind, TableDefinition};

use super::lines::Head;
use crate::output::{Done, Failure};
use crate::rows::looked::{Looked, Table};
use crate::rows::typed::Types;

/// Tables as the engine is opened for them.
#[derive(Default)]
pub(super) struct Tables {
    pub(super) schemas: Vec<TableSchema>,
    types: Vec<Types>,
    /// By which the store calls them, where it is there.
    pub(super) numbers: Vec<u16>,
    /// Indexes of the store, whose keys only its program can make: here they stay empty, and are
    /// not forgotten.
    pub(super) indexes: Vec<IndexDefinition>,
}

impl Tables {
    /// Those that a new store is to have.
    pub(super) fn of_heads(heads: &[Head]) -> Result<Self, Failure> {
        let mut tables = Self::default();
        for head in heads {
            let of = |what: String| Failure::new(format!("table {:?}: {what}", head.table));
            let index = match head.index.as_str() {
                "hash" => IndexKind::Hash,
                "ordered" => IndexKind::Ordered,
                "sequence" => IndexKind::Sequence,
                other => return Err(of(format!("{other:?} is no index: hash, ordered, sequence"))),
            };
            let definition = TableDefinition {
                name: head.table.clone(),
                index,
                key_bytes_max: head.key_bytes_max,
                value_bytes_max: head.value_bytes_max,
                row_bytes: head.row_bytes,
                shared_heap_bytes: head.shared_heap_bytes,
            };
            tables.push(definition, &head.types).map_err(of)?;
        }
        Ok(tables)
    }

    /// Those of a store that was closed, which have to be what the files say.
    /// One in which a load was cut short has epochs of this command to replay.
    pub(super) fn of_store(
        store: &Looked,
        heads: &[Head],
        may_replay: bool,
    ) -> Result<Self, Failure> {
        if let Some(later) = store.later().filter(|_| !may_replay) {
            return Err(Failure::new(later));
        }
        for head in heads {
            let table = store.table(&head.table).map_err(Failure::new)?;
            // A file may be from before the type of the values got its newest versions.
            let is_same = table.words == head.types
                || (!head.types.is_empty() && table.words.starts_with(&head.types));
            if table.index != head.index || !is_same {
                return Err(Failure::new(format!(
                    "table {:?} of the store is {} of {:?}, that of the file is {} of {:?}",
                    head.table, table.index, table.words, head.index, head.types
                )));
            }
        }
        let mut tables = Self::default();
        for Table { definition, words, .. } in store.tables() {
            tables.push(definition.clone(), words).map_err(Failure::new)?;
        }
        for (index, table) in store.indexes()? {
            let table = tables.schemas.iter().position(|schema| schema.definition.name == table);
            let Some(table) = table else { continue };
            let IndexInWords { name, is_unique, types } = index;
            let key: IndexKeyFn = Arc::new(|_, _, _| Ok(()));
            tables.indexes.push(IndexDefinition { name, table, is_unique, types, key });
        }
        Ok(tables)
    }

    /// Those of a store that is dumped, to read back what was dumped.
    pub(super) fn of_dump(store: &Looked) -> Result<Self, Failure> {
        let mut tables = Self::default();
        for table in store.tables() {
            let Table { definition, types, .. } = table;
            tables.types.push(types.clone());
            tables.numbers.push(table.number());
            tables.schemas.push(definition.clone().into());
        }
        Ok(tables)
    }

    /// Refuses rows for an index, in which two of them might have one key: only the store's
    /// program could find out, and it could not open the store.
    pub(super) fn check_indexes(&self, rows: &[u64], is_unchecked: bool) -> Done {
        let has_rows = |index: &&IndexDefinition| rows[index.table] > 0;
        match self.indexes.iter().find(has_rows) {
            Some(index) if !is_unchecked => {
                let IndexDefinition { name, table, .. } = index;
                let table = &self.schemas[*table].definition.name;
                Err(Failure::new(format!(
                    "table {table:?} has index {name:?}, whose keys only the program can make: a \
                     row that does not fit into it would keep the program from opening the store; \
                     insert the rows with the program, or load them with --unchecked-indexes"
                )))
            }
            _ => Ok(()),
        }
    }

    fn push(&mut self, definition: TableDefinition, words: &[String]) -> Result<(), String> {
        let is_sequence = definition.index == IndexKind::Sequence;
        self.types.push(match is_sequence || words.is_empty() {
            true => Types::unknown(is_sequence),
            false => Types::parse(words)?,
        });
        let types = words.to_vec();
        self.schemas.push(TableSchema { definition, row_bytes_if_new: 0, types });
        Ok(())
    }

    /// The number of a table, and how its rows are read.
    pub(super) fn find(&self, name: &str) -> Option<(u16, &Types)> {
        let number = self.schemas.iter().position(|schema| schema.definition.name == name)?;
        Some((number as u16, &self.types[number]))
    }
}
