//! What the engine's options are worth, and what another build does: which runs answer that, and
//! what they say together. Every run is a `bench` command in a process of its own, so that no run
//! sees what another one left in memory, and a build of another day can take part. Starts no
//! process and reads no clock: the caller that does makes the runs in the order of
//! [`Ablation::runs`].
//!
//! All variants run once in each round, one after the other, so that what the machine does
//! meanwhile hits all of them; a variant is compared with the usual engine within a round only.

use serde::Serialize;
use serde_json::Value;

/// A work that is measured.
#[derive(Debug, Clone, Copy)]
pub struct Work {
    /// Name on the command line and in reports.
    pub name: &'static str,
    /// What it is, in a few words.
    pub what: &'static str,
    options: &'static str,
    size: &'static str,
    size_quick: &'static str,
}

/// All works. Rows are far more than the processor's caches hold, and few enough that updates meet
/// rows of which both slots are known (docs/decisions/0011).
pub const WORKS: [Work; 5] = [
    Work {
        name: "ycsb-reads",
        what: "YCSB, 8 reads and 2 updates, uniform",
        options: "ycsb --read-ratio 8",
        size: "--rows 100000 --epoch-size 20000 --epochs 16",
        size_quick: "--rows 1000 --epoch-size 200 --epochs 3",
    },
    Work {
        name: "ycsb-updates",
        what: "YCSB, 10 updates, uniform",
        options: "ycsb --read-ratio 0",
        size: "--rows 100000 --epoch-size 20000 --epochs 8",
        size_quick: "--rows 1000 --epoch-size 200 --epochs 3",
    },
    Work {
        name: "ycsb-hot",
        what: "YCSB, 10 updates, 7 of them of 256 hot rows",
        options: "ycsb --read-ratio 0 --hot-keys 7",
        size: "--rows 100000 --epoch-size 20000 --epochs 8",
        size_quick: "--rows 1000 --epoch-size 200 --epochs 3",
    },
    Work {
        name: "smallbank",
        what: "SmallBank, low contention",
        options: "smallbank --contention low",
        size: "--customers 500000 --epoch-size 50000 --epochs 16",
        size_quick: "--customers 2000 --epoch-size 400 --epochs 3",
    },
    Work {
        name: "tpcc",
        what: "TPC-C, papers' mix, 2 warehouses",
        options: "tpcc --mix paper --warehouses 2",
        size: "--epoch-size 20000 --epochs 8",
        size_quick: "--items 300 --customers-per-district 30 --epoch-size 200 --epochs 2",
    },
];

impl Work {
    /// The words of its `bench` command, but for those of a variant.
    fn words(self, settings: &Settings) -> Vec<String> {
        let size = if settings.quick { self.size_quick } else { self.size };
        let Settings { workers, seed, device, .. } = settings;
        let common =
            format!("--workers {workers} --seed {seed} --device {device} --no-check --no-progress");
        let all = format!("{} {size} {common}", self.options);
        all.split_whitespace().map(str::to_string).collect()
    }
}

/// One way to run the works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variant {
    /// Name in reports.
    pub name: &'static str,
    /// The options that make it so.
    options: &'static str,
    /// The works that it is for, by the beginning of their names.
    only: &'static str,
    /// Whether the other program runs it.
    by_other: bool,
}

impl Variant {
    /// The variants, the usual engine first, the other program last, if there is one.
    fn all(against: bool) -> Vec<Self> {
        let variant = |name, options, only| Self { name, options, only, by_other: false };
        let mut all = vec![
            variant("as it is", "", ""),
            variant("without state hash", "--no-state-hash", ""),
            variant("append by row lock", "--append row-lock", ""),
            variant("pieces", "--pieces", "ycsb"),
            variant("pieces split off", "--pieces --split-threshold 64", "ycsb-hot"),
        ];
        let other = Self { by_other: true, ..variant("the other program", "", "") };
        all.extend(against.then_some(other));
        all
    }

    /// Its options, one by one.
    fn words(&self) -> Vec<String> {
        self.options.split_whitespace().map(str::to_string).collect()
    }
}

