//! Pisces is isolated by snapshots: what the serial oracle refuses, and what the check of snapshots
//! does not pass.

use std::sync::{Arc, Mutex};

use pmem::{Dram, Traced};
use workloads::oracle::{Oracle, OracleAnswer};
use workloads::smallbank::SmallBank;
use workloads::{TableId, Workload};

use super::crash::{Extent, Survivors, explore};
use super::dbx::interleaved;
use super::scramble::Scramble;
use super::support::{RUNS_MAX, dram, smallbank, tpcc, updates, verified, ycsb};
use crate::check::{check, check_snapshots};
use crate::rival::{AtPhase, Fault, Phase};
use crate::{
    Accesses, Answered, Calls, Dbx, Dbxn, Error, Pisces, Procedures, Rival, RivalView, Session,
    Settings, Stop, load, run,
};

type Engine = Dbx<Dram, Pisces>;

fn has_snapshots<W: Workload>(workload: &W, calls: u64) {
    for workers in [1, 2, 4] {
        let report = run::<Engine, W>(&dram(), workload, &verified(workers, calls)).unwrap();
        assert_eq!(report.committed + report.aborted, calls);
    }
}

#[test]
fn pisces_is_isolated_by_snapshots() {
    has_snapshots(&ycsb(200, false), 3_000);
    has_snapshots(&ycsb(200, true), 1_000);
    has_snapshots(&smallbank(50), 10_000);
    has_snapshots(&tpcc(), 1_500);
    for seed in 0..3 {
        has_snapshots(&Scramble { seed }, 4_000);
    }
}

#[test]
fn snapshots_are_read_beside_newer_versions() {
    let meets = |_| {
        let report = run::<Engine, _>(&dram(), &smallbank(50), &verified(4, 10_000)).unwrap();
        report.counts.old_versions_read > 0
    };
    assert!((0..RUNS_MAX).any(meets), "no transaction ever read beside a newer version");
}

/// The check must find a fault in one of some runs: whether it strikes is chance.
fn is_found<W: Workload>(fault: Fault, workload: &W) {
    let mut settings: Settings = verified(4, 4_000);
    settings.options.fault = Some(fault);
    for _ in 0..RUNS_MAX {
        match run::<Engine, W>(&dram(), workload, &settings) {
            Ok(_) => {}
            Err(Error::Broken(_)) => return,
            Err(other) => panic!("{fault:?}: {other}"),
        }
    }
    panic!("the check did not find {fault:?}");
}

#[test]
fn the_check_finds_snapshots_that_are_none() {
    is_found(Fault::NewestInSnapshot, &smallbank(50));
}

#[test]
fn the_check_finds_rows_that_are_overwritten_though_newer() {
    is_found(Fault::OverwritesNewer, &ycsb(200, false));
}

/// Two transactions read two rows, and each writes one of them.
fn skew<R: Rival<Device = Dram>>() -> Result<u64, Stop> {
    let tables = Scramble { seed: 0 }.tables();
    let (table, keys) = (TableId(0), [[1_u8; 8], [2; 8]]);
    let rival = R::create(dram(), &tables, &verified(2, 0).options).unwrap();
    let (mut first, mut second) = (rival.session(0), rival.session(1));
    first.begin();
    keys.iter().for_each(|key| first.insert(table, key, b"on").unwrap());
    first.commit().unwrap();
    for session in [&mut first, &mut second] {
        session.begin();
        keys.iter().for_each(|key| assert!(session.get(table, key).unwrap().is_some()));
    }
    first.update(table, &keys[0], b"off").unwrap();
    second.update(table, &keys[1], b"off").unwrap();
    first.commit().unwrap();
    second.commit()
}

#[test]
fn two_that_read_what_the_other_writes_both_commit_in_pisces_only() {
    assert!(skew::<Engine>().is_ok());
    assert!(matches!(skew::<Dbx<Dram, Dbxn>>(), Err(Stop::Conflict)));
}

