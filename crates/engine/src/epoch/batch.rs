//! The append step with batch append (CA 3.3, 4.1).
//!
//! First every worker claims the rows that are not claimed yet in this epoch, and puts the other
//! appends into buffers, one for each worker, by the row. A barrier later each worker goes through
//! what all have put into its buffers, and makes the version arrays. So a row that many calls write
//! is not written at all while they are declared, and is written by one worker afterwards.

use pmem::sync::RwLockWriteGuard;
use storage::{Position, SerialId};

use crate::call::batch::RUN_CALLS;
use crate::index::EntryId;
use crate::memory::Local;
use crate::stats::WorkCounts;
use crate::version::{
    Appended, AppendedBy, Buffers, Claim, Claimed, EntrySlab, RowEntry, TransientPool,
};
use crate::worker::{Epoch, Leave};
use crate::worker_id::WorkerId;

/// Appends whose row entries are prefetched, in each buffer.
const AHEAD: usize = 8;

/// How a version is added to a row.
pub(super) trait Method {
    /// Adds the pending version of a serial id, or sees to it that this is done in this step.
    fn append(
        &mut self,
        id: EntryId,
        entry: &RowEntry,
        sid: SerialId,
        pool: &mut TransientPool,
        claim: &mut impl Claim,
    );
}

/// The buffers of one worker, while it fills them.
pub(super) struct Outbox<'e> {
    buffers: RwLockWriteGuard<'e, Buffers>,
    by: AppendedBy,
    claims_of_others: u64,
}

impl<'e> Outbox<'e> {
    /// Empty buffers.
    pub(super) fn new(epoch: &Epoch<'e>, worker: WorkerId) -> Self {
        let mut buffers =
            epoch.shared.appends[worker.index()].write().expect("no panic while locked");
        buffers.iter_mut().for_each(Vec::clear);
        Self { buffers, by: AppendedBy::new(worker, epoch.number), claims_of_others: 0 }
    }

    /// All is in the buffers.
    pub(super) fn close(self, work: &mut WorkCounts) {
        work.batched_appends += self.buffers.iter().map(|buffer| buffer.len() as u64).sum::<u64>();
        work.claims_of_others += self.claims_of_others;
    }
}

impl Method for Outbox<'_> {
    #[inline]
    fn append(
        &mut self,
        id: EntryId,
        entry: &RowEntry,
        sid: SerialId,
        pool: &mut TransientPool,
        claim: &mut impl Claim,
    ) {
        if let Err(Claimed { by_other }) = entry.claim(sid, self.by, pool, claim) {
            let maker = maker(id, self.buffers.len());
            self.buffers[maker].push(Appended { position: sid.position(), id });
            self.claims_of_others += u64::from(by_other);
        }
    }
}

/// Which worker makes the array of a row: any, as long as all agree and none gets much more than
/// the others. Rows that lie side by side are often hot together.
#[inline]
fn maker(id: EntryId, workers: usize) -> usize {
    let hash = id.0.wrapping_mul(0x9e37_79b1);
    ((u64::from(hash) * workers as u64) >> 32) as usize
}

/// Makes the arrays of a worker's rows, once all buffers are filled.
pub(super) fn make_arrays(epoch: &Epoch<'_>, local: &mut Local) -> Result<(), Leave> {
    epoch.barrier()?;
    let buffers: Vec<_> = epoch
        .shared
        .appends
        .iter()
        .map(|buffers| buffers.read().expect("no panic while locked"))
        .collect();
    let mut parts: Vec<&[Appended]> =
        buffers.iter().map(|b| b[local.worker.index()].as_slice()).collect();
    let entries = &epoch.core.entries;
    in_serial_order(&mut parts, entries, |append| local.chains.add(entries, append));
    let by = AppendedBy::new(local.pool.worker, epoch.number);
    let Local { chains, pool, work, contention, .. } = local;
    let contended = epoch.core.config.contention.then_some(&mut contention.arrays);
    chains.build(entries, by, pool, work, contended);
    Ok(())
}

/// Goes through the buffers of all workers, each in serial order itself, as their calls were dealt:
/// the next few positions are in one buffer, those behind them in the next one.
fn in_serial_order(parts: &mut [&[Appended]], entries: &EntrySlab, mut each: impl FnMut(Appended)) {
    let mut end = 0;
    while parts.iter().any(|part| !part.is_empty()) {
        for part in &mut *parts {
            end += RUN_CALLS as u32;
            let mut allocated = 0;
            while let Some(&append) = part.get(allocated)
                && append.position < Position(end)
            {
                if let Some(ahead) = part.get(allocated + AHEAD) {
                    entries.prefetch(ahead.id);
                }
                each(append);
                allocated += 1;
            }
            *part = &part[allocated..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::batch::owned;

    #[test]
    fn buffers_merge_into_serial_order_however_full_they_are() {
        let (entries, ids) = EntrySlab::of_rows(1);
        let id = ids[0];
        for workers in [1, 2, 3, 7, 64] {
            for (calls, every) in [(0, 1), (3, 1), (4, 1), (5, 1), (999, 1), (1000, 13), (800, 300)]
            {
                let of = |worker| {
                    owned(WorkerId::from_index(worker), workers, calls).filter(|p| p % every == 0)
                };
                // Each call appends to two rows of this part.
                let second_run = |p| [Appended { position: Position(p as u32), id }; 2];
                let runs: Vec<Vec<_>> =
                    (0..workers).map(|worker| of(worker).flat_map(second_run).collect()).collect();
                let mut parts: Vec<_> = runs.iter().map(Vec::as_slice).collect();
                let mut merged = Vec::new();
                in_serial_order(&mut parts, &entries, |append| merged.push(append.position.0));
                let expected: Vec<_> =
                    (0..calls as u32).step_by(every).flat_map(|p| [p, p]).collect();
                assert_eq!(merged, expected, "{workers} workers, {calls} calls, every {every}");
            }
        }
    }

    #[test]
    fn rows_are_dealt_evenly_whether_they_lie_side_by_side_or_apart() {
        for workers in [1, 2, 3, 8, 64] {
            for stride in [1, 2, 64, 1000, 1024, 131_072] {
                let rows = 100 * workers as u32;
                let mut of = vec![0; workers];
                (0..rows).for_each(|row| of[maker(EntryId(row * stride), workers)] += 1);
                let most = *of.iter().max().unwrap();
                assert!(most <= 200, "{workers} workers, every {stride}: {of:?}");
            }
        }
    }
}
