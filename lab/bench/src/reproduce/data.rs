//! What runs came to: one line of JSON for each, and numbers of all rounds.

use bench::report::Spread;
use std::collections::{BTreeMap, HashMap};

use bench::{BenchError, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::machine::Machine;
use super::plan::{Run, Source, Use};
use super::scale::Scale;
use super::scenario::{Best, Metric};
use crate::cost::{Price, price_all};

/// What a run came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Its JSON.
    Report(Value),
    /// This build has no such design, device or option; its words.
    Unsupported(String),
    /// It failed; its words.
    Failed(String),
}

/// Under what the runs of a directory were made: results of one build at one scale only can be
/// compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// How large the runs are.
    pub scale: Scale,
    /// Names the bytes of the program.
    pub build: String,
    /// What it was built from, if known.
    pub commit: Option<String>,
    /// Where it ran.
    pub machine: Machine,
}

/// One line of `runs.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    /// Under what it was made.
    #[serde(flatten)]
    pub session: Session,
    /// What followed `bench` on its command line.
    pub command: String,
    /// The device as named there.
    pub device: String,
    /// What that device is, in the words of the run.
    pub device_model: Option<String>,
    /// The round, from 0.
    pub round: u64,
    /// Where it is shown.
    pub uses: Vec<Use>,
    /// What it came to.
    #[serde(flatten)]
    pub outcome: Outcome,
}

impl Recorded {
    /// The line of a run that was made.
    #[must_use]
    pub fn new(session: &Session, run: &Run, outcome: Outcome) -> Self {
        let device_model = match &outcome {
            // What a model says of it is of the model.
            Outcome::Report(report) if report["is_model"] != true => {
                report["device_note"].as_str().map(str::to_string)
            }
            _ => None,
        };
        Self {
            session: session.clone(),
            command: run.command(),
            device: run.device.clone(),
            device_model,
            round: run.round,
            uses: run.uses.clone(),
            outcome,
        }
    }
}

/// All runs that were made.
#[derive(Debug, Clone, Default)]
pub struct Found {
    by_command: HashMap<String, BTreeMap<u64, Outcome>>,
    /// By device, what it is.
    pub(super) devices: BTreeMap<String, String>,
}

impl Found {
    /// Reads the lines of `runs.jsonl`.
    ///
    /// # Errors
    /// `Usage` if they are of another scale or build, or no such lines.
    pub fn read(text: &str, session: &Session) -> Result<Self> {
        let mut found = Self::default();
        for (index, line) in text.lines().enumerate() {
            let refused = |why: String| {
                let advice = "choose another --out, or remove that file";
                BenchError::Usage(format!("line {} of runs.jsonl {why}; {advice}", index + 1))
            };
            let run: Recorded = serde_json::from_str(line)
                .map_err(|error| refused(format!("is no run: {error}")))?;
            let Session { scale, build, .. } = &run.session;
            if *scale != session.scale {
                let (is, asked) = (scale.name(), session.scale.name());
                return Err(refused(format!("is of scale {is}, asked for is {asked}")));
            }
            if *build != session.build {
                return Err(refused("was made by another build of this program".into()));
            }
            found.add(run);
        }
        Ok(found)
    }

    /// Under what the first of some lines of `runs.jsonl` was made.
    ///
    /// # Errors
    /// `Usage` if there is none, or it is no such line.
    pub fn session_of(text: &str) -> Result<Session> {
        let none = || BenchError::Usage("there are no runs in runs.jsonl".into());
        let run = serde_json::from_str::<Recorded>(text.lines().next().ok_or_else(none)?);
        let run = run.map_err(|error| {
            BenchError::Usage(format!("line 1 of runs.jsonl is no run: {error}"))
        })?;
        Ok(run.session)
    }

    /// Takes a run; one that was made again takes the place of the earlier one.
    pub fn add(&mut self, run: Recorded) {
        if let Some(model) = run.device_model {
            self.devices.insert(run.device, model);
        }
        self.by_command.entry(run.command).or_default().insert(run.round, run.outcome);
    }

    /// Whether a run was made and reported. One that failed may be tried again.
    #[must_use]
    pub fn has(&self, run: &Run) -> bool {
        let rounds = self.by_command.get(&run.command());
        matches!(rounds.and_then(|rounds| rounds.get(&run.round)), Some(Outcome::Report(_)))
    }

    /// How many runs reported.
    #[must_use]
    pub fn reports(&self) -> usize {
        let outcomes = self.by_command.values().flat_map(BTreeMap::values);
        outcomes.filter(|outcome| matches!(outcome, Outcome::Report(_))).count()
    }

