//! Callers: threads that do random things with a database and note what they are told.

use std::sync::Arc;

use nvcaracal::{Error, Part, Snapshot, Submitter, Ticket};
use sim::history::Random;

use crate::feeds::Follower;
use crate::items::Image;
use crate::program::{Act, Done, LEDGER, ROWS, add, call, submit, submit_by, try_submit};
use crate::records::{Answer, History, Record, Seen};
use crate::tasks::Tasks;
use crate::world::World;

/// Most snapshots that a caller holds.
const HELD_MAX: usize = 3;

/// A caller.
pub(crate) struct Caller {
    pub(crate) world: Arc<World>,
    pub(crate) random: Random,
    history: History,
    /// Tickets, and the places of their records.
    tickets: Vec<(Ticket<Done>, usize)>,
    held: Vec<(Snapshot, usize)>,
    tasks: Tasks,
    /// Keeps the order of some of its calls: its number, and how many there were.
    submitter: Submitter,
    submitted: (u64, usize),
    follower: Option<Follower>,
}

/// Whether a caller goes on: not once the database is closed.
type Step = Result<bool, String>;

impl Caller {
    pub(crate) fn new(world: Arc<World>, seed: u64) -> Self {
        let submitted = (world.numbers.batch(), 0);
        Self {
            submitter: world.db.submitter(),
            submitted,
            follower: None,
            world,
            random: Random::new(seed),
            history: History::default(),
            tickets: Vec::new(),
            held: Vec::new(),
            tasks: Tasks::default(),
        }
    }

    /// Does so many things.
    ///
    /// # Errors
    /// An answer that cannot be.
    pub(crate) fn run(mut self, steps: u64) -> Result<History, String> {
        let habit = self.random.below(4);
        for _ in 0..steps {
            let what = match habit {
                0 => self.random.pick(&[0, 1, 1, 1, 9]),
                1 => self.random.pick(&[2, 3, 3, 4, 9, 12, 12, 12]),
                2 => self.random.pick(&[6, 6, 7, 7, 8, 9, 9]),
                _ => self.random.below(14),
            };
            if !self.step(what)? {
                break;
            }
        }
        // Half of them wait for what is left, the others drop it.
        if self.random.percent(50) {
            while let Some((ticket, at)) = self.tickets.pop() {
                self.ticket_answered(at, ticket.wait())?;
            }
        }
        while self.reread()? && self.held.pop().is_some() {}
        self.follow()?;
        let Self { world, random, history, tasks, .. } = &mut self;
        tasks.finish(world, random, &mut history.records)?;
        Ok(self.history)
    }

    fn step(&mut self, what: u64) -> Step {
        match what {
            0 => self.call(),
            1 => self.submit(true),
            2 => self.submit(false),
            3 => self.batch(true),
            4 => self.batch(false),
            5 => self.look_at_tickets(),
            6 => self.begin_task(),
            7 => self.run_tasks(),
            8 => self.snapshot(),
            9 => self.wait_for_one(),
            10 => self.reread(),
            11 => self.follow(),
            12 => self.submit_in_order(),
            _ => self.look(),
        }
    }

    /// Notes a call that is about to be submitted: the place of its record.
    fn note(&mut self, act: Act, batch: Option<(u64, usize)>) -> usize {
        let submitted = self.world.moment();
        self.history.records.push(Record { act, submitted, answer: None, batch, order: None });
        self.history.records.len() - 1
    }

    fn answered(&mut self, at: usize, answer: Result<Done, Error>) -> Step {
        let record = &mut self.history.records[at];
        let answer = record.read(answer)?;
        let goes_on = !matches!(answer, Answer::Unknown);
        record.answer = Some((answer, self.world.moment()));
        Ok(goes_on)
    }

    /// The answer to a call that was accepted: there is one, also where the database is closed.
    fn ticket_answered(&mut self, at: usize, answer: Result<Done, Error>) -> Step {
        match self.answered(at, answer)? {
            true => Ok(true),
            false => {
                let id = self.history.records[at].act.id;
                Err(format!("call {id} was accepted and not answered"))
            }
        }
    }

