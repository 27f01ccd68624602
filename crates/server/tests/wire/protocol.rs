//! The simple and the extended protocol, message by message.

use crate::support::{Server, bind, execute, message, parse, query, run, startup, sync};

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
fn a_definition_is_alone_or_behind_queries() {
    let server = Server::start();
    let mut client = server.client();
    client.query("CREATE TABLE a (id int PRIMARY KEY)");
    let create = "CREATE TABLE b (id int)";
    for text in [
        format!("{create}; SELECT 1"),
        format!("INSERT INTO a VALUES (1); {create}"),
        format!("BEGIN; {create}; COMMIT"),
    ] {
        assert_eq!(client.query(&text), ["error 0A000", "ready"], "{text}");
    }
    let insert = run("INSERT INTO a VALUES (1)");
    let both = client.segment(&[insert.clone(), run(create)]);
    assert_eq!(both, ["parsed", "bound", "error 0A000", "ready"]);
    let both = client.segment(&[run(create), insert.clone()]);
    assert_eq!(both, ["parsed", "bound", "error 0A000", "ready"]);
    let flushed = client.segment(&[run(create), message(b'H', b"")]);
    assert_eq!(flushed, ["parsed", "bound", "error 0A000", "ready"]);
    assert_eq!(client.query("SELECT count(*) FROM a"), ["row 0", "SELECT 1", "ready"]);
    let close = message(b'C', b"P\0");
    let said = client.segment(&[run("SELECT 5"), insert, close]);
    assert_eq!(said[..4], ["parsed", "bound", "row 5", "SELECT 1"]);
    assert_eq!(said[4..], ["parsed", "bound", "INSERT 0 1", "closed", "ready"]);
    assert_eq!(client.query("SELECT 1; CREATE TABLE b (id int)")[2], "CREATE TABLE");
    assert_eq!(client.query("COMMIT"), ["notice 25P01", "COMMIT", "ready"]);
}

#[test]
fn an_error_skips_to_the_sync() {
    let server = Server::start();
    let mut client = server.client();
    client.query("CREATE TABLE a (id int PRIMARY KEY)");
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
    let server = Server::start();
    let mut client = server.client();
    client.query("CREATE TABLE a (id int PRIMARY KEY)");
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
            "error 55000",
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
    let server = Server::start();
    let mut client = server.client();
    client.query("CREATE TABLE a (id int PRIMARY KEY)");
    client.segment(&[parse("i", "INSERT INTO a VALUES (1)"), parse("s", "SELECT * FROM a")]);
    let insert = [bind("", "i", &[]), execute("", 0)].concat();
    let select = [bind("", "s", &[]), execute("", 0)].concat();
    client.query("DROP TABLE a");
    assert_eq!(client.segment(std::slice::from_ref(&insert)), ["bound", "error 42P01", "ready"]);
    client.query("CREATE TABLE a (id int PRIMARY KEY)");
    assert_eq!(client.segment(std::slice::from_ref(&insert)), ["bound", "INSERT 0 1", "ready"]);
    assert_eq!(
        client.segment(std::slice::from_ref(&select)),
        ["bound", "row 1", "SELECT 1", "ready"]
    );
    client.query("DROP TABLE a");
    client.query("CREATE TABLE a (id int PRIMARY KEY, t text)");
    // The client was told other columns.
    assert_eq!(client.segment(&[select]), ["bound", "error 0A000", "ready"]);
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
    let server = Server::start();
    let mut client = server.client();
    client.query("CREATE TABLE a (id int PRIMARY KEY)");
    server.stop();
    let last = client.next().unwrap();
    assert_eq!(last.field(b'C').as_deref(), Some("57P01"));
    assert!(client.next().is_none());
}
