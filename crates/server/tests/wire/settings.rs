//! Settings that are changed in a transaction, with PostgreSQL 15's answers to the same messages.
//! What a client is told of a setting by itself stands as `name=value`.

use crate::support::{Client, Said, Server, bind, execute, parse, query, run, sync, with_table_a};

/// What is answered to messages, without what goes without saying.
fn answers(client: &mut Client, messages: &[u8]) -> String {
    client.send(messages);
    let short = |said: &Said| match said.kind {
        b'S' => {
            let mut parts = said.body.split(|byte| *byte == 0).map(String::from_utf8_lossy);
            Some(format!("{}={}", parts.next()?, parts.next()?))
        }
        b'1' | b'2' => None,
        _ => said.short(),
    };
    client.until_ready().iter().filter_map(short).collect::<Vec<_>>().join(", ")
}

/// Runs texts one after the other; what is answered to each.
fn check(client: &mut Client, texts: &[(&str, &str)]) {
    for (text, expected) in texts {
        assert_eq!(answers(client, &query(text)), *expected, "{text}");
    }
}

/// Runs statements in one segment.
fn check_segment(client: &mut Client, statements: &[&str], expected: &str) {
    let messages: Vec<u8> = statements.iter().flat_map(|text| run(text)).chain(sync()).collect();
    assert_eq!(answers(client, &messages), expected, "{statements:?}");
}

fn server_with_a_row() -> (Server, Client) {
    let (server, mut client) = with_table_a();
    client.query("INSERT INTO a VALUES (1)");
    (server, client)
}

const NAME: &str = "SHOW application_name";
const NO_NAME: (&str, &str) = (NAME, "row , SHOW, ready");

#[test]
fn a_segment_or_text_that_fails_undoes_its_settings() {
    let (_server, mut client) = server_with_a_row();
    let client = &mut client;
    let zone = ("SELECT '2020-01-01 00:00:00+00'::timestamptz", "2020-01-01 00:00:00+00");
    let in_utc = (zone.0, "row 2020-01-01 00:00:00+00, SELECT 1, ready");
    let tokyo = "SET timezone = 'Asia/Tokyo'";
    let in_tokyo = "SET, row 2020-01-01 09:00:00+09, SELECT 1, error 22012, ready";
    check_segment(client, &[tokyo, zone.0, "SELECT 1/0"], in_tokyo);
    check(client, &[in_utc]);
    check(client, &[(&format!("{tokyo}; {}; SELECT 1/0", zone.0), in_tokyo), in_utc]);

    // Whatever the error is of: what is held, what is behind it, its planning, or its form.
    let set = "SET application_name = 'x'";
    check_segment(client, &[set, "INSERT INTO a VALUES (1)"], "SET, error 23505, ready");
    check(client, &[NO_NAME]);
    check_segment(client, &["INSERT INTO a VALUES (1)", set], "error 23505, ready");
    check(client, &[NO_NAME]);
    check_segment(client, &[set, "SELEC"], "SET, error 42601, ready");
    check(client, &[NO_NAME]);
    let unbound = [parse("", "SELECT $1::int"), bind("", "", &[]), execute("", 0)].concat();
    let messages = [run(set), unbound, sync()].concat();
    assert_eq!(answers(client, &messages), "SET, error 08P01, ready");
    check(client, &[NO_NAME]);
    let text = format!("{set}; INSERT INTO a VALUES (1)");
    check(client, &[(&text, "SET, error 23505, ready"), NO_NAME]);
    let text = format!("INSERT INTO a VALUES (2); {set}; SELECT 1/0");
    check(client, &[(&text, "INSERT 0 1, SET, error 22012, ready"), NO_NAME]);

    // Whatever changes them.
    for change in [
        "SELECT set_config('application_name', 'x', false)",
        "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
    ] {
        check_segment(
            client,
            &[change, "SELECT 1/0"],
            match change.starts_with("SET") {
                true => "SET, error 22012, ready",
                false => "row x, SELECT 1, error 22012, ready",
            },
        );
        check(client, &[NO_NAME, ("SHOW default_transaction_read_only", "row off, SHOW, ready")]);
    }
    check(client, &[(set, "SET, application_name=x, ready")]);
    check_segment(client, &["RESET application_name", "SELECT 1/0"], "RESET, error 22012, ready");
    check(client, &[(NAME, "row x, SHOW, ready")]);
}

