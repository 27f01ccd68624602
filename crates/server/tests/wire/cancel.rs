//! A cancel request ends a long read, and nothing else.

use crate::support::{Client, Server, query, run, sync};
use server::ServerOptions;
use server::store::StoreOptions;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A query that would take days.
const LONG: &str = "SELECT count(*) FROM a x, a y, a z, a u WHERE x.id + y.id + z.id + u.id < 0";

/// Takes the answers of what was sent, while others ask again and again to end it.
fn cancelled(server: &Server, client: &mut Client, key: &[u8]) -> Vec<String> {
    let is_answered = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_answered.load(Ordering::Relaxed) {
                server.cancel(key);
            }
        });
        let answers = client.answers();
        is_answered.store(true, Ordering::Relaxed);
        answers
    })
}

fn fill(client: &mut Client) {
    client.query("CREATE TABLE a (id int PRIMARY KEY)");
    let rows: Vec<String> = (0..1_000).map(|id| format!("({id})")).collect();
    client.query(&format!("INSERT INTO a VALUES {}", rows.join(", ")));
}

#[test]
fn a_timeout_ends_a_long_read_and_no_write() {
    // A read of a block may do so many steps; on a busy machine the timeout may come after many.
    let store = StoreOptions { steps_max: 50_000_000, ..StoreOptions::memory() };
    let server = Server::on(ServerOptions::at("127.0.0.1:0"), store);
    let mut client = server.client();
    fill(&mut client);
    assert_eq!(client.query("SET statement_timeout = '10ms'"), ["SET", "ready"]);
    assert_eq!(client.query(LONG), ["error 57014", "ready"]);
    client.send(&[run(LONG), sync()].concat());
    let said = client.answers();
    assert_eq!(said, ["parsed", "bound", "error 57014", "ready"]);
    // In a block all statements but COMMIT can be ended, and the block is then.
    client.query("BEGIN");
    assert_eq!(client.query(LONG), ["error 57014", "ready E"]);
    assert_eq!(client.query("COMMIT"), ["ROLLBACK", "ready"]);
    client.query("RESET statement_timeout");
    assert_eq!(client.query("SELECT count(*) FROM a"), ["row 1000", "SELECT 1", "ready"]);
}

#[test]
fn a_cancel_request_ends_a_long_read() {
    let server = Server::start();
    let (mut client, key) = server.keyed_client();
    let mut other = server.client();
    fill(&mut client);

    client.send(&query(LONG));
    // Others go on beside it, reads and writes.
    assert_eq!(other.query("DELETE FROM a WHERE id = 7"), ["DELETE 1", "ready"]);
    assert_eq!(other.query("SELECT count(*) FROM a")[0], "row 999");
    assert_eq!(cancelled(&server, &mut client, &key), ["error 57014", "ready"]);
    assert_eq!(client.query("SELECT count(*) FROM a"), ["row 999", "SELECT 1", "ready"]);

    client.send(&[run(LONG), run("DELETE FROM a"), sync()].concat());
    let said = cancelled(&server, &mut client, &key);
    // It may come before the statement runs.
    let parts = ["parsed", "bound"];
    let before_error = said.len().checked_sub(2).expect("an error, and that it is ready");
    assert_eq!(said[..before_error], parts[..before_error]);
    assert_eq!(said[before_error..], ["error 57014", "ready"]);
    assert_eq!(client.query("SELECT count(*) FROM a")[0], "row 999");
}

/// However soon it comes behind the statement: the message may be unread, read in part, or between
/// two steps of what is done with it.
#[test]
fn a_cancel_request_right_behind_its_statement_is_heard() {
    let server = Server::start();
    let (mut client, key) = server.keyed_client();
    fill(&mut client);
    for round in 0..96_u64 {
        // Each text is new, so that none is planned before.
        let long = format!("{LONG} AND {round} = {round}");
        let (message, error_is_in) = match round % 3 {
            0 => (query(&long), 0),
            1 => ([run(&long), sync()].concat(), 2),
            _ => (query(&format!("SELECT 1; {long}")), 2),
        };
        client.send(&message);
        std::thread::sleep(Duration::from_micros(round / 3 * 2_000 / 32));
        server.cancel(&key);
        let said = client.answers();
        let before_error = &said[..said.len().saturating_sub(2)];
        assert_eq!(said[before_error.len()..], ["error 57014", "ready"], "round {round}: {said:?}");
        assert!(before_error.len() <= error_is_in, "round {round}: {said:?}");
    }
}

