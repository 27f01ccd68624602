//! The hash index against a map, from many threads, and under churn.

use std::collections::BTreeMap;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};

use proptest::prelude::*;

use super::super::space::Stock;
use super::bucket::Bucket;
use super::shard::{Head, Lock};
use super::*;

/// An index of either kind without entries.
fn kinds() -> [HashIndex; 2] {
    [HashIndex::new(0), HashIndex::Tags(Shards::new_in(None))]
}

fn check_buckets<B: Bucket>(index: &Shards<B>) {
    for head in index.heads.iter() {
        // SAFETY: the test is the only thread.
        bucket::check(unsafe { head.buckets() });
    }
}

/// Keys whose words tie often: the word is the key divided by `ties`.
struct Ties {
    divisor: u64,
}

impl Ties {
    fn word(&self, key: u64) -> u64 {
        key / self.divisor
    }
}

/// Panics unless index and model hold the same; the id of an entry is its key.
fn check_equal(index: &HashIndex, model: &BTreeMap<u64, EntryId>, ties: &Ties) {
    of_either!(index, index => check_buckets(index));
    assert!(index.is_sound());
    assert_eq!(index.len(), model.len());
    assert_eq!(index.is_empty(), model.is_empty());
    let mut found = BTreeMap::new();
    index.for_each(|word, id| {
        assert_eq!(word.is_some(), index.has_words());
        assert_eq!(word.unwrap_or(ties.word(u64::from(id.0))), ties.word(u64::from(id.0)));
        assert!(found.insert(u64::from(id.0), id).is_none());
    });
    assert_eq!(&found, model);
}

fn find_or_insert(index: &HashIndex, ties: &Ties, key: u64) -> bool {
    let id = EntryId(key as u32);
    match index.find_or_begin(ties.word(key), |id| u64::from(id.0) == key) {
        Ok(found) => {
            assert_eq!(found, id);
            false
        }
        Err(vacant) => {
            vacant.fill(id);
            true
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 128 }))]
    #[test]
    fn does_what_a_map_does(
        divisor in prop::sample::select(vec![1_u64, 2, 16, 1000]),
        kind in 0_usize..2,
        steps in prop::collection::vec((0_u8..8, 0_u64..500), 1..1500),
    ) {
        let ties = Ties { divisor };
        let index = &kinds()[kind];
        let mut model = BTreeMap::new();
        for (kind, key) in steps {
            let id = EntryId(key as u32);
            index.prefetch(ties.word(key));
            match kind {
                0..=3 => {
                    let is_new = model.insert(key, id).is_none();
                    prop_assert_eq!(find_or_insert(index, &ties, key), is_new);
                }
                4..=5 => {
                    let was_there = model.remove(&key).is_some();
                    prop_assert_eq!(index.remove(ties.word(key), id), was_there);
                }
                6 => {
                    let found = index.find(ties.word(key), |other| other == id);
                    prop_assert_eq!(found, model.get(&key).copied());
                    let home = index.home(ties.word(key));
                    if divisor == 1 && index.has_words() {
                        prop_assert_eq!(index.find_first(key), found);
                        prop_assert!(home.find_exact(key) == found || !home.ends());
                    } else if !index.has_words() {
                        prop_assert!(home.find_exact(ties.word(key)).is_none() && !home.ends());
                        prop_assert!(index.find_first(ties.word(key)).is_some() || found.is_none());
                    }
                }
                _ => index.reserve(key as usize),
            }
        }
        check_equal(index, &model, &ties);
    }
}

#[test]
fn a_panic_before_an_entry_is_added_leaves_the_shard_usable() {
    let index = HashIndex::new(0);
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _vacancy = index.find_or_begin(7, |_| true).unwrap_err();
        panic!("while it is made");
    }));
    assert!(outcome.is_err());
    assert_eq!(index.find_first(7), None);
    index.insert_unique(7, EntryId(2));
    assert_eq!(index.find_first(7), Some(EntryId(2)));
}