    /// The call was not accepted: it does not take place.
    fn refused(&mut self, at: usize, error: &Error) -> Step {
        if !error.is_queue_full() && !error.is_stopped() && !error.is_limit() {
            return Err(format!("a call was refused: {error}"));
        }
        self.history.records[at].answer = Some((Answer::Refused, self.world.moment()));
        Ok(!error.is_stopped())
    }

    fn call(&mut self) -> Step {
        let act = self.world.act(&mut self.random);
        let at = self.note(act.clone(), None);
        let answer = call(&self.world.db, act);
        self.answered(at, answer)
    }

    fn submit(&mut self, waits: bool) -> Step {
        let act = self.world.act(&mut self.random);
        let at = self.note(act.clone(), None);
        let db = &self.world.db;
        match if waits { submit(db, act) } else { try_submit(db, act) } {
            Ok(ticket) if self.random.percent(85) => self.tickets.push((ticket, at)),
            Ok(_dropped) => {}
            Err(error) => return self.refused(at, &error),
        }
        Ok(true)
    }

    /// Submits some calls one by one that keep their order, each in any part.
    fn submit_in_order(&mut self) -> Step {
        for _ in 0..1 + self.random.below(8) {
            let act = self.world.act(&mut self.random);
            if act.sequence().is_some() {
                // One that is deferred behind another one leaves a hole.
                continue;
            }
            let at = self.note(act.clone(), None);
            self.history.records[at].order = Some(self.submitted);
            self.submitted.1 += 1;
            let part =
                self.random.pick(&[Part::Learned, Part::Parallel, Part::Parallel, Part::Serial]);
            match submit_by(&self.submitter.part(part), act) {
                Ok(ticket) => self.tickets.push((ticket, at)),
                Err(error) => return self.refused(at, &error),
            }
        }
        Ok(true)
    }

    /// Follows the changes of the rows, or begins to.
    fn follow(&mut self) -> Step {
        let followed = match self.follower.take() {
            Some(follower) => follower.go_on(&self.world.db),
            None => Follower::begin(&self.world.db),
        };
        match followed? {
            Ok(follower) => {
                self.follower = follower;
                Ok(true)
            }
            Err(error) if error.is_stopped() => Ok(false),
            Err(error) => Err(format!("changes cannot be read: {error}")),
        }
    }

    fn batch(&mut self, waits: bool) -> Step {
        let world = Arc::clone(&self.world);
        let number = world.numbers.batch();
        let calls = 1 + self.random.below(world.habits.batch);
        let (mut batch, mut added) = (world.db.batch(), Vec::new());
        for at in 0..calls as usize {
            let act = world.act(&mut self.random);
            let place = add(&mut batch, act.clone()).map_err(|error| error.to_string())?;
            added.push((place, self.note(act, Some((number, at)))));
        }
        match if waits { batch.submit() } else { batch.try_submit() } {
            Ok(submitted) => {
                if self.random.percent(30) {
                    submitted.wait();
                }
                for (place, at) in added {
                    self.tickets.push((submitted.ticket(place), at));
                }
                Ok(true)
            }
            Err(error) => {
                let at = added.iter().map(|(_, at)| *at);
                at.map(|at| self.refused(at, &error)).try_fold(true, |all, one| Ok(all && one?))
            }
        }
    }

    fn wait_for_one(&mut self) -> Step {
        if self.tickets.is_empty() {
            return Ok(true);
        }
        let one = self.random.below(self.tickets.len() as u64) as usize;
        let (ticket, at) = self.tickets.swap_remove(one);
        if self.random.percent(20) {
            // Somebody else waits for it: an answer goes to whoever has the ticket.
            let waits = crate::world::begin("a ticket on another thread", move || ticket.wait());
            return self.ticket_answered(at, waits()?);
        }
        self.ticket_answered(at, ticket.wait())
    }

