//! The set of free segments and the promises, against a model and to the last segment.

use std::collections::BTreeSet;

use super::Random;
use crate::ids::EpochNumber;
use crate::input_log::format::Kind;
use crate::input_log::space::{FreeMap, RESERVE_SEGMENTS, Run, Space};

/// Whatever is taken and freed, the map gives out the lowest free segments, and no other ones.
#[test]
fn free_segments_are_those_of_a_set() {
    for seed in 0..50 {
        let mut random = Random::new(seed);
        let (mut map, mut model) = (FreeMap::default(), BTreeSet::new());
        let (mut allocated, mut total) = (Vec::new(), 0_u32);
        for _ in 0..200 {
            match random.next() % 4 {
                0 if total < 300 => {
                    let more = (random.next() % 70) as u32;
                    map.grow(total + more);
                    model.extend(total..total + more);
                    total += more;
                }
                1 if !allocated.is_empty() => {
                    let at = random.next() as usize % allocated.len();
                    let segment = allocated.swap_remove(at);
                    map.insert(segment);
                    model.insert(segment);
                }
                2 if !model.is_empty() => {
                    let at = random.next() as usize % model.len();
                    let segment = *model.iter().nth(at).unwrap();
                    map.remove(segment);
                    model.remove(&segment);
                    allocated.push(segment);
                }
                _ => {
                    let most = (random.next() % 9 + 1) as u32;
                    let run = map.take_run(most);
                    let Some(first) = model.first().copied() else {
                        assert_eq!(run, None);
                        continue;
                    };
                    let len = (0..most).take_while(|n| model.contains(&(first + n))).count();
                    assert_eq!(run, Some(Run { first, len: len as u32 }), "seed {seed}");
                    for segment in first..first + len as u32 {
                        model.remove(&segment);
                        allocated.push(segment);
                    }
                }
            }
            for segment in 0..total + 2 {
                assert_eq!(map.contains(segment), model.contains(&segment), "seed {seed}");
            }
        }
    }
}

/// A space with so many segments beside the reserve.
fn space(segments: u32) -> Space {
    let mut space = Space::default();
    space.free.grow(segments + RESERVE_SEGMENTS);
    space
}

/// Takes segments one by one until there are none; how many there were.
fn take_all(space: &mut Space, attempt: u64) -> u32 {
    (0..).take_while(|_| space.take(attempt, 1).is_some()).count() as u32
}

/// An epoch that is one write gets neighbours, and nothing is taken where there are none.
#[test]
fn neighbours_are_taken_together_or_not_at_all() {
    let mut space = space(10);
    let one = space.hold(Kind::Stream, EpochNumber(1));
    space.promise(EpochNumber(1), 4, 0);
    space.free.remove(2);
    assert_eq!((space.take_in_one(one, 3), space.in_use()), (None, 1));
    assert_eq!(space.take_in_one(one, 2), Some(Run { first: 0, len: 2 }));
    assert_eq!(space.take_in_one(one, 3), Some(Run { first: 3, len: 3 }));
    // Of nine that were free four were promised, and all of these were taken.
    assert_eq!(space.surplus(Kind::Stream), 4);
    assert_eq!((space.take_in_one(one, 5), space.surplus(Kind::Stream)), (None, 4));
    assert_eq!(space.take_in_one(one, 4), Some(Run { first: 6, len: 4 }));
}

/// O-43: what one epoch was promised nobody else gets, and it gets that and the surplus.
#[test]
fn o_43_promises_are_kept_to_the_last_segment() {
    let mut space = space(10);
    let one = space.hold(Kind::Stream, EpochNumber(1));
    space.promise(EpochNumber(1), 3, 2);
    assert_eq!(
        (space.surplus(Kind::Stream), space.total(), space.in_use()),
        (5, 10 + RESERVE_SEGMENTS, 0)
    );
    let two = space.hold(Kind::Stream, EpochNumber(2));
    // A run has segments of the promise, and then of the surplus.
    let run = space.take(one, 2).unwrap();
    assert_eq!((run, space.surplus(Kind::Stream)), (Run { first: 0, len: 2 }, 5));
    assert_eq!(space.take(two, 9), Some(Run { first: 2, len: 5 }));
    assert!(space.take(two, 1).is_none(), "the rest is promised to epoch 1");
    space.give_back(two, Run { first: 2, len: 5 });
    let run = space.take(one, 8).unwrap();
    assert_eq!(run, Run { first: 2, len: 6 });
    assert_eq!((space.surplus(Kind::Stream), space.in_use()), (0, 8));
    space.give_back(one, Run { first: 4, len: 2 });
    assert_eq!((space.surplus(Kind::Stream), space.in_use()), (2, 6));
    space.close(EpochNumber(1));
    // Its record of deferred calls is still promised, until it is forgotten.
    assert_eq!(space.surplus(Kind::Stream), 2);
    space.forget_deferred_promises(EpochNumber(0));
    assert_eq!(space.surplus(Kind::Stream), 2);
    space.forget_deferred_promises(EpochNumber(1));
    assert_eq!(space.surplus(Kind::Stream), 4);
    assert_eq!(space.take(two, 3), Some(Run { first: 4, len: 2 }));
    assert_eq!(take_all(&mut space, two), 2);
    space.close(EpochNumber(2));
    space.release(EpochNumber(1));
    assert_eq!((space.surplus(Kind::Stream), space.in_use()), (6, 4));
    assert_eq!(
        (space.released, space.committed, space.durable),
        (EpochNumber(1), EpochNumber(1), EpochNumber(1))
    );
    space.drop_holding(two);
    assert_eq!((space.surplus(Kind::Stream), space.in_use()), (10, 0));
}

/// O-43: the record of deferred calls of an epoch gets what the epoch before was promised for it.
#[test]
fn o_43_a_deferred_record_inherits_its_promise() {
    let mut space = space(8);
    space.hold(Kind::Stream, EpochNumber(4));
    space.promise(EpochNumber(4), 1, 3);
    space.close(EpochNumber(4));
    assert_eq!(space.surplus(Kind::Stream), 5);
    let other = space.hold(Kind::Deferred, EpochNumber(9));
    space.inherit_deferred_promise(EpochNumber(9), other);
    assert_eq!(take_all(&mut space, other), 5, "nothing is promised to it");
    let deferred_calls = space.hold(Kind::Deferred, EpochNumber(5));
    assert!(space.take(deferred_calls, 1).is_none());
    space.inherit_deferred_promise(EpochNumber(5), deferred_calls);
    assert_eq!(space.take(deferred_calls, 1), Some(Run { first: 5, len: 1 }));
    assert!(space.close_deferred_record(deferred_calls).committed);
    assert_eq!(space.surplus(Kind::Stream), 2);
    assert_eq!(
        space.deferred_calls(EpochNumber(5)).map(|holding| holding.attempt),
        Some(deferred_calls)
    );
    space.drop_deferred_records(EpochNumber(5));
    assert!(
        space.deferred_calls(EpochNumber(5)).is_none()
            && space.deferred_calls(EpochNumber(9)).is_some()
    );
    assert_eq!(space.surplus(Kind::Stream), 3);
}
