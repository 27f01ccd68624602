//! Changed bytes: refused or right, never a panic.

use std::sync::Arc;
use storage::EpochNumber;

use nvcaracal::Data;
use pmem::{AnyDevice, Device, File, FileOptions};
use sim::fuzz::{Target, decode, run};
use sim::history::{Setup, effort};
use workloads::oracle::Oracle;
use workloads::smallbank::{SmallBank, SmallBankSettings};
use workloads::tpcc::{Mix, Tpcc, TpccSettings};
use workloads::ycsb::{Contention, Ycsb, YcsbSettings};
use workloads::{ProcedureId, StreamEpoch, Workload};

fn fuzz(target: Target, iterations: u64) {
    let first = effort("NVCARACAL_FIRST_SEED", 0);
    let iterations = effort("NVCARACAL_FUZZ", iterations);
    let report = run(target, first, iterations).unwrap_or_else(|failure| panic!("{failure}"));
    println!("{target:?}: {report}");
    assert!(report.refused > 0 && report.right > 0, "{report}");
}

/// O-48, O-53, O-54.
#[test]
fn o_54_changed_files_of_a_store() {
    fuzz(Target::Store, 300);
}

/// O-24.
#[test]
fn o_24_a_changed_input_log() {
    fuzz(Target::Log, 600);
}

/// Found by fuzzing: a root that names another epoch than the image's checkpoint.
#[test]
fn o_54_an_image_snapshot_of_another_epoch_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let options = FileOptions::new(64 << 20, 8 << 20);
    let setup = Setup { segment_bytes: 4096, ..Setup::default() };
    let device = Arc::new(File::open(dir.path(), &options).unwrap());
    setup.open(&AnyDevice::of(&device)).unwrap().close().unwrap();
    device.snapshot_part(0, 1).unwrap();
    device.snapshot_commit(EpochNumber(77)).unwrap();
    device.settle().unwrap();
    drop(device);
    let device = Arc::new(File::open(dir.path(), &options).unwrap());
    let error = setup.open(&AnyDevice::of(&device)).err().expect("another epoch");
    assert!(error.is_corrupt() && error.to_string().contains("saved at epoch 77"), "{error}");
}

type Nested = (u64, String, Vec<(u8, Option<String>)>, Vec<Vec<u32>>, Vec<()>, [i16; 3]);

/// O-51: arguments of a call may be any bytes.
#[test]
fn o_51_arguments_decode_or_do_not() {
    let values: [Nested; 2] = [
        (
            1,
            "text".into(),
            vec![(2, None), (3, Some("more".into()))],
            vec![vec![4], vec![]],
            vec![],
            [5; 3],
        ),
        (0, String::new(), vec![], vec![vec![7; 9]; 3], vec![], [-1; 3]),
    ];
    let examples: Vec<Vec<u8>> = values.iter().map(|v| v.with_bytes(<[u8]>::to_vec)).collect();
    let seed = effort("NVCARACAL_FIRST_SEED", 0);
    let mut decoded = 0;
    let iterations = effort("NVCARACAL_FUZZ", 3000);
    let report = decode(&examples, seed, iterations, &mut |bytes| {
        if let Some(value) = Nested::from_bytes(bytes) {
            value.with_bytes(|again| assert_eq!(again, bytes, "one value has one form"));
            decoded += 1;
        }
        Vec::<String>::from_bytes(bytes);
        Vec::<(u8, char)>::from_bytes(bytes);
        <(bool, Option<Vec<bool>>)>::from_bytes(bytes);
    });
    report.unwrap_or_else(|failure| panic!("{failure}"));
    assert!(decoded > 0, "some changes leave a value");
}

/// Changed arguments of a benchmark's calls on its serial oracle: an abort at worst. (The calls
/// that load the data are not among them: how much they load is what they say.)
fn fuzz_workload<W: Workload>(workload: &W) {
    let mut oracle = Oracle::loaded(workload);
    let seed = effort("NVCARACAL_FIRST_SEED", 0);
    let mut calls: Vec<(ProcedureId, Vec<u8>)> = Vec::new();
    for position in 0..200 {
        let mut args = Vec::new();
        let procedure = workload.generate(StreamEpoch(0), position, &mut args);
        calls.push((procedure, args));
    }
    let mut procedures: Vec<ProcedureId> = calls.iter().map(|call| call.0).collect();
    procedures.sort_unstable();
    procedures.dedup();
    for procedure in procedures {
        let of = calls.iter().filter(|call| call.0 == procedure);
        let examples: Vec<Vec<u8>> = of.map(|call| call.1.clone()).collect();
        let iterations = effort("NVCARACAL_FUZZ", 300);
        let report = decode(&examples, seed, iterations, &mut |bytes| {
            oracle.run_epoch(&[(procedure, bytes)], 0);
        });
        let name = workload.name();
        report.unwrap_or_else(|failure| panic!("{name}, procedure {procedure}: {failure}"));
    }
}

#[test]
fn o_51_arguments_of_the_benchmarks() {
    fuzz_workload(&Ycsb::new(YcsbSettings::paper(300, Contention::Medium)).unwrap());
    fuzz_workload(&SmallBank::new(SmallBankSettings::high(300)).unwrap());
    for mix in [Mix::Full, Mix::Paper] {
        fuzz_workload(&Tpcc::new(TpccSettings::tiny(1, mix)).unwrap());
    }
}
