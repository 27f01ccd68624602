//! Step one of the declarations: drawing from sequences.
//!
//! 1. Every worker lets its calls draw; a call that aborts here takes its draws back.
//! 2. The first worker ranks all draws in serial order: the k-th drawer of a sequence gets base +
//!    k. That makes the numbers dense and the same in replay (unlike the atomic counters of NV
//!    6.2.3).

use std::panic::{AssertUnwindSafe, catch_unwind};

use pmem::Device;

use crate::calls::{StoredAnswer, owned};
use crate::core::SequenceState;
use crate::declare::{Declaration, Draws, KeyFilter};
use crate::local::{ChangedSequence, Span, Txn};
use crate::version::ReadPhase;
use crate::worker::{Epoch, Leave, Worker};

pub(super) fn run<D: Device>(epoch: &Epoch<'_, D>, worker: &mut Worker<D>) -> Result<(), Leave> {
    for position in owned(worker.local.worker, epoch.workers, epoch.calls.len()) {
        let txn = draw_one(epoch, worker, position);
        worker.local.lists.txns.push(txn);
    }
    let mine = &epoch.shared.draws[worker.local.worker];
    *mine.lock().expect("no panic while locked") = std::mem::take(&mut worker.local.lists.draws);
    epoch.barrier()?;
    if epoch.leads(worker) {
        rank(epoch, worker);
    }
    epoch.barrier()?;
    worker.local.lists.draws = std::mem::take(&mut *mine.lock().expect("no panic while locked"));
    Ok(())
}

fn draw_one<D: Device>(epoch: &Epoch<'_, D>, worker: &mut Worker<D>, position: usize) -> Txn {
    let (number, arguments) = epoch.calls.get(position);
    let procedure = epoch.core.procedures.get(number).expect("checked before the epoch began");
    let lists = &mut worker.local.lists;
    let (draws_from, lookups_from) = (lists.draws.len() as u32, lists.lookups.len() as u32);
    let mut early = None;
    if let Some(draw) = procedure.draws {
        let first = lists.declared.len();
        let declaration = Declaration {
            core: epoch.core,
            lists,
            phase: ReadPhase::begin(),
            epoch: epoch.number,
            first,
            filter: KeyFilter::default(),
            mistake: None,
        };
        let mut draws = Draws { declaration, position: position as u32 };
        let result = catch_unwind(AssertUnwindSafe(|| draw(arguments, &mut draws)));
        early = super::declare::ending(result, draws.declaration.mistake.take());
    }
    if early.is_some() {
        worker.local.lists.draws.truncate(draws_from as usize);
    }
    Txn {
        position: position as u32,
        draws: Span { from: draws_from, to: worker.local.lists.draws.len() as u32 },
        declared: Span::default(),
        ranges: Span::default(),
        pieces: Span::default(),
        members: Span::default(),
        lookups: Span { from: lookups_from, to: worker.local.lists.lookups.len() as u32 },
        early,
    }
}

/// Gives every draw its number, in serial order over all workers.
fn rank<D: Device>(epoch: &Epoch<'_, D>, worker: &mut Worker<D>) {
    let mut lists: Vec<_> =
        epoch.shared.draws.iter().map(|list| list.lock().expect("no panic while locked")).collect();
    let mut next_of = vec![0usize; lists.len()];
    let mut sequences = epoch.core.sequences.write().expect("no panic while locked");
    let changed = &mut worker.local.sequences;
    let mut place_of = std::collections::HashMap::new();
    loop {
        let smallest = (0..lists.len())
            .filter_map(|l| lists[l].get(next_of[l]).map(|drawn| (drawn.position, l)))
            .min();
        let Some((position, list)) = smallest else {
            break;
        };
        let drawn = &mut lists[list][next_of[list]];
        next_of[list] += 1;
        let name = (drawn.table, drawn.key);
        if drawn.peek {
            drawn.value = sequences.get(&name).map_or(0, |state| state.next);
            continue;
        }
        let known = sequences.get(&name).copied();
        let state: &mut SequenceState = sequences.entry(name).or_default();
        if state.drawn_in != epoch.number {
            (state.drawn_in, state.start) = (epoch.number, state.next);
        }
        drawn.value = state.next;
        state.next += 1;
        let place = *place_of.entry(name).or_insert_with(|| {
            changed.push(ChangedSequence {
                table: name.0,
                key: name.1,
                before: known.map(|k| k.next),
                next: 0,
                position,
            });
            changed.len() - 1
        });
        changed[place].next = state.next;
        changed[place].position = position;
    }
}

/// Takes all numbers of a refused epoch back.
pub(super) fn undo<D: Device>(epoch: &Epoch<'_, D>, worker: &Worker<D>) {
    let mut sequences = epoch.core.sequences.write().expect("no panic while locked");
    for changed in &worker.local.sequences {
        let name = (changed.table, changed.key);
        match changed.before {
            Some(next) => {
                let state = sequences.get_mut(&name).expect("it was drawn from");
                (state.next, state.drawn_in) = (next, 0);
            }
            None => drop(sequences.remove(&name)),
        }
    }
}

/// Whether a call drew at all and its declaration goes on.
pub(super) fn goes_on(early: Option<&StoredAnswer>) -> bool {
    early.is_none()
}
