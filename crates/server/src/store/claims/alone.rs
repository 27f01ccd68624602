//! Claims of statements outside of blocks: they wait for those of blocks, and pass by them.

use super::super::pending::{Answer, Watch, keep_rows};
use super::super::pipeline::{Pipeline, Work};
use super::super::rows::{ReadRows, Reads, Steps};
use super::super::statement::{Planned, Statement};
use super::holding::{Claimed, Holding, Wanted, Woken};
use super::reads::Claiming;
use super::refused::refused;
use super::table::{Mode, Target};
use sql::Grant;
use sql::ir::{Claim, ObjectId, Space};
use sql::run::{Context, Entry, Overlay, Rows, Scan};
use std::sync::Arc;
use values::Result;

/// As often a statement reads again because claims were released meanwhile.
const CHANGES_MAX: u32 = 16;

/// The rows that a statement reads to learn which ones it claims.
struct AloneRows<'r> {
    read: ReadRows<'r>,
    claiming: Claiming<'r>,
}

impl Rows for AloneRows<'_> {
    fn get(&mut self, space: Space, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.read.get(space, key)
    }

    fn scan(&mut self, scan: Scan<'_>, found: &mut Vec<Entry>) -> Result<()> {
        self.read.scan(scan, found)
    }

    fn put(&mut self, space: Space, key: &[u8], row: &[u8]) -> Result<()> {
        self.read.put(space, key, row)
    }

    fn delete(&mut self, space: Space, key: &[u8]) -> Result<()> {
        self.read.delete(space, key)
    }

    /// The numbers are those of the call.
    fn next(&mut self, _sequence: ObjectId) -> Result<u64> {
        Ok(0)
    }

    fn passes_by(&mut self, key: &[u8], claim: &Claim) -> Result<bool> {
        self.claiming.passes_by(key, claim)
    }

    fn claim(&mut self, key: Vec<u8>, claim: &Claim) -> Result<()> {
        self.claiming.claim(key, claim)
    }

    fn steps(&mut self, count: u64) -> Result<()> {
        self.read.steps(count)
    }
}

/// What a statement that ran came to.
enum Ran {
    Done(Result<sql::run::Answer>),
    Changed,
    Blocked(Target, Mode),
    /// The catalog has changed.
    Moved,
}

/// A statement that claims rows while it runs.
struct Alone<'w> {
    work: &'w Work,
    statement: &'w Statement,
    planned: &'w Planned,
    watch: &'w Watch,
    memory: Arc<Grant>,
}

impl Pipeline {
    /// Runs a query that claims rows, once no block has them. Returns `None` if the catalog has
    /// changed.
    pub(in super::super) async fn query_unclaimed(
        &self,
        work: &Work,
        statement: &Statement,
        planned: &Planned,
        watch: &Watch,
    ) -> Result<Option<Answer>> {
        let memory = self.shared.memory.grant();
        let alone = Alone { work, statement, planned, watch, memory: Arc::clone(&memory) };
        match self.run_unclaimed(&alone).await? {
            None => Ok(None),
            Some(result) => {
                keep_rows(&memory, &result);
                result.map(|answer| Some(Answer::of(answer, Some(memory))))
            }
        }
    }

    /// Waits until no block has the rows that a statement claims which writes, nor their tables for
    /// itself. What the statement does is what its call does.
    pub(in super::super) async fn await_unclaimed(
        &self,
        work: &Work,
        statement: &Statement,
        planned: &Planned,
        watch: &Watch,
    ) -> Result<()> {
        if planned.awaits_rows() {
            let memory = self.shared.memory.grant();
            let alone = Alone { work, statement, planned, watch, memory };
            self.run_unclaimed(&alone).await?;
        } else {
            self.await_tables(planned.claims.iter(), watch).await?;
        }
        Ok(())
    }

    /// Waits until no block has a table of these claims for itself.
    ///
    /// # Errors
    /// What ends the waiting.
    pub(in super::super) async fn await_tables(
        &self,
        claims: impl Iterator<Item = &Claim>,
        watch: &Watch,
    ) -> Result<()> {
        let wanted = Wanted::tables_of(claims);
        if wanted.is_empty() {
            return Ok(());
        }
        let mut holding = self.shared.claims.holding(self.number, self.shared.memory.grant());
        while let Claimed::Blocked(target, mode) = holding.claim(&wanted, u64::MAX)? {
            if holding.wait(&target, mode, watch).await? == Woken::Without {
                holding.do_without(target);
            }
        }
        Ok(())
    }

    /// # Errors
    /// What ends the waiting. Errors of the statement itself are within.
    async fn run_unclaimed(&self, alone: &Alone<'_>) -> Result<Option<Result<sql::run::Answer>>> {
        let mut holding = self.shared.claims.holding(self.number, self.shared.memory.grant());
        let mut changes = 0;
        loop {
            let is_last = changes >= CHANGES_MAX;
            match self.run_once_unclaimed(alone, &mut holding, is_last).await? {
                Ran::Done(result) => return Ok(Some(result)),
                Ran::Moved => return Ok(None),
                Ran::Changed => changes += 1,
                Ran::Blocked(target, mode) => {
                    if holding.wait(&target, mode, alone.watch).await? == Woken::Without {
                        holding.do_without(target);
                    }
                }
            }
        }
    }

    async fn run_once_unclaimed(
        &self,
        alone: &Alone<'_>,
        holding: &mut Holding,
        is_last: bool,
    ) -> Result<Ran> {
        let (shared, watch) = (&self.shared, alone.watch);
        let since = if is_last { u64::MAX } else { shared.claims.released() };
        let snapshot = watch.interrupt().or(self.snapshot_of_all()).await??;
        if !shared.is_of_now(alone.statement) {
            return Ok(Ran::Moved);
        }
        let steps = Steps::watched(u64::MAX, &shared.pool, watch.clone());
        let read = ReadRows::new(&shared.spaces, Reads::Snapshot(&snapshot), steps);
        let mut rows = AloneRows { read, claiming: Claiming::new(holding, &alone.planned.claims) };
        let grant = Some(Arc::clone(&alone.memory));
        let services = Some(self.services());
        let system = alone.planned.system(&alone.work.session, services);
        let context = Context { grant, system, ..self.context(alone.work, Some(alone.planned)) };
        let mut overlay = Overlay::new(&mut rows);
        let result = sql::run::run(&alone.planned.plan, &context, &mut overlay);
        drop(overlay);
        watch.check()?;
        let (wanted, _): (Vec<Wanted>, _) = rows.claiming.end();
        if result.is_err() {
            return Ok(Ran::Done(result));
        }
        Ok(match holding.claim(&wanted, since)? {
            Claimed::Held => Ran::Done(result),
            Claimed::Changed => Ran::Changed,
            Claimed::Blocked(target, mode) => Ran::Blocked(target, mode),
            Claimed::Refused(target) => return Err(refused(shared, &target)),
        })
    }
}
