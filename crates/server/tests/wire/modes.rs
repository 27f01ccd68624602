//! Modes of transactions that are no blocks, and the ends of cursors, with PostgreSQL 15's answers
//! to the same messages: a text or a pipeline is a transaction like a block.

use crate::support::{Client, Server, run};

const LEVEL: &str = "SHOW transaction_isolation";
const ACCESS: &str = "SHOW transaction_read_only";
const SET_LEVEL: [&str; 3] = [
    "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
    "SET transaction_isolation = 'serializable'",
    "SET LOCAL transaction_isolation TO serializable",
];

fn server() -> Server {
    let server = Server::start();
    let mut client = server.client();
    client.query("CREATE TABLE t (id int PRIMARY KEY, a int)");
    client.query("INSERT INTO t VALUES (1, 0), (2, 0)");
    server
}

/// What is answered, without tags, notices and what a message of its own says.
fn told(said: Vec<String>) -> String {
    let is_told = |said: &String| {
        said.starts_with("row ") || said.starts_with("error ") || said.starts_with("ready")
    };
    said.into_iter().filter(is_told).collect::<Vec<_>>().join(", ")
}

fn text(client: &mut Client, statements: &[&str]) -> String {
    told(client.query(&statements.join("; ")))
}

fn pipeline(client: &mut Client, statements: &[&str]) -> String {
    let messages: Vec<_> = statements.iter().map(|statement| run(statement)).collect();
    told(client.segment(&messages))
}

type Way = fn(&mut Client, &[&str]) -> String;
const WAYS: [(&str, Way); 2] = [("text", text), ("pipeline", pipeline)];

/// Sends statements to a new session as one transaction, in both ways.
fn check(server: &Server, statements: &[&str], expected: &str) {
    for (way, send) in WAYS {
        let mut client = server.client();
        assert_eq!(send(&mut client, statements), expected, "{way}: {statements:?}");
    }
}

/// Sends texts to a new session, one after the other; what the last one is answered.
fn last(server: &Server, texts: &[&str]) -> String {
    let mut client = server.client();
    texts.iter().map(|text| told(client.query(text))).last().expect("a text")
}

#[test]
fn a_text_or_pipeline_has_the_modes_that_it_asks_for() {
    let server = server();
    for set in SET_LEVEL {
        let shown = "row serializable, ready";
        check(&server, &[set, LEVEL], shown);
        check(
            &server,
            &[set, LEVEL, "COMMIT", LEVEL],
            "row serializable, row read committed, ready",
        );
        check(&server, &[set, "BEGIN", LEVEL, "COMMIT"], shown);
        for (_, send) in WAYS {
            let mut client = server.client();
            send(&mut client, &[set, "SELECT 1", LEVEL]);
            assert_eq!(text(&mut client, &[LEVEL]), "row read committed, ready", "{set}");
        }
        // It is too late behind what reads a state, also where nothing of a table was read.
        for query in ["SELECT 1", "SELECT version()", "EXPLAIN SELECT 1", "DEALLOCATE ALL"] {
            let rows = if query.starts_with("SELECT") { 1 } else { 0 };
            for (way, send) in WAYS {
                let said = send(&mut server.client(), &[query, set, LEVEL]);
                let said: Vec<_> = said.split(", ").filter(|one| !one.starts_with("row")).collect();
                assert_eq!(said, ["error 25001", "ready"], "{way}: {query}; {set} ({rows})");
            }
        }
        check(&server, &["INSERT INTO t VALUES (9, 9)", set, LEVEL], "error 25001, ready");
        check(&server, &["PREPARE p AS SELECT 1", set], "error 25001, ready");
        check(&server, &["SET timezone = 'UTC'", set, LEVEL], shown);
    }
    for set in ["SET TRANSACTION READ ONLY", "SET transaction_read_only = on"] {
        let write = "INSERT INTO t VALUES (9, 9)";
        check(&server, &[set, ACCESS, write], "row on, error 25006, ready");
        check(&server, &["SELECT 1", set, write], "row 1, error 25006, ready");
        check(&server, &[set, "BEGIN", write], "error 25006, ready E");
        check(&server, &[set, "COMMIT", write, "DELETE FROM t WHERE id = 9"], "ready");
        check(&server, &[set, "SET TRANSACTION READ WRITE", ACCESS], "row off, ready");
        check(
            &server,
            &[set, "SELECT 1", "SET TRANSACTION READ WRITE"],
            "row 1, error 25001, ready",
        );
    }
    let by_function = "SELECT set_config('transaction_read_only', 'on', false)";
    check(&server, &[by_function, ACCESS], "row on, row on, ready");
    let by_function = "SELECT set_config('transaction_isolation', 'serializable', false)";
    check(&server, &[by_function, LEVEL], "error 25001, ready");
    assert_eq!(told(server.client().query("SELECT count(*) FROM t")), "row 2, ready");
}

