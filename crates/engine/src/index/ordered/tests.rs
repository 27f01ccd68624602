//! The ordered index against a sorted map, from many threads, and under lasting use.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::{Barrier, RwLock};

use proptest::prelude::*;
use proptest::sample::Index;

use super::super::EntryId;
use super::super::space::Stock;
use super::chunk::ENTRIES_MAX;
use super::order::Entry;
use super::*;

/// A fixed set of keys in order; the id of an entry says which key it has.
struct Keys {
    keys: Vec<Vec<u8>>,
}

impl KeyOrder for Keys {
    const EXACT: bool = false;

    fn compare(&self, a: EntryId, b: EntryId) -> Ordering {
        self.keys[a.0 as usize].cmp(&self.keys[b.0 as usize])
    }

    fn compare_key(&self, a: EntryId, key: &[u8]) -> Ordering {
        (*self.keys[a.0 as usize]).cmp(key)
    }
}

fn word_of(key: &[u8]) -> u64 {
    let mut first = [0; 8];
    let len = key.len().min(8);
    first[..len].copy_from_slice(&key[..len]);
    u64::from_be_bytes(first)
}

fn search_key(key: &[u8]) -> SearchKey<'_> {
    SearchKey { word: word_of(key), key }
}

impl Keys {
    fn new(keys: BTreeSet<Vec<u8>>) -> Self {
        // Ids in another order than keys: an index that compared ids would be found out.
        let mut keys: Vec<_> = keys.into_iter().collect();
        let count = keys.len();
        for nth in 0..count {
            keys.swap(nth, (nth * 7919 + 13) % count);
        }
        Self { keys }
    }

    fn entry(&self, nth: usize) -> Entry {
        (word_of(&self.keys[nth]), EntryId(nth as u32))
    }

    fn bound(&self, kind: u8, nth: usize) -> Bound<&[u8]> {
        match kind % 3 {
            0 => Bound::Included(&self.keys[nth]),
            1 => Bound::Excluded(&self.keys[nth]),
            _ => Bound::Unbounded,
        }
    }
}

/// Panics unless the directory and the chunks are as they should be; returns how many chunks.
fn check_structure<O: KeyOrder>(index: &OrderedIndex, order: &O) -> usize {
    let directory = index.directory();
    let mut entries = Vec::new();
    for at in 0..directory.len() {
        // SAFETY: no other thread changes the index.
        let chunk = unsafe { directory.chunk(at).as_ref() };
        assert_eq!(chunk.len() > 0, directory.has_entries);
        if let Some(first) = chunk.first() {
            assert_eq!(first, directory.first(at));
        }
        entries.extend(chunk.entries());
    }
    assert!(entries.is_sorted_by(|&a, &b| order::compare(a, b, order).is_lt()));
    assert_eq!(entries.len(), index.len());
    directory.len()
}

/// Runs the sub-steps of a round one after the other, the last worker first.
fn run_round<O: KeyOrder>(
    index: &OrderedIndex,
    lists: &mut [Vec<Entry>],
    parts: usize,
    order: &O,
    is_insert: bool,
) -> usize {
    let mut room = SortRoom::default();
    lists.iter_mut().for_each(|list| index.sort_part(list, &mut room, order));
    let lists: Vec<&[Entry]> = lists.iter().map(|list| &**list).collect();
    let mut removed_count = 0;
    for part in (0..parts).rev() {
        if is_insert {
            index.merge_part(part, parts, &lists, order);
        } else {
            removed_count += index.remove_part(part, parts, &lists, order);
        }
    }
    index.finish_merge();
    removed_count
}

/// One step of a random history, over keys `low` and the `count` that follow by `stride`.
#[derive(Clone, Debug)]
struct Step {
    is_insert: bool,
    low: Index,
    count: usize,
    stride: usize,
    lists: usize,
    parts: usize,
    bounds: (u8, Index, u8, Index),
}

