//! Shards of the queue: where threads leave calls for the epoch to be, each in a shard of its own
//! if it can be, so that they do not wait for each other.
//!
//! A call gets a number when it is accepted, by one addition for all threads; the numbers are the
//! serial order. The thread that closes the batch that is open locks all shards: then every number
//! that was given is in one of them, and none is missing in between.

use std::sync::{Arc, PoisonError};
use std::time::Instant;

use engine::Calls;

use crate::call::group::Group;
use crate::call::share::{Held, SHARE_CALLS, Share};
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Mutex, MutexGuard, thread, thread_number};

/// Shards for each processor: threads meet in one less often.
const SHARDS_BY_PROCESSOR: usize = 2;
/// Their numbers fit into a byte.
const SHARDS_MAX: usize = 64;
/// No number is so large.
const NEVER: u64 = u64::MAX;

/// Keeps what threads change away from what others use: a processor fetches lines in pairs.
#[repr(align(128))]
#[derive(Debug, Default)]
struct Apart<T>(T);

/// The numbers of calls since the database was opened.
#[derive(Debug)]
struct Numbers {
    /// Calls that were accepted: the number of the next one.
    accepted: AtomicU64,
    /// Calls with smaller numbers fit into the open batch and into the queue.
    until: AtomicU64,
    /// When this many calls were accepted the sequencer is to be woken.
    wake_at: AtomicU64,
    /// Bytes of arguments that wait.
    bytes: AtomicUsize,
}

/// Calls of a batch that threads left in one shard.
#[derive(Debug, Default)]
pub(super) struct ShardCalls {
    calls: Calls,
    /// Their places in the batch, in order; empty where they are all of it.
    places: Vec<u32>,
    /// What their tickets hold, and which of the calls here is the first of each.
    shares: Vec<(Arc<Share>, usize)>,
    /// When the first one came.
    opened: Option<Instant>,
}

/// Calls of the open batch.
#[derive(Debug, Default)]
pub(super) struct Shard {
    part: ShardCalls,
    /// The open batch; absent until a thread that had the queue's lock said which it is.
    open: Option<(Arc<Group>, u64)>,
}

/// The batch that is open.
#[derive(Debug, Default)]
pub(super) struct Open {
    pub(super) group: Arc<Group>,
    /// The number of its first call.
    pub(super) first: u64,
}

/// How much calls need of a queue.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    pub(super) calls: usize,
    /// Of their arguments.
    pub(super) bytes: usize,
}

impl Size {
    pub(super) fn of(calls: &Calls) -> Self {
        Self { calls: calls.len(), bytes: calls.bytes() }
    }
}

/// All shards, locked.
pub(super) type Locked<'l> = Vec<MutexGuard<'l, Shard>>;

/// The shards of a queue.
#[derive(Debug)]
pub(super) struct Shards {
    /// A power of two of them.
    shards: Box<[Apart<Mutex<Shard>>]>,
    numbers: Apart<Numbers>,
    bytes_max: usize,
}

