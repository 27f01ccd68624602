//! A model beside the runs that it is held against, as a report.

use std::fmt::Write as _;

use bench::{BenchError, Place, Result};
use engine::{AppendMethod, Packing};
use serde::Serialize;

use super::costs::Costs;
use super::engines::{Engine, Places, Versions};
use super::measure::{self, Measured};
use super::shape::Shape;
use super::simulate::simulate;
use crate::report::{Head, Ran};
use crate::rival_run::Deterministic;
use crate::setup::{Design, Job, Settings};

/// What a model came to. Names are a promise to scripts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelReport {
    /// What was modelled; its workers are the most cores.
    #[serde(flatten)]
    pub head: Head,
    /// Always true: no figure here but those of `checks` was measured.
    pub is_model: bool,
    /// Whether each update of a row was counted to run apart from its call, as CA 5.4 cuts them.
    pub is_cut: bool,
    /// What the epoch's calls have to do with each other.
    pub contention: Contention,
    /// The model's transactions per second on the most cores.
    pub throughput_txn_per_s: f64,
    /// Cores from which on more give less than a tenth more.
    pub cores_that_pay: usize,
    /// The model for each number of cores.
    pub points: Vec<Point>,
    /// That of the most cores.
    pub last: Point,
    /// What its steps cost.
    pub costs: Costs,
    /// Runs beside the model.
    pub checks: Vec<Check>,
    /// How much more throughput the model has than the run with most workers, in per cent.
    pub error_percent: f64,
}

/// What the calls of an epoch have to do with each other, on any number of cores.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Contention {
    /// Accesses on the longest path on which each begins when the one before has ended, if calls
    /// run whole.
    pub path_whole: usize,
    /// The same if the pieces that calls declare run apart from them.
    pub path_pieces: usize,
    /// The same if each update of a row runs apart from its call.
    pub path_cut: usize,
    /// Rows with at least as many versions as split-on-demand asks for; 0 without.
    pub rows_contended: usize,
    /// Versions of the row that has most.
    pub versions_most: u32,
}

impl Contention {
    fn of(shape: &Shape, split_threshold: u32) -> Self {
        let versions = shape.versions();
        let is_contended = |versions: &&u32| split_threshold > 0 && **versions >= split_threshold;
        Self {
            path_whole: shape.clone().whole().longest_path(),
            path_pieces: shape.longest_path(),
            path_cut: shape.clone().cut().longest_path(),
            rows_contended: versions.iter().filter(is_contended).count(),
            versions_most: versions.into_iter().max().unwrap_or(0),
        }
    }
}

/// What is modelled beside a job and its settings.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Numbers of cores, in order.
    pub cores: Vec<usize>,
    /// Whether each update of a row runs apart from its call.
    pub cuts: bool,
}

/// The model for one number of cores.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Point {
    /// Cores.
    pub cores: usize,
    /// Transactions per second.
    pub throughput_txn_per_s: f64,
    /// Milliseconds of an epoch before execution.
    pub control_ms: f64,
    /// Milliseconds of its execution.
    pub execute_ms: f64,
    /// Nanoseconds that cores waited for each other, of a transaction.
    pub waited_ns_per_txn: f64,
    /// Lines that another core had written last, of a transaction.
    pub hand_overs_per_txn: f64,
    /// Pieces, writes or requests that one core left to another, of a transaction.
    pub messages_per_txn: f64,
}

/// A run beside the model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Check {
    /// Its workers.
    pub workers: usize,
    /// Transactions per second that were measured.
    pub measured_txn_per_s: f64,
    /// Those of the model.
    pub model_txn_per_s: f64,
    /// How much more the model has, in per cent.
    pub error_percent: f64,
}

/// Models a job on so many cores. What steps cost is measured with one worker; that run and one
/// with as many workers as are set are held against the model.
///
/// # Errors
/// `Usage` for a design that has no model; whatever stops a run.
pub fn run(job: &Job, place: &Place, settings: &Settings, asked: &Asked) -> Result<ModelReport> {
    let engine = engine_of(settings)?;
    let whole = job.shape(job.loading_epochs() + 1);
    let shape = if asked.cuts { whole.clone().cut() } else { whole.clone() };
    let mut checked = vec![1, settings.engine.workers];
    checked.dedup();
    let runs: Vec<(usize, Measured)> = checked
        .into_iter()
        .map(|workers| Ok((workers, measure::measured(job, place, settings, workers)?)))
        .collect::<Result<_>>()?;
    let costs = measure::costs(job, place, settings, runs[0].1, &whole)?;
    let point_of = |shape, cores| point(engine, shape, &costs, cores);
    let point = |cores| point_of(&shape, cores);
    let checks: Vec<Check> = runs
        .iter()
        .map(|(workers, run)| {
            // Runs do not cut calls.
            let model = point_of(&whole, *workers).throughput_txn_per_s;
            let measured = 1e9 / run.total_ns;
            Check {
                workers: *workers,
                measured_txn_per_s: measured,
                model_txn_per_s: model,
                error_percent: 100.0 * (model / measured - 1.0),
            }
        })
        .collect();
    let points: Vec<Point> = asked.cores.iter().map(|cores| point(*cores)).collect();
    let most = *points.last().ok_or_else(|| BenchError::Usage("a model needs cores".into()))?;
    let ran = Ran {
        workers: most.cores,
        epochs: settings.epochs,
        epoch_size: job.parameters().epoch_size,
    };
    let mut head = Head::new(job, settings.design.name(), ran);
    head.device = place.spec.to_string();
    head.device_note = "a model: costs are measured here, cores are not".to_string();
    Ok(ModelReport {
        head,
        is_model: true,
        is_cut: asked.cuts,
        contention: Contention::of(&shape, settings.engine.split_threshold),
        throughput_txn_per_s: most.throughput_txn_per_s,
        cores_that_pay: cores_that_pay(&points),
        costs,
        error_percent: checks.last().map_or(0.0, |check| check.error_percent),
        checks,
        points,
        last: most,
    })
}