#[test]
fn of_two_that_write_a_row_the_first_commits() {
    let tables = Scramble { seed: 0 }.tables();
    let (table, key) = (TableId(0), [7_u8; 8]);
    let rival = Engine::create(dram(), &tables, &verified(3, 0).options).unwrap();
    let [mut first, mut second, mut reader] = [0, 1, 2].map(|worker| rival.session(worker));
    [&mut first, &mut second, &mut reader].into_iter().for_each(Session::begin);
    first.insert(table, &key, b"first").unwrap();
    assert!(matches!(second.insert(table, &key, b"second"), Err(Stop::Conflict)));
    second.roll_back();
    second.begin();
    first.commit().unwrap();
    // The snapshot of the second is from before; and it reads no other one.
    assert!(second.get(table, &key).unwrap().is_none());
    assert!(matches!(second.insert(table, &key, b"second"), Err(Stop::Conflict)));
    second.roll_back();
    second.begin();
    assert_eq!(second.get(table, &key).unwrap(), Some(b"first".as_slice()));
    // One still reads what there was before, so that there is no place for a third version.
    assert!(matches!(second.update(table, &key, b"second"), Err(Stop::Conflict)));
    second.roll_back();
    assert!(reader.get(table, &key).unwrap().is_none());
    reader.commit().unwrap();
    second.begin();
    assert!(second.update(table, &key, b"second").unwrap());
    second.commit().unwrap();
    assert_eq!(rival.get(table, &key).as_deref(), Some(b"second".as_slice()));
}

/// A worker has noted that a row is absent; others have made and deleted it since, and its record
/// stands for another key.
#[test]
fn a_late_note_leaves_the_record_of_another_key_alone() {
    let (tables, table, key) = (ycsb(20, false).tables(), TableId(0), 7_u64.to_be_bytes());
    let rival = Engine::create(dram(), &tables, &verified(2, 0).options).unwrap();
    let (mut late, mut other) = (rival.session(0), rival.session(1));
    late.begin();
    late.insert(table, &key, b"here").unwrap();
    late.commit().unwrap();
    other.begin();
    assert!(other.delete(table, &key).unwrap());
    other.commit().unwrap();
    let rest = |session: &mut <Engine as Rival>::Session| {
        for _ in 0..200 {
            session.begin();
            session.commit().unwrap();
        }
    };
    // The record leaves the index; the keys need more records than a worker gets at a time.
    rest(&mut other);
    let keys: Vec<_> = (1_000..1_600_u64).map(u64::to_be_bytes).collect();
    for _ in 0..2 {
        other.begin();
        keys.iter().for_each(|key| assert_eq!(other.get(table, key).unwrap(), None));
        other.commit().unwrap();
        rest(&mut late);
    }
}

/// Calls of SmallBank, in which one comes between the execution of another and its commit, and one
/// more behind it.
struct Anomaly {
    bank: SmallBank,
    calls: Calls,
    answered: Vec<Answered>,
    rival: Engine,
}

/// Runs the first call, in its commit the others.
fn anomaly(bank: SmallBank, calls: Calls) -> Anomaly {
    type Between = (<Engine as Rival>::Session, Procedures<<Engine as Rival>::Session>);
    let between: Arc<Mutex<Option<Between>>> = Arc::default();
    let answered: Arc<Mutex<Vec<Answered>>> = Arc::default();
    let mut options = verified(2, 0).options;
    let (acting, answers, of_between) =
        (Arc::clone(&between), Arc::clone(&answered), calls.clone());
    options.at_phase = Some(AtPhase(Arc::new(move |at| {
        let one = (at == Phase::Reserved).then(|| crate::lock(&acting).take()).flatten();
        if let Some((mut session, procedures)) = one {
            for call in 1..of_between.len() {
                let (procedure, args) = of_between.get(call);
                let mut output = Vec::new();
                let done = procedures.run(&mut session, procedure, args, &mut output).unwrap();
                crate::lock(&answers).push(Answered::new(call, &done, &output));
            }
        }
    })));
    let rival = Engine::create(dram(), &bank.tables(), &options).unwrap();
    load(&rival, &bank, 1).unwrap();
    let (mut procedures, mut of_other) = (Procedures::default(), Procedures::default());
    bank.register(&mut procedures);
    bank.register(&mut of_other);
    *crate::lock(&between) = Some((rival.session(1), of_other));
    let (procedure, args) = calls.get(0);
    let mut output = Vec::new();
    let done = procedures.run(&mut rival.session(0), procedure, args, &mut output).unwrap();
    let mut answered = std::mem::take(&mut *crate::lock(&answered));
    answered.push(Answered::new(0, &done, &output));
    Anomaly { bank, calls, answered, rival }
}

