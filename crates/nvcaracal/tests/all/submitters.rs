//! Submitters: calls in order, parts that are chosen, and answers that say what was deferred.

use std::collections::VecDeque;
use std::thread;

use nvcaracal::{
    Data, Database, HashTable, Options, Part, Procedure, Stop, Table, Ticket, Transaction, Tuning,
    WriteSet, plain,
};

use crate::common::{ACCOUNTS, Deposit, POINTERS, Point, dram, options};

/// By caller: the number of its last call.
const LAST: HashTable<u64, u64> = Table::hash("last");

plain! {
    /// Notes its number under its caller, and the number before. Declares what a pointer says, so
    /// that it is deferred where that has changed.
    struct Next { caller: u64, number: u64, follows: u64 }
}

/// Number before, and serial id.
#[derive(Debug, Clone, PartialEq, Data)]
struct Noted {
    before: u64,
    serial: u64,
}

impl Procedure for Next {
    const NAME: &'static str = "next";
    type Output = Noted;

    fn write_set(&self, set: &mut WriteSet) {
        set.insert(LAST, self.caller);
        if self.follows != 0 {
            let to = set.get(POINTERS, 0).unwrap_or(0);
            set.insert(ACCOUNTS, to);
        }
    }

    fn run(&self, tx: &mut Transaction) -> Result<Noted, Stop> {
        let before = tx.get(LAST, self.caller)?.unwrap_or(0);
        tx.insert(LAST, self.caller, &self.number)?;
        if self.follows != 0 {
            let to = tx.get(POINTERS, 0)?.unwrap_or(0);
            tx.insert(ACCOUNTS, to, &1)?;
        }
        Ok(Noted { before, serial: tx.serial_id() })
    }
}

/// No epoch is serial as a whole, and nothing is learned.
fn parallel(options: Options) -> Options {
    let options = options.table(POINTERS).table(LAST).procedure::<Point>().procedure::<Next>();
    options.tuning(Tuning { serial_calls_max: 0, ..Tuning::default() })
}

fn open(workers: usize) -> Database {
    let db = dram(parallel(options()).workers(workers));
    // It is known then that they predict what they write.
    db.call(Point { to: 0 }).unwrap();
    db.call(Next { caller: 0, number: 0, follows: 0 }).unwrap();
    db.call(Deposit { account: 0, cents: 0 }).unwrap();
    db
}

#[test]
fn o_109_calls_behind_a_deferred_one_of_their_submitter_are_deferred_with_it() {
    for workers in [1, 2] {
        let db = open(workers);
        let (one, other) = (db.submitter().part(Part::Parallel), db.submitter());
        let other = other.part(Part::Parallel);
        let mut numbers = 0;
        for to in 1..40 {
            let mut batch = one.batch();
            let mut next = |follows| {
                numbers += 1;
                Next { caller: 1, number: numbers, follows }
            };
            let first = batch.add(&next(0)).unwrap();
            let point = batch.add(&Point { to }).unwrap();
            let deferred = batch.add(&next(1)).unwrap();
            let behind = batch.add(&next(0)).unwrap();
            let last = batch.add(&next(0)).unwrap();
            let submitted = batch.submit().unwrap();
            let free = other.submit(Next { caller: 2, number: to, follows: 0 }).unwrap();

            let deferred = submitted.ticket(deferred);
            let noted = [&submitted.ticket(first), &deferred, &submitted.ticket(behind)];
            submitted.wait();
            let last = submitted.ticket(last);
            let noted: Vec<Noted> =
                noted.into_iter().chain([&last]).map(|of| of.try_get().unwrap().unwrap()).collect();
            assert!(noted.is_sorted_by_key(|noted| noted.serial), "{noted:?}");
            let before: Vec<u64> = noted.iter().map(|noted| noted.before).collect();
            assert_eq!(before, (numbers - 4..numbers).collect::<Vec<_>>());
            submitted.ticket(point).wait().unwrap();
            assert_eq!((deferred.was_deferred(), last.was_deferred()), (Some(true), Some(true)));
            while free.try_get().is_none() {
                thread::yield_now();
            }
            assert_eq!(free.was_deferred(), Some(false), "it is another submitter's");
            assert_eq!(free.wait().unwrap().before, to - 1);
        }
    }
}

