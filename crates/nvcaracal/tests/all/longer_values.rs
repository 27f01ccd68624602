//! A type of values gets a longer version, or a table longer values, and rows are what they were
//! (O-93, O-95).
//!
//! Rows of short keys and values are one line, whose last words are the values. A value of a longer
//! version is in a pool. The first version of such a row was written as if its value were in the
//! line all the same: with 9 to 16 bytes the next open refused the store for ever, with more a
//! worker died, and so did every open after that. So all lengths of keys, of values before and of
//! values after are crossed here, with what can happen to a row.

use pmem::AnyDevice;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use nvcaracal::{
    Before, Data, Database, HashTable, Index, Key, Options, Procedure, Snapshot, Stop, Table,
    Transaction, Tuning, WriteSet,
};

use crate::common::copy;

/// A value whose bytes are all the same, so that it is told from the rest of any other.
trait Value: Data + 'static {
    /// Bytes that are stored beside those of the value, at most.
    const MORE_BYTES: usize;
    fn filled(byte: u8, len: usize) -> Self;
    fn bytes(&self) -> &[u8];
}

/// Its byte and its length.
fn read(value: &impl Value) -> (u8, usize) {
    let bytes = value.bytes();
    let first = bytes.first().copied().unwrap_or(0);
    assert!(bytes.iter().all(|byte| *byte == first), "a value of several parts: {bytes:?}");
    (first, bytes.len())
}

/// Values of any length.
impl Value for Vec<u8> {
    const MORE_BYTES: usize = 0;

    fn filled(byte: u8, len: usize) -> Self {
        vec![byte; len]
    }

    fn bytes(&self) -> &[u8] {
        self
    }
}

/// Values of the first version: a byte that says how long they are, and so many bytes.
struct Old(Vec<u8>);

/// From so many bytes on in hundreds.
const HUNDREDS: usize = 200;

impl Data for Old {
    fn encode(&self, into: &mut Vec<u8>) {
        let len = self.0.len();
        into.push(if len < HUNDREDS { len } else { HUNDREDS + len / 100 } as u8);
        into.extend_from_slice(&self.0);
    }

    fn decode(from: &mut &[u8]) -> Option<Self> {
        let (&len, rest) = from.split_first()?;
        let len = usize::from(len);
        let len = if len < HUNDREDS { len } else { (len - HUNDREDS) * 100 };
        let (bytes, rest) = rest.split_at_checked(len)?;
        *from = rest;
        Some(Self(bytes.to_vec()))
    }
}

impl Value for Old {
    const MORE_BYTES: usize = 1;

    fn filled(byte: u8, len: usize) -> Self {
        Self(vec![byte; len])
    }

    fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Values of the second version, which may have been of the first: behind them is the version,
/// which takes up to two bytes.
struct New(Old);

impl From<Old> for New {
    fn from(old: Old) -> Self {
        Self(old)
    }
}

impl Data for New {
    const BEFORE: Option<Before<Self>> = Some(Before::new::<Old>());

    fn encode(&self, into: &mut Vec<u8>) {
        self.0.encode(into);
    }

    fn decode(from: &mut &[u8]) -> Option<Self> {
        Old::decode(from).map(Self)
    }
}

impl Value for New {
    const MORE_BYTES: usize = 3;

    fn filled(byte: u8, len: usize) -> Self {
        Self(Old::filled(byte, len))
    }

    fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }
}

/// Keys, which stand for numbers.
trait Number: Key<Owned = Self> + Sized + 'static {
    fn of(number: u8, bytes: u32) -> Self;
    fn sized<V: Data, O>(table: Table<Self, V, O>, bytes: u32) -> Table<Self, V, O> {
        let _ = bytes;
        table
    }
}

impl Number for u64 {
    fn of(number: u8, _: u32) -> Self {
        number.into()
    }
}

impl Number for (u64, u64) {
    fn of(number: u8, _: u32) -> Self {
        (number.into(), 7)
    }
}

