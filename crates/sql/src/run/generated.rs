//! Values of generated columns.

use super::evaluate::{Evaluator, malformed};
use crate::ir::Relation;
use values::{Datum, Result};

/// Computes the generated columns of a row from its other columns.
pub(super) fn generate(
    relation: &Relation,
    row: &mut [Datum],
    evaluator: &mut Evaluator<'_>,
) -> Result<()> {
    for (at, column) in relation.columns.iter().enumerate() {
        if let Some(value) = column.generated() {
            let value = evaluator.value(value, row)?;
            *row.get_mut(at).ok_or_else(malformed)? = value;
        }
    }
    Ok(())
}