/// Reads one snapshot where it says so, and not where only what comes behind it does.
#[test]
fn the_snapshots_of_a_pipeline_are_of_its_level() {
    let at_once = SET_LEVEL.map(|set| (set, "row 0"));
    let later = [
        ("SET default_transaction_isolation = 'serializable'", "row 1"),
        ("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE", "row 1"),
    ];
    for (set, second) in at_once.into_iter().chain(later) {
        let server = server();
        let (mut one, mut other) = (server.client(), server.client());
        let flush = crate::support::message(b'H', b"");
        one.send(&[run(set), run("SELECT a FROM t WHERE id = 1"), flush].concat());
        while one.next().expect("an answer").kind != b'D' {}
        assert_eq!(other.query("UPDATE t SET a = 1")[0], "UPDATE 2");
        let said = one.segment(&[run("SELECT a FROM t WHERE id = 2")]);
        assert!(said.contains(&second.to_owned()), "{set}: {said:?}");
    }
}

#[test]
fn defaults_act_from_the_next_transaction_on() {
    let server = server();
    for set in [
        "SET default_transaction_isolation = 'serializable'",
        "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE",
    ] {
        let (now, then) = ("row read committed", "row serializable");
        check(&server, &[set, LEVEL], &format!("{now}, ready"));
        check(&server, &[set, "COMMIT", LEVEL], &format!("{then}, ready"));
        check(&server, &[set, "ROLLBACK", LEVEL], &format!("{now}, ready"));
        check(&server, &[set, "BEGIN", LEVEL, "COMMIT"], &format!("{now}, ready"));
        assert_eq!(last(&server, &[set, LEVEL]), format!("{then}, ready"));
        assert_eq!(last(&server, &[set, "BEGIN", LEVEL]), format!("{then}, ready T"));
    }
    for set in [
        "SET default_transaction_read_only = on",
        "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
    ] {
        let write = "UPDATE t SET a = 0";
        check(&server, &[set, ACCESS, write], "row off, ready");
        check(&server, &[set, "COMMIT", write], "error 25006, ready");
        assert_eq!(last(&server, &[set, write]), "error 25006, ready");
    }
}

#[test]
fn a_block_refuses_modes_that_come_too_late() {
    let server = server();
    for (before, late) in [
        ("SELECT 1", "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE"),
        ("SELECT 1", "SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED"),
        ("SELECT 1", "SET TRANSACTION DEFERRABLE"),
        ("PREPARE p AS SELECT 1", "BEGIN ISOLATION LEVEL SERIALIZABLE"),
        ("SAVEPOINT s", "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE"),
        ("SAVEPOINT s", "BEGIN ISOLATION LEVEL SERIALIZABLE"),
        ("SAVEPOINT s", "SET TRANSACTION NOT DEFERRABLE"),
        ("SET TRANSACTION READ ONLY; SAVEPOINT s", "SET TRANSACTION READ WRITE"),
        ("SET TRANSACTION READ ONLY; SELECT 1", "SET transaction_read_only = off"),
    ] {
        assert_eq!(last(&server, &["BEGIN", before, late]), "error 25001, ready E", "{late}");
    }
    for (before, taken) in [
        ("SELECT 1", "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"),
        ("SELECT 1", "SET TRANSACTION READ ONLY"),
        ("SAVEPOINT s", "BEGIN"),
        ("SAVEPOINT s", "BEGIN READ ONLY"),
        ("FETCH ALL FROM c", "SELECT 1"),
    ] {
        let setup = ["BEGIN", "DECLARE c CURSOR FOR SELECT id FROM t WHERE false", before, taken];
        assert!(last(&server, &setup).ends_with("ready T"), "{taken}");
    }
}

#[test]
fn a_chained_block_has_the_modes_of_the_one_before() {
    let server = server();
    let serializable = "BEGIN ISOLATION LEVEL SERIALIZABLE";
    for (texts, level) in [
        (&[serializable, "COMMIT AND CHAIN"][..], "serializable"),
        (&[serializable, "ROLLBACK AND CHAIN"], "serializable"),
        (&[serializable, "SELECT 1/0", "COMMIT AND CHAIN"], "read committed"),
        (&[serializable, "COMMIT AND CHAIN", "SELECT 1/0", "COMMIT AND CHAIN"], "serializable"),
        (&[serializable, "ROLLBACK AND CHAIN", "SELECT 1/0", "ROLLBACK AND CHAIN"], "serializable"),
        (&[serializable, "SAVEPOINT s", "SELECT 1/0", "ROLLBACK AND CHAIN"], "serializable"),
        (&["BEGIN", "SAVEPOINT s", "SELECT 1/0", "ROLLBACK AND CHAIN"], "read committed"),
    ] {
        let texts = [texts, &[LEVEL]].concat();
        assert_eq!(last(&server, &texts), format!("row {level}, ready T"), "{texts:?}");
    }
    let texts = ["BEGIN", "SAVEPOINT s", "SET TRANSACTION READ ONLY", "ROLLBACK AND CHAIN", ACCESS];
    assert_eq!(last(&server, &texts), "row off, ready T");
}

