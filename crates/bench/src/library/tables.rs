//! The tables of a workload, as a store is asked for them: the same rows for any engine.

use storage::TableDefinition;
use workloads::{IndexKind, TableSpec};

/// Sizes of rows that were asked for.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct RowSizes {
    /// Bytes of a row; 0: the store chooses.
    pub row_bytes: u32,
    /// Bytes of a heap that both versions share; 0: each has a half.
    pub shared_heap_bytes: u32,
}

/// A workload's table as the engine is asked for it.
#[must_use]
pub fn table_definition(spec: &TableSpec, rows: RowSizes) -> TableDefinition {
    // The numbers of sequences are in rows of one size.
    let is_sequence = spec.index == IndexKind::Sequence;
    let RowSizes { row_bytes, shared_heap_bytes } =
        if is_sequence { RowSizes::default() } else { rows };
    TableDefinition {
        name: spec.name.to_string(),
        index: match spec.index {
            IndexKind::Hash => storage::IndexKind::Hash,
            IndexKind::Ordered => storage::IndexKind::Ordered,
            IndexKind::Sequence => storage::IndexKind::Sequence,
        },
        key_bytes_max: spec.key_bytes_max,
        value_bytes_max: spec.value_bytes_max,
        row_bytes,
        shared_heap_bytes,
    }
}
