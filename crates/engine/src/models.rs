//! Models for `loom`: the smallest cells of the engine under all schedules, and with all that the
//! memory orderings allow (ring R4 in docs/testing.md):
//!
//!     cargo test -p nvcaracal-engine --features loom --lib models
//!
//! The code is the engine's own. What a thread of a model did not touch itself must be ordered
//! after what made it: a missing release or acquire shows as unordered accesses, or as a value that
//! should have been seen.

use std::sync::{Arc, OnceLock};

use pmem::sync::Mutex;
use pmem::sync::atomic::{AtomicBool, Ordering};
use pmem::sync::{model, reads, spawn, writes};
use pmem::{AnyDevice, Dram};
use storage::{EpochNumber, IndexKind, NewValue, Position, SerialId, Store, TableDefinition};

use crate::engine::Engine;
use crate::engine::new_worker;
use crate::index::{EntryId, HashIndex};
use crate::program::procedure::ProcedureTable;
use crate::state::config::EngineConfig;
use crate::state::core::Core;
use crate::stats::WorkCounts;
use crate::version::{
    Appended, AppendedBy, Chains, EntrySlab, KeepPersistent, Publication, Publisher, ReadPhase,
    RowEntry, RowPlace, Stopped, TestValues, TransientPool, ValueWord, Waiter, Write,
};
use crate::worker::{Barrier, Progress, Worker};
use crate::worker_id::WorkerId;

const EPOCH: EpochNumber = EpochNumber(5);

fn sid(position: u64) -> SerialId {
    SerialId::new(EPOCH, Position(position as u32))
}

/// A store with the place of a row, for all models.
struct Fixture {
    store: Arc<Store>,
    row: u64,
}

fn fixture() -> &'static Fixture {
    static FIXTURE: OnceLock<Fixture> = OnceLock::new();
    FIXTURE.get_or_init(|| {
        let device = AnyDevice::new(Dram::new(64 << 20, 16 << 20).unwrap());
        let tables = [TableDefinition {
            name: "rows".into(),
            index: IndexKind::Hash,
            key_bytes_max: 8,
            value_bytes_max: 64,
            row_bytes: 0,
            shared_heap_bytes: 0,
        }];
        let config = EngineConfig::default();
        let (mut engine, _) = Engine::open(device, config, &tables, ProcedureTable::new()).unwrap();
        let store = Arc::clone(&engine.store);
        store.segments().reserve(store.device().as_ref(), 4).unwrap();
        let row = engine.workers[0].row_store.allocate(0, store.segments());
        Fixture { store, row }
    })
}

/// A row and the workers that use it.
struct Cell {
    slab: EntrySlab,
    id: EntryId,
    stopped: AtomicBool,
}

impl Cell {
    /// A row that is born in this epoch, claimed by the writers at `positions`.
    fn new(pool: &mut TransientPool, positions: &[u64]) -> Arc<Self> {
        let (slab, ids) = EntrySlab::of_rows(1);
        let id = ids[0];
        let cell = Arc::new(Self { slab, id, stopped: AtomicBool::new(false) });
        cell.entry().initialise(RowPlace::of_two(fixture().row), ValueWord::PENDING, SerialId(1));
        // As of an epoch before: all words of the entry begin here.
        cell.entry().append(
            SerialId::new(EPOCH.previous(), Position(0)),
            pool,
            &mut KeepPersistent,
        );
        for &position in positions {
            cell.entry().append(sid(position), pool, &mut KeepPersistent);
        }
        assert!(!cell.stopped.load(Ordering::Relaxed));
        cell
    }

    fn entry(&self) -> &RowEntry {
        self.slab.get(self.id)
    }

    /// What a serial id reads, in place.
    fn read(&self, sid: SerialId) -> Result<Vec<u8>, Stopped> {
        let seen = self.entry().read(sid, &mut Waiter::new(&self.stopped))?;
        Ok(ReadPhase::of(&TestValues).bytes(seen.word).to_vec())
    }

