//! A soak: random procedures over tables of all shapes, which fill and drain alternately, with
//! snapshots, checkpoints and opens in between, for `NVCARACAL_SOAK_SECONDS`. At quiet moments what
//! the process holds is compared with what the live rows need at most: memory, files, threads,
//! descriptors, locks.
//!
//! With `rows` the most rows that a table has had, those included that calls under way may have
//! added, and `w` workers, at most:
//!
//! - rows on the device: for each table `rows` in whole segments, and `w` segments begun; in free
//!   lists `2 w` segments, and one for each worker and as many rows as a segment has words;
//! - values on the device: the same for each size class, with `2 rows + (w + 1) n` slots: both
//!   versions of each row, and `n` writes under way for each worker;
//! - log: the arguments of the epochs of three checkpoint intervals, and two segments for each of
//!   these epochs and for each worker and one more, in steps of `LOG_GROWTH_BYTES`;
//! - files: the image has rows, values, and what an empty store has; its pages may all be there
//!   twice, and the file grows by an eighth; their table has a few entries of 16 bytes for each;
//! - index and row entries: those of an empty database, and `INDEX_BYTES` and `ENTRY_BYTES` for
//!   each row of all tables;
//! - transient pool: `w + 1` times what one epoch may write, and `POOL_BYTES` for each worker;
//! - snapshots: nothing, when none is held;
//! - resident memory: that before the first open, the image twice, the log's file, the structures
//!   above as they are, `STACK_BYTES` for each thread, and `ALLOCATOR_BYTES`;
//! - threads `w + 2`, and descriptors of `FILES` files; none when it is closed;
//! - locks: one file of the store, and none when it is closed.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nvcaracal::{
    Data, Database, HashTable, Index, Options, Procedure, Sequence, Stop, Table, Transaction,
    Tuning, WriteSet, plain,
};
use sim::history::{Random, effort};

const WORKERS: u64 = 2;
const SEGMENT_BYTES: u64 = 4096;
const LOG_SEGMENT_BYTES: u64 = 4096;
const CHECKPOINT_EVERY: u64 = 8;
/// Calls that are under way, and those of an epoch.
const QUEUE_CALLS: u64 = 64;
/// Writes of a call.
const WRITES: u64 = 6;
/// Keys of each table.
const KEYS: u64 = 1500;
const NOTE_BYTES: u64 = 900;
/// Batches of a caller after which tables go other ways, about.
const BATCHES_OF_A_WAY: u64 = 6;
/// Threads that submit.
const CALLERS: u64 = 3;
/// Files of an open store, and what else is opened now and then.
const FILES: u64 = 10;
const INDEX_BYTES: u64 = 400;
const ENTRY_BYTES: u64 = 192;
const POOL_BYTES: u64 = 1 << 20;
/// The log's file grows by so much.
const LOG_GROWTH_BYTES: u64 = 4 << 20;
const STACK_BYTES: u64 = 256 << 10;
const ALLOCATOR_BYTES: u64 = 16 << 20;
/// With these the C library gives memory back that is freed: it would raise its thresholds with the
/// first large buffer, and keep 10 MB for later, which say nothing of a database.
const THRESHOLDS: [(&str, &str); 2] =
    [("MALLOC_MMAP_THRESHOLD_", "131072"), ("MALLOC_TRIM_THRESHOLD_", "65536")];

const LINES: Table<u64, u64> = Table::ordered("lines").with_row_bytes(64);
const HALVES: HashTable<u64, Half> = Table::hash("halves").with_row_bytes(128);
const NOTES: Table<u64, Vec<u8>> =
    Table::ordered("notes").with_value_bytes(NOTE_BYTES as u32).with_row_bytes(128);
const SHARED: HashTable<u64, Vec<u8>> =
    Table::hash("shared").with_value_bytes(100).with_row_bytes(256).with_shared_heap_bytes(168);
const OWNED: Table<u64, Owned> = Table::ordered("owned").with_row_bytes(128);
const BY_OWNER: Index<u64, u64, Owned> = OWNED.index("by owner", |_, of| Some(of.owner));
/// Of some rows only.
const EVEN: Index<u64, u64, Owned> =
    OWNED.unique_index("even", |key, of| of.owner.is_multiple_of(2).then_some(*key));
