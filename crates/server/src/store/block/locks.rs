//! What a block claims beside the rows of its answers, and how it waits.

use super::super::claims::{Claimed, Mode, Target, Wanted, Woken, refused};
use super::super::pending::Watch;
use super::super::pipeline::Pipeline;
use super::super::pool::lock;
use super::super::shared::Shared;
use super::state::BlockState;
use values::Result;

impl BlockState {
    /// A statement begins, which waits for all that it claims.
    pub(super) fn begin_statement(&mut self) {
        self.holding.iter_mut().for_each(|holding| holding.begin_statement());
    }

    /// Waits for a claim. One that would never come is done without.
    ///
    /// # Errors
    /// What ends the statement meanwhile.
    pub(super) async fn wait(&mut self, target: Target, mode: Mode, watch: &Watch) -> Result<()> {
        let holding = self.holding.as_mut().expect("it has not committed");
        if holding.wait(&target, mode, watch).await? == Woken::Without {
            holding.do_without(target);
        }
        Ok(())
    }

    /// LOCK TABLE: claims tables one after the other.
    ///
    /// # Errors
    /// What ends the waiting, and that others have a table, if it does not wait.
    pub(super) async fn lock(
        &mut self,
        shared: &Shared,
        tables: &[Wanted],
        watch: &Watch,
    ) -> Result<()> {
        self.begin_statement();
        for table in tables {
            loop {
                let holding = self.holding.as_mut().expect("it has not committed");
                // What it reads next is newer than any release so far.
                match holding.claim(std::slice::from_ref(table), u64::MAX)? {
                    Claimed::Held | Claimed::Changed => break,
                    Claimed::Refused(target) => return Err(refused(shared, &target)),
                    Claimed::Blocked(target, mode) => self.wait(target, mode, watch).await?,
                }
            }
        }
        Ok(())
    }
}

impl Pipeline {
    /// The block has failed: what it has claimed since its last savepoint is others' again.
    pub(in super::super) fn release_failed(&self) {
        if let Some(block) = lock(&self.block).as_mut() {
            block.release_failed();
        }
    }
}
