//! What a statement finds out about claims while it reads.

use super::holding::{CLAIMS_MAX, Holding, Wanted, too_many};
use super::table::{Mode, Target};
use sql::ir::{Claim, Wait};
use std::collections::BTreeSet;
use values::{Error, Result, SqlState};

/// The most claimed rows that a statement passes by.
const PASSED_MAX: usize = 10_000;

/// The claims that a statement makes, and those of others that it passes by.
pub(in super::super) struct Claiming<'h> {
    holding: &'h Holding,
    /// What the plan claims, whatever rows there are.
    claims: &'h [Claim],
    passed: BTreeSet<Vec<u8>>,
    rows: Vec<(Vec<u8>, Mode, Wait)>,
}

impl<'h> Claiming<'h> {
    /// Those of a plan that claims rows.
    pub(in super::super) fn of(holding: &'h Holding, claims: &'h [Claim]) -> Option<Claiming<'h>> {
        (!claims.is_empty()).then(|| Claiming::new(holding, claims))
    }

    pub(in super::super) fn new(holding: &'h Holding, claims: &'h [Claim]) -> Claiming<'h> {
        Claiming { holding, claims, passed: BTreeSet::new(), rows: Vec::new() }
    }

    pub(in super::super) fn passes_by(&mut self, key: &[u8], claim: &Claim) -> Result<bool> {
        if self.passed.contains(key) {
            return Ok(true);
        }
        if !self.holding.is_blocked(key, Mode::Row(claim.strength)) {
            return Ok(false);
        }
        if self.passed.len() >= PASSED_MAX {
            let message = format!("a statement skips more than {PASSED_MAX} locked rows");
            let hint = "Let the blocks that lock them commit more often.";
            return Err(Error::new(SqlState::LIMIT_EXCEEDED, message).with_hint(hint));
        }
        self.passed.insert(key.to_vec());
        Ok(true)
    }

    pub(in super::super) fn claim(&mut self, key: Vec<u8>, claim: &Claim) -> Result<()> {
        if self.rows.len() >= CLAIMS_MAX {
            return Err(too_many());
        }
        self.rows.push((key, Mode::Row(claim.strength), claim.wait));
        Ok(())
    }

    /// The claims that it needs, and the keys that it has passed by.
    pub(in super::super) fn end(self) -> (Vec<Wanted>, Vec<Vec<u8>>) {
        let mut wanted = Wanted::tables_of(self.claims.iter());
        wanted.extend(self.rows.into_iter().map(|(key, mode, wait)| {
            let target = Target::Row(key);
            Wanted { target, mode, wait }
        }));
        (wanted, self.passed.into_iter().collect())
    }
}
