//! SIGKILL of the server under load: single statements, blocks, texts of several statements, COPY
//! and definitions. Afterwards everything that was answered is there once, what was refused is not,
//! and what was not answered is there whole or not at all (O-60).

use std::collections::{BTreeMap, BTreeSet};
use std::io::Cursor;
use std::sync::Arc;
use std::time::Duration;

use futures_util::SinkExt;
use rustix::process::Signal;
use sim::history::{Random, effort};
use tokio::sync::Semaphore;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use crate::served::Server;
use crate::support::Room;

const CLIENTS: i64 = 32;
const ACCOUNTS: u64 = 16;
const BALANCE: i64 = 1_000_000;
/// Rows of a large COPY, which goes into an empty table in parts.
const LOADED_ROWS: i64 = 1_500;
const LOADED_ROW_BYTES: usize = 1_000;

/// What a client is told to do, all of it at once or not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    /// A row, by one statement with parameters.
    Insert,
    /// One more in a counter of its own and in one that all share, by one statement.
    Add,
    /// A transfer between two accounts with a row about it, in a block of statements.
    Block,
    /// The same in one text, without a block.
    Text,
    /// The same in one text that is a block.
    TextBlock,
    /// So many rows by COPY.
    Copy(i64),
    /// The same in a block.
    CopyBlock(i64),
    /// A table instead of the one that it had, with a row about it, in a block.
    Define,
    /// More rows by COPY into this table of its own than one statement may have.
    Load,
}

impl Operation {
    fn random(random: &mut Random, table: Option<&Table>) -> Operation {
        match random.below(1_000) {
            0..350 => Operation::Insert,
            350..500 => Operation::Add,
            500..700 => Operation::Block,
            700..800 => Operation::Text,
            800..880 => Operation::TextBlock,
            880..940 => Operation::Copy(random.below(100) as i64 + 1),
            940..965 => Operation::CopyBlock(random.below(100) as i64 + 1),
            965..990 => Operation::Define,
            _ if table.is_some_and(|table| table.rows == 0) => Operation::Load,
            _ => Operation::Define,
        }
    }

    /// How many rows of table `entry` it makes.
    fn entries(self) -> i64 {
        match self {
            Operation::Insert | Operation::Define => 1,
            Operation::Add | Operation::Load => 0,
            Operation::Block | Operation::Text | Operation::TextBlock => 2,
            Operation::Copy(rows) | Operation::CopyBlock(rows) => rows,
        }
    }
}

/// A table of a client's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Table {
    /// The number of the operation that made it.
    at: i64,
    rows: i64,
}

/// An operation without an answer.
#[derive(Debug, Clone, Copy)]
struct Pending {
    at: i64,
    operation: Operation,
    /// Whether its last message was sent. Otherwise it cannot have taken place.
    is_asked: bool,
}

/// What a client was answered.
#[derive(Debug, Default)]
struct Journal {
    writer: i64,
    /// The number of the next operation.
    next: i64,
    /// Rows of table `entry` by the number of their operation.
    entries: BTreeMap<i64, i64>,
    adds: i64,
    table: Option<Table>,
    pending: Option<Pending>,
    refused: u64,
}

/// Why an operation was not answered with success.
struct Failure {
    error: tokio_postgres::Error,
    is_asked: bool,
}

fn before_end(error: tokio_postgres::Error) -> Failure {
    Failure { error, is_asked: false }
}

fn at_end(error: tokio_postgres::Error) -> Failure {
    Failure { error, is_asked: true }
}

impl Journal {
    fn table_name(&self, at: i64) -> String {
        format!("made_{}_{at}", self.writer)
    }

    /// The statements of a transfer.
    fn transfer(&self, random: &mut Random) -> [String; 3] {
        let source = random.below(ACCOUNTS);
        let target = (source + 1 + random.below(ACCOUNTS - 1)) % ACCOUNTS;
        let amount = random.below(100) + 1;
        let (writer, at) = (self.writer, self.next);
        [
            format!("UPDATE account SET balance = balance - {amount} WHERE id = {source}"),
            format!(
                "INSERT INTO entry VALUES ({writer}, {at}, 0, {source}, {target}, {amount}), \
                 ({writer}, {at}, 1, -1, -1, 0)"
            ),
            format!("UPDATE account SET balance = balance + {amount} WHERE id = {target}"),
        ]
    }

