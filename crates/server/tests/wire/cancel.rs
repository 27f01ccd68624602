//! A cancel request ends a long read, and nothing else.

use crate::support::{Client, Server, query, run, sync};
use server::ServerOptions;
use server::store::StoreOptions;
use std::sync::atomic::{AtomicBool, Ordering};

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
    assert_eq!(said, ["parsed", "bound", "error 57014", "ready"]);
    assert_eq!(client.query("SELECT count(*) FROM a")[0], "row 999");
}