prop_compose! {
    fn any_step()(
        is_insert in prop::bool::weighted(0.6),
        low: Index,
        count in prop_oneof![0_usize..20, 0_usize..700],
        stride in 1_usize..6,
        lists in 1_usize..4,
        parts in 1_usize..5,
        bounds: (u8, Index, u8, Index),
    ) -> Step {
        Step { is_insert, low, count, stride, lists, parts, bounds }
    }
}

/// Keys of exactly eight bytes, keys that tie in long runs, and keys that end early.
fn any_keys() -> impl Strategy<Value = BTreeSet<Vec<u8>>> {
    prop_oneof![
        any::<u64>().prop_map(|seed| {
            (0..1500).map(|i| scatter(i ^ seed).to_be_bytes().to_vec()).collect()
        }),
        (1_u32..4, 1_u32..5).prop_map(|(prefixes, step)| {
            let key = |i: u32| format!("warehous{}{:06}", i % prefixes, i * step).into_bytes();
            (0..1500).map(key).collect()
        }),
        (1_u64..900).prop_map(|words| {
            let zeros = |i: u64| vec![0; (i / words) as usize];
            (0..1500).map(|i| [&(i % words).to_be_bytes()[..], &zeros(i)].concat()).collect()
        }),
        any::<u64>().prop_map(|seed| {
            // Up to twelve digits of base three.
            let digit = |number: u64, nth: u64| (number / 3_u64.pow(nth as u32) % 3) as u8;
            let key = |number: u64| (0..number % 13).map(|nth| digit(number, nth)).collect();
            (0..1500).map(|i| key(scatter(i ^ seed) >> 20)).collect()
        }),
    ]
}

fn check_history<O: KeyOrder>(keys: &Keys, steps: &[Step], order: &O) -> Result<(), TestCaseError> {
    let index = OrderedIndex::new();
    let mut model: BTreeMap<&[u8], Entry> = BTreeMap::new();
    let count = keys.keys.len();
    let mut places: Vec<usize> = (0..count).collect();
    places.sort_unstable_by_key(|&nth| &keys.keys[nth]);
    for step in steps {
        let mut lists = vec![Vec::new(); step.lists];
        let mut expected_count = 0;
        let low = step.low.index(count);
        for (turn, place) in (low..count).step_by(step.stride).take(step.count).enumerate() {
            let entry = keys.entry(places[place]);
            let key = &*keys.keys[places[place]];
            if step.is_insert && model.insert(key, entry).is_none() {
                lists[turn % step.lists].push(entry);
            } else if !step.is_insert {
                // Keys that are not there must do no harm.
                expected_count += usize::from(model.remove(key).is_some());
                lists[turn % step.lists].push(entry);
            }
        }
        let removed_count = run_round(&index, &mut lists, step.parts, order, step.is_insert);
        prop_assert_eq!(removed_count, expected_count);
        check_structure(&index, order);
        let all = index.range(Bound::Unbounded, Bound::Unbounded, order);
        prop_assert!(all.eq(model.values().copied()));

        let (low_kind, low, high_kind, high) = &step.bounds;
        let low = keys.bound(*low_kind, low.index(count));
        let high = keys.bound(*high_kind, high.index(count));
        let is_in = |key: &&[u8]| match (low, high) {
            (Bound::Included(low), _) if *key < low => false,
            (Bound::Excluded(low), _) if *key <= low => false,
            (_, Bound::Included(high)) if *key > high => false,
            (_, Bound::Excluded(high)) if *key >= high => false,
            _ => true,
        };
        let expected: Vec<Entry> =
            model.iter().filter(|(key, _)| is_in(key)).map(|(_, &entry)| entry).collect();
        let (low, high) = (low.map(search_key), high.map(search_key));
        prop_assert!(index.range(low, high, order).eq(expected.iter().copied()));
        let descending = index.range_descending(low, high, order);
        prop_assert!(descending.eq(expected.iter().rev().copied()));
        let mut both = index.range(low, high, order);
        let mut met = 0;
        while both.next().is_some() {
            met += 1 + usize::from(both.next_back().is_some());
        }
        prop_assert_eq!(met, expected.len());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 160 }))]
    #[test]
    fn does_what_a_sorted_map_does(
        keys in any_keys(),
        steps in prop::collection::vec(any_step(), 1..if cfg!(miri) { 5 } else { 25 }),
    ) {
        let is_exact = keys.iter().all(|key| key.len() == 8);
        let keys = Keys::new(keys);
        check_history(&keys, &steps, &keys)?;
        if is_exact {
            check_history(&keys, &steps, &ExactWords)?;
        }
    }
}

