//! Callers in threads.

use nvcaracal::{Error, Ticket};
use sim::history::Random;

use crate::{Count, Counted, World};

/// Rows that calls change.
pub(crate) const ROWS: u64 = 2;
/// Steps of a caller, at most.
const STEPS: u64 = 4;

/// The calls of a caller have numbers of their own.
pub(crate) fn call(caller: u64, number: u64) -> Count {
    Count { call: caller << 32 | number, row: number % ROWS }
}

/// Whether a call was refused for a reason that there may be.
fn refused(error: &Error) {
    assert!(error.is_stopped() || error.is_queue_full(), "{error}");
}

/// Submits calls, and waits for their answers or does not.
pub(crate) fn run(world: &World, caller: u64, random: &mut Random) {
    let (db, mut tickets) = (&world.db, Vec::new());
    let steps = 1 + random.below(STEPS);
    for step in 0..steps {
        let count = call(caller, step << 8);
        let number = count.call;
        match random.below(8) {
            0 => match db.call(count) {
                Ok(counted) => world.answered(number, counted),
                // It may have been accepted before the database was closed, and is answered then.
                Err(error) => refused(&error),
            },
            1 => match db.try_submit(count) {
                Ok(ticket) => tickets.push((number, ticket)),
                Err(error) => refused(&error),
            },
            2 => batch(world, caller, step << 8, random, &mut tickets),
            3 | 4 => {
                let answered = world.answers();
                world.has_all(db.snapshot(), answered);
            }
            5 => drop(db.submit(count).map_err(|error| refused(&error))),
            _ => match db.submit(count) {
                Ok(ticket) => tickets.push((number, ticket)),
                Err(error) => refused(&error),
            },
        }
        if random.percent(30) {
            tickets.drain(..).for_each(|(number, ticket)| answered(world, number, ticket));
        }
        if random.percent(20) {
            tickets.pop();
        }
    }
    tickets.into_iter().for_each(|(number, ticket)| answered(world, number, ticket));
}

/// What was accepted is answered, also where the database is closed.
fn answered(world: &World, number: u64, ticket: Ticket<Counted>) {
    match ticket.wait() {
        Ok(counted) => world.answered(number, counted),
        Err(error) => panic!("call {number:x} was accepted: {error}"),
    }
}

/// Calls that are submitted together, some more than the queue may hold.
fn batch(
    world: &World,
    caller: u64,
    first: u64,
    random: &mut Random,
    tickets: &mut Vec<(u64, Ticket<Counted>)>,
) {
    let mut batch = world.db.batch();
    let added: Vec<_> = (0..1 + random.below(3))
        .map(|at| {
            let count = call(caller, first | at);
            (count.call, batch.add(&count).unwrap())
        })
        .collect();
    match batch.submit() {
        Ok(submitted) => {
            let ticket = |(number, added)| (number, submitted.ticket(added));
            tickets.extend(added.into_iter().map(ticket));
        }
        Err(error) => assert!(error.is_stopped() || error.is_limit(), "{error}"),
    }
}
