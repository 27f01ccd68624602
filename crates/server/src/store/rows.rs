//! The library's rows as plans see them: in a call, and at a snapshot.

use super::notices::form::Notices;
use super::pending::Watch;
use super::pieces::{self, Head};
use super::pool::Pool;
use super::slices::Slices;
use super::spaces::{Spaces, sequence};
use super::temporary::TemporaryState;
use nvcaracal::{Database, Snapshot, Stop, Transaction, WriteSet};
use sql::ir::{Claim, ObjectId, Space};
use sql::run::{Effect, Entry, Pass, Rows, STAND_INS, Scan, is_temporary_key};
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::ops::{Bound, ControlFlow};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use values::{Error, Result, SqlState};

/// As often a reader of the newest state gathers a row that others write meanwhile.
const GATHERS_MAX: u32 = 10_000;

/// Counts steps up to a limit.
pub(super) struct Steps {
    left: u64,
    max: u64,
    /// Whether there were more than the limit.
    is_over: bool,
    slices: Option<Slices>,
}

impl Steps {
    pub(super) fn new(max: u64) -> Steps {
        Steps { left: max, max, is_over: false, slices: None }
    }

    /// Those of what computes outside of calls: it looks between them whether it shall end, and
    /// work of others goes on meanwhile.
    pub(super) fn watched(max: u64, pool: &Arc<Pool>, watch: Watch) -> Steps {
        Steps { slices: Some(Slices::new(pool, watch)), ..Steps::new(max) }
    }

    /// How many were counted.
    pub(super) fn done(&self) -> u64 {
        self.max - self.left
    }

    /// Whether there were more than the limit.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Whether it was told to end.
    pub(super) fn is_ended(&self) -> bool {
        self.slices.as_ref().is_some_and(Slices::is_ended)
    }

    /// The error of what shall end.
    pub(super) fn check(&self) -> Result<()> {
        self.slices.as_ref().map_or(Ok(()), Slices::check)
    }

    /// Lets others compute while it waits for something.
    pub(super) fn rest(&mut self) {
        self.slices.iter_mut().for_each(Slices::rest);
    }

    fn count(&mut self, count: u64) -> Result<()> {
        if let Some(slices) = &mut self.slices {
            slices.count(count)?;
        }
        match self.left.checked_sub(count) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(self.over()),
        }
    }

    #[cold]
    fn over(&mut self) -> Error {
        self.is_over = true;
        let message = format!("statement does more than {} steps", self.max);
        Error::new(SqlState::STATEMENT_TOO_COMPLEX, message)
            .with_hint("Change fewer rows at a time.")
    }
}

/// The numbers of sequences that a call got, by the places of its allocations.
pub(super) struct Numbers {
    /// Of each sequence: the first place, how many there are, and how many were asked for.
    places: BTreeMap<ObjectId, (usize, u32, u32)>,
}

impl Numbers {
    pub(super) fn new(numbers: &BTreeMap<ObjectId, u32>) -> Numbers {
        let mut first = 0;
        let place = |(id, count): (&ObjectId, &u32)| {
            let at = first;
            first += *count as usize;
            (*id, (at, *count, 0))
        };
        Numbers { places: numbers.iter().map(place).collect() }
    }

    /// The place of the next number; `None` if there are no more.
    fn next(&mut self, sequence: ObjectId) -> Option<usize> {
        let (first, count, used) = self.places.entry(sequence).or_default();
        *used += 1;
        (*used <= *count).then(|| *first + *used as usize - 1)
    }

    /// How many were asked for.
    fn asked(&self, sequence: ObjectId) -> u32 {
        self.places.get(&sequence).map_or(0, |(_, _, asked)| *asked)
    }

    /// How many the run would have used, if there were too few for it.
    pub(super) fn missing(&self) -> Option<BTreeMap<ObjectId, u32>> {
        let is_short = self.places.values().any(|(_, count, used)| used > count);
        is_short.then(|| {
            let wanted = |(id, (_, _, used)): (&ObjectId, &(usize, u32, u32))| (*id, *used);
            self.places.iter().map(wanted).collect()
        })
    }
}

fn bounds<'a>(scan: &Scan<'a>) -> (Bound<&'a [u8]>, Bound<&'a [u8]>) {
    let to = match scan.to {
        // The library's ranges do not end before they begin.
        Some(to) => Bound::Excluded(to.max(scan.from)),
        None => Bound::Unbounded,
    };
    (Bound::Included(scan.from), to)
}

