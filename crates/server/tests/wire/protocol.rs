//! The simple and the extended protocol, message by message.

use crate::support::{
    Server, bind, execute, message, parse, query, run, startup, sync, with_table_a,
};

/// A parameter's type is what the client states; 0 and `unknown` leave it to the statement.
#[test]
fn types_that_are_stated_are_those_of_parameters() {
    let (_server, mut client) = with_table_a();
    let parsed = |oid: u32| {
        let mut body = b"\0SELECT id FROM a WHERE id = $1\0\0\x01".to_vec();
        body.extend_from_slice(&oid.to_be_bytes());
        message(b'P', &body)
    };
    let describe = message(b'D', b"S\0");
    let mut types_of = |oid: u32| {
        client.send(&[parsed(oid), describe.clone(), sync()].concat());
        let said = client.until_ready();
        let types = said.iter().find(|said| said.kind == b't');
        types.map(|said| u32::from_be_bytes(*said.body[2..].first_chunk().unwrap()))
    };
    let (int4, int8, unknown, nothing) = (23, 20, 705, 999_999);
    assert_eq!([0, unknown, int4, int8].map(&mut types_of), [int4, int4, int4, int8].map(Some));
    assert_eq!(types_of(nothing), None, "it is refused");
}

#[test]
fn a_text_has_any_number_of_statements() {
    let server = Server::start();
    let mut client = server.client();
    assert_eq!(client.query(""), ["empty", "ready"]);
    assert_eq!(client.query(" ; ;"), ["empty", "ready"]);
    assert_eq!(
        client.query("CREATE TABLE a (id int PRIMARY KEY, t text)"),
        ["CREATE TABLE", "ready"]
    );
    assert_eq!(client.query("INSERT INTO a VALUES (1, 'x'), (2, NULL)"), ["INSERT 0 2", "ready"]);
    assert_eq!(
        client.query("SELECT 1; SELECT id, t FROM a ORDER BY id; SHOW server_version"),
        ["row 1", "SELECT 1", "row 1|x", "row 2|NULL", "SELECT 2", "row 15.0", "SHOW", "ready"]
    );
    assert_eq!(
        client.query("SELECT 7; UPDATE a SET t = 'y' WHERE id = 1 RETURNING t"),
        ["row 7", "SELECT 1", "row y", "UPDATE 1", "ready"]
    );
    // The first error ends the text.
    assert_eq!(
        client.query("SELECT 1; SELECT 1/0; SELECT 2"),
        ["row 1", "SELECT 1", "error 22012", "ready"]
    );
    assert_eq!(client.query("SELECT 1; SELEC 2"), ["error 42601", "ready"]);
}

#[test]
fn definitions_and_what_needs_them_are_one_transaction() {
    let (_server, mut client) = with_table_a();
    let create = "CREATE TABLE b (id int)";
    let said = client.query(&format!("{create}; INSERT INTO b VALUES (7); SELECT id FROM b"));
    assert_eq!(said, ["CREATE TABLE", "INSERT 0 1", "row 7", "SELECT 1", "ready"]);
    let said = client.query("BEGIN; DROP TABLE b; CREATE TABLE b (id text); COMMIT");
    assert_eq!(said, ["BEGIN", "DROP TABLE", "CREATE TABLE", "COMMIT", "ready"]);
    let said = client.query("INSERT INTO a VALUES (1); DROP TABLE b; SELECT 1/0");
    assert_eq!(said, ["INSERT 0 1", "DROP TABLE", "error 22012", "ready"]);
    assert_eq!(client.query("SELECT id FROM b"), ["SELECT 0", "ready"], "nothing took place");
    assert_eq!(client.query("SELECT id FROM a"), ["SELECT 0", "ready"]);
    // Between two Syncs.
    let (create, drop) = (run("CREATE TABLE c (id int)"), run("DROP TABLE b"));
    let insert = run("INSERT INTO a VALUES (1)");
    let said = client.segment(&[insert.clone(), drop, create.clone(), run("SELECT id FROM c")]);
    let ended: Vec<&String> = said.iter().filter(|said| said.contains(' ')).collect();
    assert_eq!(ended, ["INSERT 0 1", "DROP TABLE", "CREATE TABLE", "SELECT 0"]);
    let failed = client.segment(&[run("DROP TABLE a"), insert]);
    assert_eq!(failed[..3], ["parsed", "bound", "DROP TABLE"]);
    assert_eq!(failed[3..], ["error 42P01", "ready"]);
    assert_eq!(client.query("SELECT count(*) FROM a"), ["row 1", "SELECT 1", "ready"]);
    let flushed = client.segment(&[run("DROP TABLE c"), message(b'H', b"")]);
    assert_eq!(flushed, ["parsed", "bound", "DROP TABLE", "ready"]);
    assert_eq!(client.segment(&[create]), ["parsed", "bound", "CREATE TABLE", "ready"]);
    let close = message(b'C', b"P\0");
    let said = client.segment(&[run("SELECT 5"), run("DROP TABLE c"), close]);
    assert_eq!(said[..4], ["parsed", "bound", "row 5", "SELECT 1"]);
    assert_eq!(said[4..], ["parsed", "bound", "DROP TABLE", "closed", "ready"]);
    assert_eq!(client.query("SELECT 1; CREATE TABLE d (id int)")[2], "CREATE TABLE");
    assert_eq!(client.query("COMMIT"), ["notice 25P01", "COMMIT", "ready"]);
}

