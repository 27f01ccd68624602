//! Using the memory of transient versions again within an epoch: which calls have ended, on all
//! workers (docs/decisions/0014).

use storage::Position;

use crate::memory::Local;
use crate::worker::{Epoch, Progress};

/// Says that the worker goes on with the call at a position, and takes back what no call sees any
/// more that has not ended.
#[inline]
pub(super) fn note_progress(epoch: &Epoch<'_>, local: &mut Local, next: Position) {
    // Pieces of earlier calls may be waiting for others.
    let unfinished = local.pieces.front().map_or(next, |piece| piece.position.min(next));
    debug_assert!(unfinished <= next, "a call is finished when its pieces are");
    let progress = &epoch.shared.progress;
    let before = progress[local.worker.index()].unfinished();
    debug_assert!(before <= unfinished, "a worker that has come to {before} never goes back");
    progress[local.worker.index()].note(unfinished);
    if local.pool.has_enough_retired(epoch.workers) {
        local.work.versions_reused += local.pool.take_back(Progress::of_all(progress));
    }
}
