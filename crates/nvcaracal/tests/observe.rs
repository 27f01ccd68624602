//! What `tracing` and `metrics` are told, in a process of its own: both are global.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{fs, thread};

use metrics::{Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName};
use metrics::{Metadata, Recorder, SharedString, Unit};
use nvcaracal::{Database, HashTable, Stop, Table, Transaction, Tuning, procedure};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};

const COUNTERS: HashTable<u64, u64> = Table::hash("counters");

/// Counts up to 3.
#[procedure]
fn count(tx: &mut Transaction, counter: u64) -> Result<u64, Stop> {
    let next = tx.get(COUNTERS, counter)?.unwrap_or(0) + 1;
    if next > 3 {
        Err("that is enough")?;
    }
    assert!(counter < 10, "a mistake");
    tx.insert(COUNTERS, counter, &next)?;
    Ok(next)
}

/// Whether [`hold`] may end.
static MAY_END: AtomicBool = AtomicBool::new(true);

#[procedure]
fn hold(tx: &mut Transaction, counter: u64) -> Result<(), Stop> {
    while !MAY_END.load(Ordering::SeqCst) {
        thread::yield_now();
    }
    tx.insert(COUNTERS, counter, &7)
}

/// Lines: level, name or message, fields.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<String>>>);

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Times and places differ from run to run.
        let value = match field.name() {
            "us" | "device" => "..".to_string(),
            _ => format!("{value:?}"),
        };
        write!(self.0, " {}={value}", field.name()).unwrap();
    }
}

impl Subscriber for Heard {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target() == "nvcaracal"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut line = Line(format!("{} span {}", span.metadata().level(), span.metadata().name()));
        span.record(&mut line);
        self.0.lock().unwrap().push(line.0);
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Sums of counters, last values of gauges, counts of histograms.
#[derive(Clone, Default)]
struct Measured(Arc<Mutex<BTreeMap<String, Arc<AtomicU64>>>>);

struct Cell(Arc<AtomicU64>);

impl CounterFn for Cell {
    fn increment(&self, value: u64) {
        self.0.fetch_add(value, Ordering::Relaxed);
    }

    fn absolute(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }
}

impl GaugeFn for Cell {
    fn increment(&self, _: f64) {}

    fn decrement(&self, _: f64) {}

