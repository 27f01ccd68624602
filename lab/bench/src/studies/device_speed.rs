//! How much slower an emulated device is than this machine's memory, beside what the NVCaracal
//! paper measured of persistent memory (6.1): whether the profile `optane` is what it says.
//!
//! Random blocks of 256 bytes are read and written by one thread and by two, of memory and of the
//! device alternately, so that what other programs do meets both. The accesses, and how a figure
//! comes from the turns, are `pmem::memory_speed`'s. Nothing here knows the engine.

use bench::report::{median, table};
use bench::{Bar, BenchError, Progress, Result};
use pmem::memory_speed::{self, Blocks, TURN_BLOCKS, undisturbed};
use pmem::{BLOCK_BYTES, Counters, MeasuringArea, Profile};
use serde::Serialize;

use crate::roofline::available_bytes;

/// Dispatch of each figure, of memory and of the device.
const TURNS: u64 = 100;
/// How many threads each figure is measured with.
const THREADS: [usize; 2] = [1, 2];
/// How far a ratio may be from the paper's.
const TOLERANCE_PERCENT: f64 = 15.0;
/// So many times more random writes than persistent memory DRAM makes (NV 6.1) ...
const PAPER_WRITES: f64 = 11.9;
/// ... and random reads.
const PAPER_READS: f64 = 3.2;

/// How to measure.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Which device.
    pub profile: Profile,
    /// MiB of memory of each thread, and as many of the device; a power of two.
    pub memory_mib: u64,
    /// What to show on standard error.
    pub progress: Progress,
}

/// What was measured. Names and units are a promise to scripts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Which device.
    pub device: String,
    /// What it says of itself.
    pub device_note: String,
    /// Bytes of each access.
    pub access_bytes: u64,
    /// MiB of memory of each thread, and as many of the device.
    pub memory_mib: u64,
    /// How far a ratio may be from the paper's.
    pub tolerance_percent: f64,
    /// The figures.
    pub figures: Vec<Figure>,
}

/// One kind of access by so many threads.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// `write` or `read`.
    pub access: &'static str,
    /// Threads that made them at once.
    pub threads: usize,
    /// 10^6 bytes in a second of memory, by all threads.
    pub dram_mb_per_s: f64,
    /// The same of the device.
    pub device_mb_per_s: f64,
    /// Memory by the device.
    pub ratio: f64,
    /// The same of the medians of the turns: far from it where others used the machine.
    pub ratio_of_medians: f64,
    /// What the paper measured, where that is what the profile imitates.
    pub paper_ratio: Option<f64>,
    /// Whether the ratio is that, within the tolerance.
    pub within_tolerance: Option<bool>,
    /// Bytes that the device wrote for each byte of lines written; absent for reads and where no
    /// device is imitated.
    pub write_amplification: Option<f64>,
}

/// Measures; takes a second.
///
/// # Errors
/// `Usage` if there is not enough memory or the size is no power of two.
pub fn run(settings: &Settings) -> Result<Report> {
    let bytes = settings.memory_mib << 20;
    check(settings.memory_mib, bytes)?;
    let bar = settings.progress.bar("measure", 2 * THREADS.len() as u64, "figures");
    let figures = THREADS
        .into_iter()
        .map(|threads| figures(settings.profile, bytes, threads, &bar))
        .collect::<Result<Vec<_>>>()?
        .concat();
    let description = pmem::Device::description(&pmem::Emulated::new(settings.profile, 1, 1)?);
    Ok(Report {
        device: description.name,
        device_note: description.note,
        access_bytes: BLOCK_BYTES,
        memory_mib: settings.memory_mib,
        tolerance_percent: TOLERANCE_PERCENT,
        figures,
    })
}

fn check(memory_mib: u64, bytes: u64) -> Result<()> {
    if !memory_mib.is_power_of_two() {
        return Err(BenchError::Usage(format!("{memory_mib} MiB are no power of two")));
    }
    // Memory and the device, each with an area for every thread.
    let all_bytes = 2 * bytes * THREADS[THREADS.len() - 1] as u64;
    match available_bytes() {
        Some(available) if available < all_bytes => Err(BenchError::Usage(format!(
            "{} MiB of memory are needed and {} MiB are available: choose less",
            all_bytes >> 20,
            available >> 20
        ))),
        _ => Ok(()),
    }
}

/// An area of memory and one of the device, of one thread.
struct Pair {
    dram: MeasuringArea,
    device: MeasuringArea,
}

/// Nanoseconds that some blocks of an area take.
type Measure = fn(&mut MeasuringArea, Blocks) -> f64;

