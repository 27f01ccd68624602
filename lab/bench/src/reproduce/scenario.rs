//! Scenario files: what a figure asks, with which runs that is answered, what the paper says, and
//! by which rules that is judged. They are part of the program; a mistake in them fails its tests.

use bench::{BenchError, Result};
use serde::Deserialize;

use super::scale::Scale;
use super::statement::Statement;

/// Names of figures on the command line, with their files. The first ones, up to `fig12`, are those
/// of the NVCaracal paper.
const SCENARIOS: [(&str, &str); 37] = [
    ("fig5", include_str!("../../scenarios/fig5.toml")),
    ("fig6", include_str!("../../scenarios/fig6.toml")),
    ("fig7", include_str!("../../scenarios/fig7.toml")),
    ("fig8", include_str!("../../scenarios/fig8.toml")),
    ("fig9", include_str!("../../scenarios/fig9.toml")),
    ("fig10", include_str!("../../scenarios/fig10.toml")),
    ("fig11", include_str!("../../scenarios/fig11.toml")),
    ("fig12", include_str!("../../scenarios/fig12.toml")),
    ("histograms", include_str!("../../scenarios/histograms.toml")),
    ("profiles", include_str!("../../scenarios/profiles.toml")),
    ("ca5", include_str!("../../scenarios/ca5.toml")),
    ("ca6", include_str!("../../scenarios/ca6.toml")),
    ("ca7", include_str!("../../scenarios/ca7.toml")),
    ("ca8", include_str!("../../scenarios/ca8.toml")),
    ("ca9", include_str!("../../scenarios/ca9.toml")),
    ("ca10", include_str!("../../scenarios/ca10.toml")),
    ("ca11", include_str!("../../scenarios/ca11.toml")),
    ("ca12", include_str!("../../scenarios/ca12.toml")),
    ("ca-cores", include_str!("../../scenarios/ca-cores.toml")),
    ("ar1", include_str!("../../scenarios/ar1.toml")),
    ("ar5", include_str!("../../scenarios/ar5.toml")),
    ("ar6", include_str!("../../scenarios/ar6.toml")),
    ("ar7", include_str!("../../scenarios/ar7.toml")),
    ("ar8", include_str!("../../scenarios/ar8.toml")),
    ("ar9", include_str!("../../scenarios/ar9.toml")),
    ("ar12", include_str!("../../scenarios/ar12.toml")),
    ("ar13", include_str!("../../scenarios/ar13.toml")),
    ("ar14", include_str!("../../scenarios/ar14.toml")),
    ("ar15", include_str!("../../scenarios/ar15.toml")),
    ("ar16", include_str!("../../scenarios/ar16.toml")),
    ("dbx3", include_str!("../../scenarios/dbx3.toml")),
    ("dbx4", include_str!("../../scenarios/dbx4.toml")),
    ("dbx9", include_str!("../../scenarios/dbx9.toml")),
    ("dbx10", include_str!("../../scenarios/dbx10.toml")),
    ("dbx11", include_str!("../../scenarios/dbx11.toml")),
    ("dbx12", include_str!("../../scenarios/dbx12.toml")),
    ("dbx-latency", include_str!("../../scenarios/dbx-latency.toml")),
];
/// Workloads and metrics, for all of them, for those of Caracal's evaluation, of the six storage
/// engines, and of the DBX family.
const COMMON: [&str; 4] = [
    include_str!("../../scenarios/common.toml"),
    include_str!("../../scenarios/caracal.toml"),
    include_str!("../../scenarios/arulraj.toml"),
    include_str!("../../scenarios/dbx.toml"),
];
/// How many of the files are figures of the NVCaracal paper.
const OF_NV_COUNT: usize = 8;
/// Where those of the Caracal paper begin, those of the six storage engines, and the DBX family's.
const OF_CARACAL_FROM: usize = 10;
const OF_ARULRAJ_FROM: usize = 19;
const OF_DBX_FROM: usize = 30;

