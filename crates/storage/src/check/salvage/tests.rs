//! Rows of every kind, with every kind of damage.

use pmem::{AnyDevice, Dram};

use super::*;
use crate::catalog::{IndexKind, TableDefinition};
use crate::check::check;
use crate::ids::TableId;
use crate::scan::rows::rows_of;
use crate::store::tests::add_tables;

/// A table of short rows, which got longer values, and one of long ones.
const SHORT: TableId = TableId(0);
const LONG: TableId = TableId(1);
const EPOCH: EpochNumber = EpochNumber(2);

/// A store that is being made and damaged.
struct Made {
    device: Arc<AnyDevice>,
    store: Store,
    sub_pools: Vec<SubPool>,
    port: Port,
    hash: StateHash,
    rows: u64,
}

fn device() -> Arc<AnyDevice> {
    AnyDevice::new(Dram::new(64 << 20, 4 << 20).unwrap())
}

fn options() -> StoreOptions {
    StoreOptions { segment_bytes: 4096, ..StoreOptions::default() }
}

impl Made {
    fn new() -> Self {
        let device = device();
        let Opened { mut store, mut sub_pools, .. } =
            Store::open(Arc::clone(&device), &options()).unwrap();
        let table = |name: &str, key_bytes_max, value_bytes_max, row_bytes| TableDefinition {
            name: name.into(),
            index: IndexKind::Hash,
            key_bytes_max,
            value_bytes_max,
            row_bytes,
            shared_heap_bytes: 0,
        };
        let tables = [table("short", 8, 8, 0), table("long", 40, 1000, 256)];
        sub_pools.extend(add_tables(&mut store, &tables).unwrap());
        add_tables(&mut store, &[table("short", 8, 300, 64)]).unwrap();
        assert!(
            store.tables()[0].layout.is_one_line() && store.tables()[0].layout.may_be_external()
        );
        let port = Port::new(AnyDevice::of(&device), 0);
        Self { device, store, sub_pools, port, hash: StateHash::default(), rows: 0 }
    }

    fn slot(&mut self, pool: u16) -> u64 {
        self.store.segments().reserve(self.device.as_ref(), 1).unwrap();
        let sub_pool = self.sub_pools.iter_mut().find(|of| of.pool() == pool).unwrap();
        sub_pool.bump(&mut self.port, self.store.segments()).unwrap()
    }

    /// A row with one version.
    fn row(&mut self, table: TableId, key: &[u8], value: &[u8]) -> u64 {
        let layout = self.store.tables()[table.index()].layout;
        let (at, len) = (self.slot(table.0), value.len() as u64);
        let external = (!layout.fits_alone(len)).then(|| self.slot(class_pool(class_of(len))));
        let sid = SerialId::new(EPOCH, Position(self.rows as u32));
        let content = Content::Bytes(value, external);
        let version = NewVersion { slot: 0, sid, content, first: First::KeyIsThere };
        // SAFETY: the test owns the store.
        unsafe {
            row::initialise(&mut self.port, at, &layout, key);
            row::write_version(&mut self.port, at, &layout, &version);
        }
        self.hash.add(row_hash(table, key, value));
        self.rows += 1;
        at
    }

    /// A row of the table of short ones, as it was written by mistake.
    fn row_in_header(&mut self, key: &[u8; 8], value: &[u8]) -> u64 {
        let at = self.row(SHORT, key, &value[..8]);
        self.hash.remove(row_hash(SHORT, key, &value[..8]));
        self.hash.add(row_hash(SHORT, key, value));
        self.store_bytes(at + 48, &value[..value.len().min(16)]);
        self.word(at + 8, ValuePointer::inline(value.len() as u64).0);
        at
    }

    fn word(&mut self, at: u64, word: u64) {
        // SAFETY: the test owns the store.
        unsafe { self.port.store_u64(at, word) };
    }

    fn store_bytes(&mut self, at: u64, bytes: &[u8]) {
        // SAFETY: the test owns the store.
        unsafe { self.port.store_bytes(at, bytes) };
    }