#[test]
fn rows_are_copied_in_a_block() {
    let server = Server::start();
    let mut client = server.client();
    client.query("BEGIN");
    client.query("CREATE TABLE a (id int PRIMARY KEY, t text)");
    let copy = |client: &mut crate::support::Client, rows: &str| {
        client.send(&query("COPY a FROM STDIN"));
        assert_eq!(client.next().unwrap().kind, b'G');
        client.send(&[message(b'd', rows.as_bytes()), message(b'c', b"")].concat());
        client.answers()
    };
    assert_eq!(copy(&mut client, "1\tx\n2\ty\n"), ["COPY 2", "ready T"]);
    assert_eq!(client.query("SELECT count(*) FROM a")[0], "row 2");
    assert_eq!(client.query("SAVEPOINT s"), ["SAVEPOINT", "ready T"]);
    assert_eq!(copy(&mut client, "3\tx\n2\ty\n"), ["error 23505", "ready E"]);
    assert_eq!(client.query("ROLLBACK TO s"), ["ROLLBACK", "ready T"]);
    assert_eq!(copy(&mut client, "3\tz\n"), ["COPY 1", "ready T"]);
    assert_eq!(server.client().query("SELECT id FROM a"), ["error 42P01", "ready"]);
    assert_eq!(client.query("COMMIT"), ["COMMIT", "ready"]);
    assert_eq!(server.client().query("SELECT max(t) FROM a WHERE id > 2")[0], "row z");
    assert_eq!(client.query("BEGIN; COPY a FROM STDIN; COMMIT")[1], "error 0A000");
    client.query("ROLLBACK");
    server.works();
}

#[test]
fn an_error_skips_to_the_sync() {
    let (_server, mut client) = with_table_a();
    let segments = [
        run("SELECT 1/0"),
        run("INSERT INTO a VALUES (1)"),
        sync(),
        parse("", "SELECT nothing FROM a"),
        run("INSERT INTO a VALUES (2)"),
        query("SELECT 9"),
        sync(),
        run("INSERT INTO a VALUES (3)"),
    ];
    client.send(&segments.concat());
    client.send(&sync());
    assert_eq!(client.answers(), ["parsed", "bound", "error 22012", "ready"]);
    assert_eq!(client.answers(), ["error 42703", "ready"]);
    assert_eq!(client.answers(), ["parsed", "bound", "INSERT 0 1", "ready"]);
    assert_eq!(client.query("SELECT id FROM a"), ["row 3", "SELECT 1", "ready"]);
}