/// All words of an index.
fn words(index: &OrderedIndex) -> Vec<u64> {
    index.range(Bound::Unbounded, Bound::Unbounded, &ExactWords).map(|entry| entry.0).collect()
}

fn exact(word: u64) -> Entry {
    (word, EntryId(word as u32))
}

/// A small generator: tests must not depend on chance.
fn scatter(nth: u64) -> u64 {
    let mixed = (nth + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 16
}

#[test]
fn workers_run_rounds_together() {
    let (parts, rounds, batch) = if cfg!(miri) { (2, 3, 200) } else { (4, 12, 20_000_u64) };
    let index = OrderedIndex::new();
    let barrier = Barrier::new(parts);
    let changes: Vec<RwLock<Vec<Entry>>> = (0..parts).map(|_| RwLock::default()).collect();
    let worker = |part: usize| {
        for round in 0..rounds {
            // Every third round removes what the round before it added.
            let is_insert = round % 3 != 2;
            let from = if is_insert { round } else { round - 1 };
            let keys = (from * batch..(from + 1) * batch).skip(part).step_by(parts);
            let mut list: Vec<Entry> = keys.map(|nth| exact(scatter(nth))).collect();
            index.sort_part(&mut list, &mut SortRoom::default(), &ExactWords);
            *changes[part].write().unwrap() = list;
            barrier.wait();
            let lists: Vec<_> = changes.iter().map(|list| list.read().unwrap()).collect();
            let lists_of: Vec<&[Entry]> = lists.iter().map(|list| &***list).collect();
            if is_insert {
                index.merge_part(part, parts, &lists_of, &ExactWords);
            } else {
                index.remove_part(part, parts, &lists_of, &ExactWords);
            }
            drop(lists);
            if barrier.wait().is_leader() {
                index.finish_merge();
            }
            barrier.wait();
            check_structure(&index, &ExactWords);
            barrier.wait();
        }
    };
    std::thread::scope(|scope| {
        (0..parts).for_each(|part| drop(scope.spawn(move || worker(part))));
    });
    let rounds_left = (0..rounds).filter(|round| round % 3 != 2 && (round + 1) % 3 != 2);
    let left = rounds_left.flat_map(|round| round * batch..(round + 1) * batch);
    let mut expected: Vec<u64> = left.map(scatter).collect();
    expected.sort_unstable();
    assert_eq!(words(&index), expected);
}

/// The part of the chunks' room that is used.
fn fill(index: &OrderedIndex) -> f64 {
    index.len() as f64 / (check_structure(index, &ExactWords) * ENTRIES_MAX) as f64
}

#[test]
fn ascending_sequences_leave_full_chunks() {
    let (sequences, rounds) = if cfg!(miri) { (3, 30) } else { (20, 400_u64) };
    for per_round in [1, 3, 20, 400] {
        let index = OrderedIndex::new();
        for round in 0..rounds {
            let first = round * per_round;
            let keys = |sequence| {
                let numbers = first..first + per_round;
                numbers.map(move |number| exact((sequence << 32) | number))
            };
            let list = (0..sequences).flat_map(keys).collect();
            index.apply_inserts(&mut [list], &ExactWords);
        }
        assert_eq!(index.len() as u64, sequences * rounds * per_round);
        // Each sequence may have one chunk in use at its end.
        let chunks = check_structure(&index, &ExactWords);
        let least = index.len() / ENTRIES_MAX + 2 * sequences as usize;
        assert!(chunks <= least + least / 20, "{per_round} a round: {chunks} chunks of {least}");
    }
}

#[test]
fn random_keys_fill_chunks_as_trees_do() {
    let rounds = if cfg!(miri) { 4 } else { 200 };
    let index = OrderedIndex::new();
    for round in 0..rounds {
        let list = (round * 500..(round + 1) * 500).map(|nth| exact(scatter(nth))).collect();
        index.apply_inserts(&mut [list], &ExactWords);
    }
    assert!(fill(&index) > 0.5, "filled to {}", fill(&index));
}

#[test]
fn queues_do_not_grow_the_index() {
    let rounds = if cfg!(miri) { 10 } else { 500_u64 };
    let index = OrderedIndex::new();
    let batch = |round: u64| -> Vec<Entry> {
        let keys = |queue: u64| (round * 10..(round + 1) * 10).map(move |n| (queue << 32) | n);
        (0..10).flat_map(keys).map(exact).collect()
    };
    let mut memory_bytes_max = 0;
    for round in 0..rounds {
        index.apply_inserts(&mut [batch(round)], &ExactWords);
        if let Some(old) = round.checked_sub(50) {
            assert_eq!(index.apply_removals(&mut [batch(old)], &ExactWords), 100);
        }
        if round <= 60 {
            memory_bytes_max = memory_bytes_max.max(index.memory_bytes());
        }
    }
    if rounds > 60 {
        assert_eq!(index.len(), 5000);
        assert!(check_structure(&index, &ExactWords) <= 10 * 6);
        assert!(index.memory_bytes() <= memory_bytes_max * 2);
    }
}

#[test]
fn what_many_removals_leave_is_joined() {
    let count = if cfg!(miri) { 2_000 } else { 100_000_u64 };
    let index = OrderedIndex::new();
    index.apply_inserts(&mut [(0..count).map(exact).collect()], &ExactWords);
    // 37 shares no factor with a chunk, so that all chunks thin out alike.
    for remainder in 1..37 {
        let list = (0..count).filter(|word| word % 37 == remainder).map(exact).collect();
        index.apply_removals(&mut [list], &ExactWords);
    }
    assert!(words(&index).into_iter().eq((0..count).step_by(37)));
    assert!(fill(&index) > 0.25, "filled to {}", fill(&index));
    let rest = (0..count).step_by(37).map(exact).collect();
    index.apply_removals(&mut [rest], &ExactWords);
    assert!(index.is_empty());
    assert_eq!(check_structure(&index, &ExactWords), 1);
    index.apply_inserts(&mut [vec![exact(5)]], &ExactWords);
    assert_eq!(words(&index), [5]);
}

#[test]
fn sorted_runs_load_at_once_and_in_parts() {
    let count = if cfg!(miri) { 1_000 } else { 50_000_u64 };
    let runs: Vec<Vec<Entry>> =
        (0..3).map(|run| (0..count).filter(|word| word % 3 == run).map(exact).collect()).collect();
    let runs: Vec<&[Entry]> = runs.iter().map(|run| &**run).collect();
    let loaded = OrderedIndex::new();
    loaded.bulk_load(&runs, &ExactWords);
    let in_parts = OrderedIndex::new();
    (0..4).for_each(|part| in_parts.merge_part(part, 4, &runs, &ExactWords));
    in_parts.finish_merge();
    for index in [loaded, in_parts] {
        assert!(words(&index).into_iter().eq(0..count));
        assert!(fill(&index) > 0.8);
    }
}

#[test]
fn an_empty_index_has_no_entries_in_any_range() {
    let index = OrderedIndex::new();
    let key = SearchKey { word: 7, key: &[] };
    index.bulk_load(&[], &ExactWords);
    assert_eq!(index.apply_removals(&mut [vec![exact(7)]], &ExactWords), 0);
    for low in [Bound::Unbounded, Bound::Included(key), Bound::Excluded(key)] {
        assert_eq!(index.range(low, Bound::Included(key), &ExactWords).next(), None);
        assert_eq!(index.range_descending(low, Bound::Unbounded, &ExactWords).next(), None);
    }
    assert!(index.memory_bytes() < 8192);
}

/// Adds keys in rounds of many workers to an index that has some, after making room for them:
/// none of these takes memory for chunks.
fn check_reserve(name: &str, before: Vec<u64>, new: &[u64], per_round: usize, parts: usize) {
    let index = OrderedIndex::new();
    index.apply_inserts(&mut [before.into_iter().map(exact).collect()], &ExactWords);
    let bytes_before = index.chunk_bytes();
    index.reserve(new.len());
    let bytes = index.chunk_bytes();
    // Not far more than is there already, and twice what full chunks would take.
    let least = new.len() * size_of::<chunk::Chunk>() / ENTRIES_MAX;
    let some = (2 * size_of::<chunk::Chunk>()).max(2 << 20);
    assert!(bytes <= 2 * bytes_before + 2 * least + some, "{name}: {bytes} of {bytes_before}");
    for round in new.chunks(per_round) {
        let mut lists: Vec<Vec<Entry>> = vec![Vec::new(); parts];
        for (turn, &word) in round.iter().enumerate() {
            lists[turn % parts].push(exact(word));
        }
        run_round(&index, &mut lists, parts, &ExactWords, true);
        assert_eq!(index.chunk_bytes(), bytes, "{name}, {} in each round", per_round);
    }
}

#[test]
fn rounds_within_the_room_that_was_made_take_no_memory_for_chunks() {
    let (some, many) = if cfg!(miri) { (300, 600) } else { (10_000, 40_000_u64) };
    let random = |from: u64, count: u64| (from..from + count).map(scatter).collect::<Vec<u64>>();
    let group = |nth: u64| (nth * 7 % 20) << 32;
    for parts in [1, 3] {
        for per_round in [many as usize, 3000, 170] {
            let check = |name: &str, before: Vec<u64>, new: &[u64]| {
                check_reserve(name, before, new, per_round, parts);
            };
            check("random", random(0, some), &random(some, many));
            check("few random", random(0, many), &random(many, some / 5));
            // Nearly all chunks of the pool are in use before, and most are split.
            let (loaded, split) = (some * 37 / 5, some * 11 / 10);
            check("splits", random(0, loaded), &random(loaded, split));
            check("into an empty index", Vec::new(), &random(0, many));
            let sequences: Vec<u64> = (some..some + many).map(|nth| group(nth) | nth).collect();
            check("sequences", (0..some).map(|nth| group(nth) | nth).collect(), &sequences);
            let down: Vec<u64> = (0..many).rev().collect();
            check("descending", (many..many + some).collect(), &down);
            let lines: Vec<u64> = (some..some + many).map(|n| group(n / 9) | n).collect();
            check("runs", (0..some).map(|n| group(n / 9) | n).collect(), &lines);
        }
    }
}

/// Blocks that an epoch sets aside are all that its keys take, so that the index stays in the image
/// (decision 63).
#[test]
fn an_index_takes_no_more_blocks_than_it_said() {
    let rounds = if cfg!(miri) { 10 } else { 600 };
    let kinds: [fn(u64) -> u64; 2] = [|nth| nth, scatter];
    for key in kinds {
        let mut stock = Stock::new(128 << 20);
        stock.provide(vec![4096]);
        let index = OrderedIndex::new_in(Some(stock.space()));
        let mut next = 0;
        for round in 0..rounds {
            let count = [900, 1, 40, 1][round % 4];
            let mut blocks = Vec::new();
            index.growth(count, &mut blocks);
            stock.provide(blocks);
            if round % 100 == 0 {
                index.reserve(count);
            }
            let end = next + count as u64;
            index.apply_inserts(
                &mut [(next..end).map(|nth| exact(key(nth))).collect()],
                &ExactWords,
            );
            assert!(index.kept().is_some(), "round {round}, {next} keys and {count} more");
            next = end;
        }
    }
}
