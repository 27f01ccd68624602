//! Deferred foreign keys are checked at the place of COMMIT in the serial order, in a replay, too.

use crate::client::{Client, copy, memory, on_disk};
use server::store::{BlockOperation, Modes, Store};
use sql::parse::SetConstraints;

const TABLES: [&str; 2] = [
    "CREATE TABLE parent (id int PRIMARY KEY)",
    "CREATE TABLE child (id int PRIMARY KEY, parent int CONSTRAINT of REFERENCES parent DEFERRABLE \
     INITIALLY DEFERRED)",
];

fn make(store: &Store) -> [Client; 2] {
    let mut clients = [Client::new(store), Client::new(store)];
    for text in TABLES {
        clients[0].run(text).unwrap();
    }
    clients
}

/// SET CONSTRAINTS ALL
fn set(client: &mut Client, is_deferred: bool) -> Result<(), String> {
    let set = SetConstraints { names: Vec::new(), is_deferred };
    let answer = client.block(BlockOperation::Constraints(set));
    answer.map(drop).map_err(|error| error.state().code().to_owned())
}

fn commit(client: &mut Client) -> String {
    match client.commit() {
        Ok(answer) => answer.tag,
        Err(error) => error.state().code().to_owned(),
    }
}

/// Blocks of one client, between whose statements another one writes.
fn write(own: &mut Client, other: &mut Client) {
    own.begin(Modes::default());
    own.within("INSERT INTO child VALUES (1, 1)").unwrap();
    other.run("INSERT INTO parent VALUES (1)").unwrap();
    assert_eq!(commit(own), "COMMIT");

    own.begin(Modes::default());
    other.run("INSERT INTO parent VALUES (2)").unwrap();
    own.within("INSERT INTO child VALUES (2, 2)").unwrap();
    other.run("DELETE FROM parent WHERE id = 2").unwrap();
    assert_eq!(commit(own), "23503");

    // Its client was told that the key held.
    own.begin(Modes::default());
    other.run("INSERT INTO parent VALUES (3)").unwrap();
    own.within("INSERT INTO child VALUES (3, 3)").unwrap();
    set(own, false).unwrap();
    other.run("DELETE FROM parent WHERE id = 3").unwrap();
    assert_eq!(commit(own), "40001");

    // Or that it did not, behind a savepoint.
    own.begin(Modes::default());
    own.within("INSERT INTO child VALUES (4, 4)").unwrap();
    own.block(BlockOperation::Savepoint("s".to_owned())).unwrap();
    assert_eq!(set(own, false).unwrap_err(), "23503");
    own.block(BlockOperation::RollBackTo("s".to_owned())).unwrap();
    own.within("INSERT INTO parent VALUES (4)").unwrap();
    set(own, false).unwrap();
    set(own, true).unwrap();
    own.within("INSERT INTO child VALUES (5, 5)").unwrap();
    own.within("INSERT INTO parent VALUES (5)").unwrap();
    assert_eq!(commit(own), "COMMIT");
}

fn shown(client: &mut Client) -> [String; 2] {
    ["id::text FROM parent", "(id || ':' || parent) FROM child"].map(|of| {
        let (value, table) = of.split_once(" FROM ").unwrap();
        client.value(&format!("SELECT string_agg({value}, ' ' ORDER BY id) FROM {table}"))
    })
}

#[test]
fn set_constraints_begins_a_block_of_any_level() {
    let store = memory();
    let [mut own, _] = make(&store);
    for (id, keeps_snapshot) in [(1, false), (2, true)] {
        own.begin(Modes { keeps_snapshot, is_read_only: false });
        set(&mut own, true).unwrap();
        own.within(&format!("INSERT INTO child VALUES ({id}, {id})")).unwrap();
        own.within(&format!("INSERT INTO parent VALUES ({id})")).unwrap();
        assert_eq!(commit(&mut own), "COMMIT");
    }
}

#[test]
fn keys_are_checked_at_the_place_of_commit() {
    let store = memory();
    let [mut own, mut other] = make(&store);
    write(&mut own, &mut other);
    assert_eq!(shown(&mut own), ["1 4 5", "1:1 4:4 5:5"]);
}

#[test]
fn o_25_deferred_keys_are_checked_again_in_a_replay() {
    let folder = tempfile::tempdir().unwrap();
    let (path, crashed) = (folder.path().join("store"), folder.path().join("crashed"));
    let store = on_disk(&path);
    let [mut own, mut other] = make(&store);
    write(&mut own, &mut other);
    let before = shown(&mut own);
    copy(&store, &path, &crashed);
    let again = on_disk(&crashed);
    assert_eq!(shown(&mut Client::new(&again)), before);
}