/// What is measured, and how often.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The works.
    pub works: Vec<Work>,
    /// Rounds.
    pub rounds: u64,
    /// Tiny sizes: they show that all of it works, and mean nothing.
    pub quick: bool,
    /// Worker threads.
    pub workers: usize,
    /// Names the data and the stream of calls.
    pub seed: u64,
    /// The device, as named on the command line.
    pub device: String,
    /// Whether another program takes part.
    pub against: bool,
}

/// One run that is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// For people.
    pub what: String,
    /// Whether the other program makes it.
    pub by_other: bool,
    /// What follows `bench` on its command line; where the JSON goes is not in it.
    pub words: Vec<String>,
    work: usize,
    variant: usize,
    round: usize,
}

/// Counts of a transaction that say what a variant does to the device.
const COUNTERS: [&str; 5] =
    ["lines_written", "bytes_stored", "bytes_stored_nt", "flushes", "fences"];

/// What one run came to.
#[derive(Debug, Clone, PartialEq)]
struct Figures {
    txn_per_s: f64,
    /// In the order of [`COUNTERS`].
    per_txn: [f64; COUNTERS.len()],
    digest: String,
}

impl Figures {
    /// Reads the JSON of a `bench` command; names what is missing.
    fn of(report: &Value) -> Result<Self, String> {
        let number = |value: &Value, name: &str| {
            value.as_f64().ok_or_else(|| format!("the report has no {name}"))
        };
        let mut per_txn = [0.0; COUNTERS.len()];
        for (figure, name) in per_txn.iter_mut().zip(COUNTERS) {
            let name = format!("{name}_per_txn");
            *figure = number(&report["counters"][&name], &name)?;
        }
        Ok(Self {
            txn_per_s: number(&report["throughput_txn_per_s"], "throughput_txn_per_s")?,
            per_txn,
            digest: report["state_digest"].as_str().ok_or("the report has no digest")?.into(),
        })
    }
}

/// Runs that were made, and runs that are still to be made.
#[derive(Debug)]
pub struct Ablation {
    settings: Settings,
    variants: Vec<Variant>,
    /// By work, variant and round.
    found: Vec<Vec<Vec<Option<Figures>>>>,
}