#[test]
fn portals_have_row_limits() {
    let (_server, mut client) = with_table_a();
    client.query("INSERT INTO a VALUES (1), (2), (3), (4), (5)");
    let select = [parse("s", "SELECT id FROM a"), bind("p", "s", &[])].concat();
    assert_eq!(
        client.segment(&[
            select,
            execute("p", 2),
            execute("p", 2),
            execute("p", 2),
            execute("p", 0)
        ]),
        [
            "parsed",
            "bound",
            "row 1",
            "row 2",
            "suspended",
            "row 3",
            "row 4",
            "suspended",
            "row 5",
            "SELECT 1",
            "SELECT 0",
            "ready"
        ]
    );
    // A portal ends with its segment, a statement does not.
    assert_eq!(client.segment(&[execute("p", 0)]), ["error 34000", "ready"]);
    let again = client.segment(&[bind("", "s", &[]), execute("", 1)]);
    assert_eq!(again, ["bound", "row 1", "suspended", "ready"]);
    let changed = [parse("", "UPDATE a SET id = id + 10 RETURNING id"), bind("", "", &[])].concat();
    let changed = client.segment(&[changed, execute("", 2)]);
    assert_eq!(changed, ["parsed", "bound", "row 11", "row 12", "suspended", "ready"]);
}

#[test]
fn statements_are_named_described_and_closed() {
    let server = Server::start();
    let mut client = server.client();
    let first =
        client.segment(&[parse("s", "SELECT $1::int + 1, $2::text"), message(b'D', b"Ss\0")]);
    assert_eq!(first, ["parsed", "parameters", "ready"]);
    assert_eq!(client.segment(&[parse("s", "SELECT 1")]), ["error 42P05", "ready"]);
    let values = [Some("41"), None];
    let ran = client.segment(&[bind("", "s", &values), message(b'D', b"P\0"), execute("", 0)]);
    assert_eq!(ran, ["bound", "row 42|NULL", "SELECT 1", "ready"]);
    assert_eq!(client.segment(&[bind("", "s", &[Some("4x"), None])]), ["error 22P02", "ready"]);
    assert_eq!(client.segment(&[bind("", "s", &[None])]), ["error 08P01", "ready"]);
    assert_eq!(client.segment(&[message(b'C', b"Ss\0")]), ["closed", "ready"]);
    assert_eq!(client.segment(&[bind("", "s", &[])]), ["error 26000", "ready"]);
    assert_eq!(client.segment(&[message(b'C', b"Sno\0")]), ["closed", "ready"]);
    assert_eq!(client.segment(&[parse("", "SELECT 1; SELECT 2")]), ["error 42601", "ready"]);
    assert_eq!(client.segment(&[run("")]), ["parsed", "bound", "empty", "ready"]);
    assert_eq!(
        client.segment(&[run("SHOW timezone")]),
        ["parsed", "bound", "row UTC", "SHOW", "ready"]
    );
}

#[test]
fn a_statement_follows_its_table() {
    let (_server, mut client) = with_table_a();
    client.segment(&[parse("i", "INSERT INTO a VALUES (1)"), parse("s", "SELECT * FROM a")]);
    let insert = [bind("", "i", &[]), execute("", 0)].concat();
    let select = [bind("", "s", &[]), execute("", 0)].concat();
    client.query("DROP TABLE a");
    assert_eq!(client.segment(std::slice::from_ref(&insert)), ["error 42P01", "ready"]);
    client.query("CREATE TABLE a (id int PRIMARY KEY)");
    assert_eq!(client.segment(std::slice::from_ref(&insert)), ["bound", "INSERT 0 1", "ready"]);
    assert_eq!(
        client.segment(std::slice::from_ref(&select)),
        ["bound", "row 1", "SELECT 1", "ready"]
    );
    client.query("DROP TABLE a");
    client.query("CREATE TABLE a (id int PRIMARY KEY, t text)");
    // The client was told other columns.
    assert_eq!(client.segment(&[select]), ["error 0A000", "ready"]);
}

#[test]
fn statements_and_their_bytes_are_limited() {
    let server = Server::start();
    let mut client = server.client();
    let all: Vec<u8> = (0..1_001).flat_map(|at| parse(&format!("s{at}"), "SELECT 1")).collect();
    let answers = client.segment(&[all]);
    assert_eq!(answers.iter().filter(|said| *said == "parsed").count(), 1_000);
    assert_eq!(answers[1_000..], ["error 54000", "ready"]);
}

