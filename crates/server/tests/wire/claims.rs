//! FOR UPDATE and LOCK TABLE: who has claimed what, who waits for it, and what comes of it.

use crate::support::{Client, PATIENCE, Server, bind, execute, flush, parse, query, run, sync};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Whether nothing is said to a client for a while.
fn is_silent(client: &Client) -> bool {
    client.0.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let silent = client.0.peek(&mut [0; 1]).is_err();
    client.0.set_read_timeout(Some(PATIENCE)).unwrap();
    silent
}

/// Sends a query that waits for others.
fn send_waiting(client: &mut Client, text: &str) {
    client.send(&query(text));
    assert!(is_silent(client), "{text} waits");
}

fn begun(server: &Server) -> Client {
    let mut client = server.client();
    assert_eq!(client.query("BEGIN"), ["BEGIN", "ready T"]);
    client
}

/// A server with the jobs 1 to 6.
fn with_jobs() -> Server {
    let server = Server::start();
    let mut client = server.client();
    client.query("CREATE TABLE job (id int PRIMARY KEY, state text, who int)");
    client.query("INSERT INTO job SELECT id, 'new' FROM generate_series(1, 6) id");
    server
}

const TAKE: &str =
    "SELECT id FROM job WHERE state = 'new' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED";

#[test]
fn skip_locked_gives_each_worker_its_own_job_and_both_commit() {
    let server = with_jobs();
    let (mut one, mut other) = (begun(&server), begun(&server));
    assert_eq!(one.query(TAKE), ["row 1", "SELECT 1", "ready T"]);
    assert_eq!(other.query(TAKE), ["row 2", "SELECT 1", "ready T"]);
    assert_eq!(one.query(&TAKE.replace("LIMIT 1", "LIMIT 2"))[..2], ["row 1", "row 3"]);
    for (client, id) in [(&mut other, 2), (&mut one, 1)] {
        let done = format!("UPDATE job SET state = 'done' WHERE id = {id}");
        assert_eq!(client.query(&done), ["UPDATE 1", "ready T"]);
        assert_eq!(client.query("COMMIT"), ["COMMIT", "ready"]);
    }
    assert_eq!(one.query(TAKE)[0], "row 3", "a statement outside of a block keeps nothing");
    assert_eq!(other.query(TAKE)[0], "row 3");
}

/// What was passed by is logged: the rows may be free again when the block commits.
#[test]
fn a_block_commits_though_the_rows_that_it_passed_by_are_free_again() {
    let server = with_jobs();
    let (mut one, mut other) = (begun(&server), begun(&server));
    assert_eq!(one.query(TAKE)[0], "row 1");
    assert_eq!(other.query(TAKE)[0], "row 2");
    other.query("UPDATE job SET state = 'done' WHERE id = 2");
    one.query("ROLLBACK");
    assert_eq!(other.query("COMMIT"), ["COMMIT", "ready"]);
    // The same where a definition lets the block run again in another way.
    let (mut one, mut other) = (begun(&server), begun(&server));
    assert_eq!(one.query(TAKE)[0], "row 1");
    other.query("CREATE TABLE more (id int PRIMARY KEY)");
    assert_eq!(other.query(TAKE)[0], "row 3");
    other.query("INSERT INTO more VALUES (3)");
    one.query("ROLLBACK");
    assert_eq!(other.query("COMMIT"), ["COMMIT", "ready"]);
}

