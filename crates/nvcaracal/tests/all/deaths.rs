//! A body that ends the whole process: the epoch is in the log, and each replay would die in it,
//! too. After two deaths at the same call the open is refused with its name, and a command leaves
//! it out. A process that is ended from outside says nothing about the call that it was at.

use pmem::AnyDevice;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use storage::EpochNumber;
use storage::Position;

use crate::common::{ACCOUNTS, Deposit};
use nvcaracal::{Database, Options, Procedure, Stop, Transaction, Tuning, WriteSet, plain};

/// Where a child of this test opens a store.
const STORE: &str = "NVCARACAL_DYING_STORE";

/// How a body ends the process: not at all, by an abort, by a stack that overflows; or it lingers
/// where [`REACHED`] is set, so that it can be ended from outside.
const LIVES: u64 = 0;
const ABORTS: u64 = 1;
const OVERFLOWS: u64 = 2;
const LINGERS: u64 = 3;

/// The way for the child of this test that dies.
const HOW: &str = "NVCARACAL_DYING_HOW";
/// A file that a body makes as soon as it lingers.
const REACHED: &str = "NVCARACAL_DYING_REACHED";

plain! {
    struct Die { account: u64, how: u64 }
}

#[expect(unconditional_recursion, reason = "the stack is to overflow")]
#[inline(never)]
fn overflow(depth: u64) -> u64 {
    std::hint::black_box([depth; 64])[7] + overflow(depth + 1)
}

fn linger() {
    let Some(reached) = std::env::var_os(REACHED) else { return };
    std::fs::write(reached, []).unwrap();
    loop {
        std::thread::park();
    }
}

impl Procedure for Die {
    const NAME: &'static str = "die";
    type Output = ();

    fn write_set(&self, set: &mut WriteSet) {
        set.insert(ACCOUNTS, self.account);
    }

    fn run(&self, tx: &mut Transaction) -> Result<(), Stop> {
        if self.how == LIVES {
            return Ok(());
        }
        tx.insert(ACCOUNTS, self.account, &-1)?;
        match self.how {
            LINGERS => linger(),
            OVERFLOWS => tx.insert(ACCOUNTS, overflow(0), &-1)?,
            _ => std::process::abort(),
        }
        Ok(())
    }
}

plain! {
    /// Writes what it did not predict, and ends the process where it may.
    struct DieAlone { really: u64 }
}

impl Procedure for DieAlone {
    const NAME: &'static str = "die alone";
    type Output = ();

    fn write_set(&self, set: &mut WriteSet) {
        set.update(ACCOUNTS, 1);
    }

    fn run(&self, tx: &mut Transaction) -> Result<(), Stop> {
        if self.really == 0 {
            return Ok(());
        }
        tx.insert(ACCOUNTS, 99, &-1)?;
        std::process::abort();
    }
}

fn options() -> Options {
    Database::options()
        .table(ACCOUNTS)
        .procedure::<Deposit>()
        .procedure::<Die>()
        .procedure::<DieAlone>()
        .workers(2)
        // What runs in a serial part is not in the log yet.
        .tuning(Tuning { serial_calls_max: 0, ..Tuning::default() })
        .checkpoint_every(1_000_000)
        .data_bytes_max(1 << 30)
}

/// What a child of the other test does: it ends by the abort, if the open does not already.
#[test]
fn child_that_dies() {
    let Some(store) = std::env::var_os(STORE) else { return };
    let how = std::env::var(HOW).map_or(ABORTS, |how| how.parse().unwrap());
    let db = options().open(store).unwrap();
    // The first calls of a procedure run alone, before anything is logged: this is in one epoch.
    let mut batch = db.batch();
    batch.add(&Deposit { account: 1, cents: 5 }).unwrap();
    batch.add(&Die { account: 1, how: LIVES }).unwrap();
    batch.submit().unwrap().wait();
    let mut batch = db.batch();
    for account in 1..=20 {
        batch.add(&Deposit { account, cents: 1 }).unwrap();
    }
    batch.add(&Die { account: 1, how }).unwrap();
    batch.add(&Deposit { account: 1, cents: 1 }).unwrap();
    batch.submit().unwrap().wait();
    assert_eq!(how, LINGERS, "a call of the batch ends the process");
    // It is all in the log.
    std::process::abort();
}

/// What a child does whose deferred call ends it: in the next epoch, before anything is logged.
#[test]
fn child_that_dies_in_a_deferred_call() {
    let Some(store) = std::env::var_os(STORE) else { return };
    let is_new = !Path::new(&store).exists();
    let db = options().open(store).unwrap();
    if is_new {
        assert_eq!(db.call(Deposit { account: 1, cents: 5 }).unwrap(), 5);
        db.call(DieAlone { really: 0 }).unwrap();
        let _ = db.call(DieAlone { really: 1 });
    }
    // It is made again by itself.
    std::thread::sleep(std::time::Duration::from_secs(20));
    unreachable!("a deferred call ends the process");
}