/// The error of a run that the library ends; what it said is in [`CallRows::stopped`].
fn ended() -> Error {
    Error::new(SqlState::INTERNAL, "the call ends here")
}

/// The rows that a call sees and writes.
pub(super) struct CallRows<'r, 'a, 'e> {
    pub(super) spaces: &'r Spaces,
    pub(super) tx: &'r mut Transaction<'a, 'e>,
    pub(super) steps: Steps,
    pub(super) numbers: Numbers,
    /// The keys of rows that the statement passes by, in order.
    pub(super) passed: &'r [Vec<u8>],
    /// Whether there may be rows in pieces.
    pub(super) has_pieces: &'r AtomicBool,
    /// Why the library ended the run: to be passed on.
    pub(super) stopped: Option<Stop>,
    /// What the call tells listeners.
    pub(super) notices: Notices,
}

impl CallRows<'_, '_, '_> {
    fn pass<T>(&mut self, result: Result<T, Stop>) -> Result<T> {
        result.map_err(|stop| {
            self.stopped.get_or_insert(stop);
            ended()
        })
    }

    /// What is stored at a key, which may be the head of a row in pieces.
    fn stored(&mut self, space: Space, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let found = self.tx.get_bytes(self.spaces.table(space), key);
        let found = found.map(|row| row.map(<[u8]>::to_vec));
        self.pass(found)
    }

    fn store(&mut self, space: Space, key: &[u8], bytes: &[u8]) -> Result<()> {
        let table = self.spaces.table(space);
        // A row that may only be updated is declared as such.
        let written = match self.tx.update_bytes(table, key, bytes) {
            Ok(false) => self.tx.insert_bytes(table, key, bytes),
            other => other.map(|_| ()),
        };
        self.pass(written)
    }

    fn remove(&mut self, space: Space, key: &[u8]) -> Result<()> {
        let deleted = self.tx.delete(self.spaces.table(space), key).map(|_| ());
        self.pass(deleted)
    }

    /// Deletes the pieces of the row with this key, if it is in pieces.
    fn remove_pieces(&mut self, space: Space, key: &[u8]) -> Result<()> {
        if space == Space::Catalog || !self.has_pieces.load(Ordering::Relaxed) {
            return Ok(());
        }
        let stored = self.stored(space, key)?;
        let Some(head) = stored.as_deref().and_then(|stored| Head::read(space, stored)) else {
            return Ok(());
        };
        head.keys(key).try_for_each(|key| self.remove(pieces::SPACE, &key))
    }

    /// Writes the pieces of a row that is longer than the store takes. Returns its head.
    ///
    /// # Errors
    /// That the key is too long for it, or that it is a row of the catalog: those stay whole.
    fn store_pieces(&mut self, space: Space, key: &[u8], row: &[u8]) -> Result<Option<Vec<u8>>> {
        if space == Space::Catalog {
            return pieces::check_whole(row).map(|()| None);
        }
        let Some(split) = pieces::split(key, row)? else { return Ok(None) };
        self.has_pieces.store(true, Ordering::Relaxed);
        let mark = sql::catalog::in_pieces_key();
        if self.stored(Space::Catalog, &mark)?.is_none() {
            self.store(Space::Catalog, &mark, &[])?;
        }
        for (key, piece) in &split.pieces {
            self.store(pieces::SPACE, key, piece)?;
        }
        Ok(Some(split.head))
    }
}

