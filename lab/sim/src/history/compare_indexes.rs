//! Compares the secondary indexes of an engine with what the oracle has.

use std::ops::ControlFlow;

use engine::{Engine, ScanPart};
use storage::{EpochNumber, TableId};

use super::indexes::{INDEX_END, INDEXES, index_of};
use super::model::Model;
use super::program::INDEXED;

/// Compares the indexes with those of the oracle's rows, which must be those of the engine (O-96,
/// O-100).
///
/// # Errors
/// The first difference.
pub fn compare_indexes(engine: &mut Engine, model: &Model) -> Result<(), String> {
    let at = |what: String| format!("after epoch {}: {what}", model.epoch);
    engine.check_indexes().map_err(|error| at(error.to_string()))?;
    let epoch = engine.snapshot().0;
    let compared = (0..INDEXES).try_for_each(|index| {
        let mut found = Vec::new();
        let whole = ScanPart {
            table: TableId(index),
            low: &[],
            high: &INDEX_END,
            is_descending: epoch % 2 == 1,
            rows_max: usize::MAX,
        };
        let mut each = |key: &[u8], value: &[u8]| {
            found.push((key.to_vec(), value.to_vec()));
            ControlFlow::Continue(())
        };
        let scanned = engine.reader().scan_index_at(0, EpochNumber(epoch), whole, &mut each);
        scanned.map_err(|error| at(error.to_string()))?;
        if whole.is_descending {
            found.reverse();
        }
        compare_found(index, &found, model).map_err(at)
    });
    engine.release_snapshot(EpochNumber(epoch));
    compared
}

/// Compares what a scan of a whole index found, upwards: keys and values of rows.
pub(super) fn compare_found(
    index: u16,
    found: &[(Vec<u8>, Vec<u8>)],
    model: &Model,
) -> Result<(), String> {
    let rows = &model.tables[usize::from(INDEXED)];
    let expected: Vec<Vec<u8>> = index_of(index, rows.iter()).into_values().collect();
    let keys = found.iter().map(|(key, _)| key);
    if !expected.iter().eq(keys.clone()) {
        let first = expected.iter().zip(keys).position(|(expected, found)| expected != found);
        let counts = (expected.len(), found.len());
        return Err(format!("index {index}: rows {counts:?}, other from entry {first:?} on"));
    }
    match found.iter().find(|(key, value)| rows.get(key) != Some(value)) {
        Some((key, _)) => Err(format!("index {index}: another value of row {key:02x?}")),
        None => Ok(()),
    }
}
