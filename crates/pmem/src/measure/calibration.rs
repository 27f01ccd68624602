//! How long DRAM takes for a block, which the costs of `optane` and `eadr` are relative to.
//!
//! The rule: [`PART_BYTES`] of memory for each thread of the machine, at most [`THREADS_MAX`], are
//! filled past the caches. One thread alone, and then all of them at once, read and write random
//! blocks in [`TURNS`] short turns (`memory_speed`). Then one thread does the same on a device with
//! costs that follow from that, to learn what a block takes there beside the waiting: more than on
//! DRAM, because a wait keeps reads before it from being in flight with those after it. That takes
//! some 50 ms, once in a process: all its devices have the same costs. Under the interpreter that
//! checks unsafe code the times are those of no machine but fixed.

use std::sync::{Arc, OnceLock};

use crate::emulated::{Access, BlockTime, BlockTimes, Costs, Emulated, Profile};
use crate::failure::DeviceError;
use crate::measure::memory_speed::{Blocks, TURN_BLOCKS};
use crate::measure::{MeasuringArea, memory_speed};
use crate::units::BLOCK_BYTES;

/// Memory of a thread.
const PART_BYTES: u64 = 8 << 20;
/// The paper's machine had as many cores.
const THREADS_MAX: usize = 8;
/// Dispatch of each measurement.
const TURNS: u64 = 32;
// A block that was read before would be in a cache.
const _: () = assert!(2 * TURNS * TURN_BLOCKS * BLOCK_BYTES <= PART_BYTES);

/// A machine with 4.5 GB/s of random reads and 10 GB/s of random writes by each of two threads.
const FIXED: BlockTimes =
    BlockTimes { reads: BlockTime::new(57_000, 28_500), writes: BlockTime::new(25_600, 12_800) };

/// The times of this machine, measured at the first call. Where there is no memory to measure in,
/// the fixed ones.
fn block_times() -> BlockTimes {
    static TIMES: OnceLock<BlockTimes> = OnceLock::new();
    *TIMES.get_or_init(|| if cfg!(miri) { FIXED } else { measure().unwrap_or(FIXED) })
}

impl Emulated {
    /// A device with empty spaces that may grow up to the limits. The first one of `optane` or
    /// `eadr` in a process measures this machine's memory, for some 50 ms.
    ///
    /// # Errors
    /// [`DeviceError::Io`] when the address space cannot be reserved.
    pub fn new(
        profile: Profile,
        image_limit_bytes: u64,
        log_limit_bytes: u64,
    ) -> Result<Self, DeviceError> {
        Self::with_costs(
            profile,
            Costs::of(profile, block_times),
            image_limit_bytes,
            log_limit_bytes,
        )
    }
}

impl MeasuringArea {
    /// Reserves `bytes` of address space, on huge pages where the system has them. Memory is used
    /// when a page is first stored to.
    ///
    /// # Errors
    /// [`DeviceError::Io`] when the address space cannot be reserved.
    pub fn new(bytes: u64) -> Result<Self, DeviceError> {
        Ok(Self::of_profile(Profile::None, bytes, 1)?.remove(0))
    }

    /// Areas of one device, of `bytes` each, for as many threads, which share its bandwidth.
    ///
    /// # Errors
    /// As [`MeasuringArea::new`].
    pub fn of_profile(
        profile: Profile,
        bytes: u64,
        areas: usize,
    ) -> Result<Vec<Self>, DeviceError> {
        let all_bytes = bytes.saturating_mul(areas as u64);
        Self::of_device(&Arc::new(Emulated::new(profile, all_bytes, 0)?), bytes, areas)
    }
}

/// Measures blocks of an area.
type Measure = fn(&mut MeasuringArea, Blocks) -> f64;

fn measure() -> Result<BlockTimes, DeviceError> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let threads = cores.min(THREADS_MAX);
    let mut areas = MeasuringArea::of_profile(Profile::None, PART_BYTES, threads)?;
    areas.iter_mut().for_each(memory_speed::fill);
    let mut of_dram = |measure: Measure| {
        let one_thread_ps = block_ps(&mut areas[..1], measure, 0, memory_speed::undisturbed);
        let all_threads_ps = match threads {
            1 => one_thread_ps,
            // Blocks that no cache holds from before. Threads that have the processors to
            // themselves at the same time are rare on a busy machine: the best turn counts.
            _ => block_ps(&mut areas, measure, TURNS, fastest),
        };
        // All together are not slower than one of them, and not faster than as many alone.
        let least_ps = one_thread_ps / threads as u64;
        BlockTime::new(one_thread_ps, all_threads_ps.clamp(least_ps, one_thread_ps))
    };
    let reads = of_dram(memory_speed::read_ns);
    let dram = BlockTimes { reads, writes: of_dram(memory_speed::write_ns) };
    let costs = Costs::optane(dram);
    let device = Emulated::with_costs(Profile::Optane, costs, PART_BYTES, 0)?;
    let mut areas = MeasuringArea::of_device(&Arc::new(device), PART_BYTES, 1)?;
    areas.iter_mut().for_each(memory_speed::fill);
    let mut on_device = |time: BlockTime, access: Access, measure: Measure| {
        let waiting_ps = access.first_ns * 1000;
        let all_ps = block_ps(&mut areas, measure, 0, memory_speed::undisturbed);
        // Not less than on DRAM, whatever disturbed the measurement, and not much more.
        let beside_ps = all_ps.saturating_sub(waiting_ps);
        let beside_waiting_ps = beside_ps.clamp(time.one_thread_ps, 3 * time.one_thread_ps);
        BlockTime { beside_waiting_ps, ..time }
    };
    let reads = on_device(dram.reads, costs.reads, memory_speed::read_ns);
    Ok(BlockTimes { reads, writes: on_device(dram.writes, costs.writes, memory_speed::write_ns) })
}

/// Picoseconds of a block, where all areas are measured at once, from a turn on.
fn block_ps(
    areas: &mut [MeasuringArea],
    measure: Measure,
    from_turn: u64,
    choose: fn(Vec<f64>) -> f64,
) -> u64 {
    let rates = memory_speed::in_step(areas, TURNS, |area, turn| {
        let from = (from_turn + turn) * TURN_BLOCKS;
        measure(area, Blocks { from, count: TURN_BLOCKS })
    });
    let turn_ns = 1.0 / choose(rates);
    (turn_ns * 1000.0 / TURN_BLOCKS as f64) as u64
}

fn fastest(rates: Vec<f64>) -> f64 {
    rates.into_iter().fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_devices_have_the_times_of_the_first_measurement() {
        let times = block_times();
        assert_eq!(times, block_times());
        for BlockTime { one_thread_ps, all_threads_ps, beside_waiting_ps } in
            [times.reads, times.writes]
        {
            assert!((1..=one_thread_ps).contains(&all_threads_ps), "{times:?}");
            assert!(beside_waiting_ps >= one_thread_ps, "{times:?}");
        }
    }
}
