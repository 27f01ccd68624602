//! Views are there after a restart and a crash, and hold for statements that write.

use crate::client::{Client, copy, memory, on_disk};

#[test]
fn o_25_views_are_there_after_a_restart_and_a_crash() {
    let dir = tempfile::tempdir().unwrap();
    let (path, killed) = (dir.path().join("store"), dir.path().join("killed"));
    let store = on_disk(&path);
    let mut client = Client::new(&store);
    for text in [
        "CREATE TABLE t (a int PRIMARY KEY, b int)",
        "CREATE VIEW v AS SELECT *, b * 2 AS c FROM t WHERE a > 1",
        "CREATE VIEW w (x) AS SELECT sum(c) FROM v",
        "CREATE VIEW gone AS SELECT 1",
        "DROP VIEW gone",
        "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)",
        "INSERT INTO t SELECT a + 10, c FROM v",
    ] {
        client.run(text).unwrap();
    }
    copy(&store, &path, &killed);
    store.close().unwrap();
    for path in [&killed, &path] {
        let store = on_disk(path);
        let mut client = Client::new(&store);
        assert_eq!(client.value("SELECT x FROM w"), "300");
        let error = client.run("DROP TABLE t").unwrap_err();
        assert_eq!(error.state().code(), "2BP01");
        let detail = "view v depends on table t\nview w depends on view v";
        assert_eq!(error.detail(), Some(detail));
        assert_eq!(client.run("SELECT 1 FROM gone").unwrap_err().state().code(), "42P01");
        client.run("CREATE OR REPLACE VIEW w AS SELECT sum(c) AS x, count(*) AS n FROM v").unwrap();
        assert_eq!(client.query("SELECT * FROM w"), [["300", "4"]]);
        client.run("DROP TABLE t CASCADE").unwrap();
        assert_eq!(client.run("SELECT x FROM w").unwrap_err().state().code(), "42P01");
        store.close().unwrap();
    }
}

/// A statement that was prepared before a view was replaced runs with the new one.
#[test]
fn plans_follow_views() {
    let mut client = Client::new(&memory());
    client.run("CREATE TABLE t (a int PRIMARY KEY)").unwrap();
    client.run("INSERT INTO t VALUES (1), (2), (3)").unwrap();
    client.run("CREATE VIEW v AS SELECT a FROM t WHERE a > 1").unwrap();
    let delete = client.prepare("DELETE FROM t USING v WHERE v.a = t.a AND v.a < 3").unwrap();
    let count = client.prepare("SELECT count(*) FROM v").unwrap();
    client.run("CREATE OR REPLACE VIEW v AS SELECT a FROM t WHERE a < 3").unwrap();
    let tag = client.connection.submit(&delete, vec![]).wait().unwrap().tag;
    assert_eq!(tag, "DELETE 2");
    client.run("DROP VIEW v").unwrap();
    let error = client.connection.submit(&count, vec![]).wait().unwrap_err();
    assert_eq!(error.state().code(), "42P01");
}
