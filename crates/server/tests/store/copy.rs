//! COPY of more rows than one call takes.

use crate::client::{
    Client, assert_cleared, block_on, cleared, copy, memory, on_disk, small_parts,
};
use crate::script::Target;
use server::store::{CopyIn, Store, StoreOptions, Tuning};
use std::path::Path;
use values::{Datum, Error, Result, SqlState};

/// Copies rows with numbers from `begin`, of which each has about `bytes`.
fn begin(client: &mut Client, begin: i32, count: i32, bytes: usize) -> Result<CopyIn> {
    let statement = client.prepare("COPY t (id, note) FROM STDIN")?;
    let mut rows = CopyIn::new(&statement, false, &client.connection);
    for id in begin..begin + count {
        let row = [Datum::Int4(id), Datum::text("x".repeat(bytes))];
        block_on(rows.push(&mut client.connection, id as u64, &row))?;
    }
    Ok(rows)
}

fn finish(client: &mut Client, rows: CopyIn) -> Result<String> {
    block_on(rows.finish(&mut client.connection)).map(|answer| answer.tag)
}

fn table(client: &mut Client) {
    client.run("CREATE TABLE t (id int UNIQUE, note text, at int DEFAULT 7)").unwrap();
}

#[test]
fn a_large_copy_into_an_empty_table_is_there_at_once_or_not_at_all() {
    let store = memory();
    let mut client = Client::new(&store);
    table(&mut client);
    let rows = begin(&mut client, 0, 4_000, 1_000).unwrap();
    assert_eq!(client.value("SELECT count(*) FROM t"), "0");
    assert_eq!(finish(&mut client, rows).unwrap(), "COPY 4000");
    assert_eq!(client.value("SELECT count(*) FROM t WHERE at = 7"), "4000");
    assert_eq!(client.value("SELECT id FROM t WHERE id = 3999"), "3999");
    client.run("INSERT INTO t VALUES (4000)").unwrap();
    assert_eq!(client.run("INSERT INTO t VALUES (5)").unwrap_err().state().code(), "23505");
    // A number that comes twice, in parts of their own.
    client.run("TRUNCATE t").unwrap();
    let before = cleared(&store);
    let mut rows = begin(&mut client, 0, 4_000, 1_000).unwrap();
    block_on(rows.push(&mut client.connection, 4_001, &[Datum::Int4(1), Datum::Null])).unwrap();
    let error = finish(&mut client, rows).unwrap_err();
    assert_eq!((error.state().code(), error.context()), ("23505", Some("COPY t, line 4001")));
    assert_eq!(client.value("SELECT count(*) FROM t"), "0");
    assert_cleared(&store, before);
}

/// A part is written while the rows of the next one come: what is wrong with it is known later, and
/// is what is said all the same.
#[test]
fn the_error_of_a_part_comes_before_one_of_the_rows_behind_it() {
    let store = memory();
    let mut client = Client::new(&store);
    table(&mut client);
    let before = cleared(&store);
    let mut rows = begin(&mut client, 0, 500, 1_000).unwrap();
    block_on(rows.push(&mut client.connection, 500, &[Datum::Int4(7), Datum::Null])).unwrap();
    for line in 501..1_500 {
        let row = [Datum::Int4(line), Datum::text("x".repeat(1_000))];
        block_on(rows.push(&mut client.connection, line as u64, &row)).unwrap();
    }
    let behind = Error::new(SqlState::INVALID_TEXT, "a line cannot be read");
    let error = block_on(rows.first_error(behind.clone()));
    assert_eq!((error.state().code(), error.context()), ("23505", Some("COPY t, line 500")));
    drop(rows);
    assert_cleared(&store, before);
    // Nothing is wrong with the part.
    let mut rows = begin(&mut client, 0, 1_500, 1_000).unwrap();
    let error = block_on(rows.first_error(behind));
    assert_eq!(error.state(), SqlState::INVALID_TEXT);
    drop(rows);
    assert_cleared(&store, before);
}

