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

#[procedure(write_set = note_one)]
fn note(tx: &mut Transaction, key: u64) -> Result<(), Stop> {
    tx.insert(LONG, key, &vec![7; 1000])
}

fn note_one(call: &Note, set: &mut WriteSet) {
    set.insert(LONG, call.key);
}

#[procedure(write_set = notes_all)]
fn notes(tx: &mut Transaction, first: u64, count: u64) -> Result<(), Stop> {
    (first..first + count).try_for_each(|key| tx.insert(LONG, key, &vec![7; 1000]))
}

fn notes_all(call: &Notes, set: &mut WriteSet) {
    (call.first..call.first + call.count).for_each(|key| set.insert(LONG, key));
}

/// O-43: before a call of a batch runs it is not known how long its values are. Short values of a
/// table whose values may be long do not take space as if all were.
#[test]
fn o_43_short_values_do_not_take_the_space_of_long_ones() -> Result<(), Error> {
    const NOTES: u64 = 2000;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let options = Database::options().workers(2).table(LONG);
    let db = options.procedure::<Note>().procedure::<Notes>().open(&path)?;
    let mut batch = db.batch();
    let added: Vec<_> = (0..NOTES).map(|key| batch.add(&Note { key })).collect::<Result<_, _>>()?;
    let submitted = batch.submit()?;
    added.into_iter().try_for_each(|added| submitted.ticket(added).wait())?;
    // A call that has to be alone in its epoch.
    db.call(Notes { first: NOTES, count: NOTES })?;
    assert_eq!((db.stats().rows, db.stats().refused), (2 * NOTES, 0));
    db.close()?;
    let bytes = super::common::image_bytes(&path);
    println!("{} values of 1,000 bytes: an image of {} MiB", 2 * NOTES, bytes >> 20);
    assert!(bytes < 110 << 20, "{bytes} bytes, {} if all were long", 2 * NOTES * 262_128);
    Ok(())
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