#[test]
fn a_later_claim_waits_and_reads_what_was_committed() {
    let server = with_jobs();
    let (mut one, mut other) = (begun(&server), begun(&server));
    for (lock, reads) in [
        ("SELECT who FROM job WHERE id = 1 FOR UPDATE", ["row 7", "SELECT 1"]),
        ("SELECT who FROM job WHERE id < 2 FOR NO KEY UPDATE", ["row 8", "SELECT 1"]),
        (
            "SELECT j.who FROM job j JOIN job k ON k.id = j.id + 1 WHERE k.id = 2 FOR UPDATE OF j",
            ["row 9", "SELECT 1"],
        ),
        ("SELECT who FROM (SELECT * FROM job) v WHERE id = 1 FOR UPDATE", ["row 10", "SELECT 1"]),
        (
            "SELECT who FROM (SELECT who FROM job WHERE id = 1 ORDER BY id LIMIT 1) v FOR UPDATE",
            ["row 11", "SELECT 1"],
        ),
        (
            "WITH w AS (SELECT who FROM job WHERE id = 1 FOR UPDATE) SELECT * FROM w",
            ["row 12", "SELECT 1"],
        ),
        (
            "SELECT who FROM job WHERE id IN (SELECT id FROM job WHERE id = 1 FOR UPDATE)",
            ["row 13", "SELECT 1"],
        ),
        (
            "SELECT 1 WHERE EXISTS (SELECT FROM job WHERE who = 14 AND id = 1 FOR UPDATE)",
            ["row 1", "SELECT 1"],
        ),
    ] {
        one.query("SELECT FROM job WHERE id = 1 FOR UPDATE");
        send_waiting(&mut other, "SELECT who FROM job WHERE id = 1 FOR UPDATE");
        one.query("UPDATE job SET who = coalesce(who + 1, 7) WHERE id = 1");
        assert_eq!(one.query("COMMIT"), ["COMMIT", "ready"]);
        other.answers();
        assert_eq!(other.query(lock)[..2], reads, "{lock}");
        one.query("BEGIN");
        send_waiting(&mut one, "SELECT who FROM job WHERE id = 1 FOR UPDATE");
        other.query("ROLLBACK");
        one.answers();
        one.query("ROLLBACK");
        one.query("BEGIN");
        other.query("BEGIN");
        // The statement itself claims.
        assert_eq!(other.query(lock)[..2], reads, "{lock}");
        let nowait = "SELECT FROM job WHERE id = 1 FOR UPDATE NOWAIT";
        assert_eq!(one.query(nowait), ["error 55P03", "ready E"], "{lock}");
        for client in [&mut one, &mut other] {
            client.query("ROLLBACK");
            client.query("BEGIN");
        }
    }
}

/// A row for which the condition does not hold any more is none of the answer.
#[test]
fn a_condition_holds_of_the_state_behind_the_wait() {
    let server = with_jobs();
    let (mut one, mut other) = (begun(&server), begun(&server));
    let first = "SELECT id FROM job WHERE state = 'new' ORDER BY id LIMIT 1 FOR UPDATE";
    assert_eq!(one.query(first)[0], "row 1");
    send_waiting(&mut other, first);
    one.query("UPDATE job SET state = 'done' WHERE id = 1");
    one.query("COMMIT");
    assert_eq!(other.answers(), ["row 2", "SELECT 1", "ready T"]);
    other.query("UPDATE job SET state = 'done' WHERE id = 2");
    assert_eq!(other.query("COMMIT"), ["COMMIT", "ready"]);
    // The first statement of a block that reads one snapshot waits before it takes that.
    one.query("BEGIN");
    assert_eq!(one.query(first)[0], "row 3");
    other.query("BEGIN ISOLATION LEVEL SERIALIZABLE");
    send_waiting(&mut other, first);
    one.query("UPDATE job SET state = 'done' WHERE id = 3");
    one.query("COMMIT");
    assert_eq!(other.answers(), ["row 4", "SELECT 1", "ready T"]);
    other.query("UPDATE job SET state = 'done' WHERE id = 4");
    assert_eq!(other.query("COMMIT"), ["COMMIT", "ready"]);
}

#[test]
fn strengths_go_together_as_on_postgresql() {
    let server = with_jobs();
    let mut observer = server.client();
    let all = ["KEY SHARE", "SHARE", "NO KEY UPDATE", "UPDATE"];
    let excluded = [[0, 0, 0, 1], [0, 0, 1, 1], [0, 1, 1, 1], [1, 1, 1, 1]];
    for (own, row) in all.iter().zip(excluded) {
        let mut holder = begun(&server);
        holder.query(&format!("SELECT FROM job WHERE id = 1 FOR {own}"));
        for (other, is_excluded) in all.iter().zip(row) {
            let asked = format!("SELECT id FROM job WHERE id = 1 FOR {other} NOWAIT");
            let answer = observer.query(&asked);
            let expected = if is_excluded == 1 { "error 55P03" } else { "row 1" };
            assert_eq!(answer[0], expected, "{own}, {other}");
            let skipped = observer.query(&asked.replace("NOWAIT", "SKIP LOCKED"));
            assert_eq!(skipped.len(), 3 - is_excluded, "{own}, {other}");
        }
    }
    let mut holder = begun(&server);
    holder.query("SELECT FROM job WHERE id = 2 FOR UPDATE");
    let (mut one, mut other) = (begun(&server), begun(&server));
    // One has a share already, and is not behind those that wait for its end.
    one.query("SELECT FROM job WHERE id = 1 FOR SHARE");
    send_waiting(&mut other, "SELECT FROM job WHERE id = 1 FOR UPDATE");
    assert_eq!(one.query("SELECT id FROM job WHERE id = 1 FOR UPDATE")[0], "row 1");
    one.query("COMMIT");
    other.answers();
}

