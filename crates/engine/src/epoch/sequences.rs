//! Step one of the declarations: allocating sequence numbers. Calls of the serial part have
//! allocated before (`serial.rs`).
//!
//! 1. Every worker lets its calls allocate; a call that aborts here takes its allocations back.
//! 2. The first worker ranks all allocations in serial order: the k-th call that allocates from a
//!    sequence gets base + k. That makes the numbers dense and the same in replay (unlike the
//!    atomic counters of NV 6.2.3).

use storage::{EpochNumber, Position, TableId};

use crate::call::answers::{Abort, Failure};

use crate::call::batch::{RUN_CALLS, owned};
use crate::call::panics::caught;
use crate::declaration::declare::{Declaration, Sequences};
use crate::declaration::{AllocatingCall, Allocation, ChangedSequence, Span};
use crate::memory::Local;
use crate::state::core::{BySequence, SequenceState};
use crate::worker::{Epoch, Leave, Worker};

pub(super) fn run(epoch: &Epoch<'_>, worker: &mut Worker) -> Result<(), Leave> {
    if !epoch.procedures.sequences() {
        return Ok(());
    }
    assert!(worker.local.allocating_calls.is_empty(), "E1 begins without allocations");
    let owned = owned(worker.local.worker, epoch.workers, epoch.calls.len());
    for position in owned.filter(|&position| position >= epoch.calls.serial()) {
        let (number, arguments) = epoch.calls.get(position);
        let procedure = epoch.procedures.get(number).expect("checked before the epoch began");
        if procedure.steps.sequences && !epoch.skips(position) {
            let allocate =
                |sequences: &mut Sequences<'_>| procedure.sequences(arguments, sequences);
            let position = Position::from_index(position);
            allocate_one(epoch, &mut worker.local, position, number, allocate);
            worker.local.reads.account_charged(&mut worker.row_store.port, epoch.core.image_base);
        }
    }
    let mine = &epoch.shared.allocations[worker.local.worker.index()];
    *mine.lock().expect("no panic while locked") =
        std::mem::take(&mut worker.local.lists.allocations);
    epoch.barrier()?;
    if epoch.leads(worker) {
        rank(epoch, worker);
    }
    epoch.barrier()?;
    worker.local.lists.allocations =
        std::mem::take(&mut *mine.lock().expect("no panic while locked"));
    Ok(())
}

