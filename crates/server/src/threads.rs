//! The threads that connections live on. Each has a runtime of its own: what a connection wakes is
//! on its own thread, and no idle thread is woken to look for work.

use std::future::Future;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

struct Thread {
    runtime: Handle,
    /// Its end is the thread's.
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

/// A fixed number of threads. Connections are dealt to them in turn.
pub(crate) struct Threads {
    all: Vec<Thread>,
    next: AtomicUsize,
}

impl Threads {
    pub(crate) fn new(count: usize) -> io::Result<Threads> {
        let all = (0..count).map(|_| start()).collect::<io::Result<_>>()?;
        Ok(Threads { all, next: AtomicUsize::new(0) })
    }

    /// Runs a task on one of them; sockets that it makes are that thread's, too.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        drop(self.all[turn % self.all.len()].runtime.spawn(task));
    }

    /// Drops tasks that have not ended.
    pub(crate) fn end(self) {
        for Thread { stop, thread, .. } in self.all {
            drop(stop);
            // A panic has ended its tasks, too.
            let _ = thread.join();
        }
    }
}

fn start() -> io::Result<Thread> {
    let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
    let (stop, stopped) = oneshot::channel();
    let handle = runtime.handle().clone();
    let run = move || {
        // The sender sends nothing: it is dropped.
        let _ = runtime.block_on(stopped);
    };
    let thread = std::thread::Builder::new().name("nvcaracal-net".to_owned()).spawn(run)?;
    Ok(Thread { runtime: handle, stop, thread })
}