/// What can be named on the command line, and what it stands for.
pub const FIGURES: [(&str, &str); 42] = [
    ("nv", "Figures 5 to 12 of the NVCaracal paper"),
    ("caracal", "Figures 5 to 12 of the Caracal paper, and a model of more cores"),
    ("arulraj", "figures of Arulraj et al., of six storage engines"),
    ("dbx", "figures of Wei et al., of DBXN, and latency beside NVCaracal's"),
    ("all", "everything"),
    ("fig5", "YCSB: throughput beside Zen"),
    ("fig6", "SmallBank: throughput beside Zen"),
    ("fig7", "throughput of other designs for persistent memory"),
    ("fig8", "memory by structure"),
    ("fig9", "what minor collection and cached versions are worth"),
    ("fig10", "what recovery after failures costs"),
    ("fig11", "recovery time by part"),
    ("fig12", "throughput against latency over sizes of epochs"),
    ("histograms", "the report of 2021: versions by place and size"),
    ("profiles", "every design on every device profile"),
    ("ca5", "Caracal: YCSB without contention"),
    ("ca6", "Caracal: YCSB with contention"),
    ("ca7", "Caracal: TPC-C"),
    ("ca8", "Caracal: what its optimizations are worth"),
    ("ca9", "Caracal: waits for pending versions"),
    ("ca10", "Caracal: thresholds of split-on-demand"),
    ("ca11", "Caracal: sizes of epochs"),
    ("ca12", "Caracal: several machines, as far as a model goes"),
    ("ca-cores", "Caracal and rivals on 1 to 64 cores, a model"),
    ("ar1", "six engines: durable writes through the allocator and through files"),
    ("ar5", "six engines: YCSB, loads of 160 ns"),
    ("ar6", "six engines: YCSB, loads of 320 ns"),
    ("ar7", "six engines: YCSB, loads of 1,280 ns"),
    ("ar8", "six engines: TPC-C of one warehouse"),
    ("ar9", "six engines: loads and stores of YCSB"),
    ("ar12", "six engines: recovery"),
    ("ar13", "six engines: what time is for"),
    ("ar14", "six engines: memory by structure"),
    ("ar15", "six engines: sizes of nodes and pages"),
    ("ar16", "six engines: latency of making changes durable"),
    ("dbx3", "DBX family: lengths of group commit"),
    ("dbx4", "DBX family: what aborts regions, a model's rules"),
    ("dbx9", "DBX family: TPC-C over workers"),
    ("dbx10", "DBX family: SmallBank, and all data in persistent memory"),
    ("dbx11", "DBX family: from DBX to DBXN, step by step"),
    ("dbx12", "DBX family: warehouses"),
    ("dbx-latency", "latency to the durable answer, DBXN beside epochs"),
];

/// The figures that names on the command line stand for, each once, in the order of their numbers.
/// No name stands for those of the paper.
///
/// # Errors
/// `Usage`, with all names, if one is unknown.
pub fn figures_named(names: &[String]) -> Result<Vec<&'static str>> {
    let files = || SCENARIOS.iter().map(|(name, _)| *name);
    let is_known = |name: &String| FIGURES.iter().any(|(known, _)| known == name);
    if let Some(name) = names.iter().find(|name| !is_known(name)) {
        let known = FIGURES.map(|(known, _)| known).join(", ");
        return Err(BenchError::Usage(format!("there is no figure {name:?}; there are {known}")));
    }
    let asked = |name: &str| names.iter().any(|asked| asked == name);
    let is_asked = |(index, name): &(usize, &str)| {
        let of_nv = (names.is_empty() || asked("nv")) && *index < OF_NV_COUNT;
        let of_caracal = asked("caracal") && (OF_CARACAL_FROM..OF_ARULRAJ_FROM).contains(index);
        let of_arulraj = asked("arulraj") && (OF_ARULRAJ_FROM..OF_DBX_FROM).contains(index);
        let of_dbx = asked("dbx") && *index >= OF_DBX_FROM;
        of_dbx || of_nv || of_caracal || of_arulraj || asked("all") || asked(name)
    };
    Ok(files().enumerate().filter(is_asked).map(|(_, name)| name).collect())
}

