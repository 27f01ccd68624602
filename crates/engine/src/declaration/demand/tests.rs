//! The bound on segments: exact figures, and random ways to spread the work.

use super::*;

/// Bytes of a segment: 8 entries of a free list, one slot of the smallest class.
const SEGMENT: u64 = 64;

/// Tables of which no value is external.
fn inline<const N: usize>(rows: [u64; N]) -> impl Iterator<Item = TableSpace> + Clone {
    rows.into_iter().map(|rows| TableSpace { rows, row_bytes: SEGMENT, external_bytes_max: None })
}

/// A demand of tables, where no worker has anything at hand.
fn demand<const N: usize>(writes: [u64; N]) -> SpaceDemand {
    let mut demand = SpaceDemand::new(N);
    demand.writes = writes.to_vec();
    demand.stocks.fill(vec![Stock::default()]);
    demand
}

/// The bound, where there may be any number of values of each class that is in use.
fn bound(
    demand: &SpaceDemand,
    tables: impl Iterator<Item = TableSpace> + Clone,
    workers: u64,
    segment_bytes: u64,
) -> u64 {
    let longest = tables.clone().filter_map(|table| table.external_bytes_max).max();
    let classes = if demand.collected > 0 { CLASSES } else { longest.map_or(0, class_of) + 1 };
    let last = usize::from(class_pool(classes - 1));
    let used = |pool| if pool <= last { u64::MAX } else { 0 };
    demand.segments(tables, workers, segment_bytes, used).all()
}

/// Has a worker, which is the poorest one, so many slots and room for so many entries.
fn at_hand(demand: &mut SpaceDemand, pool: usize, slots: u64, entries: u64) {
    let needed = demand.stocks[pool][0].needed;
    demand.stocks[pool][0] =
        Stock { free: slots / 2, fresh: slots.div_ceil(2), entries, needed, ..Stock::default() };
}

/// O-43: what is reserved is what may be needed: no less, and no more where all is known.
#[test]
fn o_43_every_free_may_need_an_entry() {
    let segments =
        |demand: &SpaceDemand, workers| bound(demand, inline([100, 7]), workers, SEGMENT);
    assert_eq!(segments(&demand([0, 0]), 3), 0, "nobody begins a segment for nothing");
    assert_eq!(segments(&demand([8, 0]), 1), 1);
    assert_eq!(segments(&demand([9, 0]), 1), 2);
    assert_eq!(segments(&demand([9, 1]), 1), 3, "each table has lists of its own");
    assert_eq!(segments(&demand([9, 1]), 4), 3 + 2 * 3, "every other worker may begin one");

    let mut some = demand([20, 3]);
    at_hand(&mut some, 0, 3, 12);
    at_hand(&mut some, 1, 0, 4);
    some.stocks[0][0].needed = 8;
    assert_eq!(segments(&some, 1), 5 + 1, "what is at hand is not needed");
    some.inserts = vec![4, 6];
    assert_eq!(segments(&some, 1), 5 + 1, "the rows of inserts are counted by who creates them");
    some.covered[1] = true;
    // 3 declared writes, 7 rows and 6 new ones, less 4 entries at hand.
    assert_eq!(segments(&some, 1), 5 + 1 + 2);
    some.covered[0] = true;
    // 20 declared writes, 100 rows and 4 new ones, less 12 entries at hand.
    assert_eq!(segments(&some, 1), 5 + 14 + 2);
}

