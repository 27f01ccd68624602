//! What a transaction costs: processor time of all threads, and the time of the device; and what
//! throughput and latency come to by that. Neighbours of the machine change it less than the clock,
//! which also counts when others had the processors.
//!
//! A run says what it costs in the field [`FIELD`] of its JSON. An emulated device is waited for by
//! spinning, so that processor time has its time in it. What a block costs is set anew by each
//! process, relative to the memory that it finds, and differs by a fifth where neighbours use that
//! memory. So before runs are compared ([`price_all`]), these waits are replaced by the blocks of
//! each run at one price for all: the one that fits their waits best.

use std::collections::BTreeMap;

use bench::report::ratio;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What the cost of a run is called in its JSON.
const FIELD: &str = "cost";
/// The device whose time is so much a block of [`BLOCK_BYTES`] read, and so much a block written.
/// The times of other devices are taken as they were added.
const DEVICE_OF_BLOCKS: &str = "emulated:optane";
const BLOCK_BYTES: f64 = 256.0;

/// What a transaction of a run costs, as if its workers had a core each and nothing else ran there.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Threads that run transactions.
    pub workers: usize,
    /// Nanoseconds of the processor, without waits for an emulated device.
    pub processor_ns: f64,
    /// Nanoseconds of the device.
    pub device_ns: f64,
    /// What of these is for what, where blocks have one price.
    #[serde(flatten)]
    pub parts: Option<DeviceParts>,
    /// Both together.
    pub ns: f64,
    /// Transactions in a second.
    pub txn_per_s: f64,
    /// How long calls wait for their answers, where the run says how they are answered.
    #[serde(flatten)]
    pub answer: Option<Answer>,
}

/// Nanoseconds of a device, by what they are for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DeviceParts {
    /// Blocks read.
    pub reads_ns: f64,
    /// Blocks of rows written.
    pub writes_ns: f64,
    /// Blocks of the log written.
    pub log_ns: f64,
}

/// How long calls wait for their durable answers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// How they are answered.
    pub answered: Answered,
    /// Nanoseconds from a call to its durable answer, the mean.
    pub latency_ns: f64,
    /// Those of them in which it waits for others: of its epoch or group, and for that to begin.
    pub waiting_ns: f64,
}

/// How calls are answered.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answered {
    /// Each when it has run: on one worker, repeats included.
    OneByOne,
    /// When its group ends, which a thread does after so many nanoseconds: on average half of that
    /// is left.
    InGroupsOfNs(f64),
    /// When its epoch of so many calls ends. Calls come at any time while the epoch before runs, so
    /// that they wait for half of it, on average.
    InEpochsOf(u64),
}

/// What a transaction of a run took, as measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Took {
    /// Threads that run transactions.
    pub(crate) workers: usize,
    /// Nanoseconds that all threads ran, with those that the device added.
    pub(crate) cpu_ns: f64,
    pub(crate) added_ns: f64,
}

impl Cost {
    /// The cost of a run by itself.
    pub(crate) fn of(took: Took, answered: Answered) -> Self {
        let answer = Answer { answered, latency_ns: 0.0, waiting_ns: 0.0 };
        Self { answer: Some(answer), ..Self::without_answer(took) }.summed()
    }

    /// The same of a run that does not say how calls are answered.
    fn without_answer(took: Took) -> Self {
        let Took { workers, cpu_ns, added_ns } = took;
        let device_ns = added_ns.min(cpu_ns);
        let processor_ns = cpu_ns - device_ns;
        let (parts, ns, txn_per_s, answer) = (None, 0.0, 0.0, None);
        Self { workers, processor_ns, device_ns, parts, ns, txn_per_s, answer }.summed()
    }

    /// The same with what the device takes at a price in place of its waits.
    fn priced(self, parts: DeviceParts) -> Self {
        let device_ns = parts.reads_ns + parts.writes_ns + parts.log_ns;
        Self { device_ns, parts: Some(parts), ..self }.summed()
    }

    /// Computes what follows from processor and device.
    fn summed(mut self) -> Self {
        self.ns = self.processor_ns + self.device_ns;
        self.txn_per_s = ratio(self.workers as f64 * 1e9, self.ns);
        if let Some(answer) = &mut self.answer {
            let waiting_ns = match answer.answered {
                Answered::OneByOne => 0.0,
                Answered::InGroupsOfNs(group_ns) => group_ns / 2.0,
                Answered::InEpochsOf(calls) => {
                    let epoch_ns = ratio(calls as f64 * 1e9, self.txn_per_s);
                    (1.5 * epoch_ns - self.ns).max(0.0)
                }
            };
            answer.waiting_ns = waiting_ns;
            answer.latency_ns = self.ns + waiting_ns;
        }
        self
    }
}

/// What a block costs in all runs on a device.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Price {
    /// Nanoseconds of a block read.
    pub read_ns: f64,
    /// Nanoseconds of a block written, of rows or of the log.
    pub written_ns: f64,
}