#[test]
fn nowait_says_which_table_it_is() {
    let server = with_jobs();
    let (mut one, mut other) = (begun(&server), begun(&server));
    one.query("SELECT FROM job WHERE id = 1 FOR UPDATE");
    other.send(&query("SELECT FROM job FOR UPDATE NOWAIT"));
    let said = other.until_ready();
    assert_eq!(said[0].field(b'C').as_deref(), Some("55P03"));
    let message = said[0].field(b'M').unwrap();
    assert_eq!(message, "could not obtain lock on row in relation \"job\"");
    // The error says nothing of rows: with a savepoint the block commits.
    other.query("ROLLBACK");
    other.query("BEGIN");
    other.query("INSERT INTO job VALUES (9)");
    other.query("SAVEPOINT s");
    assert_eq!(other.query("SELECT FROM job FOR UPDATE NOWAIT"), ["error 55P03", "ready E"]);
    other.query("ROLLBACK TO s");
    one.query("ROLLBACK");
    assert_eq!(other.query("COMMIT"), ["COMMIT", "ready"]);
}

#[test]
fn lock_timeout_statement_timeout_and_a_cancel_end_the_wait() {
    let server = with_jobs();
    let mut one = begun(&server);
    let (mut other, key) = server.keyed_client();
    one.query("SELECT FROM job WHERE id = 1 FOR UPDATE");
    let lock = "SELECT id FROM job WHERE id = 1 FOR UPDATE";
    for (setting, code) in [("lock_timeout", "55P03"), ("statement_timeout", "57014")] {
        for is_block in [true, false] {
            other.query(&format!("SET {setting} = '50ms'"));
            if is_block {
                other.query("BEGIN");
            }
            let begin = Instant::now();
            assert_eq!(other.query(lock)[0], format!("error {code}"), "{setting}");
            assert!(begin.elapsed() >= Duration::from_millis(50));
            other.query("ROLLBACK");
            other.query(&format!("RESET {setting}"));
        }
    }
    for begin in ["BEGIN", "ROLLBACK"] {
        other.query(begin);
        for lock in
            [lock, "DELETE FROM job WHERE id = (SELECT id FROM job WHERE id = 1 FOR UPDATE)"]
        {
            send_waiting(&mut other, lock);
            server.cancel(&key);
            assert_eq!(other.answers()[0], "error 57014");
            other.query("ROLLBACK");
            other.query(begin);
        }
    }
    // Who gave up keeps nobody from the row.
    one.query("COMMIT");
    other.query("ROLLBACK");
    assert_eq!(other.query(lock)[0], "row 1");
}

#[test]
fn more_statements_wait_than_there_are_threads_and_the_end_of_the_server_ends_them() {
    let server = with_jobs();
    let mut holder = begun(&server);
    holder.query("SELECT FROM job WHERE id = 1 FOR UPDATE");
    let mut waiting: Vec<Client> = (0..24).map(|_| begun(&server)).collect();
    for client in &mut waiting {
        client.send(&query("SELECT who FROM job WHERE id = 1 FOR UPDATE"));
    }
    assert!(is_silent(&waiting[0]));
    // Everything else goes on, and definitions, too.
    let mut other = server.client();
    assert_eq!(other.query("UPDATE job SET who = 5 WHERE id = 1"), ["UPDATE 1", "ready"]);
    assert_eq!(other.query("SELECT count(*), sum(who) FROM job")[0], "row 6|5");
    assert_eq!(other.query("CREATE TABLE more (id int PRIMARY KEY)")[0], "CREATE TABLE");
    holder.query("COMMIT");
    let first = waiting.iter().position(|client| !is_silent(client)).expect("one has the row");
    assert_eq!(waiting[first].answers()[0], "row 5");
    server.stop();
    for (at, client) in waiting.iter_mut().enumerate() {
        if at != first {
            let said = client.until_ready();
            // The end of one that has the row gives it to the next.
            let short = said.first().and_then(|said| said.short());
            let is_end = |short: &str| short == "error 57P01";
            let has_row = said.iter().any(|said| said.short().as_deref() == Some("row 5"));
            assert!(has_row || short.as_deref().is_some_and(is_end), "{said:?}");
        }
    }
}