impl Ablation {
    /// Nothing has run yet.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let variants = Variant::all(settings.against);
        let rounds = vec![None; settings.rounds as usize];
        let found = vec![vec![rounds; variants.len()]; settings.works.len()];
        Self { settings, variants, found }
    }

    /// All runs, in the order in which they are to be made. Each round begins with another variant,
    /// so that none of them always comes first.
    #[must_use]
    pub fn runs(&self) -> Vec<Run> {
        let mut runs = Vec::new();
        for round in 0..self.settings.rounds as usize {
            for (work, of) in self.settings.works.iter().enumerate() {
                for nth in 0..self.variants.len() {
                    let variant = (nth + round) % self.variants.len();
                    let with = &self.variants[variant];
                    if !of.name.starts_with(with.only) {
                        continue;
                    }
                    let by_other = with.by_other;
                    let mut words = [of.words(&self.settings), with.words()].concat();
                    if !by_other {
                        // An older program may not know it.
                        words.push("--limits=never".to_string());
                    }
                    runs.push(Run {
                        what: format!("{}, {}", of.name, with.name),
                        by_other,
                        words,
                        work,
                        variant,
                        round,
                    });
                }
            }
        }
        runs
    }

    /// Takes the JSON of a run.
    ///
    /// # Errors
    /// What the JSON lacks, or how its digest differs from that of other runs of the same work. The
    /// other program may hash otherwise: its digests are compared with nothing.
    pub fn add(&mut self, run: &Run, report: &Value) -> Result<(), String> {
        let figures = Figures::of(report).map_err(|why| format!("{}: {why}", run.what))?;
        if let Some(other) = self.digest(run.work).filter(|_| !run.by_other)
            && other != figures.digest
        {
            let digest = figures.digest;
            return Err(format!("{} came to state {digest}, others to {other}", run.what));
        }
        self.found[run.work][run.variant][run.round] = Some(figures);
        Ok(())
    }

    /// What the variants of this program came to in a work.
    fn digest(&self, work: usize) -> Option<&str> {
        let variants = self.found[work].iter().zip(&self.variants);
        let mut own = variants.filter(|(_, variant)| !variant.by_other);
        own.find_map(|(rounds, _)| Some(rounds.iter().flatten().next()?.digest.as_str()))
    }

    /// What was found until now.
    #[must_use]
    pub fn report(&self, interrupted: bool) -> AblationReport {
        let Settings { quick, workers, seed, ref device, rounds, .. } = self.settings;
        let works = self.settings.works.iter().enumerate();
        let works = works.map(|(index, work)| WorkReport {
            work: work.name,
            what: work.what,
            command: format!("nvcaracal-lab bench {}", work.words(&self.settings).join(" ")),
            state_digest: self.digest(index).map(str::to_string),
            variants: self.rows(index),
        });
        let works = works.collect();
        AblationReport { quick, workers, seed, device: device.clone(), rounds, interrupted, works }
    }

    fn rows(&self, work: usize) -> Vec<VariantReport> {
        let found = &self.found[work];
        let usual = &found[0];
        let row = |(variant, rounds): (&Variant, &Vec<Option<Figures>>)| {
            let rates: Vec<f64> = rounds.iter().flatten().map(|f| f.txn_per_s).collect();
            let ratios: Vec<f64> = rounds
                .iter()
                .zip(usual)
                .filter_map(|(this, usual)| Some((this.as_ref()?, usual.as_ref()?)))
                .filter(|(_, usual)| usual.txn_per_s > 0.0)
                .map(|(this, usual)| this.txn_per_s / usual.txn_per_s)
                .collect();
            let count = |index: usize| {
                median(&rounds.iter().flatten().map(|f| f.per_txn[index]).collect::<Vec<_>>())
            };
            VariantReport {
                variant: variant.name,
                options: variant.options,
                runs: rates.len(),
                txn_per_s: median(&rates),
                ratio: median(&ratios),
                ratio_least: ratios.iter().copied().reduce(f64::min),
                ratio_most: ratios.iter().copied().reduce(f64::max),
                lines_written_per_txn: count(0),
                bytes_stored_per_txn: count(1).zip(count(2)).map(|(cached, past)| cached + past),
                flushes_per_txn: count(3),
                fences_per_txn: count(4),
            }
        };
        let name = self.settings.works[work].name;
        let fits = |(variant, _): &(&Variant, _)| name.starts_with(variant.only);
        self.variants.iter().zip(found).filter(fits).map(row).collect()
    }
}

/// The middle one, or the mean of the two in the middle.
fn median(figures: &[f64]) -> Option<f64> {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (sorted.get(sorted.len().wrapping_sub(1) / 2)?, sorted[sorted.len() / 2]);
    Some((low + high) / 2.0)
}

/// The whole result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AblationReport {
    /// Whether the sizes were tiny, so that times mean nothing.
    pub quick: bool,
    /// Worker threads.
    pub workers: usize,
    /// Name of data and stream.
    pub seed: u64,
    /// The device.
    pub device: String,
    /// Rounds that were asked for.
    pub rounds: u64,
    /// Whether a stop was asked for before all of them had run.
    pub interrupted: bool,
    /// By work.
    pub works: Vec<WorkReport>,
}

/// One work.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorkReport {
    /// Name.
    pub work: &'static str,
    /// What it is.
    pub what: &'static str,
    /// The command of each run, but for the variant's options.
    pub command: String,
    /// The state that all variants of this program came to.
    pub state_digest: Option<String>,
    /// By variant, the usual engine first.
    pub variants: Vec<VariantReport>,
}

