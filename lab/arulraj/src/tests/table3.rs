//! The paper's Table 3: bytes that an engine writes for an insert, an update and a delete, by
//! counters, exactly.
//!
//! The table has a fixed field F and a long one V. What an operation writes is divided into memory,
//! log, and the table's durable form. A log's entry of pointers has 24 bytes, or 16 and 24 for each
//! word that changes: the paper's p, whatever V is. A record of a file's log has table and key
//! (16), and for each image its head (8) and each field's length (4).

use std::sync::Arc;

use pmem::Dram;

use crate::engines::Engine;
use crate::ground::Written;
use crate::{Cow, Inp, Key, Log, NvmCow, NvmInp, NvmLog, Options, Partition, Row, Schema, Table};

/// Fields and lengths.
const F: u64 = 8;
/// A tuple without its long field: head, key, two words.
const FIXED: u64 = 32;
/// A page, as much of it as is used, and as much as is written to a file.
const B: u64 = 4088;
const PAGE: u64 = 4096;
/// An entry of a log of pointers; one of words that change, and each of them in it.
const P: u64 = 24;
const CHANGES: u64 = 16;
const WORD: u64 = 24;

/// What an insert, an update of both fields and a delete write; each first in a batch, and then
/// once more for another key in the same batch; and what the end of the first batch writes.
struct Bytes {
    insert: [Written; 2],
    update: [Written; 2],
    delete: [Written; 2],
    flush: Written,
}

fn measure<E: Engine<Dram>>(v: u64) -> Bytes {
    pmem::small_pages_only();
    let columns = vec![F as u32, v as u32];
    let table = Table { key_bytes_max: 8, columns, indexes: Vec::new() };
    let schema = Schema::new(vec![table]).unwrap();
    let device = Arc::new(Dram::new(64 << 20, 0).unwrap());
    let options = Options { memtable_bytes: 1, first_level_runs: 9, ..Options::default() };
    let mut to = Partition::<_, E>::create(device, &schema, &options).unwrap();
    let row: Row = vec![vec![1; F as usize], vec![2; v as usize]];
    let other: Row = vec![vec![3; F as usize], vec![4; v as usize]];
    let changes: Vec<_> = other.iter().map(Vec::as_slice).enumerate().collect();
    let mut before = to.engine().traffic();
    let mut since = |to: &Partition<Dram, E>| {
        let now = to.engine().traffic();
        let written = now.since(&before).written;
        before = now;
        written
    };
    let keys = [1, 2].map(Key::of_u64);
    let insert = keys.map(|key| {
        to.insert(0, &key, &row).unwrap();
        since(&to)
    });
    to.commit().unwrap();
    to.flush().unwrap();
    let flush = since(&to);
    let update = keys.map(|key| {
        to.update(0, &key, &changes).unwrap();
        since(&to)
    });
    to.commit().unwrap();
    to.flush().unwrap();
    since(&to);
    let delete = keys.map(|key| {
        to.delete(0, &key).unwrap();
        since(&to)
    });
    Bytes { insert, update, delete, flush }
}

fn written(memory: u64, log: u64, table: u64) -> Written {
    Written { memory, log, table }
}

/// Both in a batch.
fn twice(memory: u64, log: u64, table: u64) -> [Written; 2] {
    [written(memory, log, table); 2]
}

const LENGTHS: [u64; 2] = [100, 1000];

#[test]
fn inp_writes_tuples_to_memory_and_images_to_the_log() {
    for v in LENGTHS {
        let bytes = measure::<Inp<Dram>>(v);
        let image = 8 + (4 + F) + (4 + v);
        assert_eq!(bytes.insert, twice(FIXED + v, 16 + 8 + image, 0));
        assert_eq!(bytes.update, twice(8 + 8 + v, 16 + 2 * image, 0));
        assert_eq!(bytes.delete, twice(0, 16 + image + 8, 0));
    }
}

#[test]
fn log_writes_as_inp_and_tuples_once_more_to_files() {
    for v in LENGTHS {
        let bytes = measure::<Log<Dram>>(v);
        let image = 8 + (4 + F) + (4 + v);
        assert_eq!(bytes.insert, twice(FIXED + v, 16 + 8 + image, 0));
        // Of an entry in an older run the MemTable gets a new one.
        assert_eq!(bytes.update, twice(FIXED + v, 16 + 2 * image, 0));
        assert_eq!(bytes.delete, twice(FIXED, 16 + image + 8, 0));
        // Two tuples, with an index entry each, their count, a filter of 64 bits, a footer.
        assert_eq!(bytes.flush, written(0, 0, 2 * (image + 16) + 8 + 8 + 32));
    }
}

#[test]
fn cow_writes_pages() {
    for v in LENGTHS {
        let bytes = measure::<Cow<Dram>>(v);
        let cell = (4 + F) + (4 + v);
        assert_eq!(bytes.insert, [written(B + cell, 0, 0), written(cell, 0, 0)]);
        assert_eq!(bytes.update, [written(B + cell, 0, 0), written(cell, 0, 0)]);
        assert_eq!(bytes.delete, [written(B, 0, 0), written(0, 0, 0)]);
        assert_eq!(bytes.flush, written(0, 0, 2 * PAGE), "a leaf and the directory");
    }
}

#[test]
fn nvm_inp_logs_pointers() {
    for v in LENGTHS {
        let bytes = measure::<NvmInp<Dram>>(v);
        assert_eq!(bytes.insert, twice(FIXED + v, P, 0));
        assert_eq!(bytes.update, twice(8 + 8 + v, CHANGES + 2 * WORD, 0));
        assert_eq!(bytes.delete, twice(0, P, 0));
        assert_eq!(bytes.flush, written(0, 0, 0));
    }
}

#[test]
fn nvm_cow_writes_tuples_once_and_pointers_into_pages() {
    for v in LENGTHS {
        let bytes = measure::<NvmCow<Dram>>(v);
        let pages = |memory| [written(memory, 0, B + 8), written(memory, 0, 8)];
        assert_eq!(bytes.insert, pages(FIXED + v));
        assert_eq!(bytes.update, pages(FIXED + v));
        assert_eq!(bytes.delete, [written(0, 0, B), written(0, 0, 0)]);
    }
}

#[test]
fn nvm_log_logs_pointers_and_copies_no_run() {
    for v in LENGTHS {
        let bytes = measure::<NvmLog<Dram>>(v);
        assert_eq!(bytes.insert, twice(FIXED + v, P, 0));
        assert_eq!(bytes.update, twice(FIXED + v, P, 0));
        assert_eq!(bytes.delete, twice(FIXED, P, 0));
        assert_eq!(bytes.flush, written(0, 0, 0));
    }
}