/// O-43, with values of their own: a segment holds 16 slots of class 0, 8 of class 1, and so on.
#[test]
fn o_43_every_value_may_be_of_the_class_that_costs_most() {
    let segment = 16 * class_bytes(0);
    let entries = segment / ENTRY_BYTES;
    let tables = |longest: u64| {
        let external =
            TableSpace { row_bytes: SEGMENT, rows: 0, external_bytes_max: Some(longest) };
        inline([0]).chain([external])
    };
    let most = |demand: &SpaceDemand, class, workers| {
        bound(demand, tables(class_bytes(class)), workers, segment)
    };
    // Ten values of class 0 or 1: two segments of slots for class 1, and one of entries for each;
    // besides each class may begin one of slots. The table's own free list takes another one.
    let ten = demand([0, 10]);
    assert_eq!(most(&ten, 0, 1), 1 + (1 + 1) + 1);
    assert_eq!(most(&ten, 1, 1), 1 + (2 + 2) + 2);
    assert_eq!(most(&ten, 1, 3), (1 + 2) + (2 + 2) + 2 + 4 * 2, "and every other worker, too");
    // Each write may free two values.
    let many = demand([0, entries]);
    assert_eq!(most(&many, 0, 1), 1 + (entries.div_ceil(16) + 1) + 2);
    let mut rich = demand([0, 10]);
    (0..POOLS).for_each(|pool| at_hand(&mut rich, pool, 10, 20));
    assert_eq!(most(&rich, 1, 3), 0, "all is at hand");
    at_hand(&mut rich, class_pool(1) as usize, 1, 20);
    assert_eq!(most(&rich, 1, 3), 2 + 1 + 2, "nine slots of class 1 are missing");
    at_hand(&mut rich, class_pool(0) as usize, 10, 19);
    assert_eq!(most(&rich, 1, 3), (2 + 1 + 2) + (1 + 2), "and one entry of class 0");
    // A class beyond the longest value costs nothing, nor one that no segment holds.
    at_hand(&mut rich, class_pool(2) as usize, 0, 20);
    assert_eq!(most(&rich, 1, 3), (2 + 1 + 2) + (1 + 2));
    let larger_than_a_segment = (0..CLASSES).find(|&class| class_bytes(class) > segment).unwrap();
    at_hand(&mut rich, class_pool(larger_than_a_segment) as usize, 0, 20);
    at_hand(&mut rich, class_pool(2) as usize, 10, 20);
    assert_eq!(most(&rich, larger_than_a_segment, 3), (2 + 1 + 2) + (1 + 2));
}

/// O-43: what the major collector frees may be of any class, whatever the tables hold now.
#[test]
fn o_43_the_collector_may_free_values_of_every_class() {
    let segment = class_bytes(CLASSES - 1);
    let mut collected = demand([0, 0]);
    collected.collected = segment / ENTRY_BYTES + 1;
    let classes = CLASSES as u64;
    let segments = |demand: &SpaceDemand| bound(demand, inline([0, 0]), 1, segment);
    assert_eq!(segments(&collected), 2 + classes);
    (0..POOLS).for_each(|pool| at_hand(&mut collected, pool, 0, 1));
    assert_eq!(segments(&collected), classes);
    let entries = segment / ENTRY_BYTES + 1;
    (0..POOLS).for_each(|pool| at_hand(&mut collected, pool, 0, entries));
    assert_eq!(segments(&collected), 0);
}

/// O-43: however the values are spread over workers and classes, they do not take more, be their
/// lengths known or not.
#[test]
fn o_43_no_way_to_spread_the_work_needs_more() {
    let mut seed = 1_u64;
    let mut below = move |n: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % n
    };
    for _ in 0..5000 {
        let workers = 1 + below(3);
        let segment = class_bytes(0) << (1 + below(3));
        let classes: Vec<usize> = classes_of(segment).map(|(class, _)| class).collect();
        let limits = [below(3), below(3)].map(|class| class as usize);
        let (unknown, known) = ([below(30), below(30)], below(20));
        let mut demand = demand([0, unknown[0] + known, unknown[1]]);
        // Each write: the class of its value, and its table.
        let mut writes = Vec::new();
        for _ in 0..known {
            let class = classes[below(classes.len() as u64) as usize];
            demand.decided.write(1, Written::Deleted, Some(class_bytes(class)), Change::Grows);
            writes.push((class, 1));
        }
        for table in 0..2 {
            let to = classes.len().min(limits[table] + 1) as u64;
            let class = |_| (classes[below(to) as usize], table + 1);
            writes.extend((0..unknown[table]).map(class));
        }
        let mut used = vec![0; POOLS];
        for &class in &classes {
            at_hand(&mut demand, class_pool(class) as usize, below(6), below(6));
            used[class_pool(class) as usize] = below(60);
        }
        (1..3).for_each(|table| at_hand(&mut demand, table, 0, below(6)));
        let external = |class| TableSpace {
            rows: 0,
            row_bytes: SEGMENT,
            external_bytes_max: Some(class_bytes(class)),
        };
        let tables = inline([0]).chain(limits.map(external));
        let bound = demand.segments(tables, workers, segment, |pool| used[pool]).all();

        // Each write goes to some worker, and frees two values, as long as there are some.
        let mut slots = vec![vec![0_u64; CLASSES]; workers as usize];
        let mut frees = slots.clone();
        let mut rows = vec![[0_u64; 3]; workers as usize];
        for (class, table) in writes {
            let worker = below(workers) as usize;
            slots[worker][class] += 1;
            rows[worker][table] += 1;
            for _ in 0..2 {
                let class = classes[below(classes.len() as u64) as usize];
                let used = &mut used[class_pool(class) as usize];
                frees[worker][class] += u64::from(*used > 0);
                *used = used.saturating_sub(1);
            }
        }
        let allocated = allocated(&demand, segment, &rows, [&slots, &frees]);
        assert!(
            allocated <= bound,
            "{allocated} of {bound}: {workers} workers, {unknown:?}, {known}"
        );
    }
}

