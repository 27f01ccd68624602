//! Power cuts and kills at calls of the device, and of the change log beside it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use sim::disk::Disk;
use sim::history::Random;
use storage::{ChangeLogCall, ChangeLogHook};

use super::{Put, STOCK, files_of, follow, options, rows_of};
use crate::common::directory;

/// The directory of the change log at some moment.
#[derive(Debug, Clone, Default)]
struct Moment {
    /// So many changes of the device's files came before.
    at: usize,
    files: BTreeMap<PathBuf, Vec<u8>>,
    /// Bytes of each file that a power cut leaves.
    synced: BTreeMap<PathBuf, usize>,
}

/// Notes each state of a change log's directory.
#[derive(Debug)]
struct Watch {
    disk: Arc<Disk>,
    changes: PathBuf,
    moments: Mutex<Vec<Moment>>,
}

impl Watch {
    fn note(&self, is_synced: bool) {
        let mut moments = self.moments.lock().unwrap();
        let mut moment = Moment { at: self.disk.changes(), ..Moment::default() };
        let before = moments.last().cloned().unwrap_or_default();
        for entry in fs::read_dir(&self.changes).into_iter().flatten() {
            let path = entry.unwrap().path();
            let name = PathBuf::from(path.file_name().unwrap());
            let bytes = fs::read(path).unwrap();
            // The list of consumers is synced before it has its name.
            let is_durable = is_synced || name == Path::new("consumers");
            // What was cut off an end that was damaged is synced before more is written.
            let synced = before.synced.get(&name).map_or(0, |synced| bytes.len().min(*synced));
            moment.synced.insert(name.clone(), if is_durable { bytes.len() } else { synced });
            moment.files.insert(name, bytes);
        }
        moments.push(moment);
    }
}

impl ChangeLogHook for Watch {
    fn reach(&self, call: ChangeLogCall) -> io::Result<()> {
        self.note(call == ChangeLogCall::Synced);
        Ok(())
    }
}

impl Moment {
    /// Writes what a power cut leaves: of each file what was synced, and of the rest a part, or
    /// zeros, or other bytes.
    fn cut(&self, random: &mut Random, changes: &Path) {
        fs::create_dir(changes).unwrap();
        for (name, bytes) in &self.files {
            let synced = self.synced[name];
            let kept = synced + random.below((bytes.len() - synced) as u64 + 1) as usize;
            let mut left = bytes[..kept].to_vec();
            match random.below(3) {
                0 => left.resize(bytes.len(), 0),
                1 => left.resize_with(bytes.len(), || random.byte(255)),
                _ => {}
            }
            fs::write(changes.join(name), left).unwrap();
        }
    }
}

/// What was done in a run, to compare with.
struct Run {
    disk: Arc<Disk>,
    moments: Vec<Moment>,
    /// What the consumer had made of the changes, by the position that it confirmed.
    confirmed: BTreeMap<u64, BTreeMap<u64, u64>>,
}

fn run(random: &mut Random, path: &Path) -> Run {
    let disk = Arc::new(Disk::default());
    let changes = path.join("changes");
    let moments = Mutex::default();
    let watch = Arc::new(Watch { disk: Arc::clone(&disk), changes, moments });
    let options = options().disk_hook(disk.hook()).change_log_hook(watch.clone());
    let db = options.checkpoint_every(1 + random.below(5)).open(path).unwrap();
    for item in 0..random.below(4) {
        db.call(Put { item, pieces: 1 }).unwrap();
    }
    let mut copied = rows_of(&db);
    let mut consumer = db.consumer("copy", STOCK).unwrap();
    watch.note(true);
    let mut confirmed = BTreeMap::from([(consumer.changes().epoch(), copied.clone())]);
    for _ in 0..12 + random.below(12) {
        db.call(Put { item: random.below(9), pieces: random.below(4) }).unwrap();
        match random.below(6) {
            0 => {
                watch.note(false);
                follow(&mut consumer, &mut copied).unwrap();
                consumer.confirm().unwrap();
                confirmed.insert(consumer.changes().epoch(), copied.clone());
                watch.note(false);
            }
            1 => db.checkpoint().unwrap(),
            _ => {}
        }
    }
    drop(consumer);
    db.close().unwrap();
    watch.note(false);
    let moments = watch.moments.lock().unwrap().clone();
    Run { disk, moments, confirmed }
}

