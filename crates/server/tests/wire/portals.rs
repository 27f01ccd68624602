//! Portals that are run in parts and again, with the answers that PostgreSQL 15 gives to the same
//! messages.

use crate::support::{Client, Server, bind, execute, message, parse, run, with_table_a};

/// Drivers bind a portal and go on with it by its name.
#[test]
fn sql_goes_on_with_the_rows_of_a_portal_and_closes_it() {
    let server = Server::start();
    let mut client = server.client();
    client.segment(&[run("BEGIN")]);
    let three = "SELECT g FROM generate_series(1, 9) g";
    let said = client.segment(&[parse("", three), bind("p", "", &[])]);
    assert_eq!(said[..2], ["parsed", "bound"], "{said:?}");
    let mut check = |text: &str, expected: &[&str]| {
        let said = client.segment(&[run(text)]);
        let found: Vec<&str> = said.iter().map(String::as_str).collect();
        assert!(expected.iter().all(|line| found.contains(line)), "{text}: {said:?}");
    };
    check("MOVE FORWARD 3 FROM p", &["MOVE 3"]);
    check("FETCH 2 FROM p", &["row 4", "row 5", "FETCH 2"]);
    check("FETCH RELATIVE 2 FROM p", &["row 7", "FETCH 1"]);
    let said = client.segment(&[execute("p", 1)]);
    assert_eq!(said[..2], ["row 8", "suspended"], "{said:?}");
    let mut check = |text: &str, expected: &[&str]| {
        let said = client.segment(&[run(text)]);
        let found: Vec<&str> = said.iter().map(String::as_str).collect();
        assert!(expected.iter().all(|line| found.contains(line)), "{text}: {said:?}");
    };
    check("FETCH ALL FROM p", &["row 9", "FETCH 1"]);
    check("FETCH NEXT FROM p", &["FETCH 0"]);
    check("CLOSE p", &["CLOSE CURSOR"]);
    let said = client.segment(&[run("FETCH NEXT FROM p")]);
    assert!(said[0].contains("34000"), "{said:?}");
}

/// A statement, bound as portal `p`, which is run with these limits in one segment.
fn check(client: &mut Client, text: &str, limits: &[u32], expected: &[&str]) {
    let mut messages = vec![parse("", text), bind("p", "", &[])];
    messages.extend(limits.iter().map(|limit| execute("p", *limit)));
    messages.push(message(b'C', b"Pp\0"));
    let said = client.segment(&messages);
    let (last, said) = said.split_last().unwrap();
    assert!(last.starts_with("ready"), "{text}: {said:?} {last}");
    assert_eq!(said[..2], ["parsed", "bound"], "{text}");
    assert_eq!(said[2..], [expected, &["closed"]].concat(), "{text} with limits {limits:?}");
}

