//! What a transaction costs: processor time of the workers, and device time. Neighbours of the
//! machine change it less than the clock, and it is computed from the JSON of each run.
//!
//! An emulated device is waited for by spinning, so that processor time has its time in it. What a
//! block costs is set anew by each process, relative to the memory that it finds, and differs by a
//! fifth where neighbours use that memory. So the waits of a run are replaced by its blocks at one
//! price for all runs: the one that fits their waits best.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

/// The device whose time is so much a block of [`BLOCK_BYTES`] read, and so much a block written.
/// The times of other devices are taken as they were added.
const DEVICE_OF_BLOCKS: &str = "emulated:optane";
const BLOCK_BYTES: f64 = 256.0;
/// What the cost of a run is called in its JSON.
const NAME: &str = "priced";

/// What a block costs in all runs on a device.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Price {
    /// Nanoseconds of a block read.
    pub read_ns: f64,
    /// Nanoseconds of a block written, of rows or of the log.
    pub written_ns: f64,
}

/// What of a run is priced, of a transaction.
#[derive(Debug, Clone, Copy)]
struct Work {
    workers: f64,
    /// With the time that the device added.
    cpu_ns: f64,
    added_ns: f64,
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
        Some(Self {
            workers: report["workers"].as_f64()?,
            cpu_ns,
            added_ns: count("added_ns_per_txn").min(cpu_ns),
            blocks_read: count("blocks_read_per_txn"),
            blocks_written: count("media_bytes_written_per_txn") / BLOCK_BYTES,
            log_blocks: count("log_bytes_per_txn") / BLOCK_BYTES,
        })
    }

    /// The cost as it is added to the JSON.
    fn cost(&self, price: Option<Price>) -> Value {
        let processor_ns = self.cpu_ns - self.added_ns;
        let mut cost = Map::new();
        let device_ns = match price {
            None => self.added_ns,
            Some(price) => {
                // A log that is shorter than a block is written with the one of the next epoch.
                let log_blocks = self.log_blocks.min(self.blocks_written);
                let reads_ns = self.blocks_read * price.read_ns;
                let log_ns = log_blocks * price.written_ns;
                let writes_ns = (self.blocks_written - log_blocks) * price.written_ns;
                cost.insert("reads_ns".into(), reads_ns.into());
                cost.insert("writes_ns".into(), writes_ns.into());
                cost.insert("log_ns".into(), log_ns.into());
                reads_ns + writes_ns + log_ns
            }
        };
        let all_ns = processor_ns + device_ns;
        cost.insert("processor_ns".into(), processor_ns.into());
        cost.insert("device_ns".into(), device_ns.into());
        cost.insert("ns".into(), all_ns.into());
        cost.insert("txn_per_s".into(), (self.workers * 1e9 / all_ns).into());
        Value::Object(cost)
    }
}

/// Adds the cost to the JSON of each run that has processor time; the prices of devices.
pub(super) fn add_to<'a>(reports: impl Iterator<Item = &'a mut Value>) -> BTreeMap<String, Price> {
    let mut works: Vec<(&mut Value, Work)> = reports
        .filter_map(|report| {
            let work = Work::of(report)?;
            Some((report, work))
        })
        .collect();
    let is_of_blocks = |report: &Value| report["device"] == DEVICE_OF_BLOCKS;
    let priced = works.iter().filter(|(report, _)| is_of_blocks(report)).map(|(_, work)| *work);
    let price = price(priced);
    for (report, work) in &mut works {
        let price = price.filter(|_| is_of_blocks(report));
        report[NAME] = work.cost(price);
    }
    price.map(|price| (DEVICE_OF_BLOCKS.to_string(), price)).into_iter().collect()
}

/// The prices with which blocks come nearest to the times that were added, each run's relative to
/// its own (least squares); nothing if runs do not tell reads from writes.
fn price(works: impl Iterator<Item = Work>) -> Option<Price> {
    let (mut reads, mut both, mut writes, mut read, mut written) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for work in works.filter(|work| work.added_ns > 0.0) {
        let of_reads = work.blocks_read / work.added_ns;
        let of_writes = work.blocks_written / work.added_ns;
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
        let prices = add_to(reports.iter_mut());
        let price = prices[DEVICE_OF_BLOCKS];
        assert_eq!(prices.len(), 1);
        assert!((45.0..55.0).contains(&price.read_ns), "{price:?}");
        assert!((200.0..260.0).contains(&price.written_ns), "{price:?}");
        let of = |index: usize, name: &str| {
            reports[index][NAME][name].as_f64().unwrap_or_else(|| panic!("{index}: {name}"))
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
        assert!(reports[5][NAME].get("reads_ns").is_none());
    }

    #[test]
    fn runs_that_do_not_tell_reads_from_writes_cost_what_was_added() {
        let mut reports = [
            run(DEVICE_OF_BLOCKS, 5_000.0, 1_400.0, 4.0, 6.0, 2.0),
            run(DEVICE_OF_BLOCKS, 3_000.0, 700.0, 2.0, 3.0, 0.0),
            json!({"device": DEVICE_OF_BLOCKS, "cpu_ns_per_txn": 9.0, "is_model": true}),
            json!({"device": "dram", "workers": 2}),
        ];
        assert!(add_to(reports.iter_mut()).is_empty());
        assert_eq!(reports[0][NAME]["ns"], 5_000.0);
        assert_eq!(reports[1][NAME]["device_ns"], 700.0);
        assert!(reports[2].get(NAME).is_none() && reports[3].get(NAME).is_none());
    }
}
