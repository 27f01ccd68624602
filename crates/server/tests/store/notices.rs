//! Calls that notify come to the same after a crash, and a replay tells nobody.

use crate::client::{Client, copy, on_disk};
use server::store::{BlockOperation, Modes};

const ALL: &str = "SELECT id, v FROM t ORDER BY id";

#[test]
fn calls_that_notify_are_there_after_a_crash_and_after_a_close() {
    let dir = tempfile::tempdir().unwrap();
    let (path, killed) = (dir.path().join("store"), dir.path().join("killed"));
    let store = on_disk(&path);
    let mut client = Client::new(&store);
    let table = "CREATE TABLE t (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v text)";
    client.run(table).unwrap();
    client.run("INSERT INTO t (v) VALUES ('a'), ('b') RETURNING pg_notify('c', v)").unwrap();
    let many = "INSERT INTO t (v) SELECT v || '2' FROM t RETURNING pg_notify('c', v)";
    client.run(many).unwrap();
    client.run("SELECT pg_notify('c', v) FROM t").unwrap();
    client.run("NOTIFY c, 'alone'").unwrap();
    assert!(client.run("INSERT INTO t (v) SELECT pg_notify('', v) FROM t").is_err());
    client.begin(Modes::default());
    client.within("UPDATE t SET v = v || '3' WHERE id = 1 RETURNING pg_notify('c', v)").unwrap();
    client.block(BlockOperation::Savepoint("s".to_owned())).unwrap();
    client.within("INSERT INTO t (v) VALUES ('lost') RETURNING pg_notify('c', v)").unwrap();
    client.block(BlockOperation::RollBackTo("s".to_owned())).unwrap();
    assert!(client.within("SELECT pg_notify('c', v), 1 / (id - 2) FROM t").is_err());
    client.within("NOTIFY c, 'within'").unwrap();
    client.commit().unwrap();
    client.begin(Modes::default());
    client.within("CREATE TABLE u (id int PRIMARY KEY)").unwrap();
    client.within("INSERT INTO u VALUES (1) RETURNING pg_notify('c', 'made')").unwrap();
    client.commit().unwrap();
    let all = client.query(ALL);
    assert_eq!(all.len(), 4);
    copy(&store, &path, &killed);
    drop(client);
    store.close().unwrap();
    for path in [&killed, &path] {
        let store = on_disk(path);
        let mut client = Client::new(&store);
        assert_eq!(client.query(ALL), all, "{}", path.display());
        assert_eq!(client.query("SELECT id FROM u").len(), 1);
        client.run("NOTIFY c").unwrap();
        drop(client);
        store.close().unwrap();
    }
}
