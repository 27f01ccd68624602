//! NVCaracal as a library: a transactional database for programs in which many threads fight over
//! few rows, and in which no answer that was given may be lost.
//!
//! It orders transactions *before* it runs them. So they are serializable without locks, aborts,
//! retries or deadlocks, on all cores, and the result is the same whenever they are run again: the
//! log holds what was asked, not what was done.
//!
//! # A tour
//!
//! A transaction is a procedure: a function of its arguments ([`procedure`]), or, where it says
//! more, a type whose fields are the arguments ([`Procedure`]). It may predict what it writes, so
//! that it runs on all cores beside others ([`Procedure::write_set`]).
//!
//! ```
//! use nvcaracal::{
//!     Abort, Data, Database, HashTable, Procedure, Stop, Table, Transaction, WriteSet, procedure,
//! };
//!
//! const ACCOUNTS: HashTable<u64, Account> = Table::hash("accounts");
//!
//! #[derive(Debug, Clone, PartialEq, Data)]
//! struct Account {
//!     cents: i64,
//!     owner: Option<String>,
//! }
//!
//! #[procedure]
//! fn deposit(tx: &mut Transaction, account: u64, cents: i64) -> Result<i64, Stop> {
//!     let new = Account { cents: 0, owner: None };
//!     let mut of = tx.get(ACCOUNTS, account)?.unwrap_or(new);
//!     of.cents += cents;
//!     tx.insert(ACCOUNTS, account, &of)?;
//!     Ok(of.cents)
//! }
//!
//! #[derive(Data)]
//! struct Transfer {
//!     from: u64,
//!     to: u64,
//!     cents: i64,
//! }
//!
//! impl Procedure for Transfer {
//!     const NAME: &'static str = "transfer";
//!     type Output = ();
//!
//!     fn write_set(&self, set: &mut WriteSet) {
//!         set.update(ACCOUNTS, self.from);
//!         set.update(ACCOUNTS, self.to);
//!     }
//!
//!     fn run(&self, tx: &mut Transaction) -> Result<(), Stop> {
//!         let mut from = tx.get(ACCOUNTS, self.from)?.ok_or(Abort::new("no such account"))?;
//!         if from.cents < self.cents {
//!             Err("not enough money")?;
//!         }
//!         from.cents -= self.cents;
//!         tx.update(ACCOUNTS, self.from, &from)?;
//!         let mut to = tx.get(ACCOUNTS, self.to)?.ok_or(Abort::new("no such account"))?;
//!         to.cents += self.cents;
//!         tx.update(ACCOUNTS, self.to, &to)?;
//!         Ok(())
//!     }
//! }
//!
//! # let directory = tempfile::tempdir().expect("a directory");
//! # let path = directory.path().join("bank");
//! let db = Database::options()
//!     .table(ACCOUNTS)
//!     .procedure::<Deposit>()
//!     .procedure::<Transfer>()
//!     .open(path)?; // a directory, created if it does not exist
//!
//! assert_eq!(db.call(Deposit { account: 1, cents: 500 })?, 500); // durable when it returns
//! let ticket = db.submit(Deposit { account: 2, cents: 0 })?; // returns at once
//! ticket.wait()?;
//! db.call(Transfer { from: 1, to: 2, cents: 300 })?;
//!
//! let error = db.call(Transfer { from: 1, to: 2, cents: 300 }).unwrap_err();
//! assert!(error.is_user_abort());
//! assert_eq!(error.to_string(), "aborted: not enough money");
//!
//! assert_eq!(db.get(ACCOUNTS, 1)?.map(|account| account.cents), Some(200));
//! db.close()?;
//! # Ok::<(), nvcaracal::Error>(())
//! ```
//!
//! * **Tables** are constants with types: [`Table`]; numbers that are given once come from a
//!   [`Sequence`].
//! * **Types** of values, arguments and answers derive [`Data`], those of keys [`Key`]; [`plain!`]
//!   is for fixed layouts that are read in place ([`Plain`]).
//! * **Changes** of tables, fields, indexes and procedures from one program to the next:
//!   [`Options`](Options#changing-the-schema), [`Data::BEFORE`].
//! * **Procedures**: [`procedure`] and [`Procedure`], with [`WriteSet`], [`Sequences`],
//!   [`Transaction`].
//! * **Calls**: [`Database::call`] waits for the answer; [`Database::submit`] gives a [`Ticket`];
//!   [`Database::try_submit`] does not wait for room in the queue; [`Database::batch`] keeps calls
//!   together.
//! * **Observation**: [`Database::stats`], and [`Database::contention`] for the rows for which
//!   calls wait; a table in the documentation of [`Database`] has what others are told.
//! * **Tests**: [`Options::check_determinism`] finds procedures that would not do the same in a
//!   recovery.
//! * **Reads** from outside: [`Database::get`], and [`Database::snapshot`] for all that is to be of
//!   one state.
//! * **Many calls under way**: [`Database::submitter`] keeps the order of a connection's calls.
//! * **Changes** of a table, epoch by epoch: [`Database::changes`], and [`Database::consumer`] for
//!   readers whose positions outlive the process.
//! * **Backups** of a database that runs: [`Database::backup`].
//! * **Interpreters**, whose tables and procedures are known at run time only: [`raw`].
//!
//! # What an answer means
//!
//! When a ticket has its answer, the transaction is durable, and so is every one before it in the
//! serial order: the input log of its epoch has reached the device. A transaction whose ticket has
//! no answer when the machine stops takes place as a whole or not at all; make calls so
//! that they can be repeated, for instance by inserting a row under a number that the caller chose.
//! On the devices `dram` and `emulated` nothing survives the process.
//!
//! A *mistake* of a procedure (a panic, a key beyond its limit, a value of another type) is the
//! answer to that call only. It wrote nothing, and the database goes on. That holds also for a
//! procedure that ignores the error and returns `Ok`: the first mistake is the answer. [`Error`]
//! says which is which.
//!
//! # Queues, free lists, the cheapest of all
//!
//! A transaction that finds out what to write by looking, such as one that takes the first task of
//! a queue or the cheapest free seat, is written as one would say it, without a write set: take the
//! first row of an ordered table, delete it, and write what follows from it. Many of them at
//! once run one after the other, each sees what the one before left, none fails and none is made
//! again. What makes it fast at any size:
//!
//! * Keep what is free in an ordered table of its own, under the key by which it is chosen
//!   (priority, price), and delete a row when it is filled. The k-th transaction of an epoch that
//!   takes the first row costs what the first one did; scanning over rows that are marked as filled
//!   would not.
//! * Take from either end: `range(..).next()` or `range(..).next_back()` reads one row.
//! * Where the queue's place follows from a number, allocate that from a [`Sequence`] and declare
//!   the row under it: such transactions run on all cores.
//!
//! ```
//! use nvcaracal::{HashTable, Stop, Table, Transaction, procedure};
//!
//! const FREE: Table<(u32, u32), u8> = Table::ordered("free"); // price and number
//! const SOLD: HashTable<u32, u64> = Table::hash("sold");
//!
//! #[procedure]
//! fn buy_cheapest(tx: &mut Transaction, user: u64) -> Result<u32, Stop> {
//!     let ((price, seat), _) = tx.range(FREE, ..).next().transpose()?.ok_or("sold out")?;
//!     tx.delete(FREE, (price, seat))?;
//!     tx.insert(SOLD, seat, &user)?;
//!     Ok(seat)
//! }
//!
//! # let db = nvcaracal::Database::options().table(FREE).table(SOLD).procedure::<BuyCheapest>()
//! #     .open_device(nvcaracal::DeviceSpec::Dram)?;
//! assert!(db.call(BuyCheapest { user: 7 }).unwrap_err().is_user_abort());
//! # Ok::<(), nvcaracal::Error>(())
//! ```
//!
//! # What it is not
//!
//! * **Not interactive.** A transaction is submitted whole; there is no `begin` and `commit` with
//!   something of the program's in between.
//! * **Not without waiting.** An answer comes at the end of an epoch, together with those of
//!   others: for a caller that is alone a few microseconds in memory, and one sync of the disk on
//!   `file`. Submit from many threads, or many tickets from one, to get more done.
//! * **Not for procedures with side effects.** They run again in recovery and must do the same
//!   again: no clock, no randomness, no files, no messages. Act on the answer, outside.
//! * **Not for procedures that may not end.** Nothing interrupts one, and its epoch, like every
//!   later one, waits for it; so would recovery, which runs it again.
//! * **Not larger than memory.** On `file` all rows are in memory, too. On every device indexes
//!   are.
//! * **Not distributed**, and open in one process at a time.
//!
//! # Limits
//!
//! | what | limit |
//! |---|---|
//! | tables and sequences | 128, with names of 1 to 48 bytes |
//! | key | 1 to 256 bytes |
//! | value | 262,128 bytes |
//! | arguments of a call | 64 MiB; 1 MiB unless [`Tuning::argument_bytes_max`] says more |
//! | calls in an epoch | 16,777,215 |
//! | workers | 64 |
//! | code of an [`Abort`] | any but `u32::MAX`, which marks mistakes, and [`Abort::NOT_UNIQUE`] |
//!
//! [`Options`] has the limits that can be chosen, and their defaults.
//!
//! # Features
//!
//! None is on by default.
//!
//! | feature | what it adds |
//! |---|---|
//! | `serde` | types of other crates, by their `serde` traits: `Serde`, `#[data(serde)]` |
//! | `decimal` | `rust_decimal::Decimal` as a value |
//! | `uuid` | `uuid::Uuid` as a value and as a key |
//! | `tracing` | spans and events: a table in the documentation of [`Database`] has them |
//! | `metrics` | counters, gauges and histograms of the `metrics` facade, listed there, too |