    fn look_at_tickets(&mut self) -> Step {
        let mut at = 0;
        while at < self.tickets.len() {
            let (ticket, record) = &self.tickets[at];
            let most = std::time::Duration::from_micros(self.random.below(300));
            let answer = match self.random.percent(50) {
                true => ticket.try_get(),
                false => ticket.wait_timeout(most),
            };
            match answer {
                Some(answer) => {
                    let record = *record;
                    drop(self.tickets.swap_remove(at));
                    if !self.ticket_answered(record, answer)? {
                        return Ok(false);
                    }
                }
                None => at += 1,
            }
        }
        Ok(true)
    }

    fn begin_task(&mut self) -> Step {
        let act = self.world.act(&mut self.random);
        let submitted = self.world.moment();
        let ticket = match self.tickets.is_empty() || self.random.percent(70) {
            true => None,
            false => self.tickets.pop(),
        };
        match ticket {
            // One that was waited for by a thread goes on as a future.
            Some((ticket, at)) => self.tasks.wait(ticket, at),
            None => {
                let (batch, order) = (None, None);
                let record = Record { act: act.clone(), submitted, answer: None, batch, order };
                self.history.records.push(record);
                let (db, at) = (self.world.db.clone(), self.history.records.len() - 1);
                self.tasks.call(db, act, at, self.random.percent(50));
            }
        }
        Ok(true)
    }

    fn run_tasks(&mut self) -> Step {
        let Self { world, random, history, tasks, .. } = self;
        tasks.run(world, (random, 30), &mut history.records)
    }

    fn snapshot(&mut self) -> Step {
        let asked = self.world.moment();
        let snapshot = match self.world.db.snapshot() {
            Ok(snapshot) => snapshot,
            Err(error) if error.is_stopped() => return Ok(false),
            Err(error) => return Err(format!("a snapshot is refused: {error}")),
        };
        let (got, epoch) = (self.world.moment(), snapshot.epoch());
        let Some(image) = read(&snapshot)? else { return Ok(true) };
        self.history.seen.push(Seen { asked, got, epoch, image });
        if self.held.len() < HELD_MAX && self.random.percent(80) {
            self.held.push((snapshot, self.history.seen.len() - 1));
        }
        Ok(true)
    }

    /// Reads a snapshot that was held: it is what it was.
    fn reread(&mut self) -> Step {
        if self.held.is_empty() {
            return Ok(true);
        }
        let one = self.random.below(self.held.len() as u64) as usize;
        let (snapshot, at) = &self.held[one];
        let seen = &self.history.seen[*at];
        if let Some(image) = read(snapshot)?
            && image != seen.image
        {
            return Err(format!("the snapshot of epoch {} has changed", seen.epoch));
        }
        if self.random.percent(50) {
            drop(self.held.swap_remove(one));
        }
        Ok(true)
    }

    /// Looks at the database, or has it do something beside its calls.
    fn look(&mut self) -> Step {
        World::set_clock(&mut self.random);
        let db = &self.world.db;
        let done = match self.random.below(4) {
            0 => db.checkpoint(),
            1 => db.memory().map(drop),
            2 => db.get(ROWS, self.random.below(self.world.habits.keys)).map(drop),
            _ => db.get(LEDGER, self.random.below(100)).map(drop),
        };
        match done {
            Ok(()) => Ok(true),
            Err(error) if error.is_stopped() => Ok(false),
            // A checkpoint needs room, too.
            Err(error) if error.is_limit() => Ok(true),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// What a snapshot has; nothing if it has ended.
fn read(snapshot: &Snapshot) -> Result<Option<Image>, String> {
    match Image::read(snapshot) {
        Ok(image) => Ok(Some(image)),
        Err(error) if error.is_limit() || error.is_stopped() => Ok(None),
        Err(error) => Err(format!("a snapshot cannot be read: {error}")),
    }
}
