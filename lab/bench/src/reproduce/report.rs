//! Everything that a reproduction found, ready to be shown: figures with their bars or points,
//! settings, statements with verdicts. `report.json` is this, and `report.html` shows it.

use bench::report::Spread;
use std::collections::BTreeMap;

use serde::Serialize;

use super::data::{Found, Session};
use super::plan::{Cell, Plan};
use super::scale::Scale;
use super::scenario::{Metric, Part, Plot, Scenario, Series, Workload};
use super::verdict::{Judged, Verdict, judge};
use crate::cost::Price;

/// The whole result. Names are a promise to scripts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReproduceReport {
    /// Under what the runs were made.
    #[serde(flatten)]
    pub session: Session,
    /// Rounds that were asked for.
    pub rounds: u64,
    /// Worker threads.
    pub workers: usize,
    /// Name of data and stream.
    pub seed: u64,
    /// Whether a stop was asked for before all of them had run.
    pub interrupted: bool,
    /// Runs that are in it.
    pub runs: usize,
    /// Runs that were to be made.
    pub runs_planned: usize,
    /// Devices and what they are.
    pub devices: BTreeMap<String, String>,
    /// What a block of a device costs in all runs, where that is one price.
    pub prices: BTreeMap<String, Price>,
    /// Sizes, the paper's and ours.
    pub settings: Vec<Setting>,
    /// The figures.
    pub figures: Vec<FigureReport>,
    /// All statements.
    pub statements: Vec<Judged>,
    /// Runs that failed, with their words.
    pub failures: Vec<Failed>,
}

/// A run that failed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Failed {
    /// Its command line.
    pub command: String,
    /// What it said.
    pub words: String,
}

/// A workload's sizes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Setting {
    /// The workload.
    pub workload: String,
    /// In the paper.
    pub paper: String,
    /// Here.
    pub here: String,
    /// Transactions of an epoch.
    pub epoch_size: u64,
    /// Epochs.
    pub epochs: u64,
}

/// A quantity with its unit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Quantity {
    /// What it is.
    pub title: String,
    /// In what.
    pub unit: String,
    /// Digits after the point.
    pub digits: usize,
}

impl Quantity {
    fn of(metric: &Metric) -> Self {
        let Metric { title, unit, digits, .. } = metric.clone();
        Self { title, unit, digits }
    }
}

/// One figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FigureReport {
    /// Name on the command line.
    pub figure: String,
    /// Title.
    pub title: String,
    /// What it asks.
    pub question: String,
    /// What the paper says.
    pub paper: String,
    /// What is different here.
    pub here: String,
    /// `bars`, `stacked`, `lines`.
    pub plot: &'static str,
    /// What is plotted.
    pub quantity: Quantity,
    /// What it is plotted across, for lines.
    pub across: Option<Quantity>,
    /// Parts of stacked bars, with their groups.
    pub parts: Vec<(String, String)>,
    /// Further columns of the table.
    pub columns: Vec<Quantity>,
    /// What has one axis.
    pub panels: Vec<Panel>,
}

/// Workloads over one axis.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Panel {
    /// Title.
    pub title: String,
    /// Whether its points are a model's.
    pub is_model: bool,
    /// The workloads.
    pub groups: Vec<Group>,
}

/// One workload on one device.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Group {
    /// Title.
    pub title: String,
    /// One for each series.
    pub points: Vec<Point>,
}

/// One bar or point.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Point {
    /// The series.
    pub series: String,
    /// What followed `bench` on the command line.
    pub command: String,
    /// Rounds.
    pub runs: usize,
    /// What is plotted; absent if there is none.
    pub value: Option<Spread>,
    /// By how many per cent it is more than that of the panel's first series; absent for that one.
    pub percent_more: Option<f64>,
    /// What it is plotted across.
    pub across: Option<Spread>,
    /// Parts of a stacked bar.
    pub parts: Vec<Option<Spread>>,
    /// Further columns of the table.
    pub columns: Vec<Option<Spread>>,
    /// Why there is nothing to plot.
    pub why_none: Option<String>,
}

impl ReproduceReport {
    /// How many statements have a verdict.
    #[must_use]
    pub fn count(&self, verdict: Verdict) -> usize {
        self.statements.iter().filter(|judged| judged.verdict == verdict).count()
    }

    /// A few lines for people who see no HTML.
    #[must_use]
    pub fn summary(&self) -> String {
        let mut text = String::new();
        for figure in &self.figures {
            let of = self.statements.iter().filter(|judged| judged.figure == figure.figure);
            let holds = of.clone().filter(|judged| judged.verdict == Verdict::Holds).count();
            let count = of.count();
            text += &format!("{:<11} {holds} of {count} statements hold\n", figure.figure);
        }
        let all =
            Verdict::ALL.map(|verdict| format!("{} {}", self.count(verdict), verdict.words()));
        text + &format!("statements: {}\n", all.join(", "))
    }
}