#[test]
fn a_connection_that_goes_away_keeps_nothing() {
    let server = with_jobs();
    let lock = "SELECT id FROM job WHERE id = 1 FOR UPDATE";
    let (mut one, mut other, mut third) = (begun(&server), begun(&server), begun(&server));
    one.query(lock);
    send_waiting(&mut other, lock);
    send_waiting(&mut third, lock);
    // One that waits goes, and then the one that has it.
    drop(other);
    assert!(is_silent(&third));
    drop(one);
    assert_eq!(third.answers()[0], "row 1");
    // One that goes while it commits.
    third.query("UPDATE job SET who = 3 WHERE id = 1");
    third.send(&query("COMMIT"));
    drop(third);
    let mut other = begun(&server);
    assert_eq!(other.query(lock)[0], "row 1");
}

#[test]
fn a_circle_ends_without_an_error() {
    let server = with_jobs();
    let lock = |id: u8| format!("SELECT id FROM job WHERE id = {id} FOR UPDATE");
    let mut all: Vec<Client> = (0..3).map(|_| begun(&server)).collect();
    for (id, client) in (1..).zip(&mut all) {
        client.query(&lock(id));
    }
    send_waiting(&mut all[0], &lock(2));
    send_waiting(&mut all[1], &lock(3));
    // The youngest goes on without the claim, and the others wait for its end.
    assert_eq!(all[2].query(&lock(1))[0], "row 1");
    assert!(is_silent(&all[0]) && is_silent(&all[1]));
    all[2].query("UPDATE job SET who = 3 WHERE id = 3");
    assert_eq!(all[2].query("COMMIT"), ["COMMIT", "ready"]);
    assert_eq!(all[1].answers()[0], "row 3");
    assert!(is_silent(&all[0]));
    all[1].query("COMMIT");
    assert_eq!(all[0].answers()[0], "row 2");
    // The youngest waits already.
    let (mut older, mut younger) = (begun(&server), begun(&server));
    all[0].query("COMMIT");
    older.query(&lock(1));
    younger.query(&lock(2));
    send_waiting(&mut younger, &lock(1));
    older.send(&query(&lock(2)));
    assert_eq!(younger.answers()[0], "row 1");
    assert!(is_silent(&older));
    younger.query("ROLLBACK");
    assert_eq!(older.answers()[0], "row 2");
}

/// A row and an advisory lock: who waits for the row goes on without it.
#[test]
fn a_circle_with_an_advisory_lock_ends_without_an_error() {
    const ROW: &str = "SELECT id FROM job WHERE id = 1 FOR UPDATE";
    const LOCK: &str = "SELECT 'locked' FROM pg_advisory_xact_lock(7)";
    let server = with_jobs();
    for closes_by_row in [true, false] {
        let (mut one, mut other) = (begun(&server), begun(&server));
        assert_eq!(one.query(ROW)[0], "row 1");
        assert_eq!(other.query(LOCK)[0], "row locked");
        if closes_by_row {
            send_waiting(&mut one, LOCK);
            assert_eq!(other.query(ROW)[0], "row 1");
        } else {
            send_waiting(&mut other, ROW);
            one.send(&query(LOCK));
            assert_eq!(other.answers()[0], "row 1");
        }
        assert!(is_silent(&one), "the advisory lock is still another's");
        assert_eq!(other.query("COMMIT"), ["COMMIT", "ready"]);
        assert_eq!(one.answers()[0], "row locked");
        assert_eq!(one.query("COMMIT"), ["COMMIT", "ready"]);
    }
}