impl Number for String {
    fn of(number: u8, bytes: u32) -> Self {
        format!("{number}{}", "-".repeat(bytes as usize - 3))
    }

    fn sized<V: Data, O>(table: Table<Self, V, O>, bytes: u32) -> Table<Self, V, O> {
        table.with_key_bytes(bytes)
    }
}

/// What is done to a row.
#[derive(Debug, Clone, Copy, PartialEq, Data)]
enum Write {
    /// Inserts or replaces a value of this byte and length.
    Put {
        byte: u8,
        len: u32,
    },
    /// As `Put`, of a row that is there.
    Update {
        byte: u8,
        len: u32,
    },
    Delete,
}

/// Both programs' view of two tables of one key and one value, hashed and ordered.
trait Pair: Send + Sync {
    /// Lengths of values of the first program and of the second.
    fn lengths(&self) -> (usize, usize);
    fn register(&self, options: Options, is_first: bool) -> Options;
    fn declare(&self, set: &mut WriteSet, key: u8, is_first: bool);
    fn write(
        &self,
        tx: &mut Transaction,
        key: u8,
        write: Write,
        is_first: bool,
    ) -> Result<(), Stop>;
    /// The row in each of the two tables.
    fn read(&self, snapshot: &Snapshot, key: u8) -> [Option<(u8, usize)>; 2];
    /// Rows that an index finds under a byte.
    fn count_by(&self, snapshot: &Snapshot, byte: u8) -> usize;
}

struct Tables<K: Key, Old, New> {
    old: (HashTable<K, Old>, Table<K, Old>),
    new: (HashTable<K, New>, Table<K, New>),
    by_byte: Index<u8, K, New>,
    key_bytes: u32,
    lengths: (usize, usize),
}

impl<K: Number, Old: Value, New: Value> Tables<K, Old, New> {
    /// Tables of keys of so many bytes, where their type leaves that open, and of values.
    fn new(key_bytes: u32, (old, new): (usize, usize)) -> Self {
        let name = |kind: &str| -> &'static str {
            format!("{kind} of {old} and {new} and {}", Old::MORE_BYTES).leak()
        };
        let (hash, ordered) = (name("hash"), name("ordered"));
        // Both programs write values of the old length, too.
        let old_bytes = (old + Old::MORE_BYTES) as u32;
        let new_bytes = (new.max(old) + New::MORE_BYTES) as u32;
        // Rows of words, which are one line, and others in which every value is in a pool.
        let row_bytes = if key_bytes <= 9 { 64 } else { 128 };
        let old_hash = K::sized(Table::hash(hash), key_bytes).with_row_bytes(row_bytes);
        let old_ordered = K::sized(Table::ordered(ordered), key_bytes).with_row_bytes(row_bytes);
        let new_hash = K::sized(Table::hash(hash), key_bytes).with_value_bytes(new_bytes);
        let new_ordered = K::sized(Table::ordered(ordered), key_bytes).with_value_bytes(new_bytes);
        Self {
            old: (old_hash.with_value_bytes(old_bytes), old_ordered.with_value_bytes(old_bytes)),
            new: (new_hash, new_ordered),
            by_byte: new_ordered.index(name("byte"), |_, value: &New| Some(read(value).0)),
            key_bytes,
            lengths: (old, new),
        }
    }
}

fn write_row<K: Number, V: Value, O>(
    tx: &mut Transaction,
    table: Table<K, V, O>,
    key: K,
    write: Write,
) -> Result<(), Stop> {
    match write {
        Write::Put { byte, len } => tx.insert(table, key, &V::filled(byte, len as usize)),
        Write::Update { byte, len } => {
            tx.update(table, key, &V::filled(byte, len as usize)).map(|_| ())
        }
        Write::Delete => tx.delete(table, key).map(|_| ()),
    }
}