    async fn perform(
        &self,
        client: &Client,
        operation: Operation,
        random: &mut Random,
    ) -> Result<(), Failure> {
        let (writer, at) = (self.writer, self.next);
        match operation {
            Operation::Insert => {
                let text = "INSERT INTO entry VALUES ($1, $2, 0, -1, -1, 0)";
                client.execute(text, &[&writer, &at]).await.map(drop).map_err(at_end)
            }
            Operation::Add => {
                let text = "UPDATE counter SET n = n + 1 WHERE id IN (-1, $1)";
                let count = client.execute(text, &[&writer]).await.map_err(at_end)?;
                assert_eq!(count, 2);
                Ok(())
            }
            Operation::Block => self.block(client, random).await,
            Operation::Text => {
                let text = self.transfer(random).join("; ");
                client.batch_execute(&text).await.map_err(at_end)
            }
            Operation::TextBlock => {
                let text = format!("BEGIN; {}; COMMIT", self.transfer(random).join("; "));
                client.batch_execute(&text).await.map_err(at_end)
            }
            Operation::Copy(rows) => self.copy(client, rows).await,
            Operation::CopyBlock(rows) => {
                client.batch_execute("BEGIN").await.map_err(before_end)?;
                self.copy(client, rows).await.map_err(|failure| before_end(failure.error))?;
                client.batch_execute("COMMIT").await.map_err(at_end)
            }
            Operation::Define => self.define(client).await,
            Operation::Load => {
                let table = self.table_name(self.table.expect("it has one").at);
                let filler = "x".repeat(LOADED_ROW_BYTES);
                let lines = (0..LOADED_ROWS).map(|id| format!("{id}\t{filler}\n"));
                copied(client, &format!("COPY {table} FROM STDIN"), lines).await
            }
        }
    }

    async fn block(&self, client: &Client, random: &mut Random) -> Result<(), Failure> {
        client.batch_execute("BEGIN").await.map_err(before_end)?;
        if random.percent(30) {
            let text = "SELECT balance FROM account WHERE id = $1";
            let id = random.below(ACCOUNTS) as i64;
            client.query(text, &[&id]).await.map_err(before_end)?;
        }
        for text in self.transfer(random) {
            if random.percent(50) {
                client.execute(&text, &[]).await.map_err(before_end)?;
            } else {
                client.batch_execute(&text).await.map_err(before_end)?;
            }
        }
        client.batch_execute("COMMIT").await.map_err(at_end)
    }

    async fn define(&self, client: &Client) -> Result<(), Failure> {
        client.batch_execute("BEGIN").await.map_err(before_end)?;
        let new = self.table_name(self.next);
        let (writer, at) = (self.writer, self.next);
        let mut texts = vec![
            format!("CREATE TABLE {new} (id bigint PRIMARY KEY, filler text)"),
            format!("INSERT INTO entry VALUES ({writer}, {at}, 0, -1, -1, 0)"),
        ];
        if let Some(old) = &self.table {
            texts.push(format!("DROP TABLE {}", self.table_name(old.at)));
        }
        for text in texts {
            client.batch_execute(&text).await.map_err(before_end)?;
        }
        client.batch_execute("COMMIT").await.map_err(at_end)
    }

    async fn copy(&self, client: &Client, rows: i64) -> Result<(), Failure> {
        let (writer, at) = (self.writer, self.next);
        let lines = (0..rows).map(|part| format!("{writer}\t{at}\t{part}\t-1\t-1\t0\n"));
        copied(client, "COPY entry FROM STDIN", lines).await
    }

    /// An operation has taken place.
    fn took_place(&mut self, at: i64, operation: Operation) {
        if operation.entries() > 0 {
            self.entries.insert(at, operation.entries());
        }
        match operation {
            Operation::Add => self.adds += 1,
            Operation::Define => self.table = Some(Table { at, rows: 0 }),
            Operation::Load => self.table.as_mut().expect("it has one").rows = LOADED_ROWS,
            _ => {}
        }
    }
}