fn lock(shard: &Apart<Mutex<Shard>>) -> MutexGuard<'_, Shard> {
    shard.0.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shards {
    pub(super) fn new(bytes_max: usize) -> Self {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let shards = (processors * SHARDS_BY_PROCESSOR).next_power_of_two().min(SHARDS_MAX);
        let numbers = Numbers {
            accepted: AtomicU64::new(0),
            until: AtomicU64::new(0),
            wake_at: AtomicU64::new(NEVER),
            bytes: AtomicUsize::new(0),
        };
        Self {
            shards: (0..shards).map(|_| Apart::default()).collect(),
            numbers: Apart(numbers),
            bytes_max,
        }
    }

    fn mine(&self) -> &Apart<Mutex<Shard>> {
        &self.shards[thread_number() & (self.shards.len() - 1)]
    }

    /// Calls that were accepted.
    pub(super) fn accepted(&self) -> u64 {
        self.numbers.0.accepted.load(Ordering::SeqCst)
    }

    /// Bytes of their arguments that wait.
    pub(super) fn bytes(&self) -> usize {
        self.numbers.0.bytes.load(Ordering::Relaxed)
    }

    /// Says how many calls may be accepted in all. Less than before only with all shards locked.
    pub(super) fn accept_until(&self, calls: u64) {
        self.numbers.0.until.store(calls, Ordering::Relaxed);
    }

    /// Asks to be woken when so many calls were accepted; whether they were already. The queue's
    /// lock is held from here until the sequencer sleeps.
    pub(super) fn wake_at(&self, calls: u64) -> bool {
        // Either this sees a call that is accepted now, or the thread that submits it sees this
        // (SeqCst).
        self.numbers.0.wake_at.store(calls, Ordering::SeqCst);
        self.accepted() >= calls
    }

    /// The sequencer is awake.
    pub(super) fn wake_never(&self) {
        self.numbers.0.wake_at.store(NEVER, Ordering::SeqCst);
    }

    /// Whether the sequencer is to be woken, as so many calls were accepted. It is told to one.
    pub(super) fn is_to_wake(&self, calls: u64) -> bool {
        let wake_at = &self.numbers.0.wake_at;
        let at = wake_at.load(Ordering::SeqCst);
        at <= calls
            && wake_at.compare_exchange(at, NEVER, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }

    /// Has `add` append calls to the open batch, which get numbers that follow each other: what
    /// their tickets hold, the place of the first one in the batch, and how many calls have been
    /// accepted now. Nothing if they do not fit, or it is not known where they go.
    pub(super) fn add(
        &self,
        size: Size,
        add: impl FnOnce(&mut Calls),
    ) -> Option<(Arc<Share>, u32, u64)> {
        let mut shard = lock(self.mine());
        let Shard { part, open } = &mut *shard;
        let (group, first) = open.as_ref()?;
        let number = self.accept(size)?;
        assert!(number >= *first, "call {number} came before its batch, which begins at {first}");
        let place = (number - first) as u32;
        part.opened.get_or_insert_with(Instant::now);
        let share = part.share(group);
        part.places.extend(place..place + size.calls as u32);
        add(&mut part.calls);
        Some((share, place, number + size.calls as u64))
    }

    /// Accepts calls, if there is room: the number of the first one. The shard that they go to is
    /// locked.
    fn accept(&self, size: Size) -> Option<u64> {
        let numbers = &self.numbers.0;
        let waiting = numbers.bytes.fetch_add(size.bytes, Ordering::Relaxed) + size.bytes;
        let fit = |accepted| {
            let after = accepted + size.calls as u64;
            (after <= numbers.until.load(Ordering::Relaxed)).then_some(after)
        };
        let accepted = (waiting <= self.bytes_max)
            .then(|| numbers.accepted.fetch_update(Ordering::SeqCst, Ordering::Relaxed, fit).ok());
        let accepted = accepted.flatten();
        if accepted.is_none() {
            numbers.bytes.fetch_sub(size.bytes, Ordering::Relaxed);
        }
        accepted
    }

    /// Accepts calls for a batch of their own: the number of the first one. All shards are locked,
    /// and there is room.
    pub(super) fn accept_apart(&self, size: Size) -> u64 {
        self.numbers.0.bytes.fetch_add(size.bytes, Ordering::Relaxed);
        self.numbers.0.accepted.fetch_add(size.calls as u64, Ordering::SeqCst)
    }

    /// The bytes of so many arguments wait no more.
    pub(super) fn release(&self, bytes: usize) {
        let waiting = self.numbers.0.bytes.fetch_sub(bytes, Ordering::Relaxed);
        assert!(waiting >= bytes, "{bytes} bytes were batched of {waiting}");
    }

    /// Locks all shards, for the thread that has the queue's lock.
    pub(super) fn lock_all(&self) -> Locked<'_> {
        self.shards.iter().map(lock).collect()
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.shards.len()
    }

    /// Says to this thread's shard which batch is open: for the thread that has the queue's lock.
    pub(super) fn open_mine(&self, open: &Open) {
        lock(self.mine()).open.get_or_insert_with(|| copy(open));
    }
}