#[test]
fn errors_say_where() {
    let server = Server::start();
    let mut client = server.client();
    client.send(&query("SELECT 1 + 'a' + nothing"));
    let said = client.until_ready();
    assert_eq!(said[0].field(b'S').as_deref(), Some("ERROR"));
    assert!(said[0].field(b'P').is_some(), "{said:?}");
    client.send(&query("SELECT\n\u{20ac} nothing"));
    let said = client.until_ready();
    assert_eq!(said[0].kind, b'E', "{said:?}");
    assert_eq!(client.query("SELECT $1::int"), ["error 42P02", "ready"]);
}

#[test]
fn settings_are_set_shown_and_told() {
    let server = Server::start();
    let mut client = server.client();
    client.send(&query("SET application_name = 'shop'"));
    let said = client.until_ready();
    assert!(said.iter().any(|said| said.kind == b'S' && said.body == b"application_name\0shop\0"));
    assert_eq!(client.query("SHOW application_name"), ["row shop", "SHOW", "ready"]);
    client.query("SET timezone = 'Europe/Berlin'");
    assert_eq!(
        client.query("SELECT '2024-01-01 00:00:00+00'::timestamptz"),
        ["row 2024-01-01 01:00:00+01", "SELECT 1", "ready"]
    );
    assert_eq!(client.query("SET timezone = 'Atlantis'"), ["error 22023", "ready"]);
    assert_eq!(client.query("SET nothing = 1"), ["error 42704", "ready"]);
    assert_eq!(client.query("SET synchronous_commit = off"), ["notice 00000", "SET", "ready"]);
    let version = client.query("SELECT version()");
    assert!(version[0].starts_with("row PostgreSQL 15.0 (NVCaracal "), "{version:?}");
    assert_eq!(client.query("SELECT current_schema()"), ["row public", "SELECT 1", "ready"]);
    assert_eq!(client.query("SELECT current_user"), ["row nvcaracal", "SELECT 1", "ready"]);
    client.segment(&[parse("s", "SELECT 1")]);
    assert_eq!(client.query("DEALLOCATE s"), ["DEALLOCATE", "ready"]);
    assert_eq!(client.query("DEALLOCATE s"), ["error 26000", "ready"]);
    assert_eq!(client.query("DISCARD ALL"), ["DISCARD ALL", "ready"]);
    assert_eq!(client.query("SHOW timezone"), ["row UTC", "SHOW", "ready"]);
}

#[test]
fn a_connection_begins_in_many_ways() {
    let server = Server::start();
    let begin = |parameters: &[(&str, &str)]| {
        let mut client = crate::support::Client(server.socket());
        client.send(&startup(parameters));
        let said = client.until_ready();
        let refused = said.iter().find(|said| said.kind == b'E');
        refused.map_or("ready".to_owned(), |said| said.field(b'C').unwrap())
    };
    let user = ("user", "nvcaracal");
    assert_eq!(begin(&[user, ("database", "nvcaracal"), ("DateStyle", "ISO")]), "ready");
    assert_eq!(begin(&[user, ("options", "-c timezone=UTC --client_encoding=UTF8")]), "ready");
    assert_eq!(begin(&[user, ("client_encoding", "LATIN1")]), "22023");
    assert_eq!(begin(&[user, ("no_such_setting", "1")]), "42704");
    assert_eq!(begin(&[user, ("database", "other")]), "3D000");
    assert_eq!(begin(&[("user", "eve")]), "28000");
    assert_eq!(begin(&[]), "28000");
    assert_eq!(begin(&[user, ("replication", "database")]), "0A000");
    // No encryption: the client is told, and goes on.
    let mut client = crate::support::Client(server.socket());
    client.send(&[0, 0, 0, 8, 4, 210, 22, 47]);
    let mut no = [0];
    std::io::Read::read_exact(&mut client.0, &mut no).unwrap();
    assert_eq!(no, *b"N");
    client.send(&startup(&[user]));
    assert_eq!(client.until_ready().last().unwrap().kind, b'Z');
}

#[test]
fn the_end_of_the_server_is_said() {
    let (server, mut client) = with_table_a();
    server.stop();
    let last = client.next().unwrap();
    assert_eq!(last.field(b'C').as_deref(), Some("57P01"));
    assert!(client.next().is_none());
}

