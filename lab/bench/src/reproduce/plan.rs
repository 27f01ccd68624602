//! Which runs the figures need, in which order. A run that several figures show is made once.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::scale::Scale;
use super::scenario::{FILES, MODEL_CORES, Scenario, Series, Suite, USUAL_DESIGN, Workload};

/// What is reproduced, and how often everything runs.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The figures.
    pub suite: Suite,
    /// How large the runs are.
    pub scale: Scale,
    /// How often each of them is made.
    pub rounds: u64,
    /// Worker threads.
    pub workers: usize,
    /// Names the data and the stream of calls.
    pub seed: u64,
}

/// Where a run is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Use {
    /// The scenario.
    pub scenario: String,
    /// The workload in it.
    pub workload: String,
    /// The series in it.
    pub series: String,
}

/// One run that is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// For people.
    pub what: String,
    /// What follows `bench` on its command line; where the JSON goes is not in it.
    pub words: Vec<String>,
    /// The device.
    pub device: String,
    /// The round, from 0.
    pub round: u64,
    /// All figures that show it.
    pub uses: Vec<Use>,
}

impl Run {
    /// Its command line, by which its result is found again.
    #[must_use]
    pub fn command(&self) -> String {
        self.words.join(" ")
    }
}

/// Where the numbers of a bar or point are.
pub(super) struct Source {
    /// The run.
    pub(super) command: String,
    /// The cores in it, if it is a model.
    pub(super) cores: Option<u64>,
}

/// One bar or point of a figure.
pub(super) struct Cell<'a> {
    pub(super) workload: &'a Workload,
    pub(super) device: &'a str,
    pub(super) series: &'a Series,
}

/// A bar or point, and its figure.
struct Place<'a> {
    scenario: &'a Scenario,
    cell: Cell<'a>,
}

impl Plan {
    /// All runs, in the order in which they are to be made: in each round each series of each
    /// workload once, those of all figures one after the other, so that what the machine does
    /// meanwhile hits all of them. Each round begins with another series.
    #[must_use]
    pub fn runs(&self) -> Vec<Run> {
        let workloads = self.by_workload();
        let mut runs: Vec<Run> = Vec::new();
        let mut known = HashMap::new();
        for round in 0..self.rounds {
            for places in &workloads {
                let first = (round as usize * places.len()).div_ceil(self.rounds as usize);
                for Place { scenario, cell } in places[first..].iter().chain(&places[..first]) {
                    let run = self.run(scenario, cell, round);
                    let at = *known.entry((round, run.command())).or_insert(runs.len());
                    match runs.get_mut(at) {
                        Some(run) => run.uses.push(used(scenario, cell)),
                        None => runs.push(run),
                    }
                }
            }
        }
        runs
    }

