//! Whether a statement of the paper holds here: the rule of its scenario, applied to what the runs
//! came to (`numbers`).

use bench::report::Spread;
use serde::Serialize;

use super::data::Found;
use super::numbers::{Numbers, Ours};
use super::plan::Plan;
use super::scale::Scale;
use super::scenario::Scenario;
use super::statement::{As, Rule, Statement};

/// What is to be said of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// As in the paper; in no round another tendency.
    Holds,
    /// The same tendency, and further from its bound than the paper's number.
    HoldsByMore,
    /// The same tendency, but less of it, not in all workloads, or not in all rounds.
    HoldsMoreWeakly,
    /// Otherwise.
    DoesNotHold,
    /// A time whose rounds range over more than what decides.
    RoundsDiffer,
    /// No run can tell.
    CannotBeShown,
}

impl Verdict {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Holds,
        Self::HoldsByMore,
        Self::HoldsMoreWeakly,
        Self::DoesNotHold,
        Self::RoundsDiffer,
        Self::CannotBeShown,
    ];

    /// For people.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::HoldsByMore => "holds, by more",
            Self::RoundsDiffer => "no verdict: rounds differ",
            Self::HoldsMoreWeakly => "holds more weakly",
            Self::DoesNotHold => "does not hold",
            Self::CannotBeShown => "cannot be shown here",
        }
    }
}

/// A statement and what is to be said of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judged {
    /// The scenario.
    pub figure: String,
    /// Section of the paper.
    pub section: String,
    /// The statement.
    pub says: String,
    /// The paper's numbers.
    pub paper: String,
    /// Ours.
    pub ours: Vec<Ours>,
    /// The same by the clock, which judges nothing where neighbours change it most.
    pub by_clock: Vec<Ours>,
    /// Whether it holds.
    pub verdict: Verdict,
    /// Why not, where it does not; why by more, where it does so.
    pub reason: Option<String>,
}

/// Judges a statement of a scenario.
pub(super) fn judge(
    plan: &Plan,
    found: &Found,
    scenario: &Scenario,
    statement: &Statement,
) -> Judged {
    let (ours, verdict, reason) = match &statement.rule {
        None => (Vec::new(), Verdict::CannotBeShown, Some(statement.reason.clone())),
        Some(rule) => {
            let (ours, missing) = Numbers { plan, found, scenario, rule }.all();
            let (verdict, why) = verdict(plan, statement, rule, &ours, missing);
            (ours, verdict, why)
        }
    };
    let clock = statement.rule.as_ref().and_then(|rule| by_clock(plan, rule));
    let by_clock = clock.map(|rule| Numbers { plan, found, scenario, rule: &rule }.all().0);
    Judged {
        figure: scenario.figure.clone(),
        section: statement.section.clone(),
        says: statement.says.clone(),
        paper: statement.paper.clone(),
        ours,
        by_clock: by_clock.unwrap_or_default(),
        verdict,
        reason,
    }
}

/// The same rule of what a clock measured, where that is shown beside what is judged.
fn by_clock(plan: &Plan, rule: &Rule) -> Option<Rule> {
    let metric = plan.suite.metric(&rule.metric).clock.clone()?;
    Some(Rule { metric, ..rule.clone() })
}

/// The verdict, and why it is not that the statement holds.
fn verdict(
    plan: &Plan,
    statement: &Statement,
    rule: &Rule,
    ours: &[Ours],
    missing: Option<String>,
) -> (Verdict, Option<String>) {
    let cannot = |why: String| (Verdict::CannotBeShown, Some(why));
    let timed = |name: &String| plan.suite.metric(name).timed;
    let is_timed = timed(&rule.metric) || rule.over_metric.iter().any(timed);
    if let Some(why) = missing {
        return cannot(why);
    }
    if plan.scale == Scale::Smoke && is_timed {
        return cannot("At this scale runs are tiny, and their times mean nothing.".into());
    }
    if let Some(only) = statement.only.filter(|only| *only != plan.scale) {
        return cannot(format!("Only runs of scale {} can tell.", only.name()));
    }
    if let Some(why) = rounds_differ(rule, ours).filter(|_| is_timed) {
        return (Verdict::RoundsDiffer, Some(why));
    }
    let all_in = |range: [f64; 2]| ours.iter().all(|number| is_in(number.spread.median, range));
    let some_in = |range: [f64; 2]| ours.iter().any(|number| is_in(number.spread.median, range));
    if all_in(rule.holds) {
        return match rounds_apart(rule, ours) {
            None if by_more(rule).is_some_and(all_in) => {
                (Verdict::HoldsByMore, statement.above.clone())
            }
            None => (Verdict::Holds, None),
            why => (Verdict::HoldsMoreWeakly, why),
        };
    }
    let weakly =
        rule.weaker.is_some() && ours.iter().all(|number| is_weak(number.spread.median, rule));
    let reason = Some(reason(statement, rule, ours));
    match weakly || (ours.len() > 1 && mostly(ours, rule.holds) && some_in(rule.holds)) {
        true => (Verdict::HoldsMoreWeakly, reason),
        false => (Verdict::DoesNotHold, reason),
    }
}