const NUMBERS: Sequence = Sequence::new("numbers");

const TABLES: usize = 5;
const ROW_BYTES: [u64; TABLES] = [64, 128, 128, 256, 128];
/// Tables that have values beside their rows, and the size classes of these.
const CLASSES: [(usize, &[u64]); 2] = [(2, &[128, 256, 512, 1024]), (3, &[128])];

plain! {
    /// Two of them fit beside a key.
    struct Half { bytes: [u8; 24] }
    struct Owned { owner: u64, count: u64 }
    /// By how much a table has grown.
    struct Grown { rows: i64 }
}

/// What a table does for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Data)]
enum Way {
    Grows,
    Shrinks,
    Changes,
}

/// Writes rows of a table, which follow from a seed.
#[derive(Debug, Clone, PartialEq, Data)]
struct Work {
    seed: u64,
    table: u64,
    way: Way,
}

/// The same without a write set, and with a number.
#[derive(Debug, Clone, PartialEq, Data)]
struct Wild {
    work: Work,
}

impl Work {
    /// The keys, and whether each row goes.
    fn writes(&self) -> impl Iterator<Item = (u64, u64, bool)> {
        let mut random = Random::new(self.seed);
        let shrinks = match self.way {
            Way::Grows => 5,
            Way::Shrinks => 95,
            Way::Changes => 40,
        };
        (0..1 + random.below(WRITES))
            .map(move |_| (random.below(KEYS), random.below(NOTE_BYTES), random.percent(shrinks)))
    }

    fn declare(&self, set: &mut WriteSet) {
        for (key, _, _) in self.writes() {
            match self.table {
                0 => set.insert(LINES, key),
                1 => set.insert(HALVES, key),
                2 => set.insert(NOTES, key),
                3 => set.insert(SHARED, key),
                _ => set.insert(OWNED, key),
            }
        }
    }

    fn write(&self, tx: &mut Transaction) -> Result<Grown, Stop> {
        let mut rows = 0;
        for (key, some, goes) in self.writes() {
            let bytes = || vec![some as u8; some as usize];
            let table = self.table;
            let was = match table {
                0 => tx.get(LINES, key)?.is_some(),
                1 => tx.get(HALVES, key)?.is_some(),
                2 => tx.get(NOTES, key)?.is_some(),
                3 => tx.get(SHARED, key)?.is_some(),
                _ => tx.get(OWNED, key)?.is_some(),
            };
            match (table, goes) {
                (0, true) => drop(tx.delete(LINES, key)?),
                (1, true) => drop(tx.delete(HALVES, key)?),
                (2, true) => drop(tx.delete(NOTES, key)?),
                (3, true) => drop(tx.delete(SHARED, key)?),
                (_, true) => drop(tx.delete(OWNED, key)?),
                (0, false) => tx.insert(LINES, key, &some)?,
                (1, false) => tx.insert(HALVES, key, &Half { bytes: [some as u8; 24] })?,
                (2, false) => tx.insert(NOTES, key, &bytes())?,
                (3, false) => tx.insert(SHARED, key, &bytes()[..some as usize / 9].to_vec())?,
                (_, false) => tx.insert(OWNED, key, &Owned { owner: some % 7, count: some })?,
            }
            rows += i64::from(!goes) - i64::from(was);
        }
        Ok(Grown { rows })
    }
}

impl Procedure for Work {
    const NAME: &'static str = "work";
    const SEQUENCES: bool = false;
    type Output = Grown;

    fn write_set(&self, set: &mut WriteSet) {
        self.declare(set);
    }

    fn run(&self, tx: &mut Transaction) -> Result<Grown, Stop> {
        if self.seed.is_multiple_of(31) {
            Err("it gives up")?;
        }
        assert!(!self.seed.is_multiple_of(37), "soak: planned");
        self.write(tx)
    }
}

impl Procedure for Wild {
    const NAME: &'static str = "wild";
    type Output = Grown;

    fn sequences(&self, sequences: &mut nvcaracal::Sequences) -> Result<(), nvcaracal::Abort> {
        sequences.allocate(NUMBERS.at(self.work.seed % 3));
        Ok(())
    }

    fn run(&self, tx: &mut Transaction) -> Result<Grown, Stop> {
        self.work.write(tx)
    }
}

