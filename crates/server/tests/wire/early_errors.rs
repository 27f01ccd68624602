//! An error comes when it happens, not with the Sync: whoever waits for it without one gets it. The
//! answers are those that PostgreSQL 15 gives to the same messages.

use crate::support::{
    Client, bind, execute, flush, message, parse, query, run, sync, with_table_a,
};

const ROW: &str = "INSERT INTO a VALUES (1)";
const OTHER: &str = "INSERT INTO a VALUES (2)";

/// Sends messages without a Sync, takes what comes up to the first error, then sends the Sync.
fn check(client: &mut Client, messages: &[Vec<u8>], expected: &str) {
    client.send(&messages.concat());
    let mut said = Vec::new();
    while !said.last().is_some_and(|last: &String| last.starts_with("error")) {
        let next = client.next().unwrap_or_else(|| panic!("no error of {expected}: {said:?}"));
        said.extend(next.short());
    }
    client.send(&sync());
    let ready = client.answers();
    assert_eq!(ready.len(), 1, "{expected}: {said:?}, then {ready:?}");
    assert_eq!(said.join(", "), expected);
}

fn checks(client: &mut Client, mut check: impl FnMut(&mut Client, &[Vec<u8>], &str)) {
    let wrong = || parse("", "SELEC 1");
    let mut check = |messages: &[Vec<u8>], expected: &str| check(client, messages, expected);
    check(&[wrong()], "error 42601");
    check(&[wrong(), flush()], "error 42601");
    check(&[parse("", "SELECT nothing")], "error 42703");
    check(&[wrong(), run("SELECT 1"), flush()], "error 42601");
    check(&[wrong(), query("SELECT 1")], "error 42601");
    let integer = || parse("", "SELECT $1::int");
    check(&[integer(), message(b'B', b"\0\0")], "parsed, error 08P01");
    check(&[integer(), bind("", "", &[])], "parsed, error 08P01");
    check(&[integer(), bind("", "", &[Some("x")])], "parsed, error 22P02");
    check(&[bind("", "no", &[])], "error 26000");
    check(&[message(b'D', b"Sno\0")], "error 26000");
    check(&[message(b'D', b"Pno\0")], "error 34000");
    check(&[message(b'D', b"Zno\0")], "error 08P01");
    check(&[message(b'C', b"Zno\0")], "error 08P01");
    check(&[message(b'E', b"\0")], "error 08P01");
    check(&[execute("no", 0)], "error 34000");
    let by_zero = "SELECT 1 / (id - 1) FROM a";
    check(&[run(by_zero)], "parsed, bound, error 22012");
    check(&[run(by_zero), flush()], "parsed, bound, error 22012");
    check(&[run(ROW)], "parsed, bound, error 23505");
    check(&[run(ROW), flush()], "parsed, bound, error 23505");
    let inserted = "parsed, bound, INSERT 0 1";
    check(&[run(OTHER), wrong()], &format!("{inserted}, error 42601"));
    let failed = format!("{inserted}, parsed, bound, error 23505");
    check(&[run(OTHER), run(ROW)], &failed);
    check(&[run(OTHER), run(ROW), wrong()], &failed);
    check(&[run(ROW), wrong()], "parsed, bound, error 23505");
    let selected = "parsed, bound, row 7, SELECT 1";
    check(&[run("SELECT 7"), wrong()], &format!("{selected}, error 42601"));
    check(&[run("SELECT 7"), message(b'B', b"")], &format!("{selected}, error 08P01"));
    check(
        &[run("SELECT 7"), flush(), run(ROW)],
        &format!("{selected}, parsed, bound, error 23505"),
    );
    check(&[run("CREATE TABLE a (id int)")], "parsed, bound, error 42P07");
    check(&[run("SET timezone = 'Atlantis'")], "parsed, bound, error 22023");
    check(&[run(ROW), run("COMMIT")], "parsed, bound, error 23505");
}

#[test]
fn errors_come_without_a_sync() {
    let (_server, mut client) = with_table_a();
    client.query(ROW);
    checks(&mut client, check);
    let count = client.query("SELECT count(*) FROM a");
    assert_eq!(count, ["row 1", "SELECT 1", "ready"], "what fails undoes its segment");
    checks(&mut client, |client, messages, expected| {
        client.query("BEGIN");
        check(client, messages, expected);
        client.query("ROLLBACK");
    });
    let count = client.query("SELECT count(*) FROM a");
    assert_eq!(count, ["row 1", "SELECT 1", "ready"]);
}

#[test]
fn answers_come_although_no_sync_does() {
    let (_server, mut client) = with_table_a();
    let mut until = |messages: &[Vec<u8>], last: &str| {
        client.send(&messages.concat());
        while client.next().unwrap().short().as_deref() != Some(last) {}
    };
    until(&[run("SELECT 7")], "SELECT 1");
    until(&[run(ROW)], "INSERT 0 1");
    until(&[run("SELECT count(*) FROM a")], "SELECT 1");
    // The segment goes on, and its error undoes all of it.
    until(&[parse("", "SELEC 1"), sync()], "ready");
    until(&[query("SELECT id FROM a")], "SELECT 0");
}

#[test]
fn a_call_of_a_function_is_refused_and_the_client_goes_on() {
    let (_server, mut client) = with_table_a();
    let call = message(b'F', &[0, 0, 0, 99, 0, 0, 0, 0, 0, 0]);
    client.send(&call);
    assert_eq!(client.answers(), ["error 0A000", "ready"]);
    client.send(&[run(ROW), call.clone()].concat());
    assert_eq!(client.answers(), ["parsed", "bound", "INSERT 0 1", "error 0A000", "ready"]);
    assert_eq!(client.query("SELECT id FROM a"), ["SELECT 0", "ready"]);
    client.query("BEGIN");
    client.send(&call);
    assert_eq!(client.answers(), ["error 0A000", "ready E"]);
}
