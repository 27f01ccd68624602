//! The queue between the threads that submit and the sequencer: bounded, in order, one lock.
//!
//! Calls are written straight into the batch that becomes an epoch. The place in the batch is the
//! place in the serial order.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

use engine::{ARGUMENT_BYTES_MAX, Calls};

use crate::driver::Driver;
use crate::ticket::Group;
use crate::{Error, Result};

/// How much may wait, and how much goes into an epoch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) calls: usize,
    pub(crate) bytes: usize,
    pub(crate) epoch_calls: usize,
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
pub(crate) type Request = Box<dyn FnOnce(Result<&mut dyn Driver, &Error>) + Send>;

/// Calls of one epoch to be.
pub(crate) struct Batch {
    pub(crate) calls: Calls,
    pub(crate) group: Arc<Group>,
    /// When its first call came.
    pub(crate) opened: Instant,
}

/// What the sequencer does next.
pub(crate) enum Work {
    /// Calls for an epoch.
    Epoch(Batch),
    /// Requests that are there.
    Requests(Vec<Request>),
    /// Nothing is waiting, but the engine carries calls over.
    Carried,
    /// The queue is closed and empty.
    Close,
}

#[derive(Default)]
struct Inner {
    batches: VecDeque<Batch>,
    requests: VecDeque<Request>,
    /// Requests were taken since the last calls were.
    is_calls_turn: bool,
    calls: usize,
    bytes: usize,
    /// Why nothing more is accepted.
    ended: Option<Error>,
    /// The sequencer waits until this many calls are there.
    wanted: Option<usize>,
    /// Threads that wait for room ...
    blocked: usize,
    /// ... and tasks, by their numbers.
    wakers: HashMap<u64, Waker>,
    /// Memory to be reused.
    spare: Option<Calls>,
}

/// The queue of one database.
pub(crate) struct Queue {
    limits: Limits,
    inner: Mutex<Inner>,
    work: Condvar,
    room: Condvar,
    tasks: AtomicU64,
}