/// The cost of a run, and the blocks that it is for.
#[derive(Debug, Clone, Copy)]
struct Work {
    cost: Cost,
    blocks_read: f64,
    blocks_written: f64,
    log_blocks: f64,
}

impl Work {
    /// Nothing if the run has no processor time, or is a model.
    fn of(report: &Value) -> Option<Self> {
        let is_model = report["is_model"] == true;
        let count = |name: &str| report["counters"][name].as_f64().unwrap_or(0.0);
        let cpu_ns = report["cpu_ns_per_txn"].as_f64().filter(|ns| *ns > 0.0 && !is_model)?;
        let workers = report["workers"].as_u64()? as usize;
        let took = Took { workers, cpu_ns, added_ns: count("added_ns_per_txn") };
        // Runs of programs that did not say it are read as well.
        let said = Cost::deserialize(&report[FIELD]).ok();
        Some(Self {
            cost: said.unwrap_or_else(|| Cost::without_answer(took)),
            blocks_read: count("blocks_read_per_txn"),
            blocks_written: count("media_bytes_written_per_txn") / BLOCK_BYTES,
            log_blocks: count("log_bytes_per_txn") / BLOCK_BYTES,
        })
    }

    fn priced(&self, price: Price) -> Cost {
        // A log that is shorter than a block is written with the one of the next epoch.
        let log_blocks = self.log_blocks.min(self.blocks_written);
        self.cost.priced(DeviceParts {
            reads_ns: self.blocks_read * price.read_ns,
            writes_ns: (self.blocks_written - log_blocks) * price.written_ns,
            log_ns: log_blocks * price.written_ns,
        })
    }
}

/// Brings the costs in the JSON of runs to the same prices, and adds them where they are missing;
/// the prices of devices.
pub(crate) fn price_all<'a>(
    reports: impl Iterator<Item = &'a mut Value>,
) -> BTreeMap<String, Price> {
    let mut works: Vec<(&mut Value, Work)> = reports
        .filter_map(|report| {
            let work = Work::of(report)?;
            Some((report, work))
        })
        .collect();
    let is_of_blocks = |report: &Value| report["device"] == DEVICE_OF_BLOCKS;
    let of_blocks = works.iter().filter(|(report, _)| is_of_blocks(report)).map(|(_, work)| *work);
    let price = price(of_blocks);
    for (report, work) in &mut works {
        let cost = match price.filter(|_| is_of_blocks(report)) {
            Some(price) => work.priced(price),
            None => work.cost,
        };
        report[FIELD] = serde_json::to_value(cost).expect("a cost is plain numbers");
    }
    price.map(|price| (DEVICE_OF_BLOCKS.to_string(), price)).into_iter().collect()
}