#[test]
fn a_client_is_told_once_what_a_segment_leaves() {
    let (_server, mut client) = server_with_a_row();
    let client = &mut client;
    let name = |value: &str| format!("SET application_name = '{value}'");
    let (x, y, none) = (name("x"), name("y"), name(""));
    check_segment(client, &[&x, "SELECT 1"], "SET, row 1, SELECT 1, application_name=x, ready");
    check_segment(client, &[&y, &none, &x], "SET, SET, SET, ready");
    for part in ["DISCARD PLANS", "DISCARD SEQUENCES", "DISCARD TEMP"] {
        check(client, &[(part, &format!("{part}, ready"))]);
    }
    check(client, &[("DISCARD ALL", "DISCARD ALL, application_name=, ready")]);
    let write = ["INSERT INTO a VALUES (5)", &x];
    check_segment(client, &write, "INSERT 0 1, SET, application_name=x, ready");
    check(client, &[("SELECT count(*) FROM a", "row 2, SELECT 1, ready")]);
    check_segment(client, &[&y, "DISCARD ALL"], "SET, error 25001, ready");
    check(client, &[(&format!("{y}; DISCARD ALL"), "SET, error 25001, ready")]);
    check(client, &[(NAME, "row x, SHOW, ready")]);
    // COMMIT and ROLLBACK end what is before them, also without a block.
    let said = "SET, notice 25P01, ROLLBACK, row 1, SELECT 1, ready";
    check_segment(client, &[&y, "ROLLBACK", "SELECT 1"], said);
    check(client, &[(&format!("{y}; ROLLBACK; SELECT 1"), said)]);
    let said = "SET, notice 25P01, COMMIT, error 22012, application_name=y, ready";
    check_segment(client, &[&y, "COMMIT", "SELECT 1/0"], said);
    let said = said.replace("=y", "=x");
    check(client, &[(&format!("{x}; COMMIT; SELECT 1/0"), &said)]);
    // A block has what its segment did before BEGIN.
    check_segment(client, &[&y, "BEGIN", "SELECT 1/0"], "SET, BEGIN, error 22012, ready E");
    check(client, &[("ROLLBACK", "ROLLBACK, ready"), (NAME, "row x, SHOW, ready")]);
    check_segment(client, &[&y, "BEGIN"], "SET, BEGIN, application_name=y, ready T");
    check(client, &[("SELECT 1/0", "error 22012, application_name=x, ready E")]);
    check(client, &[("COMMIT", "ROLLBACK, ready"), (NAME, "row x, SHOW, ready")]);
}

#[test]
fn savepoints_have_settings_and_set_local_ends_with_its_block() {
    let (_server, mut client) = server_with_a_row();
    let client = &mut client;
    let shown = |value: &str| format!("row {value}, SHOW, ready T");
    check(
        client,
        &[
            ("BEGIN", "BEGIN, ready T"),
            ("SET application_name = '1'", "SET, application_name=1, ready T"),
            ("SET LOCAL application_name = 'l'", "SET, application_name=l, ready T"),
            ("SAVEPOINT s", "SAVEPOINT, ready T"),
            ("SET application_name = '2'", "SET, application_name=2, ready T"),
            ("SELECT 1/0", "error 22012, application_name=l, ready E"),
            ("ROLLBACK TO s", "ROLLBACK, ready T"),
            (NAME, &shown("l")),
            ("SET application_name = '3'", "SET, application_name=3, ready T"),
            ("RELEASE s", "RELEASE, ready T"),
            (NAME, &shown("3")),
            ("SET LOCAL application_name = 'm'", "SET, application_name=m, ready T"),
            ("SET LOCAL timezone = 'Asia/Tokyo'", "SET, TimeZone=Asia/Tokyo, ready T"),
            ("COMMIT", "COMMIT, application_name=3, TimeZone=UTC, ready"),
            ("BEGIN", "BEGIN, ready T"),
            ("SET LOCAL application_name = 'l'", "SET, application_name=l, ready T"),
            ("SET application_name = 's'", "SET, application_name=s, ready T"),
            ("COMMIT AND CHAIN", "COMMIT, ready T"),
            ("SET application_name = ''", "SET, application_name=, ready T"),
            ("ROLLBACK", "ROLLBACK, application_name=s, ready"),
        ],
    );
    let local = ["SET LOCAL application_name = 'l'", NAME];
    check_segment(client, &local, "notice 25P01, SET, row l, SHOW, ready");
    check(client, &[(NAME, "row s, SHOW, ready")]);
}

