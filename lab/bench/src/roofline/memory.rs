//! Measures memory: loads, stores, flushes, fences, and how long the system takes to hand it out.
//!
//! The area is filled before anything is timed: pages that were never stored to have no memory, and
//! all read the same page of zeros. What is loaded goes into a sum that the compiler has to keep,
//! or into the address of the next load. Places come from a generator that is cheaper than any
//! access to memory.

use std::hint::black_box;
use std::sync::Barrier;

use bench::Result;
use bench::clock::now_ns;
use bench::report::median;
use pmem::{LINE_BYTES, MeasuringArea};
use workloads::random::Random;

/// How often each figure is measured.
const REPETITIONS: u64 = 7;
/// Stores between two fences.
const FENCE_EVERY: u64 = 16;
/// Bytes of a huge page.
const HUGE_PAGE_BYTES: u64 = 2 << 20;
/// Pages whose first touch is timed.
const NEW_PAGES: u64 = 64;
/// Bytes of a piece of a stream.
const PIECE_BYTES: u64 = 4096;

/// Gives every line of the area memory, and a random first word.
pub(super) fn fill(area: &mut MeasuringArea) {
    let mut random = Random::new(0, 0, 0);
    for line in 0..lines(area) {
        area.store_bytes(line * LINE_BYTES, &random.next_u64().to_ne_bytes());
    }
}

/// Microseconds of the first stores to 2 MiB of new memory, one to each ordinary page: with huge
/// pages the first of them takes nearly all the time.
pub(super) fn first_touch_us() -> Result<f64> {
    let mut area = MeasuringArea::new(NEW_PAGES * HUGE_PAGE_BYTES)?;
    let touch = |page: u64| {
        let start = now_ns();
        let first = page * HUGE_PAGE_BYTES;
        for offset in (first..first + HUGE_PAGE_BYTES).step_by(pmem::PAGE_BYTES as usize) {
            area.store_bytes(offset, &[1]);
        }
        ns_since(start) / 1e3
    };
    Ok(median((0..NEW_PAGES).map(touch).collect()))
}

/// Nanoseconds of a random line, where the address of each load needs the word loaded before.
pub(super) fn read_dependent_ns(area: &MeasuringArea) -> f64 {
    let (lines, reads) = (lines(area), times(area, 32));
    repeated(|seed| {
        let (mut random, mut word) = (Random::new(seed, 0, 0), 0);
        let start = now_ns();
        for _ in 0..reads {
            let line = (u128::from(random.next_u64() ^ word) * u128::from(lines)) >> 64;
            word = area.load_u64(line as u64 * LINE_BYTES);
        }
        black_box(word);
        ns_since(start) / reads as f64
    })
}

/// Nanoseconds of a random line with 16 of them in flight.
pub(super) fn read_lines_ns(area: &MeasuringArea) -> f64 {
    let reads = times(area, 4);
    repeated(|seed| read_in_flight_ns::<16, 1>(area, reads, Random::new(seed, 1, 0)))
}

/// The same by all workers at once: nanoseconds of a line for each of them, on average.
pub(super) fn read_lines_together_ns(area: &MeasuringArea, workers: usize) -> f64 {
    let reads = times(area, 4);
    let start = Barrier::new(workers);
    let one = |seed, worker| {
        start.wait();
        read_in_flight_ns::<16, 1>(area, reads, Random::new(seed, 2, worker))
    };
    repeated(|seed| {
        std::thread::scope(|scope| {
            let spawn = |worker| scope.spawn(move || one(seed, worker));
            let threads: Vec<_> = (0..workers as u64).map(spawn).collect();
            let ns = threads.into_iter().map(|thread| thread.join().expect("a worker's figure"));
            ns.sum::<f64>() / workers as f64
        })
    })
}

/// Nanoseconds of 1,024 bytes from a random line on, with 10 such reads in flight.
pub(super) fn read_1024_ns(area: &MeasuringArea) -> f64 {
    let reads = times(area, 32);
    repeated(|seed| read_in_flight_ns::<10, 16>(area, reads, Random::new(seed, 3, 0)))
}

/// GB/s of reading the area from end to end.
pub(super) fn stream_read(area: &MeasuringArea) -> f64 {
    repeated(|_| {
        let start = now_ns();
        let words = area.slice(0, area.bytes()).chunks_exact(8);
        let word = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().expect("8 bytes"));
        black_box(words.fold(0, |sum: u64, bytes| sum.wrapping_add(word(bytes))));
        area.bytes() as f64 / ns_since(start)
    })
}

/// GB/s of writing the area from end to end with ordinary stores.
pub(super) fn stream_write(area: &mut MeasuringArea) -> f64 {
    repeated(|seed| {
        let line = black_box([seed as u8; LINE_BYTES as usize]);
        let start = now_ns();
        for index in 0..lines(area) {
            area.store_bytes(index * LINE_BYTES, &line);
        }
        area.bytes() as f64 / ns_since(start)
    })
}

/// GB/s of non-temporal stores to the area from end to end.
pub(super) fn stream_write_nt(area: &mut MeasuringArea) -> f64 {
    repeated(|seed| {
        let piece = black_box([seed as u8; PIECE_BYTES as usize]);
        let start = now_ns();
        for index in 0..area.bytes() / PIECE_BYTES {
            area.store_nt(index * PIECE_BYTES, &piece);
        }
        area.fence();
        area.bytes() as f64 / ns_since(start)
    })
}

