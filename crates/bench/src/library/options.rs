//! The options of a workload's database, and how its procedures are called.

use nvcaracal::{Added, Batch, Database, HashTable, Options, Sequence, Table, Ticket};
use storage::TableDefinition;
use storage::format::TableRecord;
use workloads::{IndexKind, Procedure, Register, TableSpec};

use super::adapter::Call;
use super::buffer::Output;
use super::handles::{Bytes, Handle, Handles};
use super::tables::{RowSizes, table_definition};
use crate::{BenchError, Result};

/// How calls of one procedure are made.
#[derive(Clone, Copy)]
pub struct Callable {
    /// Calls it and waits.
    pub call: fn(&Database, &[u8]) -> nvcaracal::Result<Output>,
    /// Submits a call.
    pub submit: fn(&Database, &[u8]) -> nvcaracal::Result<Ticket<Output>>,
    /// Adds a call to a batch.
    pub add: fn(&mut Batch<'_>, &[u8]) -> nvcaracal::Result<Added<Output>>,
}

/// The procedures of a workload, as the library registers and calls them.
#[derive(Default)]
pub struct Procedures {
    options: Options,
    callables: Vec<Callable>,
    /// By number.
    pub(crate) names: Vec<&'static str>,
}

impl Register for Procedures {
    fn procedure<P: Procedure>(&mut self) {
        self.options = std::mem::take(&mut self.options).procedure::<Call<P>>();
        self.names.push(P::NAME);
        self.callables.push(Callable {
            call: |database, arguments| database.call(Call::<P>::new(arguments.into())),
            submit: |database, arguments| database.submit(Call::<P>::new(arguments.into())),
            add: |batch, arguments| batch.add(&Call::<P>::new(arguments.into())),
        });
    }
}

/// The tables of a workload, and how their rows are made.
pub struct Tables {
    /// In the workload's words.
    pub specs: Vec<TableSpec>,
    /// Sizes of rows that were asked for.
    pub row_sizes: RowSizes,
    /// Bytes of a segment of the store.
    pub segment_bytes: u64,
}

impl Tables {
    pub(super) fn handles(&self) -> Result<Vec<Handle>> {
        self.specs.iter().map(|spec| handle(self, spec)).collect()
    }
}

/// The options of a workload's database, and how its procedures are called.
///
/// # Errors
/// `Usage` if rows cannot be as they are asked for.
pub fn options(tables: &Tables, procedures: Procedures) -> Result<(Options, Vec<Callable>)> {
    let handles = tables.handles()?;
    let Procedures { mut options, callables, .. } = procedures;
    for handle in &handles {
        options = match *handle {
            Handle::HashWords(table) => options.table(table),
            Handle::Hash(table) => options.table(table),
            Handle::OrderedWords(table) => options.table(table),
            Handle::Ordered(table) => options.table(table),
            Handle::Sequence(sequence) => options.sequence(sequence),
        };
    }
    Ok((options.context(Handles(handles)), callables))
}

fn handle(tables: &Tables, spec: &TableSpec) -> Result<Handle> {
    let TableSpec { name, index, key_bytes_max: key, .. } = *spec;
    // Rows as the engine alone has them.
    let definition: TableDefinition = table_definition(spec, tables.row_sizes);
    let record = definition.to_record(tables.segment_bytes);
    let record = record.map_err(|error| BenchError::Usage(error.to_string()))?;
    Ok(match (index, key) {
        (IndexKind::Sequence, _) => Handle::Sequence(Sequence::new(name)),
        (IndexKind::Hash, 8) => Handle::HashWords(sized(HashTable::hash(name), &record)),
        (IndexKind::Ordered, 8) => Handle::OrderedWords(sized(Table::ordered(name), &record)),
        (IndexKind::Hash, _) => {
            Handle::Hash(sized(HashTable::hash(name).with_key_bytes(key), &record))
        }
        (IndexKind::Ordered, _) => {
            Handle::Ordered(sized(Table::ordered(name).with_key_bytes(key), &record))
        }
    })
}

/// A table whose rows are those of a record.
fn sized<K: nvcaracal::Key + ?Sized, O>(
    table: Table<K, Bytes, O>,
    record: &TableRecord,
) -> Table<K, Bytes, O> {
    table
        .with_value_bytes(record.value_bytes_max)
        .with_row_bytes(record.row_bytes)
        .with_shared_heap_bytes(record.shared_heap_bytes())
}

/// Makes room for so many rows of these tables, as [`Database::reserve`] does.
///
/// # Errors
/// The library's.
pub fn reserve(
    tables: &Tables,
    database: &Database,
    inserts: impl IntoIterator<Item = (u16, u64)>,
) -> Result<()> {
    for (table, rows) in inserts {
        match handle(tables, &tables.specs[usize::from(table)])? {
            Handle::HashWords(table) => database.reserve(table, rows),
            Handle::Hash(table) => database.reserve(table, rows),
            Handle::OrderedWords(table) => database.reserve(table, rows),
            Handle::Ordered(table) => database.reserve(table, rows),
            Handle::Sequence(_) => Ok(()),
        }?;
    }
    Ok(())
}