fn options() -> Options {
    let options = Database::options().table(LINES).table(HALVES).table(NOTES).table(SHARED);
    let options = options.table(OWNED).index(BY_OWNER).index(EVEN).sequence(NUMBERS);
    let tuning = Tuning {
        segment_bytes: SEGMENT_BYTES,
        log_segment_bytes: LOG_SEGMENT_BYTES,
        queue_calls_max: QUEUE_CALLS as usize,
        epoch_calls_max: QUEUE_CALLS as usize,
        serial_calls_max: 8,
        ..Tuning::default()
    };
    options
        .procedure::<Work>()
        .procedure::<Wild>()
        .workers(WORKERS as usize)
        .tuning(tuning)
        .checkpoint_every(CHECKPOINT_EVERY)
        .cache_bytes(1 << 20)
        .data_bytes_max(1 << 30)
        .log_bytes_max(1 << 28)
}

/// What callers share.
#[derive(Default)]
struct World {
    ends: AtomicBool,
    /// What each table does.
    ways: [AtomicU64; TABLES],
    /// Rows of each table, and the most that it had.
    rows: [AtomicI64; TABLES],
    most: [AtomicI64; TABLES],
    calls: AtomicU64,
}

impl World {
    fn answered(&self, table: usize, grown: Grown) {
        let rows = self.rows[table].fetch_add(grown.rows, Ordering::SeqCst) + grown.rows;
        self.most[table].fetch_max(rows, Ordering::SeqCst);
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    /// Rows that a table may have had: those that calls under way add, too.
    fn rows_most(&self, table: usize) -> u64 {
        self.most[table].load(Ordering::SeqCst).max(0) as u64 + 2 * QUEUE_CALLS * WRITES
    }
}

/// Submits calls, alone and together.
fn call(world: &World, db: &Database, mut random: Random, until: Instant) {
    while !world.ends.load(Ordering::Relaxed) {
        // Now and then a table goes another way.
        if random.below(BATCHES_OF_A_WAY) == 0 {
            for way in &world.ways {
                way.store(random.below(3), Ordering::Relaxed);
            }
        }
        let tickets: Vec<_> = (0..1 + random.below(QUEUE_CALLS / CALLERS))
            .map(|_| {
                let table = random.below(TABLES as u64) as usize;
                let ways = [Way::Grows, Way::Shrinks, Way::Changes];
                let way = ways[world.ways[table].load(Ordering::Relaxed) as usize];
                let work = Work { seed: random.word(), table: table as u64, way };
                let ticket = match random.percent(20) {
                    true => db.submit(Wild { work }).unwrap(),
                    false => db.submit(work).unwrap(),
                };
                (table, ticket)
            })
            .collect();
        for (table, ticket) in tickets {
            match ticket.wait() {
                Ok(grown) => world.answered(table, grown),
                Err(error) => assert!(error.is_user_abort() || error.is_failed(), "{error}"),
            }
        }
        if Instant::now() >= until {
            world.ends.store(true, Ordering::Relaxed);
        }
    }
}

/// Takes snapshots, reads them, and holds them for a while.
fn look(world: &World, db: &Database, mut random: Random) {
    while !world.ends.load(Ordering::Relaxed) {
        let held: Vec<_> = (0..1 + random.below(3))
            .map(|_| {
                let snapshot = db.snapshot().unwrap();
                // Epochs that write come between two of them.
                let next = db.stats().epoch + random.below(10);
                while db.stats().epoch < next && !world.ends.load(Ordering::Relaxed) {
                    thread::yield_now();
                }
                snapshot
            })
            .collect();
        for snapshot in held {
            // It may have ended, if too much was kept for it.
            let owned = snapshot.range(OWNED, ..).filter_map(Result::ok).count();
            let by_owner = snapshot.range_by(BY_OWNER, ..).filter_map(Result::ok).count();
            let has_ended = snapshot.count(OWNED, ..).is_err();
            assert!(has_ended || owned == by_owner, "{owned} rows, {by_owner} in their index");
        }
    }
}

/// What a process holds.
#[derive(Debug, Clone, Copy)]
struct Held {
    resident: u64,
    threads: u64,
    descriptors: u64,
}

fn held() -> Held {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let number = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    };
    let descriptors = fs::read_dir("/proc/self/fd").unwrap().count() as u64;
    Held { resident: number("VmRSS:") << 10, threads: number("Threads:"), descriptors }
}