fn copy(open: &Open) -> (Arc<Group>, u64) {
    (Arc::clone(&open.group), open.first)
}

impl ShardCalls {
    /// Calls for a batch of their own, where they have the places that they have here.
    pub(super) fn of(calls: Calls, share: Arc<Share>) -> Self {
        let shares = vec![(share, 0)];
        Self { calls, places: Vec::new(), shares, opened: Some(Instant::now()) }
    }

    /// What the tickets of the calls hold that come next.
    fn share(&mut self, group: &Arc<Group>) -> Arc<Share> {
        let first = self.calls.len();
        if let Some((share, from)) = self.shares.last()
            && first - from < SHARE_CALLS
        {
            return Arc::clone(share);
        }
        let share = Share::of(Arc::clone(group));
        self.shares.push((Arc::clone(&share), first));
        share
    }

    /// What tickets hold, with the places of their calls in the batch.
    pub(super) fn held(&self) -> impl Iterator<Item = Held> {
        let next = self.shares.iter().skip(1).map(|(_, from)| *from);
        let ends = next.chain([self.calls.len()]);
        self.shares.iter().zip(ends).map(|((share, from), to)| {
            let calls = match self.places.is_empty() {
                true => (*from as u32..to as u32).collect(),
                false => self.places[*from..to].to_vec(),
            };
            Held { share: Arc::downgrade(share), calls }
        })
    }

    pub(super) fn calls(&self) -> usize {
        self.calls.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.calls.bytes()
    }

    /// Empties it and keeps its memory.
    pub(super) fn clear(&mut self) {
        self.calls.clear();
        self.places.clear();
        self.shares.clear();
        self.opened = None;
    }
}

/// Takes the calls of the open batch out of all shards, and leaves them empty memory. Those that
/// were used hear which batch is open now.
pub(super) fn take_all(
    shards: &mut Locked<'_>,
    open: &Open,
    spare: &mut Vec<ShardCalls>,
) -> Vec<ShardCalls> {
    let mut parts = Vec::new();
    for shard in shards {
        shard.open = None;
        if !shard.part.places.is_empty() {
            let ShardCalls { calls, places, .. } = &shard.part;
            assert_eq!(calls.len(), places.len(), "a call without a place");
            shard.open = Some(copy(open));
            parts.push(std::mem::replace(&mut shard.part, spare.pop().unwrap_or_default()));
        }
    }
    parts
}

/// When the first call of a batch came.
pub(super) fn opened(parts: &[ShardCalls]) -> Instant {
    let first = parts.iter().filter_map(|part| part.opened).min();
    first.unwrap_or_else(Instant::now)
}

/// The calls of a batch in their order. Uses the memory of `calls`, which are none.
pub(super) fn in_order(parts: &mut [ShardCalls], mut calls: Calls) -> Calls {
    if let [part] = parts {
        let last = part.places.last().map_or(0, |&last| last as usize + 1);
        assert!(last == part.places.len(), "the last of {} calls is {last}", part.places.len());
        return std::mem::replace(&mut part.calls, calls);
    }
    let mut shard_of = vec![0u8; parts.iter().map(|part| part.places.len()).sum()];
    for (shard, part) in parts.iter().enumerate() {
        part.places.iter().for_each(|&place| shard_of[place as usize] = shard as u8);
    }
    let mut next = vec![0; parts.len()];
    for run in shard_of.chunk_by(|shard, after| shard == after) {
        let shard = usize::from(run[0]);
        assert!(next[shard] < parts[shard].calls.len(), "two calls have one place");
        let of_shard = next[shard]..next[shard] + run.len();
        next[shard] = of_shard.end;
        let added = calls.append_some(&parts[shard].calls, of_shard);
        added.expect("all of them have numbers below the limit of an epoch");
    }
    for (next, part) in next.into_iter().zip(parts) {
        assert_eq!(next, part.calls.len(), "a call has the place of another");
    }
    calls
}
