//! Rows that are longer than the store takes are kept in pieces: none is left, none is mixed.

use crate::client::{Client, assert_cleared, cleared, copy, memory, on_disk};
use server::store::Modes;
use sql::ir::Space;
use std::sync::atomic::{AtomicBool, Ordering};
use values::Datum;

const TABLE: &str = "CREATE TABLE document (id int PRIMARY KEY, body text)";

/// Rows that come, grow, shrink and go, by calls that do not say before that they write pieces.
fn write(client: &mut Client) {
    client.run(TABLE).unwrap();
    for text in [
        "INSERT INTO document SELECT id, repeat('a', id * 100000) FROM generate_series(1, 8) id",
        "UPDATE document SET body = body || repeat('b', 300000) WHERE id = 1",
        "UPDATE document SET body = 'short' WHERE id = 2",
        "UPDATE document SET body = left(body, 300000) WHERE id = 8",
        "DELETE FROM document WHERE id = 3",
        "UPDATE document SET id = 30 WHERE id = 4",
        "INSERT INTO document VALUES (5, '') ON CONFLICT (id) DO UPDATE SET body = 'again'",
    ] {
        client.run(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    }
}

const SHOWN: &str = "SELECT string_agg(id || ' ' || length(body) || ' ' || md5(body), ', ' \
                     ORDER BY id) FROM document";

#[test]
fn o_25_rows_in_pieces_are_the_same_after_a_crash_and_a_close() {
    let folder = tempfile::tempdir().unwrap();
    let (path, crashed) = (folder.path().join("store"), folder.path().join("crashed"));
    let store = on_disk(&path);
    let mut client = Client::new(&store);
    write(&mut client);
    let before = client.value(SHOWN);
    assert!(before.starts_with("1 400000 "), "{before}");
    copy(&store, &path, &crashed);
    let (rows, again) = (store.rows().unwrap(), on_disk(&crashed));
    assert_eq!(Client::new(&again).value(SHOWN), before);
    assert_eq!(again.rows().unwrap(), rows);
    drop(client);
    store.close().unwrap();
    let store = on_disk(&path);
    let mut client = Client::new(&store);
    assert_eq!(client.value(SHOWN), before);
    // What an open looks for and finds no table of has no rows of tables in it.
    cleared(&store);
    assert_eq!(store.rows().unwrap(), rows);
    client.run("UPDATE document SET body = 'short'").unwrap();
    assert_eq!(client.value("SELECT count(*) FROM document"), "7");
}

#[test]
fn no_piece_is_left() {
    let store = memory();
    let mut client = Client::new(&store);
    client.run(TABLE).unwrap();
    client.run("INSERT INTO document VALUES (0, '')").unwrap();
    client.run("CREATE TABLE other (id int PRIMARY KEY, body text)").unwrap();
    let before = cleared(&store);
    let long = "INSERT INTO document SELECT id, repeat('x', 600000) FROM generate_series(1, 4) id";
    for end in [
        "DELETE FROM document WHERE id > 0",
        "DELETE FROM document WHERE id BETWEEN 1 AND 4",
        "TRUNCATE document",
    ] {
        client.run(long).unwrap();
        let marked = before + 1;
        assert_eq!(cleared(&store), marked + 4 * (1 + 3), "each has three pieces");
        client.run("UPDATE document SET body = repeat('y', 300000) WHERE id = 1").unwrap();
        assert_eq!(cleared(&store), marked + 3 * (1 + 3) + 1 + 2);
        client.run("UPDATE document SET body = '' WHERE id = 1").unwrap();
        assert_eq!(cleared(&store), marked + 3 * (1 + 3) + 1);
        client.run(end).unwrap();
        let rows = client.value("SELECT count(*) FROM document");
        if rows == "0" {
            client.run("INSERT INTO document VALUES (0, '')").unwrap();
        }
        assert_cleared(&store, before);
    }
    client.run(long).unwrap();
    client.run("DROP TABLE document").unwrap();
    assert_cleared(&store, before - 2);
}

/// What the catalog has is read before anything can be gathered.
#[test]
fn definitions_stay_whole_and_the_store_opens_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = on_disk(&path);
    let mut client = Client::new(&store);
    client.run(TABLE).unwrap();
    client.run("INSERT INTO document VALUES (1, 'a')").unwrap();
    let long = format!("'{}'", "d".repeat(300_000));
    let labels: Vec<String> = (0..4096).map(|at| format!("'{at:0>63}'")).collect();
    let definitions = [
        format!("ALTER TABLE document ADD COLUMN more text DEFAULT {long}"),
        "ALTER TABLE document ADD COLUMN more text DEFAULT repeat('d', 300000)".to_owned(),
        format!("ALTER TABLE document ALTER COLUMN body SET DEFAULT {long}"),
        format!("ALTER TABLE document ADD CHECK (body <> {long})"),
        format!("CREATE INDEX ON document (id) WHERE body <> {long}"),
        format!("CREATE VIEW seen AS SELECT id FROM document WHERE body <> {long}"),
        format!("CREATE TYPE label AS ENUM ({})", labels.join(", ")),
    ];
    for text in &definitions {
        let error = client.run(text).expect_err(&text[..60]);
        assert_eq!(error.state().code(), "54000", "{error}: {}", &text[..60]);
        client.begin(Modes::default());
        client.within("UPDATE document SET body = body || 'b'").unwrap();
        let _ = client.within(text);
        assert!(client.commit().is_err() || client.value("SELECT count(*) FROM document") == "1");
    }
    assert_eq!(client.value("SELECT body FROM document"), "a");
    drop(client);
    store.close().unwrap();
    let mut client = Client::new(&on_disk(&path));
    assert_eq!(client.value("SELECT body FROM document"), "a");
}

