//! What many tests need.

use storage::{IndexKind, TableDefinition};

/// A table of rows with keys of 8 bytes.
pub(crate) fn rows(value_bytes_max: u32) -> TableDefinition {
    TableDefinition {
        name: "rows".into(),
        index: IndexKind::Hash,
        key_bytes_max: 8,
        value_bytes_max,
        row_bytes: 0,
        shared_heap_bytes: 0,
    }
}
