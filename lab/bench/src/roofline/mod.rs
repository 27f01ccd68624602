//! What this machine's memory, processor and disk can do at most, beside the same figures of the
//! machine on which the goals were measured: a result says little without them.
//!
//! One straight function ([`run`]) names the measurements in order; `limits` says what each figure
//! means, `memory`, `plain`, `smallbank`, `processor` and `disk` measure, `table` shows. Every
//! figure is a median, so that a neighbour who takes the machine for a moment does not count.
//! Nothing here knows the engine.

mod costs;
mod disk;
mod limits;
mod machine;
mod memory;
mod plain;
mod processor;
mod smallbank;
mod table;

use std::path::{Path, PathBuf};

use bench::{Bar, BenchError, Progress, Result, is_in_memory};
use pmem::MeasuringArea;
use serde::Serialize;

pub use costs::Costs;
pub(crate) use costs::measure as measure_costs;
use limits::LIMITS_COUNT;
pub use limits::{Figure, Figures, Limit, Unit};
pub(crate) use machine::available_bytes;
pub use table::render;

/// How to measure.
#[derive(Debug, Clone)]
pub struct Settings {
    /// MiB of memory that reads and stores go to.
    pub memory_mib: u64,
    /// Threads of the figure that all workers measure together.
    pub workers: usize,
    /// Where the file is made that is written and synced; removed at the end.
    pub directory: PathBuf,
    /// What to show on standard error.
    pub progress: Progress,
}

/// What was measured. Names and units are a promise to scripts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Which machine the reference figures are of.
    pub reference: &'static str,
    /// MiB of memory that reads and stores went to.
    pub memory_mib: u64,
    /// Per cent of that memory that was on huge pages; absent where the system does not tell.
    pub huge_pages_percent: Option<u64>,
    /// Threads of the figure that all workers measured together.
    pub workers: usize,
    /// Where the file was that was written and synced.
    pub directory: String,
    /// Whether that is only memory, so that the figures of syncs are of no disk.
    pub directory_is_memory: bool,
    /// The figures, by name.
    pub figures: Figures,
}

/// Measures everything; takes 10 to 15 s with 1 GiB.
///
/// # Errors
/// `Usage` if there is not enough memory or the directory does not exist; `Io` if its disk refuses.
pub fn run(settings: &Settings) -> Result<Report> {
    let bytes = settings.memory_mib << 20;
    check(settings, bytes)?;
    let bar = settings.progress.bar("measure", LIMITS_COUNT, "figures");
    let mut found = Found { figures: Figures::default(), bar };
    found.first_touch()?;
    let mut area = MeasuringArea::new(bytes)?;
    memory::fill(&mut area);
    let huge_pages_percent = machine::huge_pages_percent(bytes);
    found.loads(&area, settings.workers);
    found.stores(&mut area);
    found.add(&limits::PLAIN_RMW, plain::rmw_us(&mut area));
    drop(area);
    found.add(&limits::PLAIN_SMALLBANK, smallbank::uniform_us());
    found.add(&limits::PLAIN_SMALLBANK_HOT, smallbank::hot_us());
    found.add(&limits::OPERATIONS, processor::operations_per_ns());
    found.syncs(&settings.directory)?;
    Ok(Report {
        reference: limits::REFERENCE,
        memory_mib: settings.memory_mib,
        huge_pages_percent,
        workers: settings.workers,
        directory: settings.directory.display().to_string(),
        directory_is_memory: is_in_memory(&settings.directory),
        figures: found.figures,
    })
}

/// A user should not wait for a measurement that cannot be finished, or lose the machine to it.
fn check(settings: &Settings, bytes: u64) -> Result<()> {
    match machine::available_bytes() {
        Some(available) if available < bytes => Err(BenchError::Usage(format!(
            "{} MiB of memory are asked for and {} MiB are available: choose less",
            settings.memory_mib,
            available >> 20
        ))),
        _ if !settings.directory.is_dir() => {
            let directory = settings.directory.display();
            Err(BenchError::Usage(format!("{directory} is not a directory")))
        }
        _ => Ok(()),
    }
}

/// The figures so far.
struct Found {
    figures: Figures,
    bar: Bar,
}

impl Found {
    fn add(&mut self, limit: &'static Limit, value: f64) {
        self.figures.0.push(Figure { limit, value });
        self.bar.step(limit.what);
    }

    fn first_touch(&mut self) -> Result<()> {
        self.add(&limits::FIRST_TOUCH, memory::first_touch_us()?);
        Ok(())
    }

    fn loads(&mut self, area: &MeasuringArea, workers: usize) {
        self.add(&limits::READ_DEPENDENT, memory::read_dependent_ns(area));
        self.add(&limits::READ_IN_FLIGHT, memory::read_lines_ns(area));
        self.add(&limits::READ_ALL_WORKERS, memory::read_lines_together_ns(area, workers));
        self.add(&limits::READ_1024, memory::read_1024_ns(area));
        self.add(&limits::STREAM_READ, memory::stream_read(area));
    }

    fn stores(&mut self, area: &mut MeasuringArea) {
        self.add(&limits::STREAM_WRITE, memory::stream_write(area));
        self.add(&limits::STREAM_WRITE_NT, memory::stream_write_nt(area));
        self.add(&limits::STORE_FLUSH, memory::store_flush_ns(area));
        self.add(&limits::STORE_NT_64, memory::store_nt_ns::<64>(area));
        self.add(&limits::STORE_NT_256, memory::store_nt_ns::<256>(area));
    }

    fn syncs(&mut self, directory: &Path) -> Result<()> {
        let mut file = disk::Written::create(directory)?;
        self.add(&limits::SYNC_4_KIB, file.overwrite_us(4 << 10)?);
        self.add(&limits::SYNC_64_KIB, file.overwrite_us(64 << 10)?);
        self.add(&limits::SYNC_1_MIB, file.overwrite_us(1 << 20)?);
        file.remove()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_measured_is_refused_before_anything_is_done() {
        let settings = |memory_mib, directory: &str| Settings {
            memory_mib,
            workers: 1,
            directory: directory.into(),
            progress: Progress::Hidden,
        };
        for (settings, said) in
            [(settings(1 << 40, "/"), "choose less"), (settings(1, "/no/such/place"), "/no/such")]
        {
            let error = run(&settings).expect_err("refused");
            assert!(error.is_usage() && error.to_string().contains(said), "{error}");
        }
    }
}