#[test]
fn a_prepared_statement_has_the_columns_that_its_client_was_told() {
    let server = Server::start();
    let (mut client, mut other) = (server.client(), server.client());
    other.query("CREATE TABLE a (id int PRIMARY KEY, t text)");
    other.query("INSERT INTO a VALUES (1, 'x')");
    let named = [
        parse("all", "SELECT * FROM a"),
        parse("ids", "SELECT id FROM a WHERE t = 'x'"),
        parse("new", "INSERT INTO a (id) VALUES ($1)"),
    ];
    assert_eq!(client.segment(&named), ["parsed", "parsed", "parsed", "ready"]);
    let bound = |name: &str| [bind("", name, &[]), execute("", 0)].concat();
    assert_eq!(client.segment(&[bound("all")]), ["bound", "row 1|x", "SELECT 1", "ready"]);
    let alter = "ALTER TABLE a ADD COLUMN n int NOT NULL DEFAULT 7";
    assert_eq!(other.query(alter), ["ALTER TABLE", "ready"]);
    // Refused at Bind: what is behind it is passed over.
    client.send(&bound("all"));
    client.send(&sync());
    let said = client.until_ready();
    let error = said.iter().find(|said| said.kind == b'E').unwrap();
    assert_eq!(error.field(b'C').unwrap(), "0A000");
    assert_eq!(error.field(b'M').unwrap(), "cached plan must not change result type");
    assert_eq!(error.field(b'R').unwrap(), "RevalidateCachedQuery");
    assert!(said.iter().all(|said| said.kind != b'2'), "it was not bound");
    // The same columns: the same statements.
    assert_eq!(client.segment(&[bound("ids")]), ["bound", "row 1", "SELECT 1", "ready"]);
    let insert = [bind("", "new", &[Some("2")]), execute("", 0)].concat();
    assert_eq!(client.segment(std::slice::from_ref(&insert)), ["bound", "INSERT 0 1", "ready"]);
    assert_eq!(client.query("SELECT * FROM a WHERE id = 2")[0], "row 2|NULL|7");
    other.query("ALTER TABLE a RENAME COLUMN id TO key");
    assert_eq!(client.segment(&[insert]), ["error 42703", "ready"]);
    assert_eq!(client.segment(&[bound("ids")]), ["error 42703", "ready"]);
}

#[test]
fn statements_that_have_nothing_to_do_look_at_their_names() {
    let (_server, mut client) = with_table_a();
    client.query("CREATE TABLE b (id int CONSTRAINT to_a REFERENCES a DEFERRABLE)");
    assert_eq!(client.query("VACUUM"), ["VACUUM", "ready"]);
    assert_eq!(client.query("ANALYZE a, b; ANALYZE"), ["ANALYZE", "ANALYZE", "ready"]);
    assert_eq!(client.query("vacuum (verbose, analyze) public.a (id)"), ["VACUUM", "ready"]);
    assert_eq!(client.segment(&[run("VACUUM a")]), ["parsed", "bound", "VACUUM", "ready"]);
    assert_eq!(client.query("VACUUM nothing"), ["error 42P01", "ready"]);
    assert_eq!(client.query("ANALYZE a b"), ["error 42601", "ready"]);
    let alone = "notice 25P01";
    let mut said = |text: &str| client.query(text);
    assert_eq!(said("SET CONSTRAINTS to_a IMMEDIATE"), [alone, "SET CONSTRAINTS", "ready"]);
    assert_eq!(said("SET CONSTRAINTS ALL DEFERRED"), [alone, "SET CONSTRAINTS", "ready"]);
    assert_eq!(said("SET CONSTRAINTS to_b DEFERRED"), [alone, "error 42704", "ready"]);
    // In a pipeline it is of what follows, as the warning does not say on PostgreSQL either.
    let child = run("INSERT INTO b VALUES (7)");
    let said = client.segment(&[
        run("SET CONSTRAINTS ALL DEFERRED"),
        child,
        run("INSERT INTO a VALUES (7)"),
    ]);
    assert_eq!(said.iter().filter(|said| said.starts_with("INSERT")).count(), 2, "{said:?}");
    assert_eq!(client.query("DELETE FROM b; DELETE FROM a")[..2], ["DELETE 1", "DELETE 1"]);
    client.query("BEGIN");
    assert_eq!(client.query("ANALYZE"), ["ANALYZE", "ready T"]);
    client.query("CREATE TABLE c (id int CONSTRAINT of_block REFERENCES a)");
    assert_eq!(client.query("SET CONSTRAINTS of_block IMMEDIATE"), ["SET CONSTRAINTS", "ready T"]);
    assert_eq!(client.query("VACUUM a"), ["error 25001", "ready E"]);
    client.query("ROLLBACK");
    client.send(&query("COPY a FROM STDIN WITH (FREEZE on, HEADER OFF)"));
    client.send(&[message(b'd', b"1\n"), message(b'c', b"")].concat());
    assert_eq!(client.answers(), ["message G", "COPY 1", "ready"]);
}