impl Rows for CallRows<'_, '_, '_> {
    fn get(&mut self, space: Space, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let Some(stored) = self.stored(space, key)? else { return Ok(None) };
        let Some(head) = Head::read(space, &stored) else { return Ok(Some(stored)) };
        let row = head.gather(key, |key| self.stored(pieces::SPACE, key))?;
        row.ok_or_else(pieces::damaged).map(Some)
    }

    fn scan(&mut self, scan: Scan<'_>, found: &mut Vec<Entry>) -> Result<()> {
        let end = found.len() + scan.rows_max;
        if scan.rows_max == 0 {
            return Ok(());
        }
        let table = self.spaces.table(scan.space);
        let visited = self.tx.visit_bytes(table, bounds(&scan), scan.is_backward, |key, row| {
            found.push((key.to_vec(), row.to_vec()));
            if found.len() < end { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        self.pass(visited)
    }

    fn put(&mut self, space: Space, key: &[u8], row: &[u8]) -> Result<()> {
        self.remove_pieces(space, key)?;
        let head = self.store_pieces(space, key, row)?;
        self.store(space, key, head.as_deref().unwrap_or(row))
    }

    fn insert(&mut self, space: Space, key: &[u8], row: &[u8]) -> Result<()> {
        let head = self.store_pieces(space, key, row)?;
        let row = head.as_deref().unwrap_or(row);
        let written = self.tx.insert_bytes(self.spaces.table(space), key, row);
        self.pass(written)
    }

    /// An error of the statement is an abort of its call.
    fn are_undone(&self) -> bool {
        true
    }

    fn delete(&mut self, space: Space, key: &[u8]) -> Result<()> {
        self.remove_pieces(space, key)?;
        self.remove(space, key)
    }

    fn next(&mut self, sequence: ObjectId) -> Result<u64> {
        match self.numbers.next(sequence) {
            Some(place) => Ok(self.tx.sequence_number(place)),
            // It stands for one of the next try, and is another one each time, so that later
            // statements of a call go on and say what they take.
            None => Ok(STAND_INS + u64::from(self.numbers.asked(sequence))),
        }
    }

    fn passes_by(&mut self, key: &[u8], _claim: &Claim) -> Result<bool> {
        Ok(is_among(self.passed, key))
    }

    fn notify(&mut self, channel: &str, payload: &str) -> Result<()> {
        self.notices.add(channel, payload)
    }

    fn steps(&mut self, count: u64) -> Result<()> {
        self.steps.count(count)
    }
}

/// Whether a key is among these, which are in order.
pub(super) fn is_among(keys: &[Vec<u8>], key: &[u8]) -> bool {
    keys.binary_search_by(|own| own[..].cmp(key)).is_ok()
}

/// What a call sees while it says what it will write.
pub(super) struct DeclaredRows<'r, 'a, 'e> {
    pub(super) spaces: &'r Spaces,
    pub(super) set: &'r mut WriteSet<'a, 'e>,
    pub(super) steps: Steps,
    pub(super) numbers: Numbers,
}

impl DeclaredRows<'_, '_, '_> {
    pub(super) fn declare(&mut self, space: Space, key: &[u8], effect: Effect) {
        let table = self.spaces.table(space);
        match effect {
            Effect::Insert => self.set.insert(table, key),
            Effect::Update => self.set.update(table, key),
            Effect::Delete => self.set.delete(table, key),
        }
    }
}

impl Rows for DeclaredRows<'_, '_, '_> {
    fn get(&mut self, space: Space, key: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(self.set.get(self.spaces.table(space), key))
    }

    fn scan(&mut self, _: Scan<'_>, _: &mut Vec<Entry>) -> Result<()> {
        Err(ended())
    }

    fn put(&mut self, _: Space, _: &[u8], _: &[u8]) -> Result<()> {
        Err(ended())
    }

    fn delete(&mut self, _: Space, _: &[u8]) -> Result<()> {
        Err(ended())
    }

    fn next(&mut self, sequence: ObjectId) -> Result<u64> {
        Ok(self.numbers.next(sequence).map_or(0, |place| self.set.sequence_number(place)))
    }

    /// Only the run tells anybody.
    fn notify(&mut self, _: &str, _: &str) -> Result<()> {
        Ok(())
    }

    fn steps(&mut self, count: u64) -> Result<()> {
        self.steps.count(count)
    }
}

/// What queries and definitions read.
pub(super) enum Reads<'r> {
    /// No row.
    Nothing,
    Snapshot(&'r Snapshot),
    /// The newest state, of which one row is read.
    Newest {
        database: &'r Database,
        /// Whether a read may wait where indexes change. One that may not is to be repeated.
        waits: bool,
        is_later: bool,
    },
}

fn reads_all_the_same() -> Error {
    Error::new(SqlState::INTERNAL, "a statement without tables reads one")
}

