//! Changes of the catalog: the tables that a program requests, and the catalog that has them.

use crate::catalog::definition::with_single_heap;
use crate::catalog::{TableDefinition, UNUSED, definition};
use crate::error::{Result, StorageError};
use crate::format::{TABLES_MAX, TableRecord};
use crate::ids::TableId;

/// A table that a program requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableRequest {
    /// The definition. A stored table of this name must have an equal one, except that the limit of
    /// its values may grow.
    pub definition: TableDefinition,
    /// Bytes of a row of a new table whose definition leaves them open; 0 for the default of the
    /// definition.
    pub row_bytes_if_new: u32,
    /// The types of keys and values.
    pub types: TypesMark,
}

impl From<TableDefinition> for TableRequest {
    fn from(definition: TableDefinition) -> Self {
        Self { definition, row_bytes_if_new: 0, types: TypesMark::default() }
    }
}

/// A fingerprint of the types of a table. The catalog stores it; the program makes and compares it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct TypesMark {
    /// Hash of the description of the types; 0 if unknown.
    pub hash: u64,
    /// Number of versions of the type of the values.
    pub versions: u32,
}

/// The tables that a program requests, renames and drops. Other tables stay as they are.
#[derive(Debug, Default, Clone)]
pub struct CatalogRequest {
    /// Tables to create, or to find with a matching definition.
    pub tables: Vec<TableRequest>,
    /// Old and new names of tables. A table that does not exist counts as renamed.
    pub renamed: Vec<(String, String)>,
    /// Tables to drop, with all rows. A table that does not exist counts as dropped.
    pub dropped: Vec<String>,
}

/// Properties of the store that determine the rows of new tables.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoreOf {
    pub(crate) segment_bytes: u64,
    /// Whether the device takes image snapshots.
    pub(crate) snapshots: bool,
}

/// A planned catalog, with its differences from the stored one.
#[derive(Debug, Clone)]
pub struct CatalogChange {
    /// The number of each requested table, in the order of the request.
    pub numbers: Vec<TableId>,
    /// Numbers of dropped tables.
    pub dropped: Vec<TableId>,
    /// Descriptions of all changes but added tables. An existing log has another meaning under a
    /// catalog with such changes.
    pub differences: Vec<String>,
    /// Whether the catalog differs from the stored one.
    pub is_change: bool,
    pub(crate) records: Vec<TableRecord>,
}

impl CatalogChange {
    /// Plans the change of an empty catalog to one with `records`.
    pub(crate) fn same_as(records: &[TableRecord]) -> Self {
        Self {
            numbers: (0..records.len() as u16).map(TableId).collect(),
            dropped: Vec::new(),
            differences: Vec::new(),
            is_change: true,
            records: records.to_vec(),
        }
    }

    /// Plans the changes that a request makes to the catalog `stored`. A renamed table keeps its
    /// number; a new one gets the smallest free number.
    ///
    /// # Errors
    /// `OtherTable` for a table that is stored with another definition, or for a name that two
    /// tables would have; `Limit` for more than [`TABLES_MAX`] tables.
    pub(crate) fn plan(
        stored: &[TableRecord],
        request: &CatalogRequest,
        store: StoreOf,
    ) -> Result<Self> {
        let mut change = Self {
            numbers: Vec::new(),
            dropped: Vec::new(),
            differences: Vec::new(),
            is_change: false,
            records: stored.to_vec(),
        };
        for name in &request.dropped {
            change.drop(name);
        }
        for (from, to) in &request.renamed {
            change.rename(from, to, store.segment_bytes)?;
        }
        for table in &request.tables {
            let number = change.ask_for(table, store)?;
            change.numbers.push(number);
        }
        assert!(change.numbers.len() == request.tables.len(), "each table asked for has a number");
        assert!(change.records.len() >= stored.len(), "no table gets the number of another one");
        // A table that is dropped and made anew may have the record that it had.
        change.is_change = change.records != stored || !change.dropped.is_empty();
        Ok(change)
    }

    fn find(&self, name: &str) -> Option<usize> {
        let is_named = |record: &TableRecord| *record != UNUSED && definition(record).name == name;
        self.records.iter().position(is_named)
    }

    fn drop(&mut self, name: &str) {
        if let Some(place) = self.find(name) {
            self.records[place] = UNUSED;
            self.dropped.push(TableId(place as u16));
            self.differences.push(format!("table {name:?} is dropped"));
        }
    }