#[test]
fn deferrable_is_a_mode_that_changes_nothing() {
    let server = server();
    let shown = "SHOW transaction_deferrable";
    for (texts, expected) in [
        (&["BEGIN ISOLATION LEVEL SERIALIZABLE, READ ONLY, DEFERRABLE"][..], "row on, ready T"),
        (&["START TRANSACTION NOT DEFERRABLE"], "row off, ready T"),
        (&["SET default_transaction_deferrable = on"], "row on, ready"),
        (&["SET SESSION CHARACTERISTICS AS TRANSACTION DEFERRABLE", "BEGIN"], "row on, ready T"),
        (&["BEGIN DEFERRABLE", "COMMIT"], "row off, ready"),
    ] {
        assert_eq!(last(&server, &[texts, &[shown]].concat()), expected, "{texts:?}");
    }
}

#[test]
fn what_reads_nothing_is_refused_where_nothing_may_be_written() {
    let server = server();
    for definition in [
        "DROP TABLE nothing",
        "DROP VIEW nothing",
        "DROP TYPE nothing",
        "CREATE INDEX ON nothing (a)",
        "CREATE INDEX ON t (nothing)",
        "CREATE VIEW v AS SELECT nothing",
        "CREATE TABLE t (a int)",
        "ALTER TABLE nothing ADD b int",
        "ALTER SEQUENCE nothing RESTART",
        "ALTER TYPE nothing RENAME TO b",
        "TRUNCATE nothing",
    ] {
        let said = last(&server, &["BEGIN READ ONLY", definition]);
        assert_eq!(said, "error 25006, ready E", "{definition}");
        let said = last(&server, &["SET default_transaction_read_only = on", definition]);
        assert_eq!(said, "error 25006, ready", "{definition}");
    }
    let made = "CREATE TABLE u AS SELECT nothing";
    assert_eq!(last(&server, &["BEGIN READ ONLY", made]), "error 42703, ready E");
}

/// Sends statements in one transaction, which fails or not; what a FETCH is answered behind it.
fn fetched_behind(
    server: &Server,
    before: &[&str],
    statements: &[&str],
    name: &str,
) -> Vec<String> {
    let fetched = WAYS.map(|(_, send)| {
        let mut client = server.client();
        before.iter().for_each(|text| drop(client.query(text)));
        send(&mut client, statements);
        client.query("ROLLBACK");
        text(&mut client, &[&format!("FETCH {name}")])
    });
    fetched.into()
}

#[test]
fn a_cursor_with_hold_goes_with_the_text_or_pipeline_that_fails() {
    let server = server();
    let declare = "DECLARE c CURSOR WITH HOLD FOR SELECT 7";
    let (is_gone, is_there) = (["error 34000, ready"; 2], ["row 7, ready"; 2]);
    let insert = "INSERT INTO t VALUES (1, 1)";
    for failing in [
        &[declare, "SELECT 1/0"][..],
        &[declare, insert],
        &[declare, insert, "SELECT 1"],
        &[declare, "SELECT nothing"],
        &[declare, "SHOW nothing"],
        &["UPDATE t SET a = a", declare, insert],
        &[declare, "BEGIN", "SELECT 1/0"],
        &[declare, "BEGIN", "SELECT 1"],
        &[declare, "ROLLBACK"],
    ] {
        assert_eq!(fetched_behind(&server, &[], failing, "c"), is_gone, "{failing:?}");
        // Its name is free again.
        let mut client = server.client();
        text(&mut client, failing);
        client.query("ROLLBACK");
        assert_eq!(client.query(declare)[0], "DECLARE CURSOR", "{failing:?}");
    }
    for lasting in [
        &[declare, "SELECT 1"][..],
        &[declare, "UPDATE t SET a = a"],
        &[declare, "COMMIT", "SELECT 1/0"],
        &[declare, "BEGIN", "COMMIT", "BEGIN", "SELECT 1/0"],
    ] {
        assert_eq!(fetched_behind(&server, &[], lasting, "c"), is_there, "{lasting:?}");
    }
    // One of before stays, also if what fails uses it; what closes it is not undone.
    for failing in [&["SELECT 1/0"][..], &["MOVE 0 FROM c", "SELECT 1/0"]] {
        assert_eq!(fetched_behind(&server, &[declare], failing, "c"), is_there, "{failing:?}");
    }
    let closing = ["CLOSE c", "SELECT 1/0"];
    assert_eq!(fetched_behind(&server, &[declare], &closing, "c"), is_gone);
}

