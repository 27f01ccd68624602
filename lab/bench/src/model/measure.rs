//! Measures what a model's steps cost here, and what runs with few workers come to.

use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicU64, Ordering};

use bench::clock::now_ns;
use bench::{BenchError, Place, Result};
use pmem::DeviceSpec;

use super::costs::Costs;
use super::shape::Shape;
use crate::rival_run::{Deterministic, run_deterministic};
use crate::setup::{Design, Job, Settings};

/// Moving a version in an array that is in the core's caches.
const MOVE_NS: f64 = 0.5;
/// How much of what an engine without phases of its own does before execution is the append.
const APPENDING: f64 = 0.5;
/// Hand-overs that are measured at once, and how often.
const HAND_OVERS: u64 = 200;
const REPETITIONS: usize = 20;
/// Looks of a thread that waits for its turn, after which it lets another one run: far more than a
/// hand-over takes where both have a core.
const SPINS_MAX: u32 = 1 << 7;
/// Bytes that are copied to measure the memory, far more than caches hold.
const COPIED_BYTES: usize = 32 << 20;

/// What a run came to, a transaction.
#[derive(Debug, Clone, Copy)]
pub(super) struct Measured {
    pub(super) total_ns: f64,
    append_ns: f64,
    execute_ns: f64,
}

/// Runs a design with so many workers.
pub(super) fn measured(
    job: &Job,
    place: &Place,
    settings: &Settings,
    workers: usize,
) -> Result<Measured> {
    let mut settings = settings.clone();
    settings.engine.workers = workers;
    if let Design::Deterministic(engine) = settings.design {
        let report = run_deterministic(job, engine, &DeviceSpec::Dram, &settings)?;
        let total_ns = by_transaction(report.seconds * 1e9, report.committed + report.aborted);
        return Ok(Measured { total_ns, append_ns: 0.0, execute_ns: total_ns });
    }
    let report = crate::run(job, place, &settings)?;
    if report.interrupted {
        let what = "a run was interrupted that the model needs for its costs";
        return Err(BenchError::Store(what.into()));
    }
    let transactions = report.committed + report.aborted + report.failed;
    let phase = |name| by_transaction(report.phase_ns.get(name), transactions);
    Ok(Measured {
        total_ns: by_transaction(report.seconds * 1e9, transactions),
        append_ns: phase("append"),
        execute_ns: phase("execute"),
    })
}

fn by_transaction(ns: f64, transactions: u64) -> f64 {
    ns / transactions.max(1) as f64
}

/// The costs of a design's steps: from its run with one worker and, where it does not measure its
/// phases, from one of serial execution, which does nothing else than execute.
pub(super) fn costs(
    job: &Job,
    place: &Place,
    settings: &Settings,
    one: Measured,
    shape: &Shape,
) -> Result<Costs> {
    let (append_ns, execute_ns) = match settings.design {
        Design::Deterministic(Deterministic::Serial) => (0.0, one.total_ns),
        Design::Deterministic(_) => {
            let design = Design::Deterministic(Deterministic::Serial);
            let settings = Settings { design, ..settings.clone() };
            let serial = measured(job, place, &settings, 1)?.total_ns.min(one.total_ns);
            ((one.total_ns - serial) * APPENDING, serial)
        }
        _ => (one.append_ns, one.execute_ns),
    };
    let transactions = shape.calls.len() as f64;
    let accesses = (shape.accesses() as f64 / transactions).max(1e-9);
    let writes = f64::from(shape.versions().iter().sum::<u32>()) / transactions;
    let writes = if writes > 0.0 { writes } else { accesses };
    Ok(Costs {
        control_ns: (one.total_ns - append_ns - execute_ns).max(0.0) / accesses,
        append_ns: append_ns / writes,
        move_ns: MOVE_NS,
        execute_ns: execute_ns / accesses,
        line_ns: line_ns(),
        bytes_per_ns: bytes_per_ns(),
    })
}

/// How long a cache line takes from one core to another: two threads hand one to and fro. The
/// least of some measurements, in which both threads had a core.
fn line_ns() -> f64 {
    let word = AtomicU64::new(0);
    let wait_for = |turn: u64| {
        let mut spins = 0;
        while word.load(Ordering::Acquire) != turn {
            spins += 1;
            if spins % SPINS_MAX == 0 {
                std::thread::yield_now();
            }
            spin_loop();
        }
    };
    let all = HAND_OVERS * REPETITIONS as u64;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for turn in 0..all {
                wait_for(2 * turn + 1);
                word.store(2 * turn + 2, Ordering::Release);
            }
        });
        let mut least = f64::INFINITY;
        for repetition in 0..REPETITIONS as u64 {
            let start = now_ns();
            for turn in repetition * HAND_OVERS..(repetition + 1) * HAND_OVERS {
                word.store(2 * turn + 1, Ordering::Release);
                wait_for(2 * turn + 2);
            }
            least = least.min((now_ns() - start) as f64 / (2 * HAND_OVERS) as f64);
        }
        least
    })
}

/// What one thread loads and stores in a nanosecond when it copies memory.
fn bytes_per_ns() -> f64 {
    let (from, mut to) = (vec![1_u8; COPIED_BYTES], vec![2_u8; COPIED_BYTES]);
    let start = now_ns();
    to.copy_from_slice(black_box(&from));
    black_box(&to);
    2.0 * COPIED_BYTES as f64 / (now_ns() - start).max(1) as f64
}