async fn copied(
    client: &Client,
    text: &str,
    lines: impl Iterator<Item = String>,
) -> Result<(), Failure> {
    let sink = client.copy_in::<_, Cursor<Vec<u8>>>(text).await.map_err(before_end)?;
    let mut sink = Box::pin(sink);
    let lines: Vec<String> = lines.collect();
    for part in lines.chunks(100) {
        let bytes = part.concat().into_bytes();
        sink.send(Cursor::new(bytes)).await.map_err(before_end)?;
    }
    sink.as_mut().finish().await.map(drop).map_err(at_end)
}

/// Does one thing after the other until the server is killed. Each answer adds to `answers`.
async fn work(
    client: Client,
    mut journal: Journal,
    mut random: Random,
    answers: Arc<Semaphore>,
) -> Journal {
    loop {
        let operation = Operation::random(&mut random, journal.table.as_ref());
        let done = journal.perform(&client, operation, &mut random).await;
        let at = journal.next;
        journal.next += 1;
        let failure = match done {
            Ok(()) => {
                journal.took_place(at, operation);
                answers.add_permits(1);
                continue;
            }
            Err(failure) => failure,
        };
        let Some(code) = failure.error.code() else {
            journal.pending = Some(Pending { at, operation, is_asked: failure.is_asked });
            return journal;
        };
        let text = format!("writer {}, {operation:?}: {}", journal.writer, failure.error);
        assert_eq!(*code, SqlState::T_R_SERIALIZATION_FAILURE, "{text}");
        journal.refused += 1;
        if !failure.is_asked && client.batch_execute("ROLLBACK").await.is_err() {
            return journal;
        }
    }
}

/// What is in the store after a kill.
struct Found {
    /// By writer and number of operation.
    entries: BTreeMap<(i64, i64), i64>,
    counters: BTreeMap<i64, i64>,
    tables: BTreeSet<String>,
}

