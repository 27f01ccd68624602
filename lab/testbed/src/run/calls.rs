//! Calls that are made before the clock runs, and what became of them.

use std::sync::atomic::{AtomicUsize, Ordering};

use workloads::{ProcedureId, StreamEpoch, TableId, View, Workload};

use crate::error::Result;
use crate::rival::{Rival, Session};
use crate::run::procedure::{Done, Outcome, Procedures};

/// Calls of one epoch of a workload's stream.
const CALLS_PER_EPOCH: u64 = 1 << 20;
/// Calls that a worker takes at a time.
const TAKEN: usize = 4;

/// A run of calls, end to end in one buffer.
#[derive(Debug, Default, Clone)]
pub struct Calls {
    bytes: Vec<u8>,
    ends: Vec<(ProcedureId, usize)>,
}

impl Calls {
    /// Calls of a workload's stream, by their numbers.
    #[must_use]
    pub fn of_stream<W: Workload>(workload: &W, numbers: std::ops::Range<u64>) -> Self {
        let mut calls = Self::default();
        for number in numbers {
            // Epoch 0 is that of loading.
            let (epoch, position) = (1 + number / CALLS_PER_EPOCH, number % CALLS_PER_EPOCH);
            let procedure = workload.generate(StreamEpoch(epoch), position, &mut calls.bytes);
            calls.ends.push((procedure, calls.bytes.len()));
        }
        calls
    }

    /// The first calls of an epoch of a workload's stream.
    #[must_use]
    pub fn of_epoch<W: Workload>(workload: &W, epoch: StreamEpoch, count: u64) -> Self {
        let mut calls = Self::default();
        for position in 0..count {
            let procedure = workload.generate(epoch, position, &mut calls.bytes);
            calls.ends.push((procedure, calls.bytes.len()));
        }
        calls
    }

    /// These calls.
    #[cfg(test)]
    pub(crate) fn of(list: &[(ProcedureId, Vec<u8>)]) -> Self {
        let mut calls = Self::default();
        for (procedure, args) in list {
            calls.bytes.extend_from_slice(args);
            calls.ends.push((*procedure, calls.bytes.len()));
        }
        calls
    }

    /// The calls that load a workload's data.
    #[must_use]
    pub fn of_load<W: Workload>(workload: &W) -> Self {
        Self::of_loads(workload, 0..workload.load_count())
    }

    /// Some of the calls that load a workload's data.
    #[must_use]
    pub fn of_loads<W: Workload>(workload: &W, numbers: std::ops::Range<u64>) -> Self {
        let mut calls = Self::default();
        for i in numbers {
            let procedure = workload.load(i, &mut calls.bytes);
            calls.ends.push((procedure, calls.bytes.len()));
        }
        calls
    }

    /// Adds the calls of another run of them.
    pub(crate) fn append(&mut self, other: &Self) {
        let before = self.bytes.len();
        self.bytes.extend_from_slice(&other.bytes);
        self.ends.extend(other.ends.iter().map(|(procedure, end)| (*procedure, before + end)));
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Procedure and arguments of a call.
    ///
    /// # Panics
    /// If there is no such call.
    #[must_use]
    pub fn get(&self, i: usize) -> (ProcedureId, &[u8]) {
        let start = i.checked_sub(1).map_or(0, |before| self.ends[before].1);
        let (procedure, end) = self.ends[i];
        (procedure, &self.bytes[start..end])
    }

    /// Gives each call to one of many workers, who take the next ones when they are free.
    pub(crate) fn dealer(&self) -> Dealer<'_> {
        Dealer { calls: self, next: AtomicUsize::new(0) }
    }
}

/// Deals calls to workers.
pub(crate) struct Dealer<'a> {
    calls: &'a Calls,
    next: AtomicUsize,
}

impl Dealer<'_> {
    /// The numbers of the next calls.
    pub(crate) fn take(&self) -> std::ops::Range<usize> {
        let first = self.next.fetch_add(TAKEN, Ordering::Relaxed).min(self.calls.len());
        first..(first + TAKEN).min(self.calls.len())
    }
}

/// A call that was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// Its number among the calls.
    pub call: usize,
    /// Its place in the serial order.
    pub serial: u64,
    /// The place whose state it read, if that is another one.
    pub snapshot: Option<u64>,
    /// What became of it.
    pub outcome: Outcome,
    /// What it put out.
    pub output: Vec<u8>,
}

impl Answered {
    /// A call with what became of it.
    #[must_use]
    pub fn new(call: usize, done: &Done, output: &[u8]) -> Self {
        let Done { outcome, serial, snapshot, .. } = *done;
        Self { call, serial, snapshot, outcome, output: output.to_vec() }
    }
}

/// Loads a workload's data with all workers.
///
/// # Errors
/// The engine's failure.
pub fn load<R: Rival, W: Workload>(rival: &R, workload: &W, workers: usize) -> Result<()> {
    let mut procedures = Procedures::default();
    workload.register(&mut procedures);
    let calls = Calls::of_load(workload);
    let (dealer, procedures) = (calls.dealer(), &procedures);
    let work = |worker: usize| -> Result<()> {
        let mut session = rival.session(worker);
        let mut output = Vec::new();
        loop {
            let dealt = dealer.take();
            if dealt.is_empty() {
                return session.finish();
            }
            for i in dealt {
                let (procedure, args) = calls.get(i);
                procedures.run(&mut session, procedure, args, &mut output)?;
            }
        }
    };
    on_workers(workers, work)?;
    Ok(())
}

/// Runs something on as many threads; the results in the order of the workers' numbers.
pub(crate) fn on_workers<T: Send>(
    workers: usize,
    work: impl Fn(usize) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    std::thread::scope(|scope| {
        let work = &work;
        let others: Vec<_> = (1..workers).map(|w| scope.spawn(move || work(w))).collect();
        let mut all = vec![work(0)];
        for other in others {
            all.push(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        all.into_iter().collect()
    })
}

/// The state of an engine while no transaction runs.
pub struct RivalView<'a, R>(pub &'a R);

impl<R: Rival> View for RivalView<'_, R> {
    fn get(&self, table: TableId, key: &[u8]) -> Option<Vec<u8>> {
        self.0.get(table, key)
    }

    fn for_each(&self, table: TableId, each: &mut dyn FnMut(&[u8], &[u8])) {
        self.0.for_each(table, each);
    }
}
