//! The stack of a procedure was that of whoever ran it: a call was answered on the first thread of
//! a program, ended the process when others called beside it, and could not be replayed. Now all
//! run on stacks of one size.

use std::hint::black_box;
use std::thread;

use crate::common::{ACCOUNTS, Deposit, copy, directory, options};
use nvcaracal::{Database, Index, Options, Procedure, Stop, Transaction, Tuning, WriteSet, plain};

/// So many take more than the 2 MiB of most threads, and less than the 8 MiB that procedures have.
const LEVELS: u64 = 3000;

/// Takes at least a KiB of stack for each level.
#[inline(never)]
fn recurse(levels: u64) -> u64 {
    let frame = black_box([levels; 128]);
    if levels == 0 { frame[3] } else { recurse(levels - 1).wrapping_add(frame[5]) }
}

plain! { struct Deep { account: u64 } }

impl Procedure for Deep {
    const NAME: &'static str = "deep";
    type Output = u64;

    fn write_set(&self, set: &mut WriteSet) {
        set.insert(ACCOUNTS, self.account);
    }

    fn run(&self, tx: &mut Transaction) -> Result<u64, Stop> {
        let sum = recurse(LEVELS);
        tx.insert(ACCOUNTS, self.account, &(sum as i64))?;
        Ok(sum)
    }
}

const BY_DEPTH: Index<u64, u64, i64> =
    ACCOUNTS.index("by depth", |_, cents| Some(recurse(LEVELS) + *cents as u64));

/// On a thread with little of its own.
fn small<R: Send>(run: impl FnOnce() -> R + Send) -> R {
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(256 << 10);
        thread.spawn_scoped(scope, run).unwrap().join().unwrap()
    })
}

fn deep_calls(db: &Database, first: u64) {
    let mut batch = db.batch();
    let added: Vec<_> =
        (first..first + 40).map(|account| batch.add(&Deep { account }).unwrap()).collect();
    let submitted = batch.submit().unwrap();
    for added in added {
        assert_eq!(submitted.ticket(added).wait().unwrap(), LEVELS * (LEVELS + 1) / 2);
    }
}

fn on_all_paths(options: impl Fn() -> Options + Sync) {
    let directory = directory();
    let (path, killed) = (directory.path().join("bank"), directory.path().join("killed"));
    small(|| {
        let db = options().open(&path).unwrap();
        // Alone, on the thread that calls.
        assert_eq!(db.call(Deep { account: 0 }).unwrap(), LEVELS * (LEVELS + 1) / 2);
        // Beside others, on all workers.
        deep_calls(&db, 1);
        deep_calls(&db, 50);
        assert_eq!(db.call(Deposit { account: 0, cents: 0 }).unwrap() as u64, 4_501_500);
        db.check_indexes().unwrap();
        copy(&path, &killed);
        // A replay.
        let db = options().open(&killed).unwrap();
        assert!(db.recovery().calls_replayed > 80);
        db.close().unwrap();
    });
}

#[test]
fn a_call_has_the_same_stack_alone_beside_others_and_in_a_replay() {
    for (workers, serial_calls_max) in [(1, 64), (2, 64), (2, 0), (3, 0)] {
        let options = || options().procedure::<Deep>().checkpoint_every(1_000_000);
        on_all_paths(|| {
            options().workers(workers).tuning(Tuning { serial_calls_max, ..Tuning::default() })
        });
    }
}

/// What makes the keys of an index runs in calls, at each open, and when indexes are checked.
#[test]
fn functions_of_indexes_have_the_stack_of_procedures() {
    let options = || options().procedure::<Deep>().checkpoint_every(1_000_000);
    on_all_paths(|| options().index(BY_DEPTH));
}

/// A panic on such a stack is that of its caller.
#[test]
fn a_panic_leaves_the_stack_as_it_was() {
    plain! { struct Burst { number: u64 } }
    impl Procedure for Burst {
        const NAME: &'static str = "burst deep down";
        type Output = ();
        fn run(&self, _: &mut Transaction) -> Result<(), Stop> {
            assert!(recurse(LEVELS) == self.number, "deep down");
            Ok(())
        }
    }
    let db = options().procedure::<Burst>().open_device(nvcaracal::DeviceSpec::Dram).unwrap();
    for _ in 0..3 {
        let error = db.call(Burst { number: 1 }).unwrap_err();
        assert!(error.is_failed() && error.to_string().contains("deep down"), "{error}");
        assert_eq!(db.call(Deposit { account: 1, cents: 0 }).unwrap(), 0);
    }
}
