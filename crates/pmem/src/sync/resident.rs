//! Threads that stay, because starting one takes as long as a short epoch.

use std::io;

use rayon_core::{ThreadPool, ThreadPoolBuilder};

/// Runs tasks that need each other at the same time: the calling thread runs one, and each of the
/// others has a thread of its own, which sleeps in between.
#[derive(Debug)]
pub struct WorkerThreads {
    others: Option<ThreadPool>,
}

impl WorkerThreads {
    /// Worker threads,  so many, the calling thread included. The others have stacks of this size.
    ///
    /// # Errors
    /// If the system starts no more threads.
    pub fn new(count: usize, stack_bytes: usize) -> io::Result<Self> {
        let others = count.saturating_sub(1);
        let start = || {
            let threads = ThreadPoolBuilder::new().num_threads(others).stack_size(stack_bytes);
            threads.thread_name(|number| format!("worker {}", number + 1)).build()
        };
        let others = (others > 0).then(start).transpose().map_err(io::Error::other)?;
        Ok(Self { others })
    }

    /// Runs all tasks at the same time; what they return, in their order.
    ///
    /// # Panics
    /// If there are more tasks than there are threads; if a task does, after all have ended.
    pub fn run<T: Send>(
        &self,
        mut tasks: impl ExactSizeIterator<Item = impl FnOnce() -> T + Send>,
    ) -> Vec<T> {
        let count = self.others.as_ref().map_or(1, |others| others.current_num_threads() + 1);
        assert!(tasks.len() <= count, "{} tasks for worker threads for {count}", tasks.len());
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

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn tasks_run_at_the_same_time_and_answer_in_order() {
        let threads = WorkerThreads::new(4, 1 << 20).unwrap();
        for count in [0, 1, 3, 4] {
            let all_are_here = Barrier::new(count);
            let task = |number| {
                let all_are_here = &all_are_here;
                move || (all_are_here.wait(), number).1
            };
            let numbers: Vec<_> = (0..count).collect();
            assert_eq!(threads.run(numbers.iter().map(|&number| task(number))), numbers);
        }
    }

    #[test]
    fn a_task_that_panics_does_so_when_all_have_ended() {
        let threads = WorkerThreads::new(2, 1 << 20).unwrap();
        for who in 0..2 {
            let both_are_here = Barrier::new(2);
            let tasks = (0..2).map(|number| {
                let both_are_here = &both_are_here;
                move || {
                    both_are_here.wait();
                    assert_ne!(number, who, "it is its turn");
                }
            });
            let panic = catch_unwind(AssertUnwindSafe(|| threads.run(tasks))).unwrap_err();
            assert!(panic.downcast_ref::<String>().is_some_and(|s| s.contains("its turn")));
        }
        assert_eq!(threads.run((0..2).map(|number| move || number)), [0, 1]);
    }
}
