//! The queue between the threads that submit and the sequencer: bounded, and in order.
//!
//! Threads leave calls in shards of the batch that is open (`shards.rs`), without the queue's
//! lock. Who finds that batch full, or takes it, closes it under the lock. The place in the batch
//! is the place in the serial order.

mod shards;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

use engine::Calls;
use pmem::Process;

use crate::body;
use crate::call::group::Group;
use crate::call::share::{Held, Share};
use crate::error::{Error, Result};
use crate::host::driver::Driver;
use crate::sequencer::queue::shards::{Locked, Open, ShardCalls, Shards, Size};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Condvar, Mutex, MutexGuard, wait_timeout};

/// How much may wait, and how much goes into an epoch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) calls: usize,
    pub(crate) bytes: usize,
    pub(crate) epoch_calls: usize,
    /// Of one call.
    pub(crate) argument_bytes: usize,
    /// Nothing is accepted: the database is only read.
    pub(crate) read_only: bool,
}

/// What becomes of a call for which there is no room.
#[derive(Debug, Clone, Copy)]
pub(crate) enum OnFull<'w> {
    /// Its thread waits.
    Wait,
    /// It fails.
    Fail,
    /// It fails, and its task, of this number, is woken when there may be room.
    Wake(u64, &'w Waker),
}

impl OnFull<'_> {
    /// Whether a thread may do this.
    ///
    /// # Errors
    /// A mistake if a database runs a procedure on it, or a callback that would wait.
    #[inline]
    pub(crate) fn check(self) -> Result<()> {
        match self {
            Self::Wait => body::check_may_wait(),
            Self::Fail | Self::Wake(..) => body::check_outside(),
        }
    }
}

/// How a call goes into its epoch.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct How {
    /// The number of its submitter, whose calls keep their order; 0 for none.
    pub(crate) submitter: u16,
    /// It is for the serial part.
    pub(crate) is_serial: bool,
}

/// A task that may wait for room. Nothing is kept of it when it is dropped.
pub(crate) struct Task<'q> {
    queue: &'q Queue,
    pub(crate) number: u64,
    /// Whether the queue may have its waker.
    pub(crate) waits: bool,
}

impl Drop for Task<'_> {
    fn drop(&mut self) {
        if self.waits && self.queue.check_here().is_ok() {
            let waker = self.queue.inner().wakers.remove(&self.number);
            // No lock is held any more: this is code of the task's runtime.
            drop(waker);
        }
    }
}

/// Requests that are done between two epochs while calls wait.
const REQUESTS_MAX: usize = 4;

/// What waits in a queue, and before it.
pub(crate) struct Waiting {
    pub(crate) calls: usize,
    pub(crate) bytes: usize,
    /// Threads and tasks.
    pub(crate) threads: usize,
}

/// Something to do between two epochs.
pub(crate) type Request = Box<dyn FnOnce(Result<&mut Driver, &Error>) + Send>;

/// Calls of one epoch to be.
pub(crate) struct Batch {
    pub(crate) calls: Calls,
    pub(crate) group: Arc<Group>,
    /// What the tickets of its calls hold.
    pub(crate) shares: Vec<Held>,
    /// When its first call came.
    pub(crate) opened: Instant,
}

/// What the sequencer does next.
pub(crate) enum Work {
    /// Calls for an epoch.
    Epoch(Batch),
    /// Requests that are there.
    Requests(Vec<Request>),
    /// Nothing is waiting, but the engine defers calls.
    Deferred,
    /// The queue is closed and empty.
    Close,
}

/// A batch to which nothing is added any more, in parts by shard.
struct Closed {
    parts: Vec<ShardCalls>,
    calls: usize,
    group: Arc<Group>,
}

