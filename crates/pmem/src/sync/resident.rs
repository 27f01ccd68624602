//! Threads that stay, because starting one takes as long as a short epoch.

use std::io;

use rayon_core::{ThreadPool, ThreadPoolBuilder};

/// Runs tasks that need each other at the same time: the calling thread runs one, and each of the
/// others has a thread of its own, which sleeps in between.
#[derive(Debug)]
pub struct Crew {
    others: Option<ThreadPool>,
}

impl Crew {
    /// A crew of so many, the calling thread included.
    ///
    /// # Errors
    /// If the system starts no more threads.
    pub fn new(count: usize) -> io::Result<Self> {
        let others = count.saturating_sub(1);
        let start = || {
            let threads = ThreadPoolBuilder::new().num_threads(others);
            threads.thread_name(|number| format!("worker {}", number + 1)).build()
        };
        let others = (others > 0).then(start).transpose().map_err(io::Error::other)?;
        Ok(Self { others })
    }

    /// Runs all tasks at the same time; what they return, in their order.
    ///
    /// # Panics
    /// If there are more tasks than the crew has members; if a task does, after all have ended.
    pub fn run<T: Send>(
        &self,
        mut tasks: impl ExactSizeIterator<Item = impl FnOnce() -> T + Send>,
    ) -> Vec<T> {
        let count = self.others.as_ref().map_or(1, |others| others.current_num_threads() + 1);
        assert!(tasks.len() <= count, "{} tasks for a crew of {count}", tasks.len());
        let Some(first) = tasks.next() else { return Vec::new() };
        let mut results: Vec<Option<T>> = (0..=tasks.len()).map(|_| None).collect();
        let (mine, theirs) = results.split_first_mut().expect("that of the first");
        match &self.others {
            Some(others) => others.in_place_scope(|scope| {
                for (task, result) in tasks.zip(theirs) {
                    scope.spawn(move |_| *result = Some(task()));
                }
                *mine = Some(first());
            }),
            None => *mine = Some(first()),
        }
        results.into_iter().map(|result| result.expect("it ran")).collect()
    }
}