/// Where a number is further from the bound of an open range than the paper's by more than the
/// paper's is from that bound.
fn by_more(rule: &Rule) -> Option<[f64; 2]> {
    let number = rule.number?;
    match rule.holds {
        [low, high] if high.is_infinite() => Some([2.0 * number - low, high]),
        [low, high] if low.is_infinite() => Some([low, 2.0 * number - high]),
        _ => None,
    }
}

/// The reason that fits what came out: one for numbers below what holds, one for those above, or
/// both.
fn reason(statement: &Statement, rule: &Rule, ours: &[Ours]) -> String {
    let [low, high] = rule.holds;
    let some = |is_apart: &dyn Fn(f64) -> bool| ours.iter().any(|of| is_apart(of.spread.median));
    let is_below = some(&|number| number < low);
    let is_above = some(&|number| number > high);
    // Where nothing can be below, there is only one way to be apart.
    let above = statement.above.as_ref().unwrap_or(&statement.reason);
    match (is_below, is_above) {
        (true, true) if above != &statement.reason => format!("{} {above}", statement.reason),
        (false, true) => above.to_string(),
        _ => statement.reason.clone(),
    }
}

/// Whether no number can be below what holds.
pub(super) fn is_open_below(rule: &Rule) -> bool {
    let is_positive = matches!(rule.form, As::Value | As::Times | As::TimesTheRatio);
    rule.holds[0].is_infinite() || (is_positive && rule.holds[0] == 0.0)
}

/// Why there is no verdict on a time: the rounds range over more than the way from the median to
/// the nearest bound.
fn rounds_differ(rule: &Rule, ours: &[Ours]) -> Option<String> {
    let bounds = rule.holds.into_iter().chain(rule.weaker.into_iter().flatten());
    let decides = |bound: &f64| bound.is_finite() && !(is_open_below(rule) && *bound == 0.0);
    let bounds: Vec<f64> = bounds.filter(decides).collect();
    let differ = |number: &&Ours| {
        let Spread { median, least, most } = number.spread;
        let margin =
            bounds.iter().map(|bound| (median - bound).abs()).fold(f64::INFINITY, f64::min);
        most - least > margin
    };
    let differing: Vec<&str> = ours.iter().filter(differ).map(|of| of.of.as_str()).collect();
    (!differing.is_empty()).then(|| {
        let differing = differing.join("; ");
        format!("The rounds range over more than the margin of the verdict: {differing}.")
    })
}

/// Why medians that are as in the paper do not show it, if rounds are not as in the paper, not even
/// more weakly.
fn rounds_apart(rule: &Rule, ours: &[Ours]) -> Option<String> {
    let is_apart =
        |number: &&Ours| !(is_weak(number.spread.least, rule) && is_weak(number.spread.most, rule));
    let apart: Vec<&str> = ours.iter().filter(is_apart).map(|number| number.of.as_str()).collect();
    (!apart.is_empty()).then(|| {
        let apart = apart.join("; ");
        format!("The medians are as in the paper, but not every round is: {apart}.")
    })
}

/// Whether a number is as in the paper, or more weakly so.
fn is_weak(number: f64, rule: &Rule) -> bool {
    is_in(number, rule.holds) || rule.weaker.is_some_and(|weaker| is_in(number, weaker))
}

/// Whether at least three of four numbers are in a range.
fn mostly(ours: &[Ours], range: [f64; 2]) -> bool {
    let inside = ours.iter().filter(|number| is_in(number.spread.median, range)).count();
    inside * 4 >= ours.len() * 3
}

fn is_in(number: f64, range: [f64; 2]) -> bool {
    (range[0]..=range[1]).contains(&number)
}
