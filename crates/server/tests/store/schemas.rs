//! Schemas and what is in them are there after a restart and a crash; blocks and plans follow the
//! path of their session.

use crate::client::{Client, block_on, copy, memory, on_disk};
use server::store::{Environment, Modes};
use sql::catalog::Path;

fn look_in(client: &mut Client, path: &str) {
    let path = Path::parse(path).unwrap();
    client.connection.set_environment(Environment { path, ..Environment::default() });
}

#[test]
fn o_25_schemas_are_there_after_a_restart_and_a_crash() {
    let dir = tempfile::tempdir().unwrap();
    let (path, killed) = (dir.path().join("store"), dir.path().join("killed"));
    let store = on_disk(&path);
    let mut client = Client::new(&store);
    for text in [
        "CREATE SCHEMA app",
        "CREATE SCHEMA gone",
        "CREATE TYPE app.mood AS ENUM ('sad', 'happy')",
        "CREATE TABLE t (a int PRIMARY KEY)",
        "CREATE TABLE app.t (a serial PRIMARY KEY, m app.mood, p int REFERENCES t)",
        "CREATE INDEX ON app.t (m)",
        "CREATE VIEW app.v AS SELECT a, m FROM app.t WHERE m = 'sad'::app.mood",
        "INSERT INTO t VALUES (1), (2)",
        "INSERT INTO app.t (m, p) VALUES ('sad', 1), ('happy', 2)",
        "COMMENT ON TABLE app.t IS 'of app'",
        "ALTER SCHEMA app RENAME TO moved",
        "CREATE TABLE gone.x (a int)",
        "ALTER TABLE gone.x SET SCHEMA moved",
        "DROP SCHEMA gone",
    ] {
        client.run(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    }
    let mut block = Client::new(&store);
    look_in(&mut block, "moved");
    block.begin(Modes::default());
    block.within("CREATE TABLE made (a int PRIMARY KEY)").unwrap();
    block.within("INSERT INTO made SELECT a FROM t").unwrap();
    look_in(&mut block, "public");
    block.within("INSERT INTO t VALUES (7)").unwrap();
    block.commit().unwrap();
    copy(&store, &path, &killed);
    drop((client, block));
    store.close().unwrap();
    for path in [&killed, &path] {
        let store = on_disk(path);
        let mut client = Client::new(&store);
        assert_eq!(client.query("SELECT a, m FROM moved.v"), [["1", "sad"]]);
        assert_eq!(client.query("SELECT a FROM moved.made ORDER BY a"), [["1"], ["2"]]);
        assert_eq!(client.query("SELECT a FROM t ORDER BY a"), [["1"], ["2"], ["7"]]);
        assert_eq!(client.query("SELECT a FROM moved.x"), Vec::<Vec<String>>::new());
        assert_eq!(client.value("SELECT obj_description('moved.t'::regclass)"), "of app");
        let error = client.run("INSERT INTO moved.t (p) VALUES (9)").unwrap_err();
        assert_eq!(error.state().code(), "23503");
        assert_eq!(client.run("SELECT 1 FROM gone.x").unwrap_err().state().code(), "42P01");
        client.run("CREATE SCHEMA gone").unwrap();
        client.run("DROP SCHEMA moved CASCADE").unwrap();
        assert_eq!(client.run("SELECT 1 FROM moved.v").unwrap_err().state().code(), "42P01");
        store.close().unwrap();
    }
}

/// A plan that is kept for one path is not run along another one.
#[test]
fn plans_are_kept_by_the_path() {
    let store = memory();
    let mut client = Client::new(&store);
    for schema in ["a", "b"] {
        client.run(&format!("CREATE SCHEMA {schema}")).unwrap();
        client.run(&format!("CREATE TABLE {schema}.t (x text)")).unwrap();
        client.run(&format!("INSERT INTO {schema}.t VALUES ('{schema}')")).unwrap();
    }
    let mut other = Client::new(&store);
    for (first, second) in [("a", "b"), ("b, a", "a, b"), ("a", "b")] {
        look_in(&mut client, first);
        look_in(&mut other, second);
        assert_eq!(client.value("SELECT x FROM t"), &first[..1]);
        assert_eq!(other.value("SELECT x FROM t"), &second[..1]);
    }
    let select = client.prepare("SELECT x FROM t").unwrap();
    look_in(&mut client, "b");
    let again = block_on(client.connection.renewed(&select)).unwrap().expect("it is another plan");
    let rows = client.connection.submit(&again, vec![]).wait().unwrap().rows;
    assert_eq!(format!("{rows:?}"), "[[Text(\"b\")]]");
}
