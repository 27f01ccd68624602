//! The locks that one session has.

use super::super::pool::lock;
use super::table::{Key, LockTable, Owner, Waiting, too_many};
use sql::ir::AdvisoryMode;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex};
use values::{Result, Timestamp};

/// The most locks of a session, each counted as often as it was taken.
const LOCKS_MAX: usize = 16_384;

/// What ends locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum LockEnd {
    /// The transaction has ended.
    Transaction,
    /// A statement of the transaction has failed: what was taken since the last savepoint, or
    /// since it began, is given back.
    Failure,
    /// The session gives back all that it has.
    Session,
}

/// A lock, and whether it is shared.
type Taken = (Key, bool);

#[derive(Default)]
struct Own {
    of_session: BTreeMap<Taken, u32>,
    count: usize,
    /// Those of the transaction, in the order in which they were taken.
    of_transaction: Vec<Taken>,
    known: BTreeSet<Taken>,
    /// Names of savepoints, each with how many locks the transaction had.
    savepoints: Vec<(String, usize)>,
}

/// The locks of a session, which are given back when this is dropped.
pub(in super::super) struct SessionLocks {
    table: Arc<LockTable>,
    /// The number of the connection.
    pub(in super::super) number: u64,
    /// `pg_backend_pid()`
    pub(in super::super) process: AtomicI32,
    own: Mutex<Own>,
    /// Whether the session has taken any yet, or may.
    is_used: AtomicBool,
}

impl SessionLocks {
    pub(in super::super) fn new(table: &Arc<LockTable>, number: u64) -> Arc<SessionLocks> {
        let (process, own, is_used) = Default::default();
        Arc::new(SessionLocks { table: Arc::clone(table), number, process, own, is_used })
    }

    /// Notes that a statement may take locks.
    pub(in super::super) fn use_from_now(&self) {
        self.is_used.store(true, Ordering::Relaxed);
    }

    /// Whether there is anything to end.
    pub(in super::super) fn are_used(&self) -> bool {
        self.is_used.load(Ordering::Relaxed)
    }

    fn owner(&self) -> Owner {
        Owner { number: self.number, process: self.process.load(Ordering::Relaxed) }
    }

    /// Whether the transaction has this lock already, which is enough.
    fn check(&self, key: Key, mode: AdvisoryMode) -> Result<bool> {
        let own = lock(&self.own);
        if mode.is_of_transaction && own.known.contains(&(key, mode.is_shared)) {
            return Ok(true);
        }
        match own.count + own.of_transaction.len() >= LOCKS_MAX {
            true => Err(too_many(LOCKS_MAX)),
            false => Ok(false),
        }
    }

    fn note(&self, key: Key, mode: AdvisoryMode) {
        let (mut own, taken) = (lock(&self.own), (key, mode.is_shared));
        if mode.is_of_transaction {
            own.of_transaction.push(taken);
            own.known.insert(taken);
        } else {
            own.count += 1;
            *own.of_session.entry(taken).or_default() += 1;
        }
    }

    /// Takes a lock, unless it would have to be waited for; whether it did.
    pub(in super::super) fn take_now(&self, key: Key, mode: AdvisoryMode) -> Result<bool> {
        if self.check(key, mode)? {
            return Ok(true);
        }
        let is_taken = self.table.take_now(key, self.owner(), mode.is_shared)?;
        if is_taken {
            self.note(key, mode);
        }
        Ok(is_taken)
    }

    /// Begins to wait for a lock.
    pub(in super::super) fn wait(
        &self,
        key: Key,
        mode: AdvisoryMode,
        since: Timestamp,
    ) -> Result<Waiting> {
        self.table.wait(key, self.owner(), mode.is_shared, since)
    }

    /// Waits until the session has the lock.
    pub(in super::super) async fn taken(&self, waiting: Waiting, key: Key, mode: AdvisoryMode) {
        waiting.taken().await;
        self.note(key, mode);
    }

    /// Gives a lock of the session back; whether it had it.
    pub(in super::super) fn unlock(&self, key: Key, is_shared: bool) -> bool {
        let mut own = lock(&self.own);
        let taken = (key, is_shared);
        let Some(count) = own.of_session.get_mut(&taken) else { return false };
        *count -= 1;
        if *count == 0 {
            own.of_session.remove(&taken);
        }
        own.count -= 1;
        drop(own);
        self.table.give_back(key, self.owner(), is_shared);
        true
    }

    /// Gives all locks of the session back, and none of its transaction.
    pub(in super::super) fn unlock_all(&self) {
        let mut own = lock(&self.own);
        own.count = 0;
        let all = std::mem::take(&mut own.of_session);
        drop(own);
        for ((key, is_shared), count) in all {
            (0..count).for_each(|_| self.table.give_back(key, self.owner(), is_shared));
        }
    }

    /// Gives back what the transaction has taken behind so many locks.
    fn back_to(&self, mark: usize) {
        let mut own = lock(&self.own);
        let all = own.of_transaction.split_off(mark);
        for taken in &all {
            own.known.remove(taken);
        }
        drop(own);
        for (key, is_shared) in all {
            self.table.give_back(key, self.owner(), is_shared);
        }
    }

    pub(in super::super) fn end(&self, end: LockEnd) {
        match end {
            LockEnd::Transaction => {
                self.begin();
                self.back_to(0);
            }
            LockEnd::Failure => {
                let mark = lock(&self.own).savepoints.last().map_or(0, |(_, mark)| *mark);
                self.back_to(mark);
            }
            LockEnd::Session => {
                self.back_to(0);
                self.unlock_all();
            }
        }
    }

    /// A block begins, which has no savepoint.
    pub(in super::super) fn begin(&self) {
        lock(&self.own).savepoints.clear();
    }

    /// The transaction has a savepoint.
    pub(in super::super) fn savepoint(&self, name: &str) {
        let mut own = lock(&self.own);
        let mark = own.of_transaction.len();
        own.savepoints.push((name.to_owned(), mark));
    }

    /// A savepoint goes; what was taken since is kept, or given back if it is `rolled_back`, which
    /// leaves it.
    pub(in super::super) fn end_savepoint(&self, name: &str, rolled_back: bool) {
        let mut own = lock(&self.own);
        let Some(at) = own.savepoints.iter().rposition(|(own, _)| own == name) else { return };
        let mark = own.savepoints[at].1;
        own.savepoints.truncate(at + usize::from(rolled_back));
        drop(own);
        if rolled_back {
            self.back_to(mark);
        }
    }
}

impl Drop for SessionLocks {
    fn drop(&mut self) {
        self.end(LockEnd::Session);
    }
}
