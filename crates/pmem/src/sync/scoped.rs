//! What [`WorkerThreads`] is where threads are watched or explored: new ones for each step.

use std::io;
use std::panic::resume_unwind;

use super::thread;

/// Runs tasks that need each other at the same time: the calling thread runs one, and each of the
/// others has a thread of its own.
#[derive(Debug)]
pub struct WorkerThreads;

impl WorkerThreads {
    /// Worker threads,  any number. Their stacks are those of all threads.
    ///
    /// # Errors
    /// None.
    pub fn new(_: usize, _: usize) -> io::Result<Self> {
        Ok(Self)
    }

    /// Runs all tasks at the same time; what they return, in their order.
    ///
    /// # Panics
    /// If a task does.
    pub fn run<T: Send>(
        &self,
        mut tasks: impl ExactSizeIterator<Item = impl FnOnce() -> T + Send>,
    ) -> Vec<T> {
        let Some(first) = tasks.next() else { return Vec::new() };
        thread::scope(|scope| {
            let others: Vec<_> = tasks.map(|task| scope.spawn(task)).collect();
            let mine = first();
            let theirs = others.into_iter();
            let theirs =
                theirs.map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic)));
            std::iter::once(mine).chain(theirs).collect()
        })
    }
}
