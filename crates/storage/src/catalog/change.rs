//! What a program asks of the catalog, and what has to change for it.

use crate::catalog::definition::with_single_heap;
use crate::catalog::{TableDefinition, UNUSED, definition};
use crate::error::{Result, StorageError};
use crate::format::{TABLES_MAX, TableRecord};
use crate::ids::TableId;

/// A table that a program asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableRequest {
    /// The table. One that is stored has to be the same, but for a longer longest value.
    pub definition: TableDefinition,
    /// Bytes of a row if the table is new and its definition leaves them open; 0: as the definition
    /// chooses them.
    pub row_bytes_if_new: u32,
    /// Its types.
    pub types: TypesMark,
}

impl From<TableDefinition> for TableRequest {
    fn from(definition: TableDefinition) -> Self {
        Self { definition, row_bytes_if_new: 0, types: TypesMark::default() }
    }
}

/// What the catalog keeps of the types of a table. It is the program's, which compares it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct TypesMark {
    /// Hash of the types in words; 0: not known.
    pub hash: u64,
    /// Versions of the type of the values.
    pub versions: u32,
}

/// What a program asks of the catalog. Tables that it does not name stay as they are.
#[derive(Debug, Default, Clone)]
pub struct CatalogRequest {
    /// Tables that have to be there.
    pub tables: Vec<TableRequest>,
    /// Names of tables, and those that they get. What is not there, is renamed already.
    pub renamed: Vec<(String, String)>,
    /// Tables that are to go, with all rows. A table that does not exist counts as dropped.
    pub dropped: Vec<String>,
}

/// What the rows of new tables depend on, beside what is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoreOf {
    pub(crate) segment_bytes: u64,
    /// Whether the device takes image snapshots.
    pub(crate) snapshots: bool,
}

/// A catalog for what a program asks for.
#[derive(Debug, Clone)]
pub struct CatalogChange {
    /// The number of each table asked for.
    pub numbers: Vec<TableId>,
    /// Numbers of tables that go.
    pub dropped: Vec<TableId>,
    /// What changes beside tables that are added, in words: a log of before means something else
    /// under such a catalog.
    pub differences: Vec<String>,
    /// Whether anything changes.
    pub is_change: bool,
    pub(crate) records: Vec<TableRecord>,
}

impl CatalogChange {
    /// Makes an empty catalog the same as another one.
    pub(crate) fn same_as(records: &[TableRecord]) -> Self {
        Self {
            numbers: (0..records.len() as u16).map(TableId).collect(),
            dropped: Vec::new(),
            differences: Vec::new(),
            is_change: true,
            records: records.to_vec(),
        }
    }

    /// Finds out what has to change in a catalog. A table keeps its number, whatever its name; a
    /// new one gets the smallest that none has.
    ///
    /// # Errors
    /// `OtherTable` for a table that is stored with another definition, or a name that two tables
    /// would have; `Limit` for one table too many.
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

    /// The number of a table, which is as asked for from now on.
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

    /// A table that is stored takes longer values, or is as it was asked for (O-95).
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
        // Before, nothing was known: that is no change.
        if record.types != 0 {
            self.differences.push(format!(
                "the values of table {name:?} have {versions} versions of their type, not {before}"
            ));
        }
        (record.types, record.type_versions) = (hash, versions);
    }
}

/// A definition with the geometry of the stored one as far as it leaves that open. Rows of a size
/// that it names have the heap that it names, too.
fn as_stored(asked: &TableDefinition, stored: &TableDefinition) -> TableDefinition {
    let (row_bytes, shared_heap_bytes) = match (asked.row_bytes, asked.shared_heap_bytes) {
        (0, 0) => (stored.row_bytes, stored.shared_heap_bytes),
        (0, shared) => (stored.row_bytes, shared),
        given => given,
    };
    TableDefinition { row_bytes, shared_heap_bytes, ..asked.clone() }
}