/// What the model knows of a design.
fn engine_of(settings: &Settings) -> Result<Engine> {
    let shared = |append| Versions {
        places: Places::Shared(append),
        split_threshold: settings.engine.split_threshold,
        packing: settings.engine.lab.packing,
    };
    let plain = |places| {
        Engine::Versions(Versions { places, split_threshold: 0, packing: Packing::default() })
    };
    match settings.design {
        Design::AllDram => Ok(Engine::Versions(shared(settings.engine.lab.append))),
        Design::Deterministic(Deterministic::Serial) => Ok(Engine::Serial),
        Design::Deterministic(Deterministic::Calvin) => Ok(Engine::Calvin),
        Design::Deterministic(Deterministic::Bohm) => Ok(plain(Places::Owner)),
        Design::Deterministic(Deterministic::Caracal) => {
            Ok(plain(Places::Shared(AppendMethod::Batch)))
        }
        Design::Deterministic(Deterministic::Granola) => Ok(Engine::Granola),
        Design::Deterministic(Deterministic::Pwv) => Ok(Engine::Pwv),
        other => Err(BenchError::Usage(format!(
            "there is no model of design {}: there are those of all-dram, serial, calvin, bohm, \
             caracal, granola and pwv",
            other.name()
        ))),
    }
}

fn point(engine: Engine, shape: &Shape, costs: &Costs, cores: usize) -> Point {
    let simulated = simulate(engine, shape, costs, cores);
    let transactions = shape.calls.len() as f64;
    Point {
        cores,
        throughput_txn_per_s: transactions * 1e9 / simulated.total_ns(),
        control_ms: simulated.control_ns / 1e6,
        execute_ms: simulated.execute_ns / 1e6,
        waited_ns_per_txn: simulated.waited_ns / transactions,
        hand_overs_per_txn: simulated.hand_overs as f64 / transactions,
        messages_per_txn: simulated.messages as f64 / transactions,
    }
}

/// The fewest cores that reach 10/11 of the best.
fn cores_that_pay(points: &[Point]) -> usize {
    let most = points.iter().map(|point| point.throughput_txn_per_s).fold(0.0, f64::max);
    let paying = points.iter().find(|point| point.throughput_txn_per_s * 1.1 >= most);
    paying.map_or(0, |point| point.cores)
}

impl ModelReport {
    /// The result for people.
    #[must_use]
    pub fn render(&self) -> String {
        let Head { workload, design, epoch_size, .. } = &self.head;
        let mut text = format!("A model of {workload} on {design}, epochs of {epoch_size}\n\n");
        text += "cores      txn/s  control ms  execute ms  waits ns/txn  lines/txn  messages/txn\n";
        for point in &self.points {
            let _ = writeln!(
                text,
                "{:>5} {:>10.0} {:>11.3} {:>11.3} {:>13.0} {:>10.2} {:>13.2}",
                point.cores,
                point.throughput_txn_per_s,
                point.control_ms,
                point.execute_ms,
                point.waited_ns_per_txn,
                point.hand_overs_per_txn,
                point.messages_per_txn,
            );
        }
        let Contention { path_whole, path_pieces, path_cut, rows_contended, versions_most } =
            self.contention;
        let _ = writeln!(
            text,
            "\nthe longest path: {path_whole} accesses of whole calls, {path_pieces} with their \
             pieces apart,\n{path_cut} if each update were one; {rows_contended} contended rows, \
             {versions_most} versions of the row with most"
        );
        let Costs { control_ns, append_ns, execute_ns, line_ns, .. } = self.costs;
        let _ = writeln!(
            text,
            "\nmeasured here: {control_ns:.1} ns before execution and {execute_ns:.1} ns in it for \
             an access,\n{append_ns:.1} ns for an append, {line_ns:.1} ns for another core's line"
        );
        for check in &self.checks {
            let _ = writeln!(
                text,
                "held against a run: {} workers did {:.0} txn/s, the model says {:.0} ({:+.1} %)",
                check.workers, check.measured_txn_per_s, check.model_txn_per_s, check.error_percent
            );
        }
        text
    }
}