#[test]
fn exactly_one_thread_creates_each_key() {
    let (threads, keys) = if cfg!(miri) { (3, 200) } else { (8, 100_000_u64) };
    for (divisor, index) in [1, 8].into_iter().flat_map(|d| kinds().map(|index| (d, index))) {
        let ties = Ties { divisor };
        let made: Vec<AtomicU32> = (0..keys).map(|_| AtomicU32::new(0)).collect();
        let barrier = Barrier::new(threads);
        std::thread::scope(|scope| {
            for thread in 0..threads as u64 {
                let (index, made, barrier, ties) = (&index, &made, &barrier, &ties);
                scope.spawn(move || {
                    barrier.wait();
                    for step in 0..keys {
                        // Half of the threads come from the other end.
                        let key = if thread % 2 == 0 { step } else { keys - 1 - step };
                        index.prefetch(ties.word(key));
                        if find_or_insert(index, ties, key) {
                            made[key as usize].fetch_add(1, Ordering::Relaxed);
                        }
                    }
                    barrier.wait();
                    for key in (0..keys).filter(|key| key % threads as u64 == thread) {
                        let id = EntryId(key as u32);
                        assert_eq!(index.find(ties.word(key), |o| o == id), Some(id));
                    }
                    barrier.wait();
                    for key in (0..keys).filter(|key| key % threads as u64 == thread) {
                        assert!(index.remove(ties.word(key), EntryId(key as u32)));
                    }
                });
            }
        });
        assert!(made.iter().all(|count| count.load(Ordering::Relaxed) == 1));
        assert!(index.is_empty());
        check_equal(&index, &BTreeMap::new(), &ties);
    }
}

#[test]
fn many_entries_of_one_word_are_found_and_removed() {
    let ties = Ties { divisor: 1 << 32 };
    for index in kinds() {
        let mut model = BTreeMap::new();
        for key in 0..300 {
            assert!(find_or_insert(&index, &ties, key));
            model.insert(key, EntryId(key as u32));
        }
        check_equal(&index, &model, &ties);
        for key in (0..300).step_by(3).chain((0..300).skip(1).step_by(3)) {
            assert!(index.remove(0, EntryId(key as u32)));
            model.remove(&key);
        }
        check_equal(&index, &model, &ties);
    }
}

#[test]
fn churn_does_not_grow_the_index() {
    let live = if cfg!(miri) { 300 } else { 20_000_u64 };
    for index in kinds() {
        for key in 0..live {
            index.insert_unique(key, EntryId(key as u32));
        }
        // The shards' shares vary by chance: let each meet its largest once, then nothing grows.
        index.reserve(live as usize / 4);
        let before = index.memory_bytes();
        for key in live..live * 20 {
            assert!(index.remove(key - live, EntryId((key - live) as u32)));
            index.insert_unique(key, EntryId(key as u32));
        }
        assert_eq!(index.len() as u64, live);
        assert_eq!(index.memory_bytes(), before);
        let model = (live * 19..live * 20).map(|key| (key, EntryId(key as u32))).collect();
        check_equal(&index, &model, &Ties { divisor: 1 });
    }
}

#[test]
fn a_hint_or_a_reservation_saves_growing() {
    let count = if cfg!(miri) { 2_000 } else { 300_000_u64 };
    let hinted = HashIndex::new(count as usize);
    let reserved = HashIndex::new(0);
    reserved.reserve(count as usize);
    let grown = HashIndex::new(0);
    let before = hinted.memory_bytes();
    assert_eq!(before, reserved.memory_bytes());
    for key in 0..count {
        for index in [&hinted, &reserved, &grown] {
            index.insert_unique(key << 20, EntryId(key as u32));
        }
    }
    assert_eq!(hinted.memory_bytes(), before);
    assert_eq!(reserved.memory_bytes(), before);
    // Halves of pages may be left over between the sizes the shards went through.
    assert!(grown.memory_bytes() < before * 2);
    for key in 0..count {
        assert_eq!(grown.find_first(key << 20), Some(EntryId(key as u32)));
    }
}

