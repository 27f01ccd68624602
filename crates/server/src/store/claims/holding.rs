//! What a block or a statement has claimed.

use super::super::advisory::LockTable;
use super::super::pending::Watch;
use super::super::pool::{Pool, lock};
use super::table::{Mode, Owner, Table, Target, Waiting};
use sql::Grant;
use sql::ir::{Claim, ObjectId, Wait};
use sql::parse::LockMode;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use values::{Error, Result, SqlState};

pub(in super::super) use super::table::Woken;

/// The most claims of a block.
pub(super) const CLAIMS_MAX: usize = 100_000;
/// The bytes of a claim beside the key, twice: with its owner and with its place.
const CLAIM_BYTES: usize = 384;
/// The most rows that others have claimed of which a call says that it passes by them.
const PASSED_MAX: usize = 1_000;
/// As many claims are released at once; more by a thread of the pool.
const RELEASED_AT_ONCE: usize = 64;

/// The claims of all blocks.
pub(in super::super) struct Claims {
    table: Mutex<Table>,
    /// Advisory locks: sessions may wait for each other by both.
    locks: Arc<LockTable>,
    pool: Arc<Pool>,
    owners: AtomicU64,
}

/// A claim that a statement needs.
pub(in super::super) struct Wanted {
    pub(in super::super) target: Target,
    pub(in super::super) mode: Mode,
    pub(in super::super) wait: Wait,
}

/// What came of claims.
#[derive(Debug)]
pub(in super::super) enum Claimed {
    Held,
    /// The statement must run again: what it read may be old, or others have claimed a row that it
    /// did not pass by.
    Changed,
    /// It waits for this.
    Blocked(Target, Mode),
    /// It fails, as others have this.
    Refused(Target),
}

/// The claims of a block or a statement, until this is dropped.
pub(in super::super) struct Holding {
    claims: Arc<Claims>,
    owner: Owner,
    memory: Arc<Grant>,
    /// Whether there are any.
    is_used: bool,
    /// What the statement that runs does without.
    without: BTreeSet<Target>,
}

/// Ends the waiting when it is dropped.
struct Waits<'c> {
    claims: &'c Claims,
    owner: Owner,
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        drop(lock(&self.claims.table).end_wait(self.owner));
    }
}

impl Claims {
    pub(in super::super) fn new(pool: &Arc<Pool>, locks: &Arc<LockTable>) -> Arc<Claims> {
        let (table, pool) = (Mutex::new(Table::new()), Arc::clone(pool));
        Arc::new(Claims { table, locks: Arc::clone(locks), pool, owners: AtomicU64::new(0) })
    }

    /// No claims of a new owner, of the connection with the number `session`.
    pub(in super::super) fn holding(
        self: &Arc<Claims>,
        session: u64,
        memory: Arc<Grant>,
    ) -> Holding {
        let owner = Owner { number: self.owners.fetch_add(1, Ordering::Relaxed), session };
        let claims = Arc::clone(self);
        Holding { claims, owner, memory, is_used: false, without: BTreeSet::new() }
    }

    /// Ends circles of claims and advisory locks through a session that waits for an advisory lock.
    pub(in super::super) fn break_circles(&self, session: u64) {
        lock(&self.table).break_circles(session, &|session| self.locks.blockers(session));
    }

    /// How many releases there were: what is read from now on has what was written before them.
    pub(in super::super) fn released(&self) -> u64 {
        lock(&self.table).released()
    }

    /// The keys of rows that blocks have claimed, and that a statement with these claims passes by.
    ///
    /// # Errors
    /// That there are too many of them.
    pub(in super::super) fn passed(&self, claims: &[Claim]) -> Result<Vec<Vec<u8>>> {
        let mut keys = BTreeSet::new();
        let table = lock(&self.table);
        for claim in claims.iter().filter(|claim| claim.wait == Wait::Skip) {
            let mode = Mode::Row(claim.strength);
            let (found, has_more) = table.claimed_rows(claim.relation, mode, PASSED_MAX);
            keys.extend(found);
            if has_more || keys.len() > PASSED_MAX {
                let message = format!(
                    "blocks have locked more than {PASSED_MAX} rows that the statement would skip"
                );
                let hint = "Run it in a block.";
                return Err(Error::new(SqlState::LIMIT_EXCEEDED, message).with_hint(hint));
            }
        }
        Ok(keys.into_iter().collect())
    }
}

impl Holding {
    /// Whether there may be claims.
    pub(in super::super) fn is_used(&self) -> bool {
        self.is_used
    }

    /// A statement begins.
    pub(in super::super) fn begin_statement(&mut self) {
        self.without.clear();
    }

    /// The statement does without a claim.
    pub(in super::super) fn do_without(&mut self, target: Target) {
        self.without.insert(target);
    }

    /// How many claims there are: a mark to come back to.
    pub(in super::super) fn mark(&self) -> usize {
        if self.is_used { lock(&self.claims.table).count(self.owner) } else { 0 }
    }