impl Queue {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            inner: Mutex::default(),
            work: Condvar::new(),
            room: Condvar::new(),
            tasks: AtomicU64::new(0),
        }
    }

    /// A number for a task that may wait for room.
    pub(crate) fn task(&self) -> u64 {
        self.tasks.fetch_add(1, Ordering::Relaxed)
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nothing waits and more is accepted.
    pub(crate) fn is_idle(&self) -> bool {
        let inner = self.inner();
        inner.calls == 0 && inner.requests.is_empty() && inner.ended.is_none()
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

    /// Calls and argument bytes that wait, and threads that wait for room.
    pub(crate) fn waiting(&self) -> Waiting {
        let inner = self.inner();
        let threads = inner.blocked + inner.wakers.len();
        Waiting { calls: inner.calls, bytes: inner.bytes, threads }
    }

    /// Appends a call, for the serial part of its epoch or not; where its answer will be.
    pub(crate) fn push(
        &self,
        procedure: u16,
        arguments: &[u8],
        is_serial: bool,
        on_full: OnFull<'_>,
    ) -> Result<(Arc<Group>, u32)> {
        check_arguments(arguments)?;
        // As they are counted when the batch is taken.
        let bytes = arguments.len().next_multiple_of(8);
        let mut inner = self.make_room(1, bytes, on_full)?;
        let batch = inner.open_batch(1, self.limits.epoch_calls);
        let index = batch.calls.len() as u32;
        match is_serial {
            true => batch.calls.push_serial(procedure, arguments)?,
            false => batch.calls.push(procedure, arguments)?,
        }
        let group = Arc::clone(&batch.group);
        self.pushed(inner, 1, bytes);
        Ok((group, index))
    }

    /// Appends calls that stay together; where the first one's answer will be.
    pub(crate) fn push_all(&self, calls: Calls, on_full: OnFull<'_>) -> Result<(Arc<Group>, u32)> {
        let (count, bytes) = (calls.len(), calls.bytes());
        let mut inner = self.make_room(count, bytes, on_full)?;
        let fits = inner.batches.back().map(|b| b.calls.len() + count <= self.limits.epoch_calls);
        if fits != Some(true) {
            let batch = Batch { calls, group: Arc::default(), opened: Instant::now() };
            let group = Arc::clone(&batch.group);
            inner.batches.push_back(batch);
            self.pushed(inner, count, bytes);
            return Ok((group, 0));
        }
        let batch = inner.open_batch(count, self.limits.epoch_calls);
        let first = batch.calls.len() as u32;
        batch.calls.append(&calls)?;
        let group = Arc::clone(&batch.group);
        self.pushed(inner, count, bytes);
        Ok((group, first))
    }

    /// Waits until this much more may be queued.
    fn make_room(
        &self,
        calls: usize,
        bytes: usize,
        on_full: OnFull<'_>,
    ) -> Result<MutexGuard<'_, Inner>> {
        self.check_writable()?;
        let limits = self.limits;
        if calls > limits.calls || bytes > limits.bytes {
            return Err(Error::limit(format!(
                "{calls} calls with {bytes} bytes at a time, but the queue holds at most {} calls \
                 with {} bytes",
                limits.calls, limits.bytes
            )));
        }
        let mut inner = self.inner();
        loop {
            if let Some(error) = &inner.ended {
                return Err(error.clone());
            }
            if inner.calls + calls <= limits.calls && inner.bytes + bytes <= limits.bytes {
                return Ok(inner);
            }
            let full = Error::queue_full(inner.calls, inner.bytes);
            match on_full {
                OnFull::Wait => {}
                OnFull::Fail => return Err(full),
                OnFull::Wake(task, waker) => {
                    inner.wakers.insert(task, waker.clone());
                    return Err(full);
                }
            }
            inner.blocked += 1;
            inner = self.room.wait(inner).unwrap_or_else(PoisonError::into_inner);
            inner.blocked -= 1;
        }
    }

    fn pushed(&self, mut inner: MutexGuard<'_, Inner>, calls: usize, bytes: usize) {
        inner.calls += calls;
        inner.bytes += bytes;
        if inner.wanted.is_some_and(|wanted| inner.calls >= wanted) {
            inner.wanted = None;
            drop(inner);
            self.work.notify_one();
        }
    }

    /// Asks for something between two epochs.
    pub(crate) fn request(&self, request: Request) -> Result<()> {
        let mut inner = self.inner();
        if let Some(error) = &inner.ended {
            return Err(error.clone());
        }
        inner.requests.push_back(request);
        inner.wanted = None;
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
        inner.wanted = None;
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
        wakers.into_values().for_each(Waker::wake);
    }

    /// Accepts nothing more and gives up what is there.
    pub(crate) fn fail(&self, error: &Error) {
        self.end(error.clone());
        let (batches, requests) = {
            let mut inner = self.inner();
            inner.ended = Some(error.clone());
            (inner.calls, inner.bytes) = (0, 0);
            (std::mem::take(&mut inner.batches), std::mem::take(&mut inner.requests))
        };
        batches.iter().for_each(|batch| batch.group.end(error));
        requests.into_iter().for_each(|request| request(Err(error)));
    }

    /// Waits for work. If fewer calls than `enough` are there, waits for more, but not longer than
    /// `most`.
    pub(crate) fn wait(&self, carries: bool, enough: usize, most: Duration) {
        let mut inner = self.inner();
        let mut waited = most.is_zero();
        loop {
            let is_all = inner.calls == 0 || inner.calls >= enough;
            let is_urgent = !inner.requests.is_empty() || inner.ended.is_some();
            let has_work = is_urgent || inner.calls > 0 || carries;
            if has_work && (is_all || waited || is_urgent) {
                inner.wanted = None;
                return;
            }
            let more_may_come = inner.calls > 0;
            inner.wanted = Some(if more_may_come { enough } else { 1 });
            inner = if more_may_come {
                waited = true;
                self.work.wait_timeout(inner, most).unwrap_or_else(PoisonError::into_inner).0
            } else {
                self.work.wait(inner).unwrap_or_else(PoisonError::into_inner)
            };
        }
    }

    /// Takes what is there.
    pub(crate) fn take(&self, carries: bool) -> Option<Work> {
        let mut inner = self.inner();
        // Readers who ask again and again keep nobody from writing, nor the other way round.
        let is_calls_turn = inner.is_calls_turn && inner.calls > 0;
        if !inner.requests.is_empty() && !is_calls_turn {
            inner.is_calls_turn = true;
            let most = if inner.calls > 0 { REQUESTS_MAX } else { usize::MAX };
            let requests = inner.requests.len().min(most);
            return Some(Work::Requests(inner.requests.drain(..requests).collect()));
        }
        if inner.calls > 0 {
            inner.is_calls_turn = false;
            return Some(Work::Epoch(self.take_batch(inner)));
        }
        if carries {
            return Some(Work::Carried);
        }
        inner.ended.is_some().then_some(Work::Close)
    }

    fn take_batch(&self, mut inner: MutexGuard<'_, Inner>) -> Batch {
        let batch = inner.batches.pop_front().expect("calls are in batches");
        inner.wanted = None;
        inner.calls -= batch.calls.len();
        inner.bytes -= batch.calls.bytes();
        self.made_room(inner);
        batch
    }

    /// Gives memory back for the next batch.
    pub(crate) fn recycle(&self, mut calls: Calls) {
        calls.clear();
        self.inner().spare = Some(calls);
    }
}

impl Inner {
    /// The batch that the next calls go to.
    fn open_batch(&mut self, calls: usize, epoch_calls: usize) -> &mut Batch {
        if self.batches.back().is_none_or(|last| last.calls.len() + calls > epoch_calls) {
            let calls = self.spare.take().unwrap_or_default();
            self.batches.push_back(Batch { calls, group: Arc::default(), opened: Instant::now() });
        }
        self.batches.back_mut().expect("just made")
    }
}

/// Checks what a call brings.
pub(crate) fn check_arguments(arguments: &[u8]) -> Result<()> {
    if arguments.len() > ARGUMENT_BYTES_MAX {
        return Err(Error::limit(format!(
            "arguments of {} bytes, at most {ARGUMENT_BYTES_MAX}",
            arguments.len()
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// O-87: readers who ask again and again and callers who submit again and again take turns.
    #[test]
    fn o_87_requests_and_calls_take_turns() {
        let queue =
            Queue::new(Limits { calls: 100, bytes: 1 << 20, epoch_calls: 10, read_only: false });
        let ask = |times| (0..times).for_each(|_| queue.request(Box::new(|_| {})).unwrap());
        let submit = || drop(queue.push(0, &[], false, OnFull::Wait).unwrap());
        let mut taken = Vec::new();
        let mut take = || match queue.take(false) {
            Some(Work::Requests(requests)) => taken.push(requests.len()),
            Some(Work::Epoch(_)) => taken.push(0),
            _ => taken.push(usize::MAX),
        };
        submit();
        ask(2 * REQUESTS_MAX + 1);
        for _ in 0..4 {
            take();
            ask(1);
            submit();
        }
        take();
        take();
        // Nobody writes any more: all of them at once.
        ask(20);
        take();
        take();
        assert_eq!(taken[..6], [REQUESTS_MAX, 0, REQUESTS_MAX, 0, REQUESTS_MAX, 0]);
        assert_eq!(taken[6..], [21, usize::MAX]);
    }
}
