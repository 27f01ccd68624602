//! What sessions see of each other, and do to each other.

use crate::support::{PATIENCE, Server, query, with_table_a};
use std::time::Instant;

#[test]
fn a_session_sees_what_others_do() {
    let (server, mut one) = with_table_a();
    let mut two = server.client();
    one.query("SET application_name = 'first'");
    one.query("BEGIN");
    one.query("SELECT count(*) FROM a");
    let asked = "SELECT application_name, state, query, wait_event, xact_start IS NULL, \
                 client_addr FROM pg_stat_activity ORDER BY pid";
    let said = two.query(asked);
    let shown = "row first|idle in transaction|SELECT count(*) FROM a|NULL|f|127.0.0.1";
    assert_eq!(said[0], shown);
    assert!(said[1].starts_with("row |active|SELECT application_name"), "{said:?}");
    assert_eq!(said.len(), 4);
    one.query("ROLLBACK");
    two.query("SELECT pg_advisory_lock(1)");
    one.send(&query("SELECT pg_advisory_lock(1)"));
    let waits = "SELECT state FROM pg_stat_activity WHERE wait_event = 'advisory'";
    let began = Instant::now();
    while two.query(waits)[0] != "row active" {
        assert!(began.elapsed() < PATIENCE);
    }
}

#[test]
fn a_session_ends_what_another_one_does() {
    let server = Server::start();
    let (mut one, mut two) = (server.client(), server.client());
    let pid = one.query("SELECT pg_backend_pid()")[0].replace("row ", "");
    one.send(&query("SELECT pg_sleep(1000)"));
    let is_busy = format!("SELECT state FROM pg_stat_activity WHERE pid = {pid}");
    let began = Instant::now();
    while two.query(&is_busy)[0] != "row active" {
        assert!(began.elapsed() < PATIENCE);
    }
    assert_eq!(two.query(&format!("SELECT pg_cancel_backend({pid})"))[0], "row t");
    assert_eq!(one.answers(), ["error 57014", "ready"]);
    // One that is idle, and one that waits.
    let end = format!("SELECT pg_terminate_backend({pid})");
    assert_eq!(two.query(&end)[0], "row t");
    assert_eq!(one.answers(), ["error 57P01"]);
    let mut three = server.client();
    let pid = three.query("SELECT pg_backend_pid()")[0].replace("row ", "");
    two.query("SELECT pg_advisory_lock(1)");
    three.send(&query("SELECT pg_advisory_lock(1)"));
    assert_eq!(two.query(&format!("SELECT pg_terminate_backend({pid})"))[0], "row t");
    let mut said = three.answers();
    said.extend(three.answers());
    assert_eq!(said.last().unwrap(), "error 57P01", "{said:?}");
    assert!(three.next().is_none());
    assert_eq!(two.query("SELECT pg_cancel_backend(999999)")[..2], ["notice 01000", "row f"]);
}

#[test]
fn a_query_sleeps_and_others_go_on() {
    let (server, mut one) = with_table_a();
    one.query("INSERT INTO a SELECT generate_series(1, 3)");
    let began = Instant::now();
    assert_eq!(one.query("SELECT pg_sleep(0.02), id FROM a ORDER BY id").len(), 5);
    one.query("SELECT pg_sleep_for('20 milliseconds'), pg_sleep_until(now() + '20 milliseconds')");
    assert!(began.elapsed().as_millis() >= 80);
    for text in ["SELECT pg_sleep(-1)", "SELECT pg_sleep(NULL)", "SELECT pg_sleep('NaN')"] {
        assert!(one.query(text)[0].starts_with("row"), "{text}");
    }
    let mut sleepers: Vec<_> = (0..16).map(|_| server.keyed_client()).collect();
    for (at, (client, _)) in sleepers.iter_mut().enumerate() {
        client.query(if at % 2 == 0 { "BEGIN READ ONLY" } else { "SET statement_timeout = '1h'" });
        client.send(&query("SELECT pg_sleep(100000), count(*) FROM a"));
    }
    assert_eq!(one.query("UPDATE a SET id = 9 WHERE id = 3")[0], "UPDATE 1");
    assert_eq!(one.query("CREATE TABLE b (id int PRIMARY KEY)")[0], "CREATE TABLE");
    for (at, (client, key)) in sleepers.iter_mut().enumerate() {
        // A request may come before the query.
        while client.0.set_read_timeout(Some(std::time::Duration::from_millis(20))).is_ok() {
            server.cancel(key);
            let mut byte = [0];
            if client.0.peek(&mut byte).is_ok() {
                break;
            }
        }
        client.0.set_read_timeout(Some(PATIENCE)).unwrap();
        let ready = if at % 2 == 0 { "ready E" } else { "ready" };
        assert_eq!(client.answers(), ["error 57014", ready]);
    }
}