    /// Releases what was claimed since the mark.
    pub(in super::super) fn roll_back(&mut self, mark: usize) {
        if self.is_used {
            lock(&self.claims.table).release(self.owner, mark);
        }
    }

    /// Whether others have claimed a row, so that SKIP LOCKED passes by it.
    pub(super) fn is_blocked(&self, key: &[u8], mode: Mode) -> bool {
        lock(&self.claims.table).is_blocked(self.owner, &Target::Row(key.to_vec()), mode)
    }

    /// Claims one after the other, for a statement that began to read after `since` releases.
    ///
    /// # Errors
    /// Of a limit.
    pub(in super::super) fn claim(&mut self, wanted: &[Wanted], since: u64) -> Result<Claimed> {
        let mut table = lock(&self.claims.table);
        let mut is_changed = false;
        for Wanted { target, mode, wait } in wanted {
            if table.has(self.owner, target, *mode) || self.without.contains(target) {
                continue;
            }
            if table.is_blocked(self.owner, target, *mode) {
                return Ok(match wait {
                    Wait::Wait => Claimed::Blocked(target.clone(), *mode),
                    Wait::Skip => Claimed::Changed,
                    Wait::Fail => Claimed::Refused(target.clone()),
                });
            }
            if table.count(self.owner) >= CLAIMS_MAX {
                return Err(too_many());
            }
            self.memory.grow(CLAIM_BYTES + 2 * target.bytes())?;
            self.is_used = true;
            is_changed |= table.was_released(target, since);
            assert!(table.claim(self.owner, target, *mode), "nothing is in the way");
        }
        Ok(if is_changed { Claimed::Changed } else { Claimed::Held })
    }

    /// Waits for a claim.
    ///
    /// # Errors
    /// What ends the statement meanwhile, `lock_timeout`, and a limit.
    pub(in super::super) async fn wait(
        &mut self,
        target: &Target,
        mode: Mode,
        watch: &Watch,
    ) -> Result<Woken> {
        let waiting = {
            let mut table = lock(&self.claims.table);
            if table.count(self.owner) >= CLAIMS_MAX {
                return Err(too_many());
            }
            self.memory.grow(CLAIM_BYTES + 2 * target.bytes())?;
            self.is_used = true;
            let locks = &self.claims.locks;
            table.wait(self.owner, target, mode, &|session| locks.blockers(session))
        };
        let over = match waiting {
            Waiting::Over(woken) => return Ok(woken),
            Waiting::For(over) => over,
        };
        let _waits = Waits { claims: &self.claims, owner: self.owner };
        let woken = watch.interrupt().or_in_time(over).await?;
        Ok(woken.expect("those that wait are told before they are forgotten"))
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        if !self.is_used {
            return;
        }
        let (claims, owner) = (Arc::clone(&self.claims), self.owner);
        let count = lock(&claims.table).count(owner);
        if count <= RELEASED_AT_ONCE {
            lock(&claims.table).release(owner, 0);
            return;
        }
        // What is dropped here may be on a thread that runs epochs.
        let memory = Arc::clone(&self.memory);
        let pool = Arc::clone(&claims.pool);
        let release = Release { claims, owner, _memory: memory };
        pool.spawn(async move { drop(release) });
    }
}

/// Releases all claims of an owner when it is dropped, wherever that is.
struct Release {
    claims: Arc<Claims>,
    owner: Owner,
    _memory: Arc<Grant>,
}

impl Drop for Release {
    fn drop(&mut self) {
        // Part by part: others go on between.
        loop {
            let mut table = lock(&self.claims.table);
            let left = table.count(self.owner).saturating_sub(RELEASED_AT_ONCE);
            table.release(self.owner, left);
            if left == 0 {
                break;
            }
        }
    }
}

impl Target {
    fn bytes(&self) -> usize {
        match self {
            Target::Relation(_) => 0,
            Target::Row(key) => key.len(),
        }
    }

    /// The table that it is of.
    pub(in super::super) fn relation(&self) -> Option<ObjectId> {
        match self {
            Target::Relation(id) => Some(*id),
            Target::Row(key) => key.first_chunk().map(|id| ObjectId::from_bytes(*id)),
        }
    }
}

impl Wanted {
    /// What a plan with these claims needs whatever rows there are: that no other block has one of
    /// the tables for itself.
    pub(super) fn tables_of<'c>(claims: impl Iterator<Item = &'c Claim>) -> Vec<Wanted> {
        let mut relations = BTreeSet::new();
        let new = claims.filter(|claim| relations.insert(claim.relation));
        new.map(|claim| Wanted {
            target: Target::Relation(claim.relation),
            mode: Mode::Relation(LockMode::RowShare),
            // As in PostgreSQL SKIP LOCKED and NOWAIT are about rows.
            wait: Wait::Wait,
        })
        .collect()
    }
}

/// The error of a block with too many claims.
pub(super) fn too_many() -> Error {
    let message = format!("a block locks more than {CLAIMS_MAX} rows and tables");
    Error::new(SqlState::LIMIT_EXCEEDED, message).with_hint("Commit more often.")
}