impl<K: Number, Old: Value, New: Value> Pair for Tables<K, Old, New>
where
    Self: Send + Sync,
{
    fn lengths(&self) -> (usize, usize) {
        self.lengths
    }

    fn register(&self, options: Options, is_first: bool) -> Options {
        match is_first {
            true => options.table(self.old.0).table(self.old.1),
            false => options.table(self.new.0).table(self.new.1).index(self.by_byte),
        }
    }

    fn declare(&self, set: &mut WriteSet, key: u8, is_first: bool) {
        let key = K::of(key, self.key_bytes);
        if is_first {
            set.insert(self.old.0, &key);
            set.insert(self.old.1, &key);
        } else {
            set.insert(self.new.0, &key);
            set.insert(self.new.1, &key);
        }
    }

    fn write(
        &self,
        tx: &mut Transaction,
        key: u8,
        write: Write,
        is_first: bool,
    ) -> Result<(), Stop> {
        let key = || K::of(key, self.key_bytes);
        if is_first {
            write_row(tx, self.old.0, key(), write)?;
            write_row(tx, self.old.1, key(), write)
        } else {
            write_row(tx, self.new.0, key(), write)?;
            write_row(tx, self.new.1, key(), write)
        }
    }

    fn read(&self, snapshot: &Snapshot, key: u8) -> [Option<(u8, usize)>; 2] {
        let key = K::of(key, self.key_bytes);
        let hashed = snapshot.get(self.new.0, &key).unwrap();
        let ordered = snapshot.get(self.new.1, &key).unwrap();
        [hashed, ordered].map(|value| value.map(|value| read(&value)))
    }

    fn count_by(&self, snapshot: &Snapshot, byte: u8) -> usize {
        let rows = snapshot.range_by(self.by_byte, byte..=byte).map(Result::unwrap);
        rows.inspect(|(_, value)| assert_eq!(read(value).0, byte)).count()
    }
}

/// Lengths of values before, each with the lengths of values after it, for a type that got a
/// second version, which says that in up to two bytes and its length in one: 7 before is a word,
/// and from 7 after on none is.
const OF_VERSIONS: [(usize, &[usize]); 6] = [
    (0, &[0, 5, 6, 7, 14, 98]),
    (3, &[4, 6, 7, 14, 61]),
    (7, &[0, 5, 6, 7, 13, 14, 15, 46, 98, 1000]),
    (8, &[7, 14, 15, 98]),
    (23, &[24, 62, 198]),
    (99, &[98, 100, 199]),
];

/// The same for a table of bytes that got longer ones.
const OF_BYTES: [(usize, &[usize]); 5] = [
    (0, &[8, 9, 100]),
    (4, &[9]),
    (8, &[9, 15, 16, 17, 48, 100, 1000]),
    (16, &[17, 40, 300]),
    (40, &[300]),
];

