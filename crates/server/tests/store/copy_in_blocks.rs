//! COPY in a block of more rows than the block may hold.

use crate::client::{Client, assert_cleared, block_on, cleared, copy, small_parts};
use server::store::{BlockOperation, CopyIn, DeviceSpec, Modes, Store, StoreOptions};
use std::path::Path;
use values::{Datum, Result};

const READ_COMMITTED: Modes = Modes { keeps_snapshot: false, is_read_only: false };
const ROWS: i32 = 2_000;

fn memory() -> Store {
    Store::open(small_parts(StoreOptions::memory())).unwrap()
}

fn on_disk(path: &Path) -> Store {
    let device = DeviceSpec::File(path.to_owned());
    Store::open(small_parts(StoreOptions::at(device))).unwrap()
}

/// Begins to copy rows with these numbers in the block.
fn begin(client: &mut Client, text: &str, ids: &[i32]) -> Result<CopyIn> {
    let statement = client.prepare(text)?;
    let mut rows = CopyIn::new(&statement, true, &client.connection);
    for (line, id) in ids.iter().enumerate() {
        let row = [Datum::Int4(*id), Datum::text("x".repeat(100))];
        block_on(rows.push(&mut client.connection, line as u64 + 1, &row))?;
    }
    Ok(rows)
}

fn copy_rows(client: &mut Client, text: &str, ids: &[i32]) -> Result<String> {
    let rows = begin(client, text, ids)?;
    block_on(rows.finish(&mut client.connection)).map(|answer| answer.tag)
}

fn many() -> Vec<i32> {
    (0..ROWS).collect()
}

fn value(client: &mut Client, text: &str) -> String {
    let rows = client.within(text).unwrap_or_else(|error| panic!("{text}: {error}")).rows;
    crate::script::shown(&rows[0])[0].clone()
}

const COPY: &str = "COPY t (id, note) FROM STDIN";

fn table(client: &mut Client) {
    client.run("CREATE TABLE t (id int UNIQUE, note text, at int DEFAULT 7)").unwrap();
    client.run("CREATE TABLE other (a int PRIMARY KEY)").unwrap();
    client.run("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')").unwrap();
}

/// A block that empties the table, and copies many rows into it.
fn block(client: &mut Client) {
    client.begin(READ_COMMITTED);
    assert_eq!(value(client, "SELECT count(*) FROM t"), "3");
    client.within("INSERT INTO other VALUES (1)").unwrap();
    client.within("TRUNCATE t").unwrap();
    assert_eq!(value(client, "SELECT count(*) FROM t"), "0");
    client.within("CREATE INDEX by_note ON t (note)").unwrap();
    assert_eq!(copy_rows(client, COPY, &many()).unwrap(), format!("COPY {ROWS}"));
    assert_eq!(value(client, "SELECT count(*) FROM t"), ROWS.to_string());
    client.within("CREATE INDEX by_at ON t (at, id)").unwrap();
    client.within("UPDATE t SET note = 'new' WHERE id = 5").unwrap();
    assert_eq!(client.within("INSERT INTO t VALUES (7)").unwrap_err().state().code(), "23505");
    client.within("INSERT INTO t VALUES (-1, 'last')").unwrap();
}

fn check(client: &mut Client) {
    assert_eq!(client.value("SELECT count(*) FROM t"), (ROWS + 1).to_string());
    assert_eq!(client.value("SELECT count(*) FROM t WHERE at = 7"), (ROWS + 1).to_string());
    assert_eq!(client.value("SELECT id FROM t WHERE note = 'new'"), "5");
    let same = format!("SELECT count(*) FROM t WHERE note = '{}'", "x".repeat(100));
    assert_eq!(client.value(&same), (ROWS - 1).to_string());
    assert_eq!(client.value("SELECT sum(id) FROM t"), (ROWS * (ROWS - 1) / 2 - 1).to_string());
}

#[test]
fn its_rows_are_there_with_the_commit_and_seen_by_no_other_before() {
    let store = memory();
    let (mut one, mut other) = (Client::new(&store), Client::new(&store));
    table(&mut one);
    block(&mut one);
    assert_eq!(other.value("SELECT count(*) FROM t"), "3");
    other.run("INSERT INTO other VALUES (2)").unwrap();
    one.commit().unwrap();
    check(&mut one);
    check(&mut other);
    assert_eq!(other.run("INSERT INTO t VALUES (9)").unwrap_err().state().code(), "23505");
    assert_eq!(other.value("SELECT count(*) FROM other"), "2");
    // The whole again, over rows that came so.
    one.begin(READ_COMMITTED);
    one.within("TRUNCATE t").unwrap();
    copy_rows(&mut one, COPY, &many()).unwrap();
    one.commit().unwrap();
    assert_eq!(other.value("SELECT count(*) FROM t"), ROWS.to_string());
}

