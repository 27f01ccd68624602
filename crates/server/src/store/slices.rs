//! Slices of what computes outside of calls: queries, blocks, definitions, rows of COPY. Between
//! two of them it looks whether it shall end, and gives its turn to others.

use super::failure;
use super::pending::Watch;
use super::pool::{Lent, Pool};
use super::turns::Turn;
use std::sync::Arc;
use std::time::Instant;
use values::Result;

/// Steps after which it looks around: well below a slice.
const LOOK_STEPS: u64 = 2_048;

/// The slices of one run.
pub(super) struct Slices {
    /// The steps that are left until it looks around.
    left: u64,
    began: Instant,
    count: u32,
    watch: Watch,
    pool: Arc<Pool>,
    /// The thread that stands in for this one after the first slice.
    lent: Option<Lent>,
    /// `None` in the first slice, and while it waits for others.
    turn: Option<Turn>,
    is_ended: bool,
}

impl Slices {
    pub(super) fn new(pool: &Arc<Pool>, watch: Watch) -> Slices {
        Slices {
            left: LOOK_STEPS,
            began: Instant::now(),
            count: 0,
            watch,
            pool: Arc::clone(pool),
            lent: None,
            turn: None,
            is_ended: false,
        }
    }

    pub(super) fn count(&mut self, count: u64) -> Result<()> {
        match self.left.checked_sub(count) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => self.look(count),
        }
    }

    /// Whether it was told to end.
    pub(super) fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// The error of what shall end.
    pub(super) fn check(&self) -> Result<()> {
        self.watch.check()
    }

    /// Gives its turn away before it waits for something.
    pub(super) fn rest(&mut self) {
        self.turn = None;
    }

    #[cold]
    fn look(&mut self, count: u64) -> Result<()> {
        self.pool.computed((LOOK_STEPS - self.left).saturating_add(count));
        self.left = LOOK_STEPS;
        if self.began.elapsed() >= self.pool.pace.slice {
            self.next()?;
        }
        let ends = match self.pool.has_ended() {
            true => Err(failure::cut_off()),
            false => self.watch.check(),
        };
        self.is_ended |= ends.is_err();
        ends
    }

    fn next(&mut self) -> Result<()> {
        self.count = self.count.saturating_add(1);
        if self.lent.is_none() {
            self.lent = Some(self.pool.lend()?);
        }
        if self.turn.is_none() || self.pool.turns.are_wanted() {
            self.turn = None;
            self.turn = Some(self.pool.turns.take(self.count));
        }
        (self.pool.pace.call)(&|| self.pool.has_ended() || self.watch.check().is_err());
        self.began = Instant::now();
        Ok(())
    }
}
