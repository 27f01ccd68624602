//! Callers on threads of their own, and what they took.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::process::{cpu_ns, written_bytes};
use super::stream::Stream;
use crate::order::Measured;
use crate::peer::{Does, Error, Operation, Peer, Result, Shape};
use crate::settings::Load;

/// What to measure.
pub(super) struct Measurement<'m> {
    pub(super) peer: &'m dyn Peer,
    pub(super) shape: Shape,
    pub(super) load: Load,
    pub(super) operations: usize,
    pub(super) time: Duration,
    pub(super) seed: u64,
    /// Counts the updates of each row that are answered.
    pub(super) answered: &'m [AtomicU32],
}

/// Which part of the time callers run before they are measured.
const WARM_UP: u32 = 10;
/// Digits of a time that are kept.
const DIGITS: u8 = 3;

fn histogram() -> Histogram<u64> {
    Histogram::new(DIGITS).expect("so many digits are allowed")
}

/// Lets callers run transactions until the time is over.
pub(super) fn measure(what: &Measurement<'_>) -> Result<Measured> {
    // Callers wait for each other, and begin together.
    let begin = Barrier::new(what.load.clients + 1);
    let (results, took, cpu, written) = std::thread::scope(|scope| {
        let begin = &begin;
        let callers: Vec<_> = (0..what.load.clients as u64)
            .map(|caller| scope.spawn(move || call(what, caller, begin)))
            .collect();
        begin.wait();
        std::thread::sleep(what.time / WARM_UP);
        let (started, cpu, written) = (Instant::now(), cpu_ns(), written_bytes());
        let results: Vec<_> = callers.into_iter().map(|caller| caller.join()).collect();
        (results, started.elapsed(), cpu_ns() - cpu, written_bytes().zip(written))
    });
    let mut waited_ns = histogram();
    for result in results {
        let result = result.map_err(|_| Error::Failed("a caller panicked".into()))?;
        waited_ns.add(result?).expect("they have the same digits");
    }
    Ok(Measured {
        transactions: waited_ns.len(),
        seconds: took.as_secs_f64(),
        p50_ns: waited_ns.value_at_quantile(0.5),
        p99_ns: waited_ns.value_at_quantile(0.99),
        cpu_ns: cpu,
        written_bytes: written.map(|(now, before)| now.saturating_sub(before)),
    })
}

/// One caller; how long it waited each time, once all are warm.
fn call(what: &Measurement<'_>, caller: u64, begin: &Barrier) -> Result<Histogram<u64>> {
    let session = what.peer.caller();
    begin.wait();
    let mut session = session?;
    let mut stream = Stream::new(
        what.shape,
        what.load,
        what.operations,
        // Each caller of each measurement has transactions of its own.
        what.seed << 16 | caller,
    );
    let mut waited = histogram();
    let mut operations: Vec<Operation> = Vec::new();
    let started = Instant::now();
    let (warm, until) = (what.time / WARM_UP, what.time + what.time / WARM_UP);
    loop {
        let begun = started.elapsed();
        if begun >= until {
            return Ok(waited);
        }
        stream.next(&mut operations);
        let asked = Instant::now();
        session.transact(&operations)?;
        let waited_for = asked.elapsed();
        for operation in operations.iter().filter(|of| of.does == Does::Update) {
            what.answered[operation.row as usize].fetch_add(1, Ordering::Relaxed);
        }
        if begun >= warm {
            waited += u64::try_from(waited_for.as_nanos()).unwrap_or(u64::MAX);
        }
    }
}
