use std::sync::atomic::AtomicBool;
use std::thread;

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

fn word(thread: u64, call: u64) -> [u8; 8] {
    (thread << 32 | call).to_le_bytes()
}

/// A batch that is taken while threads submit has their calls in order and without a gap, each
/// where its ticket says, and what was submitted together lies together. More than the limits never
/// waits.
#[test]
fn calls_of_many_threads_are_taken_in_the_order_of_their_submission() {
    const THREADS: u64 = 6;
    const CALLS: u64 = 6300;
    const TOGETHER: u64 = 5;
    let limits = Limits { calls: 40, bytes: 200, epoch_calls: 17, read_only: false };
    let queue = Queue::new(limits);
    // The last call of any thread that was accepted: those that come after it know of it.
    let last = Mutex::new(None::<[u8; 8]>);
    let pushed = Mutex::new(Vec::new());
    let is_over = AtomicBool::new(false);
    let mut after = Vec::new();
    let mut taken: Vec<(Arc<Group>, Vec<[u8; 8]>)> = Vec::new();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (queue, last, pushed) = (&queue, &last, &pushed);
                scope.spawn(move || {
                    let (mut call, mut after) = (0, Vec::new());
                    while call < CALLS {
                        if call % 7 == 0 {
                            let mut calls = Calls::new();
                            for i in 0..TOGETHER {
                                calls.push(1, &word(thread, call + i)).unwrap();
                            }
                            let (group, first) = queue.push_all(calls, OnFull::Wait).unwrap();
                            let places = (0..TOGETHER as u32).map(|i| (group.clone(), first + i));
                            let words = (call..).map(|call| word(thread, call));
                            // All places follow from the first one: they lie together.
                            pushed.lock().unwrap().extend(places.zip(words));
                            call += TOGETHER;
                            continue;
                        }
                        let before = *last.lock().unwrap();
                        let bytes = word(thread, call);
                        let place = queue.push(0, &bytes, false, OnFull::Wait).unwrap();
                        pushed.lock().unwrap().push((place, bytes));
                        after.extend(before.map(|before| (before, bytes)));
                        *last.lock().unwrap() = Some(bytes);
                        call += 1;
                    }
                    after
                })
            })
            .collect();
        let watcher = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let Waiting { calls, .. } = queue.waiting();
                assert!(calls <= limits.calls, "{calls} calls");
                thread::yield_now();
            }
        });
        let mut calls = 0;
        while calls < THREADS * CALLS {
            queue.wait(false, 3, Duration::from_micros(50));
            let Some(Work::Epoch(batch)) = queue.take(false) else { panic!("calls were there") };
            assert!(batch.calls.len() <= limits.epoch_calls);
            let words = (0..batch.calls.len()).map(|at| batch.calls.get(at).1.try_into().unwrap());
            taken.push((batch.group, words.collect()));
            calls += batch.calls.len() as u64;
            queue.recycle(batch.calls);
        }
        is_over.store(true, Ordering::Relaxed);
        watcher.join().unwrap();
        after = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    });
    let Waiting { calls, bytes, threads } = queue.waiting();
    assert_eq!((calls, bytes, threads), (0, 0, 0));

    let batch_of = |group: &Arc<Group>| taken.iter().position(|(of, _)| Arc::ptr_eq(of, group));
    let mut places = HashMap::new();
    for ((group, place), bytes) in pushed.into_inner().unwrap() {
        let batch = batch_of(&group).expect("its batch was taken");
        assert_eq!(taken[batch].1[place as usize], bytes);
        assert!(places.insert(bytes, (batch, place)).is_none());
    }
    assert_eq!(places.len() as u64, THREADS * CALLS);
    for (before, after) in after {
        assert!(places[&before] < places[&after], "what was accepted before comes before");
    }
    for thread in 0..THREADS {
        let order: Vec<_> = (0..CALLS).map(|call| places[&word(thread, call)]).collect();
        assert!(order.is_sorted(), "thread {thread}");
    }
}

/// What is larger than an epoch is one of its own, between what came before and what comes after.
#[test]
fn a_large_batch_is_an_epoch_of_its_own() {
    let limits = Limits { calls: 100, bytes: 1 << 20, epoch_calls: 4, read_only: false };
    let queue = Queue::new(limits);
    let push = |call| queue.push(0, &word(0, call), false, OnFull::Fail).unwrap().1;
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
        let limits = Limits { calls: 1000, bytes: 1 << 20, epoch_calls: 8, read_only: false };
        let queue = Queue::new(limits);
        let accepted = AtomicU64::new(0);
        let mut taken = 0;
        thread::scope(|scope| {
            for thread in 0..4 {
                let (queue, accepted) = (&queue, &accepted);
                scope.spawn(move || {
                    for call in 0.. {
                        match queue.push(0, &word(thread, call), false, OnFull::Wait) {
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
