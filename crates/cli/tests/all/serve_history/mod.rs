//! What several clients saw has an order in which one ran after the other, each between its begin
//! and its end (O-60): single statements, texts of several, and blocks of all isolation levels,
//! with kills in between. `sim::serializable` checks it.

mod forms;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::Signal;
use sim::history::{Random, effort};
use sim::serializable::{Access, Lists, Observed, Outcome, check};
use tokio::sync::Semaphore;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error, SimpleQueryMessage};

use crate::served::Server;
use crate::support::Room;

const CLIENTS: u64 = 8;
/// Rows are there from the beginning, or only once something is appended to them.
const ROWS: u64 = 5;
const ROWS_AT_FIRST: u64 = 3;
/// A life of the server ends with a kill, but for the last one.
const LIVES: u64 = 3;
/// Transactions of a client in the last life.
const TRANSACTIONS: usize = 60;

/// A statement, and what it does.
struct Step {
    text: String,
    appends: Vec<(u64, u64)>,
    /// The rows whose lists it answers, or nothing of one that is not there.
    reads: Vec<u64>,
}

/// What all clients share.
struct Common {
    clock: AtomicU64,
    values: AtomicU64,
    answers: Semaphore,
}

impl Common {
    fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    fn value(&self) -> u64 {
        self.values.fetch_add(1, Ordering::SeqCst)
    }
}

impl Step {
    fn random(random: &mut Random, common: &Common) -> Step {
        let row = random.below(ROWS);
        let next = (row + 1) % ROWS_AT_FIRST;
        match random.below(7) {
            0 => Step::read(format!("id = {row}"), vec![row]),
            1 => Step::read("true".to_owned(), (0..ROWS).collect()),
            2 => Step::read(format!("id BETWEEN {row} AND {}", row + 2), (row..row + 3).collect()),
            3 => {
                let row = row % ROWS_AT_FIRST;
                let value = common.value();
                let text = format!("UPDATE row SET list = list || ',{value}' WHERE id = {row}");
                Step { text, appends: vec![(row, value)], reads: vec![] }
            }
            4 if row % ROWS_AT_FIRST != next => {
                let row = row % ROWS_AT_FIRST;
                let (one, other) = (common.value(), common.value());
                let text = format!(
                    "UPDATE row SET list = list || CASE id WHEN {row} THEN ',{one}' \
                     ELSE ',{other}' END WHERE id IN ({row}, {next})"
                );
                Step { text, appends: vec![(row, one), (next, other)], reads: vec![] }
            }
            kind => {
                let value = common.value();
                let mut text = format!(
                    "INSERT INTO row VALUES ({row}, ',{value}') \
                     ON CONFLICT (id) DO UPDATE SET list = row.list || excluded.list"
                );
                let reads = if kind == 5 { vec![row] } else { vec![] };
                if !reads.is_empty() {
                    text.push_str(" RETURNING id, list");
                }
                Step { text, appends: vec![(row, value)], reads }
            }
        }
    }

    fn read(condition: String, reads: Vec<u64>) -> Step {
        let text = format!("SELECT id, list FROM row WHERE {condition}");
        Step { text, appends: vec![], reads }
    }

    /// What it did, after its answer.
    fn accesses(&self, found: &Lists) -> Vec<Access> {
        let appends = self.appends.iter();
        let appends = appends.map(|(row, value)| Access::Append { row: *row, value: *value });
        let reads = self.reads.iter().map(|row| {
            let seen = found.get(row).cloned().unwrap_or_default();
            Access::Read { row: *row, seen }
        });
        appends.chain(reads).collect()
    }

    /// What it may have done, without an answer.
    fn attempted(&self) -> Vec<Access> {
        Step { text: String::new(), appends: self.appends.clone(), reads: vec![] }
            .accesses(&Lists::new())
    }
}

fn list(text: &str) -> Vec<u64> {
    let values = text.split(',').filter(|value| !value.is_empty());
    values.map(|value| value.parse().expect("a value of ours")).collect()
}

/// The lists that each statement of a text answers.
async fn ask(client: &Client, text: &str) -> Result<Vec<Lists>, Error> {
    let (mut all, mut lists) = (Vec::new(), Lists::new());
    for message in client.simple_query(text).await? {
        match message {
            SimpleQueryMessage::Row(row) => {
                let id = row.get(0).and_then(|id| id.parse().ok()).expect("a number");
                lists.insert(id, list(row.get(1).expect("a list")));
            }
            SimpleQueryMessage::CommandComplete(_) => all.push(std::mem::take(&mut lists)),
            _ => {}
        }
    }
    Ok(all)
}