fn checks(client: &mut Client, base: i32) {
    let key = |more: i32| base + more;
    let three = "SELECT g FROM generate_series(1, 3) g";
    // A limit that is reached suspends, although no row is left.
    let all = ["row 1", "row 2", "row 3"];
    check(client, three, &[3, 3], &[&all[..], &["suspended", "SELECT 0"]].concat());
    let parts = ["row 1", "row 2", "suspended", "row 3", "SELECT 1"];
    check(client, three, &[2, 2, 2, 0, 1], &[&parts[..], &["SELECT 0"; 3]].concat());
    check(client, three, &[0, 0, 5], &[&all[..], &["SELECT 3", "SELECT 0", "SELECT 0"]].concat());

    // What changes rows does so as a whole with the first run.
    let insert = |from: i32, count: i32| {
        let rows: Vec<String> = (from..from + count).map(|id| format!("({id})")).collect();
        format!("INSERT INTO a VALUES {}", rows.join(", "))
    };
    let row = |more: i32| format!("row {}", key(more));
    check(
        client,
        &format!("{} RETURNING id", insert(key(1), 3)),
        &[1, 0, 0, 4],
        &[&row(1), "suspended", &row(2), &row(3), "INSERT 0 2", "INSERT 0 0", "INSERT 0 0"],
    );
    check(
        client,
        &format!("{} RETURNING id", insert(key(4), 2)),
        &[2, 2],
        &[&row(4), &row(5), "suspended", "INSERT 0 0"],
    );
    let own = format!("id BETWEEN {} AND {}", key(1), key(5));
    let update = format!("UPDATE a SET b = 1 WHERE id = {} RETURNING id", key(1));
    check(client, &update, &[1, 1, 0], &[&row(1), "suspended", "UPDATE 0", "UPDATE 0"]);
    check(client, &update, &[0, 0], &[&row(1), "UPDATE 1", "UPDATE 0"]);
    check(client, "DELETE FROM a WHERE id = -1 RETURNING id", &[1, 0], &["DELETE 0", "DELETE 0"]);
    check(
        client,
        &format!(
            "WITH x AS (UPDATE a SET b = 2 WHERE {own} RETURNING id) SELECT id FROM x ORDER BY id"
        ),
        &[2, 2, 2],
        &[&row(1), &row(2), "suspended", &row(3), &row(4), "suspended", &row(5), "SELECT 1"],
    );

    // Without rows there is no limit: the tag counts what was done.
    check(client, &format!("UPDATE a SET b = 3 WHERE {own}"), &[1], &["UPDATE 5"]);
    check(client, &insert(key(6), 2), &[1], &["INSERT 0 2"]);
    check(client, &format!("DELETE FROM a WHERE id = {}", key(7)), &[1], &["DELETE 1"]);
    check(client, "DELETE FROM a WHERE id = -1", &[7], &["DELETE 0"]);
    check(client, "SET application_name = 'x'", &[1], &["SET"]);

    // About the session.
    check(client, "SHOW timezone", &[1, 1, 0], &["row UTC", "suspended", "SHOW", "SHOW"]);
    check(client, "SHOW timezone", &[0, 0], &["row UTC", "SHOW", "SHOW"]);
    let setting = "SELECT current_setting('timezone')";
    check(client, setting, &[2, 1], &["row UTC", "SELECT 1", "SELECT 0"]);
    check(client, "SELECT current_user", &[1, 1], &["row nvcaracal", "suspended", "SELECT 0"]);
    check(client, "", &[1, 0], &["empty", "empty"]);
}

#[test]
fn portals_answer_in_parts_as_on_postgresql() {
    let server = Server::start();
    let mut client = server.client();
    client.query("CREATE TABLE a (id int PRIMARY KEY, b int)");
    checks(&mut client, 0);
    assert_eq!(client.query("SELECT count(*) FROM a"), ["row 6", "SELECT 1", "ready"]);
    client.query("BEGIN");
    checks(&mut client, 100);
    assert_eq!(client.query("COMMIT"), ["COMMIT", "ready"]);
    assert_eq!(client.query("SELECT count(*) FROM a"), ["row 12", "SELECT 1", "ready"]);
}

#[test]
fn a_statement_without_rows_runs_once() {
    let (_server, mut client) = with_table_a();
    client.query("INSERT INTO a VALUES (1)");
    let twice = [parse("", "DELETE FROM a"), bind("", "", &[]), execute("", 1), execute("", 0)];
    for (begin, ready) in [("", "ready"), ("BEGIN", "ready E")] {
        client.query(begin);
        let said = client.segment(&twice);
        assert_eq!(said, ["parsed", "bound", "DELETE 1", "error 55000", ready], "{begin}");
    }
    client.query("ROLLBACK");
    let count = client.query("SELECT count(*) FROM a");
    assert_eq!(count, ["row 1", "SELECT 1", "ready"], "the error has undone the segment");
}

#[test]
fn portals_of_a_name_that_is_bound_again_keep_their_own_rows() {
    let (_server, mut client) = with_table_a();
    let insert = |first: i32| {
        let text = format!("INSERT INTO a VALUES ({first}), ({}) RETURNING id", first + 1);
        [parse("", &text), bind("", "", &[])].concat()
    };
    // Both are held when the third Execute has them run.
    let said = client.segment(&[
        insert(1),
        execute("", 1),
        insert(3),
        execute("", 1),
        execute("", 0),
        parse("two", "SELECT g FROM generate_series(1, 3) g"),
        bind("t1", "two", &[]),
        bind("t2", "two", &[]),
        execute("t1", 1),
        execute("t2", 2),
        execute("t1", 0),
        execute("t2", 0),
    ]);
    let expected = "parsed, bound, row 1, suspended, parsed, bound, row 3, suspended, row 4, \
                    INSERT 0 1, parsed, bound, bound, row 1, suspended, row 1, row 2, suspended, \
                    row 2, row 3, SELECT 2, row 3, SELECT 1, ready";
    assert_eq!(said.join(", "), expected);
    assert_eq!(client.query("SELECT count(*) FROM a")[0], "row 4");
}