#[test]
fn o_109_calls_of_many_submitters_keep_their_orders_in_all_parts() {
    // On a busy machine no call may have come behind one that moved the pointer, in one epoch.
    let has_deferred = (0..30).any(|_| keep_orders_in_all_parts() > 0);
    assert!(has_deferred, "the test defers calls");
}

/// Returns how many calls were deferred.
fn keep_orders_in_all_parts() -> u64 {
    const CALLS: u64 = 600;
    let db = open(2);
    thread::scope(|scope| {
        let points = &db;
        scope.spawn(move || {
            for to in 0..CALLS {
                points.call(Point { to }).unwrap();
            }
        });
        for caller in 1..5 {
            let db = &db;
            scope.spawn(move || {
                let submitter = db.submitter();
                let mut tickets: VecDeque<Ticket<Noted>> = VecDeque::new();
                let (mut serial, mut answered) = (0, 0);
                let mut take = |ticket: Ticket<Noted>| {
                    let noted = ticket.wait().unwrap();
                    assert_eq!(noted.before, answered, "a call of {caller} came out of its order");
                    assert!(noted.serial > serial);
                    (serial, answered) = (noted.serial, answered + 1);
                };
                for number in 1..=CALLS {
                    let part = [Part::Learned, Part::Parallel, Part::Serial, Part::Parallel];
                    let part = part[(number * caller / 7 % 4) as usize];
                    let follows = u64::from((number + caller) % 3 == 0);
                    let next = Next { caller, number, follows };
                    tickets.push_back(submitter.part(part).submit(next).unwrap());
                    if tickets.len() > 50 {
                        take(tickets.pop_front().unwrap());
                    }
                }
                tickets.into_iter().for_each(take);
            });
        }
    });
    db.stats().procedures.iter().map(|of| of.deferred).sum()
}

#[test]
fn o_80_what_comes_before_a_serial_call_of_a_batch_is_serial_too() {
    let db = open(2);
    let parallel = db.in_part(Part::Parallel);
    let serial = db.in_part(Part::Serial);
    let mut batch = serial.batch();
    let added: Vec<_> = (1..=9)
        .map(|number| batch.add(&Next { caller: 9, number, follows: number % 2 }).unwrap())
        .collect();
    let point = parallel.submit(Point { to: 7 }).unwrap();
    let submitted = batch.submit().unwrap();
    for (before, added) in added.into_iter().enumerate() {
        let ticket = submitted.ticket(added);
        let noted = loop {
            if let Some(answer) = ticket.try_get() {
                break answer.unwrap();
            }
            thread::yield_now();
        };
        assert_eq!(noted.before, before as u64);
        assert_eq!(ticket.was_deferred(), Some(false), "the serial part defers nothing");
    }
    point.wait().unwrap();
}

#[test]
fn whether_a_call_was_deferred_is_known_with_its_answer() {
    let db = open(1);
    let parallel = db.in_part(Part::Parallel);
    let mut batch = parallel.batch();
    batch.add(&Point { to: 3 }).unwrap();
    let follows = batch.add(&Next { caller: 1, number: 1, follows: 1 }).unwrap();
    let after = batch.add(&Next { caller: 1, number: 2, follows: 0 }).unwrap();
    let submitted = batch.submit().unwrap();
    let (follows, after) = (submitted.ticket(follows), submitted.ticket(after));
    submitted.wait();
    assert_eq!((follows.was_deferred(), after.was_deferred()), (Some(true), Some(false)));
    // Without an order the one behind it ran first.
    assert_eq!((after.wait().unwrap().before, follows.wait().unwrap().before), (0, 2));
}

/// Answers stay whatever comes after them, and tickets that are kept give up their epochs.
#[test]
fn tickets_that_are_collected_keep_their_answers() {
    let db = open(1);
    let mut tickets = Vec::new();
    for round in 0..20 {
        let round: Vec<_> = (0..100)
            .map(|number| Next { caller: 100 + round * 100 + number, number: 7, follows: 0 })
            .map(|next| (next.caller, db.submit(next).unwrap()))
            .collect();
        let (_, last) = round.last().unwrap();
        while last.try_get().is_none() {
            thread::yield_now();
        }
        tickets.extend(round);
    }
    for (caller, ticket) in tickets {
        assert_eq!(ticket.was_deferred(), Some(false));
        assert_eq!(ticket.try_get().unwrap().unwrap().before, 0);
        assert_eq!(db.get(LAST, caller).unwrap(), Some(7));
        ticket.wait().unwrap();
    }
}
