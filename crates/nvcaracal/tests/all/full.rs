//! A full store, as an application meets it: no delete was accepted any more, not after a
//! checkpoint and not after an open, and only a higher limit helped.

use nvcaracal::{
    Database, Error, HashTable, Options, Stop, Table, Transaction, WriteSet, procedure,
};

const LONG: HashTable<u64, Vec<u8>> = Table::hash("long").with_value_bytes(262_128);

#[procedure]
fn put(tx: &mut Transaction, key: u64, bytes: u64) -> Result<(), Stop> {
    tx.insert(LONG, key, &vec![1; bytes as usize])
}

#[procedure(write_set = cut_one)]
fn cut(tx: &mut Transaction, key: u64) -> Result<bool, Stop> {
    tx.delete(LONG, key)
}

fn cut_one(call: &Cut, set: &mut WriteSet) {
    set.delete(LONG, call.key);
}

fn options() -> Options {
    Database::options()
        .workers(2)
        .data_bytes_max(16 << 20)
        .table(LONG)
        .procedure::<Put>()
        .procedure::<Cut>()
}

/// O-43: deletes, of one call and of batches that all workers would share, and shorter values.
#[test]
fn o_43_a_full_store_can_be_emptied() -> Result<(), Error> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let db = options().open(&path)?;
    let mut rows = 0;
    let full = loop {
        match db.call(Put { key: rows, bytes: 1000 }) {
            Ok(()) => rows += 1,
            Err(full) => break full,
        }
    };
    assert!(full.is_full() && full.to_string().contains("rows can still be deleted"), "{full}");
    assert!(db.call(Cut { key: 0 })?);
    db.call(Put { key: 1, bytes: 1 })?;
    db.checkpoint()?;
    db.close()?;

    let db = options().open(&path)?;
    let mut batch = db.batch();
    let added = (1..rows).map(|key| batch.add(&Cut { key }));
    let added: Vec<_> = added.collect::<Result<_, _>>()?;
    let submitted = batch.submit()?;
    for added in added {
        assert!(submitted.ticket(added).wait()?);
    }
    assert_eq!(db.stats().rows, 0);
    // Space of values of one size serves those of about that size.
    for key in 0..rows / 2 {
        db.call(Put { key, bytes: 1000 })?;
    }
    db.close()
}