    fn set(&self, value: f64) {
        self.0.store(value as u64, Ordering::Relaxed);
    }
}

impl HistogramFn for Cell {
    fn record(&self, value: f64) {
        assert!((0.0..60.0).contains(&value), "{value} are no seconds");
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Measured {
    fn cell(&self, key: &Key) -> Arc<Cell> {
        let labels = key.labels().map(|label| format!(" {}={}", label.key(), label.value()));
        let name = format!("{}{}", key.name(), labels.collect::<String>());
        Arc::new(Cell(Arc::clone(self.0.lock().unwrap().entry(name).or_default())))
    }
}

impl Recorder for Measured {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.cell(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.cell(key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.cell(key))
    }
}

#[test]
fn epochs_calls_checkpoints_and_endings_are_told() {
    let (heard, measured) = (Heard::default(), Measured::default());
    tracing::subscriber::set_global_default(heard.clone()).unwrap();
    metrics::set_global_recorder(measured.clone()).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let options = || Database::options().table(COUNTERS).procedure::<Count>().workers(1);
    // The smallest log, so that it is full soon.
    let options = options()
        .tuning(Tuning { log_segment_bytes: 4096, ..Tuning::default() })
        .log_bytes_max(64 << 10)
        .checkpoint_every(1000);
    let options = options.contention_epochs(1);
    let path = directory.path().join("db");
    let db = options.clone().open(&path).unwrap();
    for _ in 0..3 {
        db.call(Count { counter: 1 }).unwrap();
    }
    db.call(Count { counter: 1 }).unwrap_err();
    db.call(Count { counter: 10 }).unwrap_err();
    let mut batch = db.batch();
    for _ in 0..3 {
        batch.add(&Count { counter: 2 }).unwrap();
    }
    batch.submit().unwrap().wait();
    db.checkpoint().unwrap();
    while !heard.0.lock().unwrap().iter().any(|line| line.contains("the log was full")) {
        let calls: Vec<_> = (0..50).map(|_| db.submit(Count { counter: 1 }).unwrap()).collect();
        calls.into_iter().for_each(|call| drop(call.wait().unwrap_err()));
    }
    db.close().unwrap();
    let lines = heard.0.lock().unwrap().clone();
    let told = |words: &str| assert!(lines.iter().any(|line| line == words), "{words} {lines:#?}");
    told("INFO span open device=..");
    told(
        "INFO message=opened device=.. created=true epoch=0 rows=0 epochs_replayed=0 \
         calls_replayed=0 us=..",
    );
    told("DEBUG span epoch calls=1");
    told("DEBUG message=contention epoch=6 rows=1 writers=3 waits=0 us=..");
    told("INFO message=the log was full: taking a checkpoint");
    told("INFO message=closed");
    let epoch = lines.iter().find(|line| line.starts_with("DEBUG message=epoch")).unwrap();
    let fields = "DEBUG message=epoch epoch=1 committed=1 aborted=0 failed=0 deferred=0 log_bytes=";
    assert!(epoch.starts_with(fields) && epoch.ends_with(" us=.."), "{epoch}");
    let is_checkpoint = |line: &&String| line.starts_with("INFO message=checkpoint epoch=");
    assert_eq!(lines.iter().filter(is_checkpoint).count(), 1, "{lines:#?}");

    let found = measured.0.lock().unwrap();
    let of = |name: &str| found.get(name).unwrap_or_else(|| panic!("{name} in {found:#?}"));
    let value = |name: &str| of(name).load(Ordering::Relaxed);
    assert_eq!(value("nvcaracal_calls_total procedure=count outcome=committed"), 6);
    assert!(value("nvcaracal_calls_total procedure=count outcome=aborted") > 50);
    assert_eq!(value("nvcaracal_calls_total procedure=count outcome=failed"), 1);
    assert_eq!(value("nvcaracal_contended_writes_total"), 3);
    assert_eq!(value("nvcaracal_row_waits_total"), 0);
    assert_eq!(value("nvcaracal_rows"), 2);
    assert_eq!(value("nvcaracal_checkpoint_seconds"), 1);
    assert_eq!(value("nvcaracal_epochs_total"), value("nvcaracal_epoch_seconds"));
    assert!(value("nvcaracal_answer_seconds") > 5 && value("nvcaracal_log_bytes_total") > 1000);
    of("nvcaracal_queued_calls");
    drop(found);
    slow_calls_are_told_while_they_run(&heard, &measured);
}

/// In a replay, too: an open that does not come back says which call it is in.
fn slow_calls_are_told_while_they_run(heard: &Heard, measured: &Measured) {
    let room = tempfile::tempdir().unwrap();
    let (alive, killed) = (room.path().join("alive"), room.path().join("killed"));
    let warning = Duration::from_millis(20);
    let tuning = Tuning { procedure_time_warning: warning, ..Tuning::default() };
    let options = Database::options().table(COUNTERS).procedure::<Count>().procedure::<Hold>();
    let options = options.checkpoint_every(1000).workers(1);
    let db = options.clone().open(&alive).unwrap();
    db.call(Count { counter: 5 }).unwrap();
    db.call(Hold { counter: 1 }).unwrap();
    fs::create_dir(&killed).unwrap();
    for file in fs::read_dir(&alive).unwrap().map(Result::unwrap) {
        fs::copy(file.path(), killed.join(file.file_name())).unwrap();
    }
    MAY_END.store(false, Ordering::SeqCst);
    let opening = thread::spawn(move || options.tuning(tuning).open(killed).unwrap());
    let told = "WARN message=a call runs long procedure=\"hold\" epoch=2 position=0 us=..";
    while !heard.0.lock().unwrap().iter().any(|line| line == told) {
        assert!(!opening.is_finished(), "the open came back without a word");
        thread::yield_now();
    }
    MAY_END.store(true, Ordering::SeqCst);
    let opened = opening.join().unwrap();
    let slow = opened.stats().procedures.iter().map(|of| (of.name, of.slow)).collect::<Vec<_>>();
    assert_eq!(slow, [("count", 0), ("hold", 1)]);
    assert_eq!(opened.get(COUNTERS, 1).unwrap(), Some(7));
    let found = measured.0.lock().unwrap();
    let counted = found["nvcaracal_slow_calls_total procedure=hold"].load(Ordering::Relaxed);
    assert_eq!(counted, 1);
}
