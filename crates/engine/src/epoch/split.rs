//! Split-on-demand (CA 3.4, Listing 1): which pieces leave their calls, and who runs them.
//!
//! After the append step it is known how many versions each row gets. A row with at least the
//! threshold of them is contended, and the pieces that update it are dealt to few workers, so that
//! the row stays in their caches, while the load of all pieces is even: the contended rows lie one
//! after the other on a line, each as long as its pieces weigh; the line is cut into equal parts,
//! one for each worker; a piece falls on a random place of its row. Unlike in the paper all pieces
//! are known before any call runs, so every worker sorts its own by serial id, and none arrives
//! behind one that it should have come before.
//!
//! For experiments rows may be packed whole instead, each onto one worker (CA 5.5).

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasherDefault;

use pmem::sync::atomic::Ordering;

use crate::declaration::{NO_ENTRY, PieceState};
use crate::design::packing::Packing;
use crate::index::EntryId;
use crate::memory::QueuedPiece;
use crate::state::core::{NumberHasher, mix};
use crate::worker::{Epoch, Leave, Worker};

pub(super) fn run(epoch: &Epoch<'_>, worker: &mut Worker) -> Result<(), Leave> {
    let threshold = epoch.core.config.split_threshold;
    if threshold == 0 || !epoch.shared.has_pieces.load(Ordering::Relaxed) {
        return Ok(());
    }
    weigh(epoch, worker, threshold as usize);
    epoch.barrier()?;
    let line = {
        let contended = epoch.shared.contended.lock().expect("no panic while locked");
        match epoch.core.config.lab.packing {
            Packing::Line => Line::new(&contended),
            Packing::Whole => Line::of_whole_rows(&contended, epoch.workers),
        }
    };
    if !line.rows.is_empty() {
        deal(epoch, worker, &line);
    }
    epoch.barrier()?;
    let mut mine =
        epoch.shared.pieces[worker.local.worker.index()].lock().expect("no panic while locked");
    worker.local.pieces.fill(&mut mine);
    assert!(mine.is_empty(), "a piece is in the queue of one worker");
    Ok(())
}

/// Declared keys whose entries are prefetched: most of them are of rows that are not contended,
/// and cold.
const AHEAD: usize = 16;

/// Marks the pieces of this worker's calls that update contended rows, and adds up their weights by
/// row.
fn weigh(epoch: &Epoch<'_>, worker: &mut Worker, threshold: usize) {
    let mut weights = ByRow::<u64>::default();
    let (core, lists) = (epoch.core, &mut worker.local.lists);
    let id_of = |piece: &PieceState| lists.declared[piece.declared as usize].id;
    for at in 0..lists.pieces.len() {
        if let Some(ahead) = lists.pieces.get(at + AHEAD).map(id_of)
            && ahead != NO_ENTRY
        {
            core.entries.prefetch(ahead);
        }
        let id = id_of(&lists.pieces[at]);
        if id != NO_ENTRY && core.entries.get(id).version_count(epoch.number) >= threshold {
            let piece = &mut lists.pieces[at];
            piece.is_split = true;
            *weights.entry(id).or_default() += u64::from(piece.weight);
        }
    }
    let mut contended = epoch.shared.contended.lock().expect("no panic while locked");
    for (id, weight) in weights {
        *contended.entry(id).or_default() += weight;
    }
}

/// A map by row: all pieces of contended rows look into it.
type ByRow<T> = HashMap<EntryId, T, BuildHasherDefault<NumberHasher>>;

/// The contended rows, one after the other, on a line of length 2^64.
struct Line {
    /// For each row where it begins and how long it is.
    rows: ByRow<(u64, u64)>,
}

impl Line {
    fn new(contended: &BTreeMap<EntryId, u64>) -> Self {
        let total = contended.values().map(|&weight| u128::from(weight)).sum::<u128>().max(1);
        let place = |weight: u128| u64::try_from((weight << 64) / total).unwrap_or(u64::MAX);
        let mut before = 0;
        let row = |(&id, &weight): (&EntryId, &u64)| {
            let start = place(before);
            before += u128::from(weight);
            (id, (start, place(before) - start))
        };
        Self { rows: contended.iter().map(row).collect() }
    }

