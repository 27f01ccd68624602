//! What a kill leaves opens with the program that wrote it, as it was answered, or not at all: ten
//! deposits were no longer there or doubled after an open with another program, and after damage to
//! the log, without a word. Whoever is refused finds every byte as it was.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{ACCOUNTS, Deposit, Transfer, copy, options, refusal};
use nvcaracal::{Database, HashTable, Procedure, Stop, Table, Transaction, WriteSet, plain};

/// Ten deposits that were answered, in as many epochs, and then the process was killed.
fn killed(dir: &Path) -> PathBuf {
    let (alive, killed) = (dir.join("alive"), dir.join("killed"));
    let db = options().checkpoint_every(1_000_000).open(&alive).unwrap();
    for cents in 1..=10 {
        db.call(Deposit { account: 1, cents }).unwrap();
    }
    copy(&alive, &killed);
    killed
}

fn assert_whole(dir: &Path) {
    let db = options().open(dir).unwrap();
    assert_eq!(db.get(ACCOUNTS, 1).unwrap(), Some(55));
    assert_eq!(db.recovery().epochs_replayed, 10);
    assert_eq!(db.recovery().epochs_verified, 10, "the last one by its end mark");
}

/// Another program: the same names, and something else behind them.
mod other {
    use super::*;

    plain! {
        pub(crate) struct Longer { account: u64, cents: i64, fee: i64 }
        pub(crate) struct Changed { account: u64, cents: i64 }
    }

    macro_rules! deposits {
        ($($procedure:ident $more:expr;)*) => { $(
            impl Procedure for $procedure {
                const NAME: &'static str = "deposit";
                type Output = i64;

                fn write_set(&self, set: &mut WriteSet) {
                    set.insert(ACCOUNTS, self.account);
                }

                fn run(&self, tx: &mut Transaction) -> Result<i64, Stop> {
                    let cents = tx.get(ACCOUNTS, self.account)?.unwrap_or(0) + self.cents + $more;
                    tx.insert(ACCOUNTS, self.account, &cents)?;
                    Ok(cents)
                }
            }
        )* };
    }
    deposits! { Longer 0; Changed 1; }

    /// As [`Deposit`] in all that a program shows of itself, and not in what it does.
    pub(crate) mod same {
        use super::*;

        plain! {
            pub(crate) struct Deposit { account: u64, cents: i64 }
        }
        deposits! { Deposit 1; }
    }
}

#[test]
fn o_65_a_program_with_another_past_is_refused() {
    const NAMES: HashTable<str, String> = Table::hash("names");
    let dir = tempfile::tempdir().unwrap();
    let killed = killed(dir.path());
    let base = || Database::options().data_bytes_max(1 << 30);
    let two = || base().table(ACCOUNTS);
    let cases = [
        (two().procedure::<other::Longer>().procedure::<Transfer>(), "Longer { account: u64"),
        (two().procedure::<other::Changed>().procedure::<Transfer>(), "Changed { account: u64"),
        (two().procedure::<other::same::Deposit>().procedure::<Transfer>(), "replay of epoch 1"),
        (two().procedure::<Deposit>(), "\"transfer\" is not registered"),
    ];
    for (program, words) in cases {
        let error = refusal(&killed, program);
        assert!(error.is_schema(), "{error}");
        assert!(error.to_string().contains(words), "{error}");
        assert!(error.to_string().contains("close it"), "what to do: {error}");
    }
    // A table that is left alone is there all the same.
    let other = dir.path().join("other");
    copy(&killed, &other);
    let program = base().table(NAMES).ignore_table("accounts");
    let program = program.procedure::<Deposit>().procedure::<Transfer>();
    program.open(&other).unwrap().close().unwrap();
    let two = two().ignore_table("names").open(&other).unwrap();
    assert_eq!(two.get(ACCOUNTS, 1).unwrap(), Some(55));
    assert_whole(&killed);
}

#[test]
fn o_24_a_log_that_lost_answered_epochs_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let killed = killed(dir.path());
    let log = fs::read(killed.join("log")).unwrap();
    let other = {
        let dir = tempfile::tempdir().unwrap();
        fs::read(self::killed(dir.path()).join("log")).unwrap()
    };
    let mut shifted = vec![0; 100];
    shifted.extend_from_slice(&log);
    let mut torn = log.clone();
    // The last epoch of the log: a power cut could have left it so, a kill cannot.
    let last = log.chunks(64 << 10).rposition(|segment| segment[..4] == *b"NVIL").unwrap();
    torn[last << 16..(last << 16) + 64].fill(0);
    let cases = [
        ("zeroed", vec![0; log.len()]),
        ("cut", Vec::new()),
        ("shifted", shifted),
        ("another store's", other),
        ("without its end", torn),
    ];
    for (what, bytes) in cases {
        fs::write(killed.join("log"), bytes).unwrap();
        let error = refusal(&killed, options());
        assert!(error.is_corrupt(), "{what}: {error}");
        assert!(error.to_string().contains("log"), "{what}: {error}");
    }
    fs::write(killed.join("log"), log).unwrap();
    assert_whole(&killed);
}

#[test]
fn files_of_two_stores_are_not_mixed() {
    let dir = tempfile::tempdir().unwrap();
    let killed = killed(dir.path());
    let other = tempfile::tempdir().unwrap();
    let other = self::killed(other.path());
    for name in ["table", "data", "meta", "log"] {
        let own = fs::read(killed.join(name)).unwrap();
        fs::copy(other.join(name), killed.join(name)).unwrap();
        let error = refusal(&killed, options());
        assert!(error.is_corrupt(), "{name}: {error}");
        fs::write(killed.join(name), own).unwrap();
    }
    assert_whole(&killed);
}