    /// All bars and points of all figures, by workload and device.
    fn by_workload(&self) -> Vec<Vec<Place<'_>>> {
        let mut all: Vec<Vec<Place<'_>>> = Vec::new();
        for scenario in &self.suite.scenarios {
            for (workload, device) in self.groups(scenario) {
                let places = scenario
                    .series
                    .iter()
                    .map(|series| Place { scenario, cell: Cell { workload, device, series } });
                let is_of = |known: &&mut Vec<Place<'_>>| {
                    known[0].cell.workload.name == workload.name && known[0].cell.device == device
                };
                match all.iter_mut().find(is_of) {
                    Some(known) => known.extend(places),
                    None => all.push(places.collect()),
                }
            }
        }
        all
    }

    /// The groups of bars of a figure: each workload on each device.
    pub(super) fn groups<'a>(
        &'a self,
        scenario: &'a Scenario,
    ) -> impl Iterator<Item = (&'a Workload, &'a str)> {
        scenario.devices.iter().flat_map(|device| {
            let workloads = scenario.workloads.iter();
            workloads.map(|name| (self.suite.workload(name), device.as_str()))
        })
    }

    fn run(&self, scenario: &Scenario, cell: &Cell<'_>, round: u64) -> Run {
        let what = format!("{}: {}, {}", scenario.figure, cell.workload.title, cell.series.name);
        let device = device_of(cell).to_string();
        let words = self.words(scenario, cell);
        Run { what, words, device, round, uses: vec![used(scenario, cell)] }
    }

    /// Where the numbers of a bar or point are.
    pub(super) fn source(&self, scenario: &Scenario, cell: &Cell<'_>) -> Source {
        Source { command: self.words(scenario, cell).join(" "), cores: cell.series.cores }
    }

    /// The words after `bench`. This is the only place that knows how they are put together; an
    /// option that comes later takes the place of an earlier one of the same name.
    fn words(&self, scenario: &Scenario, cell: &Cell<'_>) -> Vec<String> {
        let Cell { workload, series, .. } = cell;
        let size = workload.size(self.scale);
        if workload.is_of_partitions() {
            return self.words_of_partitions(scenario, cell);
        }
        if workload.is_of_interfaces() {
            return self.words_of_interfaces(scenario, cell);
        }
        let (epoch_size, epochs) = epochs_of(size.epoch_size, size.epochs, series.epoch_share);
        let mut options = Words::default();
        options.add(&workload.options);
        options.add(&size.options);
        options.add(&format!("--epoch-size {epoch_size} --epochs {epochs}"));
        options.add(&scenario.options);
        options.add(&series.options);
        if let Some(bytes) = options.number("--cache-bytes") {
            let bytes = (bytes as f64 * series.cache_times).round() as u64;
            options.add(&format!("--cache-bytes {bytes}"));
        }
        if series.cores.is_some() {
            let cores = MODEL_CORES.map(|cores| cores.to_string()).join(",");
            options.add(&format!("--model {cores}"));
        }
        // The design that every build has needs no name.
        if series.design != USUAL_DESIGN {
            options.add(&format!("--design {}", series.design));
        }
        let workers = series.workers.unwrap_or(self.workers);
        let (seed, device) = (self.seed, device_of(cell));
        if device != FILES {
            options.add(&format!("--device {device}"));
        }
        options.add(&format!("--workers {workers} --seed {seed}"));
        options.add("--no-check --no-progress --limits=never");
        if series.cores.is_some() {
            // The same model, whichever figure asks for it.
            options.0[1..].sort_unstable();
        }
        options.0.into_iter().flatten().collect()
    }

    /// The same of a storage engine with partitions, which has no epochs.
    fn words_of_partitions(&self, scenario: &Scenario, cell: &Cell<'_>) -> Vec<String> {
        let Cell { workload, series, .. } = cell;
        let size = workload.size(self.scale);
        let mut options = Words::default();
        options.add(&workload.options);
        options.add(&size.options);
        options.add(&format!("--transactions {}", size.epoch_size * size.epochs));
        options.add(&scenario.options);
        options.add(&series.options);
        let (design, device, seed) = (&series.design, device_of(cell), self.seed);
        let partitions = series.workers.unwrap_or(self.workers);
        options.add(&format!("--engine {design} --device {device} --partitions {partitions}"));
        options.add(&format!("--seed {seed} --cost"));
        options.0.into_iter().flatten().collect()
    }

    /// The same of chunks of memory and of files, which no engine writes.
    fn words_of_interfaces(&self, scenario: &Scenario, cell: &Cell<'_>) -> Vec<String> {
        let Cell { workload, series, .. } = cell;
        let size = workload.size(self.scale);
        let mut options = Words::default();
        options.add(&workload.options);
        options.add(&size.options);
        options.add(&format!("--writes {}", size.epoch_size * size.epochs));
        options.add(&scenario.options);
        options.add(&series.options);
        options.0.into_iter().flatten().collect()
    }
}

fn device_of<'a>(cell: &Cell<'a>) -> &'a str {
    cell.series.device.as_deref().unwrap_or(cell.device)
}

fn used(scenario: &Scenario, cell: &Cell<'_>) -> Use {
    Use {
        scenario: scenario.figure.clone(),
        workload: cell.workload.name.clone(),
        series: cell.series.name.clone(),
    }
}

/// Epochs of a share of the usual size, and as many of them as there are in as many transactions.
fn epochs_of(epoch_size: u64, epochs: u64, share: f64) -> (u64, u64) {
    let of_share = ((epoch_size as f64 * share).round() as u64).max(1);
    (of_share, (epoch_size * epochs).div_ceil(of_share))
}

/// A word and the values that follow it, as often as there are.
#[derive(Default)]
struct Words(Vec<Vec<String>>);

impl Words {
    /// The number that follows a word, if both are there.
    fn number(&self, word: &str) -> Option<u64> {
        self.0.iter().find(|known| known[0] == word)?.get(1)?.parse().ok()
    }