impl<'r> Reads<'r> {
    /// Those of a statement that has a snapshot if it reads rows.
    pub(super) fn of(snapshot: Option<&'r Snapshot>) -> Reads<'r> {
        snapshot.map_or(Reads::Nothing, Reads::Snapshot)
    }
}

/// The rows of queries and definitions: what they write stays above them.
pub(super) struct ReadRows<'r> {
    pub(super) spaces: &'r Spaces,
    pub(super) reads: Reads<'r>,
    pub(super) steps: Steps,
    /// How many numbers a block gave of the sequences that it has made itself.
    pub(super) given: BTreeMap<ObjectId, u64>,
    /// How many numbers sequences had given that were asked for it.
    pub(super) asked: BTreeMap<ObjectId, u64>,
    /// The tables that definitions have gone through.
    pub(super) passed: BTreeSet<ObjectId>,
    /// What is there and not seen yet: rows of these ids, and what these sequences have given.
    pub(super) hidden: BTreeSet<ObjectId>,
    /// The temporary tables of the session.
    pub(super) temporary: TemporaryState,
}

impl<'r> ReadRows<'r> {
    pub(super) fn new(spaces: &'r Spaces, reads: Reads<'r>, steps: Steps) -> ReadRows<'r> {
        ReadRows {
            spaces,
            reads,
            steps,
            given: BTreeMap::new(),
            asked: BTreeMap::new(),
            passed: BTreeSet::new(),
            hidden: BTreeSet::new(),
            temporary: TemporaryState::default(),
        }
    }

    /// The same with the temporary tables of a session.
    pub(super) fn with_temporary(self, temporary: &TemporaryState) -> ReadRows<'r> {
        ReadRows { temporary: temporary.clone(), ..self }
    }

    /// Whether the rows with keys of this beginning are not seen yet.
    fn is_hidden(&self, key: &[u8]) -> bool {
        let id = key.first_chunk().map(|id| ObjectId::from_bytes(*id));
        !self.hidden.is_empty() && id.is_some_and(|id| self.hidden.contains(&id))
    }

    /// What is stored at a key, which may be the head of a row in pieces.
    fn stored(&mut self, space: Space, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let table = self.spaces.table(space);
        let found = match &mut self.reads {
            Reads::Nothing => return Err(reads_all_the_same()),
            Reads::Snapshot(snapshot) => snapshot.get(table, key),
            Reads::Newest { database, waits: true, .. } => database.get(table, key),
            Reads::Newest { database, is_later, .. } => {
                let mut read = pin!(database.get_async(table, key));
                match read.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                    Poll::Ready(found) => found,
                    Poll::Pending => {
                        *is_later = true;
                        return Err(ended());
                    }
                }
            }
        };
        found.map_err(super::failure::of_read)
    }

    /// Whether it would have had to wait, and is to be repeated.
    pub(super) fn is_later(&self) -> bool {
        matches!(self.reads, Reads::Newest { is_later: true, .. })
    }
}

impl Rows for ReadRows<'_> {
    fn get(&mut self, space: Space, key: &[u8]) -> Result<Option<Vec<u8>>> {
        if is_temporary_key(space, key) {
            return Ok(self.temporary.rows.get(space, key));
        }
        if self.is_hidden(key) {
            return Ok(None);
        }
        // The newest state may be another one between a head and its pieces.
        let is_newest = matches!(self.reads, Reads::Newest { .. });
        for _ in 0..if is_newest { GATHERS_MAX } else { 1 } {
            let Some(stored) = self.stored(space, key)? else { return Ok(None) };
            let Some(head) = Head::read(space, &stored) else { return Ok(Some(stored)) };
            let row = head.gather(key, |key| self.stored(pieces::SPACE, key))?;
            if row.is_some() {
                return Ok(row);
            }
            self.steps.check()?;
        }
        Err(pieces::damaged())
    }

    fn scan(&mut self, scan: Scan<'_>, found: &mut Vec<Entry>) -> Result<()> {
        if is_temporary_key(scan.space, scan.from) {
            self.temporary.rows.scan(&scan, found);
            return Ok(());
        }
        let snapshot = match self.reads {
            Reads::Snapshot(snapshot) => snapshot,
            Reads::Nothing => return Err(reads_all_the_same()),
            Reads::Newest { .. } => {
                return Err(Error::new(SqlState::INTERNAL, "a look-up of one row reads several"));
            }
        };
        if self.is_hidden(scan.from) {
            return Ok(());
        }
        let mut rows = snapshot.range(self.spaces.table(scan.space), bounds(&scan));
        for _ in 0..scan.rows_max {
            let Some(row) = (if scan.is_backward { rows.next_back() } else { rows.next() }) else {
                break;
            };
            found.push(row.map_err(super::failure::of_read)?);
        }
        Ok(())
    }

    fn put(&mut self, _: Space, _: &[u8], _: &[u8]) -> Result<()> {
        Err(Error::new(SqlState::INTERNAL, "a query writes"))
    }

    fn delete(&mut self, _: Space, _: &[u8]) -> Result<()> {
        Err(Error::new(SqlState::INTERNAL, "a query deletes"))
    }

    fn next(&mut self, sequence: ObjectId) -> Result<u64> {
        match sequence.is_temporary() {
            true => Ok(self.temporary.next_number(sequence)),
            false => Err(Error::new(SqlState::INTERNAL, "a query takes a number")),
        }
    }

    fn given(&mut self, id: ObjectId) -> Result<u64> {
        if id.is_temporary() {
            return Ok(self.temporary.given(id));
        }
        let Reads::Snapshot(snapshot) = self.reads else {
            return Err(Error::new(SqlState::INTERNAL, "a definition reads a snapshot"));
        };
        let before = match self.hidden.contains(&id) {
            true => 0,
            false => snapshot.sequence(sequence(id)).map_err(super::failure::of_read)?,
        };
        self.asked.insert(id, before);
        Ok(before + self.given.get(&id).copied().unwrap_or_default())
    }

    fn pass(&mut self, pass: &Pass) -> Result<Option<Vec<u8>>> {
        self.passed.extend(&pass.tables);
        Ok(None)
    }

    fn steps(&mut self, count: u64) -> Result<()> {
        self.steps.count(count)
    }
}

