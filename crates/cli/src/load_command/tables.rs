//! The tables that rows are loaded into: those of the store, or of a new one as the files say.

use std::sync::Arc;

use engine::TableSchema;
use nvcaracal::dynamic::{Cell, RowTypes, Value};
use pmem::Device;
use storage::{IndexKind, TableDefinition};

use super::csv::{Column, Part};
use super::lines::{Head, Row};
use crate::output::Failure;
use crate::rows::{Looked, Table};

/// Tables as the engine is opened for them.
pub(super) struct Tables {
    pub(super) schemas: Vec<TableSchema>,
    types: Vec<Types>,
}

/// How rows of a table are read.
pub(super) struct Types {
    pub(super) is_sequence: bool,
    types: Option<RowTypes>,
}

impl Types {
    /// The columns of the table in a file of CSV.
    pub(super) fn columns(&self) -> Vec<Column> {
        let plain = Cell { is_text: false, may_be_null: false };
        let column = |name: &str, of, cell| Column { name: name.to_string(), of, cell };
        let key = self.types.as_ref().map_or(plain, RowTypes::key_cell);
        let mut columns = vec![column("key", Part::Key, key)];
        let fields = self.types.as_ref().map_or_else(Vec::new, RowTypes::fields);
        let cells = self.types.as_ref().map_or_else(|| vec![plain], RowTypes::cells);
        match fields.is_empty() {
            true => columns.push(column("value", Part::Value, cells[0])),
            false => columns.extend(
                fields.iter().zip(cells).map(|(name, cell)| column(name, Part::Field, cell)),
            ),
        }
        columns
    }

    /// Key and value as they are stored.
    pub(super) fn bytes(&self, row: &Row) -> Result<(Vec<u8>, Vec<u8>), String> {
        if let Some(types) = &self.types {
            let key = types.key_bytes(&row.key).map_err(|what| format!("key: {what}"))?;
            let value = types.value_bytes(&row.value).map_err(|what| format!("value: {what}"))?;
            return Ok((key, value));
        }
        if self.is_sequence {
            let number = |value: &Value| match value {
                Value::Unsigned(number) => u64::try_from(*number).ok(),
                _ => None,
            };
            let numbers = number(&row.key).zip(number(&row.value));
            let (key, next) = numbers.ok_or("numbers of a sequence are numbers")?;
            return Ok((key.to_be_bytes().to_vec(), next.to_le_bytes().to_vec()));
        }
        // Without types rows are dumped as bytes.
        let bytes = RowTypes::parse(&["[u8] -> Vec<u8>"])?;
        Ok((bytes.key_bytes(&row.key)?, bytes.value_bytes(&row.value)?))
    }
}

impl Tables {
    /// Those that a new store is to have.
    pub(super) fn of_heads(heads: &[Head]) -> Result<Self, Failure> {
        let mut tables = Self { schemas: Vec::new(), types: Vec::new() };
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
    pub(super) fn of_store<D: Device>(device: Arc<D>, heads: &[Head]) -> Result<Self, Failure> {
        let store = Looked::open(device)?;
        if let Some(later) = store.later() {
            return Err(Failure::new(later));
        }
        for head in heads {
            let table = store.table(&head.table).map_err(Failure::new)?;
            if (table.index, &table.words) != (head.index.as_str(), &head.types) {
                return Err(Failure::new(format!(
                    "table {:?} of the store is {} of {:?}, that of the file is {} of {:?}",
                    head.table, table.index, table.words, head.index, head.types
                )));
            }
        }
        let mut tables = Self { schemas: Vec::new(), types: Vec::new() };
        for Table { definition, words, .. } in store.tables() {
            tables.push(definition.clone(), words).map_err(Failure::new)?;
        }
        Ok(tables)
    }

    fn push(&mut self, definition: TableDefinition, words: &[String]) -> Result<(), String> {
        let is_sequence = definition.index == IndexKind::Sequence;
        let words: Vec<String> = words.iter().filter(|words| !words.is_empty()).cloned().collect();
        let types = match is_sequence || words.is_empty() {
            true => None,
            false => Some(RowTypes::parse(&words)?),
        };
        self.types.push(Types { is_sequence, types });
        self.schemas.push(TableSchema { definition, row_bytes_if_new: 0, types: words });
        Ok(())
    }

    /// The number of a table, and how its rows are read.
    pub(super) fn find(&self, name: &str) -> Option<(u16, &Types)> {
        let number = self.schemas.iter().position(|schema| schema.definition.name == name)?;
        Some((number as u16, &self.types[number]))
    }
}