#![forbid(unsafe_code)]

extern crate self as nvcaracal;

mod body;
mod call;
mod data;
mod database;
pub mod dynamic;
mod error;
mod feed;
#[cfg(doctest)]
mod guide;
mod host;
mod key;
mod observe;
pub mod raw;
mod sequencer;
mod stop;
mod sync;
mod table;

pub use call::declare::{Sequences, WriteSet};
pub use call::piece::Piece;
pub use call::piece_result::{PieceResult, PieceResults};
pub use call::procedure::{Procedure, Was};
pub use call::ticket::Ticket;
pub use call::transaction::Transaction;
pub use data::before::Before;
#[doc(hidden)]
pub use data::derived;
#[cfg(feature = "serde")]
pub use data::foreign::Serde;
pub use data::plain::{Plain, zeroed};
pub use data::value::Data;
pub use database::backup::{Backup, Moment};
pub use database::batch::{Added, Batch, Submitted};
pub use database::changes::{Change, Changes};
pub use database::consumer::{Consumer, ConsumerPosition};
pub use database::handle::Database;
pub use database::options::Options;
pub use database::snapshot::Snapshot;
pub use database::submitter::Submitter;
pub use database::tuning::Tuning;
pub use database::way::Part;
pub use engine::{
    Abort, EpochStats, KeptProcedure, MemoryUse, Phase, PhaseStats, RecoveryReport, WorkCounts,
};
pub use error::{Error, ErrorKind, Result};
pub use key::bytes::{Key, KeyBuffer};
/// Makes a procedure of a function: a type with the function's name in capitals, whose fields are
/// the arguments behind the transaction.
///
/// ```
/// use nvcaracal::{Database, HashTable, Stop, Table, Transaction, procedure};
///
/// const ACCOUNTS: HashTable<u64, i64> = Table::hash("accounts");
/// const NAMES: HashTable<u64, String> = Table::hash("names");
///
/// /// Opens an account.
/// #[procedure]
/// fn open_account(tx: &mut Transaction, account: u64, name: &str) -> Result<(), Stop> {
///     if tx.get(NAMES, account)?.is_some() {
///         Err(format!("account {account} exists"))?;
///     }
///     tx.insert(NAMES, account, &name.to_string())?;
///     tx.insert(ACCOUNTS, account, &0)
/// }
///
/// # let options = Database::options().table(ACCOUNTS).table(NAMES);
/// # let device = nvcaracal::DeviceSpec::Dram;
/// let db = options.procedure::<OpenAccount>().open_device(device)?;
/// db.call(OpenAccount { account: 7, name: "Ada".into() })?;
/// # assert!(db.call(OpenAccount { account: 7, name: "Bob".into() }).unwrap_err().is_user_abort());
/// # Ok::<(), nvcaracal::Error>(())
/// ```
///
/// An argument `&T` is the field itself, of `&str` a `String`, of `&[T]` a `Vec<T>`; any other is a
/// clone of it. The function returns `Result<Answer, Stop>`. Its attributes are those of the type,
/// and its visibility is that of the type and its fields. In the parentheses of the attribute:
///
/// | option | meaning |
/// |---|---|
/// | `name = "..."` | [`Procedure::NAME`], by default the name of the function |
/// | `version = 2` | [`Procedure::VERSION`] |
/// | `was = PayV1` | [`Procedure::WAS`]: the type of the version before |
/// | `sequences(SEQUENCE, ...)` | a number from each, for [`Transaction::sequence_number`] |
/// | `write_set = f` | `f(&arguments, set)` is [`Procedure::write_set`] |
///
/// A procedure with pieces, or with allocations that depend on its arguments, implements
/// [`Procedure`].
pub use nvcaracal_derive::procedure;
pub use nvcaracal_derive::{Data, Key};
pub use observe::contention::{ContendedRow, Contention};
pub use observe::procedures::ProcedureStats;
pub use observe::stats::Stats;
pub use pmem::{Compacted, DeviceSpec, FileUse, PageUse, Profile};
pub use stop::Stop;
pub use table::handle::{HashTable, Hashed, Ordered, Scannable, Sequence, Table};
pub use table::index::Index;
pub use table::range::KeyRange;
pub use table::rows::Rows;
/// The traits behind [`Plain`], to derive them.
pub use zerocopy;