    /// How many rounds of a command reported.
    pub(super) fn rounds(&self, command: &str) -> usize {
        let outcomes = self.by_command.get(command).into_iter().flat_map(BTreeMap::values);
        outcomes.filter(|outcome| matches!(outcome, Outcome::Report(_))).count()
    }

    /// The same runs with their costs at the same prices, and these.
    pub(super) fn with_costs(&self) -> (Self, BTreeMap<String, Price>) {
        let mut found = self.clone();
        let outcomes = found.by_command.values_mut().flat_map(BTreeMap::values_mut);
        let prices = price_all(outcomes.filter_map(|outcome| match outcome {
            Outcome::Report(report) => Some(report),
            Outcome::Unsupported(_) | Outcome::Failed(_) => None,
        }));
        (found, prices)
    }

    /// A metric of a bar or point, by round. Where the best round counts, it is the best of the
    /// others, so that what depends on a single round shows in the range.
    pub(super) fn numbers(&self, source: &Source, metric: &Metric) -> BTreeMap<u64, f64> {
        let rounds = self.by_command.get(&source.command).into_iter().flatten();
        let number = |(round, outcome): (&u64, &Outcome)| match (outcome, source.cores) {
            (Outcome::Report(report), None) => Some((*round, number(report, metric)?)),
            (Outcome::Report(report), Some(cores)) => {
                Some((*round, number(&model_of(report, cores)?, metric)?))
            }
            _ => None,
        };
        let by_round: BTreeMap<u64, f64> = rounds.filter_map(number).collect();
        match metric.best {
            None => by_round,
            Some(best) => best_of_others(&by_round, best),
        }
    }

    /// The same over all rounds.
    pub(super) fn spread(&self, source: &Source, metric: &Metric) -> Option<Spread> {
        Spread::of(self.numbers(source, metric).into_values())
    }

    /// Why a command has no numbers.
    pub(super) fn why_none(&self, command: &str) -> Option<String> {
        let Some(rounds) = self.by_command.get(command) else {
            return Some("it has not run yet".into());
        };
        if rounds.values().any(|outcome| matches!(outcome, Outcome::Report(_))) {
            return None;
        }
        rounds.values().find_map(|outcome| match outcome {
            Outcome::Report(_) => None,
            Outcome::Unsupported(words) => Some(format!("this build cannot run it: {words}")),
            Outcome::Failed(words) => Some(format!("the run failed: {words}")),
        })
    }

    /// What failed, with the words of the first failure of each command.
    pub(super) fn failures(&self) -> Vec<(String, String)> {
        let mut failures: Vec<_> = self
            .by_command
            .iter()
            .filter_map(|(command, rounds)| {
                let words = rounds.values().find_map(|outcome| match outcome {
                    Outcome::Failed(words) => Some(words.clone()),
                    _ => None,
                })?;
                Some((command.clone(), words))
            })
            .collect();
        failures.sort();
        failures
    }
}

/// For each round the best number of all others; of a single round, its own.
fn best_of_others(by_round: &BTreeMap<u64, f64>, best: Best) -> BTreeMap<u64, f64> {
    let better = |a: f64, b: f64| match best {
        Best::Most => a.max(b),
        Best::Least => a.min(b),
    };
    let of_others = |(round, own): (&u64, &f64)| {
        let others = by_round.iter().filter(|(other, _)| *other != round);
        (*round, others.map(|(_, number)| *number).reduce(better).unwrap_or(*own))
    };
    by_round.iter().map(of_others).collect()
}

/// The report of a model as if so many cores were the most that it was asked for.
fn model_of(report: &Value, cores: u64) -> Option<Value> {
    let points = report.get("points")?.as_array()?;
    let point = points.iter().find(|point| point["cores"].as_u64() == Some(cores))?;
    let mut model = report.clone();
    model["last"] = point.clone();
    model["workers"] = point["cores"].clone();
    model["throughput_txn_per_s"] = point["throughput_txn_per_s"].clone();
    Some(model)
}

/// A metric of the JSON of a run; nothing if a part of it is not there or there is nothing to
/// divide by.
fn number(report: &Value, metric: &Metric) -> Option<f64> {
    let at =
        |path: &String| path.split('.').try_fold(report, |value, name| value.get(name))?.as_f64();
    let sum = |paths: &[String]| paths.iter().map(at).sum::<Option<f64>>();
    let top = sum(&metric.top)?;
    let bottom = if metric.bottom.is_empty() { 1.0 } else { sum(&metric.bottom)? };
    (bottom != 0.0).then(|| metric.factor * top / bottom)
}
