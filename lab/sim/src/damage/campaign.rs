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
pub struct DamageCounts {
    /// Stores that were damaged.
    pub cases: u64,
    /// By the first damage that was done.
    pub ends: BTreeMap<(Kind, End), u64>,
}

impl DamageCounts {
    /// Stores with such a first damage that ended so.
    #[must_use]
    pub fn count(&self, kind: Kind, end: End) -> u64 {
        self.ends.get(&(kind, end)).copied().unwrap_or(0)
    }
}

/// A store that ended in a way that is not right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamageViolation {
    /// The seed of the case, which repeats it.
    pub seed: u64,
    /// The store, what was done to it, and what was wrong.
    pub what: String,
}

/// Damages stores, one for each seed from the first, at most `cases`. `each` is called after every
/// case and says whether to go on. Returns what was seen until the end, or the first violation.
pub fn damage_campaign(
    first: u64,
    cases: Option<u64>,
    mut each: impl FnMut(&DamageCounts) -> bool,
) -> (DamageCounts, Option<DamageViolation>) {
    let mut counts = DamageCounts::default();
    let mut current: Option<(u64, Family)> = None;
    for seed in first..first.saturating_add(cases.unwrap_or(u64::MAX)) {
        let number = seed / CASES_OF_A_FAMILY;
        let found = match current.take().filter(|(of, _)| *of == number) {
            Some((_, family)) => Ok(family),
            None => Family::random(&mut Random::new(number)),
        };
        let end = found.and_then(|family| {
            let end = one_case(&family, &mut Random::new(!seed));
            current = Some((number, family));
            end
        });
        match end {
            Ok(end) => *counts.ends.entry(end).or_default() += 1,
            Err(what) => return (counts, Some(DamageViolation { seed, what })),
        }
        counts.cases += 1;
        if !each(&counts) {
            break;
        }
    }
    (counts, None)
}

/// The first damage that was done, and how it ended; or what was wrong.
fn one_case(family: &Family, random: &mut Random) -> Result<(Kind, End), String> {
    let run = catch_unwind(AssertUnwindSafe(|| case::run(family, random)));
    let Case { edits, store, end } = run.unwrap_or_else(|_| Err("it panicked".into()))?;
    end.map(|end| (edits[0].kind, end)).map_err(|what| {
        let edits: Vec<String> = edits.iter().map(ToString::to_string).collect();
        format!("{store}\n{}\n{what}", edits.join("\n"))
    })
}