/// Ends a run after some changes of its disk, and writes what is left to a new directory. Returns
/// the disk that goes on.
fn crash(disk: &Disk, moments: &[Moment], at: usize, random: &mut Random, path: &Path) -> Disk {
    let moment = moments.iter().find(|moment| moment.at >= at);
    let moment = moment.unwrap_or(moments.last().unwrap());
    fs::create_dir(path).unwrap();
    let disk = disk.crash(at, random, path).unwrap();
    moment.cut(random, &path.join("changes"));
    disk
}

/// Opens what a crash has left, and ends that open by a crash, too: in the replay, or in the close.
fn crash_again(disk: Disk, random: &mut Random, (from, to): (&Path, &Path)) {
    let disk = Arc::new(disk);
    let (changes, moments) = (from.join("changes"), Mutex::default());
    let watch = Arc::new(Watch { disk: Arc::clone(&disk), changes, moments });
    watch.note(true);
    let options = options().disk_hook(disk.hook()).change_log_hook(watch.clone());
    options.open(from).unwrap().close().unwrap();
    watch.note(false);
    let at = random.below(disk.changes() as u64 + 1) as usize;
    drop(crash(&disk, &watch.moments.lock().unwrap(), at, random, to));
}

/// The longest content that each file of changes has had.
fn longest(moments: &[Moment]) -> BTreeMap<&PathBuf, &Vec<u8>> {
    let mut whole = BTreeMap::<&PathBuf, &Vec<u8>>::new();
    for (name, bytes) in moments.iter().flat_map(|moment| &moment.files) {
        let longest = whole.entry(name).or_insert(bytes);
        if longest.len() < bytes.len() {
            *longest = bytes;
        }
    }
    whole
}

/// Opens what a crash has left: the files of changes are those of the run, and the consumer goes on
/// from where it was. Returns how many epochs were replayed, and how many files became longer.
fn check(done: &Run, workers: usize, path: &Path, what: &str) -> (u64, u64) {
    let whole = longest(&done.moments);
    let lengths = files_of(path);
    let db = options().workers(workers).open(path).unwrap();
    let mut brought_back = 0;
    for (name, bytes) in files_of(path) {
        let is_same = whole.get(&name).is_some_and(|whole| whole.starts_with(&bytes));
        assert!(is_same, "{what}: the replay makes another {}", name.display());
        let was = lengths.get(&name).filter(|was| bytes.starts_with(was));
        brought_back += u64::from(was.is_none_or(|was| was.len() < bytes.len()));
    }
    let mut consumer = db.consumer("copy", STOCK).unwrap();
    let mut rows = done.confirmed[&consumer.changes().epoch()].clone();
    if let Err(error) = follow(&mut consumer, &mut rows) {
        panic!("{what}: {error}");
    }
    assert_eq!(rows, rows_of(&db), "{what}");
    drop(consumer);
    let replayed = db.recovery().epochs_replayed;
    db.close().unwrap();
    (replayed, brought_back)
}

/// O-112: wherever power is cut or the process killed, also in recovery, the consumer goes on
/// behind what it has confirmed, and the replay brings back, byte for byte, what the change log has
/// lost.
#[test]
fn o_112_a_consumer_misses_nothing_over_crashes() {
    let first = std::env::var("NVCARACAL_FIRST_SEED").ok().and_then(|seed| seed.parse().ok());
    let first = first.unwrap_or(1);
    let (mut replays, mut brought_back) = (0, 0);
    for seed in first..first + 2 {
        println!("seed {seed}");
        let mut random = Random::new(seed);
        let dir = directory();
        let done = run(&mut random, &dir.path().join("whole"));
        let begun = done.moments.iter().find(|m| m.files.contains_key(Path::new("consumers")));
        let begun = begun.unwrap().at + 1;
        for number in 0..30 {
            let at = begun + random.below((done.disk.changes() + 1 - begun) as u64) as usize;
            let mut path = dir.path().join(format!("crash-{number}"));
            let disk = crash(&done.disk, &done.moments, at, &mut random, &path);
            if number % 2 == 1 {
                let again = dir.path().join(format!("again-{number}"));
                crash_again(disk, &mut random, (&path, &again));
                path = again;
            }
            let what = format!("seed {seed}, crash {number} at {at}");
            let (epochs, files) = check(&done, 1 + number % 3, &path, &what);
            replays += u64::from(epochs > 0);
            brought_back += files;
        }
    }
    assert!(replays > 10, "{replays} replays");
    assert!(brought_back > 10, "{brought_back} ends were brought back");
}
