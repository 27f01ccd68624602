//! In steady state a transaction allocates nothing: what an epoch allocates are lists of its own,
//! and they grow by doubling, so that an epoch of four times as many transactions allocates hardly
//! more often. Counted in the thread of the only worker; a list that grows counts every time.

use bench::{Contention, Mix, Parameters, WorkloadParameters};
use engine::{Calls, Engine, EngineConfig, Lab};
use lab::Job;
use pmem::{AnyDevice, Emulated, Profile};
use storage::TableId;

/// Epochs until lists have got the room that they keep.
const WARM_UP: u64 = 8;
/// Epochs that count.
const COUNTED: u64 = 6;
/// Transactions of a short epoch, and of a long one.
const SIZES: [u64; 2] = [500, 2000];
/// So many transactions at least for each allocation that a long epoch has beyond a short one: some
/// twenty lists double twice.
const TRANSACTIONS_FOR_ONE: f64 = 20.0;
const SPACE_BYTES: u64 = 1 << 30;

/// What the epochs allocated that count.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Counted {
    /// Allocations of an epoch, on average.
    count: f64,
    /// Bytes that are held after them beyond those before.
    bytes_kept: i64,
}

fn count(workload: &WorkloadParameters, epoch_size: u64, cache_bytes: u64) -> Counted {
    let parameters = Parameters::new(workload.clone(), Contention::Low);
    let job = Job::of(&Parameters { epoch_size, ..parameters }).expect("good parameters");
    let device = Emulated::new(Profile::None, SPACE_BYTES, SPACE_BYTES).expect("address space");
    let lab = Lab { cache_epochs: 2, ..Lab::default() };
    let config = EngineConfig { workers: 1, cache_bytes, lab, ..EngineConfig::default() };
    let (tables, procedures) = (job.table_definitions(), job.procedures().table);
    let (mut engine, _) =
        Engine::open(AnyDevice::new(device), config, &tables, procedures).expect("a new store");
    let warm = job.loading_epochs() + WARM_UP;
    let mut calls = Calls::new();
    let (mut all, mut bytes_kept) = (0, 0);
    for epoch in 1..=warm + COUNTED {
        if epoch == job.loading_epochs() + 1 {
            let rows = job.inserts(WARM_UP + COUNTED).into_iter();
            let rows: Vec<_> = rows.map(|(table, n)| (TableId(table), n)).collect();
            engine.prepare_rows(&rows).expect("enough space");
        }
        job.fill(epoch, &mut calls).expect("within limits");
        let info = allocation_counter::measure(|| {
            drop(engine.run_epoch(&calls, job.info(epoch)).expect("an epoch"));
        });
        if epoch > warm {
            all += info.count_total;
            bytes_kept += info.bytes_current;
        }
    }
    Counted { count: all as f64 / COUNTED as f64, bytes_kept }
}

/// Runs short epochs and long ones. `most` is how often a long one may allocate: what was measured,
/// and a tenth.
fn check(workload: &WorkloadParameters, cache_bytes: u64, most: f64) -> [Counted; 2] {
    let [short, long] = SIZES.map(|size| count(workload, size, cache_bytes));
    let per_transaction = (long.count - short.count) / (SIZES[1] - SIZES[0]) as f64;
    let said = format!(
        "an epoch of {} transactions allocates {:.1} times, one of {} {:.1} times: {:.4} for each \
         transaction more",
        SIZES[0], short.count, SIZES[1], long.count, per_transaction
    );
    println!("{said}");
    assert!(per_transaction < 1.0 / TRANSACTIONS_FOR_ONE, "{said}");
    assert!(long.count <= most, "{said}; at most {most} in a whole epoch are expected");
    [short, long]
}

#[test]
fn ycsb_allocates_nothing_for_a_transaction_and_keeps_nothing() {
    let workload = WorkloadParameters::ycsb(2000, Contention::Low);
    for counted in check(&workload, 0, 46.0) {
        assert_eq!(counted.bytes_kept, 0, "{counted:?}");
    }
}

#[test]
fn ycsb_with_a_cache_allocates_nothing_for_a_transaction() {
    check(&WorkloadParameters::ycsb(2000, Contention::Medium), 1 << 20, 60.0);
}

#[test]
fn smallbank_allocates_nothing_for_a_transaction_and_keeps_nothing() {
    let workload = WorkloadParameters::smallbank(3600, Contention::Low);
    for counted in check(&workload, 0, 50.0) {
        assert_eq!(counted.bytes_kept, 0, "{counted:?}");
    }
}

fn tpcc(mix: Mix) -> WorkloadParameters {
    WorkloadParameters::Tpcc {
        warehouses: 1,
        mix,
        items: 300,
        customers_per_district: 90,
        commit_points: false,
        pieces: false,
    }
}

#[test]
fn tpcc_allocates_nothing_for_a_transaction() {
    check(&tpcc(Mix::Paper), 0, 188.0);
}

#[test]
fn tpcc_by_last_name_allocates_nothing_for_a_transaction() {
    check(&tpcc(Mix::Full), 0, 188.0);
}
