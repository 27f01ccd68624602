//! A bank, as the tests need it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use nvcaracal::{
    Abort, Database, DeviceSpec, Error, HashTable, KeyRange, Options, Procedure, Stop, Table,
    Transaction, WriteSet, plain,
};

/// Balances.
pub(crate) const ACCOUNTS: Table<u64, i64> = Table::ordered("accounts");
/// What write sets read, and so what calls are deferred for.
pub(crate) const POINTERS: HashTable<u64, u64> = Table::hash("pointers");

/// Bytes that the image of a store has grown to: the head of its file of pages says so.
pub(crate) fn image_bytes(store: &Path) -> u64 {
    let data = fs::read(store.join("data")).unwrap();
    u64::from_le_bytes(*data[40..].first_chunk().unwrap())
}

plain! {
    /// Adds to an account, or opens it; answers with the balance.
    pub(crate) struct Deposit { pub(crate) account: u64, pub(crate) cents: i64 }
    /// Moves money; aborts with code 7 if there is not enough.
    pub(crate) struct Transfer { pub(crate) from: u64, pub(crate) to: u64, pub(crate) cents: i64 }
    /// Sets the pointer 0.
    pub(crate) struct Point { pub(crate) to: u64 }
}

impl Procedure for Point {
    const NAME: &'static str = "point";
    type Output = ();

    fn write_set(&self, set: &mut WriteSet) {
        set.insert(POINTERS, 0);
    }

    fn run(&self, tx: &mut Transaction) -> Result<(), Stop> {
        tx.insert(POINTERS, 0, &self.to)
    }
}

impl Procedure for Deposit {
    const NAME: &'static str = "deposit";
    type Output = i64;

    fn write_set(&self, set: &mut WriteSet) {
        set.insert(ACCOUNTS, self.account);
    }

    fn run(&self, tx: &mut Transaction) -> Result<i64, Stop> {
        let cents = tx.get(ACCOUNTS, self.account)?.unwrap_or(0) + self.cents;
        tx.insert(ACCOUNTS, self.account, &cents)?;
        Ok(cents)
    }
}

impl Procedure for Transfer {
    const NAME: &'static str = "transfer";
    type Output = (i64, i64);

    fn write_set(&self, set: &mut WriteSet) {
        set.update(ACCOUNTS, self.from);
        set.update(ACCOUNTS, self.to);
    }

    fn run(&self, tx: &mut Transaction) -> Result<(i64, i64), Stop> {
        let from = tx.get(ACCOUNTS, self.from)?.ok_or(Abort::new("no such account"))? - self.cents;
        if from < 0 {
            let message = format!("{from} is not enough").into();
            return Err(Abort { message, ..Abort::code(7) }.into());
        }
        tx.update(ACCOUNTS, self.from, &from)?;
        let to = tx.get(ACCOUNTS, self.to)?.ok_or(Abort::new("no such account"))? + self.cents;
        tx.update(ACCOUNTS, self.to, &to)?;
        Ok((from, to))
    }
}

/// Options of a bank.
pub(crate) fn options() -> Options {
    Database::options()
        .table(ACCOUNTS)
        .procedure::<Deposit>()
        .procedure::<Transfer>()
        .workers(2)
        .data_bytes_max(1 << 30)
        .log_bytes_max(1 << 30)
}

/// A bank in memory.
pub(crate) fn dram(options: Options) -> Database {
    options.open_device(DeviceSpec::Dram).unwrap()
}

/// All money.
pub(crate) fn sum(db: &Database) -> i64 {
    rows(db, ..).iter().map(|(_, cents)| cents).sum()
}

/// Accounts in a range.
pub(crate) fn rows(db: &Database, range: impl KeyRange<u64>) -> Vec<(u64, i64)> {
    db.snapshot().unwrap().range(ACCOUNTS, range).collect::<Result<_, _>>().unwrap()
}

/// A place for databases.
pub(crate) fn directory() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// Opens accounts in a bank and moves money; the state hash after that.
pub(crate) fn fill(db: &Database, accounts: u64) -> u128 {
    let tickets: Vec<_> = (0..accounts)
        .map(|account| db.submit(Deposit { account, cents: account as i64 }).unwrap())
        .collect();
    for ticket in tickets {
        ticket.wait().unwrap();
    }
    for to in 0..20 {
        db.call(Transfer { from: accounts - 1, to, cents: 1 }).unwrap();
    }
    db.stats().state_hash
}

/// Copies a store that is in use: what a kill leaves.
pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for file in fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
}

pub(crate) fn bytes(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = fs::read_dir(dir).unwrap().map(|file| file.unwrap().path());
    files.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

/// The store is refused, and left as it was.
pub(crate) fn refusal(dir: &Path, options: Options) -> Error {
    let before = bytes(dir);
    let error = options.open(dir).err();
    let error = error.unwrap_or_else(|| panic!("{} must not be opened", dir.display()));
    assert!(bytes(dir) == before, "a refused open changed a file: {error}");
    error
}

plain! {
    /// Runs until it is told to end.
    pub(crate) struct Hold { number: u64 }
}

/// Where a call says that it runs, and waits: by its number.
type Held = BTreeMap<u64, (Sender<()>, Receiver<()>)>;
static HELD: Mutex<Held> = Mutex::new(BTreeMap::new());

impl Procedure for Hold {
    const NAME: &'static str = "hold";
    type Output = ();

    fn run(&self, _: &mut Transaction) -> Result<(), Stop> {
        let (held, end) = HELD.lock().unwrap().remove(&self.number).unwrap();
        held.send(()).unwrap();
        let _ = end.recv();
        Ok(())
    }
}

/// Holds the sequencer until the sender is used or dropped.
pub(crate) fn hold(db: &Database) -> (Sender<()>, thread::JoinHandle<()>) {
    let ((end, ends), (held, is_held)) = (channel(), channel());
    static NUMBERS: AtomicU64 = AtomicU64::new(0);
    let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
    HELD.lock().unwrap().insert(number, (held, ends));
    let holder = db.clone();
    let thread = thread::spawn(move || holder.call(Hold { number }).unwrap());
    is_held.recv().unwrap();
    (end, thread)
}

/// Returns when a thread waits for room in the queue.
pub(crate) fn wait_until_blocked(db: &Database) {
    while db.stats().blocked_submitters == 0 {
        thread::yield_now();
    }
}
