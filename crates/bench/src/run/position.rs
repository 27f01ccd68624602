//! Where a stream is: rows of the store itself, which epochs write as they write their own.
//!
//! The first call of an epoch of the stream notes that it began, the last one that it is done. The
//! engine makes all of an epoch durable or nothing, so a recovered store says which epoch comes
//! next. Where the library had to run one in parts, for lack of space, a kill may lie between them:
//! then there is no way to go on, and that is told.

use nvcaracal::{
    Batch, Database, HashTable, Options, Stop, Table, Transaction, WriteSet, procedure,
};

use crate::{BenchError, Result};

/// The last epoch that began, and the last one that is done.
const POSITIONS: HashTable<u64, u64> = Table::hash("bench_position");
const BEGUN: u64 = 0;
const DONE: u64 = 1;

/// Notes an epoch.
#[procedure(name = "bench_position", write_set = noted)]
fn note(tx: &mut Transaction, which: u64, epoch: u64) -> std::result::Result<(), Stop> {
    tx.insert(POSITIONS, which, &epoch)
}

fn noted(call: &Note, set: &mut WriteSet) {
    set.insert(POSITIONS, call.which);
}

/// Rows that there are once an epoch is done.
pub(super) const ROWS: u64 = 2;
/// Calls that an epoch has beside its own.
pub(super) const CALLS: usize = 2;

/// Adds the table and its procedure.
pub(super) fn register(options: Options) -> Options {
    options.table(POSITIONS).procedure::<Note>()
}

/// Adds the first call of an epoch.
pub(super) fn begin(batch: &mut Batch<'_>, epoch: u64) -> Result<()> {
    Ok(batch.add(&Note { which: BEGUN, epoch }).map(drop)?)
}

/// Adds the last call of an epoch.
pub(super) fn end(batch: &mut Batch<'_>, epoch: u64) -> Result<()> {
    Ok(batch.add(&Note { which: DONE, epoch }).map(drop)?)
}

/// The last epoch that is done; 0 in a new store.
///
/// # Errors
/// `Store` if an epoch is done in part, or there are rows and no stream.
pub(super) fn last_done(database: &Database) -> Result<u64> {
    let (begun, done) = (database.get(POSITIONS, BEGUN)?, database.get(POSITIONS, DONE)?);
    match (begun, done) {
        (None, None) if database.stats().rows > 0 => Err(BenchError::Store(
            "clients made this store (--clients): it has no stream to go on with".into(),
        )),
        (None, None) => Ok(0),
        (Some(begun), Some(done)) if begun == done => Ok(done),
        (begun, _) => Err(BenchError::Store(format!(
            "epoch {} of the run had no room, ran in parts and is there in part: it cannot go on",
            begun.unwrap_or(0)
        ))),
    }
}

#[cfg(test)]
mod tests {
    use nvcaracal::DeviceSpec;

    use super::*;

    #[test]
    fn an_epoch_counts_once_it_is_there_as_a_whole() {
        let database = register(Database::options()).open_device(DeviceSpec::Dram);
        let database = database.expect("a database");
        assert_eq!(last_done(&database).expect("a new store"), 0);
        let submit = |add: fn(&mut Batch<'_>, u64) -> Result<()>, epoch| {
            let mut batch = database.batch();
            add(&mut batch, epoch).expect("a call");
            batch.submit().expect("room").wait();
        };
        submit(begin, 7);
        let why = last_done(&database).expect_err("it is there in part").to_string();
        assert!(why.contains("epoch 7") && why.contains("in part"), "{why}");
        submit(end, 7);
        assert_eq!(last_done(&database).expect("a whole epoch"), 7);
        submit(begin, 8);
        assert!(last_done(&database).is_err());
    }
}