    fn publish(&self, worker: &mut Worker, position: u64, write: Write<'_>) {
        let Worker { local, row_store, .. } = worker;
        let store = &fixture().store;
        let mut with = Publisher {
            segments: store.segments(),
            checkpoint_epoch: EPOCH.previous(),
            pool: &mut local.pool,
            cache: &mut local.cache,
            work: &mut local.work,
            waiter: Waiter::new(&self.stopped),
        };
        let layout = &store.tables()[0].layout;
        let entry = self.entry();
        let (initial, place) = (entry.initial_version(), crate::version::NO_PLACE);
        let to =
            Publication { id: self.id, word: 7, entry, layout, sid: sid(position), initial, place };
        row_store.publish(&to, write, &mut with).expect("the engine runs");
        row_store.reveal();
    }
}

/// A worker, on the heap: explored threads have small stacks.
#[inline(never)]
fn worker(number: usize, cache_bytes: u64) -> Box<Worker> {
    let config = EngineConfig { cache_bytes, ..EngineConfig::default() };
    Box::new(new_worker(WorkerId::from_index(number), &config, &fixture().store).unwrap())
}

fn explore(what: &str, preemptions: Option<usize>, run: impl Fn() + Send + Sync + 'static) {
    fixture();
    let schedules = model(preemptions, run);
    println!("{what}: {schedules} schedules");
    assert!(schedules > 1);
}

/// O-06, O-15: a reader that waits for a final write sees the whole value, on the device or in the
/// cache.
#[test]
fn o_06_a_value_is_there_before_its_version() {
    for cache_bytes in [0, 4096] {
        explore(&format!("publish, cache of {cache_bytes}"), None, move || {
            let mut writer = worker(0, cache_bytes);
            let cell = Cell::new(&mut writer.local.pool, &[1]);
            let writing = Arc::clone(&cell);
            let thread = spawn(move || {
                writing.publish(&mut writer, 1, Write::Value(NewValue::whole(&[7; 24])));
                writer
            });
            assert_eq!(cell.read(sid(2)), Ok(vec![7; 24]));
            thread.join().unwrap();
        });
    }
}

/// O-06, O-14: the same for a version array: a transient value, then a last version that is
/// ignored, whose owner makes the first one persistent.
#[test]
fn o_14_the_owner_of_the_last_version_waits_for_the_one_before() {
    explore("version array", None, || {
        let mut first = worker(0, 0);
        let mut last = worker(1, 0);
        let cell = Cell::new(&mut first.local.pool, &[1, 2]);
        let writing = Arc::clone(&cell);
        let thread = spawn(move || {
            writing.publish(&mut first, 1, Write::Value(NewValue::whole(&[7; 24])));
            first
        });
        cell.publish(&mut last, 2, Write::Ignore);
        assert_eq!(cell.read(sid(3)), Ok(vec![7; 24]));
        assert!(cell.entry().persistent_version().is_persistent());
        assert_eq!(ReadPhase::of(&TestValues).bytes(cell.entry().persistent_version()), [7; 24]);
        thread.join().unwrap();
    });
}

/// O-13, O-16: two workers append to one row; after the barrier both find the same versions.
#[test]
fn o_16_a_version_array_is_there_before_its_tag() {
    explore("append", None, || {
        let mut pool = TransientPool::new(WorkerId(0)).unwrap();
        let cell = Cell::new(&mut pool, &[]);
        let barrier = Arc::new(Barrier::new(2));
        drop(format!("{barrier:?}"));
        let append = |cell: &Cell, barrier: &Barrier, position| {
            let mut pool = TransientPool::new(WorkerId(0)).unwrap();
            cell.entry().append(sid(position), &mut pool, &mut KeepPersistent);
            barrier.wait(&cell.stopped).unwrap();
            match cell.entry().versions(EPOCH) {
                crate::version::Versions::Array(array) => {
                    assert_eq!(array.sorted(), [1, 2].map(Position))
                }
                _ => panic!("it has two writers"),
            }
            pool
        };
        let other = (Arc::clone(&cell), Arc::clone(&barrier));
        let thread = spawn(move || append(&other.0, &other.1, 2));
        let mine = append(&cell, &barrier, 1);
        drop((thread.join().unwrap(), mine));
    });
}