/// A program that does not know pieces would take them for those of no table, and delete them.
#[test]
fn a_store_with_pieces_says_so_in_its_catalog() {
    let store = memory();
    let mut client = Client::new(&store);
    client.run(TABLE).unwrap();
    let has_mark = || {
        let rows = store.rows().unwrap();
        rows.iter().any(|(space, key, _)| {
            *space == Space::Catalog && *key == sql::catalog::in_pieces_key()
        })
    };
    client.run("INSERT INTO document VALUES (1, repeat('a', 200000))").unwrap();
    assert!(!has_mark());
    client.run("UPDATE document SET body = repeat('a', 300000)").unwrap();
    assert!(has_mark());
    client.run("DROP TABLE document").unwrap();
    assert_cleared(&store, 2);
}

/// A look-up reads the newest state, which changes between a row's head and its pieces.
#[test]
fn a_look_up_never_sees_pieces_of_two_rows() {
    let store = memory();
    let mut client = Client::new(&store);
    client.run(TABLE).unwrap();
    client.run("INSERT INTO document VALUES (1, repeat('0', 900000))").unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut reader = Client::new(&store);
                    while !is_over.load(Ordering::Relaxed) {
                        let body = reader.value("SELECT body FROM document WHERE id = 1");
                        let first = body.as_bytes()[0];
                        assert!(body.bytes().all(|byte| byte == first), "{first}");
                    }
                })
            })
            .collect();
        for round in 1..400 {
            let length = [2_400_000, 300_000, 10, 1_200_000][round % 4];
            let (digit, set) = (round % 10, "UPDATE document SET body = repeat");
            client.run(&format!("{set}('{digit}', {length}) WHERE id = 1")).unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
        readers.into_iter().for_each(|reader| reader.join().unwrap());
    });
}

#[test]
fn long_parameters_are_stored() {
    let store = memory();
    let mut client = Client::new(&store);
    client.run("CREATE TABLE named (name text PRIMARY KEY, body bytea)").unwrap();
    let mut insert = |name: &str, bytes: usize| {
        let body = Datum::Bytea((0..bytes).map(|at| (at % 251) as u8).collect());
        let parameters = vec![Datum::Text(name.into()), body];
        client.submit("INSERT INTO named VALUES ($1, $2)", parameters).and_then(|one| one.wait())
    };
    insert("a", 5_000_000).unwrap();
    insert(&"b".repeat(240), 300_000).unwrap();
    let lengths = "SELECT string_agg(length(body)::text, ' ' ORDER BY name) FROM named";
    assert_eq!(client.value(lengths), "5000000 300000");
}