#[test]
fn what_is_prepared_stays_when_its_transaction_fails() {
    let server = server();
    for (_, send) in WAYS {
        let mut client = server.client();
        send(&mut client, &["PREPARE p AS SELECT 7", "SELECT 1/0"]);
        assert_eq!(text(&mut client, &["EXECUTE p"]), "row 7, ready");
        send(&mut client, &["DEALLOCATE p", "SELECT 1/0"]);
        assert_eq!(text(&mut client, &["EXECUTE p"]), "error 26000, ready");
    }
}

#[test]
fn a_text_may_declare_a_cursor_without_hold() {
    let server = server();
    let declare = "DECLARE c CURSOR FOR SELECT id FROM t ORDER BY id";
    let mut client = server.client();
    let said = text(&mut client, &[declare, "FETCH c", "DELETE FROM t WHERE id = 2", "FETCH c"]);
    assert_eq!(said, "row 1, row 2, ready");
    for texts in [
        &[&format!("{declare}; SELECT 1")[..]][..],
        &[&format!("SELECT 1; {declare}")],
        &[&format!("{declare}; COMMIT; SELECT 1")],
        &[declare],
    ] {
        assert_eq!(
            last(&server, &[texts, &["FETCH c"]].concat()),
            "error 34000, ready",
            "{texts:?}"
        );
    }
    assert_eq!(last(&server, &[declare]), "error 25P01, ready");
    assert_eq!(pipeline(&mut client, &[declare, "FETCH c"]), "error 25P01, ready");
    let begun = format!("{declare}; BEGIN");
    assert_eq!(last(&server, &[&begun, "FETCH c"]), "row 1, ready T");
    assert_eq!(last(&server, &[&begun, "COMMIT", "FETCH c"]), "error 34000, ready");
}

#[test]
fn what_must_be_alone_is_refused_in_a_text() {
    let server = server();
    for name in ["DISCARD ALL", "VACUUM"] {
        assert_eq!(last(&server, &[name]), "ready", "{name}");
        for beside in [format!("{name}; SELECT 1"), format!("SET timezone = 'UTC'; {name}")] {
            assert_eq!(last(&server, &[&beside]), "error 25001, ready", "{beside}");
        }
    }
    let notices = |client: &mut Client, text: &str| {
        let said = client.query(text);
        said.iter().filter(|said| *said == "notice 25P01").count()
    };
    let mut client = server.client();
    for alone in ["SET CONSTRAINTS ALL DEFERRED", "SET LOCAL timezone = 'UTC'", SET_LEVEL[0]] {
        assert_eq!(notices(&mut client, alone), 1, "{alone}");
        assert_eq!(notices(&mut client, &format!("{alone}; SELECT 1")), 0, "{alone}");
        assert_eq!(notices(&mut client, &format!("BEGIN; {alone}; COMMIT")), 0, "{alone}");
    }
}

#[test]
fn settings_show_their_units_and_may_be_local() {
    let server = server();
    let shown = "SHOW statement_timeout";
    for (value, expected) in [
        ("1000", "row 1s, ready"),
        ("1.5", "row 2ms, ready"),
        ("'90s'", "row 90s, ready"),
        ("'2 min'", "row 2min, ready"),
        ("0", "row 0, ready"),
    ] {
        let texts = [&format!("SET statement_timeout = {value}"), shown];
        assert_eq!(last(&server, &texts), expected, "{value}");
    }
    let mut client = server.client();
    for wrong in ["-1", "2147483648", "'1h 30min'", "soon"] {
        let said = client.query(&format!("SET statement_timeout = {wrong}"));
        assert_eq!(said[0], "error 22023", "{wrong}");
    }
    assert_eq!(last(&server, &["SET work_mem = '2048'", "SHOW work_mem"]), "row 2MB, ready");
    assert_eq!(last(&server, &["SET application_name TO 'a', 'b'"]), "error 22023, ready");
    let local = "SELECT set_config('statement_timeout', '100', true)";
    check(&server, &[local, shown], "row 100ms, row 100ms, ready");
    assert_eq!(last(&server, &[local, shown]), "row 0, ready");
    assert_eq!(last(&server, &["BEGIN", local, shown]), "row 100ms, ready T");
    assert_eq!(last(&server, &["BEGIN", local, "COMMIT", shown]), "row 0, ready");
}