#[test]
fn cursors_give_their_rows_part_by_part() {
    let (_server, mut client) = with_table_a();
    client.query("INSERT INTO a VALUES (1), (2), (3), (4)");
    let declare = |hold: &str| format!("DECLARE c CURSOR {hold} FOR SELECT id FROM a");
    assert_eq!(client.query(&declare("")), ["error 25P01", "ready"]);
    client.query("BEGIN");
    assert_eq!(client.query(&declare("")), ["DECLARE CURSOR", "ready T"]);
    client.query("DELETE FROM a WHERE id = 2");
    assert_eq!(client.query("FETCH c"), ["row 1", "FETCH 1", "ready T"]);
    let fetch = client.segment(&[run("FETCH FORWARD 2 FROM c")]);
    assert_eq!(fetch, ["parsed", "bound", "row 2", "row 3", "FETCH 2", "ready T"]);
    client.send(&[message(b'D', b"Pc\0"), sync()].concat());
    assert_eq!(client.until_ready()[0].kind, b'T');
    assert_eq!(client.query("FETCH ALL FROM c"), ["row 4", "FETCH 1", "ready T"]);
    assert_eq!(client.query("FETCH 5 c"), ["FETCH 0", "ready T"]);
    assert_eq!(client.query("CLOSE c"), ["CLOSE CURSOR", "ready T"]);
    client.query("SAVEPOINT s");
    assert_eq!(client.query("FETCH c"), ["error 34000", "ready E"]);
    client.query("ROLLBACK TO s");
    client.query(&declare(""));
    client.query("SAVEPOINT s");
    assert_eq!(client.query(&declare("")), ["error 42P03", "ready E"]);
    client.query("ROLLBACK TO s");
    let moved = client.segment(&[run("MOVE 2 FROM c"), run("FETCH PRIOR FROM c")]);
    let fetched = ["parsed", "bound", "row 1", "FETCH 1", "ready T"];
    assert_eq!(moved, [&["parsed", "bound", "MOVE 2"][..], &fetched].concat());
    client.query("ROLLBACK");
    assert_eq!(client.query("FETCH c"), ["error 34000", "ready"]);

    // Those with HOLD outlive their block if it commits.
    let held = [parse("", &declare("WITH HOLD")), bind("", "", &[]), execute("", 0)].concat();
    assert_eq!(client.segment(&[held]), ["parsed", "bound", "DECLARE CURSOR", "ready"]);
    client.query("BEGIN");
    client.query(&declare("WITH HOLD").replace(" c ", " d "));
    client.query("ROLLBACK");
    assert_eq!(client.query("FETCH d"), ["error 34000", "ready"]);
    client.query("BEGIN");
    client.query(&declare("WITH HOLD").replace(" c ", " d "));
    client.query("COMMIT");
    assert_eq!(client.query("FETCH d"), ["row 1", "FETCH 1", "ready"]);
    assert_eq!(client.query("FETCH ALL c").len(), 6);
    let bound = "DECLARE e CURSOR WITH HOLD FOR SELECT id FROM a WHERE id = $1";
    let declared = [parse("", bound), bind("", "", &[Some("3")]), execute("", 0)].concat();
    assert_eq!(client.segment(&[declared]), ["parsed", "bound", "DECLARE CURSOR", "ready"]);
    assert_eq!(client.query("FETCH ALL e"), ["row 3", "FETCH 1", "ready"]);
    assert_eq!(client.query("CLOSE ALL"), ["CLOSE CURSOR ALL", "ready"]);
    assert_eq!(client.query("FETCH e"), ["error 34000", "ready"]);
}
