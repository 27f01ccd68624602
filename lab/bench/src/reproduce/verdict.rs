//! Whether a statement of the paper holds here: the rule of its scenario, applied to what the runs
//! came to. Numbers of two runs are compared within a round only.

use std::collections::BTreeMap;

use serde::Serialize;

use super::data::{Found, Spread};
use super::plan::{Cell, Plan};
use super::scale::Scale;
use super::scenario::{Metric, Scenario};
use super::statement::{As, Rule, Statement, Take};

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

/// One number of ours beside a statement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ours {
    /// The workload, or what became of several.
    pub of: String,
    /// The series that it is compared with, where there are several.
    pub over: Option<String>,
    /// Over all rounds.
    #[serde(flatten)]
    pub spread: Spread,
    /// With its unit, for people.
    pub text: String,
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
            let (ours, missing) = Judge { plan, found, scenario, rule }.numbers();
            let (verdict, why) = verdict(plan, statement, rule, &ours, missing);
            (ours, verdict, why)
        }
    };
    let clock = statement.rule.as_ref().and_then(|rule| by_clock(plan, rule));
    let by_clock = clock.map(|rule| Judge { plan, found, scenario, rule: &rule }.numbers().0);
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

struct Judge<'a> {
    plan: &'a Plan,
    found: &'a Found,
    scenario: &'a Scenario,
    rule: &'a Rule,
}

impl Judge<'_> {
    /// Our numbers, and why one is missing, if one is.
    fn numbers(&self) -> (Vec<Ours>, Option<String>) {
        let mut missing = None;
        let mut each = Vec::new();
        let nothing = [self.rule.of.clone()];
        let over = if self.rule.over.is_empty() { &nothing[..] } else { &self.rule.over[..] };
        for (index, workload) in self.rule.workloads.iter().enumerate() {
            let other = self.rule.over_workloads.get(index).unwrap_or(workload);
            for over in over {
                match self.rounds(workload, over, other) {
                    Ok(rounds) => each.push((workload.as_str(), over.as_str(), rounds)),
                    Err(why) => missing = missing.or(Some(why)),
                }
            }
        }
        let ours = match self.rule.take {
            Take::Each => {
                each.iter().filter_map(|(of, over, rounds)| self.one(of, over, rounds)).collect()
            }
            // The mean of what is there is none of all.
            _ if missing.is_some() => Vec::new(),
            take => {
                let each: Vec<_> = each.into_iter().map(|(.., rounds)| rounds).collect();
                self.together(take, &each).into_iter().collect()
            }
        };
        let nothing = || "no round has all of the runs".to_string();
        let missing = missing.or_else(|| ours.is_empty().then(nothing));
        (ours, missing)
    }

    /// The statement's number in each round; or why there is none.
    fn rounds(
        &self,
        workload: &str,
        over: &str,
        over_workload: &str,
    ) -> Result<BTreeMap<u64, f64>, String> {
        let Rule { metric, of, over_metric, form, .. } = self.rule;
        let own = self.of_series(workload, of, metric)?;
        if *form == As::Value {
            return Ok(own);
        }
        let other_metric = over_metric.as_ref().unwrap_or(metric);
        if *form == As::TimesTheRatio {
            let ratio = |workload| {
                let own = self.of_series(workload, of, metric)?;
                Ok::<_, String>(ratios(&own, &self.of_series(workload, over, other_metric)?))
            };
            return something(ratios(&ratio(workload)?, &ratio(over_workload)?), over, workload);
        }
        let other = self.of_series(over_workload, over, other_metric)?;
        let compared = own.into_iter().filter_map(|(round, number)| {
            let other = *other.get(&round)?;
            let by = (other != 0.0).then(|| number / other);
            let number = match form {
                As::PercentMore => 100.0 * (by? - 1.0),
                As::PointsMore => number - other,
                As::Value | As::Times | As::TimesTheRatio => by?,
            };
            Some((round, number))
        });
        something(compared.collect(), over, over_workload)
    }

    fn of_series(
        &self,
        workload: &str,
        series: &str,
        metric: &str,
    ) -> Result<BTreeMap<u64, f64>, String> {
        let suite = &self.plan.suite;
        let (workload, metric) = (suite.workload(workload), suite.metric(metric));
        let found = self.scenario.series.iter().find(|known| known.name == series);
        let series = found.unwrap_or_else(|| panic!("no series {series}"));
        let cell = Cell { workload, device: &self.scenario.devices[0], series };
        let source = self.plan.source(self.scenario, &cell);
        let numbers = self.found.numbers(&source, metric);
        let of = || format!("{}, {}", series.name, workload.title);
        match (numbers.is_empty(), self.found.why_none(&source.command)) {
            (false, _) => Ok(numbers),
            (true, Some(why)) => Err(format!("{}: {why}", of())),
            (true, None) => Err(format!("{}: its report has no {}", of(), metric.title)),
        }
    }

    fn one(&self, workload: &str, over: &str, rounds: &BTreeMap<u64, f64>) -> Option<Ours> {
        let over = (self.rule.over.len() > 1).then(|| over.to_string());
        self.ours(self.plan.suite.workload(workload).title.clone(), over, rounds)
    }

    /// One number of all workloads in each round in which all have one.
    fn together(&self, take: Take, each: &[BTreeMap<u64, f64>]) -> Option<Ours> {
        let rounds = each.first().into_iter().flat_map(BTreeMap::keys).filter_map(|round| {
            let numbers: Option<Vec<f64>> =
                each.iter().map(|rounds| rounds.get(round).copied()).collect();
            let numbers = numbers?;
            let number = match take {
                Take::Each | Take::Mean => numbers.iter().sum::<f64>() / numbers.len() as f64,
                Take::Median => Spread::of(numbers)?.median,
                Take::Most => numbers.into_iter().fold(f64::NEG_INFINITY, f64::max),
                Take::Least => numbers.into_iter().fold(f64::INFINITY, f64::min),
            };
            Some((*round, number))
        });
        let rounds: BTreeMap<u64, f64> = rounds.collect();
        let words = match take {
            Take::Each | Take::Mean => "mean",
            Take::Median => "median",
            Take::Most => "most",
            Take::Least => "least",
        };
        self.ours(format!("{words} of {} workloads", each.len()), None, &rounds)
    }

    fn ours(&self, of: String, over: Option<String>, rounds: &BTreeMap<u64, f64>) -> Option<Ours> {
        let spread = Spread::of(rounds.values().copied())?;
        let text = show(spread, self.rule.form, self.plan.suite.metric(&self.rule.metric));
        Some(Ours { of, over, spread, text })
    }
}

