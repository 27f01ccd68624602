//! Memory by structure while tables are filled and built anew, as `pgbench -i` does. What a large
//! statement needed is there for the next one.

use crate::client::{Client, block_on, cleared, small_parts};
use nvcaracal::MemoryUse;
use server::store::{BlockOperation, CopyIn, DeviceSpec, Modes, Store, StoreOptions};
use values::Datum;

const READ_COMMITTED: Modes = Modes { keeps_snapshot: false, is_read_only: false };

/// A table with rows like those of `pgbench_accounts`, copied in a block that has emptied it.
fn filled(client: &mut Client, rows: i32) {
    let table = "CREATE TABLE accounts (aid int NOT NULL, bid int, abalance int, filler char(84))";
    client.run(table).unwrap();
    client.begin(READ_COMMITTED);
    client.within("TRUNCATE accounts").unwrap();
    let statement = client.prepare("COPY accounts FROM STDIN").unwrap();
    let mut copied = CopyIn::new(&statement, true, &client.connection);
    for id in 1..=rows {
        let row = [Datum::Int4(id), Datum::Int4(1), Datum::Int4(0), Datum::text(" ".repeat(84))];
        block_on(copied.push(&mut client.connection, id as u64, &row)).unwrap();
    }
    block_on(copied.finish(&mut client.connection)).unwrap();
    client.block(BlockOperation::Commit).unwrap();
}

/// What is in use when nothing runs and nothing is left to clear.
fn settled(store: &Store, step: &str) -> MemoryUse {
    let rows = cleared(store);
    assert_eq!(store.database().stats().queued_bytes, 0, "{step}");
    let memory = store.database().memory().unwrap();
    assert_eq!(memory.snapshots, 0, "{step}");
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let resident = status.lines().find(|line| line.starts_with("VmRSS")).unwrap_or_default();
    eprintln!("{step}: {rows} rows, {memory:?}, {resident}");
    memory
}

/// `NVCARACAL_ROWS` says how many rows, `--nocapture` shows what they take.
#[test]
fn tables_that_are_built_anew_again_and_again_take_no_more_memory() {
    let rows = std::env::var("NVCARACAL_ROWS").ok().and_then(|text| text.parse().ok());
    let dir = tempfile::tempdir().unwrap();
    let at = StoreOptions::at(DeviceSpec::File(dir.path().join("store")));
    // Few rows are many with small parts.
    let options = if rows.is_some() { at } else { small_parts(at) };
    let store = Store::open(options).unwrap();
    let mut client = Client::new(&store);
    settled(&store, "empty");
    filled(&mut client, rows.unwrap_or(4_000));
    settled(&store, "COPY");
    let mut after = Vec::new();
    for text in [
        "ALTER TABLE accounts ADD PRIMARY KEY (aid)",
        "ALTER TABLE accounts DROP CONSTRAINT accounts_pkey",
        "ALTER TABLE accounts ADD PRIMARY KEY (aid)",
        "ALTER TABLE accounts DROP CONSTRAINT accounts_pkey",
        "ALTER TABLE accounts ADD PRIMARY KEY (aid)",
    ] {
        client.run(text).unwrap();
        after.push(settled(&store, text));
    }
    let [.., earlier, _, last] = &after[..] else { unreachable!("there are five") };
    assert_eq!(last.row_entries, earlier.row_entries);
    assert_eq!(last.persistent_rows, earlier.persistent_rows);
    assert_eq!(last.persistent_values, earlier.persistent_values);
    // Keys with other ids come into other pages of the index.
    assert!(last.index <= earlier.index + earlier.index / 20, "{last:?}, {earlier:?}");
}