#[test]
fn what_was_claimed_behind_a_savepoint_goes_with_it() {
    let server = with_jobs();
    let (mut one, mut other) = (begun(&server), server.client());
    let is_free = |other: &mut Client, id: u8| {
        let asked = format!("SELECT id FROM job WHERE id = {id} FOR UPDATE SKIP LOCKED");
        other.query(&asked).len() == 3
    };
    one.query("SELECT FROM job WHERE id = 1 FOR KEY SHARE");
    one.query("SAVEPOINT s");
    one.query("SELECT FROM job WHERE id <= 2 FOR UPDATE");
    one.query("SAVEPOINT t");
    one.query("SELECT FROM job WHERE id = 3 FOR UPDATE");
    one.query("RELEASE t");
    assert_eq!([1, 2, 3].map(|id| is_free(&mut other, id)), [false; 3]);
    one.query("ROLLBACK TO s");
    assert_eq!([1, 2, 3].map(|id| is_free(&mut other, id)), [false, true, true]);
    let shared = "SELECT id FROM job WHERE id = 1 FOR SHARE NOWAIT";
    assert_eq!(other.query(shared)[0], "row 1", "the claim of before is as weak as it was");
    // An error is the end of what is behind the last savepoint.
    one.query("SELECT FROM job WHERE id = 2 FOR UPDATE");
    one.query("SELECT nothing");
    assert_eq!([1, 2].map(|id| is_free(&mut other, id)), [false, true]);
    one.query("ROLLBACK");
    one.query("BEGIN");
    one.query("SELECT FROM job WHERE id = 1 FOR UPDATE");
    one.query("SELECT nothing");
    assert!(is_free(&mut other, 1), "a block that has failed keeps nothing");
}

#[test]
fn statements_outside_of_blocks_pass_by_or_wait() {
    let server = with_jobs();
    let (mut one, mut other) = (begun(&server), server.client());
    one.query("SELECT FROM job WHERE id <= 2 FOR UPDATE");
    let take = format!("UPDATE job SET state = 'done' WHERE id = ({TAKE}) RETURNING id");
    assert_eq!(other.query(&take), ["row 3", "UPDATE 1", "ready"]);
    let with = "WITH c AS (SELECT id FROM job WHERE state = 'new' ORDER BY id LIMIT 1 \
                FOR NO KEY UPDATE SKIP LOCKED) \
                UPDATE job SET state = 'done' FROM c WHERE job.id = c.id RETURNING job.id";
    assert_eq!(other.query(with), ["row 4", "UPDATE 1", "ready"]);
    let first = "DELETE FROM job WHERE id IN (SELECT id FROM job ORDER BY id \
                 FOR UPDATE SKIP LOCKED LIMIT 1) RETURNING id";
    assert_eq!(other.query(first), ["row 3", "DELETE 1", "ready"]);
    // Several in one text are one call, which passes by the same rows.
    let both = other.query(&format!("{take}; {take}; SELECT 1"));
    assert_eq!(both[..4], ["row 5", "UPDATE 1", "row 6", "UPDATE 1"]);
    // What waits does so in front of its call; what asks for no lock waits for nothing.
    assert_eq!(other.query("UPDATE job SET who = 1 WHERE id = 2"), ["UPDATE 1", "ready"]);
    let nowait =
        "UPDATE job SET who = 2 WHERE id = (SELECT 1 FROM job WHERE id = 1 FOR UPDATE NOWAIT)";
    assert_eq!(other.query(nowait), ["error 55P03", "ready"]);
    assert_eq!(other.query(&format!("{nowait}; SELECT 1")), ["error 55P03", "ready"]);
    let waits = nowait.replace(" NOWAIT", "");
    send_waiting(&mut other, &waits);
    one.query("COMMIT");
    assert_eq!(other.answers(), ["UPDATE 1", "ready"]);
    // A segment, whose statements would be one call.
    one.query("BEGIN");
    one.query("SELECT FROM job WHERE id = 1 FOR UPDATE");
    other.send(&[run("UPDATE job SET who = 4 WHERE id = 2"), run(&waits), sync()].concat());
    assert_eq!(one.query("UPDATE job SET who = 3 WHERE id = 1"), ["UPDATE 1", "ready T"]);
    assert_eq!(one.query("COMMIT"), ["COMMIT", "ready"]);
    assert_eq!(other.answers().last().unwrap(), "ready");
    assert_eq!(other.query("SELECT who FROM job ORDER BY id LIMIT 2")[..2], ["row 2", "row 4"]);
}

