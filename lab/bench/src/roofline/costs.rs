//! The few costs that the least time of a run is made of, in a second: measured by as many threads
//! at once as the run had, because they share the memory. What each figure means is in `memory`.

use std::path::Path;
use std::sync::Barrier;

use bench::report::median;
use bench::{BenchError, Result};
use pmem::MeasuringArea;
use serde::Serialize;

use super::{disk, machine, memory};

/// MiB of memory of all threads together, and of one at least: more than caches hold, and quick to
/// fill.
const MEMORY_MIB: u64 = 256;
/// See `MEMORY_MIB`.
const THREAD_MIB_MIN: u64 = 64;
/// Most bytes of a sync that are measured.
const SYNC_BYTES_MAX: u64 = 4 << 20;

/// What memory and disk cost one thread while the others do the same, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Costs {
    /// Threads that measured, and MiB of memory that they measured in.
    pub threads: usize,
    /// See `threads`.
    pub memory_mib: u64,
    /// A random line, many of them in flight.
    pub read_line_ns: f64,
    /// Each of the 15 lines after it, read with it.
    pub read_next_line_ns: f64,
    /// An ordinary store to a random line.
    pub store_line_ns: f64,
    /// The same, written back.
    pub flush_line_ns: f64,
    /// A line stored non-temporally.
    pub store_nt_line_ns: f64,
    /// Each of the 3 lines after it, stored with it.
    pub store_nt_next_line_ns: f64,
    /// A byte of a stream of non-temporal stores.
    pub stream_nt_byte_ns: f64,
    /// A fence.
    pub fence_ns: f64,
    /// Overwriting as many bytes of a file as an epoch logs, and syncing them; 0 if there is no
    /// file.
    pub log_sync_ns: f64,
}

/// The file that is overwritten and synced: where, and how many bytes at once.
pub(crate) type Log<'a> = (&'a Path, u64);

/// Measures for so many threads; `log`, if there is one.
///
/// # Errors
/// `Usage` if there is not enough memory; the disk's.
pub(crate) fn measure(threads: usize, log: Option<Log<'_>>) -> Result<Costs> {
    let area_mib = (MEMORY_MIB / threads as u64).max(THREAD_MIB_MIN);
    let memory_mib = area_mib * threads as u64;
    if machine::available_bytes().is_some_and(|bytes| bytes < memory_mib << 21) {
        return Err(BenchError::Usage(format!("{memory_mib} MiB to measure in are not available")));
    }
    // Before the threads begin: none may wait for one that got no memory.
    let areas: Vec<MeasuringArea> = (0..threads)
        .map(|_| MeasuringArea::new(area_mib << 20))
        .collect::<std::result::Result<_, _>>()?;
    let barrier = &Barrier::new(threads);
    let all = std::thread::scope(|scope| {
        let spawn = |area| scope.spawn(move || in_step(area, barrier));
        let threads: Vec<_> = areas.into_iter().map(spawn).collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread's figures")).collect()
    });
    let mut costs = from_figures(all);
    (costs.threads, costs.memory_mib) = (threads, memory_mib);
    if let Some((directory, bytes)) = log {
        let bytes = bytes.next_multiple_of(4096).clamp(4096, SYNC_BYTES_MAX);
        let mut file = disk::Written::create(directory)?;
        costs.log_sync_ns = file.overwrite_us(bytes)? * 1e3;
        file.remove()?;
    }
    Ok(costs)
}

/// The figures of one thread, in order.
type Figures = [f64; 8];

/// Each figure of one thread, begun together with all others.
fn in_step(mut area: MeasuringArea, barrier: &Barrier) -> Figures {
    memory::fill(&mut area);
    let figures: [fn(&mut MeasuringArea) -> f64; 8] = [
        |area| memory::read_lines_ns(area),
        |area| memory::read_1024_ns(area),
        memory::store_ns,
        memory::store_flush_ns,
        memory::store_nt_ns::<64>,
        memory::store_nt_ns::<256>,
        |area| 1.0 / memory::stream_write_nt(area),
        memory::fence_ns,
    ];
    figures.map(|figure| {
        barrier.wait();
        figure(&mut area)
    })
}

/// The median thread of each figure, by itself.
fn from_figures(all: Vec<Figures>) -> Costs {
    let of = |index: usize| median(all.iter().map(|figures| figures[index]).collect());
    let [read, read_16, store, flush, nt, nt_4, stream, fence] = std::array::from_fn(of);
    // Stores were measured with a fence every 16.
    let flush = (flush - fence / 16.0).max(0.0);
    let nt = (nt - fence / 16.0).max(0.0);
    let nt_4 = (nt_4 - fence / 16.0).max(nt);
    Costs {
        read_line_ns: read,
        read_next_line_ns: (read_16 - read).max(0.0) / 15.0,
        store_line_ns: store,
        flush_line_ns: flush,
        store_nt_line_ns: nt,
        store_nt_next_line_ns: (nt_4 - nt) / 3.0,
        stream_nt_byte_ns: stream,
        fence_ns: fence,
        ..Costs::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_and_the_next_ones_add_up_to_what_was_measured() {
        let costs = from_figures(vec![[20.0, 170.0, 9.0, 78.0, 35.0, 65.0, 0.1, 48.0]]);
        let sum = |first: f64, next: f64, lines: f64| first + (lines - 1.0) * next;
        let near = |left: f64, right: f64| assert!((left - right).abs() < 1e-9, "{left} {right}");
        near(sum(costs.read_line_ns, costs.read_next_line_ns, 16.0), 170.0);
        near(sum(costs.store_nt_line_ns, costs.store_nt_next_line_ns, 4.0) + 3.0, 65.0);
        near(costs.flush_line_ns, 75.0);
    }

    #[test]
    fn the_median_thread_counts_and_no_cost_is_negative() {
        let figures = |n: f64| [n, 0.0, n, 0.0, 0.0, 0.0, n, 1000.0];
        let costs = from_figures(vec![figures(1.0), figures(100.0), figures(3.0)]);
        assert_eq!((costs.read_line_ns, costs.store_line_ns), (3.0, 3.0));
        for cost in [costs.read_next_line_ns, costs.flush_line_ns, costs.store_nt_line_ns] {
            assert_eq!(cost, 0.0);
        }
    }
}
