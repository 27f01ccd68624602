//! Who listens to `tracing` and `metrics` is code of the user's, and may use the database of which
//! it hears. A subscriber that called it hung, and with it every caller. In a process of its own:
//! both are global.

use std::cell::Cell;
use std::sync::{Mutex, OnceLock};

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use nvcaracal::{Database, DeviceSpec, HashTable, Stop, Table, Transaction, procedure};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};

const COUNTERS: HashTable<u64, u64> = Table::hash("counters");

#[procedure]
fn count(tx: &mut Transaction, counter: u64) -> Result<u64, Stop> {
    let next = tx.get(COUNTERS, counter)?.unwrap_or(0) + 1;
    tx.insert(COUNTERS, counter, &next)?;
    Ok(next)
}

static DATABASE: OnceLock<Database> = OnceLock::new();
/// What uses that had to wait were told, and which listener it was.
static TOLD: Mutex<Vec<(&'static str, String)>> = Mutex::new(Vec::new());

thread_local! {
    static IS_LISTENING: Cell<bool> = const { Cell::new(false) };
}

/// Uses the database in every way, once for each thing that it hears.
fn listen(who: &'static str) {
    let Some(db) = DATABASE.get() else { return };
    if IS_LISTENING.replace(true) {
        return;
    }
    let errors = [
        db.call(Count { counter: 9 }).map(drop),
        db.submit(Count { counter: 9 }).map(drop),
        db.get(COUNTERS, 1).map(drop),
        db.snapshot().map(drop),
        db.checkpoint(),
        db.memory().map(drop),
        db.clone().close(),
    ];
    let mut told = TOLD.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    told.extend(errors.map(|result| (who, result.expect_err("it had to wait").to_string())));
    drop(told);
    let _ = (db.stats(), db.contention(1));
    // The first of each leave calls, of which the others hear again.
    let is_first = db.stats().epochs < 5;
    if is_first && let Err(error) = db.try_submit(Count { counter: 7 }) {
        assert!(error.is_stopped(), "{error}");
    }
    IS_LISTENING.set(false);
    assert!(!matches!(who, "event" | "exit"), "{who} panics");
}

struct Listener;

impl Subscriber for Listener {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target() == "nvcaracal"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {
        listen("event");
    }

    fn enter(&self, _: &Id) {
        listen("enter");
    }

    fn exit(&self, _: &Id) {
        listen("exit");
    }
}

impl Recorder for Listener {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
        listen("counter");
        Counter::noop()
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        listen("gauge");
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        listen("histogram");
        Histogram::noop()
    }
}

#[test]
fn listeners_use_the_database_and_must_not_wait() {
    std::panic::set_hook(Box::new(|panic| {
        if !panic.to_string().ends_with("panics") {
            println!("{panic}");
        }
    }));
    tracing::subscriber::set_global_default(Listener).unwrap();
    metrics::set_global_recorder(Listener).unwrap();
    let options = Database::options().table(COUNTERS).procedure::<Count>().contention_epochs(1);
    let db = options.workers(2).open_device(DeviceSpec::Dram).unwrap();
    DATABASE.set(db.clone()).unwrap();
    // In an epoch that the caller runs, and in one of the sequencer's.
    assert_eq!(db.call(Count { counter: 1 }).unwrap(), 1);
    let mut batch = db.batch();
    let added: Vec<_> = (0..200).map(|_| batch.add(&Count { counter: 2 }).unwrap()).collect();
    let submitted = batch.submit().unwrap();
    for (count, added) in (1..).zip(added) {
        assert_eq!(submitted.ticket(added).wait().unwrap(), count);
    }
    db.checkpoint().unwrap();
    assert!(db.get(COUNTERS, 7).unwrap().is_some(), "what listeners left was done");
    assert_eq!(db.get(COUNTERS, 9).unwrap(), None, "what was refused was not");
    db.close().unwrap();
    let told = TOLD.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    for who in ["event", "enter", "exit", "counter", "gauge", "histogram"] {
        assert!(told.iter().any(|(of, _)| *of == who), "nothing was told to {who}");
    }
    for (who, text) in &*told {
        let is_closed = text == "the database is closed";
        assert!(is_closed || text.contains("would wait for a database"), "{who}: {text}");
    }
}