/// O-13, O-16: the same with batch append: one of them claims the row, the other collects, and the
/// worker that makes the array finds both.
#[test]
fn o_16_a_batch_is_there_before_its_array_is_made() {
    explore("batch append", None, || {
        let mut pool = TransientPool::new(WorkerId(0)).unwrap();
        let cell = Cell::new(&mut pool, &[]);
        let barrier = Arc::new(Barrier::new(2));
        let buffers = Arc::new([const { Mutex::new(Vec::new()) }; 2]);
        drop(format!("{barrier:?} {buffers:?}"));
        let append = |cell: &Cell, barrier: &Barrier, buffers: &[Mutex<Vec<Appended>>; 2], me| {
            let mut pool = TransientPool::new(WorkerId::from_index(me)).unwrap();
            let position = Position(1 + me as u32);
            let by = AppendedBy::new(WorkerId::from_index(me), EPOCH);
            if cell
                .entry()
                .claim(sid(position.0.into()), by, &mut pool, &mut KeepPersistent)
                .is_err()
            {
                buffers[me].lock().unwrap().push(Appended { position, id: cell.id });
            }
            barrier.wait(&cell.stopped).unwrap();
            if me == 0 {
                let mut chains = Chains::default();
                for buffer in buffers {
                    let buffer = buffer.lock().unwrap();
                    buffer.iter().for_each(|&append| chains.add(&cell.slab, append));
                }
                chains.build(&cell.slab, by, &mut pool, &mut WorkCounts::default(), None);
            }
            barrier.wait(&cell.stopped).unwrap();
            match cell.entry().versions(EPOCH) {
                crate::version::Versions::Array(array) => {
                    assert_eq!(array.sorted(), [1, 2].map(Position))
                }
                _ => panic!("it has two writers"),
            }
            pool
        };
        let other = (Arc::clone(&cell), Arc::clone(&barrier), Arc::clone(&buffers));
        let thread = spawn(move || append(&other.0, &other.1, &other.2, 1));
        let mine = append(&cell, &barrier, &buffers, 0);
        drop((thread.join().unwrap(), mine));
    });
}

/// O-13: what was stored before a barrier is there after it, in every round.
#[test]
fn o_13_a_barrier_orders_everything_before_it() {
    let model = |parties: usize, rounds: usize| {
        move || {
            let stopped = Arc::new(AtomicBool::new(false));
            let barrier = Arc::new(Barrier::new(parties));
            let plain: Arc<Vec<u64>> = Arc::new(vec![0; parties * rounds]);
            drop(format!("{barrier:?} {stopped:?}"));
            let run = move |me: usize| {
                for round in 0..rounds {
                    writes(&plain[round * parties + me]);
                    barrier.wait(&stopped).unwrap();
                    (0..parties).for_each(|other| reads(&plain[round * parties + other]));
                }
            };
            let run = Arc::new(run);
            let threads: Vec<_> = (1..parties)
                .map(|me| {
                    let run = Arc::clone(&run);
                    spawn(move || run(me))
                })
                .collect();
            run(0);
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        }
    };
    explore("barrier, 2 workers, 2 rounds", None, model(2, 2));
}

/// O-50: a worker at a barrier or before a version stops waiting when the engine is stopped.
#[test]
fn o_50_nobody_waits_once_the_engine_is_stopped() {
    explore("stop", None, || {
        let (slab, _) = EntrySlab::of_rows(0);
        let core = Core::new(EngineConfig::default(), Vec::new(), slab, 0);
        let core = Arc::new(core);
        let mut pool = TransientPool::new(WorkerId(0)).unwrap();
        let cell = Cell::new(&mut pool, &[1]);
        let barrier = Barrier::new(2);
        drop(format!("{barrier:?} {:?}", core.stopped()));
        let other = Arc::clone(&core);
        let thread = spawn(move || other.stop("it died".into()));
        let seen = cell.entry().read(sid(2), &mut Waiter::new(core.stopped()));
        assert_eq!(seen, Err(Stopped));
        assert_eq!(barrier.wait(core.stopped()), Err(Stopped));
        assert_eq!(core.stop_reason().as_deref(), Some("it died"));
        thread.join().unwrap();
    });
}