#[derive(Default)]
struct Inner {
    closed: VecDeque<Closed>,
    /// The batch that is open in the shards.
    open: Open,
    /// Calls that went into batches, of those that were accepted.
    batched: u64,
    requests: VecDeque<Request>,
    /// Requests were served since the last calls were.
    calls_are_next: bool,
    /// Why nothing more is accepted.
    ended: Option<Error>,
    /// Threads that wait for room ...
    blocked: usize,
    /// ... and tasks, by their numbers.
    wakers: HashMap<u64, Waker>,
    /// Memory to be reused: of a batch, and of shards.
    spare: Option<Calls>,
    spare_parts: Vec<ShardCalls>,
}

/// The queue of one database.
pub(crate) struct Queue {
    limits: Limits,
    shards: Shards,
    inner: Mutex<Inner>,
    work: Condvar,
    room: Condvar,
    tasks: AtomicU64,
    /// Where the sequencer's thread is.
    process: Process,
}

impl Queue {
    pub(crate) fn new(limits: Limits) -> Self {
        assert!(limits.epoch_calls > 0, "an epoch takes no call");
        assert!(limits.calls > 0, "the queue takes no call");
        Self {
            limits,
            shards: Shards::new(limits.bytes),
            inner: Mutex::default(),
            work: Condvar::new(),
            room: Condvar::new(),
            tasks: AtomicU64::new(0),
            process: Process::current(),
        }
    }