/// From a query that locks rows on, a segment or text is one transaction, also if it is answered
/// before its end.
#[test]
fn a_segment_keeps_the_rows_that_it_locks() {
    let server = with_jobs();
    let (mut one, mut other) = (server.client(), server.client());
    let lock = "SELECT who FROM job WHERE id = 1 FOR UPDATE";
    let nowait = format!("{lock} NOWAIT");
    let limited = [parse("", lock), bind("", "", &[]), execute("", 1), flush()];
    let update = "UPDATE job SET who = coalesce(who, 0) + 1 WHERE id = 1";
    let early = [[run(lock), flush()].concat(), run(lock), limited.concat()];
    for (round, sent) in early.iter().enumerate() {
        one.send(sent);
        while !matches!(one.next().expect("an answer").kind, b'C' | b's') {}
        assert_eq!(other.query(&nowait), ["error 55P03", "ready"], "round {round}");
        assert_eq!(one.segment(&[run(update)]).last().unwrap(), "ready");
        let who = format!("row {}", round + 1);
        assert_eq!(other.query(&nowait), [&who, "SELECT 1", "ready"]);
    }
    // At the end of the segment nothing is kept that was alone in it.
    assert_eq!(one.segment(&[run(lock)]).last().unwrap(), "ready");
    assert_eq!(other.query(&nowait)[1], "SELECT 1");
    other.query("SELECT pg_advisory_lock(7)");
    one.send(&query(&format!("{lock}; SELECT pg_advisory_lock(7); {update}")));
    while one.next().expect("an answer").kind != b'C' {}
    assert_eq!(other.query(&nowait), ["error 55P03", "ready"]);
    other.query("SELECT pg_advisory_unlock(7)");
    assert_eq!(one.answers(), ["row ", "SELECT 1", "UPDATE 1", "ready"]);
    assert_eq!(other.query(&nowait)[0], "row 4");
}

#[test]
fn lock_table_keeps_other_blocks_out() {
    let server = with_jobs();
    let (mut one, mut other) = (begun(&server), begun(&server));
    let mut alone = server.client();
    assert_eq!(alone.query("LOCK TABLE job"), ["error 25P01", "ready"]);
    assert_eq!(one.query("LOCK TABLE nothing"), ["error 42P01", "ready E"]);
    one.query("ROLLBACK");
    one.query("BEGIN");
    assert_eq!(one.query("LOCK TABLE job IN SHARE ROW EXCLUSIVE MODE"), ["LOCK TABLE", "ready T"]);
    assert_eq!(other.query("LOCK job IN ROW SHARE MODE NOWAIT"), ["LOCK TABLE", "ready T"]);
    assert_eq!(other.query("SELECT id FROM job WHERE id = 1 FOR UPDATE")[0], "row 1");
    send_waiting(&mut other, "LOCK TABLE ONLY job IN SHARE MODE");
    one.query("INSERT INTO job VALUES (7)");
    assert_eq!(one.query("COMMIT"), ["COMMIT", "ready"]);
    assert_eq!(other.answers(), ["LOCK TABLE", "ready T"]);
    assert_eq!(other.query("SELECT count(*) FROM job")[0], "row 7");
    // Rows are claimed as in ROW SHARE.
    one.query("BEGIN");
    one.send(&query("LOCK job IN EXCLUSIVE MODE NOWAIT"));
    let said = one.until_ready();
    assert_eq!(said[0].field(b'C').as_deref(), Some("55P03"));
    assert_eq!(said[0].field(b'M').unwrap(), "could not obtain lock on relation \"job\"");
    one.query("ROLLBACK");
    one.query("BEGIN");
    send_waiting(&mut one, "LOCK job");
    other.query("COMMIT");
    assert_eq!(one.answers(), ["LOCK TABLE", "ready T"]);
    assert_eq!(alone.query("SELECT count(*) FROM job")[0], "row 7", "who asks for no lock goes on");
    let row = "SELECT id FROM job WHERE id = 1 FOR UPDATE";
    send_waiting(&mut server.client(), &format!("{row} NOWAIT"));
    alone.query("SET lock_timeout = 30");
    assert_eq!(alone.query(&format!("{row} NOWAIT")), ["error 55P03", "ready"]);
    assert_eq!(alone.query(&format!("{row} SKIP LOCKED")), ["error 55P03", "ready"]);
    // Rows that others have are passed by, their table is not, though no row would be answered.
    for rows in ["", " FOR UPDATE"] {
        one.query(&format!("SELECT FROM job{rows}"));
        for text in [TAKE, &format!("UPDATE job SET who = 1 WHERE id = ({TAKE})")] {
            assert_eq!(alone.query(text), ["error 55P03", "ready"], "{text} behind {rows:?}");
            let several = format!("{text}; {text}");
            assert_eq!(alone.query(&several), ["error 55P03", "ready"], "{several}");
        }
        send_waiting(&mut begun(&server), TAKE);
    }
    alone.query("CREATE VIEW seen AS SELECT id FROM job");
    let locked = alone.query("BEGIN; LOCK TABLE seen; COMMIT");
    assert_eq!(locked, ["BEGIN", "error 55P03", "ready E"]);
}