/// The same rows and numbers of a COPY in parts, whatever the workers and the epochs, also when the
/// store has come back from its log.
#[test]
fn o_46_a_large_copy_is_the_same_for_any_workers_and_epochs() {
    let mut states = Vec::new();
    for (workers, serial_calls_max) in [(1, 1_000), (2, 0), (4, 0)] {
        let tuning = Tuning { serial_calls_max, ..Tuning::default() };
        let dir = tempfile::tempdir().unwrap();
        let (path, killed) = (dir.path().join("store"), dir.path().join("killed"));
        let at = |path: &Path| {
            let of = StoreOptions::at(server::store::DeviceSpec::File(path.to_owned()));
            Store::open(StoreOptions { workers, tuning, ..small_parts(of) }).unwrap()
        };
        let store = at(&path);
        let mut client = Client::new(&store);
        // Its rows have hidden keys.
        client.run("CREATE TABLE t (id int UNIQUE, note text, at int DEFAULT 7)").unwrap();
        let rows = begin(&mut client, 0, 300, 100).unwrap();
        assert_eq!(finish(&mut client, rows).unwrap(), "COPY 300");
        let state = Target::state(&client);
        copy(&store, &path, &killed);
        drop(client);
        store.close().unwrap();
        let again = at(&killed);
        assert!(Target::state(&Client::new(&again)) == state, "{workers} workers, replayed");
        again.close().unwrap();
        states.push(state);
    }
    assert!(states.windows(2).all(|pair| pair[0] == pair[1]), "the rows depend on the workers");
}

#[test]
fn a_large_copy_fails_if_the_table_changes_meanwhile() {
    let store = memory();
    let (mut client, mut other) = (Client::new(&store), Client::new(&store));
    table(&mut client);
    for change in ["INSERT INTO t VALUES (-1)", "CREATE INDEX ON t (note)", "DROP TABLE t"] {
        let rows = begin(&mut client, 0, 2_000, 1_000).unwrap();
        other.run(change).unwrap();
        let error = finish(&mut client, rows).unwrap_err();
        assert_eq!(error.state().code(), "40001", "{change}");
        other.run("DELETE FROM t").unwrap_or_else(|_| client.run("SELECT 1").unwrap());
    }
}

#[test]
fn a_copy_into_a_table_with_rows_is_one_call_up_to_its_limit() {
    let store = memory();
    let mut client = Client::new(&store);
    table(&mut client);
    client.run("INSERT INTO t VALUES (-1)").unwrap();
    let rows = begin(&mut client, 0, 2_000, 1_000).unwrap();
    assert_eq!(finish(&mut client, rows).unwrap(), "COPY 2000");
    let error = begin(&mut client, 10_000, 17_000, 1_000).err().unwrap();
    assert_eq!(error.state().code(), "54000");
    assert!(error.hint().is_some());
    assert_eq!(client.value("SELECT count(*) FROM t"), "2001");
}

#[test]
fn o_25_a_large_copy_that_a_crash_cuts_off_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (path, killed) = (dir.path().join("store"), dir.path().join("killed"));
    let store = on_disk(&path);
    let mut client = Client::new(&store);
    table(&mut client);
    let before = cleared(&store);
    let rows = begin(&mut client, 0, 3_000, 1_000).unwrap();
    copy(&store, &path, &killed);
    assert_eq!(finish(&mut client, rows).unwrap(), "COPY 3000");
    drop(client);
    store.close().unwrap();
    let half = on_disk(&killed);
    assert_eq!(Client::new(&half).value("SELECT count(*) FROM t"), "0");
    assert_cleared(&half, before);
    half.close().unwrap();
    let whole = on_disk(&path);
    assert_eq!(Client::new(&whole).value("SELECT count(*) FROM t"), "3000");
    whole.close().unwrap();
}