    fn add(&mut self, text: &str) {
        let mut added: Vec<Vec<String>> = Vec::new();
        for word in text.split_whitespace() {
            match added.last_mut() {
                Some(option) if !word.starts_with("--") => option.push(word.to_string()),
                _ => added.push(vec![word.to_string()]),
            }
        }
        for option in added {
            match self.0.iter_mut().find(|known| known[0] == option[0]) {
                Some(known) => *known = option,
                None => self.0.push(option),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::reproduce::figures_named;

    pub(super) fn plan(figures: &[&str], rounds: u64) -> Plan {
        let names: Vec<String> = figures.iter().map(ToString::to_string).collect();
        let figures = figures_named(&names).expect("known names");
        let suite = Suite::of(&figures);
        Plan { suite, scale: Scale::Smoke, rounds, workers: 2, seed: 1 }
    }

    #[test]
    fn no_run_is_made_twice_in_a_round_and_each_round_makes_all() {
        let plan = plan(&["all"], 2);
        let runs = plan.runs();
        let once: HashSet<_> = runs.iter().map(|run| (run.round, run.command())).collect();
        assert_eq!(once.len(), runs.len());
        let of_round = |round| {
            let of = runs.iter().filter(move |run| run.round == round);
            of.map(Run::command).collect::<HashSet<_>>()
        };
        assert_eq!(of_round(0), of_round(1));
        assert_eq!(of_round(0).len() * 2, runs.len());
        let cells: usize = plan
            .suite
            .scenarios
            .iter()
            .map(|s| s.workloads.len() * s.devices.len() * s.series.len())
            .sum();
        let uses = |round| -> usize {
            runs.iter().filter(|run| run.round == round).map(|run| run.uses.len()).sum()
        };
        assert_eq!((uses(0), uses(1)), (cells, cells));
        assert!(runs.len() / 2 < cells, "figures share runs");
    }

    #[test]
    fn a_model_is_made_once_for_all_of_its_cores_and_figures() {
        let runs = plan(&["caracal"], 1).runs();
        let models: Vec<&Run> =
            runs.iter().filter(|run| run.command().contains("--model")).collect();
        let of = |run: &&&Run| {
            let uses = |scenario: &str| run.uses.iter().any(|of| of.scenario == scenario);
            uses("ca5") && uses("ca-cores")
        };
        let shared: Vec<_> = models.iter().filter(of).collect();
        assert_eq!(shared.len(), 4, "Caracal, Bohm, Granola and PWV with uniform keys");
        // One bar, and a point for each number of cores.
        assert!(shared.iter().all(|run| run.uses.len() == 6), "{shared:#?}");
        assert!(models.len() * 3 < models.iter().map(|run| run.uses.len()).sum());
    }

    #[test]
    fn each_round_begins_with_another_series() {
        let runs = plan(&["fig10"], 2).runs();
        let first = |round| {
            let run = runs.iter().find(|run| run.round == round).expect("a run");
            run.uses[0].series.clone()
        };
        assert_ne!(first(0), first(1));
    }

    #[test]
    fn all_series_of_a_workload_follow_one_another_whichever_figures_they_are_of() {
        let runs = plan(&["fig7", "fig9", "fig10"], 1).runs();
        let mut workloads: Vec<&str> =
            runs.iter().map(|run| run.uses[0].workload.as_str()).collect();
        workloads.dedup();
        let once: HashSet<_> = workloads.iter().collect();
        assert_eq!((workloads.len(), once.len()), (8, 8), "{workloads:?}");
    }

    #[test]
    fn a_series_has_several_times_the_cache_of_its_workload_at_every_scale() {
        for (scale, bytes, doubled) in [
            (Scale::Smoke, "4352278", "8704556"),
            (Scale::Small, "132812500", "265625000"),
            (Scale::Full, "17000000000", "34000000000"),
        ] {
            let runs = Plan { scale, ..plan(&["fig5"], 1) }.runs();
            let cache = |series: &str| {
                let is_it =
                    |run: &&Run| run.uses[0].series == series && run.uses[0].workload == "ycsb-low";
                let words = &runs.iter().find(is_it).expect("a run").words;
                let at = words.iter().position(|word| word == "--cache-bytes").expect("a cache");
                words[at + 1].clone()
            };
            assert_eq!(cache("Zen (OCC)"), bytes);
            assert_eq!(cache("Zen (OCC), cache doubled"), doubled);
        }
    }

    #[test]
    fn later_options_take_the_place_of_earlier_ones() {
        let mut words = Words::default();
        words.add("ycsb --rows 5 --pieces --cache-bytes 7");
        words.add("--cache-bytes 0 --no-minor-gc");
        let all: Vec<String> = words.0.into_iter().flatten().collect();
        assert_eq!(all.join(" "), "ycsb --rows 5 --pieces --cache-bytes 0 --no-minor-gc");
    }

    #[test]
    fn smaller_epochs_run_the_same_number_of_transactions() {
        assert_eq!(epochs_of(100_000, 49, 1.0), (100_000, 49));
        assert_eq!(epochs_of(100_000, 49, 0.05), (5_000, 980));
        assert_eq!(epochs_of(10, 3, 0.01), (1, 30));
    }
}
