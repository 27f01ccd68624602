//! Rows of any store, by the types that it has in words.

use std::fmt::Write as _;
use std::sync::Arc;

use bench::BenchError;
use nvcaracal::dynamic::Value;
use pmem::AnyDevice;
use serde::Serialize;
use storage::TableId;
use storage::rows::{RowAt, rows_of, value_of};
use storage::{IndexKind, Opened, StateHash, Store, StoreOptions, TableDefinition};

use super::typed::Types;

/// A store that is only looked at.
pub(crate) struct Looked {
    opened: Opened,
    tables: Vec<Table>,
}

/// A table of a store.
pub(crate) struct Table {
    pub(crate) definition: TableDefinition,
    pub(crate) index: &'static str,
    /// For each version of the values' type, the oldest first.
    pub(crate) words: Vec<String>,
    number: u16,
    pub(crate) types: Types,
}

impl Table {
    /// The number by which the store calls it.
    pub(crate) fn number(&self) -> u16 {
        self.number
    }
}

impl Looked {
    pub(crate) fn open(device: Arc<AnyDevice>) -> Result<Self, BenchError> {
        let options = StoreOptions { create: false, ..StoreOptions::default() };
        let opened = Store::open(device, &options)?;
        let mut words = engine::types_in_words(&opened.store)?;
        let mut tables = Vec::new();
        for (number, stored) in opened.store.tables().iter().enumerate() {
            if !stored.is_used() {
                continue;
            }
            let definition = stored.definition.clone();
            let found = words.iter_mut().find(|(of, _)| *of == definition.name);
            let mut words = found.map(|(_, words)| std::mem::take(words)).unwrap_or_default();
            // A program may say nothing of a table.
            words.retain(|words| !words.is_empty());
            let is_sequence = definition.index == IndexKind::Sequence;
            let unknown = Types::unknown(is_sequence);
            let types = if is_sequence { unknown } else { Types::parse(&words).unwrap_or(unknown) };
            tables.push(Table {
                index: match stored.definition.index {
                    IndexKind::Hash => "hash",
                    IndexKind::Ordered => "ordered",
                    IndexKind::Sequence => "sequence",
                },
                types,
                number: number as u16,
                definition,
                words,
            });
        }
        Ok(Self { opened, tables })
    }

    pub(crate) fn opened(&self) -> &Opened {
        &self.opened
    }

    pub(crate) fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// A table, or what there is instead.
    pub(crate) fn table(&self, name: &str) -> Result<&Table, String> {
        self.tables.iter().find(|table| table.definition.name == name).ok_or_else(|| {
            let names: Vec<_> =
                self.tables.iter().map(|table| table.definition.name.as_str()).collect();
            format!("there is no table {name:?}; there are {}", names.join(", "))
        })
    }

    pub(crate) fn rows(&self, table: &Table) -> Result<Vec<RowAt>, BenchError> {
        Ok(rows_of(&self.opened, TableId(table.number))?)
    }

    pub(crate) fn value(&self, row: &RowAt) -> &[u8] {
        value_of(&self.opened, row)
    }

    /// The state hash that the checkpoint says, if it is maintained.
    pub(crate) fn state_hash(&self) -> Option<StateHash> {
        self.opened.store.checkpoint().state_hash()
    }

    /// The secondary indexes, each with the name of its table.
    pub(crate) fn indexes(&self) -> Result<Vec<(engine::IndexInWords, String)>, BenchError> {
        Ok(engine::indexes_in_words(&self.opened.store)?)
    }

    /// The procedures whose calls the log may hold.
    pub(crate) fn procedures(&self) -> Result<Vec<String>, BenchError> {
        Ok(engine::logged_procedures(&self.opened.store)?)
    }

    /// What rows of the checkpoint do not show, if there is something.
    pub(crate) fn later(&self) -> Option<String> {
        let (checkpoint, committed) = (self.opened.store.checkpoint(), &self.opened.log.committed);
        let calls: u64 = committed.iter().map(|epoch| epoch.calls).sum();
        match (committed.len(), checkpoint.deferred_calls) {
            (0, 0) => None,
            (0, deferred) => Some(format!(
                "{deferred} calls wait for the epoch after the checkpoint of epoch {}",
                checkpoint.epoch
            )),
            (epochs, _) => Some(format!(
                "the log holds {epochs} epochs with {calls} calls after the checkpoint of epoch \
                 {}, which only their program can run: open the store with it once",
                checkpoint.epoch
            )),
        }
    }
}

/// Looks for rows of one table.
pub(crate) struct OfTable<'a> {
    pub(crate) table: &'a str,
    /// As it is shown.
    pub(crate) key: Option<&'a str>,
    pub(crate) limit: usize,
}

/// Rows to show.
#[derive(Debug, Serialize)]
pub(crate) struct Shown {
    table: String,
    index: &'static str,
    types: Vec<String>,
    /// How many rows the table has.
    rows: u64,
    /// Keys and values as JSON.
    found: Vec<Row>,
    /// What they do not show.
    pub(crate) note: Option<String>,
}

#[derive(Debug, Serialize)]
struct Row {
    key: serde_json::Value,
    value: serde_json::Value,
    #[serde(skip)]
    text: String,
}

impl Shown {
    pub(crate) fn text(&self) -> String {
        let Self { table, index, types, rows, found, .. } = self;
        let mut text = format!("table {table:?} ({index}), {rows} rows\n");
        for (version, words) in types.iter().enumerate() {
            let _ = match types.len() {
                1 => writeln!(text, "{words}"),
                _ => writeln!(text, "version {version}: {words}"),
            };
        }
        text.push('\n');
        for row in found {
            text.push_str(&row.text);
        }
        if found.len() < *rows as usize {
            let _ = writeln!(text, "({} of {rows} rows)", found.len());
        }
        text
    }
}

impl OfTable<'_> {
    /// Reads the rows of a store. The inner error says what of the command line is not there.
    pub(crate) fn of(self, device: Arc<AnyDevice>) -> Result<Result<Shown, String>, BenchError> {
        let store = Looked::open(device)?;
        let table = match store.table(self.table) {
            Ok(table) => table,
            Err(what) => return Ok(Err(what)),
        };
        let rows = store.rows(table)?;
        let is_wanted =
            |row: &&RowAt| self.key.is_none_or(|wanted| is_key(&table.types.key(&row.key), wanted));
        let found: Vec<Row> = rows
            .iter()
            .filter(is_wanted)
            .take(self.limit)
            .map(|row| shown(&table.types.key(&row.key), &table.types.value(store.value(row))))
            .collect();
        if let (Some(key), true) = (self.key, found.is_empty()) {
            return Ok(Err(format!("table {:?} has no row with key {key}", self.table)));
        }
        Ok(Ok(Shown {
            table: table.definition.name.clone(),
            index: table.index,
            types: table.words.clone(),
            rows: rows.len() as u64,
            found,
            note: store.later(),
        }))
    }
}

/// Whether a key is the one that was typed.
fn is_key(key: &Value, typed: &str) -> bool {
    match key {
        Value::Text(text) if text == typed => true,
        key => key.to_string() == typed.replace(", ", ",").trim(),
    }
}

fn shown(key: &Value, value: &Value) -> Row {
    let (key, value) = (key.to_string(), value.to_string());
    let json = |text: &str| serde_json::from_str(text).expect("values are written as JSON");
    Row { key: json(&key), value: json(&value), text: format!("{key}  {value}\n") }
}