    /// A task that may wait for room.
    pub(crate) fn task(&self) -> Task<'_> {
        let number = self.tasks.fetch_add(1, Ordering::Relaxed);
        Task { queue: self, number, waits: false }
    }

    /// Whether this process has the threads that do the work, and locks that get released.
    ///
    /// # Errors
    /// A mistake in a child of `fork`.
    #[inline]
    pub(crate) fn check_here(&self) -> Result<()> {
        if self.process.is_here() { Ok(()) } else { Err(Error::forked()) }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls that wait.
    fn calls(&self, inner: &Inner) -> usize {
        let accepted = self.shards.accepted();
        assert!(accepted >= inner.batched, "{} of {accepted} calls are in batches", inner.batched);
        (accepted - inner.batched) as usize
    }

    /// Whether nothing waits and more is accepted.
    pub(crate) fn is_idle(&self) -> bool {
        let inner = self.inner();
        self.calls(&inner) == 0 && inner.requests.is_empty() && inner.ended.is_none()
    }

    /// Why nothing more is accepted, if so.
    pub(crate) fn ended(&self) -> Option<Error> {
        self.inner().ended.clone()
    }

    /// Why nothing more is accepted.
    pub(crate) fn why_ended(&self) -> Error {
        self.inner().ended.clone().unwrap_or_else(Error::closed)
    }

    /// Whether calls are accepted at all.
    ///
    /// # Errors
    /// A mistake if the database is only read.
    pub(crate) fn check_writable(&self) -> Result<()> {
        if self.limits.read_only { Err(Error::read_only()) } else { Ok(()) }
    }

    /// Checks what a call brings.
    ///
    /// # Errors
    /// The limit of arguments.
    pub(crate) fn check_arguments(&self, arguments: &[u8]) -> Result<()> {
        let most = self.limits.argument_bytes;
        if arguments.len() <= most {
            return Ok(());
        }
        Err(Error::limit(format!("arguments of {} bytes, at most {most}", arguments.len())))
    }

    /// Calls and argument bytes that wait, and threads that wait for room.
    pub(crate) fn waiting(&self) -> Waiting {
        let inner = self.inner();
        let threads = inner.blocked + inner.wakers.len();
        Waiting { calls: self.calls(&inner), bytes: self.shards.bytes(), threads }
    }

    /// Appends a call; where its answer will be.
    pub(crate) fn push(
        &self,
        procedure: u16,
        arguments: &[u8],
        how: How,
        on_full: OnFull<'_>,
    ) -> Result<(Arc<Share>, u32)> {
        self.check_here()?;
        self.check_arguments(arguments)?;
        // As they are counted when the batch is made.
        let bytes = arguments.len().next_multiple_of(8);
        let add = |calls: &mut Calls| {
            let How { submitter, is_serial } = how;
            let added = calls.push_of(submitter, is_serial, procedure, arguments);
            added.expect("the arguments were checked, and a batch has its limit");
        };
        self.add(Size { calls: 1, bytes }, add, on_full)
    }

    /// Appends calls that stay together; where the first one's answer will be.
    pub(crate) fn push_all(&self, calls: Calls, on_full: OnFull<'_>) -> Result<(Arc<Share>, u32)> {
        self.check_here()?;
        let size = Size::of(&calls);
        if calls.len() > self.limits.epoch_calls {
            return self.push_apart(calls, on_full);
        }
        let add = |all: &mut Calls| all.append(&calls).expect("a batch has its limit");
        self.add(size, add, on_full)
    }

    fn add(
        &self,
        size: Size,
        add: impl Fn(&mut Calls),
        on_full: OnFull<'_>,
    ) -> Result<(Arc<Share>, u32)> {
        loop {
            if let Some((share, place, accepted)) = self.shards.add(size, &add) {
                self.wake_for(accepted);
                return Ok((share, place));
            }
            let mut inner = self.make_room(size, on_full)?;
            self.open_batch(&mut inner, size.calls);
        }
    }

    /// Appends calls that are an epoch of their own.
    fn push_apart(&self, calls: Calls, on_full: OnFull<'_>) -> Result<(Arc<Share>, u32)> {
        let size = Size::of(&calls);
        let (mut inner, mut shards) = loop {
            let inner = self.make_room(size, on_full)?;
            let shards = self.shards.lock_all();
            // Until they were locked others may have used the room.
            if self.has_room(&inner, size) {
                break (inner, shards);
            }
        };
        self.close_batch(&mut inner, &mut shards);
        let group = Arc::<Group>::default();
        let first = self.shards.accept_apart(size);
        assert_eq!(first, inner.open.first, "calls came in between");
        let accepted = first + size.calls as u64;
        let share = Share::of(Arc::clone(&group));
        let parts = vec![ShardCalls::of(calls, Arc::clone(&share))];
        inner.closed.push_back(Closed { parts, calls: size.calls, group: Arc::clone(&group) });
        inner.open.first = accepted;
        shards::take_all(&mut shards, &inner.open, &mut Vec::new());
        self.accept_more(&inner);
        drop((shards, inner));
        self.wake_for(accepted);
        Ok((share, 0))
    }

    /// Waits until this much more may be queued. The room may be another caller's as soon as it is
    /// there.
    fn make_room(&self, size: Size, on_full: OnFull<'_>) -> Result<MutexGuard<'_, Inner>> {
        self.check_writable()?;
        let (limits, Size { calls, bytes }) = (self.limits, size);
        if calls > limits.calls || bytes > limits.bytes {
            return Err(Error::limit(format!(
                "{calls} calls with {bytes} bytes at a time, but the queue holds at most {} calls \
                 with {} bytes",
                limits.calls, limits.bytes
            )));
        }
        let (mut inner, mut mine) = (self.inner(), None);
        loop {
            if let Some(error) = &inner.ended {
                return Err(error.clone());
            }
            if self.has_room(&inner, size) {
                return Ok(inner);
            }
            let full = Error::queue_full(self.calls(&inner), self.shards.bytes());
            match on_full {
                OnFull::Wait => {}
                OnFull::Fail => return Err(full),
                // Cloning and dropping wakers runs code of the task's runtime: no lock is held.
                OnFull::Wake(task, waker) => {
                    let Some(mine) = mine.take() else {
                        drop(inner);
                        mine = Some(waker.clone());
                        inner = self.inner();
                        continue;
                    };
                    let before = inner.wakers.insert(task, mine);
                    drop(inner);
                    drop(before);
                    return Err(full);
                }
            }
            inner.blocked += 1;
            inner = self.room.wait(inner).unwrap_or_else(PoisonError::into_inner);
            inner.blocked -= 1;
        }
    }

    /// Whether this much more may be queued now.
    fn has_room(&self, inner: &Inner, size: Size) -> bool {
        self.calls(inner) + size.calls <= self.limits.calls
            && self.shards.bytes() + size.bytes <= self.limits.bytes
    }

    /// Sees to it that this thread's shard takes calls, and that the open batch has room for so
    /// many.
    fn open_batch(&self, inner: &mut Inner, calls: usize) {
        let after = self.shards.accepted() + calls as u64;
        if after > inner.open.first + self.limits.epoch_calls as u64 {
            self.close_batch(inner, &mut self.shards.lock_all());
        }
        self.shards.open_mine(&inner.open);
        self.accept_more(inner);
    }

    /// Closes the open batch, if there is anything in it, and opens the next one.
    fn close_batch(&self, inner: &mut Inner, shards: &mut Locked<'_>) {
        let accepted = self.shards.accepted();
        assert!(accepted >= inner.open.first, "the open batch begins behind its calls");
        let calls = (accepted - inner.open.first) as usize;
        if calls == 0 {
            return;
        }
        assert!(calls <= self.limits.epoch_calls, "{calls} calls in a batch");
        let next = Open { group: Arc::default(), first: accepted };
        let Open { group, .. } = std::mem::replace(&mut inner.open, next);
        let parts = shards::take_all(shards, &inner.open, &mut inner.spare_parts);
        let there: usize = parts.iter().map(ShardCalls::calls).sum();
        assert_eq!(there, calls, "a number was given to no call");
        inner.closed.push_back(Closed { parts, calls, group });
    }

    /// As many calls are accepted as fit into the open batch and into the queue.
    fn accept_more(&self, inner: &Inner) {
        let Limits { calls, epoch_calls, .. } = self.limits;
        let until = (inner.open.first + epoch_calls as u64).min(inner.batched + calls as u64);
        let accepted = self.shards.accepted();
        assert!(accepted <= until, "{accepted} calls were accepted, at most {until} fit");
        self.shards.accept_until(if inner.ended.is_some() { 0 } else { until });
    }

    /// Wakes the sequencer if it waits for that many calls.
    fn wake_for(&self, accepted: u64) {
        if self.shards.is_to_wake(accepted) {
            // By now it sleeps.
            drop(self.inner());
            self.work.notify_one();
        }
    }

    /// Asks for something between two epochs.
    pub(crate) fn request(&self, request: Request) -> Result<()> {
        self.check_here()?;
        let mut inner = self.inner();
        if let Some(error) = &inner.ended {
            return Err(error.clone());
        }
        inner.requests.push_back(request);
        self.work.notify_one();
        Ok(())
    }

    /// Accepts nothing more; what is there will still be done.
    pub(crate) fn close(&self) {
        self.end(Error::closed());
    }

    fn end(&self, error: Error) {
        let mut inner = self.inner();
        inner.ended.get_or_insert(error);
        // No thread is about to leave a call.
        let shards = self.shards.lock_all();
        self.accept_more(&inner);
        drop(shards);
        self.work.notify_one();
        self.made_room(inner);
    }

    /// Wakes who waits for room.
    fn made_room(&self, mut inner: MutexGuard<'_, Inner>) {
        let wakers = std::mem::take(&mut inner.wakers);
        if inner.blocked > 0 {
            self.room.notify_all();
        }
        // A task may run at once on this thread.
        drop(inner);
        body::wake(wakers.into_values());
    }

    /// Accepts nothing more and gives up what is there.
    pub(crate) fn fail(&self, error: &Error) {
        self.end(error.clone());
        let (batches, requests) = {
            let mut inner = self.inner();
            inner.ended = Some(error.clone());
            // While they are locked no thread has added bytes that are not accepted.
            let mut shards = self.shards.lock_all();
            self.close_batch(&mut inner, &mut shards);
            let left: u64 = inner.closed.iter().map(|batch| batch.calls as u64).sum();
            inner.batched += left;
            assert_eq!(inner.batched, self.shards.accepted(), "an accepted call is in no batch");
            self.shards.release(self.shards.bytes());
            drop(shards);
            (std::mem::take(&mut inner.closed), std::mem::take(&mut inner.requests))
        };
        batches.iter().for_each(|batch| batch.group.end(error));
        requests.into_iter().for_each(|request| request(Err(error)));
    }

    /// Waits for work. If fewer calls than `enough` are there, waits for more, but not longer than
    /// `most`.
    pub(crate) fn wait(&self, deferred_records: bool, enough: usize, most: Duration) {
        let mut inner = self.inner();
        let mut waited = most.is_zero();
        loop {
            let calls = self.calls(&inner);
            let is_all = calls == 0 || calls >= enough;
            let is_urgent = !inner.requests.is_empty() || inner.ended.is_some();
            let has_work = is_urgent || calls > 0 || deferred_records;
            if has_work && (is_all || waited || is_urgent) {
                return self.shards.wake_never();
            }
            let wanted = if calls > 0 { enough } else { 1 };
            if self.shards.wake_at(inner.batched + wanted as u64) {
                continue;
            }
            inner = if calls > 0 {
                waited = true;
                wait_timeout(&self.work, &self.inner, inner, most)
            } else {
                self.work.wait(inner).unwrap_or_else(PoisonError::into_inner)
            };
        }
    }

    /// Takes what is there.
    pub(crate) fn take(&self, deferred_records: bool) -> Option<Work> {
        let mut inner = self.inner();
        let calls = self.calls(&inner);
        // Readers who ask again and again keep no caller from writing, nor the other way round.
        let calls_are_next = inner.calls_are_next && calls > 0;
        if !inner.requests.is_empty() && !calls_are_next {
            inner.calls_are_next = true;
            let most = if calls > 0 { REQUESTS_MAX } else { usize::MAX };
            let requests = inner.requests.len().min(most);
            return Some(Work::Requests(inner.requests.drain(..requests).collect()));
        }
        if calls > 0 {
            inner.calls_are_next = false;
            return Some(Work::Epoch(self.take_batch(inner)));
        }
        if deferred_records {
            return Some(Work::Deferred);
        }
        assert!(inner.closed.is_empty(), "a batch is left though no call waits");
        assert!(inner.requests.is_empty(), "requests are left");
        inner.ended.is_some().then_some(Work::Close)
    }

    fn take_batch(&self, mut inner: MutexGuard<'_, Inner>) -> Batch {
        if inner.closed.is_empty() {
            self.close_batch(&mut inner, &mut self.shards.lock_all());
        }
        let Closed { mut parts, calls: count, group } =
            inner.closed.pop_front().expect("calls are in batches");
        assert!(count > 0, "a batch without calls");
        inner.batched += count as u64;
        assert!(inner.batched <= self.shards.accepted(), "calls are in batches before they came");
        self.shards.release(parts.iter().map(ShardCalls::bytes).sum());
        self.accept_more(&inner);
        let memory = inner.spare.take().unwrap_or_default();
        self.made_room(inner);

        let opened = shards::opened(&parts);
        let shares = parts.iter().flat_map(ShardCalls::held).collect();
        assert!(memory.is_empty(), "memory with calls of another batch");
        let calls = shards::in_order(&mut parts, memory);
        assert_eq!(calls.len(), count, "the batch has other calls than were accepted for it");
        parts.iter_mut().for_each(ShardCalls::clear);
        let mut inner = self.inner();
        inner.spare_parts.append(&mut parts);
        inner.spare_parts.truncate(self.shards.len());
        drop(inner);
        Batch { calls, group, shares, opened }
    }

    /// Gives memory back for the next batch.
    pub(crate) fn recycle(&self, mut calls: Calls) {
        calls.clear();
        self.inner().spare = Some(calls);
    }
}

#[cfg(test)]
mod tests;