#[test]
fn words_of_any_shape_spread_over_shards_and_buckets() {
    type Shape = (&'static str, fn(u64) -> u64);
    let shapes: [Shape; 6] = [
        ("consecutive", |i| i),
        ("high byte up", |i| i << 48),
        ("big-endian text", |i| 0x7573_6572_0000_0000 | i),
        ("two parts", |i| ((i % 64) << 32) | (i / 64)),
        ("descending", |i| !i),
        ("times a page", |i| i << 12),
    ];
    for (shape, word_of) in shapes {
        let mut shards = vec![0_u32; SHARDS_COUNT];
        let mut homes = [vec![0_u32; 16_384], vec![0_u32; 16_384]];
        for word in (0..65_536).map(|word| Mixed::of(word_of(word))) {
            shards[word.shard()] += 1;
            homes[0][Words::home_of_mixed(word.mixed, 16_383)] += 1;
            homes[1][Tags::home_of_mixed(word.mixed, 16_383)] += 1;
        }
        // 256 and 4 on average; these bounds leave a fair hash six deviations.
        let (low, high) = (shards.iter().min(), shards.iter().max());
        assert!(low > Some(&150) && high < Some(&360), "{shape}: shards {low:?} to {high:?}");
        let most = homes.map(|homes| homes.into_iter().max());
        assert!(most.iter().all(|most| *most < Some(24)), "{shape}: homes {most:?}");
    }
}

/// What a database says of its memory counts it.
#[test]
fn an_empty_index_takes_its_locks_and_little_more() {
    let locks = SHARDS_COUNT * (size_of::<Head<Words>>() + size_of::<Lock>());
    let bytes = HashIndex::new(0).memory_bytes();
    assert!((locks..2 * locks).contains(&bytes), "{bytes} bytes, {locks} of them for locks");
}

/// Room is made beside what is there.
#[test]
fn a_reservation_counts_the_entries_that_are_there() {
    let count = if cfg!(miri) { 2_000 } else { 200_000_u64 };
    let index = HashIndex::new(count as usize);
    (0..count).for_each(|key| index.insert_unique(key << 20, EntryId(key as u32)));
    index.reserve(count as usize);
    let before = index.memory_bytes();
    (count..2 * count).for_each(|key| index.insert_unique(key << 20, EntryId(key as u32)));
    assert_eq!((index.memory_bytes(), index.len() as u64), (before, 2 * count));
}

/// Blocks that an epoch sets aside are all that its entries take, so that the index stays in the
/// image (decision 63).
#[test]
fn an_index_takes_no_more_blocks_than_it_said() {
    let rounds = if cfg!(miri) { 20 } else { 300 };
    let kinds = [Slots::Words, Slots::Tags];
    for (slots, at_once) in kinds.into_iter().flat_map(|k| [1, 7, 60, 1000].map(|n| (k, n))) {
        let mut stock = Stock::new(64 << 20);
        let index = HashIndex::new_in(stock.space(), slots);
        for round in 0..rounds {
            let mut blocks = Vec::new();
            index.growth(at_once as usize, &mut blocks);
            stock.provide(blocks);
            if round % 5 == 0 {
                index.reserve(at_once as usize);
            }
            let keys = round * at_once..(round + 1) * at_once;
            keys.for_each(|key| index.insert_unique(key, EntryId(key as u32)));
            assert!(index.kept().is_some(), "{at_once} at once, round {round}");
        }
    }
}

/// Bytes of an entry with a tag, at any number of entries: 9 to 15, and 11 or so on the average.
#[test]
fn an_entry_with_a_tag_takes_few_bytes() {
    let (few, many) = if cfg!(miri) { (200_000, 210_000) } else { (200_000, 2_000_000_u64) };
    let index = HashIndex::Tags(Shards::new_in(None));
    let (mut sum, mut count) = (0.0, 0.0);
    for key in 0..many {
        index.insert_unique(key << 20, EntryId(key as u32));
        if key >= few && key % 4096 == 0 {
            let kept = of_either!(&index, index => array_bytes(index));
            let bytes = kept as f64 / (key + 1) as f64;
            assert!((8.6..15.2).contains(&bytes), "{bytes} bytes at {key}");
            (sum, count) = (sum + bytes, count + 1.0);
        }
    }
    assert!((10.0..12.0).contains(&(sum / count)), "{}", sum / count);
}

fn array_bytes<B: Bucket>(index: &Shards<B>) -> usize {
    // SAFETY: the test is the only thread.
    index.heads.iter().map(|head| size_of_val(unsafe { head.buckets() })).sum()
}

/// A tag is half of a mixed word: the rows tell keys apart that have the same one.
#[test]
fn keys_of_one_tag_are_told_apart() {
    let index = HashIndex::Tags(Shards::new_in(None));
    let part = |word| (Mixed::of(word).mixed as u32, Mixed::of(word).shard());
    // Words of one tag in one shard are rare: 40 bits. Of one word there may be many keys.
    let words = [5, 5, 5, 9];
    assert_ne!(part(5), part(9));
    for (id, word) in words.into_iter().enumerate() {
        let same = |found: EntryId| found == EntryId(id as u32);
        index.find_or_begin(word, same).unwrap_err().fill(EntryId(id as u32));
    }
    for (id, word) in words.into_iter().enumerate() {
        let id = EntryId(id as u32);
        assert_eq!(index.find(word, |found| found == id), Some(id));
    }
    assert_eq!(index.find(5, |found| found == EntryId(3)), None);
    assert!(index.remove(5, EntryId(1)) && !index.remove(5, EntryId(1)));
    assert_eq!(index.find(5, |found| found == EntryId(1)), None);
    assert_eq!(index.len(), 3);
}

#[test]
fn lengths_of_arrays_with_tags_are_sizes_of_blocks() {
    let counts = std::iter::successors(Some(1), |count| Some(Tags::next_count(*count))).take(20);
    let counts: Vec<_> = counts.collect();
    assert_eq!(counts[..8], [1, 2, 3, 4, 6, 8, 12, 16]);
    for count in counts {
        assert!(Tags::can_be_count(count));
        assert!(super::super::space::is_block((count * size_of::<Tags>()) as u64));
    }
    assert!(![0, 5, 7, 9, 10].into_iter().any(Tags::can_be_count));
}