/// The same, once threads that are about to end have ended.
fn held_by(threads: u64) -> Held {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let now = held();
        if now.threads <= threads || Instant::now() > until {
            return now;
        }
        thread::yield_now();
    }
}

/// Bytes that the image has grown to.
fn image_bytes(store: &Path) -> u64 {
    let data = fs::read(store.join("data")).unwrap();
    u64::from_le_bytes(*data[40..].first_chunk().unwrap())
}

/// Files of a store: their lengths, and how many of them are locked.
fn files(store: &Path) -> (BTreeMap<String, u64>, usize) {
    let locks = fs::read_to_string("/proc/locks").unwrap();
    let mut lengths = BTreeMap::new();
    let mut locked = 0;
    for file in fs::read_dir(store).unwrap() {
        let file = file.unwrap();
        let meta = file.metadata().unwrap();
        lengths.insert(file.file_name().into_string().unwrap(), meta.len());
        let inode = format!(":{} ", meta.ino());
        locked += usize::from(locks.lines().any(|line| line.contains(&inode)));
    }
    (lengths, locked)
}

/// Most bytes that so many slots take: see above.
fn pool(slots: u64, slot_bytes: u64) -> u64 {
    let lists = WORKERS * (2 + slots / (SEGMENT_BYTES / 8));
    (slots.div_ceil(SEGMENT_BYTES / slot_bytes) + WORKERS + lists) * SEGMENT_BYTES
}

/// What was there before any row.
struct Empty {
    held: Held,
    index: u64,
    entries: u64,
    image: u64,
}

/// What is more than it may be.
#[derive(Default)]
struct Excess(Vec<String>);

impl Excess {
    fn at_most(&mut self, what: &str, found: u64, bound: u64) {
        let line = format!("{what}: {found}, at most {bound}");
        println!("{line}");
        if found > bound {
            self.0.push(line);
        }
    }

    fn end(self) {
        assert!(self.0.is_empty(), "more than the live rows need: {}", self.0.join("; "));
    }
}

/// Compares what is held at a quiet moment, with no snapshot and no call under way, with what the
/// live rows need.
fn check(world: &World, db: &Database, store: &Path, empty: &Empty) {
    let mut excess = Excess::default();
    db.checkpoint().unwrap();
    let until = Instant::now() + Duration::from_secs(20);
    let memory = loop {
        let memory = db.memory().unwrap();
        if memory.snapshots == 0 || Instant::now() > until {
            break memory;
        }
    };
    excess.at_most("snapshots", memory.snapshots, 0);
    let writes = QUEUE_CALLS * WRITES;
    let tables = 0..TABLES;
    let rows_most: u64 = tables.clone().map(|table| world.rows_most(table)).sum();
    let rows: u64 = tables.map(|table| pool(world.rows_most(table), ROW_BYTES[table])).sum();
    let of_table = |&(table, classes): &(usize, &[u64])| -> u64 {
        let slots = 2 * world.rows_most(table) + (WORKERS + 1) * writes;
        classes.iter().map(|&bytes| pool(slots, bytes)).sum()
    };
    let values: u64 = CLASSES.iter().map(of_table).sum();
    // Rows of sequences, and segments begun.
    let rows = rows + pool(3, 64);
    excess.at_most("rows on the device", memory.persistent_rows, rows);
    excess.at_most("values on the device", memory.persistent_values, values);
    excess.at_most("index", memory.index, empty.index + INDEX_BYTES * rows_most);
    excess.at_most("row entries", memory.row_entries, empty.entries + ENTRY_BYTES * rows_most);
    let pools = (WORKERS + 1) * writes * (NOTE_BYTES + 64) + WORKERS * POOL_BYTES;
    excess.at_most("transient pool", memory.transient_pool, pools);
    let epochs = 3 * CHECKPOINT_EVERY;
    let log = epochs * (QUEUE_CALLS * 64 + 2 * (WORKERS + 1) * LOG_SEGMENT_BYTES);
    let log = log.next_multiple_of(LOG_GROWTH_BYTES);
    excess.at_most("log", memory.input_log, log);
    let (lengths, locked) = files(store);
    let length = |file: &str| lengths.get(file).copied().unwrap_or_default();
    let most = empty.image + rows + values;
    let image = image_bytes(store);
    excess.at_most("image", image, most);
    excess.at_most("pages", length("data"), (2 * image + 2 * pmem::PAGE_BYTES) / 8 * 9);
    excess.at_most("page table", length("table"), 16 * 8 * (image / pmem::PAGE_BYTES + 4096));
    excess.at_most("log file", length("log"), log);
    assert_eq!(locked, 1, "locked files of {lengths:?}");
    let threads = empty.held.threads + WORKERS + 2;
    let now = held_by(threads);
    excess.at_most("threads", now.threads, threads);
    excess.at_most("descriptors", now.descriptors, empty.held.descriptors + FILES);
    let structures = memory.index + memory.row_entries + memory.transient_pool + memory.cache;
    let of_files = 2 * image + length("log");
    let resident = empty.held.resident + of_files + structures;
    let resident = resident + (threads + CALLERS + 1) * STACK_BYTES + ALLOCATOR_BYTES;
    excess.at_most("resident memory", now.resident, resident);
    excess.end();
}