/// One that comes when nothing runs is not for what the client sends later.
#[test]
fn a_cancel_request_of_an_idle_session_is_ignored() {
    let server = Server::start();
    let (mut client, key) = server.keyed_client();
    fill(&mut client);
    for round in 0..32 {
        server.cancel(&key);
        assert_eq!(client.query("SELECT count(*) FROM a")[0], "row 1000", "round {round}");
        let said = client.segment(&[run("SELECT count(*) FROM a")]);
        assert_eq!(said[2], "row 1000", "round {round}");
        server.cancel(&key);
        assert_eq!(client.query("BEGIN"), ["BEGIN", "ready T"], "round {round}");
        server.cancel(&key);
        assert_eq!(client.query("DELETE FROM a WHERE id = -1")[0], "DELETE 0", "round {round}");
        assert_eq!(client.query("COMMIT"), ["COMMIT", "ready"], "round {round}");
    }
}

/// As in PostgreSQL: nothing runs yet that it could end. A request that comes before the server has
/// read the first part is for the message: nobody can tell then whether it is whole.
#[test]
fn a_cancel_request_within_a_message_is_ignored() {
    const TRIES: usize = 50;
    let server = Server::start();
    let (mut client, key) = server.keyed_client();
    fill(&mut client);
    const COUNT: &str = "SELECT count(*) FROM a";
    for message in [query(COUNT), [run(COUNT), sync()].concat()] {
        let first = 1 + u32::from_be_bytes(message[1..5].try_into().unwrap()) as usize;
        for at in 1..first {
            let is_ignored = (0..TRIES).any(|_| {
                client.send(&message[..at]);
                server.cancel(&key);
                client.send(&message[at..]);
                client.answers().contains(&"row 1000".to_owned())
            });
            assert!(is_ignored, "cut at {at}: never in {TRIES} tries");
        }
    }
}

/// Whatever runs when it comes: reads, writes that cannot be ended, or statements between them.
#[test]
fn a_cancel_request_ends_one_message_at_most() {
    const TEXTS: usize = 12;
    let server = Server::start();
    let (mut client, key) = server.keyed_client();
    fill(&mut client);
    client.query("CREATE TABLE b (id int PRIMARY KEY, n int)");
    client.query("INSERT INTO b SELECT id, 0 FROM a");
    let text = "UPDATE b SET n = n + 1; SELECT count(*) FROM a x, a y WHERE x.id + y.id < 0; \
                UPDATE b SET n = n + 1 WHERE id = 7";
    let messages = [query(text), [run("UPDATE b SET n = n + 1"), sync()].concat()];
    for round in 0..24_u64 {
        let sent: Vec<_> = (0..TEXTS).flat_map(|text| messages[text % 2].clone()).collect();
        client.send(&sent);
        std::thread::sleep(Duration::from_micros(round * 4_000));
        server.cancel(&key);
        let answers = (0..TEXTS).map(|_| client.answers());
        let ended = answers.filter(|said| said.contains(&"error 57014".to_owned())).count();
        assert!(ended <= 1, "round {round}: {ended} messages were ended");
    }
}

/// What a client has sent in one go: the statement that runs is ended, the others run.
#[test]
fn a_cancel_request_ends_one_statement_of_a_pipeline() {
    let server = Server::start();
    let (mut client, key) = server.keyed_client();
    fill(&mut client);
    for round in 0..32 {
        let behind = [run("SELECT count(*) FROM a"), sync()].concat();
        client.send(&[run(LONG), sync(), behind].concat());
        std::thread::sleep(Duration::from_micros(round * 60));
        server.cancel(&key);
        let said = client.answers();
        assert_eq!(said[said.len() - 2..], ["error 57014", "ready"], "round {round}: {said:?}");
        let behind = client.answers();
        assert_eq!(behind[2], "row 1000", "round {round}: {behind:?}");
    }
}
