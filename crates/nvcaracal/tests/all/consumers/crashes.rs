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
            let synced = before.synced.get(&name).copied().unwrap_or(0);
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

/// O-112: wherever power is cut or the process killed, the consumer goes on behind what it has
/// confirmed, and the replay brings back, byte for byte, what the change log has lost.
#[test]
fn o_112_a_consumer_misses_nothing_over_crashes() {
    let first = std::env::var("NVCARACAL_FIRST_SEED").ok().and_then(|seed| seed.parse().ok());
    let first = first.unwrap_or(1);
    let (mut replayed, mut brought_back) = (0, 0);
    for seed in first..first + 6 {
        println!("seed {seed}");
        let mut random = Random::new(seed);
        let dir = directory();
        let done = run(&mut random, &dir.path().join("whole"));
        let mut whole = BTreeMap::<&PathBuf, &Vec<u8>>::new();
        for (name, bytes) in done.moments.iter().flat_map(|moment| &moment.files) {
            let longest = whole.entry(name).or_insert(bytes);
            if longest.len() < bytes.len() {
                *longest = bytes;
            }
        }
        let begun = done.moments.iter().find(|m| m.files.contains_key(Path::new("consumers")));
        let begun = begun.unwrap().at + 1;
        for number in 0..30 {
            let at = begun + random.below((done.disk.changes() + 1 - begun) as u64) as usize;
            let moment = done.moments.iter().find(|moment| moment.at >= at);
            let moment = moment.unwrap_or(done.moments.last().unwrap());
            let path = dir.path().join(format!("crash-{number}"));
            fs::create_dir(&path).unwrap();
            drop(done.disk.crash(at, &mut random, &path).unwrap());
            moment.cut(&mut random, &path.join("changes"));
            let lengths = files_of(&path);
            let what = format!("seed {seed}, crash {number} at {at}");

            let db = options().workers(1 + number % 3).open(&path).unwrap();
            let report = db.recovery();
            replayed += u64::from(report.epochs_replayed > 0);
            for (name, bytes) in files_of(&path) {
                let is_same = whole.get(&name).is_some_and(|whole| whole.starts_with(&bytes));
                assert!(is_same, "{what}: the replay makes another {}", name.display());
                let was = lengths.get(&name).filter(|was| bytes.starts_with(was));
                brought_back += u64::from(was.is_none_or(|was| was.len() < bytes.len()));
            }
            let mut consumer = db.consumer("copy", STOCK).unwrap();
            let position = consumer.changes().epoch();
            let mut rows = done.confirmed[&position].clone();
            if let Err(error) = follow(&mut consumer, &mut rows) {
                panic!("{what}: {error}");
            }
            assert_eq!(rows, rows_of(&db), "{what}");
            drop(consumer);
            db.close().unwrap();
        }
    }
    assert!(replayed > 20, "{replayed} replays");
    assert!(brought_back > 20, "{brought_back} ends were brought back");
}
