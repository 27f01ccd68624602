//! How long DRAM takes for a block, which the costs of `optane` and `eadr` are relative to.
//!
//! The rule: [`AREA_BYTES`] of memory are filled past the caches. The threads of the machine, at
//! most [`THREADS_MAX`], take a part each. One thread alone, and then all of them at once, read and
//! write [`COUNT`] random blocks, [`REPETITIONS`] times. The shortest time of a block counts: a
//! neighbour can only make memory slower. That takes some 20 ms, once in a process: all devices
//! have the same costs. Under the interpreter that checks unsafe code the times are those of no
//! machine but fixed.

use std::sync::{Barrier, OnceLock};

use crate::MeasuringArea;
use crate::yardstick::{self, Blocks};

/// Memory of all threads together.
const AREA_BYTES: u64 = 32 << 20;
/// The paper's machine had as many cores.
const THREADS_MAX: usize = 8;
/// Blocks of one measurement: shorter than the time slice of a thread.
const COUNT: u64 = 2048;
/// How often each figure is measured.
const REPETITIONS: u64 = 8;
/// What no memory is faster or slower than, in picoseconds. Without optimisation a block can take
/// the processor longer than the memory.
const BLOCK_PS: std::ops::RangeInclusive<u64> = 2_000..=500_000;

/// Times of DRAM for a block, in picoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BlockTime {
    /// Where one thread is alone.
    pub(super) one_thread_ps: u64,
    /// Where all threads are busy: of all their blocks together.
    pub(super) all_threads_ps: u64,
}

/// Both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BlockTimes {
    pub(super) reads: BlockTime,
    pub(super) writes: BlockTime,
}

/// A machine with 4.5 GB/s of random reads and 10 GB/s of random writes by each of two threads.
const FIXED: BlockTimes = BlockTimes {
    reads: BlockTime { one_thread_ps: 57_000, all_threads_ps: 28_500 },
    writes: BlockTime { one_thread_ps: 25_600, all_threads_ps: 12_800 },
};

/// The times of this machine, measured at the first call. Where there is no memory to measure in,
/// the fixed ones.
pub(super) fn block_times() -> BlockTimes {
    static TIMES: OnceLock<BlockTimes> = OnceLock::new();
    *TIMES.get_or_init(|| if cfg!(miri) { FIXED } else { measure().unwrap_or(FIXED) })
}

/// Measures one of the two.
type Measure = fn(&mut MeasuringArea, Blocks) -> f64;

fn measure() -> Option<BlockTimes> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let threads = cores.min(THREADS_MAX).next_power_of_two();
    let threads = if threads > cores { threads / 2 } else { threads };
    let mut areas =
        MeasuringArea::of_profile(super::Profile::None, AREA_BYTES / threads as u64, threads)
            .ok()?;
    areas.iter_mut().for_each(yardstick::fill);
    let mut times = |measure: Measure| {
        let one_thread_ps = shortest(&mut areas[..1], measure);
        let all_threads_ps = match threads {
            1 => one_thread_ps,
            _ => shortest(&mut areas, measure),
        };
        // All together are not slower than one of them, and not faster than as many alone.
        let least_ps = one_thread_ps / threads as u64;
        BlockTime { one_thread_ps, all_threads_ps: all_threads_ps.clamp(least_ps, one_thread_ps) }
    };
    let reads = times(yardstick::read_ns);
    Some(BlockTimes { reads, writes: times(yardstick::write_ns) })
}

/// Picoseconds of a block in the best repetition, where all areas are measured at once.
fn shortest(areas: &mut [MeasuringArea], measure: Measure) -> u64 {
    let barrier = Barrier::new(areas.len());
    let one = |area: &mut MeasuringArea| -> Vec<f64> {
        let of = |repetition| {
            barrier.wait();
            measure(area, Blocks { from: repetition * COUNT, count: COUNT })
        };
        (0..REPETITIONS).map(of).collect()
    };
    let times: Vec<Vec<f64>> = std::thread::scope(|scope| {
        let spawn = |area| scope.spawn(|| one(area));
        let threads: Vec<_> = areas.iter_mut().map(spawn).collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread's times")).collect()
    });
    let rate = |repetition: usize| times.iter().map(|ns| COUNT as f64 / ns[repetition]).sum();
    let best = (0..REPETITIONS as usize).map(rate).fold(0.0, f64::max);
    ((1000.0 / best) as u64).clamp(*BLOCK_PS.start(), *BLOCK_PS.end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_devices_have_the_times_of_the_first_measurement() {
        let times = block_times();
        assert_eq!(times, block_times());
        for BlockTime { one_thread_ps, all_threads_ps } in [times.reads, times.writes] {
            assert!(BLOCK_PS.contains(&one_thread_ps), "{times:?}");
            assert!((1..=one_thread_ps).contains(&all_threads_ps), "{times:?}");
        }
    }
}
