//! Where rows come from and go to, and the implementation in memory that tests and tools use.

use super::deferred::KeyCheck;
use super::pass::Pass;
use crate::ir::{Claim, ObjectId, Space};
use std::collections::BTreeMap;
use std::ops::Bound;
use values::{Error, Result, SqlState};

/// A key with its row.
pub type Entry = (Vec<u8>, Vec<u8>);

/// Which rows a scan finds: those with keys from `from` on and before `to`, in the order of their
/// keys or in the opposite one.
#[derive(Clone, Copy, Debug)]
pub struct Scan<'a> {
    /// Where the keys are.
    pub space: Space,
    /// The first key.
    pub from: &'a [u8],
    /// The first key that is too large.
    pub to: Option<&'a [u8]>,
    /// The most rows.
    pub rows_max: usize,
    /// Whether the last keys come first.
    pub is_backward: bool,
}

/// A transaction's view of the store.
pub trait Rows {
    /// The row with this key.
    fn get(&mut self, space: Space, key: &[u8]) -> Result<Option<Vec<u8>>>;

    /// Appends the rows of the scan. Fewer than its most say that there are no more.
    fn scan(&mut self, scan: Scan<'_>, found: &mut Vec<Entry>) -> Result<()>;

    /// Writes a row.
    fn put(&mut self, space: Space, key: &[u8], row: &[u8]) -> Result<()>;

    /// Writes a row whose key no row has now.
    fn insert(&mut self, space: Space, key: &[u8], row: &[u8]) -> Result<()> {
        self.put(space, key, row)
    }

    /// Whether what was written here is undone when the statement ends in an error.
    fn are_undone(&self) -> bool {
        false
    }

    /// Deletes a row, if it is there.
    fn delete(&mut self, space: Space, key: &[u8]) -> Result<()>;

    /// How many numbers the sequence has given before this call of it: 0, 1, 2 and so on.
    fn next(&mut self, sequence: ObjectId) -> Result<u64>;

    /// How many numbers the sequence has given: for definitions, which no replay runs.
    fn given(&mut self, _sequence: ObjectId) -> Result<u64> {
        Err(Error::new(SqlState::INTERNAL, "no definition asks what a sequence has given"))
    }

    /// A definition comes to a pass. What came of it, if it is known from an earlier run.
    ///
    /// # Errors
    /// That the pass cannot be run here and now.
    fn pass(&mut self, _pass: &Pass) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }

    /// What came of the last pass.
    fn passed(&mut self, _outcome: Vec<u8>) {}

    /// Whether what was written here is seen from now on, where writes are kept above other rows;
    /// whether it was so far. All others always see what they wrote.
    fn see_writes(&mut self, _are_seen: bool) -> bool {
        true
    }

    /// Keeps a check of a foreign key for later, if its constraint is deferred here. Returns
    /// whether it is; if not, the statement makes the check.
    fn defer(&mut self, _check: &KeyCheck<'_>) -> Result<bool> {
        Ok(false)
    }

    /// Whether a query passes by the row with this key, as another transaction has claimed it. A
    /// call knows only what its statement says.
    fn passes_by(&mut self, _key: &[u8], _claim: &Claim) -> Result<bool> {
        Ok(false)
    }

    /// A row of an answer is claimed. A call has nothing to keep apart from others.
    fn claim(&mut self, _key: Vec<u8>, _claim: &Claim) -> Result<()> {
        Ok(())
    }

    /// Tells listeners of a channel, once what runs has committed.
    ///
    /// # Errors
    /// That only calls do so, or that there is no memory for it.
    fn notify(&mut self, _channel: &str, _payload: &str) -> Result<()> {
        Err(Error::new(SqlState::INTERNAL, "only a call notifies"))
    }

    /// Counts work. An error ends the statement at the same step in each run of the same call.
    fn steps(&mut self, count: u64) -> Result<()>;
}

/// A store in memory.
#[derive(Clone, Debug)]
pub struct Memory {
    rows: BTreeMap<(Space, Vec<u8>), Vec<u8>>,
    counters: BTreeMap<ObjectId, u64>,
    /// What listeners are told: channels and payloads.
    notices: Vec<(String, String)>,
    steps: u64,
    steps_max: u64,
}

impl Memory {
    /// An empty store, in which each statement may do so many steps.
    pub fn new(steps_max: u64) -> Memory {
        let (rows, counters, notices) = Default::default();
        Memory { rows, counters, notices, steps: 0, steps_max }
    }

    /// Counts from 0 for the next statement.
    pub fn begin(&mut self) {
        self.steps = 0;
    }

    /// The steps since [`Memory::begin`].
    pub fn steps_done(&self) -> u64 {
        self.steps
    }

    /// All rows, for comparisons.
    pub fn rows(&self) -> impl Iterator<Item = (Space, &[u8], &[u8])> {
        self.rows.iter().map(|((space, key), row)| (*space, &key[..], &row[..]))
    }

    /// Deletes all keys with this beginning.
    pub fn clear(&mut self, space: Space, prefix: &[u8]) {
        self.rows.retain(|(own, key), _| *own != space || !key.starts_with(prefix));
    }

    /// A sequence begins again.
    pub fn restart(&mut self, sequence: ObjectId) {
        self.counters.remove(&sequence);
    }
}

impl Rows for Memory {
    fn get(&mut self, space: Space, key: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(self.rows.get(&(space, key.to_vec())).cloned())
    }

    fn scan(&mut self, scan: Scan<'_>, found: &mut Vec<Entry>) -> Result<()> {
        let Scan { space, from, to, rows_max, is_backward } = scan;
        let begin = Bound::Included((space, from.to_vec()));
        let end = match to {
            Some(to) => Bound::Excluded((space, to.max(from).to_vec())),
            None => Bound::Unbounded,
        };
        let all = self.rows.range((begin, end));
        let copied = |((_, key), row): (&(Space, Vec<u8>), &Vec<u8>)| (key.clone(), row.clone());
        let is_own = |((own, _), _): &(&(Space, Vec<u8>), &Vec<u8>)| *own == space;
        match is_backward {
            false => found.extend(all.take_while(is_own).take(rows_max).map(copied)),
            true => {
                found.extend(all.rev().skip_while(|row| !is_own(row)).take(rows_max).map(copied))
            }
        }
        Ok(())
    }

    fn put(&mut self, space: Space, key: &[u8], row: &[u8]) -> Result<()> {
        self.rows.insert((space, key.to_vec()), row.to_vec());
        Ok(())
    }

    fn delete(&mut self, space: Space, key: &[u8]) -> Result<()> {
        self.rows.remove(&(space, key.to_vec()));
        Ok(())
    }

    fn next(&mut self, sequence: ObjectId) -> Result<u64> {
        let counter = self.counters.entry(sequence).or_default();
        *counter += 1;
        Ok(*counter - 1)
    }

    fn given(&mut self, sequence: ObjectId) -> Result<u64> {
        Ok(self.counters.get(&sequence).copied().unwrap_or_default())
    }

    fn notify(&mut self, channel: &str, payload: &str) -> Result<()> {
        self.notices.push((channel.to_owned(), payload.to_owned()));
        Ok(())
    }

    fn steps(&mut self, count: u64) -> Result<()> {
        self.steps += count;
        if self.steps > self.steps_max {
            return Err(Error::new(
                SqlState::STATEMENT_TOO_COMPLEX,
                format!("statement does more than {} steps", self.steps_max),
            )
            .with_hint("Change fewer rows at a time."));
        }
        Ok(())
    }
}
