//! Phases: parts of a batch in which workers run side by side, with everything theirs between.
//!
//! A phase has as many threads as there are workers, the first of which is the caller's. The others
//! stay from phase to phase, as the engine's workers do, so that small batches do not pay for
//! starting them. What a phase may change is lent to it, so the compiler knows that nothing else
//! does. A worker that fails or panics halts the others, which would wait for it for ever.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pmem::sync::WorkerThreads;

use crate::error::{Error, Result};

/// Looks at a condition after which a waiting thread lets others run.
const SPINS_MAX: u64 = 1 << 7;

/// Whether the workers of a phase must stop.
#[derive(Debug, Default)]
pub(super) struct Halt(AtomicBool);

/// Bytes of the stacks of threads other than the caller's.
const STACK_BYTES: usize = 2 << 20;

/// The threads of an engine's workers.
pub(super) struct Threads {
    pub(super) halt: Halt,
    resident: WorkerThreads,
}

impl Threads {
    /// Threads for so many workers.
    ///
    /// # Errors
    /// The system starts no more threads.
    pub(super) fn new(workers: usize) -> Result<Self> {
        let resident = WorkerThreads::new(workers, STACK_BYTES)
            .map_err(|error| Error::Limit(format!("no threads for workers: {error}")))?;
        Ok(Self { halt: Halt::default(), resident })
    }
}

/// Halts the others unless its worker came to an end.
struct Guard<'a>(&'a Halt, bool);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if !self.1 {
            self.0.0.store(true, Ordering::Relaxed);
        }
    }
}

/// How often and how long a worker waited.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Waits {
    /// Times that something was not there yet.
    pub waits: u64,
    /// Looks at it until it was.
    pub spins: u64,
}

impl Waits {
    pub(super) fn add(&mut self, other: Self) {
        self.waits += other.waits;
        self.spins += other.spins;
    }
}

impl Halt {
    /// Waits until a condition gives something.
    ///
    /// # Errors
    /// Another worker failed.
    pub(super) fn wait<T>(
        &self,
        waits: &mut Waits,
        mut condition: impl FnMut() -> Option<T>,
    ) -> Result<T> {
        let mut spins = 0;
        loop {
            if let Some(given) = condition() {
                waits.waits += u64::from(spins > 0);
                waits.spins += spins;
                return Ok(given);
            }
            self.check()?;
            spins += 1;
            pause(spins);
        }
    }

    /// Whether the worker may go on.
    ///
    /// # Errors
    /// Another worker failed.
    pub(super) fn check(&self) -> Result<()> {
        match self.0.load(Ordering::Relaxed) {
            true => Err(Error::Broken("another worker failed".into())),
            false => Ok(()),
        }
    }
}

/// Lets time pass for the so-manieth time in a row.
pub(super) fn pause(times: u64) {
    if times.is_multiple_of(SPINS_MAX) {
        std::thread::yield_now();
    } else {
        std::hint::spin_loop();
    }
}

/// Runs `work` with all workers at the same time; what they came to, in their order.
///
/// # Errors
/// That of the first worker that failed by itself.
///
/// # Panics
/// If a worker does, after all have ended; if there are more workers than threads.
pub(super) fn phase<T: Send, R: Send>(
    threads: &Threads,
    workers: &mut [T],
    work: impl Fn(usize, &mut T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let halt = &threads.halt;
    let guarded = |number: usize, worker: &mut T| {
        let was_halted = halt.check().is_err();
        let mut guard = Guard(halt, false);
        let result = work(number, worker);
        guard.1 = result.is_ok() || was_halted;
        result
    };
    let guarded = &guarded;
    let tasks = workers.iter_mut().enumerate();
    let tasks = tasks.map(|(number, worker)| move || guarded(number, worker));
    let mut results = threads.resident.run(tasks);
    // The one that failed by itself says more than those that it stopped.
    let own = results.iter().position(
        |result| matches!(result, Err(error) if !error.to_string().starts_with("another worker")),
    );
    match own {
        Some(failed) => Err(results.swap_remove(failed).err().expect("it failed")),
        None => results.into_iter().collect(),
    }
}

/// Deals the calls of a batch to workers, who take the next ones when they are free.
#[derive(Debug)]
pub(super) struct Dealer {
    next: AtomicU64,
    end: u64,
    chunk: u64,
}

impl Dealer {
    /// Deals so many calls, `chunk` at a time.
    pub(super) fn new(calls: usize, chunk: u64) -> Self {
        Self { next: AtomicU64::new(0), end: calls as u64, chunk }
    }

    /// The next calls; empty at the end.
    pub(super) fn take(&self) -> std::ops::Range<usize> {
        let first = self.next.fetch_add(self.chunk, Ordering::Relaxed).min(self.end);
        first as usize..(first + self.chunk).min(self.end) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits_for_ever(halt: &Halt) -> Result<()> {
        halt.wait(&mut Waits::default(), || None)
    }

    #[test]
    fn a_worker_that_fails_halts_those_that_wait() {
        let threads = Threads::new(4).unwrap();
        let failed = phase(&threads, &mut [0; 4], |number, _| match number {
            2 => Err(Error::Broken("a mistake".into())),
            _ => waits_for_ever(&threads.halt),
        });
        assert_eq!(failed.unwrap_err().to_string(), "a mistake");
    }

    #[test]
    #[should_panic(expected = "a bug")]
    fn a_worker_that_panics_halts_those_that_wait() {
        let threads = Threads::new(2).unwrap();
        let _ = phase(&threads, &mut [0; 2], |number, _| match number {
            1 => panic!("a bug"),
            _ => waits_for_ever(&threads.halt),
        });
    }

    #[test]
    fn the_threads_of_a_phase_serve_the_next_one() {
        let threads = Threads::new(3).unwrap();
        // No thread takes a second task: each waits until all have begun.
        let begun = std::sync::Barrier::new(3);
        let id = |_: usize, (): &mut ()| {
            begun.wait();
            Ok(std::thread::current().id())
        };
        let ids = || phase(&threads, &mut [(); 3], id).unwrap();
        let mut all: Vec<_> = (0..20).flat_map(|_| ids()).collect();
        all.sort_unstable_by_key(|id| format!("{id:?}"));
        all.dedup();
        assert_eq!(all.len(), 3);
    }

    #[test]
    fn every_call_is_dealt_once() {
        let dealer = Dealer::new(10, 4);
        let mut dealt = Vec::new();
        while let chunk @ 0..=9 = dealer.take().start {
            dealt.push(chunk);
        }
        assert_eq!(dealt, [0, 4, 8]);
        assert!(dealer.take().is_empty());
    }
}