/// Nanoseconds of a store to a random line and its flush, with a fence every 16.
pub(super) fn store_flush_ns(area: &mut MeasuringArea) -> f64 {
    let line = black_box([1; LINE_BYTES as usize]);
    fenced_stores_ns(area, LINE_BYTES, FENCE_EVERY, |area, offset| {
        area.store_bytes(offset, &line);
        area.flush(offset, LINE_BYTES);
    })
}

/// Nanoseconds of an ordinary store to a random line.
pub(super) fn store_ns(area: &mut MeasuringArea) -> f64 {
    let line = black_box([1; LINE_BYTES as usize]);
    fenced_stores_ns(area, LINE_BYTES, 1 << 10, |area, offset| area.store_bytes(offset, &line))
}

/// Nanoseconds of a fence that has one non-temporal store to wait for.
pub(super) fn fence_ns(area: &mut MeasuringArea) -> f64 {
    let line = black_box([1; LINE_BYTES as usize]);
    let each = fenced_stores_ns(area, LINE_BYTES, 1, |area, offset| area.store_nt(offset, &line));
    (each - store_nt_ns::<{ LINE_BYTES as usize }>(area)).max(0.0)
}

/// Nanoseconds of a non-temporal store of `BYTES` to a random place, with a fence every 16.
pub(super) fn store_nt_ns<const BYTES: usize>(area: &mut MeasuringArea) -> f64 {
    let bytes = black_box([1; BYTES]);
    let store = |area: &mut MeasuringArea, offset| area.store_nt(offset, &bytes);
    fenced_stores_ns(area, BYTES as u64, FENCE_EVERY, store)
}

#[inline(always)]
fn fenced_stores_ns(
    area: &mut MeasuringArea,
    bytes: u64,
    fence_every: u64,
    mut store: impl FnMut(&mut MeasuringArea, u64),
) -> f64 {
    let (places, fences) = (area.bytes() / bytes, times(area, 16) / fence_every);
    repeated(|seed| {
        let mut random = Random::new(seed, 4, bytes);
        let start = now_ns();
        for _ in 0..fences {
            for _ in 0..fence_every {
                store(area, random.below(places) * bytes);
            }
            area.fence();
        }
        ns_since(start) / (fences * fence_every) as f64
    })
}

/// Nanoseconds of a read of one word in each of `LINES` lines from a random one on, where the lines
/// are asked for `READS` reads ahead.
#[inline(never)]
fn read_in_flight_ns<const READS: usize, const LINES: u64>(
    area: &MeasuringArea,
    reads: u64,
    mut random: Random,
) -> f64 {
    let places = lines(area) - LINES + 1;
    let rounds = reads / READS as u64;
    let mut sum = 0_u64;
    let mut ahead = [0; READS];
    let start = now_ns();
    for _ in 0..rounds {
        for place in &mut ahead {
            for line in 0..LINES {
                sum = sum.wrapping_add(area.load_u64(*place + line * LINE_BYTES));
            }
            *place = random.below(places) * LINE_BYTES;
            for line in 0..LINES {
                area.prefetch(*place + line * LINE_BYTES);
            }
        }
    }
    black_box(sum);
    ns_since(start) / (rounds * READS as u64) as f64
}

/// The median of some repetitions, which get numbers from 1 on to differ in.
fn repeated(one: impl FnMut(u64) -> f64) -> f64 {
    median((1..=REPETITIONS).map(one).collect())
}

/// How many accesses a repetition makes: one in `share` lines, but enough for the clock, and not
/// more than with 1 GiB.
fn times(area: &MeasuringArea, share: u64) -> u64 {
    (lines(area) / share).clamp(1 << 14, (1 << 24) / share)
}

fn lines(area: &MeasuringArea) -> u64 {
    area.bytes() / LINE_BYTES
}

/// Never 0, so that it can be divided by.
fn ns_since(start: u64) -> f64 {
    (now_ns() - start).max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_accesses_follows_the_memory_between_limits() {
        let times = |mib: u64, share| {
            let area = MeasuringArea::new(mib << 20).expect("address space");
            times(&area, share)
        };
        assert_eq!(times(1, 16), 1 << 14);
        assert_eq!(times(64, 16), 1 << 16);
        assert_eq!(times(1 << 10, 16), 1 << 20);
        assert_eq!(times(1 << 14, 16), 1 << 20);
    }

    #[test]
    fn every_line_is_filled_and_every_store_arrives() {
        let mut area = MeasuringArea::new(1 << 20).expect("address space");
        fill(&mut area);
        assert!((0..lines(&area)).all(|line| area.load_u64(line * LINE_BYTES) != 0));
        stream_write(&mut area);
        assert!(area.slice(0, 1 << 20).iter().all(|byte| u64::from(*byte) == REPETITIONS));
        stream_write_nt(&mut area);
        assert!(area.slice(0, 1 << 20).iter().all(|byte| u64::from(*byte) == REPETITIONS));
        store_flush_ns(&mut area);
        assert!(area.slice(0, 1 << 20).contains(&1));
    }
}
