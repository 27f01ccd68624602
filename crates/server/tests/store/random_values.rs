//! Random values are the same at COMMIT, and after a crash.

use crate::client::{Client, copy, on_disk};
use server::store::{BlockOperation, Modes};
use std::collections::BTreeSet;

const ALL: &str = "SELECT id, at FROM t ORDER BY id";

#[test]
fn o_25_random_values_are_there_after_a_crash_and_after_a_close() {
    let dir = tempfile::tempdir().unwrap();
    let (path, killed) = (dir.path().join("store"), dir.path().join("killed"));
    let store = on_disk(&path);
    let mut client = Client::new(&store);
    let table = "CREATE TABLE t (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), \
                 at double precision DEFAULT random(), n int)";
    client.run(table).unwrap();
    let told = client.query("INSERT INTO t (n) VALUES (1), (2), (3) RETURNING id");
    let distinct: BTreeSet<_> = told.iter().collect();
    assert_eq!(distinct.len(), 3);
    // Of each statement others, though its text is the same.
    for _ in 0..3 {
        client.run("INSERT INTO t (n) SELECT n FROM t WHERE n = 1").unwrap();
    }
    client.run("UPDATE t SET at = random() + 1, id = gen_random_uuid() WHERE n = 2").unwrap();
    client.run("INSERT INTO t (n) VALUES (9) ON CONFLICT DO NOTHING").unwrap();
    client.begin(Modes::default());
    let within = client.within("INSERT INTO t (n) VALUES (4) RETURNING id").unwrap();
    client.within("UPDATE t SET at = random() WHERE n > 2 RETURNING at").unwrap();
    client.commit().unwrap();
    let found = client.query("SELECT id FROM t WHERE n = 4");
    assert_eq!(found, [[within.rows[0][0].clone()].map(|id| shown(&id))]);
    let all = client.query(ALL);
    assert_eq!(all.len(), 3 + 1 + 2 + 4 + 1 + 1);
    assert_eq!(client.value("SELECT count(DISTINCT id) FROM t"), all.len().to_string());
    assert_eq!(
        client.value("SELECT count(*) FROM t WHERE at >= 0 AND at < 2"),
        all.len().to_string()
    );
    copy(&store, &path, &killed);
    drop(client);
    store.close().unwrap();
    for path in [&killed, &path] {
        let store = on_disk(path);
        assert_eq!(Client::new(&store).query(ALL), all, "{}", path.display());
        store.close().unwrap();
    }
}

fn shown(datum: &values::Datum) -> String {
    values::text::print(datum, &values::Zone::utc())
}

#[test]
fn a_block_that_is_rolled_back_leaves_no_random_values() {
    let store = crate::client::memory();
    let mut client = Client::new(&store);
    client.run("CREATE TABLE t (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), n int)").unwrap();
    client.begin(Modes::default());
    client.within("INSERT INTO t (n) VALUES (1)").unwrap();
    client.block(BlockOperation::RollBack).unwrap();
    assert_eq!(client.value("SELECT count(*) FROM t"), "0");
    // A table that has rows gets no column of which each would need its own.
    client.run("INSERT INTO t (n) VALUES (1)").unwrap();
    let refused = client.run("ALTER TABLE t ADD u uuid DEFAULT gen_random_uuid()").unwrap_err();
    assert_eq!(refused.state().code(), "0A000");
    client.run("CREATE TABLE e (n int)").unwrap();
    client.run("ALTER TABLE e ADD u uuid DEFAULT gen_random_uuid()").unwrap();
    client.run("INSERT INTO e VALUES (1), (2)").unwrap();
    assert_eq!(client.value("SELECT count(DISTINCT u) FROM e"), "2");
    assert!(client.run("CREATE TABLE c (n float8 CHECK (n > random()))").is_err());
    assert_eq!(
        client.value("WITH r AS (SELECT random() AS x) SELECT a.x = b.x FROM r a, r b"),
        "t"
    );
}
