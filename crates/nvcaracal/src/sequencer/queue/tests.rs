use std::thread;

use super::*;

/// O-87: readers who ask again and again and callers who submit again and again alternate.
#[test]
fn o_87_requests_and_calls_take_turns() {
    let queue = Queue::new(Limits {
        calls: 100,
        bytes: 1 << 20,
        epoch_calls: 10,
        argument_bytes: 1 << 20,
        read_only: false,
    });
    let ask = |times| (0..times).for_each(|_| queue.request(Box::new(|_| {})).unwrap());
    let submit = || drop(queue.push(0, &[], How::default(), OnFull::Wait).unwrap());
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

/// Lets threads that wait for room go, also where a test fails.
struct CloseAtLast<'q>(&'q Queue);

impl Drop for CloseAtLast<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

fn word(thread: u64, call: u64) -> [u8; 8] {
    (thread << 32 | call).to_le_bytes()
}

const THREADS: u64 = 6;
/// Calls of a thread: some together, two one by one, and so on.
const CALLS: u64 = 6300;
const TOGETHER: u64 = 5;

/// Where a call's answer will be.
type Place = (Arc<Share>, u32);

/// What a thread submitted: where, and with what before it.
#[derive(Default)]
struct Submitted {
    places: Vec<(Place, [u8; 8])>,
    after: Vec<([u8; 8], [u8; 8])>,
}

/// Submits all calls of a thread. `last` is the last call of any thread: those that come after it
/// know of it.
fn submit_all(queue: &Queue, thread: u64, last: &Mutex<Option<[u8; 8]>>) -> Submitted {
    let (mut call, mut submitted) = (0, Submitted::default());
    while call < CALLS {
        if call % 7 == 0 {
            let mut calls = Calls::new();
            (call..call + TOGETHER).for_each(|i| calls.push(1, &word(thread, i)).unwrap());
            let (group, first) = queue.push_all(calls, OnFull::Wait).unwrap();
            for i in 0..TOGETHER {
                // All places follow from the first one: they lie together.
                let place = (Arc::clone(&group), first + i as u32);
                submitted.places.push((place, word(thread, call + i)));
            }
            call += TOGETHER;
            continue;
        }
        let (before, bytes) = (*last.lock().unwrap(), word(thread, call));
        let place = queue.push(0, &bytes, How::default(), OnFull::Wait).unwrap();
        *last.lock().unwrap() = Some(bytes);
        submitted.places.push((place, bytes));
        submitted.after.extend(before.map(|before| (before, bytes)));
        call += 1;
    }
    submitted
}

/// Takes so many calls as the sequencer does, by their batches.
fn take_all(queue: &Queue, calls: u64) -> Vec<(Arc<Group>, Vec<[u8; 8]>)> {
    let _close = CloseAtLast(queue);
    let (mut taken, mut count) = (Vec::new(), 0);
    while count < calls {
        queue.wait(false, 3, Duration::from_micros(50));
        assert!(queue.waiting().calls <= queue.limits.calls);
        let Some(Work::Epoch(batch)) = queue.take(false) else { panic!("calls were there") };
        assert!(batch.calls.len() <= queue.limits.epoch_calls);
        let words = (0..batch.calls.len()).map(|at| batch.calls.get(at).1.try_into().unwrap());
        taken.push((batch.group, words.collect()));
        count += batch.calls.len() as u64;
        queue.recycle(batch.calls);
    }
    taken
}

/// A batch that is taken while threads submit has their calls in order and without a gap, each
/// where its ticket says, and what was submitted together lies together. More than the limits never
/// waits.
#[test]
fn calls_of_many_threads_are_taken_in_the_order_of_their_submission() {
    let queue = Queue::new(Limits {
        calls: 40,
        bytes: 200,
        epoch_calls: 17,
        argument_bytes: 1 << 20,
        read_only: false,
    });
    let last = Mutex::new(None);
    let (submitted, taken): (Vec<_>, _) = thread::scope(|scope| {
        let (queue, last) = (&queue, &last);
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| scope.spawn(move || submit_all(queue, thread, last)))
            .collect();
        let taken = take_all(queue, THREADS * CALLS);
        (threads.into_iter().map(|thread| thread.join().unwrap()).collect(), taken)
    });
    let Waiting { calls, bytes, threads } = queue.waiting();
    assert_eq!((calls, bytes, threads), (0, 0, 0));

    let batches: HashMap<_, _> =
        (0..).zip(&taken).map(|(at, of)| (Arc::as_ptr(&of.0), at)).collect();
    let mut places = HashMap::new();
    for ((share, place), bytes) in submitted.iter().flat_map(|of| &of.places) {
        let of_group = |group: &Group| batches[&std::ptr::from_ref(group)];
        let batch: usize = share.look(*place, of_group, |_| unreachable!("nothing is answered"));
        assert_eq!(taken[batch].1[*place as usize], *bytes);
        assert!(places.insert(*bytes, (batch, *place)).is_none());
    }
    assert_eq!(places.len() as u64, THREADS * CALLS);
    for (before, after) in submitted.iter().flat_map(|of| &of.after) {
        assert!(places[before] < places[after], "what was accepted before comes before");
    }
    for thread in 0..THREADS {
        assert!((0..CALLS).map(|call| places[&word(thread, call)]).is_sorted(), "of one thread");
    }
}

