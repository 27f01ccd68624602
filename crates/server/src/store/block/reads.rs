//! What a statement of a block reads, and what an attempt to run it comes to.

use super::super::claims::{Claiming, Mode, Target};
use super::super::options::STEPS_AT_ONCE;
use super::super::pending::Watch;
use super::super::rows::{ReadRows, Reads, Steps};
use super::super::shared::Shared;
use super::numbers::Stock;
use sql::ir::{Claim, ObjectId, Space};
use sql::run::{Entry, Rows, Scan, is_temporary_key};
use std::collections::BTreeMap;
use values::{Error, Result, SqlState};

/// The state that a statement reads below the writes of its block.
pub(super) struct Below<'r> {
    pub(super) reads: Reads<'r>,
    /// How many single rows it may read, and nothing else; `None` for no limit.
    pub(super) gets_max: Option<u32>,
    /// What it looks at to learn whether it shall end; without it does little, or is repeated.
    pub(super) watch: Option<Watch>,
    /// How many releases of claims the state has the writes of.
    pub(super) since: u64,
}

impl Below<'_> {
    pub(super) fn steps(&self, shared: &Shared, max: u64) -> Steps {
        match &self.watch {
            Some(watch) => Steps::watched(max, &shared.pool, watch.clone()),
            None => Steps::new(max.min(STEPS_AT_ONCE)),
        }
    }
}

/// The outcome of an attempt to run a statement.
pub(super) enum Tried {
    Done(Result<sql::run::Answer>),
    /// It reads more than `Below` allows, or waits for an advisory lock.
    Later,
    /// It needs this many numbers of sequences, which are not reserved yet.
    Short(BTreeMap<ObjectId, usize>),
    /// Rows that it claims may have changed since the state that it has read.
    Changed,
    /// It waits for a claim.
    Blocked(Target, Mode),
}

/// The rows below a block, and its numbers.
pub(super) struct BlockReads<'r> {
    pub(super) read: ReadRows<'r>,
    /// How many single rows may be read, and nothing else; `None` for anything.
    gets_left: Option<u32>,
    pub(super) is_over: bool,
    stock: &'r Stock,
    pub(super) used: BTreeMap<ObjectId, usize>,
    /// The numbers that it has taken of temporary sequences.
    pub(super) own_numbers: BTreeMap<ObjectId, Vec<u64>>,
    pub(super) is_short: bool,
    pub(super) claiming: Option<Claiming<'r>>,
}

impl<'r> BlockReads<'r> {
    pub(super) fn new(
        read: ReadRows<'r>,
        gets_left: Option<u32>,
        stock: &'r Stock,
        claiming: Option<Claiming<'r>>,
    ) -> BlockReads<'r> {
        let (is_over, is_short) = (false, false);
        let (used, own_numbers) = Default::default();
        BlockReads { read, gets_left, is_over, stock, used, own_numbers, is_short, claiming }
    }

    fn over(&mut self) -> Error {
        self.is_over = true;
        Error::new(SqlState::INTERNAL, "the statement is repeated")
    }
}

impl Rows for BlockReads<'_> {
    fn get(&mut self, space: Space, key: &[u8]) -> Result<Option<Vec<u8>>> {
        if is_temporary_key(space, key) {
            return self.read.get(space, key);
        }
        match &mut self.gets_left {
            Some(0) => return Err(self.over()),
            Some(left) => *left -= 1,
            None => {}
        }
        self.read.get(space, key)
    }

    fn scan(&mut self, scan: Scan<'_>, found: &mut Vec<Entry>) -> Result<()> {
        match self.gets_left.filter(|_| !is_temporary_key(scan.space, scan.from)) {
            Some(_) => Err(self.over()),
            None => self.read.scan(scan, found),
        }
    }

    fn put(&mut self, space: Space, key: &[u8], row: &[u8]) -> Result<()> {
        self.read.put(space, key, row)
    }

    fn delete(&mut self, space: Space, key: &[u8]) -> Result<()> {
        self.read.delete(space, key)
    }

    fn next(&mut self, sequence: ObjectId) -> Result<u64> {
        if sequence.is_temporary() {
            let number = self.read.next(sequence)?;
            self.own_numbers.entry(sequence).or_default().push(number);
            return Ok(number);
        }
        let used = self.used.entry(sequence).or_default();
        let number = self.stock.peek(sequence, *used);
        *used += 1;
        self.is_short |= number.is_none();
        Ok(number.unwrap_or_default())
    }

    fn passes_by(&mut self, key: &[u8], claim: &Claim) -> Result<bool> {
        if claim.relation.is_temporary() {
            return Ok(false);
        }
        self.claiming.as_mut().map_or(Ok(false), |claiming| claiming.passes_by(key, claim))
    }

    fn claim(&mut self, key: Vec<u8>, claim: &Claim) -> Result<()> {
        if claim.relation.is_temporary() {
            return Ok(());
        }
        self.claiming.as_mut().map_or(Ok(()), |claiming| claiming.claim(key, claim))
    }

    fn steps(&mut self, count: u64) -> Result<()> {
        self.read.steps(count)
    }
}