/// Tables of keys of one type, with all these lengths.
fn pairs<K: Number + Send + Sync>(key_bytes: u32) -> Pairs {
    let mut pairs: Vec<Box<dyn Pair>> = Vec::new();
    let all = |of: &[(usize, &'static [usize])]| -> Vec<(usize, usize)> {
        of.iter().flat_map(|&(old, new)| new.iter().map(move |&new| (old, new))).collect()
    };
    for lengths in all(&OF_VERSIONS) {
        pairs.push(Box::new(Tables::<K, Old, New>::new(key_bytes, lengths)));
    }
    for lengths in all(&OF_BYTES) {
        pairs.push(Box::new(Tables::<K, Vec<u8>, Vec<u8>>::new(key_bytes, lengths)));
    }
    Arc::new(pairs)
}

/// Does something to one row of each pair of tables, declared or in the serial part.
#[derive(Debug, Clone, PartialEq, Data)]
struct Edit<const DECLARED: bool> {
    pair: u32,
    key: u8,
    write: Write,
    is_first: bool,
}

type Pairs = Arc<Vec<Box<dyn Pair>>>;

impl<const DECLARED: bool> Procedure for Edit<DECLARED> {
    const NAME: &'static str = if DECLARED { "declared" } else { "undeclared" };
    type Output = ();

    fn write_set(&self, set: &mut WriteSet) {
        if !DECLARED {
            return set.unknown();
        }
        let Some(pairs) = set.context::<Pairs>() else { return };
        pairs[self.pair as usize].declare(set, self.key, self.is_first);
    }

    fn run(&self, tx: &mut Transaction) -> Result<(), Stop> {
        let pairs = tx.context::<Pairs>()?;
        pairs[self.pair as usize].write(tx, self.key, self.write, self.is_first)
    }
}

/// What is in the tables of all pairs, by pair and key.
type Rows = BTreeMap<(u32, u8), (u8, usize)>;

struct Trial {
    pairs: Pairs,
    checkpoint_every: u64,
    rows: Rows,
    byte: u8,
}

/// Which length a value of the second program has.
#[derive(Clone, Copy)]
enum Length {
    Old,
    New,
}

impl Trial {
    fn options(&self, is_first: bool) -> Options {
        let options = Database::options().workers(2).data_bytes_max(1 << 30);
        let options = options
            .checkpoint_every(self.checkpoint_every)
            .tuning(Tuning { segment_bytes: 1 << 14, ..Tuning::default() });
        let options = options.context(Arc::clone(&self.pairs));
        let options = options.procedure::<Edit<true>>().procedure::<Edit<false>>();
        self.pairs.iter().fold(options, |options, pair| pair.register(options, is_first))
    }

    /// Does the same to rows of all tables, in one go.
    fn edit(&mut self, db: &Database, is_first: bool, edits: &[(u8, Kind)]) {
        let mut tickets = Vec::new();
        self.byte += 1;
        for (number, pair) in (0..).zip(self.pairs.iter()) {
            // Calls of the serial part come before all others of their epoch.
            let is_declared = (number + u32::from(self.byte)).is_multiple_of(2);
            for &(key, kind) in edits {
                let (old, new) = pair.lengths();
                let len = match kind {
                    Kind::Put(Length::Old) | Kind::Update(Length::Old) => old,
                    _ => new,
                };
                let (byte, long) = (self.byte, len as u32);
                let write = match kind {
                    Kind::Put(_) => Write::Put { byte, len: long },
                    Kind::Update(_) => Write::Update { byte, len: long },
                    Kind::Delete => Write::Delete,
                };
                match kind {
                    Kind::Delete => self.rows.remove(&(number, key)),
                    _ => self.rows.insert((number, key), (if len == 0 { 0 } else { byte }, len)),
                };
                tickets.push(if is_declared {
                    db.submit(Edit::<true> { pair: number, key, write, is_first }).unwrap()
                } else {
                    db.submit(Edit::<false> { pair: number, key, write, is_first }).unwrap()
                });
            }
        }
        tickets.into_iter().for_each(|ticket| ticket.wait().unwrap());
    }

    /// Compares all tables with what they should have.
    fn compare(&self, snapshot: &Snapshot, rows: &Rows, when: &str) {
        for (number, pair) in (0..).zip(self.pairs.iter()) {
            let lengths = pair.lengths();
            let mut by_byte = BTreeMap::new();
            for key in 0..KEYS {
                let expected = rows.get(&(number, key)).copied();
                let found = pair.read(snapshot, key);
                assert_eq!(found, [expected; 2], "{when}: key {key} of values of {lengths:?}");
                if let Some((byte, _)) = expected {
                    *by_byte.entry(byte).or_insert(0) += 1;
                }
            }
            for (byte, count) in by_byte {
                let found = pair.count_by(snapshot, byte);
                assert_eq!(found, count, "{when}: byte {byte} in the index of {lengths:?}");
            }
        }
    }

    /// Opens a store, compares it, lets go of it in a clean way and checks it.
    fn assert_whole(&self, dir: &Path, when: &str) {
        let db = self.options(false).open(dir).unwrap_or_else(|error| panic!("{when}: {error}"));
        self.compare(&db.snapshot().unwrap(), &self.rows, when);
        db.check_indexes().unwrap();
        db.close().unwrap();
        let file = pmem::File::open(dir, &pmem::FileOptions::new(1 << 30, 1 << 30)).unwrap();
        let report = storage::check::check(AnyDevice::new(file)).unwrap();
        assert_eq!(report.problems, Vec::<String>::new(), "{when}");
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Put(Length),
    Update(Length),
    Delete,
}

const KEYS: u8 = 12;

fn check(pairs: &Pairs, checkpoint_every: u64) {
    use Kind::{Delete, Put, Update};
    use Length::{New, Old};
    let (dir, pairs) = (tempfile::tempdir().unwrap(), Arc::clone(pairs));
    let (alive, killed) = (dir.path().join("alive"), dir.path().join("killed"));
    let mut trial = Trial { pairs, checkpoint_every, rows: Rows::new(), byte: 0 };
    let db = trial.options(true).open(&alive).unwrap();
    let of_first: Vec<_> = (0..6).map(|key| (key, Put(Old))).collect();
    trial.edit(&db, true, &of_first);
    trial.edit(&db, true, &of_first[2..4]);
    db.close().unwrap();

    let db = trial.options(false).open(&alive).unwrap();
    let (before, rows_before) = (db.snapshot().unwrap(), trial.rows.clone());
    trial.edit(&db, false, &[(1, Update(New)), (2, Delete), (3, Put(New)), (4, Update(New))]);
    let (between, rows_between) = (db.snapshot().unwrap(), trial.rows.clone());
    // Each key from here on is new: put, changed, deleted, made again, and long in each version.
    trial.edit(&db, false, &[(2, Put(New)), (6, Put(New)), (7, Put(New)), (8, Put(Old))]);
    trial.edit(&db, false, &[(9, Put(New)), (10, Put(New)), (6, Update(New)), (4, Delete)]);
    trial.edit(&db, false, &[(6, Update(New)), (7, Delete), (8, Update(New)), (9, Update(Old))]);
    trial.edit(&db, false, &[(7, Put(New)), (3, Update(Old)), (10, Delete), (8, Update(Old))]);
    trial.edit(&db, false, &[(11, Put(New)), (11, Update(Old)), (11, Update(New))]);
    trial.edit(&db, false, &[(11, Delete), (11, Put(New)), (3, Delete), (3, Put(Old))]);
    trial.compare(&before, &rows_before, "a snapshot of the first program's rows");
    trial.compare(&between, &rows_between, "a snapshot of both programs' rows");
    trial.compare(&db.snapshot().unwrap(), &trial.rows, "before the kill");
    if checkpoint_every == 1 {
        // No image is being written while its files are copied.
        db.checkpoint().unwrap();
    }
    copy(&alive, &killed);
    drop((before, between));
    db.close().unwrap();
    trial.assert_whole(&killed, "after a kill");
    trial.assert_whole(&alive, "after a close");

    // Versions that were read back are written over, in both slots.
    let db = trial.options(false).open(&alive).unwrap();
    for length in [Old, New, New, Old] {
        let all: Vec<_> = (0..KEYS).map(|key| (key, Put(length))).collect();
        trial.edit(&db, false, &all);
        trial.compare(&db.snapshot().unwrap(), &trial.rows, "written over");
    }
    db.close().unwrap();
    trial.assert_whole(&alive, "after all");
}

macro_rules! tests {
    ($($name:ident: $key:ty, $bytes:literal;)*) => { $(
        #[test]
        fn $name() {
            static PAIRS: LazyLock<Pairs> = LazyLock::new(|| pairs::<$key>($bytes));
            check(&PAIRS, 1);
            if $bytes <= 8 {
                check(&PAIRS, 1_000_000);
            }
        }
    )* };
}

tests! {
    o_93_rows_of_words_take_longer_values: u64, 8;
    o_93_rows_of_short_texts_take_longer_values: String, 4;
    o_93_rows_of_texts_that_share_the_header_take_longer_values: String, 9;
    o_93_rows_of_pairs_take_longer_values: (u64, u64), 16;
    o_93_rows_of_long_keys_take_longer_values: String, 60;
}