async fn pairs(client: &Client, text: &str) -> BTreeMap<i64, i64> {
    let rows = client.query(text, &[]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

impl Found {
    async fn read(client: &Client) -> Found {
        let text = "SELECT writer, at, count(*), max(part) FROM entry GROUP BY writer, at";
        let mut entries = BTreeMap::new();
        for row in client.query(text, &[]).await.unwrap() {
            let (count, last): (i64, i64) = (row.get(2), row.get(3));
            assert_eq!(count, last + 1, "entries of an operation are missing");
            entries.insert((row.get(0), row.get(1)), count);
        }
        let text = "SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = 'public'";
        let tables = client.query(text, &[]).await.unwrap();
        let tables = tables.iter().map(|row| row.get(0));
        let tables = tables.filter(|name: &String| name.starts_with("made_")).collect();
        Found { entries, counters: pairs(client, "SELECT id, n FROM counter").await, tables }
    }

    /// Finds out whether the operation took place that was not answered.
    async fn settle(&self, client: &Client, journal: &mut Journal) {
        let Some(Pending { at, operation, is_asked }) = journal.pending.take() else { return };
        let took_place = match operation {
            Operation::Add => self.counters[&journal.writer] > journal.adds,
            Operation::Load => {
                let table = journal.table_name(journal.table.expect("it has one").at);
                rows_of(client, &table).await > 0
            }
            _ => self.entries.contains_key(&(journal.writer, at)),
        };
        if took_place {
            assert!(is_asked, "writer {}: {operation:?} at {at}, not asked for", journal.writer);
            journal.took_place(at, operation);
        }
    }

    /// Exactly what a client knows of is there.
    async fn verify(&self, client: &Client, journal: &Journal) {
        let writer = journal.writer;
        let own = self.entries.range((writer, 0)..(writer + 1, 0));
        let own: BTreeMap<i64, i64> = own.map(|((_, at), count)| (*at, *count)).collect();
        assert_eq!(own, journal.entries, "entries of writer {writer}");
        assert_eq!(self.counters[&writer], journal.adds, "the counter of writer {writer}");
        let prefix = format!("made_{writer}_");
        let tables: Vec<&String> =
            self.tables.iter().filter(|name| name.starts_with(&prefix)).collect();
        let expected: Vec<String> =
            journal.table.iter().map(|table| journal.table_name(table.at)).collect();
        assert_eq!(tables, expected.iter().collect::<Vec<_>>());
        if let Some(table) = &journal.table {
            assert_eq!(rows_of(client, &expected[0]).await, table.rows, "{}", expected[0]);
        }
    }
}

async fn rows_of(client: &Client, table: &str) -> i64 {
    let text = format!("SELECT count(*) FROM {table}");
    client.query_one(&text, &[]).await.unwrap().get(0)
}

/// Sums of what was written together are equal.
async fn verify_sums(client: &Client, found: &Found) {
    let shared = found.counters[&-1];
    let own: i64 = found.counters.range(0..).map(|(_, n)| n).sum();
    assert_eq!(own, shared, "the counter that all share");
    let text = "SELECT source, sum(amount)::bigint FROM entry GROUP BY source";
    let sent = pairs(client, text).await;
    let text = "SELECT target, sum(amount)::bigint FROM entry GROUP BY target";
    let received = pairs(client, text).await;
    let balances = pairs(client, "SELECT id, balance FROM account").await;
    assert_eq!(balances.values().sum::<i64>(), BALANCE * ACCOUNTS as i64);
    for (id, balance) in balances {
        let of = |sums: &BTreeMap<i64, i64>| sums.get(&id).copied().unwrap_or(0);
        assert_eq!(balance, BALANCE + of(&received) - of(&sent), "account {id}");
    }
}

async fn make_tables(client: &Client) {
    let accounts: Vec<String> = (0..ACCOUNTS).map(|id| format!("({id}, {BALANCE})")).collect();
    let counters: Vec<String> = (-1..CLIENTS).map(|id| format!("({id}, 0)")).collect();
    let texts = [
        "CREATE TABLE account (id bigint PRIMARY KEY, balance bigint NOT NULL)".to_owned(),
        "CREATE TABLE counter (id bigint PRIMARY KEY, n bigint NOT NULL)".to_owned(),
        "CREATE TABLE entry (writer bigint, at bigint, part bigint, source bigint NOT NULL,
                             target bigint NOT NULL, amount bigint NOT NULL,
                             PRIMARY KEY (writer, at, part))"
            .to_owned(),
        format!("INSERT INTO account VALUES {}", accounts.join(", ")),
        format!("INSERT INTO counter VALUES {}", counters.join(", ")),
    ];
    for text in texts {
        client.batch_execute(&text).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_answered_before_a_kill_is_there_once() {
    let (rounds, seed) = (effort("NVCARACAL_SERVER_KILLS", 5), effort("NVCARACAL_FIRST_SEED", 43));
    eprintln!("NVCARACAL_FIRST_SEED={seed}");
    let room = Room::new();
    let store = room.text("store");
    let mut random = Random::new(seed);
    let mut server = Server::start(&store);
    make_tables(&server.connect().await.expect("a server")).await;
    let mut journals: Vec<Journal> =
        (0..CLIENTS).map(|writer| Journal { writer, ..Journal::default() }).collect();
    for round in 0..rounds {
        let (mut running, answers) = (Vec::new(), Arc::new(Semaphore::new(0)));
        for journal in journals.drain(..) {
            let client = server.connect().await.expect("a server");
            let own = Random::new(random.word());
            running.push(tokio::spawn(work(client, journal, own, Arc::clone(&answers))));
        }
        let before_kill = u32::try_from(random.below(1_000)).unwrap();
        drop(answers.acquire_many(before_kill).await.expect("it is not closed"));
        server.signal(Signal::KILL);
        for task in running {
            journals.push(task.await.unwrap());
        }
        tokio::task::block_in_place(|| server.ended());
        if random.percent(50) {
            // Its recovery is killed, too.
            let after = Duration::from_micros(random.below(100_000));
            tokio::task::block_in_place(|| Server::start_and_kill(&store, after));
        }
        server = Server::start(&store);
        let client = server.connect().await.expect("a server");
        let found = Found::read(&client).await;
        for journal in &mut journals {
            found.settle(&client, journal).await;
            found.verify(&client, journal).await;
        }
        verify_sums(&client, &found).await;
        let answered: i64 = journals.iter().map(|one| one.entries.len() as i64 + one.adds).sum();
        let refused: u64 = journals.iter().map(|one| one.refused).sum();
        eprintln!("round {round}: {answered} operations so far, {refused} refused");
    }
}
