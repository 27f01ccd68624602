//! Random reads and writes of 256-byte blocks, as the NVCaracal paper compares memory with
//! persistent memory (6.1): what `emulated` is calibrated with, and what shows whether it holds.
//!
//! Reads do not depend on each other, so that as many are in flight as the processor can have.
//! Writes are non-temporal, with a fence every 16. Blocks come in an order that visits
//! each of the area once, so that no cache has any: what fills an area pushes it out of the caches.
//!
//! Each figure is of many short turns, and the one that only a fiftieth of them surpass: a turn in
//! which the system gave the processor to another process is slower, and none is faster for such a
//! reason.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::measure::MeasuringArea;
use crate::units::{BLOCK_BYTES, LINE_BYTES};

/// Writes between two fences.
const FENCE_EVERY: u64 = 16;

/// Some of the blocks of an area, in an order without a pattern.
#[derive(Debug, Clone, Copy)]
pub struct Blocks {
    /// The first of them in that order.
    pub from: u64,
    /// How many, a multiple of 16.
    pub count: u64,
}

/// Blocks of a turn: it is shorter than the time slice of a thread on every device, and long enough
/// for threads that begin it within a microsecond.
pub const TURN_BLOCKS: u64 = 512;

/// Every thread has one of the items and makes each turn with it, which takes the nanoseconds that
/// come back; all begin a turn together. For each turn how many of them would be made in a
/// nanosecond, by all threads.
///
/// # Panics
/// If one of the threads does.
pub fn in_step<T: Send>(
    items: &mut [T],
    turns: u64,
    one: impl Fn(&mut T, u64) -> f64 + Sync,
) -> Vec<f64> {
    let (threads, arrived, one) = (items.len() as u64, AtomicU64::new(0), &one);
    let begin = |turn: u64| {
        arrived.fetch_add(1, Ordering::AcqRel);
        let mut looks = 0_u64;
        while arrived.load(Ordering::Acquire) < (turn + 1) * threads {
            looks += 1;
            // The thread that is waited for may need this processor.
            if looks.is_multiple_of(1000) {
                std::thread::yield_now()
            } else {
                std::hint::spin_loop()
            }
        }
    };
    let run = |item: &mut T| -> Vec<f64> {
        let turn = |turn| {
            begin(turn);
            1.0 / one(item, turn)
        };
        (0..turns).map(turn).collect()
    };
    let rates: Vec<Vec<f64>> = std::thread::scope(|scope| {
        let spawn = |item| scope.spawn(|| run(item));
        let threads: Vec<_> = items.iter_mut().map(spawn).collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread's turns")).collect()
    });
    (0..turns as usize).map(|turn| rates.iter().map(|of| of[turn]).sum()).collect()
}

/// The rate that a fiftieth of the turns surpass.
///
/// # Panics
/// If there are none.
#[must_use]
pub fn undisturbed(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[(rates.len() - 1) * 49 / 50]
}

/// Gives all of the area memory, of which no cache holds anything.
pub fn fill(area: &mut MeasuringArea) {
    for block in 0..area.bytes() / BLOCK_BYTES {
        area.store_nt(block * BLOCK_BYTES, &[1; BLOCK_BYTES as usize]);
    }
    area.fence();
}

/// Nanoseconds that reading those blocks takes.
///
/// # Panics
/// If the area is not a power of two of bytes.
#[inline(never)]
pub fn read_ns(area: &mut MeasuringArea, blocks: Blocks) -> f64 {
    let place = Order::of(area);
    let mut sum = 0_u64;
    let start = Instant::now();
    for index in blocks.from..blocks.from + blocks.count {
        let block = area.read(place.of_block(index), BLOCK_BYTES);
        for line in block.chunks_exact(LINE_BYTES as usize) {
            sum = sum.wrapping_add(u64::from(line[0]));
        }
    }
    area.pay_owed_time();
    let ns = start.elapsed().as_nanos() as f64;
    black_box(sum);
    ns
}

/// Nanoseconds that writing those blocks takes.
///
/// # Panics
/// As [`read_ns`].
#[inline(never)]
pub fn write_ns(area: &mut MeasuringArea, blocks: Blocks) -> f64 {
    let place = Order::of(area);
    let bytes = black_box([2; BLOCK_BYTES as usize]);
    let start = Instant::now();
    for round in 0..blocks.count / FENCE_EVERY {
        let first = blocks.from + round * FENCE_EVERY;
        for index in first..first + FENCE_EVERY {
            area.store_nt(place.of_block(index), &bytes);
        }
        area.fence();
    }
    area.pay_owed_time();
    start.elapsed().as_nanos() as f64
}

/// A permutation of the blocks of an area.
#[derive(Debug, Clone, Copy)]
struct Order {
    mask: u64,
    shift: u32,
}

impl Order {
    fn of(area: &MeasuringArea) -> Self {
        let blocks = area.bytes() / BLOCK_BYTES;
        assert!(blocks.is_power_of_two(), "an area of a power of two of bytes");
        Self { mask: blocks - 1, shift: (blocks.ilog2() / 2).max(1) }
    }

    /// Where a block begins. Odd factors and the shift each map blocks one to one.
    #[inline]
    fn of_block(self, index: u64) -> u64 {
        let mixed = index.wrapping_mul(0x9e37_79b9_7f4a_7c15) & self.mask;
        let mixed = (mixed ^ mixed >> self.shift).wrapping_mul(0xbf58_476d_1ce4_e5b9) & self.mask;
        (mixed ^ mixed >> self.shift) * BLOCK_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emulated::Profile;

    #[test]
    fn the_order_visits_every_block_once() {
        for blocks in [1, 2, 16, 1 << 13] {
            let area = MeasuringArea::new(blocks * BLOCK_BYTES).unwrap();
            let order = Order::of(&area);
            let mut places: Vec<u64> = (0..blocks).map(|index| order.of_block(index)).collect();
            places.sort_unstable();
            let all = (0..blocks).map(|block| block * BLOCK_BYTES);
            assert!(places.into_iter().eq(all));
        }
    }

    #[test]
    fn threads_make_each_turn_in_step() {
        let mut seen = [Vec::new(), Vec::new()];
        let rates = in_step(&mut seen, 3, |seen, turn| {
            seen.push(turn);
            2.0
        });
        assert_eq!(rates, [1.0; 3], "a half of a turn by each of two");
        assert_eq!(seen, [[0, 1, 2]; 2]);
    }

    #[test]
    fn the_best_turn_of_a_few_does_not_count() {
        assert_eq!(undisturbed((0..11).rev().map(f64::from).collect()), 9.0);
        assert_eq!(undisturbed(vec![7.0]), 7.0);
    }

    #[test]
    fn every_block_is_read_or_written_once_and_charged() {
        let mut area = MeasuringArea::of_profile(Profile::Low, 1 << 14, 1).unwrap().remove(0);
        fill(&mut area);
        assert!(area.slice(0, 1 << 14).iter().all(|byte| *byte == 1));
        area.take_counters();
        let blocks = Blocks { from: 16, count: 32 };
        assert!(read_ns(&mut area, blocks) > 0.0 && write_ns(&mut area, blocks) > 0.0);
        let counters = area.take_counters();
        assert_eq!((counters.blocks_read, counters.blocks_written), (32, 32));
        assert_eq!((counters.fences, counters.added_ns), (2, 32 * 100 + 32 * 4 * 7));
        let written = area.slice(0, 1 << 14).iter().filter(|byte| **byte == 2).count();
        assert_eq!(written as u64, 32 * BLOCK_BYTES);
    }
}