/// The prices with which blocks come nearest to the times that were added, each run's relative to
/// its own (least squares); nothing if runs do not tell reads from writes.
fn price(works: impl Iterator<Item = Work>) -> Option<Price> {
    let (mut reads, mut both, mut writes, mut read, mut written) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for work in works.filter(|work| work.cost.device_ns > 0.0) {
        let of_reads = work.blocks_read / work.cost.device_ns;
        let of_writes = work.blocks_written / work.cost.device_ns;
        reads += of_reads * of_reads;
        both += of_reads * of_writes;
        writes += of_writes * of_writes;
        read += of_reads;
        written += of_writes;
    }
    let determinant = reads * writes - both * both;
    if determinant <= 1e-6 * reads * writes {
        return None;
    }
    let read_ns = (read * writes - written * both) / determinant;
    let written_ns = (reads * written - both * read) / determinant;
    // The last digits depend on the order of the runs.
    let [read_ns, written_ns] = [read_ns, written_ns].map(|ns| (ns * 1e3).round() / 1e3);
    (read_ns >= 0.0 && written_ns >= 0.0).then_some(Price { read_ns, written_ns })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn calls_wait_for_half_a_group_or_for_one_and_a_half_epochs() {
        let cost = |workers, answered| {
            Cost::of(Took { workers, cpu_ns: 2_000.0, added_ns: 500.0 }, answered)
        };
        let waits = |cost: Cost| {
            let answer = cost.answer.expect("it says how");
            (cost.txn_per_s, answer.latency_ns, answer.waiting_ns)
        };
        let one = cost(4, Answered::OneByOne);
        assert_eq!((one.processor_ns, one.device_ns, one.ns), (1_500.0, 500.0, 2_000.0));
        assert_eq!(waits(one), (2e6, 2_000.0, 0.0));
        assert_eq!(waits(cost(4, Answered::InGroupsOfNs(40e6))), (2e6, 20_002_000.0, 20e6));
        // 100 calls take four workers 50 us.
        assert_eq!(waits(cost(4, Answered::InEpochsOf(100))), (2e6, 75_000.0, 73_000.0));
        assert_eq!(waits(cost(4, Answered::InEpochsOf(1))), (2e6, 2_000.0, 0.0));
    }

    #[test]
    fn what_a_run_says_of_its_workers_and_answers_counts_at_the_price_of_all() {
        let mut reports = [
            run(DEVICE_OF_BLOCKS, 5_000.0, 1_400.0, 4.0, 6.0, 2.0),
            run(DEVICE_OF_BLOCKS, 2_000.0, 1_000.0, 20.0, 0.0, 0.0),
        ];
        let took = Took { workers: 1, cpu_ns: 5_000.0, added_ns: 1_400.0 };
        let said = Cost::of(took, Answered::InEpochsOf(10));
        reports[0][FIELD] = serde_json::to_value(said).expect("plain numbers");
        assert_eq!(price_all(reports.iter_mut()).len(), 1);
        let priced = Cost::deserialize(&reports[0][FIELD]).expect("a cost");
        let device_ns = priced.device_ns;
        assert!(priced.parts.is_some() && (device_ns - 1_400.0).abs() < 1.0, "{priced:?}");
        // One thread runs the epoch, whatever the number of workers of the run.
        assert!((priced.txn_per_s - 1e9 / priced.ns).abs() < 1e-6);
        let latency_ns = priced.answer.expect("it says how").latency_ns;
        assert!((latency_ns - 15.0 * priced.ns).abs() < 1e-6, "{priced:?}");
        assert!(reports[1][FIELD].get("latency_ns").is_none());
    }

    fn run(device: &str, cpu_ns: f64, added_ns: f64, read: f64, written: f64, log: f64) -> Value {
        json!({
            "device": device, "workers": 2, "cpu_ns_per_txn": cpu_ns,
            "counters": {
                "added_ns_per_txn": added_ns, "blocks_read_per_txn": read,
                "media_bytes_written_per_txn": written * BLOCK_BYTES,
                "log_bytes_per_txn": log * BLOCK_BYTES,
            },
        })
    }

    #[test]
    fn blocks_of_all_runs_have_one_price_and_waits_of_one_run_do_not_count() {
        // 50 ns and 200 ns; the third process found a busy memory and waited for half more.
        let mut reports = [
            run(DEVICE_OF_BLOCKS, 5_000.0, 1_400.0, 4.0, 6.0, 2.0),
            run(DEVICE_OF_BLOCKS, 3_000.0, 1_100.0, 2.0, 5.0, 0.0),
            run(DEVICE_OF_BLOCKS, 3_550.0, 1_650.0, 2.0, 5.0, 0.0),
            run(DEVICE_OF_BLOCKS, 2_000.0, 1_000.0, 20.0, 0.0, 0.0),
            run("dram", 800.0, 0.0, 3.0, 0.0, 0.0),
            run("emulated:cxl", 900.0, 300.0, 3.0, 0.0, 0.0),
        ];
        let prices = price_all(reports.iter_mut());
        let price = prices[DEVICE_OF_BLOCKS];
        assert_eq!(prices.len(), 1);
        assert!((45.0..55.0).contains(&price.read_ns), "{price:?}");
        assert!((200.0..260.0).contains(&price.written_ns), "{price:?}");
        let of = |index: usize, name: &str| {
            reports[index][FIELD][name].as_f64().unwrap_or_else(|| panic!("{index}: {name}"))
        };
        let is = |a: f64, b: f64| assert!((a - b).abs() < 1e-6, "{a} is not {b}");
        is(of(1, "ns"), of(2, "ns"));
        is(of(1, "processor_ns"), 1_900.0);
        is(of(0, "log_ns"), 2.0 * price.written_ns);
        is(of(0, "writes_ns"), 4.0 * price.written_ns);
        is(of(0, "reads_ns"), 4.0 * price.read_ns);
        is(of(0, "ns"), 3_600.0 + 4.0 * price.read_ns + 6.0 * price.written_ns);
        is(of(0, "txn_per_s"), 2e9 / of(0, "ns"));
        // Others cost what was added to them.
        is(of(4, "ns"), 800.0);
        is(of(5, "ns"), 900.0);
        is(of(5, "device_ns"), 300.0);
        assert!(reports[5][FIELD].get("reads_ns").is_none());
    }

    #[test]
    fn runs_that_do_not_tell_reads_from_writes_cost_what_was_added() {
        let mut reports = [
            run(DEVICE_OF_BLOCKS, 5_000.0, 1_400.0, 4.0, 6.0, 2.0),
            run(DEVICE_OF_BLOCKS, 3_000.0, 700.0, 2.0, 3.0, 0.0),
            json!({"device": DEVICE_OF_BLOCKS, "cpu_ns_per_txn": 9.0, "is_model": true}),
            json!({"device": "dram", "workers": 2}),
        ];
        assert!(price_all(reports.iter_mut()).is_empty());
        assert_eq!(reports[0][FIELD]["ns"], 5_000.0);
        assert_eq!(reports[1][FIELD]["device_ns"], 700.0);
        assert!(reports[2].get(FIELD).is_none() && reports[3].get(FIELD).is_none());
    }
}