    /// What is found after the checkpoint.
    fn find(mut self) -> (Opened, Found) {
        let sequence = self.store.next_sequence();
        let (port, segments) = (&mut self.port, self.store.segments());
        for sub_pool in &mut self.sub_pools {
            sub_pool.flush(port, segments);
            sub_pool.save(port, sequence);
        }
        self.store.commit(port, EPOCH, Some(self.hash), self.rows, 0);
        let opened = Store::open(self.device, &options()).unwrap();
        let found = find(&opened);
        (opened, found)
    }
}

/// The rows of a store, by table.
fn rows(opened: &Opened) -> Vec<(TableId, Vec<u8>, Vec<u8>)> {
    let of = |table| {
        let rows = rows_of(opened, table).unwrap().into_iter();
        rows.map(move |row| {
            let value = crate::scan::rows::value_of(opened, &row).to_vec();
            (table, row.key, value)
        })
    };
    [SHORT, LONG].into_iter().flat_map(of).collect()
}

/// Writes what was found into a new store, and compares.
fn write_and_compare(opened: &Opened, found: &Found) {
    let target = device();
    let hash = write(opened, found, Arc::clone(&target)).unwrap();
    let report = check(Arc::clone(&target)).unwrap();
    assert_eq!(report.problems, Vec::<String>::new());
    assert_eq!((report.epoch, report.state_hash), (EPOCH, hash));
    let written = Store::open(Arc::clone(&target), &options()).unwrap();
    let expected: Vec<_> = found
        .rows
        .iter()
        .map(|row| (row.table, row.key.clone(), value_of(opened, row).to_vec()))
        .collect();
    assert_eq!(rows(&written), expected);
    let definitions = |store: &Store| {
        let tables = store.tables().iter();
        tables.map(|table| (table.definition.clone(), table.layout)).collect::<Vec<_>>()
    };
    assert_eq!(definitions(&written.store), definitions(&opened.store));
    let again = write(opened, found, target).unwrap_err().to_string();
    assert!(again.contains("there is a store"), "{again}");
}

#[test]
fn a_whole_store_comes_out_as_it_is() {
    let mut made = Made::new();
    for number in 0..200u64 {
        let len = [0, 8, 9, 100, 300][number as usize % 5];
        made.row(SHORT, &number.to_be_bytes(), &vec![number as u8; len]);
        let key = vec![b'k'; 1 + number as usize % 39];
        if number < 39 {
            made.row(LONG, &key, &vec![number as u8; len * 3]);
        }
    }
    let (opened, found) = made.find();
    assert_eq!((found.rows.len(), found.lost.len(), found.is_whole), (239, 0, Some(true)));
    write_and_compare(&opened, &found);
}

/// The rows that a longer version of a short type made unreadable: those of up to 16 bytes come
/// back, with the state hash that they had.
#[test]
fn values_in_header_lines_come_back() {
    let mut made = Made::new();
    made.row(SHORT, b"one word", &[1; 8]);
    for len in 9..=16u8 {
        made.row_in_header(&[len; 8], &vec![len; usize::from(len)]);
    }
    let (opened, found) = made.find();
    assert!(rows_of(&opened, SHORT).is_err());
    assert_eq!((found.rows.len(), found.lost.len(), found.is_whole), (9, 0, Some(true)));
    assert_eq!(found.rows.iter().filter(|row| row.is_restored).count(), 8);
    write_and_compare(&opened, &found);
}