/// Puts everything together.
#[must_use]
pub fn report(plan: &Plan, session: &Session, found: &Found, interrupted: bool) -> ReproduceReport {
    let (found, prices) = found.with_costs();
    let found = &found;
    let statements = plan.suite.scenarios.iter().flat_map(|scenario| {
        let statements = scenario.statements.iter();
        statements.map(move |statement| judge(plan, found, scenario, statement))
    });
    let runs = plan.runs();
    ReproduceReport {
        session: session.clone(),
        rounds: plan.rounds,
        workers: plan.workers,
        seed: plan.seed,
        interrupted,
        runs: runs.iter().filter(|run| found.has(run)).count(),
        runs_planned: runs.len(),
        devices: found.devices.clone(),
        prices,
        settings: settings(plan),
        figures: plan
            .suite
            .scenarios
            .iter()
            .map(|scenario| figure(plan, found, scenario))
            .collect(),
        statements: statements.collect(),
        failures: found
            .failures()
            .into_iter()
            .map(|(command, words)| Failed { command, words })
            .collect(),
    }
}

fn settings(plan: &Plan) -> Vec<Setting> {
    let setting = |workload: &Workload| {
        let size = workload.size(plan.scale);
        Setting {
            workload: workload.title.clone(),
            paper: workload.paper.clone(),
            here: match plan.scale {
                Scale::Full => "as in the paper".into(),
                Scale::Smoke | Scale::Small => size.says.clone(),
            },
            epoch_size: size.epoch_size,
            epochs: size.epochs,
        }
    };
    let mut settings: Vec<Setting> = Vec::new();
    for (workload, setting) in plan.suite.workloads_used().map(|of| (of, setting(of))) {
        // Where lines are engines, a workload has a name for each.
        let is_same = |known: &Setting| {
            Setting { workload: setting.workload.clone(), ..known.clone() } == setting
        };
        if !workload.panel.ends_with("a model") || !settings.iter().any(is_same) {
            settings.push(setting);
        }
    }
    settings
}

fn figure(plan: &Plan, found: &Found, scenario: &Scenario) -> FigureReport {
    let suite = &plan.suite;
    let quantity = |name: &String| Quantity::of(suite.metric(name));
    let part = |part: &Part| (suite.metric(&part.metric).title.clone(), part.group.clone());
    FigureReport {
        figure: scenario.figure.clone(),
        title: scenario.title.clone(),
        question: scenario.question.clone(),
        paper: scenario.paper.clone(),
        here: scenario.here.clone(),
        plot: match scenario.plot {
            Plot::Bars => "bars",
            Plot::Stacked => "stacked",
            Plot::Lines => "lines",
        },
        quantity: quantity(&scenario.metric),
        across: scenario.across.as_ref().map(quantity),
        parts: scenario.parts.iter().map(part).collect(),
        columns: scenario.columns.iter().map(quantity).collect(),
        panels: panels(plan, found, scenario),
    }
}

/// Panels of runs, then those of models: they have nothing to do with each other.
fn panels(plan: &Plan, found: &Found, scenario: &Scenario) -> Vec<Panel> {
    let of = |is_model: bool| {
        let series = scenario.series.iter().filter(move |series| series.is_model() == is_model);
        (is_model, series.collect::<Vec<_>>())
    };
    let kinds = [of(false), of(true)];
    let shown = kinds.iter().filter(|(_, series)| !series.is_empty());
    shown
        .flat_map(|(is_model, series)| panels_of(plan, found, scenario, *is_model, series))
        .collect()
}

/// Groups that follow one another and share an axis are in one panel.
fn panels_of(
    plan: &Plan,
    found: &Found,
    scenario: &Scenario,
    is_model: bool,
    series: &[&Series],
) -> Vec<Panel> {
    let mut panels: Vec<Panel> = Vec::new();
    for (workload, device) in plan.groups(scenario) {
        let title = match (scenario.devices.len(), is_model && scenario.plot == Plot::Bars) {
            (1, false) => workload.panel.clone(),
            (1, true) => format!("{}: a model", workload.panel),
            _ => format!("{}, {device}", workload.panel),
        };
        let points = series
            .iter()
            .map(|series| point(plan, found, scenario, &Cell { workload, device, series }));
        let mut points: Vec<Point> = points.collect();
        let first = points.first().and_then(|point| point.value);
        for point in points.iter_mut().skip(1) {
            let by = point.value.zip(first).filter(|(_, first)| first.median != 0.0);
            point.percent_more = by.map(|(own, first)| 100.0 * (own.median / first.median - 1.0));
        }
        let group = Group { title: workload.title.clone(), points };
        match panels.last_mut().filter(|panel| panel.title == title) {
            Some(panel) => panel.groups.push(group),
            None => panels.push(Panel { title, is_model, groups: vec![group] }),
        }
    }
    panels
}

fn point(plan: &Plan, found: &Found, scenario: &Scenario, cell: &Cell<'_>) -> Point {
    let source = plan.source(scenario, cell);
    let spread = |name: &String| found.spread(&source, plan.suite.metric(name));
    Point {
        series: cell.series.name.clone(),
        runs: found.rounds(&source.command),
        value: spread(&scenario.metric),
        percent_more: None,
        across: scenario.across.as_ref().and_then(spread),
        parts: scenario.parts.iter().map(|part| spread(&part.metric)).collect(),
        columns: scenario.columns.iter().map(spread).collect(),
        why_none: found.why_none(&source.command),
        command: source.command,
    }
}
