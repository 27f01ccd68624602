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
pub fn run(job: &Job, place: &Place, settings: &Settings, cores: &[usize]) -> Result<ModelReport> {
    let engine = engine_of(settings)?;
    let shape = job.shape(job.loading_epochs() + 1);
    let mut checked = vec![1, settings.engine.workers];
    checked.dedup();
    let runs: Vec<(usize, Measured)> = checked
        .into_iter()
        .map(|workers| Ok((workers, measure::measured(job, place, settings, workers)?)))
        .collect::<Result<_>>()?;
    let costs = measure::costs(job, place, settings, runs[0].1, &shape)?;
    let point = |cores| point(engine, &shape, &costs, cores);
    let checks: Vec<Check> = runs
        .iter()
        .map(|(workers, run)| {
            let (measured, model) = (1e9 / run.total_ns, point(*workers).throughput_txn_per_s);
            Check {
                workers: *workers,
                measured_txn_per_s: measured,
                model_txn_per_s: model,
                error_percent: 100.0 * (model / measured - 1.0),
            }
        })
        .collect();
    let points: Vec<Point> = cores.iter().map(|cores| point(*cores)).collect();
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
