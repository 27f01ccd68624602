//! A table of a store that is open.

use crate::catalog;
use crate::catalog::{TableDefinition, TypesMark};
use crate::format::{ROW_HEADER_BYTES, TableRecord};
use crate::ids::TableId;
use crate::row::RowLayout;

/// A number of a table: what the catalog says of it.
#[derive(Debug, Clone)]
pub struct StoredTable {
    /// The table; of a number that none has, one without a name and without rows.
    pub definition: TableDefinition,
    /// Where things are in its rows.
    pub layout: RowLayout,
    /// What is known of its types.
    pub types: TypesMark,
}

impl StoredTable {
    fn new(number: TableId, record: &TableRecord) -> Self {
        let unused = TableRecord {
            row_bytes: ROW_HEADER_BYTES as u32,
            key_bytes_max: 8,
            index_kind: 1,
            ..catalog::UNUSED
        };
        let record = if *record == catalog::UNUSED { &unused } else { record };
        Self {
            definition: catalog::definition(record),
            layout: RowLayout::new(number, record),
            types: TypesMark { hash: record.types, versions: record.type_versions },
        }
    }

    /// Whether there is a table of this number.
    pub fn is_used(&self) -> bool {
        !self.definition.name.is_empty()
    }
}

/// The tables of a catalog, by number.
pub(super) fn stored_tables(records: &[TableRecord]) -> Vec<StoredTable> {
    let numbered = (0..).map(TableId).zip(records);
    numbered.map(|(number, record)| StoredTable::new(number, record)).collect()
}
