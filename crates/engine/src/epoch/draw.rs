//! Step one of the declarations: drawing from sequences. Calls of the serial part have drawn before
//! (`serial.rs`).
//!
//! 1. Every worker lets its calls draw; a call that aborts here takes its draws back.
//! 2. The first worker ranks all draws in serial order: the k-th drawer of a sequence gets base +
//!    k. That makes the numbers dense and the same in replay (unlike the atomic counters of NV
//!    6.2.3).

use pmem::Device;

use crate::calls::{Abort, Failure, RUN_CALLS, owned};
use crate::core::{BySequence, SequenceState};
use crate::declare::{Declaration, Draws};
use crate::local::{ChangedSequence, Drawer, Drawn, Local, Span};
use crate::panics::caught;
use crate::worker::{Epoch, Leave, Worker};

pub(super) fn run<D: Device>(epoch: &Epoch<'_, D>, worker: &mut Worker<D>) -> Result<(), Leave> {
    if !epoch.procedures.draws() {
        return Ok(());
    }
    let owned = owned(worker.local.worker, epoch.workers, epoch.calls.len());
    for position in owned.filter(|&position| position >= epoch.calls.serial()) {
        let (number, arguments) = epoch.calls.get(position);
        let procedure = epoch.procedures.get(number).expect("checked before the epoch began");
        if procedure.steps.draws && !epoch.skips(position) {
            let draw = |draws: &mut Draws<'_>| procedure.draws(arguments, draws);
            draw_one(epoch, &mut worker.local, position as u32, draw);
            worker.local.reads.account_charged(&mut worker.row_store.port, epoch.core.image_base);
        }
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

fn draw_one<D: Device>(
    epoch: &Epoch<'_, D>,
    local: &mut Local,
    position: u32,
    draw: impl FnOnce(&mut Draws<'_>) -> Result<(), Abort>,
) {
    let Local { lists, reads, drawers, .. } = local;
    let (draws_from, lookups_from) = (lists.draws.len(), lists.lookups.len());
    let declaration = Declaration::new(epoch.core, lists, reads, epoch.number);
    let early = run_step(Draws { declaration, position }, draw);
    if early.is_some() {
        lists.draws.truncate(draws_from);
    }
    drawers.push(Drawer {
        position,
        draws: Span::up_to(draws_from, lists.draws.len()),
        lookups: Span::up_to(lookups_from, lists.lookups.len()),
        early,
    });
}

/// Lets a call draw; what it comes to if it ends in that.
pub(super) fn run_step(
    mut draws: Draws<'_>,
    draw: impl FnOnce(&mut Draws<'_>) -> Result<(), Abort>,
) -> Option<Failure> {
    let result = caught(|| draw(&mut draws));
    super::declare::ending(result, draws.declaration.mistake.take())
}

/// Gives the draws of a call of the serial part their numbers.
pub(super) fn rank_at_once<D: Device>(
    epoch: &Epoch<'_, D>,
    drawn: &mut [Drawn],
    (changed, place_of): (&mut Vec<ChangedSequence>, &mut BySequence<usize>),
) {
    let mut sequences = epoch.core.sequences.write().expect("no panic while locked");
    for drawn in drawn {
        let (table, key, position) = (drawn.table, drawn.key, drawn.position);
        let before = sequences.get(&(table, key)).map(|state| state.next);
        let Some(next) = drawn.number(before.unwrap_or(0)) else { continue };
        draw_up_to(&mut sequences, (table, key), next, epoch.number);
        let place = *place_of.entry((table, key)).or_insert(changed.len());
        match changed.get_mut(place) {
            Some(changed) => (changed.next, changed.position) = (next, position),
            None => changed.push(ChangedSequence { table, key, before, next, position }),
        }
    }
}

/// The next number of a sequence is another one, in an epoch.
fn draw_up_to(sequences: &mut BySequence<SequenceState>, name: (u16, u64), next: u64, epoch: u64) {
    let state = sequences.entry(name).or_default();
    if state.drawn_in != epoch {
        (state.drawn_in, state.start) = (epoch, state.next);
    }
    state.next = next;
}

/// Gives every draw its number, in serial order over all workers.
fn rank<D: Device>(epoch: &Epoch<'_, D>, worker: &mut Worker<D>) {
    let mut lists: Vec<_> =
        epoch.shared.draws.iter().map(|list| list.lock().expect("no panic while locked")).collect();
    let mut next_of = vec![0usize; lists.len()];
    let mut sequences = epoch.core.sequences.write().expect("no panic while locked");
    let mut ranked: Vec<Ranked> = Vec::new();
    let mut place_of = BySequence::default();
    // The serial part drew before.
    for changed in worker.local.sequences.drain(..) {
        let ChangedSequence { table, key, before, next, position } = changed;
        place_of.insert((table, key), ranked.len());
        ranked.push(Ranked { name: (table, key), before, next, drawer: Some(position) });
    }
    let mut end = 0;
    while lists.iter().zip(&next_of).any(|(list, &next)| next < list.len()) {
        // As the calls were dealt: the next few positions are of one worker, those behind them of
        // the next one.
        for (list, next) in lists.iter_mut().zip(&mut next_of) {
            end += RUN_CALLS as u32;
            while let Some(drawn) = list.get_mut(*next).filter(|drawn| drawn.position < end) {
                *next += 1;
                let name = (drawn.table, drawn.key);
                let place = *place_of.entry(name).or_insert_with(|| {
                    let before = sequences.get(&name).map(|state| state.next);
                    ranked.push(Ranked { name, before, next: before.unwrap_or(0), drawer: None });
                    ranked.len() - 1
                });
                let sequence = &mut ranked[place];
                if let Some(next) = drawn.number(sequence.next) {
                    (sequence.next, sequence.drawer) = (next, Some(drawn.position));
                }
            }
        }
    }
    for Ranked { name: (table, key), before, next, drawer } in ranked {
        let Some(position) = drawer else {
            continue;
        };
        draw_up_to(&mut sequences, (table, key), next, epoch.number);
        worker.local.sequences.push(ChangedSequence { table, key, before, next, position });
    }
}

/// A sequence that is drawn from or looked at in this epoch.
struct Ranked {
    name: (u16, u64),
    /// Its next number before the epoch, if there is such a sequence.
    before: Option<u64>,
    next: u64,
    /// Position of the last drawer.
    drawer: Option<u32>,
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