/// The figures of so many threads.
fn figures(profile: Profile, bytes: u64, threads: usize, bar: &Bar) -> Result<Vec<Figure>> {
    let areas = |profile| MeasuringArea::of_profile(profile, bytes, threads);
    let (drams, devices) = (areas(Profile::None)?, areas(profile)?);
    let mut pairs: Vec<Pair> =
        drams.into_iter().zip(devices).map(|(dram, device)| Pair { dram, device }).collect();
    for pair in &mut pairs {
        memory_speed::fill(&mut pair.dram);
        memory_speed::fill(&mut pair.device);
    }
    let paper = |ratio| (profile == Profile::Optane).then_some(ratio);
    let writes = figure("write", &mut pairs, memory_speed::write_ns, paper(PAPER_WRITES));
    bar.step("writes");
    // What was written is in no cache: writes went past them.
    let reads = figure("read", &mut pairs, memory_speed::read_ns, paper(PAPER_READS));
    bar.step("reads");
    Ok(vec![writes, reads])
}

fn figure(
    access: &'static str,
    pairs: &mut [Pair],
    measure: Measure,
    paper_ratio: Option<f64>,
) -> Figure {
    let threads = pairs.len();
    let count = (pairs[0].dram.bytes() / BLOCK_BYTES / TURNS / 16 * 16).min(TURN_BLOCKS);
    for pair in &mut *pairs {
        pair.device.take_counters();
    }
    let rates = memory_speed::in_step(pairs, 2 * TURNS, |pair, turn| {
        let blocks = Blocks { from: turn / 2 * count, count };
        let area = if turn.is_multiple_of(2) { &mut pair.dram } else { &mut pair.device };
        measure(area, blocks)
    });
    let mut counters = Counters::default();
    for pair in pairs {
        counters.add(&pair.device.take_counters());
    }
    let mb_per_s = |first: usize| -> Vec<f64> {
        let rates = rates.iter().skip(first).step_by(2);
        rates.map(|turns_per_ns| turns_per_ns * (count * BLOCK_BYTES) as f64 * 1e3).collect()
    };
    let (dram, device) = (mb_per_s(0), mb_per_s(1));
    let ratio_of_medians = median(dram.clone()) / median(device.clone());
    let (dram_mb_per_s, device_mb_per_s) = (undisturbed(dram), undisturbed(device));
    let ratio = dram_mb_per_s / device_mb_per_s;
    Figure {
        access,
        threads,
        dram_mb_per_s,
        device_mb_per_s,
        ratio,
        ratio_of_medians,
        paper_ratio,
        within_tolerance: paper_ratio.map(|paper| is_near(ratio, paper)),
        write_amplification: counters.write_amplification(),
    }
}

fn is_near(ratio: f64, paper: f64) -> bool {
    (ratio / paper - 1.0).abs() * 100.0 <= TOLERANCE_PERCENT
}

/// The figures as text.
#[must_use]
pub fn render(report: &Report) -> String {
    let Report { device, device_note, access_bytes, memory_mib, tolerance_percent, .. } = report;
    let within = format!("within {tolerance_percent} %");
    let columns =
        ["", "threads", "DRAM MB/s", "device MB/s", "ratio", "of medians", "paper", &within];
    let table = table(&columns, report.figures.iter().map(row).collect());
    format!(
        "{device}: {device_note}\n\
         random {access_bytes}-byte blocks of {memory_mib} MiB for each thread: \
         non-temporal writes with a fence every 16,\n\
         reads that do not depend on each other; a fiftieth of {TURNS} turns was faster\n\
         paper: NVCaracal, 6.1; ratio: DRAM / device\n{table}\n"
    )
}

fn row(figure: &Figure) -> Vec<String> {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_string());
    let yes_no = |yes| if yes { "yes" } else { "NO" };
    vec![
        format!("random {}", figure.access),
        figure.threads.to_string(),
        format!("{:.0}", figure.dram_mb_per_s),
        format!("{:.0}", figure.device_mb_per_s),
        format!("{:.2}", figure.ratio),
        format!("{:.2}", figure.ratio_of_medians),
        or_dash(figure.paper_ratio.map(|ratio| format!("{ratio:.1}"))),
        or_dash(figure.within_tolerance.map(|yes| yes_no(yes).to_string())),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_near_within_fifteen_per_cent() {
        for (ratio, near) in [(3.2, true), (2.73, true), (2.71, false), (3.67, true), (3.69, false)]
        {
            assert_eq!(is_near(ratio, PAPER_READS), near, "{ratio}");
        }
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        for (mib, said) in [(3, "no power of two"), (1 << 40, "choose less")] {
            let error = check(mib, mib << 20).expect_err("refused");
            assert!(error.is_usage() && error.to_string().contains(said), "{error}");
        }
    }

    #[test]
    fn rows_say_whether_the_paper_is_met() {
        let figure = Figure {
            access: "write",
            threads: 2,
            dram_mb_per_s: 11_900.4,
            device_mb_per_s: 500.0,
            ratio: 23.8,
            ratio_of_medians: 24.0,
            paper_ratio: Some(PAPER_WRITES),
            within_tolerance: Some(false),
            write_amplification: Some(1.0),
        };
        let expected = ["random write", "2", "11900", "500", "23.80", "24.00", "11.9", "NO"];
        assert_eq!(row(&figure), expected);
        let unknown = Figure { paper_ratio: None, within_tolerance: None, ..figure };
        assert_eq!(row(&unknown)[6..], ["-", "-"]);
    }
}
