//! Snapshots of the newest state. To take one waits for the epoch that runs, so one thread takes
//! them, and all that wait meanwhile share the next.

use super::pool::lock;
use nvcaracal::{Database, Snapshot};
use std::future::poll_fn;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::thread::JoinHandle;

type Taken = nvcaracal::Result<Snapshot>;

#[derive(Default)]
struct Wish {
    taken: Option<Taken>,
    waker: Option<Waker>,
}

#[derive(Default)]
struct Wishes {
    open: Vec<Arc<Mutex<Wish>>>,
    has_ended: bool,
}

#[derive(Default)]
struct Shared {
    wishes: Mutex<Wishes>,
    more: Condvar,
}

/// Takes snapshots.
pub(super) struct Snapshots {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Snapshots {
    pub(super) fn new(database: Database) -> std::io::Result<Snapshots> {
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("nvcaracal-snapshots".to_owned())
            .spawn(move || of_thread.run(&database))?;
        Ok(Snapshots { shared, thread: Mutex::new(Some(thread)) })
    }

    /// A snapshot with every call that was answered before this was asked for; `None` at the end.
    pub(super) async fn newest(&self) -> Option<Taken> {
        let wish = Arc::<Mutex<Wish>>::default();
        {
            let mut wishes = lock(&self.shared.wishes);
            if wishes.has_ended {
                return None;
            }
            wishes.open.push(Arc::clone(&wish));
            self.shared.more.notify_one();
        }
        let taken = poll_fn(|context| {
            let mut wish = lock(&wish);
            match wish.taken.take() {
                Some(taken) => Poll::Ready(taken),
                None => {
                    wish.waker = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        });
        Some(taken.await)
    }

    /// Fulfils what was asked for, and ends the thread.
    pub(super) fn end(&self) {
        lock(&self.shared.wishes).has_ended = true;
        self.shared.more.notify_all();
        if let Some(thread) = lock(&self.thread).take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn run(&self, database: &Database) {
        while let Some(open) = self.next() {
            let taken = database.snapshot();
            for wish in open {
                let mut wish = lock(&wish);
                wish.taken = Some(taken.clone());
                if let Some(waker) = wish.waker.take() {
                    waker.wake();
                }
            }
        }
    }

    /// What was asked for until now; `None` at the end.
    fn next(&self) -> Option<Vec<Arc<Mutex<Wish>>>> {
        let mut wishes = lock(&self.wishes);
        loop {
            if !wishes.open.is_empty() {
                return Some(std::mem::take(&mut wishes.open));
            }
            if wishes.has_ended {
                return None;
            }
            wishes = self.more.wait(wishes).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
