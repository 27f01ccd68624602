//! The bound on segments: exact figures, and random ways to spread the work.

use super::*;

/// Bytes of a segment: 8 entries of a free list, one slot of the smallest class.
const SEGMENT: u64 = 64;

/// Tables of which no value is external.
fn inline<const N: usize>(rows: [u64; N]) -> impl Iterator<Item = TableSpace> + Clone {
    rows.into_iter().map(|rows| TableSpace { rows, row_bytes: SEGMENT, external_bytes_max: None })
}

/// A demand of two tables, where nobody has anything at hand.
fn demand(writes: [u64; 2]) -> SpaceDemand {
    let mut demand = SpaceDemand::new(2);
    demand.writes = writes.to_vec();
    demand.stocks.fill(vec![Stock::default()]);
    demand
}

/// Has a worker, which is the poorest one, so many slots and room for so many entries.
fn at_hand(demand: &mut SpaceDemand, pool: usize, slots: u64, entries: u64) {
    let needed = demand.stocks[pool][0].needed;
    demand.stocks[pool][0] = Stock { free: slots / 2, fresh: slots.div_ceil(2), entries, needed };
}

/// O-43: what is reserved is what may be needed: no less, and no more where all is known.
#[test]
fn o_43_every_free_may_need_an_entry() {
    let segments =
        |demand: &SpaceDemand, workers| demand.segments(inline([100, 7]), workers, SEGMENT);
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
        demand.segments(tables(class_bytes(class)), workers, segment)
    };
    // Ten values of class 0 or 1: two segments of slots for class 1, and one of entries; besides
    // each class may begin one of both. The table's own free list takes another one.
    let ten = demand([0, 10]);
    assert_eq!(most(&ten, 0, 1), 1 + (1 + 1 + 2));
    assert_eq!(most(&ten, 1, 1), 1 + (2 + 1 + 4));
    assert_eq!(most(&ten, 1, 3), (1 + 2) + (2 + 1 + 4) + 4 * 2, "and every other worker, too");
    // Each write may free two values.
    let many = demand([0, entries]);
    assert_eq!(most(&many, 0, 1), 1 + (entries.div_ceil(16) + 2 + 2));
    let mut rich = demand([0, 10]);
    (0..POOLS).for_each(|pool| at_hand(&mut rich, pool, 10, 20));
    assert_eq!(most(&rich, 1, 3), 0, "all is at hand");
    at_hand(&mut rich, class_pool(1) as usize, 1, 20);
    assert_eq!(most(&rich, 1, 3), 2 + 1 + 2, "nine slots of class 1 are missing");
    at_hand(&mut rich, class_pool(0) as usize, 10, 19);
    assert_eq!(most(&rich, 1, 3), (2 + 1 + 2) + (1 + 1 + 2), "and one entry of class 0");
    // A class beyond the longest value costs nothing, nor one that no segment holds.
    at_hand(&mut rich, class_pool(2) as usize, 0, 20);
    assert_eq!(most(&rich, 1, 3), (2 + 1 + 2) + (1 + 1 + 2));
    let larger_than_a_segment = (0..CLASSES).find(|&class| class_bytes(class) > segment).unwrap();
    at_hand(&mut rich, class_pool(larger_than_a_segment) as usize, 0, 20);
    at_hand(&mut rich, class_pool(2) as usize, 10, 20);
    assert_eq!(most(&rich, larger_than_a_segment, 3), (2 + 1 + 2) + (1 + 1 + 2));
}

/// O-43: what the major collector frees may be of any class, whatever the tables hold now.
#[test]
fn o_43_the_collector_may_free_values_of_every_class() {
    let segment = class_bytes(CLASSES - 1);
    let mut collected = demand([0, 0]);
    collected.collected = segment / ENTRY_BYTES + 1;
    let classes = CLASSES as u64;
    let segments = |demand: &SpaceDemand| demand.segments(inline([0, 0]), 1, segment);
    assert_eq!(segments(&collected), 2 + classes);
    (0..POOLS).for_each(|pool| at_hand(&mut collected, pool, 0, 1));
    assert_eq!(segments(&collected), 1 + classes);
    let entries = segment / ENTRY_BYTES + 1;
    (0..POOLS).for_each(|pool| at_hand(&mut collected, pool, 0, entries));
    assert_eq!(segments(&collected), 0);
}

/// O-43: however the values are spread over workers and classes, they do not take more.
#[test]
fn o_43_no_way_to_spread_the_work_needs_more() {
    let mut seed = 1_u64;
    let mut below = move |n: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % n
    };
    for _ in 0..3000 {
        let workers = 1 + below(3);
        let segment = class_bytes(0) << (1 + below(3));
        let external = below(40);
        let mut demand = demand([0, external]);
        let largest_class = below(3) as usize;
        for class in 0..=largest_class {
            at_hand(&mut demand, class_pool(class) as usize, below(6), below(6));
        }
        at_hand(&mut demand, 1, 0, below(6));
        let external_table = TableSpace {
            rows: 0,
            row_bytes: SEGMENT,
            external_bytes_max: Some(class_bytes(largest_class)),
        };
        let bound = demand.segments(inline([0]).chain([external_table]), workers, segment);

        // Each write goes to some worker, writes a value of some class, and frees two values.
        let classes = (0..=largest_class).filter(|&class| class_bytes(class) <= segment);
        let classes: Vec<usize> = classes.collect();
        let mut slots = vec![vec![0_u64; CLASSES]; workers as usize];
        let mut frees = slots.clone();
        let mut rows = vec![0_u64; workers as usize];
        for _ in 0..external {
            let worker = below(workers) as usize;
            let mut any = || classes[below(classes.len() as u64) as usize];
            slots[worker][any()] += 1;
            frees[worker][any()] += 1;
            frees[worker][any()] += 1;
            rows[worker] += 1;
        }
        let mut taken = 0;
        let mut take = |count: u64, at_hand: u64, per_segment: u64| {
            taken += count.saturating_sub(at_hand).div_ceil(per_segment);
        };
        for worker in 0..workers as usize {
            take(rows[worker], demand.least_entries(1), segment / ENTRY_BYTES);
            for &class in &classes {
                let pool = class_pool(class) as usize;
                let per_segment = segment / class_bytes(class);
                take(slots[worker][class], demand.least_slots(pool), per_segment);
                take(frees[worker][class], demand.least_entries(pool), segment / ENTRY_BYTES);
            }
        }
        assert!(taken <= bound, "{taken} of {bound}: {workers} workers, {external} values");
    }
}