/// O-15: a reader says how far it is after it has read, and only then the memory of what it read is
/// reclaimed, by the worker that published the version after it, if it saw the version before.
#[test]
fn o_15_memory_is_used_again_after_all_reads_of_it() {
    let reused = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let sum = Arc::clone(&reused);
    explore("reuse", None, move || {
        let (mut first, mut second) = (worker(0, 0), worker(1, 0));
        let cell = Cell::new(&mut first.local.pool, &[1, 3, 4, 5]);
        let progress = Arc::new([Progress::default(), Progress::default()]);
        drop(format!("{progress:?}"));
        let (other, all) = (Arc::clone(&cell), Arc::clone(&progress));
        let thread = spawn(move || {
            other.publish(&mut second, 3, Write::Value(NewValue::whole(&[8; 24])));
            all[1].note(Position(4));
            let taken_back = second.local.pool.take_back(Progress::of_all(&*all));
            other.publish(&mut second, 4, Write::Value(NewValue::whole(&[9; 24])));
            (taken_back, second)
        });
        // Call 2 may go on after call 3 has ended; then this worker takes a later one.
        cell.publish(&mut first, 1, Write::Value(NewValue::whole(&[7; 24])));
        let before = cell.entry().read(sid(2), &mut Waiter::new(&cell.stopped)).unwrap().word;
        assert_eq!(ReadPhase::of(&TestValues).bytes(before), [7; 24]);
        progress[0].note(Position(6));
        let (taken_back, _second) = thread.join().unwrap();
        let after = cell.entry().read(sid(5), &mut Waiter::new(&cell.stopped)).unwrap().word;
        assert_eq!(ReadPhase::of(&TestValues).bytes(after), [9; 24]);
        assert_eq!(after == before, taken_back == 1);
        sum.fetch_add(taken_back, std::sync::atomic::Ordering::Relaxed);
    });
    assert!(reused.load(std::sync::atomic::Ordering::Relaxed) > 0);
}

/// O-15, O-20: one worker caches what it read, another finds and touches it.
#[test]
fn o_20_a_cached_version_is_whole_when_it_is_found() {
    explore("cached version", None, || {
        let mut writer = worker(0, 4096);
        let cell = Cell::new(&mut writer.local.pool, &[1]);
        cell.publish(&mut writer, 1, Write::Value(NewValue::whole(&[7; 24])));
        cell.entry().set_cached(None);
        let read = |cell: &Cell, worker: &mut Worker| {
            let later = SerialId::new(EPOCH.next(), Position(4));
            assert_eq!(cell.read(later), Ok(vec![7; 24]));
            let bytes = [7; 24];
            if let Some(word) = worker.local.cache.create(cell.id, &bytes, EPOCH.next())
                && !cell.entry().install_cached(word)
            {
                worker.local.cache.discard(word, EPOCH.next());
            }
            assert_eq!(cell.read(later), Ok(vec![7; 24]));
        };
        let mut second = worker(1, 4096);
        let other = Arc::clone(&cell);
        let thread = spawn(move || {
            read(&other, &mut second);
            second
        });
        read(&cell, &mut writer);
        thread.join().unwrap();
    });
}

/// O-08: of two inserters of one key exactly one creates the row, and the smaller serial id is its
/// birth.
#[test]
fn o_08_exactly_one_inserter_creates_the_row() {
    explore("insert", None, || {
        let mut pool = TransientPool::new(WorkerId(0)).unwrap();
        let cell = Cell::new(&mut pool, &[]);
        let index = Arc::new(HashIndex::new(0));
        index.find_or_begin(7, |_| true).unwrap_err().fill(EntryId(900));
        assert!(index.remove(7, EntryId(900)));
        let insert = |index: &HashIndex, cell: &Cell, position| match index
            .find_or_begin(7, |_| true)
        {
            Ok(id) => {
                assert_eq!(id, cell.id);
                cell.entry().born_by(sid(position));
                false
            }
            Err(vacant) => {
                let born = sid(position);
                cell.entry().initialise(RowPlace::of_two(fixture().row), ValueWord::PENDING, born);
                vacant.fill(cell.id);
                true
            }
        };
        let other = (Arc::clone(&index), Arc::clone(&cell));
        let thread = spawn(move || insert(&other.0, &other.1, 1));
        let mine = insert(&index, &cell, 2);
        assert_ne!(thread.join().unwrap(), mine);
        assert_eq!(cell.entry().birth(), sid(1));
    });
}
