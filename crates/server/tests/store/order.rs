//! Statements of one connection take effect in its order, however many are under way.

use crate::client::{Client, memory};
use crate::script::shown;
use server::store::{Store, StoreOptions, Tuning};
use std::sync::atomic::{AtomicI64, Ordering};
use values::Datum;

#[test]
fn o_109_each_query_of_a_pipeline_sees_what_is_before_it_and_nothing_behind() {
    let mut client = Client::new(&memory());
    client.run("CREATE TABLE t (a int PRIMARY KEY, b int)").unwrap();
    client.run("INSERT INTO t VALUES (1, 0)").unwrap();
    let mut pending = Vec::new();
    for number in 1..=200 {
        pending.push((None, client.submit("UPDATE t SET b = b + 1 WHERE a = 1", vec![]).unwrap()));
        if number % 3 == 0 {
            let query = client.submit("SELECT b FROM t WHERE a = 1", vec![]).unwrap();
            pending.push((Some(number.to_string()), query));
        }
    }
    // Answers may be waited for in any order.
    for (expected, pending) in pending.into_iter().rev() {
        let answer = pending.wait().unwrap();
        if let Some(expected) = expected {
            assert_eq!(shown(&answer.rows[0]), [expected]);
        }
    }
}

#[test]
fn o_109_a_statement_behind_a_deferred_one_finds_its_row() {
    let tuning = Tuning { serial_calls_max: 0, ..Tuning::default() };
    let options = StoreOptions { workers: 2, tuning, ..StoreOptions::memory() };
    let store = Store::open(options).unwrap();
    let mut client = Client::new(&store);
    client.run("CREATE TABLE t (a int PRIMARY KEY, b int UNIQUE)").unwrap();
    client.run("INSERT INTO t VALUES (0, 0)").unwrap();
    // Each looks up a row that the one before changes, and is deferred.
    let mut pending = Vec::new();
    for number in 1..300 {
        let set = format!("UPDATE t SET b = {number} WHERE a = 0");
        pending.push(client.submit(&set, vec![]).unwrap());
        let insert = format!("INSERT INTO t VALUES ({number}, {})", number - 1);
        pending.push(client.submit(&insert, vec![]).unwrap());
        let update = format!("UPDATE t SET b = -b - 1 WHERE a = {number} RETURNING b");
        pending.push(client.submit(&update, vec![]).unwrap());
    }
    for (at, pending) in pending.into_iter().enumerate() {
        let answer = pending.wait().unwrap();
        if at % 3 == 2 {
            assert_eq!(shown(&answer.rows[0]), [(-(at as i64) / 3 - 1).to_string()]);
        }
    }
}

#[test]
fn o_109_a_statement_that_is_waited_for_runs_where_no_other_client_submits() {
    let store = memory();
    let mut clients = [Client::new(&store), Client::new(&store)];
    clients[0].run("CREATE TABLE t (a int PRIMARY KEY, b int)").unwrap();
    clients[0].run("INSERT INTO t VALUES (1, 0)").unwrap();
    let is_done_at_once = |client: &mut Client| {
        client.connection.is_waited_for(true);
        let text = "UPDATE t SET b = b + 1 WHERE a = 1 RETURNING b";
        let mut pending = client.submit(text, vec![]).unwrap();
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match std::pin::Pin::new(&mut pending).poll(&mut context) {
            std::task::Poll::Ready(answer) => (true, answer.unwrap()),
            std::task::Poll::Pending => (false, pending.wait().unwrap()),
        }
    };
    let mut count = 0;
    let mut expect = |answer: server::store::Answer| {
        count += 1;
        assert_eq!(shown(&answer.rows[0]), [count.to_string()]);
    };
    // From the first time on at which the sequencer's thread has nothing to do, all do.
    let mut at_once = 0;
    while at_once < 100 {
        let (is_at_once, answer) = is_done_at_once(&mut clients[0]);
        expect(answer);
        assert!(is_at_once || at_once == 0, "another thread ran it");
        at_once += u32::from(is_at_once);
    }
    // In turns with another client the order is the same.
    for at in 0..100 {
        expect(is_done_at_once(&mut clients[at % 2]).1);
    }
}

