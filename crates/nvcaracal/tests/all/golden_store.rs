//! Stores of releases: each is opened by every later one, with all that is in it (docs/format.md).
//!
//! A store is kept as text: the lengths of its files, and their lines of 64 bytes that are not
//! zero. With `NVCARACAL_BLESS` set, and no store kept of the format of now, one is made: of a
//! program that was killed, so that its log is read, too.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use nvcaracal::{
    Data, Database, HashTable, Options, Sequence, Stop, Table, Transaction, Tuning, WriteSet,
    procedure,
};

use crate::common::bytes;

/// Format versions of which stores are kept.
const VERSIONS: [u32; 1] = [9];
const LINE: usize = 64;

const TEXTS: HashTable<u64, String> = Table::hash("texts").with_value_bytes(3000);
const PAIRS: Table<(u32, u32), i64> = Table::ordered("pairs");
const IDS: Sequence = Sequence::new("ids");

#[derive(Debug, Clone, PartialEq, Data)]
enum Kind {
    Short,
    Long { bytes: u32 },
}

fn declare_put(put: &Put, set: &mut WriteSet) {
    set.insert(TEXTS, put.id % 20);
    set.insert(PAIRS, (put.id as u32 % 3, put.id as u32));
}

/// Writes a row of each table; answers with a number that is given once.
#[procedure(sequences(IDS), write_set = declare_put)]
fn put(tx: &mut Transaction, id: u64, kind: Kind) -> Result<u64, Stop> {
    let bytes = if let Kind::Long { bytes } = kind { bytes as usize } else { 3 };
    tx.insert(TEXTS, id % 20, &"x".repeat(bytes))?;
    tx.insert(PAIRS, (id as u32 % 3, id as u32), &-(id as i64))?;
    Ok(tx.sequence_number(0))
}

fn options() -> Options {
    let tuning = Tuning { segment_bytes: 4096, log_segment_bytes: 4096, ..Tuning::default() };
    let tables = Database::options().table(TEXTS).table(PAIRS).sequence(IDS).procedure::<Put>();
    let sizes = tables.data_bytes_max(1 << 24).log_bytes_max(1 << 20).tuning(tuning);
    sizes.workers(1).checkpoint_every(1_000_000)
}

fn path_of(version: u32) -> PathBuf {
    let room = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    room.join(format!("store-{version}.txt"))
}

/// What was put, by numbers from zero.
fn kinds() -> impl Iterator<Item = Kind> {
    (0..30).map(|id| if id % 4 == 3 { Kind::Long { bytes: 90 * id } } else { Kind::Short })
}

/// A store that was killed, with a checkpoint in its middle, as text.
fn make() -> String {
    let dir = tempfile::tempdir().unwrap();
    let db = options().open(dir.path()).unwrap();
    for (id, kind) in (0..).zip(kinds()) {
        assert_eq!(db.call(Put { id, kind }).unwrap(), id);
        if id == 12 {
            db.checkpoint().unwrap();
        }
    }
    let (mut text, files) = (String::new(), bytes(dir.path()));
    for (path, bytes) in files {
        let name = path.file_name().unwrap().to_str().unwrap().to_string();
        writeln!(text, "{name} {}", bytes.len()).unwrap();
        for (at, line) in bytes.chunks(LINE).enumerate().filter(|(_, l)| l.iter().any(|b| *b > 0)) {
            let hex: String = line.iter().map(|byte| format!("{byte:02x}")).collect();
            let hex = hex.trim_end_matches("00");
            writeln!(text, "{at} {hex}").unwrap();
        }
    }
    text
}

/// Puts the files of a store into an empty directory.
fn unpack(text: &str, dir: &Path) {
    let mut files: BTreeMap<&str, Vec<u8>> = BTreeMap::new();
    let mut name = "";
    for line in text.lines() {
        let (first, second) = line.split_once(' ').unwrap();
        let Ok(at) = first.parse::<usize>() else {
            name = first;
            files.insert(name, vec![0; second.parse().unwrap()]);
            continue;
        };
        let hex = second.as_bytes().chunks(2);
        let hex = hex.map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap());
        let file = files.get_mut(name).unwrap();
        file[at * LINE..].iter_mut().zip(hex).for_each(|(byte, kept)| *byte = kept);
    }
    for (name, bytes) in files {
        fs::write(dir.join(name), bytes).unwrap();
    }
}

fn assert_whole(db: &Database) {
    let mut texts = BTreeMap::new();
    for (id, kind) in (0u64..).zip(kinds()) {
        let bytes = if let Kind::Long { bytes } = kind { bytes as usize } else { 3 };
        texts.insert(id % 20, "x".repeat(bytes));
    }
    for (key, text) in &texts {
        assert_eq!(db.get(TEXTS, *key).unwrap().as_ref(), Some(text), "{key}");
    }
    let pairs: Vec<_> = db.snapshot().unwrap().range(PAIRS, ..).map(|row| row.unwrap()).collect();
    let mut expected: Vec<_> = (0..30u32).map(|id| ((id % 3, id), -i64::from(id))).collect();
    expected.sort_unstable();
    assert_eq!(pairs, expected);
}

#[test]
fn o_53_stores_of_releases_are_opened_with_all_that_is_in_them() {
    let newest = *VERSIONS.last().unwrap();
    assert_eq!(storage::format::FORMAT_VERSION, newest, "keep a store of this format, too");
    if std::env::var_os("NVCARACAL_BLESS").is_some() && !path_of(newest).exists() {
        fs::create_dir_all(path_of(newest).parent().unwrap()).unwrap();
        fs::write(path_of(newest), make()).unwrap();
    }
    for version in VERSIONS {
        let (dir, text) = (tempfile::tempdir().unwrap(), fs::read_to_string(path_of(version)));
        unpack(&text.unwrap(), dir.path());
        let db = options().open(dir.path()).unwrap();
        assert_eq!(db.recovery().calls_replayed, 17, "version {version}");
        assert_whole(&db);
        assert_eq!(db.call(Put { id: 30, kind: Kind::Short }).unwrap(), 30);
        db.close().unwrap();
        let db = options().open(dir.path()).unwrap();
        assert_eq!(db.call(Put { id: 31, kind: Kind::Short }).unwrap(), 31, "version {version}");
    }
}