/// Says nothing of panics that are meant.
fn silence() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if info.payload_as_str() != Some("soak: planned") {
            usual(info);
        }
    }));
}

/// Callers do what they do for a while; their threads have ended then.
fn run_for(world: &World, db: &Database, random: &mut Random, time: Duration) {
    world.ends.store(false, Ordering::Relaxed);
    let until = Instant::now() + time;
    for way in &world.ways {
        way.store(random.below(3), Ordering::Relaxed);
    }
    thread::scope(|scope| {
        for _ in 0..CALLERS {
            let random = Random::new(random.word());
            scope.spawn(move || call(world, db, random, until));
        }
        let looks = Random::new(random.word());
        scope.spawn(|| look(world, db, looks));
    });
}

/// Runs the test in a process of its own with [`THRESHOLDS`], which count from its start.
#[test]
fn what_is_held_follows_from_the_live_rows() {
    if std::env::var_os(THRESHOLDS[0].0).is_some() {
        return soak();
    }
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", "what_is_held_follows_from_the_live_rows", "--nocapture"]);
    assert!(again.envs(THRESHOLDS).status().unwrap().success(), "see above");
}

fn soak() {
    silence();
    let seed = effort("NVCARACAL_FIRST_SEED", 1);
    let until = Instant::now() + Duration::from_secs(effort("NVCARACAL_SOAK_SECONDS", 3));
    let (random, world) = (&mut Random::new(seed), World::default());
    let room = tempfile::tempdir().unwrap();
    let store = room.path().join("store");
    // Whatever a first open leaves for ever is there.
    options().open(&store).unwrap().close().unwrap();
    let before = held();
    let db = options().open(&store).unwrap();
    let memory = db.memory().unwrap();
    let empty = Empty {
        held: before,
        index: memory.index,
        entries: memory.row_entries,
        image: image_bytes(&store),
    };
    db.close().unwrap();
    let mut rounds = 0;
    while rounds < 2 || Instant::now() < until {
        rounds += 1;
        let db = options().open(&store).unwrap();
        let lives = 1 + random.below(5);
        for _ in 0..lives {
            let left = until.saturating_duration_since(Instant::now());
            let time = Duration::from_millis(200 + random.below(4000)).min(left);
            run_for(&world, &db, random, time.max(Duration::from_millis(200)));
            println!("round {rounds}, {} calls", world.calls.load(Ordering::Relaxed));
            check(&world, &db, &store, &empty);
        }
        let rows: i64 = world.rows.iter().map(|rows| rows.load(Ordering::SeqCst)).sum();
        let are = db.stats().rows;
        assert!((rows as u64..=rows as u64 + 3).contains(&are), "{are} rows, {rows} were written");
        db.close().unwrap();
        let now = held_by(before.threads);
        let mut excess = Excess::default();
        excess.at_most("threads of a closed database", now.threads, before.threads);
        excess.at_most("its descriptors", now.descriptors, before.descriptors);
        excess.end();
        assert_eq!(files(&store).1, 0, "locked files of a closed database");
    }
}