fn allocate_one(
    epoch: &Epoch<'_>,
    local: &mut Local,
    position: Position,
    procedure: u16,
    allocate: impl FnOnce(&mut Sequences<'_>) -> Result<(), Abort>,
) {
    let Local { worker, lists, reads, allocating_calls, .. } = local;
    let (allocations_from, lookups_from) = (lists.allocations.len(), lists.lookups.len());
    let declaration = Declaration::new(epoch.state_before(), lists, reads);
    let step = || run_step(Sequences { declaration, position }, allocate);
    let early = epoch.noting(*worker, position, procedure, step);
    if early.is_some() {
        lists.allocations.truncate(allocations_from);
    }
    let is_next = allocating_calls.last().is_none_or(|before| before.position < position);
    assert!(is_next, "a worker's calls allocate in serial order (O-46)");
    allocating_calls.push(AllocatingCall {
        position,
        allocations: Span::up_to(allocations_from, lists.allocations.len()),
        lookups: Span::up_to(lookups_from, lists.lookups.len()),
        early,
    });
}

/// Lets a call allocate; what it comes to if it ends in that.
pub(super) fn run_step(
    mut sequences: Sequences<'_>,
    allocate: impl FnOnce(&mut Sequences<'_>) -> Result<(), Abort>,
) -> Option<Failure> {
    let result = caught(|| allocate(&mut sequences));
    super::declare::ending(result, sequences.declaration.mistake.take())
}

/// Gives the allocations of a call of the serial part their numbers.
pub(super) fn rank_at_once(
    epoch: &Epoch<'_>,
    allocations: &mut [Allocation],
    changed: &mut Vec<ChangedSequence>,
    place_of: &mut BySequence<usize>,
) {
    let mut sequences = epoch.core.sequences.write().expect("no panic while locked");
    // A call may take many numbers of one sequence, one after the other.
    for run in allocations.chunk_by_mut(|a, b| (a.table, a.key) == (b.table, b.key)) {
        let Allocation { table, key, position, .. } = run[0];
        let before = sequences.get(&(table, key)).map(|state| state.next);
        let mut next = None;
        for allocation in run {
            next = allocation.number(next.or(before).unwrap_or(0)).or(next);
        }
        let Some(next) = next else { continue };
        allocate_up_to(&mut sequences, table, key, next, epoch.number);
        let place = *place_of.entry((table, key)).or_insert(changed.len());
        match changed.get_mut(place) {
            Some(changed) => (changed.next, changed.position) = (next, position),
            None => changed.push(ChangedSequence { table, key, before, next, position }),
        }
    }
}

/// The next number of a sequence is another one, in an epoch.
fn allocate_up_to(
    sequences: &mut BySequence<SequenceState>,
    table: TableId,
    key: u64,
    next: u64,
    epoch: EpochNumber,
) {
    let state = sequences.entry((table, key)).or_default();
    if state.allocated_in != epoch {
        (state.allocated_in, state.start) = (epoch, state.next);
    }
    state.next = next;
}

/// Gives every allocation its number, in serial order over all workers.
fn rank(epoch: &Epoch<'_>, worker: &mut Worker) {
    let mut lists: Vec<_> = epoch
        .shared
        .allocations
        .iter()
        .map(|list| list.lock().expect("no panic while locked"))
        .collect();
    let mut next_of = vec![0usize; lists.len()];
    let mut sequences = epoch.core.sequences.write().expect("no panic while locked");
    let mut ranked: Vec<Ranked> = Vec::new();
    let mut place_of = BySequence::default();
    // The serial part drew before.
    for changed in worker.local.sequences.drain(..) {
        let ChangedSequence { table, key, before, next, position } = changed;
        place_of.insert((table, key), ranked.len());
        ranked.push(Ranked { name: (table, key), before, next, allocating_call: Some(position) });
    }
    let mut end = 0;
    while lists.iter().zip(&next_of).any(|(list, &next)| next < list.len()) {
        // As the calls were dealt: the next few positions are of one worker, those behind them of
        // the next one.
        for (list, next) in lists.iter_mut().zip(&mut next_of) {
            end += RUN_CALLS as u32;
            while let Some(allocation) =
                list.get_mut(*next).filter(|allocation| allocation.position < Position(end))
            {
                *next += 1;
                let name = (allocation.table, allocation.key);
                let place = *place_of.entry(name).or_insert_with(|| {
                    let before = sequences.get(&name).map(|state| state.next);
                    ranked.push(Ranked {
                        name,
                        before,
                        next: before.unwrap_or(0),
                        allocating_call: None,
                    });
                    ranked.len() - 1
                });
                let sequence = &mut ranked[place];
                if let Some(next) = allocation.number(sequence.next) {
                    (sequence.next, sequence.allocating_call) = (next, Some(allocation.position));
                }
            }
        }
    }
    for Ranked { name: (table, key), before, next, allocating_call } in ranked {
        let Some(position) = allocating_call else {
            continue;
        };
        allocate_up_to(&mut sequences, table, key, next, epoch.number);
        worker.local.sequences.push(ChangedSequence { table, key, before, next, position });
    }
}

/// A sequence that is allocated from or looked at in this epoch.
struct Ranked {
    name: (TableId, u64),
    /// Its next number before the epoch, if there is such a sequence.
    before: Option<u64>,
    next: u64,
    /// Position of the last call that allocates.
    allocating_call: Option<Position>,
}

/// Takes all numbers of a refused epoch back.
pub(super) fn undo(epoch: &Epoch<'_>, worker: &Worker) {
    let mut sequences = epoch.core.sequences.write().expect("no panic while locked");
    for changed in &worker.local.sequences {
        let name = (changed.table, changed.key);
        let now = sequences.get(&name).map(|state| state.next);
        assert!(now == Some(changed.next), "a refused epoch was the last to change a sequence");
        match changed.before {
            Some(next) => {
                let state = sequences.get_mut(&name).expect("it was allocated from");
                (state.next, state.allocated_in) = (next, EpochNumber::ZERO);
            }
            None => drop(sequences.remove(&name)),
        }
    }
}