/// A counter that is claimed, changed and committed by many: none is lost, and hardly one is run
/// again.
#[test]
fn blocks_on_a_hot_row_come_one_after_the_other() {
    const CLIENTS: usize = 16;
    const BLOCKS: usize = 25;
    let server = Server::start();
    let mut client = server.client();
    client.query("CREATE TABLE account (id int PRIMARY KEY, balance int)");
    client.query("INSERT INTO account VALUES (1, 0), (2, 0)");
    let retries = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            let (mut client, retries) = (server.client(), &retries);
            scope.spawn(move || {
                for _ in 0..BLOCKS {
                    loop {
                        client.query("BEGIN");
                        let read = "SELECT balance FROM account WHERE id = 1 FOR UPDATE";
                        let balance = client.query(read)[0].clone();
                        let balance: usize = balance.strip_prefix("row ").unwrap().parse().unwrap();
                        let set =
                            format!("UPDATE account SET balance = {} WHERE id = 1", balance + 1);
                        client.query(&set);
                        match &client.query("COMMIT")[0][..] {
                            "COMMIT" => break,
                            "error 40001" => retries.fetch_add(1, Ordering::Relaxed),
                            said => panic!("{said}"),
                        };
                    }
                }
            });
        }
    });
    let total = CLIENTS * BLOCKS;
    assert_eq!(client.query("SELECT balance FROM account WHERE id = 1")[0], format!("row {total}"));
    let retries = retries.into_inner();
    eprintln!("{retries} retries of {total} commits");
    assert!(retries * 20 < total, "{retries} retries of {total} commits");
}

#[test]
fn workers_in_blocks_take_each_job_once() {
    const WORKERS: u32 = 8;
    const JOBS: usize = 200;
    let server = Server::start();
    let mut client = server.client();
    client.query("CREATE TABLE job (id int PRIMARY KEY, state text, who int)");
    client.query("CREATE INDEX ON job (id) WHERE state = 'new'");
    client.query(&format!("INSERT INTO job SELECT id, 'new' FROM generate_series(1, {JOBS}) id"));
    let (taken, retries) = (Mutex::new(Vec::new()), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for who in 0..WORKERS {
            let (mut client, taken, retries) = (server.client(), &taken, &retries);
            scope.spawn(move || {
                loop {
                    client.query("BEGIN");
                    let found = client.query(TAKE)[0].clone();
                    let Some(id) = found.strip_prefix("row ").map(str::to_owned) else { break };
                    let done =
                        format!("UPDATE job SET state = 'done', who = {who} WHERE id = {id}");
                    client.query(&done);
                    match &client.query("COMMIT")[0][..] {
                        "COMMIT" => taken.lock().unwrap().push(id.parse::<usize>().unwrap()),
                        "error 40001" => drop(retries.fetch_add(1, Ordering::Relaxed)),
                        said => panic!("{said}"),
                    }
                }
            });
        }
    });
    let mut taken = taken.into_inner().unwrap();
    taken.sort_unstable();
    let retries = retries.into_inner();
    eprintln!("{retries} retries of {JOBS} commits");
    assert_eq!(taken, (1..=JOBS).collect::<Vec<_>>());
    assert!(retries * 20 < JOBS, "{retries} retries of {JOBS} commits");
}
