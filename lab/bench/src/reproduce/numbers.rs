//! Our numbers beside a statement of the paper: what its rule makes of what the runs came to.
//! Numbers of two runs are compared within a round only.

use bench::report::Spread;
use std::collections::BTreeMap;

use serde::Serialize;

use super::data::Found;
use super::plan::{Cell, Plan};
use super::scenario::{Metric, Scenario};
use super::statement::{As, Rule, Take};

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

/// The statement's number on a workload, by round.
struct Compared<'a> {
    workload: &'a str,
    over: &'a str,
    rounds: BTreeMap<u64, f64>,
}

/// Where the numbers of a statement are.
pub(super) struct Numbers<'a> {
    pub(super) plan: &'a Plan,
    pub(super) found: &'a Found,
    pub(super) scenario: &'a Scenario,
    pub(super) rule: &'a Rule,
}

impl Numbers<'_> {
    /// Our numbers, and why one is missing, if one is.
    pub(super) fn all(&self) -> (Vec<Ours>, Option<String>) {
        let mut missing = None;
        let mut each = Vec::new();
        let nothing = [self.rule.of.clone()];
        let over = if self.rule.over.is_empty() { &nothing[..] } else { &self.rule.over[..] };
        for (index, workload) in self.rule.workloads.iter().enumerate() {
            let other = self.rule.over_workloads.get(index).unwrap_or(workload);
            for over in over {
                match self.rounds(workload, over, other) {
                    Ok(rounds) => each.push(Compared { workload, over, rounds }),
                    Err(why) => missing = missing.or(Some(why)),
                }
            }
        }
        let ours = match self.rule.take {
            Take::Each => {
                each.iter().filter_map(|of| self.one(of.workload, of.over, &of.rounds)).collect()
            }
            // The mean of what is there is none of all.
            _ if missing.is_some() => Vec::new(),
            take if take.counts() => match self.count(&each) {
                Ok(count) => vec![count],
                Err(why) => {
                    missing = Some(why);
                    Vec::new()
                }
            },
            take => {
                let each: Vec<_> = each.into_iter().map(|of| of.rounds).collect();
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

    /// How many numbers are on one side of what they are compared with, with their whole range.
    fn count(&self, each: &[Compared<'_>]) -> Result<Ours, String> {
        let Rule { form, take, .. } = self.rule;
        let same = match form {
            As::Times | As::TimesTheRatio => 1.0,
            As::Value | As::PercentMore | As::PointsMore => 0.0,
        };
        let mut counted = Vec::new();
        for Compared { workload, rounds, .. } in each {
            let title = &self.plan.suite.workload(workload).title;
            let spread = Spread::of(rounds.values().copied()).filter(|_| rounds.len() > 1);
            let spread = spread.ok_or_else(|| format!("{title}: one round has no range"))?;
            let is_counted = match take {
                Take::CountAbove => spread.least > same,
                _ => spread.most < same,
            };
            if is_counted {
                counted.push(title.as_str());
            }
        }
        let number = counted.len() as f64;
        let of = match counted.is_empty() {
            true => "none".to_string(),
            false => counted.join("; "),
        };
        let text = format!("{number} of {} workloads", each.len());
        let spread = Spread { median: number, least: number, most: number };
        Ok(Ours { of, over: None, spread, text })
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
                Take::Median => Spread::of(numbers)?.median,
                Take::Most => numbers.into_iter().fold(f64::NEG_INFINITY, f64::max),
                Take::Least => numbers.into_iter().fold(f64::INFINITY, f64::min),
                _ => numbers.iter().sum::<f64>() / numbers.len() as f64,
            };
            Some((*round, number))
        });
        let rounds: BTreeMap<u64, f64> = rounds.collect();
        let words = match take {
            Take::Median => "median",
            Take::Most => "most",
            Take::Least => "least",
            _ => "mean",
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