impl Anomaly {
    /// Whether some serial order of the calls gives their answers.
    fn is_serial(&self) -> bool {
        let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
        orders.iter().any(|order| {
            let mut oracle = Oracle::loaded(&self.bank);
            order.iter().all(|call| {
                let expected = oracle.run_epoch(&[self.calls.get(*call)], 0);
                let answered = self.answered.iter().find(|a| a.call == *call).unwrap();
                matches!(&expected[0], OracleAnswer::Committed(o) if *o == answered.output)
            })
        })
    }
}

/// Write skew on SmallBank: while a check is cashed against both accounts of a customer, money of
/// the savings is withdrawn, and the balance then asked for shows that and not the check. The
/// check was cashed without a penalty, as if the money were there. No serial order gives these
/// answers.
#[test]
fn write_skew_shows_on_smallbank_and_passes_the_check_of_snapshots() {
    const BALANCE: u16 = 0;
    const TRANSACT_SAVINGS: u16 = 2;
    const WRITE_CHECK: u16 = 4;
    let bank = smallbank(50);
    let oracle = Oracle::loaded(&bank);
    let customer = 9_u64;
    let balance = |table: u16| {
        let row = workloads::View::get(&oracle, TableId(table), &customer.to_be_bytes()).unwrap();
        i64::from_le_bytes(row[..8].try_into().unwrap())
    };
    let all = balance(1) + balance(2);
    let args = |words: &[i64]| words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let customer = customer as i64;
    let calls = Calls::of(&[
        (WRITE_CHECK, args(&[customer, all])),
        (TRANSACT_SAVINGS, args(&[customer, -50])),
        (BALANCE, args(&[customer])),
    ]);
    let anomaly = anomaly(bank, calls);
    let words = |call: usize| {
        let answered = anomaly.answered.iter().find(|answered| answered.call == call).unwrap();
        let word = |bytes: &[u8]| i64::from_le_bytes(bytes.try_into().unwrap());
        answered.output.chunks(8).map(word).collect::<Vec<_>>()
    };
    assert_eq!(words(0)[0], all, "no penalty");
    assert_eq!(words(2), [all - 50]);
    assert!(!anomaly.is_serial());
    let (view, mut history) = (RivalView(&anomaly.rival), anomaly.answered.clone());
    let Anomaly { bank, calls, .. } = &anomaly;
    check_snapshots(bank, calls, &mut history, &view).unwrap();
    let refused = check(bank, calls, &mut history, &view).unwrap_err();
    assert!(refused.contains("call 0"), "{refused}");
}

/// What another one reads is durable before it can answer.
fn explore_interleaved(fault: Option<Fault>) -> Result<usize, String> {
    let workload = updates();
    let (mut history, _) =
        interleaved::<Dbx<Traced, Pisces>, _>(&workload, Phase::Published, fault);
    history.options.fault = None;
    let extent = Extent { every: 1, seeds: 1 };
    explore::<Dbx<Traced, Pisces>, _>(&workload, &history, extent, Survivors::Any)
}

#[test]
fn what_is_seen_is_durable() {
    assert!(explore_interleaved(None).unwrap() > 100);
}

#[test]
fn power_cuts_find_versions_that_are_seen_before_the_fence() {
    let error = explore_interleaved(Some(Fault::EvenBeforeFence)).unwrap_err();
    assert!(error.contains("no set of calls"), "{error}");
}