/// What is larger than an epoch is one of its own, between what came before and what comes after.
#[test]
fn a_large_batch_is_an_epoch_of_its_own() {
    let limits = Limits {
        calls: 100,
        bytes: 1 << 20,
        epoch_calls: 4,
        argument_bytes: 1 << 20,
        read_only: false,
    };
    let queue = Queue::new(limits);
    let push = |call| queue.push(0, &word(0, call), How::default(), OnFull::Fail).unwrap().1;
    assert_eq!((push(0), push(1)), (0, 1));
    let mut calls = Calls::new();
    (2..12).for_each(|call| calls.push(0, &word(0, call)).unwrap());
    assert_eq!(queue.push_all(calls, OnFull::Fail).unwrap().1, 0);
    assert_eq!((push(12), push(13)), (0, 1));
    let mut next = 0;
    for size in [2, 10, 2] {
        let Some(Work::Epoch(batch)) = queue.take(false) else { panic!("three batches") };
        assert_eq!(batch.calls.len(), size);
        for at in 0..size {
            assert_eq!(batch.calls.get(at).1, word(0, next));
            next += 1;
        }
    }
    assert!(queue.is_idle());
}

/// No call is left behind by a close, and none is accepted after it.
#[test]
fn what_was_accepted_before_a_close_is_taken() {
    for _ in 0..400 {
        let limits = Limits {
            calls: 1000,
            bytes: 1 << 20,
            epoch_calls: 8,
            argument_bytes: 1 << 20,
            read_only: false,
        };
        let queue = Queue::new(limits);
        let accepted = AtomicU64::new(0);
        let mut taken = 0;
        thread::scope(|scope| {
            for thread in 0..4 {
                let (queue, accepted) = (&queue, &accepted);
                scope.spawn(move || {
                    for call in 0.. {
                        match queue.push(0, &word(thread, call), How::default(), OnFull::Wait) {
                            Ok(_) => accepted.fetch_add(1, Ordering::Relaxed),
                            Err(_) => break,
                        };
                    }
                });
            }
            scope.spawn(|| {
                while accepted.load(Ordering::Relaxed) < 20 {
                    thread::yield_now();
                }
                queue.close();
            });
            loop {
                queue.wait(false, 0, Duration::ZERO);
                match queue.take(false) {
                    Some(Work::Epoch(batch)) => taken += batch.calls.len() as u64,
                    Some(Work::Close) => break,
                    _ => {}
                }
            }
        });
        assert_eq!(taken, accepted.into_inner());
    }
}

/// Not even where batches that are epochs of their own come between single calls.
#[test]
fn more_than_the_limit_never_waits() {
    const ROUNDS: u64 = 20_000;
    let queue = Queue::new(Limits {
        calls: 9,
        bytes: 1 << 20,
        epoch_calls: 4,
        argument_bytes: 1 << 20,
        read_only: false,
    });
    thread::scope(|scope| {
        let queue = &queue;
        for thread in 0..3 {
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    if thread > 0 {
                        queue.push(0, &word(thread, round), How::default(), OnFull::Wait).unwrap();
                    } else if round % 8 == 0 {
                        let mut calls = Calls::new();
                        (round..round + 8).for_each(|i| calls.push(0, &word(0, i)).unwrap());
                        queue.push_all(calls, OnFull::Wait).unwrap();
                    }
                }
            });
        }
        let _close = CloseAtLast(queue);
        let mut taken = 0;
        while taken < 3 * ROUNDS {
            queue.wait(false, 0, Duration::ZERO);
            let calls = queue.waiting().calls;
            assert!(calls <= queue.limits.calls, "{calls} calls wait");
            let Some(Work::Epoch(batch)) = queue.take(false) else { panic!("calls were there") };
            taken += batch.calls.len() as u64;
            queue.recycle(batch.calls);
        }
    });
}