/// O-79: a deferred call in which the process died twice is refused, and the store goes on.
#[test]
fn o_79_a_deferred_call_that_ends_the_process_twice_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("bank");
    for round in ["run", "first open"] {
        assert!(child_dies(&store, "deaths::child_that_dies_in_a_deferred_call"), "{round}");
    }
    let db = options().open(&store).unwrap();
    assert_eq!(db.call(Deposit { account: 1, cents: 1 }).unwrap(), 6);
    assert_eq!(db.get(ACCOUNTS, 99).unwrap(), None);
    assert_eq!((db.stats().failed, db.stats().deferred), (1, 0), "that call");
    drop(db);
    let db = options().open(&store).unwrap();
    assert_eq!(db.get(ACCOUNTS, 1).unwrap(), Some(6));
    db.close().unwrap();
    assert!(!store.join("replay").exists(), "there is nothing to tell the next process");
}

/// Runs the child; whether it died in the way that is meant.
fn dies(store: &Path) -> bool {
    child_dies(store, "deaths::child_that_dies")
}

fn child(store: &Path, test: &str) -> Command {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", test, "--nocapture"]).env(STORE, store);
    child
}

fn child_dies(store: &Path, test: &str) -> bool {
    ends_by(&mut child(store, test), &[6])
}

/// Whether a process ends by one of some signals.
fn ends_by(child: &mut Command, signals: &[i32]) -> bool {
    let status = child.output().unwrap().status;
    std::os::unix::process::ExitStatusExt::signal(&status).is_some_and(|by| signals.contains(&by))
}

/// O-49: a stack that overflows is seen as an abort is.
#[test]
fn o_49_a_call_that_overflows_its_stack_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("bank");
    for round in ["run", "first replay", "second replay"] {
        let mut child = child(&store, "deaths::child_that_dies");
        assert!(ends_by(child.env(HOW, OVERFLOWS.to_string()), &[6, 11]), "{round}");
    }
    let error = options().open(&store).unwrap_err().to_string();
    assert!(error.contains("--skip-call 2:20"), "{error}");
}

/// O-49: a recovery that is ended from outside, each time at one call, proves nothing about it.
#[test]
fn o_49_a_recovery_that_is_killed_many_times_is_not_refused() {
    use rustix::process::{Pid, Signal, kill_process};
    let dir = tempfile::tempdir().unwrap();
    let (store, reached) = (dir.path().join("bank"), dir.path().join("reached"));
    let lingering = || {
        let mut child = child(&store, "deaths::child_that_dies");
        child.env(HOW, LINGERS.to_string());
        child
    };
    assert!(ends_by(&mut lingering(), &[6]), "the run");
    let signals = [Signal::KILL, Signal::KILL, Signal::KILL, Signal::ABORT, Signal::ABORT];
    for signal in signals {
        let mut child = lingering();
        let mut child = child.env(REACHED, &reached).spawn().unwrap();
        while !reached.exists() {
            assert!(child.try_wait().unwrap().is_none(), "it was refused before {signal:?}");
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        std::fs::remove_file(&reached).unwrap();
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert!(!child.wait().unwrap().success());
        assert!(store.join("replay").exists(), "it was in a replay");
    }
    let db = options().open(&store).unwrap();
    assert_eq!(db.recovery().calls_replayed, 24);
    assert_eq!(db.get(ACCOUNTS, 20).unwrap(), Some(1));
    db.close().unwrap();
    assert!(!store.join("replay").exists(), "there is nothing to tell the next process");
}

#[test]
fn o_49_a_call_that_ends_the_process_twice_is_named_and_can_be_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("bank");
    for round in ["run", "first replay", "second replay"] {
        assert!(dies(&store), "{round}");
    }
    // Refused as often as it is tried: nothing dies any more.
    for _ in 0..2 {
        let error = options().open(&store).unwrap_err().to_string();
        let words = ["replay of epoch 2", "call 20", "(die)", "--skip-call 2:20"];
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    }
    let options_of_file =
        pmem::FileOptions { create: false, ..pmem::FileOptions::new(1 << 30, 1 << 30) };
    let device = Arc::new(pmem::File::open(&store, &options_of_file).unwrap());
    let ended = storage::repair::skip_call(&AnyDevice::of(&device), EpochNumber(1), Position(0))
        .unwrap_err()
        .to_string();
    assert!(ended.contains("last epoch of the log only, which is 2"), "{ended}");
    storage::repair::skip_call(&AnyDevice::of(&device), EpochNumber(2), Position(20)).unwrap();
    drop(device);
    let db = options().open(&store).unwrap();
    assert_eq!(db.recovery().skipped.len(), 1);
    assert_eq!(db.get(ACCOUNTS, 1).unwrap(), Some(5 + 1 + 1));
    assert_eq!(db.get(ACCOUNTS, 20).unwrap(), Some(1));
    db.close().unwrap();
    assert!(!store.join("replay").exists(), "there is nothing to tell the next process");
}