/// Whatever is wrong with one row, the others come out, and the row is listed with what is wrong.
#[test]
fn rows_that_cannot_be_read_are_listed() {
    type Damage = fn(&mut Made, u64);
    let cases: [(&str, bool, Damage); 9] = [
        ("leads nowhere", true, |made, at| made.word(at + 8, ValuePointer::inline(17).0)),
        ("leads nowhere", true, |made, at| made.word(at + 8, 0)),
        ("leads nowhere", true, |made, at| {
            made.word(at + 8, ValuePointer::external(1 << 30, 9).0);
        }),
        // A later version lies in what was the value.
        ("leads nowhere", true, |made, at| {
            made.word(at + 8, ValuePointer::inline(12).0);
            made.word(at + 16, SerialId::new(EPOCH.previous(), Position(0)).0);
            made.word(at + 24, ValuePointer::inline(8).0);
        }),
        ("both versions have the serial id", true, |made, at| {
            let sid = made.device.image().load_u64(at);
            made.word(at + 16, sid);
        }),
        ("it has no version up to epoch 2", true, |made, at| made.word(at, 0)),
        ("its key fails its checksum", false, |made, at| made.word(at + 40, 7)),
        ("it claims table 1", false, |made, at| {
            let word = made.device.image().load_u64(at + 32);
            made.word(at + 32, word | 1);
        }),
        ("is free", true, |made, at| {
            let slot = made.slot(class_pool(0));
            made.word(at + 8, ValuePointer::external(slot, 9).0);
            let of_pool = made.sub_pools.iter_mut().find(|of| of.pool() == class_pool(0)).unwrap();
            made.store.segments().reserve(made.device.as_ref(), 1).unwrap();
            of_pool.push(&mut made.port, made.store.segments(), slot).unwrap();
        }),
    ];
    for (why, has_key, damage) in cases {
        let mut made = Made::new();
        made.row(SHORT, b"before..", &[1; 8]);
        let at = made.row(SHORT, b"damaged.", &[2; 8]);
        made.row(SHORT, b"external", &[3; 100]);
        made.row(LONG, b"another table", &[4; 500]);
        damage(&mut made, at);
        let (opened, found) = made.find();
        let [lost] = &found.lost[..] else { panic!("{why}: {:?}", found.lost) };
        assert!(lost.why.contains(why), "{} is not {why}", lost.why);
        assert_eq!((lost.table, lost.row), (SHORT, at));
        assert_eq!(lost.key.as_deref(), has_key.then_some(&b"damaged."[..]));
        assert_eq!((found.rows.len(), found.is_whole), (3, None), "{why}");
        write_and_compare(&opened, &found);
    }
}

/// What is wrong with the version that does not count is no loss.
#[test]
fn a_damaged_stale_version_is_no_loss() {
    let mut made = Made::new();
    let at = made.row(SHORT, b"the key.", &[2; 8]);
    made.word(at + 16, SerialId::new(EPOCH.previous(), Position(5)).0);
    made.word(at + 24, ValuePointer::external(1 << 30, 9).0);
    let (opened, found) = made.find();
    assert!(rows_of(&opened, SHORT).is_err());
    assert_eq!((found.rows.len(), found.lost.len(), found.is_whole), (1, 0, Some(true)));
    write_and_compare(&opened, &found);
}

/// Of two rows with one value slot none can be trusted; of two with one key the later one counts.
#[test]
fn nothing_is_there_twice() {
    let mut made = Made::new();
    made.row(SHORT, b"a key...", &[1; 100]);
    let second = made.row(SHORT, b"another.", &[2; 100]);
    let first = made.device.image().load_u64(second - 64 + 8);
    made.word(second + 8, first);
    made.row(LONG, b"same", b"older");
    made.row(LONG, b"same", b"newer");
    let (opened, found) = made.find();
    let whys: Vec<_> = found.lost.iter().map(|lost| lost.why.as_str()).collect();
    assert_eq!(whys.len(), 3);
    assert!(whys[..2].iter().all(|why| why.contains("is that of 2 rows")), "{whys:?}");
    assert!(whys[2].contains("written later has the same key"), "{whys:?}");
    assert_eq!(value_of(&opened, &found.rows[0]), b"newer");
    write_and_compare(&opened, &found);
}

/// Bytes of a value have no checksum of their own, but all rows together have.
#[test]
fn other_bytes_than_were_written_are_told() {
    let mut made = Made::new();
    let at = made.row(SHORT, b"the key.", &[2; 8]);
    made.word(at + 48, 3);
    let (_, found) = made.find();
    assert_eq!((found.lost.len(), found.is_whole), (0, Some(false)));
}