/// Numbers by others of the same round.
fn ratios(own: &BTreeMap<u64, f64>, others: &BTreeMap<u64, f64>) -> BTreeMap<u64, f64> {
    let ratio = |(round, number): (&u64, &f64)| {
        let other = others.get(round).filter(|other| **other != 0.0)?;
        Some((*round, number / other))
    };
    own.iter().filter_map(ratio).collect()
}

/// What was compared, if it was anything.
fn something(
    compared: BTreeMap<u64, f64>,
    over: &str,
    workload: &str,
) -> Result<BTreeMap<u64, f64>, String> {
    match compared.is_empty() {
        true => Err(format!("{over}, {workload}: there is nothing to compare with")),
        false => Ok(compared),
    }
}

/// A number with its unit, and its range where rounds differ.
fn show(spread: Spread, form: As, metric: &Metric) -> String {
    let digits = metric.digits;
    let one = |number: f64| match form {
        As::Value => format!("{number:.digits$}"),
        As::PercentMore => format!("{number:+.1}"),
        As::PointsMore => format!("{number:+.digits$}"),
        As::Times | As::TimesTheRatio => format!("{number:.2}"),
    };
    let unit = match form {
        As::Value if metric.unit.starts_with('%') => "%",
        As::PointsMore if metric.unit.starts_with('%') => "percentage points",
        As::Value | As::PointsMore => metric.unit.as_str(),
        As::PercentMore => "%",
        As::Times | As::TimesTheRatio => "times",
    };
    let (median, least, most) = (one(spread.median), one(spread.least), one(spread.most));
    if least == most {
        return format!("{median} {unit}");
    }
    format!("{median} {unit} ({least} to {most})")
}