#[test]
fn o_84_queries_beside_writers_see_whole_statements_and_all_that_was_answered() {
    let store = memory();
    let mut client = Client::new(&store);
    client.run("CREATE TABLE account (id int PRIMARY KEY, balance int)").unwrap();
    client.run("CREATE INDEX ON account (balance)").unwrap();
    client.run("INSERT INTO account VALUES (0, 100), (1, 100), (2, 100), (3, 100)").unwrap();
    client.run("CREATE TABLE done (writer int PRIMARY KEY, count int)").unwrap();
    std::thread::scope(|scope| {
        for writer in 0..3_i32 {
            let store = &store;
            scope.spawn(move || {
                let mut client = Client::new(store);
                client.run(&format!("INSERT INTO done VALUES ({writer}, 0)")).unwrap();
                let transfer = format!(
                    "UPDATE account SET balance = balance + CASE id WHEN {writer} THEN 7 \
                     ELSE -7 END WHERE id IN ({writer}, {})",
                    writer + 1
                );
                for count in 1..60 {
                    client.run(&transfer).unwrap();
                    let done = "UPDATE done SET count = count + 1 WHERE writer = $1";
                    client.submit(done, vec![Datum::Int4(writer)]).unwrap().wait().unwrap();
                    let own = format!("SELECT count FROM done WHERE writer = {writer}");
                    assert_eq!(client.value(&own), count.to_string());
                }
            });
        }
        for _ in 0..2 {
            let store = &store;
            scope.spawn(move || {
                let mut client = Client::new(store);
                for _ in 0..60 {
                    assert_eq!(client.value("SELECT sum(balance) FROM account"), "400");
                    let by_index = "SELECT count(*) FROM account WHERE balance > -1000000";
                    assert_eq!(client.value(by_index), "4");
                }
            });
        }
    });
}

/// A query of one row by its key takes no snapshot; definitions go on beside it.
#[test]
fn o_84_a_row_that_is_looked_up_has_all_that_was_answered() {
    let store = memory();
    let mut client = Client::new(&store);
    client.run("CREATE TABLE t (a int PRIMARY KEY, b int)").unwrap();
    client.run("INSERT INTO t VALUES (1, 0)").unwrap();
    let answered = AtomicI64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut client = Client::new(&store);
            for count in 1..=300 {
                client.run("UPDATE t SET b = b + 1 WHERE a = 1").unwrap();
                answered.store(count, Ordering::SeqCst);
            }
        });
        scope.spawn(|| {
            let mut client = Client::new(&store);
            for _ in 0..20 {
                client.run("CREATE TABLE u (a int PRIMARY KEY)").unwrap();
                client.run("INSERT INTO u VALUES (1)").unwrap();
                assert_eq!(client.value("SELECT a FROM u WHERE a = 1"), "1");
                client.run("DROP TABLE u").unwrap();
            }
        });
        let (mut client, mut seen) = (Client::new(&store), 0);
        while seen < 300 {
            let before = answered.load(Ordering::SeqCst);
            let now = client.value("SELECT b FROM t WHERE a = 1").parse().unwrap();
            assert!(before.max(seen) <= now, "{before} were answered, {seen} seen, now {now}");
            seen = now;
        }
    });
    assert!(client.query("SELECT b FROM t WHERE a = 2").is_empty());
    assert!(client.query("SELECT b FROM t WHERE a = NULL").is_empty());
    assert!(client.query("SELECT b FROM t WHERE a = 1 AND b = 7").is_empty());
    assert_eq!(client.value("SELECT count(*) FROM t WHERE a = 2"), "0");
}
