//! Lines by what was stored in them, and TPC-C against the serial oracle.

use pmem::{DeviceSpec, Profile};

use crate::run::report::PartLines;
use crate::{CacheShape, EngineName, Mix, Modelled, Options, Report, Settings, Skew, TpccSize};

fn run(engine: EngineName, tpcc: Option<TpccSize>, recover: bool) -> Report {
    pmem::small_pages_only();
    let cache = Some(CacheShape::of_bytes(16 << 10));
    let modelled = Modelled { cache, ..Modelled::default() };
    let settings = Settings {
        engine,
        device: DeviceSpec::Emulated(Profile::None),
        partitions: 2,
        tuples: 400,
        transactions: 600,
        tpcc,
        mix: Mix::WriteHeavy,
        skew: Skew::Low,
        seed: 1,
        settle: true,
        verify: true,
        recover,
        cost: false,
        shares: false,
        options: Options { group_transactions: 7, modelled, ..Options::default() },
    };
    crate::run(&settings).unwrap_or_else(|e| panic!("{}: {e}", engine.name()))
}

fn lines(report: &Report, part: &str) -> PartLines {
    report.counts.written_by_part[part]
}

#[test]
fn every_line_that_is_written_belongs_to_a_structure() {
    for engine in EngineName::ALL {
        let counts = run(engine, None, false).counts;
        let all: f64 = counts.written_by_part.values().map(PartLines::all).sum();
        assert!((all - counts.lines_written).abs() < 1e-9, "{}: {counts:?}", engine.name());
    }
}

#[test]
fn an_update_of_nvm_inp_flushes_seven_lines() {
    let report = run(EngineName::NvmInp, None, false);
    // An entry of a word that changes has 16 and 24 bytes.
    let updates = report.counts.written_log / 40.0;
    let flushed = |part| (lines(&report, part).flushed / updates * 1e6).round() / 1e6;
    // The entry; the head at its append and its cut; the new field, with its mark; the tuple; the
    // old field's mark.
    let all = ["log", "log_head", "fields", "tuples", "marks", "index"].map(flushed);
    assert_eq!(all, [1.0, 2.0, 2.0, 1.0, 1.0, 0.0]);
}

#[test]
fn inp_writes_its_log_past_the_cache_from_a_buffer_in_it() {
    let report = run(EngineName::Inp, None, false);
    assert!(lines(&report, "log").past_cache > 3.0 && lines(&report, "log_buffer").flushed == 0.0);
    let device = lines(&report, "fields");
    assert!(device.flushed == 0.0 && device.pushed_out > 0.0, "{device:?}");
}

#[test]
fn tpcc_of_partitions_is_that_of_the_oracle_before_and_after_a_recovery() {
    let size = TpccSize { items: 100, customers_per_district: 10 };
    for engine in EngineName::ALL {
        for recover in [false, true] {
            let report = run(engine, Some(size), recover);
            assert!(report.verified && report.workload == "tpcc");
            let durable = report.recovery.map(|recovery| recovery.durable);
            // The last group of a partition may be lost.
            assert!(durable.is_none_or(|durable| (588..=600).contains(&durable)), "{durable:?}");
        }
    }
}

#[test]
fn what_is_made_again_grows_with_the_transactions_and_what_is_loaded_does_not() {
    let recovery = |engine| run(engine, None, true).recovery.expect("it was asked for");
    let inp = recovery(EngineName::Inp);
    assert!(inp.lines_loaded > 400 * 16 && inp.lines_redone > 0 && inp.redone > 400);
    let nvm_inp = recovery(EngineName::NvmInp);
    assert_eq!((nvm_inp.redone, nvm_inp.lines_loaded, nvm_inp.lines_redone), (0, 0, 0));
}