/// How a figure is plotted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Plot {
    /// One bar for each workload and series.
    Bars,
    /// One bar for each workload and series, of several parts.
    Stacked,
    /// A line for each workload through its series.
    Lines,
}

/// A workload at each scale.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Workload {
    /// What scenarios call it.
    pub(super) name: String,
    /// For people.
    pub(super) title: String,
    /// Workloads that are plotted over the same axis.
    pub(super) panel: String,
    /// Its settings in the paper.
    pub(super) paper: String,
    /// Words of the `bench` command at every scale.
    pub(super) options: String,
    pub(super) smoke: Size,
    pub(super) small: Size,
    pub(super) full: Size,
}

impl Workload {
    /// Whether it is run by `bench arulraj`.
    pub(super) fn is_of_partitions(&self) -> bool {
        self.options.starts_with("arulraj")
    }

    /// Whether it is run by `bench interfaces`.
    pub(super) fn is_of_interfaces(&self) -> bool {
        self.options.starts_with("interfaces")
    }

    pub(super) fn size(&self, scale: Scale) -> &Size {
        match scale {
            Scale::Smoke => &self.smoke,
            Scale::Small => &self.small,
            Scale::Full => &self.full,
        }
    }
}

/// How large a workload is.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Size {
    /// In words, as the report states it.
    pub(super) says: String,
    /// Options of the `bench` command.
    pub(super) options: String,
    /// Transactions of an epoch.
    pub(super) epoch_size: u64,
    /// Epochs.
    pub(super) epochs: u64,
}

/// Something that can be read off the JSON of a run: a sum, by another sum where there is one.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Metric {
    pub(super) name: String,
    /// For people, without the unit.
    pub(super) title: String,
    pub(super) unit: String,
    /// Paths into the JSON, as `counters.lines_read`.
    pub(super) top: Vec<String>,
    #[serde(default)]
    pub(super) bottom: Vec<String>,
    /// Brings the result to the unit.
    #[serde(default = "one")]
    pub(super) factor: f64,
    /// Digits after the point.
    #[serde(default)]
    pub(super) digits: usize,
    /// Whether it was measured with a clock, so that it means nothing in tiny runs.
    #[serde(default)]
    pub(super) timed: bool,
    /// Which round is the least disturbed, where that counts instead of the middle one: neighbours
    /// add to processor time and never take from it.
    #[serde(default)]
    pub(super) best: Option<Best>,
    /// The metric that a clock measured of the same, to be shown beside it.
    #[serde(default)]
    pub(super) clock: Option<String>,
}

/// The best of some numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Best {
    Most,
    Least,
}

fn one() -> f64 {
    1.0
}

/// One way to run the workloads of a figure.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Series {
    /// Name in the report.
    pub(super) name: String,
    /// The engine.
    #[serde(default = "usual_design")]
    pub(super) design: String,
    /// Options that make it so; they override those of the workload.
    #[serde(default)]
    pub(super) options: String,
    /// Instead of the figure's device.
    #[serde(default)]
    pub(super) device: Option<String>,
    /// Part of the workload's transactions of an epoch; there are as many more epochs.
    #[serde(default = "one")]
    pub(super) epoch_share: f64,
    /// How many times the workload's cache of versions, where it names one.
    #[serde(default = "one")]
    pub(super) cache_times: f64,
    /// Shows a model of so many cores, one of [`MODEL_CORES`], instead of a run.
    #[serde(default)]
    pub(super) cores: Option<u64>,
    /// Worker threads, if not those of the command: for counts, which need no cores.
    #[serde(default)]
    pub(super) workers: Option<usize>,
}