    /// Packs each row onto one worker: the heaviest row that is left to the worker that has least.
    /// A row is a point in the middle of its worker's part of the line.
    fn of_whole_rows(contended: &BTreeMap<EntryId, u64>, workers: usize) -> Self {
        let mut heaviest_first: Vec<_> =
            contended.iter().map(|(&id, &weight)| (weight, id)).collect();
        heaviest_first.sort_unstable_by_key(|&(weight, id)| (Reverse(weight), id));
        let mut loads = vec![0_u64; workers];
        let row = |(weight, id)| {
            let least = (0..workers).min_by_key(|&worker| loads[worker]).expect("a worker");
            loads[least] += weight;
            let middle = ((2 * least as u128 + 1) << 63) / workers as u128;
            (id, (middle as u64, 0))
        };
        Self { rows: heaviest_first.into_iter().map(row).collect() }
    }

    /// The worker that runs a piece of a row. The random number decides nothing but that.
    fn worker(&self, id: EntryId, random: u64, workers: usize) -> usize {
        let (start, length) = self.rows[&id];
        let part = |of: u64, by: u64| ((u128::from(of) * u128::from(by)) >> 64) as u64;
        let worker = part(start + part(random, length), workers as u64) as usize;
        assert!(worker < workers, "a row lies on the line");
        worker
    }
}

/// Puts the marked pieces of this worker's calls into the queues of the workers that run them.
fn deal(epoch: &Epoch<'_>, worker: &mut Worker, line: &Line) {
    let lists = &worker.local.lists;
    let mut queues = vec![Vec::new(); epoch.workers];
    for txn in &lists.txns {
        for (number, piece) in lists.pieces[lists.extra(txn).pieces.range()].iter().enumerate() {
            if piece.is_split {
                let id = lists.declared[piece.declared as usize].id;
                let random = mix((u64::from(txn.position.0) << 32) | u64::from(id.0));
                let queue = &mut queues[line.worker(id, random, epoch.workers)];
                queue.push(QueuedPiece { position: txn.position, number: number as u32 });
            }
        }
    }
    for (queue, mut pieces) in epoch.shared.pieces.iter().zip(queues) {
        queue.lock().expect("no panic while locked").append(&mut pieces);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paper's Figure 3: four rows of 5, 10, 4 and 5 parts on four cores.
    #[test]
    fn pieces_are_clustered_and_the_load_is_even() {
        let weights = [5000, 10_000, 4000, 5000];
        let contended = (0..4).map(|row| (EntryId(row), weights[row as usize])).collect();
        let line = Line::new(&contended);
        let mut counts = [[0_u64; 4]; 4];
        for row in 0..4 {
            for piece in 0..weights[row] {
                let random = mix((piece << 32) | row as u64);
                counts[row][line.worker(EntryId(row as u32), random, 4)] += 1;
            }
        }
        assert_eq!(counts[0], [5000, 0, 0, 0]);
        assert_eq!(counts[3], [0, 0, 0, 5000]);
        assert_eq!([counts[1][3], counts[2][0], counts[2][1]], [0, 0, 0]);
        for worker in 0..4 {
            let load: u64 = counts.iter().map(|row| row[worker]).sum();
            assert!((5700..6300).contains(&load), "{counts:?}");
        }
    }

    #[test]
    fn whole_rows_go_to_the_worker_that_has_least() {
        let weights = [5, 10, 4, 5, 3];
        let contended = (0..5).map(|row| (EntryId(row), weights[row as usize])).collect();
        for (workers, expected) in [(1, [0; 5]), (2, [1, 0, 0, 1, 1]), (3, [1, 0, 1, 2, 2])] {
            let line = Line::of_whole_rows(&contended, workers);
            for (row, worker) in expected.into_iter().enumerate() {
                for random in [0, 1 << 63, u64::MAX] {
                    let chosen = line.worker(EntryId(row as u32), random, workers);
                    assert_eq!(chosen, worker, "row {row}, {workers} workers");
                }
            }
        }
    }

    #[test]
    fn the_ends_of_the_line_belong_to_the_first_and_last_worker() {
        let line = Line::new(&[(EntryId(7), 1), (EntryId(9), 3)].into());
        for workers in 1..64 {
            assert_eq!(line.worker(EntryId(7), 0, workers), 0);
            assert_eq!(line.worker(EntryId(9), u64::MAX, workers), workers - 1);
        }
    }
}