/// Allocates the numbers of a call, in the order that [`Numbers`] has.
pub(super) fn allocate(numbers: &BTreeMap<ObjectId, u32>, sequences: &mut nvcaracal::Sequences) {
    for (id, count) in numbers {
        for _ in 0..*count {
            sequences.allocate(sequence(*id));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::interrupt::{Cause, Interrupt};
    use super::super::options::StoreOptions;
    use super::super::pending::Promise;
    use super::super::pool::Pace;
    use super::*;

    fn pace() -> Pace {
        Pace::of(&StoreOptions::memory())
    }

    /// Counts until an error comes; what it is.
    fn ends(steps: &mut Steps) -> String {
        for _ in 0..1_000 {
            if let Err(error) = steps.count(100_000) {
                return error.state().code().to_owned();
            }
        }
        "goes on".to_owned()
    }

    #[test]
    fn what_computes_goes_on_while_its_answer_is_waited_for() {
        let pool = Arc::new(Pool::new(1, 1, pace()).unwrap());
        let (promise, pending) = Promise::new(Arc::default());
        let mut query = Steps::watched(u64::MAX, &pool, promise.watch(true));
        let mut write = Steps::watched(u64::MAX, &pool, promise.watch(false));
        assert_eq!(ends(&mut query), "goes on");
        assert_eq!(ends(&mut write), "goes on");
        assert!(pool.steps() >= 200_000_000, "the steps of all are counted");
        drop(pending);
        assert_eq!(ends(&mut query), "57014");
        assert!(query.is_ended());
        pool.end();
    }

    #[test]
    fn what_computes_hears_each_cause_and_the_end() {
        let pool = Arc::new(Pool::new(1, 1, pace()).unwrap());
        let connection = Arc::<Interrupt>::default();
        let run = |interrupt: &Arc<Interrupt>| {
            let (promise, pending) = Promise::new(Arc::clone(interrupt));
            (Steps::watched(u64::MAX, &pool, promise.watch(false)), pending)
        };
        for cause in [Cause::Request, Cause::Timeout, Cause::Disconnected] {
            let interrupt = Interrupt::within(&connection);
            let (mut steps, pending) = run(&interrupt);
            assert_eq!(ends(&mut steps), "goes on");
            pending.interrupt(cause);
            assert_eq!(ends(&mut steps), "57014", "{cause:?}");
        }
        let interrupt = Interrupt::within(&connection);
        let (mut steps, _pending) = run(&interrupt);
        connection.tell(Cause::Shutdown);
        assert_eq!(ends(&mut steps), "57P01");
        let (mut steps, _pending) = run(&Arc::default());
        pool.end();
        assert_eq!(ends(&mut steps), "57P01");
    }
}