/// The same of one statement, by the extended protocol.
async fn ask_one(client: &Client, text: &str) -> Result<Lists, Error> {
    let rows = client.query(text, &[]).await?;
    let pair = |row: &tokio_postgres::Row| (row.get::<_, i32>(0) as u64, list(row.get(1)));
    Ok(rows.iter().map(pair).collect())
}

/// What came of the last message of a transaction.
fn outcome(error: &Error) -> Outcome {
    match error.code() {
        None => Outcome::Unknown,
        Some(code) if *code == SqlState::T_R_SERIALIZATION_FAILURE => Outcome::Aborted,
        Some(_) => panic!("{error}"),
    }
}

/// What a block has done so far.
#[derive(Default)]
struct Done {
    text: String,
    accesses: Vec<Access>,
    /// What was rolled back to a savepoint.
    undone: Vec<Access>,
}

struct Caller {
    client: Client,
    common: Arc<Common>,
    random: Random,
    name: String,
    history: Vec<Observed>,
}

impl Caller {
    fn observe(&mut self, what: &str, began: u64, outcome: Outcome, accesses: Vec<Access>) {
        let (number, ended) = (self.history.len(), self.common.now());
        let name = format!("{}.{number} `{what}`", self.name);
        self.history.push(Observed { name, began, ended, outcome, accesses });
    }

    /// One statement, or several in one text.
    async fn text(&mut self) -> Result<(), Error> {
        let count = self.random.pick(&[1, 1, 1, 2, 3]);
        let steps: Vec<Step> =
            (0..count).map(|_| Step::random(&mut self.random, &self.common)).collect();
        let texts: Vec<&str> = steps.iter().map(|step| step.text.as_str()).collect();
        let is_block = self.random.percent(30);
        let first_write = steps.iter().take_while(|step| step.appends.is_empty()).count();
        let reads_only = first_write == steps.len();
        let begin = if reads_only { "BEGIN ISOLATION LEVEL REPEATABLE READ" } else { "BEGIN" };
        let text = match is_block {
            true => format!("{begin}; {}; COMMIT", texts.join("; ")),
            false => texts.join("; "),
        };
        let began = self.common.now();
        let answered = match (is_block, &texts[..]) {
            (true, _) => ask(&self.client, &text).await.map(|all| all[1..=steps.len()].to_vec()),
            (false, [one]) if self.random.percent(70) => {
                ask_one(&self.client, one).await.map(|one| vec![one])
            }
            _ => ask(&self.client, &text).await,
        };
        match answered {
            Ok(all) => {
                assert_eq!(all.len(), steps.len());
                let mut done = steps.iter().zip(&all).map(|(step, found)| step.accesses(found));
                // Outside of a block it is one transaction from its first write on.
                let alone = if is_block { 0 } else { first_write };
                for read in done.by_ref().take(alone) {
                    self.observe(&text, began, Outcome::Committed, read);
                }
                let together = done.flatten().collect();
                self.observe(&text, began, Outcome::Committed, together);
                Ok(())
            }
            Err(error) => {
                let accesses = steps.iter().flat_map(Step::attempted).collect();
                assert_ne!(outcome(&error), Outcome::Aborted, "no answer was seen: {error}");
                self.observe(&text, began, Outcome::Unknown, accesses);
                Err(error)
            }
        }
    }

    /// A block, statement by statement, sometimes with a savepoint.
    async fn block(&mut self) -> Result<(), Error> {
        let level = self.random.pick(&["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"]);
        let began = self.common.now();
        let mut done = Done { text: format!("BEGIN ISOLATION LEVEL {level}"), ..Done::default() };
        let ended = self.statements(&mut done).await;
        let Done { text, accesses, undone } = done;
        let (outcome, ended) = match ended {
            Ok(true) => match self.client.batch_execute("COMMIT").await {
                Ok(()) => (Outcome::Committed, Ok(())),
                Err(error) => (outcome(&error), Err(error)),
            },
            Ok(false) => (Outcome::Aborted, self.client.batch_execute("ROLLBACK").await),
            // It was not asked for.
            Err(error) => (Outcome::Aborted, Err(error)),
        };
        let writes = accesses.iter().any(|access| matches!(access, Access::Append { .. }));
        // Such a block reads one state for each statement.
        if writes || level != "READ COMMITTED" {
            self.observe(&text, began, outcome, accesses);
        }
        if !undone.is_empty() {
            self.observe(&text, began, Outcome::Aborted, undone);
        }
        match ended {
            Err(error) if error.code().is_some() => {
                assert_eq!(outcome, Outcome::Aborted, "{error}");
                Ok(())
            }
            ended => ended,
        }
    }