    fn rename(&mut self, from: &str, to: &str, segment_bytes: u64) -> Result<()> {
        let Some(place) = self.find(from) else { return Ok(()) };
        if self.find(to).is_some() {
            return Err(StorageError::OtherTable(format!(
                "table {from:?} cannot be renamed to {to:?}: there is a table of that name"
            )));
        }
        let mut renamed = definition(&self.records[place]);
        renamed.name = to.to_string();
        self.records[place].name = renamed.to_record(segment_bytes)?.name;
        self.differences.push(format!("table {from:?} is renamed to {to:?}"));
        Ok(())
    }

    /// Finds or adds a requested table, and returns its number.
    fn ask_for(&mut self, asked: &TableRequest, store: StoreOf) -> Result<TableId> {
        let place = match self.find(&asked.definition.name) {
            Some(place) => {
                self.grow(place, &asked.definition, store.segment_bytes)?;
                place
            }
            None => self.add(asked, store)?,
        };
        if asked.types != TypesMark::default() {
            self.mark_types(place, asked);
        }
        Ok(TableId(place as u16))
    }

    fn add(&mut self, asked: &TableRequest, store: StoreOf) -> Result<usize> {
        let free = self.records.iter().position(|record| *record == UNUSED);
        let place = free.unwrap_or(self.records.len());
        if place >= TABLES_MAX {
            return Err(StorageError::Limit(format!("more than {TABLES_MAX} tables")));
        }
        let mut definition = asked.definition.clone();
        if definition.row_bytes == 0 && definition.shared_heap_bytes == 0 {
            definition.row_bytes = asked.row_bytes_if_new;
        }
        self.records.resize(self.records.len().max(place + 1), UNUSED);
        let TypesMark { hash, versions } = asked.types;
        let record = definition.to_record(store.segment_bytes)?;
        let record = if store.snapshots { with_single_heap(record) } else { record };
        self.records[place] = TableRecord { types: hash, type_versions: versions, ..record };
        Ok(place)
    }

    /// Raises the limit of values of a stored table to the requested one (O-95). Any other
    /// difference of the definitions is an error.
    fn grow(&mut self, place: usize, asked: &TableDefinition, segment_bytes: u64) -> Result<()> {
        let stored = definition(&self.records[place]);
        let asked = as_stored(asked, &stored);
        if asked == stored {
            return Ok(());
        }
        let longest = asked.value_bytes_max.max(stored.value_bytes_max);
        let may_grow = stored.index != crate::catalog::IndexKind::Sequence;
        if !may_grow || asked != (TableDefinition { value_bytes_max: longest, ..stored.clone() }) {
            return Err(StorageError::OtherTable(format!(
                "table {:?} is stored as {stored:?}, asked for as {asked:?}; only the longest \
                 value may grow",
                stored.name
            )));
        }
        asked.to_record(segment_bytes)?;
        self.records[place].value_bytes_max = longest;
        self.differences.push(format!(
            "the longest value of table {:?} grows from {} to {longest} bytes",
            stored.name, stored.value_bytes_max
        ));
        Ok(())
    }

    fn mark_types(&mut self, place: usize, asked: &TableRequest) {
        let record = &mut self.records[place];
        let TypesMark { hash, versions } = asked.types;
        if (record.types, record.type_versions) == (hash, versions) {
            return;
        }
        let (name, before) = (&asked.definition.name, record.type_versions);
        // A hash of 0 was unknown, so the types did not change.
        if record.types != 0 {
            self.differences.push(format!(
                "the values of table {name:?} have {versions} versions of their type, not {before}"
            ));
        }
        (record.types, record.type_versions) = (hash, versions);
    }
}

/// Returns the definition `asked`, completed by the geometry of the stored one where it leaves that
/// open. A definition with a size of rows also determines their heap.
fn as_stored(asked: &TableDefinition, stored: &TableDefinition) -> TableDefinition {
    let (row_bytes, shared_heap_bytes) = match (asked.row_bytes, asked.shared_heap_bytes) {
        (0, 0) => (stored.row_bytes, stored.shared_heap_bytes),
        (0, shared) => (stored.row_bytes, shared),
        given => given,
    };
    TableDefinition { row_bytes, shared_heap_bytes, ..asked.clone() }
}
