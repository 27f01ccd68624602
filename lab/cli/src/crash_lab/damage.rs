//! `sim --device damage`: stores damaged from outside.

use cli::output::{Done, JsonTarget};
use cli::signals::Signals;
use serde::Serialize;
use sim::damage::{DamageCounts, DamageKind, End, damage_campaign};

use super::exploring::Exploring;
use crate::args::SimArguments;

/// What was damaged, as shown.
#[derive(Debug, Serialize)]
struct Explored {
    device: &'static str,
    seed: u64,
    seconds: f64,
    interrupted: bool,
    cases: u64,
    damages: Vec<Damage>,
    refused_untouched: u64,
    recovered: u64,
    older_untold: u64,
    violations: u64,
    failure: Option<FailureShown>,
}

/// How stores ended to which this was done first.
#[derive(Debug, Serialize)]
struct Damage {
    damage: &'static str,
    refused_untouched: u64,
    recovered: u64,
    older_untold: u64,
}

#[derive(Debug, Serialize)]
struct FailureShown {
    seed: u64,
    violation: String,
    repeat: String,
}

/// Explores until the time is over, a violation is found, or a signal comes.
pub(super) fn run(arguments: &SimArguments, seed: u64, signals: &Signals) -> Done {
    let target = JsonTarget::open(arguments.json.as_deref())?;
    let exploring = Exploring::begin(arguments, arguments.cases, "stores", signals);
    let (counts, violation) = damage_campaign(seed, arguments.cases, |counts| {
        exploring.show(counts.cases, format!("{} stores", counts.cases));
        !exploring.is_over()
    });
    exploring.hide();
    let failure = violation.map(|violation| FailureShown {
        seed: violation.seed,
        violation: violation.what,
        repeat: format!("nvcaracal-lab sim --device damage --seed {} --cases 1", violation.seed),
    });
    let explored = Explored {
        device: "damage",
        seed,
        seconds: exploring.elapsed(),
        interrupted: exploring.interrupted(),
        cases: counts.cases,
        damages: DamageKind::ALL.map(|kind| damage(&counts, kind)).into(),
        refused_untouched: total(&counts, End::Refused),
        recovered: total(&counts, End::Recovered),
        older_untold: total(&counts, End::Older),
        violations: failure.iter().count() as u64,
        failure,
    };
    target.write(&explored, || text(&explored))?;
    exploring.end(explored.violations, signals)
}

fn damage(counts: &DamageCounts, kind: DamageKind) -> Damage {
    Damage {
        damage: kind.name(),
        refused_untouched: counts.count(kind, End::Refused),
        recovered: counts.count(kind, End::Recovered),
        older_untold: counts.count(kind, End::Older),
    }
}

fn total(counts: &DamageCounts, end: End) -> u64 {
    DamageKind::ALL.iter().map(|kind| counts.count(*kind, end)).sum()
}

fn text(explored: &Explored) -> String {
    let Explored { seed, seconds, cases, violations, .. } = explored;
    let mut text = format!("{cases} damaged stores from seed {seed}, {seconds:.1} s\n\n");
    text += &format!(
        "{:<24}{:>18}{:>12}{:>16}\n",
        "first damage", "refused untouched", "recovered", "older, untold"
    );
    let row = |name: &str, refused: u64, recovered: u64, older: u64| {
        format!("{name:<24}{refused:>18}{recovered:>12}{older:>16}\n")
    };
    for d in &explored.damages {
        text += &row(d.damage, d.refused_untouched, d.recovered, d.older_untold);
    }
    text += &row("all", explored.refused_untouched, explored.recovered, explored.older_untold);
    if explored.interrupted {
        text += "interrupted\n";
    }
    text += &format!("\n{violations} violations\n");
    if let Some(FailureShown { seed, violation, repeat }) = &explored.failure {
        text += &format!("\nVIOLATION in the case of seed {seed}:\n{violation}\n");
        text += &format!("repeat with: {repeat}\n");
    }
    text
}
