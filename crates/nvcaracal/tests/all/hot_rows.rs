//! Many threads write few rows. The database chooses how many workers run an epoch, by what it has
//! measured; whatever it chooses, no addition is lost and each call sees those before it.

use nvcaracal::{Database, DeviceSpec, HashTable, Stop, Table, Transaction, WriteSet, procedure};

const ROWS: HashTable<u64, u64> = Table::hash("rows");

fn row(call: &Add, set: &mut WriteSet) {
    set.insert(ROWS, call.row);
}

#[procedure(write_set = row)]
fn add(tx: &mut Transaction, row: u64) -> Result<u64, Stop> {
    let n = tx.get(ROWS, row)?.unwrap_or(0) + 1;
    tx.insert(ROWS, row, &n)?;
    Ok(n)
}

#[test]
fn o_11_additions_to_hot_rows_are_all_there_on_any_number_of_workers() {
    const BATCHES_MIN: u64 = 40;
    /// Another number is tried once one worker has run for some time, which these take by far.
    const BATCHES_MAX: u64 = 100_000;
    const CALLS: u64 = 300;
    for workers in [1, 2, 5] {
        let options = Database::options().table(ROWS).procedure::<Add>().workers(workers);
        let db = options.open_device(DeviceSpec::Dram).unwrap();
        let (mut used, mut batches) = (vec![0; workers + 1], 0);
        let has_tried = |used: &[u64]| workers == 1 || used[2..].iter().sum::<u64>() > 0;
        while batches < BATCHES_MIN || batches < BATCHES_MAX && !has_tried(&used) {
            batches += 1;
            let mut batch = db.batch();
            for call in 0..CALLS {
                batch.add(&Add { row: call % 3 }).unwrap();
            }
            batch.submit().unwrap().wait();
            used[db.stats().last_epoch.workers] += 1;
        }
        for row in 0..3 {
            assert_eq!(db.get(ROWS, row).unwrap(), Some(batches * CALLS / 3));
        }
        // It tries other numbers: else it could not know.
        assert!(used[1] > 0 && has_tried(&used), "{used:?}");
        db.close().unwrap();
    }
}