    /// Whether it is to commit.
    async fn statements(&mut self, done: &mut Done) -> Result<bool, Error> {
        self.client.batch_execute(&done.text).await?;
        for _ in 0..self.random.below(4) + 1 {
            let is_undone = self.random.percent(10);
            if is_undone {
                self.client.batch_execute("SAVEPOINT s").await?;
            }
            let step = Step::random(&mut self.random, &self.common);
            done.text.push_str(if is_undone { "; undone: " } else { "; " });
            done.text.push_str(&step.text);
            let found = match self.random.percent(50) {
                true => ask(&self.client, &step.text).await?.swap_remove(0),
                false => ask_one(&self.client, &step.text).await?,
            };
            if is_undone {
                self.client.batch_execute("ROLLBACK TO s").await?;
                done.undone.extend(step.attempted());
            } else {
                done.accesses.extend(step.accesses(&found));
            }
        }
        Ok(self.random.percent(90))
    }

    /// So many transactions, or as many as there are until the server is killed.
    async fn run(mut self, count: usize) -> Vec<Observed> {
        for _ in 0..count {
            let done = match self.random.percent(50) {
                true => self.text().await,
                false => self.block().await,
            };
            if done.is_err() {
                break;
            }
            self.common.answers.add_permits(1);
        }
        self.history
    }
}

async fn make_table(client: &Client) {
    client
        .batch_execute("CREATE TABLE row (id int PRIMARY KEY, list text NOT NULL)")
        .await
        .unwrap();
    for row in 0..ROWS_AT_FIRST {
        client.batch_execute(&format!("INSERT INTO row VALUES ({row}, '')")).await.unwrap();
    }
}

async fn history(seed: u64) {
    let mut random = Random::new(seed);
    let room = Room::new();
    let store = room.text("store");
    let mut server = Server::start(&store);
    make_table(&server.connect().await.expect("a server")).await;
    let (clock, values) = (AtomicU64::new(1), AtomicU64::new(1));
    let common = Arc::new(Common { clock, values, answers: Semaphore::new(0) });
    let mut history = Vec::new();
    for life in 1..=LIVES {
        let mut running = Vec::new();
        let count = if life < LIVES { usize::MAX } else { TRANSACTIONS };
        for client in 0..CLIENTS {
            let caller = Caller {
                client: server.connect().await.expect("a server"),
                common: Arc::clone(&common),
                random: Random::new(random.word()),
                name: format!("{life}.{client}"),
                history: Vec::new(),
            };
            running.push(tokio::spawn(caller.run(count)));
        }
        if life < LIVES {
            let before_kill = u32::try_from(random.below(500)).unwrap();
            common.answers.acquire_many(before_kill).await.expect("it is not closed").forget();
            server.signal(Signal::KILL);
        }
        for task in running {
            history.extend(task.await.unwrap());
        }
        if life < LIVES {
            tokio::task::block_in_place(|| server.ended());
            server = Server::start(&store);
        }
    }
    let client = server.connect().await.expect("a server");
    let last = ask_one(&client, "SELECT id, list FROM row").await.unwrap();
    let counts = [Outcome::Committed, Outcome::Aborted, Outcome::Unknown]
        .map(|outcome| history.iter().filter(|one| one.outcome == outcome).count());
    eprintln!("seed {seed}: committed, aborted, unknown {counts:?}");
    if let Err(what) = check(&history, &last) {
        panic!("seed {seed}: {what}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn histories_are_strictly_serializable() {
    for seed in seeds() {
        history(seed).await;
    }
}

fn seeds() -> std::ops::Range<u64> {
    let first = effort("NVCARACAL_FIRST_SEED", 430);
    first..first + effort("NVCARACAL_SERVER_HISTORIES", 2)
}
