//! A case: one database over some lives, with callers in each; all choices follow from a seed, but
//! for the order in which threads come on.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use nvcaracal::{Database, DeviceSpec, Options, Tuning};
use sim::disk::Disk;
use sim::history::Random;
use tempfile::TempDir;

use crate::callers::Caller;
use crate::program::{call, program};
use crate::records::{History, Known, Record};
use crate::world::{Habits, Numbers, World, begin, now_ns};

/// Crashes of each life that are looked at.
const CRASHES: usize = 2;
/// Times that the memory of snapshots is looked at until it is free.
const LOOKS: usize = 100;

/// Sizes that are the same for ever.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    data_bytes: u64,
    log_bytes: u64,
}

/// A case.
pub(crate) struct Case {
    random: Random,
    sizes: Sizes,
    habits: Habits,
    numbers: Arc<Numbers>,
    /// Where databases are; absent for one in memory.
    room: Option<TempDir>,
    databases: u64,
}

/// A database that is open, and what must be in it.
struct Opened {
    world: Arc<World>,
    /// What is known of it, and what was before it was opened, and happened until then: a crash can
    /// take it back to there.
    known: Known,
    before: (Known, History),
    path: PathBuf,
}

impl Case {
    pub(crate) fn of_seed(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let is_in_memory = random.percent(25);
        let sizes = Sizes {
            data_bytes: random.pick(&[1 << 26, 1 << 26, 1 << 20]),
            log_bytes: random.pick(&[1 << 26, 1 << 26, 64 << 10, 128 << 10]),
        };
        let habits = Habits {
            keys: random.pick(&[1, 3, 8, 8, 30]),
            filler: random.pick(&[0, 100, 8000]),
            batch: random.pick(&[3, 12, 12, 30]),
            is_later: false,
        };
        let room = || {
            let memory = Path::new("/dev/shm");
            let room =
                if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
            room.expect("a directory")
        };
        let room = (!is_in_memory).then(room);
        Self { random, sizes, habits, numbers: Arc::default(), room, databases: 0 }
    }

    /// Runs it.
    ///
    /// # Errors
    /// What is wrong.
    pub(crate) fn run(mut self) -> Result<(), String> {
        let (path, disk) = (self.path(), self.room.is_some().then(Disk::default));
        let mut opened = self.open((path, disk), (&Known::default(), History::default()))?;
        for _ in 0..1 + self.random.below(3) {
            opened = self.live(opened)?;
            if self.room.is_none() {
                return Ok(());
            }
        }
        opened.close()
    }

    /// A place for a database.
    fn path(&mut self) -> PathBuf {
        self.databases += 1;
        let room = self.room.as_ref().map_or(Path::new(""), TempDir::path);
        room.join(self.databases.to_string())
    }

    fn options(&mut self) -> Options {
        let random = &mut self.random;
        let workers = 1 + random.below(3) as usize;
        let tuning = Tuning {
            segment_bytes: 4096,
            log_segment_bytes: 4096,
            serial_calls_max: random.pick(&[0, 0, 0, 2, 64]),
            queue_calls_max: random.pick(&[1, 2, 5, 30, 100_000]),
            epoch_calls_max: random.pick(&[1, 5, 20_000, 20_000]),
            ..Tuning::default()
        };
        program(Database::options(), self.habits.is_later)
            .tuning(tuning)
            .data_bytes_max(self.sizes.data_bytes)
            .log_bytes_max(self.sizes.log_bytes)
            .workers(workers)
            .checkpoint_every(random.pick(&[1, 3, 100]))
            .snapshot_bytes_max(random.pick(&[2000, 1 << 20, 1 << 20]))
            .contention_epochs(random.pick(&[0, 0, 5]))
            .wall_clock(now_ns)
    }

