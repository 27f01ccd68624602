//! The checks of foreign keys that have waited.

use super::context::Context;
use super::deferred::{Deferred, Side};
use super::evaluate::Evaluator;
use super::foreign::{check_gone, check_orphans};
use super::overlay::{Buffer, Overlay};
use super::rows::Rows;
use values::Result;

/// Makes the checks of a block that wait, on these rows with its writes: all of them at its COMMIT,
/// or else those that SET CONSTRAINTS has made immediate.
///
/// # Errors
/// That a constraint does not hold.
pub fn check_constraints(
    buffer: &mut Buffer,
    rows: &mut dyn Rows,
    context: &Context,
    is_commit: bool,
) -> Result<()> {
    let Some(deferred) = buffer.deferred.take() else { return Ok(()) };
    let mut overlay = Overlay::over(rows, std::mem::take(buffer));
    let made = make(&deferred, is_commit, &mut Evaluator::new(context, &mut overlay));
    *buffer = overlay.into_buffer();
    buffer.deferred = Some(deferred);
    buffer.were_made(made?);
    Ok(())
}

/// Makes the checks that are due. Returns their places.
fn make(deferred: &Deferred, is_commit: bool, evaluator: &mut Evaluator<'_>) -> Result<Vec<usize>> {
    let mut made = Vec::new();
    for (at, group, waiting) in deferred.due(is_commit) {
        let (tables, key) = (&group.tables, &group.key);
        match waiting.side {
            Side::Child => check_orphans(tables, key, &waiting.values, evaluator)?,
            Side::Parent => check_gone(tables, key, &waiting.values, evaluator)?,
        }
        made.push(at);
    }
    Ok(made)
}