/// Segments that workers take for so many frees of rows by table, and slots and frees of values by
/// class.
fn allocated(
    demand: &SpaceDemand,
    segment: u64,
    rows: &[[u64; 3]],
    [slots, frees]: [&[Vec<u64>]; 2],
) -> u64 {
    let mut allocated = 0;
    let mut take = |count: u64, at_hand: u64, per_segment: u64| {
        allocated += count.saturating_sub(at_hand).div_ceil(per_segment);
    };
    for worker in 0..rows.len() {
        for (table, &rows) in rows[worker].iter().enumerate().skip(1) {
            take(rows, demand.least_entries(table), segment / ENTRY_BYTES);
        }
        for (class, per_segment) in classes_of(segment) {
            let pool = class_pool(class).into();
            take(slots[worker][class], demand.least_slots(pool), per_segment);
            take(frees[worker][class], demand.least_entries(pool), segment / ENTRY_BYTES);
        }
    }
    allocated
}

/// O-43: a value of a known length costs what it takes, however long others of its table may be.
#[test]
fn o_43_known_values_cost_what_they_take() {
    let segment = class_bytes(CLASSES - 1);
    let longest = TableSpace { rows: 0, row_bytes: SEGMENT, external_bytes_max: Some(segment) };
    let mut notes = demand([1000]);
    let segments =
        |demand: &SpaceDemand| demand.segments(std::iter::once(longest), 1, segment, |_| 0).all();
    // A segment each, and one for the table's free list.
    assert_eq!(segments(&notes), 1000 + CLASSES as u64 + 1);
    (0..1000).for_each(|_| notes.decided.write(0, Written::New, Some(900), Change::Grows));
    assert_eq!(segments(&notes), 1000_u64.div_ceil(segment / 1024) + 1);
    at_hand(&mut notes, class_pool(class_of(900)).into(), 1000, 0);
    assert_eq!(segments(&notes), 1);
}

/// What is left for those that free space.
#[test]
fn o_43_who_takes_space_leaves_some_for_deletes() {
    let segment_bytes = class_bytes(CLASSES - 1);
    let stock = |all, at_hand, lists| Stock { all, free: at_hand, lists, ..Stock::default() };
    let leaves = |change, segments, (rows, known): (u64, u64), stocks: [Stock; 2]| {
        let mut values = Values::default();
        values.known[3] = known;
        let needed = Needed { slots: segments, ..Needed::default() };
        let taker = Taker { rows: vec![(rows, 64)], values, change, needed, segment_bytes };
        taker.leaves(|pool| match pool {
            0 => stocks[0],
            pool if pool == usize::from(class_pool(3)) => stocks[1],
            _ => Stock::default(),
        })
    };
    let none = [Stock::default(); 2];
    assert_eq!(leaves(Change::Frees, 9, (0, 0), none), 0);
    assert_eq!(leaves(Change::Shortens, 0, (0, 1), none), 0);
    assert_eq!(leaves(Change::Grows, 0, (0, 0), none), 0);
    // A list of one segment has to be able to go on in another one.
    assert_eq!(leaves(Change::Grows, 1, (1, 0), none), 2);
    let entries = segment_bytes / ENTRY_BYTES;
    assert_eq!(leaves(Change::Grows, 1, (1, 0), [stock(entries, 1, 0), none[0]]), 2);
    assert_eq!(leaves(Change::Grows, 1, (1, 0), [stock(entries, 0, 0), none[0]]), 3);
    assert_eq!(leaves(Change::Grows, 1, (1, 0), [stock(entries, 1, 2), none[0]]), 0);
    // Values: two slots besides, and a class that is not in use yet may be begun.
    let values = [Stock::default(), stock(256, 3, 1)];
    assert_eq!(leaves(Change::Shortens, 1, (0, 1), values), 1);
    assert_eq!(leaves(Change::Grows, 1, (0, 1), values), 1 + 3);
    assert_eq!(leaves(Change::Grows, 1, (0, 2), values), 1 + 1 + 3);
    assert_eq!(leaves(Change::Grows, 0, (0, 1), values), 0, "two are left");
    assert_eq!(leaves(Change::Grows, 0, (0, 2), values), 1, "the last ones are kept");
    assert_eq!(leaves(Change::Shortens, 0, (0, 3), values), 0);
}