impl Series {
    /// Whether its points are a model's.
    pub(super) fn is_model(&self) -> bool {
        self.cores.is_some()
    }
}

/// The cores of a model. A command models all of them, so that its costs are measured once.
pub(super) const MODEL_CORES: [u64; 6] = [1, 8, 16, 32, 64, 128];

/// The device of what is kept in files of a directory that the run makes and removes.
pub(super) const FILES: &str = "files";

/// The design that every build has.
pub(super) const USUAL_DESIGN: &str = "nvcaracal";

fn usual_design() -> String {
    USUAL_DESIGN.to_string()
}

/// A part of a stacked bar.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Part {
    pub(super) metric: String,
    /// A colour family: parts of one group have shades of one colour.
    #[serde(default)]
    pub(super) group: String,
}

/// A figure.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Scenario {
    /// Name on the command line.
    pub(super) figure: String,
    pub(super) title: String,
    /// What the figure asks.
    pub(super) question: String,
    /// What the paper says of it.
    pub(super) paper: String,
    /// What is different here.
    pub(super) here: String,
    pub(super) plot: Plot,
    /// What is plotted; the sum of the parts of stacked bars.
    pub(super) metric: String,
    /// What lines are plotted across.
    #[serde(default)]
    pub(super) across: Option<String>,
    /// Metrics of the further columns of the table.
    #[serde(default)]
    pub(super) columns: Vec<String>,
    /// Parts of stacked bars.
    #[serde(default)]
    pub(super) parts: Vec<Part>,
    /// The device; with several, every workload runs on each.
    pub(super) devices: Vec<String>,
    /// Options of every run.
    #[serde(default)]
    pub(super) options: String,
    pub(super) workloads: Vec<String>,
    pub(super) series: Vec<Series>,
    #[serde(default)]
    pub(super) statements: Vec<Statement>,
}

/// What all scenarios refer to.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Common {
    workload: Vec<Workload>,
    metric: Vec<Metric>,
}

/// The scenarios of a command, with all that they refer to.
#[derive(Debug, Clone)]
pub struct Suite {
    pub(super) scenarios: Vec<Scenario>,
    workloads: Vec<Workload>,
    metrics: Vec<Metric>,
}

impl Suite {
    /// Reads the scenarios of some figures, named as [`figures_named`] gives them.
    ///
    /// # Panics
    /// If a scenario file is wrong, which the tests of this module find.
    #[must_use]
    pub fn of(figures: &[&str]) -> Self {
        let parsed = |name: &str, text: &str| {
            toml::from_str::<Scenario>(text).unwrap_or_else(|error| panic!("{name}: {error}"))
        };
        let asked = SCENARIOS.iter().filter(|(name, _)| figures.contains(name));
        let scenarios = asked.map(|(name, text)| parsed(name, text)).collect();
        let (mut workloads, mut metrics) = (Vec::new(), Vec::new());
        for text in COMMON {
            let common: Common =
                toml::from_str(text).unwrap_or_else(|error| panic!("common: {error}"));
            workloads.extend(common.workload);
            metrics.extend(common.metric);
        }
        Self { scenarios, workloads, metrics }
    }

    pub(super) fn workload(&self, name: &str) -> &Workload {
        let found = self.workloads.iter().find(|workload| workload.name == name);
        found.unwrap_or_else(|| panic!("no workload {name}"))
    }

    pub(super) fn metric(&self, name: &str) -> &Metric {
        let found = self.metrics.iter().find(|metric| metric.name == name);
        found.unwrap_or_else(|| panic!("no metric {name}"))
    }

    /// The workloads that the scenarios run, each once.
    pub(super) fn workloads_used(&self) -> impl Iterator<Item = &Workload> {
        let used = |workload: &&Workload| {
            self.scenarios.iter().any(|scenario| scenario.workloads.contains(&workload.name))
        };
        self.workloads.iter().filter(used)
    }
}