#[test]
fn a_block_that_does_not_commit_leaves_everything_as_it_was() {
    let store = memory();
    let (mut one, mut other) = (Client::new(&store), Client::new(&store));
    table(&mut one);
    let before = cleared(&store);
    block(&mut one);
    one.block(BlockOperation::RollBack).unwrap();
    assert_eq!(one.value("SELECT count(*) FROM t"), "3");
    assert_cleared(&store, before);
    // Others have defined something: theirs gets none of the rows.
    block(&mut one);
    other.run("CREATE TABLE made (a int)").unwrap();
    other.run("INSERT INTO made VALUES (1)").unwrap();
    assert_eq!(one.commit().unwrap_err().state().code(), "40001");
    assert_eq!(other.value("SELECT count(*) FROM made"), "1");
    assert_eq!(one.value("SELECT count(*) FROM t"), "3");
    // The client has left.
    block(&mut one);
    drop(one);
    assert_eq!(other.value("SELECT count(*) FROM t"), "3");
    other.run("DROP TABLE made").unwrap();
    assert_cleared(&store, before);
    // A row that cannot be, behind the first part.
    let mut one = Client::new(&store);
    one.begin(READ_COMMITTED);
    one.within("TRUNCATE t").unwrap();
    let twice: Vec<i32> = many().into_iter().chain([17]).collect();
    let error = copy_rows(&mut one, COPY, &twice).unwrap_err();
    assert_eq!((error.state().code(), error.context()), ("23505", Some("COPY t, line 2001")));
    assert_eq!(one.within("SELECT 1").unwrap_err().state().code(), "25P02");
    assert_eq!(one.commit().unwrap_err().state().code(), "25P02");
    assert_eq!(one.value("SELECT count(*) FROM t"), "3");
}

#[test]
fn o_25_a_crash_before_the_commit_leaves_the_table_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let (path, killed) = (dir.path().join("store"), dir.path().join("killed"));
    let store = on_disk(&path);
    let mut client = Client::new(&store);
    table(&mut client);
    let before = cleared(&store);
    block(&mut client);
    copy(&store, &path, &killed);
    client.commit().unwrap();
    cleared(&store);
    let after = store.rows().unwrap();
    drop(client);
    store.close().unwrap();
    let half = on_disk(&killed);
    let mut client = Client::new(&half);
    assert_eq!(client.value("SELECT count(*) FROM t"), "3");
    assert_eq!(client.value("SELECT count(*) FROM other"), "0");
    // The ids that rows are cleared of are never given again.
    client.run("CREATE TABLE made (a int)").unwrap();
    assert_eq!(client.value("SELECT count(*) FROM made"), "0");
    client.run("DROP TABLE made").unwrap();
    assert_cleared(&half, before);
    drop(client);
    half.close().unwrap();
    let whole = on_disk(&path);
    assert!(whole.rows().unwrap() == after);
    check(&mut Client::new(&whole));
    whole.close().unwrap();
}

#[test]
fn numbers_of_a_sequence_of_the_block_go_on_behind_the_rows() {
    let store = memory();
    let mut client = Client::new(&store);
    client.begin(READ_COMMITTED);
    client.within("CREATE TABLE t (id int, note text, n serial)").unwrap();
    client.within("ALTER SEQUENCE t_n_seq START 1 MINVALUE 1").unwrap();
    copy_rows(&mut client, COPY, &many()).unwrap();
    assert_eq!(value(&mut client, "INSERT INTO t VALUES (-1) RETURNING n"), "2001");
    client.commit().unwrap();
    assert_eq!(client.value("INSERT INTO t VALUES (-2) RETURNING n"), "2002");
    assert_eq!(client.value("SELECT count(DISTINCT n) FROM t"), "2002");
}

#[test]
fn what_a_block_cannot_copy_is_refused_with_the_reason() {
    let store = memory();
    let mut client = Client::new(&store);
    table(&mut client);
    client.run("CREATE TABLE child (id int REFERENCES other, note text)").unwrap();
    let snapshot = Modes { keeps_snapshot: true, is_read_only: false };
    let cases: [(Modes, &[&str], &str, &str); 6] = [
        (READ_COMMITTED, &["DELETE FROM t"], COPY, "TRUNCATE"),
        (snapshot, &["TRUNCATE t"], COPY, "READ COMMITTED"),
        (READ_COMMITTED, &["TRUNCATE t", "INSERT INTO t VALUES (-1)"], COPY, "at once"),
        (READ_COMMITTED, &["TRUNCATE child"], "COPY child FROM STDIN", "behind the COPY"),
        (READ_COMMITTED, &["SAVEPOINT", "TRUNCATE t"], COPY, "Release"),
        (
            READ_COMMITTED,
            &[
                "CREATE TABLE u (id int, note text, n serial)",
                "INSERT INTO u VALUES (1)",
                "TRUNCATE u",
            ],
            "COPY u (id, note) FROM STDIN",
            "numbers",
        ),
    ];
    for (modes, before, text, hint) in cases {
        client.begin(modes);
        for text in before {
            if *text == "SAVEPOINT" {
                client.block(BlockOperation::Savepoint("a".to_owned())).unwrap();
            } else {
                client.within(text).unwrap();
            }
        }
        let error = copy_rows(&mut client, text, &many()).unwrap_err();
        assert_eq!(error.state().code(), "54000", "{before:?}: {error}");
        assert!(error.detail().is_some(), "{before:?}");
        assert!(error.hint().unwrap().contains(hint), "{before:?}: {:?}", error.hint());
        client.block(BlockOperation::RollBack).unwrap();
    }
    assert_eq!(client.value("SELECT count(*) FROM t"), "3");
}