#[test]
fn portals_of_a_block_outlive_their_segment() {
    let server = Server::start();
    let mut client = server.client();
    let three = "SELECT g FROM generate_series(1, 3) g";
    let first = [parse("", three), bind("k", "", &[]), execute("k", 1)];
    client.segment(&first);
    assert_eq!(client.segment(&[execute("k", 1)]), ["error 34000", "ready"]);
    client.query("BEGIN");
    assert_eq!(client.segment(&first), ["parsed", "bound", "row 1", "suspended", "ready T"]);
    assert_eq!(client.segment(&[execute("k", 1)]), ["row 2", "suspended", "ready T"]);
    let said = client.segment(&[execute("k", 0), execute("k", 0)]);
    assert_eq!(said, ["row 3", "SELECT 1", "SELECT 0", "ready T"]);
    // A cursor of SQL is a portal, too.
    client.query(&format!("DECLARE c CURSOR FOR {three}"));
    assert_eq!(client.segment(&[execute("c", 2)]), ["row 1", "row 2", "suspended", "ready T"]);
    assert_eq!(client.segment(&[execute("c", 2)]), ["row 3", "SELECT 1", "ready T"]);
    assert_eq!(client.segment(&[execute("c", 0)]), ["SELECT 0", "ready T"]);
    let back = [parse("", "FETCH BACKWARD ALL FROM c"), bind("", "", &[])].concat();
    let said = client.segment(&[back, execute("", 2), execute("", 2)]);
    let expected = ["parsed", "bound", "row 3", "row 2", "suspended", "row 1", "FETCH 1"];
    assert_eq!(said, [&expected[..], &["ready T"]].concat());
    assert_eq!(client.segment(&[message(b'C', b"Pc\0")]), ["closed", "ready T"]);
    assert_eq!(client.query("FETCH c"), ["error 34000", "ready E"]);
    assert_eq!(client.segment(&[execute("k", 0)]), ["error 25P02", "ready E"]);
}

#[test]
fn portals_end_with_the_transaction_of_their_segment() {
    let (_server, mut client) = with_table_a();
    let three = [parse("", "SELECT g FROM generate_series(1, 3) g"), bind("p", "", &[])].concat();
    let started = [three.clone(), execute("p", 1)].concat();
    let write = run("INSERT INTO a VALUES (1)");
    let mut check = |messages: &[&[u8]], expected: &str| {
        let said = client.segment(&messages.iter().map(|one| one.to_vec()).collect::<Vec<_>>());
        let said: Vec<_> =
            said.iter().filter(|said| !matches!(&said[..], "parsed" | "bound")).collect();
        let said = said.iter().map(|said| said.as_str()).collect::<Vec<_>>().join(", ");
        assert_eq!(said, expected);
    };
    let (on, described) = (execute("p", 1), message(b'D', b"Pp\0"));
    for end in ["COMMIT", "ROLLBACK"] {
        let (ended, none) = (run(end), format!("notice 25P01, {end}, error 34000, ready"));
        check(&[&started, &ended, &on], &format!("row 1, suspended, {none}"));
        check(&[&three, &ended, &on], &none);
        check(&[&three, &ended, &described], &none);
        check(&[&write, &started, &ended, &on], &format!("INSERT 0 1, row 1, suspended, {none}"));
        check(
            &[&run("DELETE FROM a")],
            if end == "COMMIT" { "DELETE 1, ready" } else { "DELETE 0, ready" },
        );
        // With a block that its client has begun; the portal of the end itself is none any more.
        let begun = [run("BEGIN"), started.clone()].concat();
        let none = format!("BEGIN, row 1, suspended, {end}, error 34000, ready");
        check(&[&begun, &ended, &on], &none);
        let twice = [parse("", end), bind("c", "", &[]), execute("c", 0), execute("c", 0)].concat();
        check(&[&run("BEGIN"), &twice], &format!("BEGIN, {end}, error 34000, ready"));
    }
    // BEGIN takes them into its block.
    let begun = "row 1, suspended, BEGIN, row 2, suspended, ready T";
    check(&[&started, &run("BEGIN"), &on], begun);
    check(&[&on, &run("COMMIT"), &on], "row 3, suspended, COMMIT, error 34000, ready");
}
