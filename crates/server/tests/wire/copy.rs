//! COPY message by message.

use crate::support::{Server, bind, execute, message, parse, query, run, sync, with_table_a};

fn data(bytes: &str) -> Vec<u8> {
    message(b'd', bytes.as_bytes())
}

fn done() -> Vec<u8> {
    message(b'c', b"")
}

/// Parse, Bind and Execute of a COPY.
fn copy(text: &str) -> Vec<u8> {
    [parse("", text), bind("", "", &[]), execute("", 0)].concat()
}

#[test]
fn rows_come_in_messages_of_any_size() {
    let server = Server::start();
    let mut client = server.client();
    client.query("CREATE TABLE a (id int PRIMARY KEY, t text)");
    let rows = "1\tx\n2\ty\n3\t\\N\n";
    for size in [1, 2, 5, 100] {
        client.query("DELETE FROM a");
        client.send(&query("COPY a FROM STDIN"));
        for part in rows.as_bytes().chunks(size) {
            client.send(&message(b'd', part));
        }
        client.send(&done());
        assert_eq!(client.answers(), ["message G", "COPY 3", "ready"], "{size}");
        assert_eq!(client.query("SELECT count(t), count(*) FROM a")[0], "row 2|3");
    }
    let out = client.query("COPY a TO STDOUT");
    assert_eq!(
        out,
        ["message H", "message d", "message d", "message d", "message c", "COPY 3", "ready"]
    );
    assert_eq!(client.query("COPY a FROM STDIN; SELECT 1"), ["error 0A000", "ready"]);
}

#[test]
fn a_copy_that_fails_or_is_ended_leaves_no_row() {
    let (server, mut client) = with_table_a();
    // What comes behind the error is passed over.
    client.send(&[query("COPY a FROM STDIN"), data("1\nx\n"), data("2\n"), done()].concat());
    assert_eq!(client.answers(), ["message G", "error 22P02", "ready"]);
    client.send(&[query("COPY a FROM STDIN"), data("1\n"), message(b'f', b"enough\0")].concat());
    assert_eq!(client.answers(), ["message G", "error 57014", "ready"]);
    client.send(&[query("COPY a FROM STDIN"), data("1\n"), query("SELECT 1")].concat());
    assert_eq!(client.answers(), ["message G", "error 08P01", "ready"]);
    client.send(&[query("COPY a FROM STDIN"), data("1\n")].concat());
    drop(client);
    let mut client = server.client();
    assert_eq!(client.query("SELECT count(*) FROM a")[0], "row 0");
    // Stray messages say nothing.
    client.send(&[data("7\n"), done()].concat());
    assert_eq!(client.query("SELECT count(*) FROM a")[0], "row 0");
}

#[test]
fn a_copy_of_the_extended_protocol_takes_place_at_its_sync() {
    let (_server, mut client) = with_table_a();
    let answers = client.segment(&[copy("COPY a FROM STDIN"), data("1\n2\n"), done()]);
    assert_eq!(answers, ["parsed", "bound", "message G", "COPY 2", "ready"]);
    // Flush and Sync between rows say nothing.
    let flush = message(b'H', b"");
    let answers =
        client.segment(&[copy("COPY a FROM STDIN"), data("3\n"), flush, sync(), data("4"), done()]);
    assert_eq!(answers, ["parsed", "bound", "message G", "COPY 2", "ready"]);
    let answers = client.segment(&[copy("COPY a FROM STDIN"), data("5\nx\n"), done()]);
    assert_eq!(answers, ["parsed", "bound", "message G", "error 22P02", "ready"]);
    // Nothing runs behind it in its segment.
    let select = run("SELECT 1");
    let answers = client.segment(&[copy("COPY a FROM STDIN"), data("6\n"), done(), select]);
    assert_eq!(answers, ["parsed", "bound", "message G", "error 0A000", "ready"]);
    // Nor a text, which ends the segment: the rows do not come at the next Sync.
    client.send(&[copy("COPY a FROM STDIN"), data("7\n"), done(), query("SELECT 1")].concat());
    assert_eq!(client.answers(), ["parsed", "bound", "message G", "error 0A000", "ready"]);
    let answers = client.segment(&[copy("COPY (SELECT 1) TO STDOUT")]);
    assert_eq!(
        answers,
        ["parsed", "bound", "message H", "message d", "message c", "COPY 1", "ready"]
    );
    assert_eq!(client.query("SELECT count(*) FROM a")[0], "row 4");
    assert_eq!(client.query("COPY (SELECT $1) TO STDOUT"), ["error 42P02", "ready"]);
}

#[test]
fn a_copy_is_refused_beside_other_statements() {
    let (_server, mut client) = with_table_a();
    for text in ["COPY a FROM STDIN", "COPY a TO STDOUT"] {
        let behind = format!("INSERT INTO a VALUES (1); {text}");
        let answers = client.query(&behind);
        assert!(answers.contains(&"error 0A000".to_owned()), "{answers:?}");
        let answers = client.segment(&[run("INSERT INTO a VALUES (1)"), copy(text)]);
        assert!(answers.contains(&"error 0A000".to_owned()), "{answers:?}");
    }
    assert_eq!(client.query("SELECT count(*) FROM a")[0], "row 0");
}

#[test]
fn binary_rows_come_in_messages_of_any_size() {
    let server = Server::start();
    let mut client = server.client();
    client.query("CREATE TABLE a (id int PRIMARY KEY, t text)");
    let rows = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0\
        \0\x02\0\0\0\x04\0\0\0\x07\0\0\0\x02xy\
        \0\x02\0\0\0\x04\0\0\0\x08\xff\xff\xff\xff\xff\xff";
    for size in [1, 3, 10, 100] {
        client.query("DELETE FROM a");
        client.send(&query("COPY a FROM STDIN (FORMAT binary)"));
        for part in rows.chunks(size) {
            client.send(&message(b'd', part));
        }
        client.send(&done());
        assert_eq!(client.answers(), ["message G", "COPY 2", "ready"], "{size}");
        assert_eq!(client.query("SELECT count(t), min(id), max(id) FROM a")[0], "row 1|7|8");
    }
    let out = client.query("COPY a TO STDOUT (FORMAT binary)");
    let data = ["message d"; 3];
    assert_eq!(out[1..4], data, "the header with a row, another row, and the end");
    // A length that no row has is refused before its bytes come.
    client.send(&query("COPY a FROM STDIN (FORMAT binary)"));
    client.send(&message(b'd', &[&rows[..19], b"\0\x02\x7f\xff\xff\xff"].concat()));
    assert_eq!(client.answers(), ["message G", "error 54000", "ready"]);
}
