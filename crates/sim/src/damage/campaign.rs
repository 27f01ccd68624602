//! Many damaged stores.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::case::{self, Case, End};
use super::edit::Kind;
use super::family::Family;
use crate::history::Random;

/// Damages of stores of one family.
const CASES_OF_A_FAMILY: u64 = 200;

/// How the damaged stores ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DamageTally {
    /// Stores that were damaged.
    pub cases: u64,
    /// By the first damage that was done.
    pub ends: BTreeMap<(Kind, End), u64>,
}

impl DamageTally {
    /// Stores with such a first damage that ended so.
    #[must_use]
    pub fn count(&self, kind: Kind, end: End) -> u64 {
        self.ends.get(&(kind, end)).copied().unwrap_or(0)
    }
}

/// A store that ended in a way that is not right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamageViolation {
    /// Number of the case, with which it is repeated.
    pub case: u64,
    /// The store, what was done to it, and what was wrong.
    pub what: String,
}

/// Damages `cases` stores, all of which follow from the seed, beginning with case `first`. `each` is
/// called after every case and says whether to go on.
///
/// # Errors
/// The first violation.
pub fn damage_campaign(
    seed: u64,
    (first, cases): (u64, u64),
    mut each: impl FnMut(&DamageTally) -> bool,
) -> Result<DamageTally, DamageViolation> {
    let mut tally = DamageTally::default();
    let mut family: Option<(u64, Family)> = None;
    for case in first..first + cases {
        let number = case / CASES_OF_A_FAMILY;
        let violation = |what: String| DamageViolation { case, what };
        let (_, current) = match family.take().filter(|(of, _)| *of == number) {
            Some(family) => family,
            None => (number, Family::random(&mut random(seed, number)).map_err(violation)?),
        };
        let mut own = random(seed ^ 0x6461_6d61_6765, case);
        let run = catch_unwind(AssertUnwindSafe(|| case::run(&current, &mut own)));
        let Case { edits, store, end } = run
            .unwrap_or_else(|_| Err("it panicked".into()))
            .map_err(|what| DamageViolation { case, what })?;
        match end {
            Ok(end) => *tally.ends.entry((edits[0].kind, end)).or_default() += 1,
            Err(what) => {
                let edits: Vec<String> = edits.iter().map(ToString::to_string).collect();
                let what = format!("{store}\n{}\n{what}", edits.join("\n"));
                return Err(DamageViolation { case, what });
            }
        }
        tally.cases += 1;
        family = Some((number, current));
        if !each(&tally) {
            break;
        }
    }
    Ok(tally)
}

fn random(seed: u64, number: u64) -> Random {
    Random::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number)
}