/// One variant in one work; what is absent was not measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VariantReport {
    /// Name.
    pub variant: &'static str,
    /// Options that make it so.
    pub options: &'static str,
    /// Runs.
    pub runs: usize,
    /// Median of the runs.
    pub txn_per_s: Option<f64>,
    /// Throughput by that of the usual engine in the same round: the median of the rounds.
    pub ratio: Option<f64>,
    /// The least of them.
    pub ratio_least: Option<f64>,
    /// The most of them.
    pub ratio_most: Option<f64>,
    /// Lines flushed or stored non-temporally.
    pub lines_written_per_txn: Option<f64>,
    /// Bytes stored in the image, non-temporally or not.
    pub bytes_stored_per_txn: Option<f64>,
    /// Lines flushed.
    pub flushes_per_txn: Option<f64>,
    /// Fences.
    pub fences_per_txn: Option<f64>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn settings(rounds: u64, against: bool) -> Settings {
        let (works, quick, device) = (WORKS[..2].to_vec(), true, "dram".to_string());
        Settings { works, rounds, quick, workers: 1, seed: 3, device, against }
    }

    fn report(rate: f64, digest: &str) -> Value {
        let mut counters = serde_json::Map::new();
        for name in COUNTERS {
            counters.insert(format!("{name}_per_txn"), 2.5.into());
        }
        json!({"throughput_txn_per_s": rate, "counters": counters, "state_digest": digest})
    }

    #[test]
    fn every_variant_runs_once_in_each_round_of_each_work() {
        let ablation = Ablation::new(settings(3, true));
        let runs = ablation.runs();
        let variants = 5;
        assert_eq!(runs.len(), 3 * 2 * variants);
        for (index, of_round) in runs.chunks(variants).enumerate() {
            let mut seen: Vec<usize> = of_round.iter().map(|run| run.variant).collect();
            assert_eq!(seen[0], index / 2, "each round begins with another one");
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen.len(), variants, "and with all but the one for hot rows");
            assert!(of_round.iter().all(|run| run.round == index / 2));
            let named = |name: &str| {
                let mut runs = of_round.iter();
                runs.find(|run| run.what.ends_with(name)).unwrap_or_else(|| panic!("no {name}"))
            };
            let line = named("without state hash").words.join(" ");
            assert!(line.starts_with("ycsb ") && line.contains("--seed 3"), "{line}");
            assert!(line.contains("--no-state-hash"), "{line}");
            let other = of_round.iter().find(|run| run.by_other).expect("it runs");
            let usual = [&other.words[..], &["--limits=never".to_string()]].concat();
            assert_eq!(named("as it is").words, usual);
        }
    }

    #[test]
    fn ratios_are_of_runs_in_the_same_round() {
        let mut ablation = Ablation::new(settings(3, false));
        let rates = [[100.0, 50.0], [10.0, 8.0], [1000.0, 600.0]];
        for run in ablation.runs().iter().filter(|run| run.work == 0 && run.variant < 2) {
            ablation.add(run, &report(rates[run.round][run.variant], "d")).expect("a report");
        }
        let work = &ablation.report(true).works[0];
        let row = &work.variants[1];
        assert_eq!((row.runs, row.txn_per_s, row.ratio), (3, Some(50.0), Some(0.6)));
        assert_eq!((row.ratio_least, row.ratio_most), (Some(0.5), Some(0.8)));
        assert_eq!((row.lines_written_per_txn, row.bytes_stored_per_txn), (Some(2.5), Some(5.0)));
        assert_eq!(work.state_digest.as_deref(), Some("d"));
        assert_eq!((work.variants[2].runs, work.variants[2].ratio), (0, None));
        assert_eq!(work.variants[0].ratio_least, Some(1.0));
    }

    #[test]
    fn another_state_or_an_incomplete_report_is_an_error() {
        let mut ablation = Ablation::new(settings(1, true));
        let runs = ablation.runs();
        ablation.add(&runs[0], &report(1.0, "a")).expect("the first");
        let error = ablation.add(&runs[1], &report(1.0, "b")).expect_err("another state");
        assert!(error.contains("without state hash") && error.contains("state b"), "{error}");
        let other = runs.iter().find(|run| run.by_other).expect("it runs");
        ablation.add(other, &report(1.0, "b")).expect("it may hash otherwise");
        let error = ablation.add(&runs[2], &json!({"counters": {}})).expect_err("nothing in it");
        assert!(error.contains("lines_written_per_txn"), "{error}");
    }

    #[test]
    fn medians() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[9.0, 1.0, 4.0]), Some(4.0));
        assert_eq!(median(&[9.0, 1.0, 4.0, 5.0]), Some(4.5));
    }
}
