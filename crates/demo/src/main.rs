//! What NVCaracal is for, in seconds: 64 threads move money between eight accounts.
//!
//!     cargo run --release -p nvcaracal-demo [SECONDS]
//!
//! Each thread makes one call at a time and waits until it is durable in a temporary directory.
//! Then the database is closed, opened again, and compared with what the threads were answered. A
//! signal ends it at once: the directory stays then.

#![forbid(unsafe_code)]

use std::io::Write;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nvcaracal::{Database, Error, HashTable, Stop, Table, Transaction, procedure};

const CALLERS: u64 = 64;
const ACCOUNTS: u64 = 8;
const SECONDS_DEFAULT: u64 = 3;
/// What each account has at the beginning.
const CENTS: i64 = 100_000;

const BALANCES: HashTable<u64, i64> = Table::hash("balances");

#[procedure]
fn open_account(tx: &mut Transaction, account: u64, cents: i64) -> Result<(), Stop> {
    tx.insert(BALANCES, account, &cents)
}

/// Moves money, or stops with nothing done if there is not enough of it.
#[procedure]
fn transfer(tx: &mut Transaction, from: u64, to: u64, cents: i64) -> Result<(), Stop> {
    let of = tx.get(BALANCES, from)?.ok_or("there is no such account")?;
    if of < cents {
        return Err("there is not enough money".into());
    }
    tx.update(BALANCES, from, &(of - cents))?;
    let of = tx.get(BALANCES, to)?.ok_or("there is no such account")?;
    tx.update(BALANCES, to, &(of + cents))?;
    Ok(())
}

/// Writes a line to standard output; a reader that went away is no error.
macro_rules! say {
    ($($text:tt)*) => { let _ = writeln!(std::io::stdout(), $($text)*); };
}

/// What a caller was answered.
#[derive(Default)]
struct Answered {
    /// What its transfers add to each account.
    gained: [i64; ACCOUNTS as usize],
    /// How long each took, those that stopped included.
    times: Vec<Duration>,
    stopped: u64,
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let seconds = arguments.next().map_or(Ok(SECONDS_DEFAULT), |given| given.parse());
    let is_one = arguments.next().is_none();
    let Some(seconds) = seconds.ok().filter(|given| is_one && (1..=3600).contains(given)) else {
        eprintln!("usage: nvcaracal-demo [SECONDS], from 1 to 3600; {SECONDS_DEFAULT} by default");
        return ExitCode::from(2);
    };
    match run(Duration::from_secs(seconds)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns whether the accounts are what the callers were answered.
fn run(lasts: Duration) -> Result<bool, Box<dyn std::error::Error>> {
    let directory = tempfile::Builder::new().prefix("nvcaracal-demo-").tempdir()?;
    let open = || {
        let options = Database::options().table(BALANCES);
        options.procedure::<OpenAccount>().procedure::<Transfer>().open(directory.path())
    };
    say!(
        "{CALLERS} callers move money between {ACCOUNTS} accounts for {} s: one call each at a \
         time,\neach durable in {} when it is answered",
        lasts.as_secs(),
        directory.path().display()
    );
    let db = open()?;
    for account in 0..ACCOUNTS {
        db.call(OpenAccount { account, cents: CENTS })?;
    }
    let answered = call_until(&db, Instant::now() + lasts)?;
    let epochs = db.stats().epoch;
    db.close()?;

    let mut times: Vec<Duration> = answered.iter().flat_map(|of| of.times.clone()).collect();
    times.sort_unstable();
    let at = |per_mille: usize| times[(times.len() * per_mille / 1000).min(times.len() - 1)];
    let stopped: u64 = answered.iter().map(|of| of.stopped).sum();
    say!("calls a second     {:>9.0}", times.len() as f64 / lasts.as_secs_f64());
    say!("answer, p50        {:>9.2} ms", at(500).as_secs_f64() * 1e3);
    say!("answer, p99        {:>9.2} ms", at(990).as_secs_f64() * 1e3);
    say!("without money      {stopped:>9} of {}", times.len());
    say!("epochs             {epochs:>9}");

    let db = open()?;
    let is_right = compare(&db, &answered)?;
    db.close()?;
    Ok(is_right)
}

/// Lets all callers call until a moment.
fn call_until(db: &Database, end: Instant) -> Result<Vec<Answered>, Error> {
    let calls = AtomicU64::new(0);
    let calls = &calls;
    thread::scope(|scope| {
        let callers: Vec<_> = (0..CALLERS)
            .map(|number| scope.spawn(move || caller(db, number, end, calls)))
            .collect();
        while Instant::now() < end {
            thread::sleep(Duration::from_secs(1).min(end - Instant::now()));
            eprintln!("  {} calls answered", calls.load(Ordering::Relaxed));
        }
        callers.into_iter().map(|caller| caller.join().expect("callers do not panic")).collect()
    })
}

/// Makes one call after the other.
fn caller(db: &Database, seed: u64, end: Instant, calls: &AtomicU64) -> Result<Answered, Error> {
    let mut answered = Answered::default();
    let mut random = seed;
    while Instant::now() < end {
        // A linear congruential generator: its high bits are random enough.
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        let from = (random >> 33) % ACCOUNTS;
        let to = (from + 1 + (random >> 43) % (ACCOUNTS - 1)) % ACCOUNTS;
        let cents = (random >> 53) as i64 * 10;
        let began = Instant::now();
        match db.call(Transfer { from, to, cents }) {
            Ok(()) => {
                answered.gained[from as usize] -= cents;
                answered.gained[to as usize] += cents;
            }
            Err(error) if error.is_user_abort() => answered.stopped += 1,
            Err(error) => return Err(error),
        }
        answered.times.push(began.elapsed());
        calls.fetch_add(1, Ordering::Relaxed);
    }
    Ok(answered)
}

/// Compares each account with what the callers were answered; says so.
fn compare(db: &Database, answered: &[Answered]) -> Result<bool, Error> {
    let mut is_right = true;
    let mut sum = 0;
    for account in 0..ACCOUNTS {
        let has = db.get(BALANCES, account)?.unwrap_or_default();
        let gained: i64 = answered.iter().map(|of| of.gained[account as usize]).sum();
        if has != CENTS + gained {
            say!("WRONG: account {account} has {has}, its transfers came to {}", CENTS + gained);
            is_right = false;
        }
        sum += has;
    }
    let all = CENTS * ACCOUNTS as i64;
    if is_right {
        say!("verified           opened again: {sum} of {all} cents, each account as answered");
    }
    Ok(is_right && sum == all)
}
