//! `serve`, as a user and as clients see it: options, signals, SIGKILL under load. Whatever
//! was answered before a kill is there once afterwards (O-60).

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use sim::history::{Random, effort};
use tokio::sync::Semaphore;
use tokio_postgres::{Client, Config, NoTls};

use crate::support::{PATIENCE, PAUSE, Room, command, run};

/// A server that is killed when it is dropped.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start(line: &str) -> Server {
        let line = format!("serve {line} --listen 127.0.0.1:0 --json");
        let mut child = command(&line).stdout(Stdio::piped()).spawn().expect("a server");
        let mut said = String::new();
        let output = child.stdout.as_mut().expect("a pipe");
        BufReader::new(output).read_line(&mut said).expect("a line");
        let said: Value = serde_json::from_str(&said).unwrap_or_else(|e| panic!("{e}: {said:?}"));
        let address = said["addresses"][0].as_str().expect("an address");
        let port = address.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
        Server { child, port }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("a process of ours");
    }

    /// Waits for the end; gives the exit code.
    fn ended(mut self) -> Option<i32> {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("a process of ours") {
                return status.code();
            }
            assert!(started.elapsed() < PATIENCE, "the server does not end");
            std::thread::sleep(PAUSE);
        }
    }

    async fn connect(&self) -> Option<Client> {
        let mut config = Config::new();
        config.host("127.0.0.1").port(self.port).user("nvcaracal").connect_timeout(PATIENCE);
        let (client, connection) = config.connect(NoTls).await.ok()?;
        tokio::spawn(connection);
        Some(client)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn options_that_cannot_be_used_are_refused_in_words() {
    let room = Room::new();
    let store = room.text("store");
    let open = run(&format!("serve {store} --listen 0.0.0.0:0"));
    open.failed(2, &["no password is set"]);
    run(&format!("serve {store} --listen nowhere")).failed(2, &["127.0.0.1:5433"]);
    let missing = run(&format!("serve {store} --password-file {store}/none"));
    missing.failed(2, &["cannot read the password"]);
    std::fs::write(room.path("empty"), "\n").unwrap();
    let empty = run(&format!("serve {store} --password-file {}", room.text("empty")));
    empty.failed(2, &["a password has 1 to 1000 characters"]);
    assert!(!room.path("store").exists(), "a refused command makes nothing");
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = other.local_addr().unwrap();
    run(&format!("serve {store} --listen {taken}")).failed(1, &["cannot listen at", "in use"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_answers_what_was_submitted_and_closes_the_store() {
    let room = Room::new();
    let server = Server::start(&room.text("store"));
    let client = server.connect().await.expect("a server");
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY)").await.unwrap();
    client.batch_execute("INSERT INTO t VALUES (1), (2)").await.unwrap();
    server.signal(Signal::TERM);
    assert_eq!(tokio::task::block_in_place(|| server.ended()), Some(0));
    let checked = run(&format!("check {} --json", room.text("store"))).succeeded().json();
    assert_eq!(checked["committed_epochs"], serde_json::json!([]), "{checked}");
    let server = Server::start(&room.text("store"));
    let client = server.connect().await.expect("a server");
    let row = client.query_one("SELECT count(*) FROM t", &[]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), 2);
}

/// What a client was answered: the numbers that its rows got.
type Journal = BTreeMap<i64, i64>;

/// Inserts rows of its own, one after the other, and adds to a row that all share, until the
/// server is killed. Each row that is answered adds to `answers`.
async fn load(client: Client, writer: i32, begin: i64, answers: Arc<Semaphore>) -> (Journal, i64) {
    let mut journal = Journal::new();
    let mut attempted = begin;
    let Ok(insert) = client.prepare("INSERT INTO entry VALUES ($1, $2, $3)").await else {
        return (journal, attempted);
    };
    let Ok(add) = client.prepare("UPDATE total SET n = n + 1 WHERE id = 1 RETURNING n").await
    else {
        return (journal, attempted);
    };
    loop {
        attempted += 1;
        let Ok(row) = client.query_one(&add, &[]).await else { break };
        let number: i64 = row.get(0);
        if client.execute(&insert, &[&writer, &attempted, &number]).await.is_err() {
            break;
        }
        journal.insert(attempted, number);
        answers.add_permits(1);
    }
    (journal, attempted)
}

/// Everything that was answered is there once, and nothing that was not attempted.
async fn verify(client: &Client, journals: &[(Journal, i64)], answered: i64) {
    for (writer, (journal, attempted)) in journals.iter().enumerate() {
        let writer = i32::try_from(writer).unwrap();
        let query = "SELECT at, number FROM entry WHERE writer = $1";
        let rows = client.query(query, &[&writer]).await.unwrap();
        let stored: Journal = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        assert_eq!(stored.len(), rows.len(), "a row is there twice");
        for (at, number) in journal {
            assert_eq!(stored.get(at), Some(number), "writer {writer} lost entry {at}");
        }
        for at in stored.keys() {
            assert!(at <= attempted, "writer {writer} did not write entry {at}");
        }
    }
    let row = client.query_one("SELECT n FROM total WHERE id = 1", &[]).await.unwrap();
    let total: i64 = row.get(0);
    let distinct: std::collections::BTreeSet<i64> =
        journals.iter().flat_map(|(journal, _)| journal.values().copied()).collect();
    let all: usize = journals.iter().map(|(journal, _)| journal.len()).sum();
    assert_eq!(distinct.len(), all, "two additions were answered with one number");
    assert!(total >= distinct.last().copied().unwrap_or(0), "an addition was lost");
    assert!(total >= answered, "{total} additions of {answered}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_answered_before_a_kill_is_there_once() {
    let (rounds, writers) = (effort("NVCARACAL_SERVER_KILLS", 3), 8);
    let room = Room::new();
    let store = room.text("store");
    let mut random = Random::new(43);
    let mut server = Server::start(&store);
    let client = server.connect().await.expect("a server");
    let tables = [
        "CREATE TABLE entry (writer int, at bigint, number bigint NOT NULL,
                             PRIMARY KEY (writer, at))",
        "CREATE TABLE total (id int PRIMARY KEY, n bigint NOT NULL)",
        "INSERT INTO total VALUES (1, 0)",
    ];
    for text in tables {
        client.batch_execute(text).await.unwrap();
    }
    let mut journals: Vec<(Journal, i64)> = vec![(Journal::new(), 0); writers];
    for round in 0..rounds {
        let (mut running, answers) = (Vec::new(), Arc::new(Semaphore::new(0)));
        for (writer, (_, attempted)) in journals.iter().enumerate() {
            let client = server.connect().await.expect("a server");
            let writer = i32::try_from(writer).unwrap();
            running.push(tokio::spawn(load(client, writer, *attempted, Arc::clone(&answers))));
        }
        let before_kill = u32::try_from(random.below(500)).unwrap();
        drop(answers.acquire_many(before_kill).await.expect("it is not closed"));
        server.signal(Signal::KILL);
        for (task, (journal, attempted)) in running.into_iter().zip(&mut journals) {
            let (more, last) = task.await.unwrap();
            journal.extend(more);
            *attempted = last;
        }
        tokio::task::block_in_place(|| server.ended());
        server = Server::start(&store);
        let client = server.connect().await.expect("a server");
        let answered = journals.iter().map(|(journal, _)| journal.len()).sum::<usize>();
        let answered = i64::try_from(answered).unwrap();
        verify(&client, &journals, answered).await;
        eprintln!("round {round}: {answered} entries answered so far, all there");
    }
}