    /// Opens a database, and sees what is in it.
    fn open(
        &mut self,
        (path, disk): (PathBuf, Option<Disk>),
        (known, mut history): (&Known, History),
    ) -> Result<Opened, String> {
        // What the later program has opened the one of before opens no more.
        self.habits.is_later |= self.random.percent(20);
        let options = self.options();
        let disk = disk.map(Arc::new);
        let db = match &disk {
            None => options.open_device(DeviceSpec::Dram),
            Some(disk) => options.disk_hook(disk.hook()).open(&path),
        };
        let db = db.map_err(|error| format!("open: {error}"))?;
        let (habits, numbers) = (self.habits, Arc::clone(&self.numbers));
        let world = World { db, disk, habits, numbers };
        // A call: those that were deferred before the end of the last life are done before it.
        let act = world.act(&mut self.random);
        let submitted = world.moment();
        let (batch, order) = (None, None);
        let mut record = Record { act: act.clone(), submitted, answer: None, batch, order };
        record.answer = Some((record.read(call(&world.db, act))?, world.moment()));
        history.is_past();
        history.records.push(record);
        let after = history.verify(known, &world.content()?)?;
        let before = (known.clone(), history);
        Ok(Opened { world: Arc::new(world), known: after, before, path })
    }

    /// Callers do what they like, and the database is closed; it is opened again as it was left,
    /// and as crashes leave it. Goes on with one of them.
    fn live(&mut self, opened: Opened) -> Result<Opened, String> {
        let Opened { world, known, before, path } = opened;
        let callers: Vec<_> = (0..1 + self.random.below(6))
            .map(|_| {
                let caller = Caller::new(Arc::clone(&world), self.random.word());
                let steps = 5 + self.random.below(40);
                begin("a caller", move || caller.run(steps))
            })
            .collect();
        let is_quiet = world.disk.is_none() || self.random.percent(40);
        let closing = (!is_quiet).then(|| {
            thread::sleep(Duration::from_micros(self.random.below(15_000)));
            let db = world.db.clone();
            begin("close", move || db.close())
        });
        let mut history = History::default();
        for caller in callers {
            let of_caller = caller()??;
            history.records.extend(of_caller.records);
            history.seen.extend(of_caller.seen);
        }
        match closing {
            Some(closing) => closing()?.map_err(|error| format!("close: {error}"))?,
            None => end_quietly(&world, &history, &known)?,
        }
        let Some(disk) = &world.disk else {
            return Ok(Opened { world, known, before, path });
        };
        let mut next = self
            .open((path, Some(disk.after())), (&known, history.clone()))
            .map_err(|what| format!("after a close: {what}"))?;
        let (known, mut all) = before;
        all.records.extend(history.records);
        all.seen.extend(history.seen);
        for _ in 0..CRASHES {
            let at = self.random.below(disk.changes() as u64 + 1) as usize;
            let crashed = self.crash(disk, at, (&known, &all));
            let crashed = crashed.map_err(|what| {
                format!("after a crash at change {at} of {}: {what}", disk.changes())
            })?;
            let left = match self.random.percent(60) {
                true => std::mem::replace(&mut next, crashed),
                false => crashed,
            };
            left.close()?;
        }
        Ok(next)
    }

    fn crash(
        &mut self,
        disk: &Disk,
        at: usize,
        (known, history): (&Known, &History),
    ) -> Result<Opened, String> {
        let path = self.path();
        std::fs::create_dir(&path).map_err(|error| error.to_string())?;
        let left = disk.crash(at, &mut self.random, &path).map_err(|error| error.to_string())?;
        self.open((path, Some(left)), (known, history.until(at)))
    }
}

impl Opened {
    fn close(self) -> Result<(), String> {
        let db = self.world.db.clone();
        drop(self);
        begin("close", move || db.close())()?.map_err(|error| format!("close: {error}"))
    }
}

/// All callers have lost: nothing waits, and nothing of theirs is left.
fn end_quietly(world: &World, history: &History, known: &Known) -> Result<(), String> {
    world.wait_until_idle()?;
    history.verify(known, &world.content()?)?;
    let stats = world.db.stats();
    let waiting = (stats.queued_calls, stats.queued_bytes);
    if waiting != (0, 0) || stats.blocked_submitters != 0 {
        return Err(format!(
            "{waiting:?} calls and bytes wait, {} threads",
            stats.blocked_submitters
        ));
    }
    let bytes = || world.db.memory().map(|memory| memory.snapshots);
    let is_free = (0..LOOKS).any(|_| bytes().is_ok_and(|bytes| bytes == 0));
    if !is_free {
        return Err(format!("{:?} bytes are kept for snapshots, of which none lives", bytes()));
    }
    let db = world.db.clone();
    begin("close", move || db.close())()?.map_err(|error| format!("close: {error}"))
}