#[test]
fn modes_that_begin_refuses_leave_no_block() {
    let (_server, mut client) = server_with_a_row();
    let client = &mut client;
    let repeatable = "BEGIN ISOLATION LEVEL REPEATABLE READ";
    let refused = "row 1, SELECT 1, error 25001, ready";
    check_segment(client, &["SELECT 1", repeatable], refused);
    check(client, &[(&format!("SELECT 1; {repeatable}; SELECT 2"), refused)]);
    let said = "INSERT 0 1, error 25001, ready";
    check_segment(client, &["INSERT INTO a VALUES (2)", repeatable], said);
    check(client, &[("SELECT count(*) FROM a", "row 1, SELECT 1, ready")]);
    // What is no query comes before the first one, and modes may become stricter.
    check_segment(client, &["SHOW timezone", repeatable], "row UTC, SHOW, BEGIN, ready T");
    check(client, &[("COMMIT", "COMMIT, ready")]);
    let said = "INSERT 0 1, BEGIN, ready T";
    check_segment(client, &["INSERT INTO a VALUES (2)", "BEGIN READ ONLY"], said);
    check(client, &[("INSERT INTO a VALUES (3)", "error 25006, ready E")]);
    check(client, &[("ROLLBACK", "ROLLBACK, ready")]);
    // No level is set behind a savepoint, but that of the block may be said again.
    let level = |name: &str| format!("SET TRANSACTION ISOLATION LEVEL {name}");
    check(client, &[("BEGIN", "BEGIN, ready T"), ("SAVEPOINT s", "SAVEPOINT, ready T")]);
    check(client, &[(&level("READ COMMITTED"), "SET, ready T")]);
    check(client, &[(&level("SERIALIZABLE"), "error 25001, ready E")]);
    check(client, &[("ROLLBACK", "ROLLBACK, ready")]);
    // A block that runs already is another matter.
    check(client, &[("BEGIN", "BEGIN, ready T"), ("SELECT 1", "row 1, SELECT 1, ready T")]);
    check(client, &[(repeatable, "notice 25001, error 25001, ready E")]);
    check(client, &[("ROLLBACK", "ROLLBACK, ready")]);
}

#[test]
fn a_chained_block_has_the_modes_of_one_that_is_alive() {
    let (_server, mut client) = server_with_a_row();
    let client = &mut client;
    let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY";
    for (before, is_kept) in [
        (&["SELECT 1"][..], true),
        (&["SELECT 1/0"], false),
        (&["SAVEPOINT s", "SELECT 1/0"], true),
    ] {
        for end in ["COMMIT AND CHAIN", "ROLLBACK AND CHAIN"] {
            client.query(begin);
            for text in before {
                client.query(text);
            }
            let said = client.query(end);
            assert_eq!(said.last().unwrap(), "ready T", "{before:?}, {end}");
            let (level, access) = match is_kept {
                true => ("repeatable read", "on"),
                false => ("read committed", "off"),
            };
            let shown = [level, access].map(|value| format!("row {value}, SHOW, ready T"));
            check(client, &[("SHOW transaction_isolation", &shown[0])]);
            check(client, &[("SHOW transaction_read_only", &shown[1])]);
            check(client, &[("COMMIT", "COMMIT, ready")]);
        }
    }
    for text in ["COMMIT AND CHAIN", "SELECT 1; ROLLBACK AND CHAIN"] {
        let said = client.query(text);
        assert_eq!(said[said.len() - 2..], ["error 25P01", "ready"], "{text}");
    }
    let said = client.query("INSERT INTO a VALUES (2); COMMIT AND CHAIN");
    assert_eq!(said, ["INSERT 0 1", "error 25P01", "ready"]);
    check(client, &[("SELECT count(*) FROM a", "row 1, SELECT 1, ready")]);
}

/// Flyway asks so, and Kysely beside its lock.
#[test]
fn set_config_takes_a_parameter_and_stands_beside_other_functions() {
    let server = Server::start();
    let mut client = server.client();
    let set = parse("set", "SELECT set_config('search_path', $1, false)");
    let run = |value| [bind("", "set", &[Some(value)]), execute("", 0), sync()].concat();
    assert_eq!(answers(&mut client, &[set, run("public")].concat()), "row public, SELECT 1, ready");
    assert_eq!(
        answers(&mut client, &run("\"$user\", public")),
        "row \"$user\", public, SELECT 1, ready"
    );
    let text = "WITH a AS (SELECT set_config('lock_timeout', '3600000', true) AS b) \
                SELECT pg_advisory_lock(7), b FROM a";
    assert_eq!(answers(&mut client, &query(text)), "row |3600000, SELECT 1, ready");
    assert_eq!(answers(&mut client, &query("SHOW lock_timeout")), "row 0, SHOW, ready");
    let tenant = parse("", "SELECT set_config('app.tenant', $1::text, true)");
    let begun = [query("BEGIN"), tenant, bind("", "", &[Some("7")]), execute("", 0), sync()];
    client.send(&begun.concat());
    client.until_ready();
    client.until_ready();
    let shown = "SELECT current_setting('app.tenant', true)";
    assert_eq!(answers(&mut client, &query(shown)), "row 7, SELECT 1, ready T");
    assert_eq!(answers(&mut client, &query("COMMIT")), "COMMIT, ready");
}
