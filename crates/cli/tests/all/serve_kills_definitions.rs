//! SIGKILL while a definition, or a COPY in a block, writes many rows in parts. Afterwards the
//! definition of before holds or the new one, with all rows, indexes and constraints; the store is
//! whole, and the statement can be run again (O-25).

use std::io::Cursor;
use std::time::{Duration, Instant};

use futures_util::SinkExt;
use rustix::process::Signal;
use sim::history::{Random, effort};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error, SimpleQueryMessage};

use crate::served::Server;
use crate::support::{Room, run};

/// Bytes of a row's text: parts have 1 MiB.
const FILLER_BYTES: usize = 100;

/// A query with its one value.
type Told = (&'static str, String);

/// Something that is there or not, and is made of all rows in parts.
struct Change {
    up: &'static str,
    down: &'static str,
    /// A query that says whether it is there.
    is_up: &'static str,
    /// What holds while it is there.
    holds: Vec<Told>,
    /// What is refused while it is there.
    refused: Option<(&'static str, SqlState)>,
}

/// What a change is made of that is no definition: a COPY into a table of its block.
const COPY: &str = "COPY";

fn changes(rows: i64) -> Vec<Change> {
    let (last, all) = (rows - 1, rows.to_string());
    vec![
        Change {
            up: "ALTER TABLE t ADD PRIMARY KEY (a)",
            down: "ALTER TABLE t DROP CONSTRAINT t_pkey",
            is_up: "SELECT count(*) FROM pg_constraint WHERE conname = 't_pkey'",
            holds: vec![("SELECT b FROM t WHERE a = 7", text_of(7))],
            refused: Some(("INSERT INTO t VALUES (7, 'x', 0)", SqlState::UNIQUE_VIOLATION)),
        },
        Change {
            up: "CREATE UNIQUE INDEX by_b ON t (b)",
            down: "DROP INDEX by_b",
            is_up: "SELECT count(*) FROM pg_indexes WHERE indexname = 'by_b'",
            holds: vec![
                ("SELECT count(*) FROM t WHERE b >= ''", all.clone()),
                ("SELECT count(*) FROM t x JOIN t y ON y.b = x.b WHERE x.a < 50", "50".to_owned()),
            ],
            refused: Some((
                "INSERT INTO t SELECT -1, b, 0 FROM t WHERE a = 11",
                SqlState::UNIQUE_VIOLATION,
            )),
        },
        Change {
            up: "ALTER TABLE t ALTER c TYPE bigint, ADD d serial",
            down: "ALTER TABLE t ALTER c TYPE int, DROP d",
            is_up: "SELECT count(*) FROM information_schema.columns \
                    WHERE table_name = 't' AND column_name = 'd'",
            holds: vec![
                ("SELECT count(DISTINCT d) FROM t", all.clone()),
                ("SELECT max(d) - min(d) FROM t", last.to_string()),
                ("SELECT count(*) FROM t WHERE c IS NULL", "0".to_owned()),
            ],
            refused: None,
        },
        Change {
            up: COPY,
            down: "DROP TABLE loaded",
            is_up: "SELECT count(*) FROM pg_tables WHERE tablename = 'loaded'",
            holds: vec![
                ("SELECT count(*) FROM loaded", all.clone()),
                ("SELECT count(DISTINCT b) FROM loaded", all),
                ("SELECT count(*) FROM loaded WHERE c = 3", (rows / 5).to_string()),
            ],
            refused: Some(("INSERT INTO loaded VALUES (3)", SqlState::UNIQUE_VIOLATION)),
        },
    ]
}

fn text_of(id: i64) -> String {
    format!("{id:0>FILLER_BYTES$}")
}

/// Copies rows into a table whose first three columns are those of `t`.
async fn copy(client: &Client, table: &str, rows: i64) -> Result<u64, Error> {
    let text = format!("COPY {table} (a, b, c) FROM STDIN");
    let mut sink = Box::pin(client.copy_in::<_, Cursor<Vec<u8>>>(&text).await?);
    for begin in (0..rows).step_by(1_000) {
        let ids = begin..rows.min(begin + 1_000);
        let lines: String = ids.map(|id| format!("{id}\t{}\t{}\n", text_of(id), id % 5)).collect();
        sink.send(Cursor::new(lines.into_bytes())).await?;
    }
    sink.as_mut().finish().await
}

async fn make(client: &Client, up: &str, rows: i64) -> Result<(), Error> {
    if up != COPY {
        return client.batch_execute(up).await;
    }
    let table = "CREATE TABLE loaded (a int PRIMARY KEY, b text, c int)";
    client.batch_execute(&format!("BEGIN; {table}; CREATE INDEX ON loaded (c)")).await?;
    copy(client, "loaded", rows).await?;
    client.batch_execute("COMMIT").await
}

/// The one value of a query.
async fn value(client: &Client, text: &str) -> String {
    let said = client.simple_query(text).await.unwrap_or_else(|error| panic!("{text}: {error}"));
    let found = said.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or("NULL").to_owned()),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("{text}: no row"))
}

async fn is_up(client: &Client, change: &Change) -> bool {
    value(client, change.is_up).await == "1"
}

/// All rows of table `t` are there, and each change that is there is whole.
async fn verify(client: &Client, all: &[Change], rows: i64) {
    let sum = rows * (rows - 1) / 2;
    for (text, expected) in [
        ("SELECT count(*) FROM t", rows),
        ("SELECT sum(a)::bigint FROM t", sum),
        ("SELECT count(DISTINCT b) FROM t", rows),
        ("SELECT sum(c)::bigint FROM t", (0..rows).map(|id| id % 5).sum()),
    ] {
        assert_eq!(value(client, text).await, expected.to_string(), "{text}");
    }
    for change in all {
        if !is_up(client, change).await {
            continue;
        }
        for (text, expected) in &change.holds {
            assert_eq!(value(client, text).await, *expected, "{}: {text}", change.up);
        }
        if let Some((text, code)) = &change.refused {
            let error = client.batch_execute(text).await.expect_err(text);
            assert_eq!(error.code(), Some(code), "{}: {text}: {error}", change.up);
        }
    }
}

/// Runs a statement until the server is killed; whether it was answered.
async fn interrupted(server: Server, text: &'static str, rows: i64, moment: Duration) -> bool {
    let client = server.connect().await.expect("a server");
    let making = tokio::spawn(async move { make(&client, text, rows).await });
    tokio::time::sleep(moment).await;
    server.signal(Signal::KILL);
    let done = making.await.expect("no panic");
    if let Err(error) = &done {
        assert_eq!(error.code(), None, "{text}: {error}");
    }
    tokio::task::block_in_place(|| server.ended());
    done.is_ok()
}

/// Runs the program on the store between two servers.
fn return_to(store: &str, random: &mut Random) -> Server {
    if random.percent(30) {
        // Its recovery is killed, too.
        Server::start_and_kill(store, Duration::from_micros(random.below(200_000)));
    }
    let checked = run(&format!("check {store} --json")).succeeded();
    assert_eq!(checked.json()["clean"], true);
    Server::start(store)
}

/// A store with a table; how long each change takes that is not killed.
async fn filled(client: &Client, all: &[Change], rows: i64) -> Vec<Duration> {
    client.batch_execute("CREATE TABLE t (a int, b text, c int)").await.unwrap();
    copy(client, "t", rows).await.unwrap();
    let mut took = Vec::new();
    for change in all {
        let started = Instant::now();
        make(client, change.up, rows).await.unwrap_or_else(|e| panic!("{}: {e}", change.up));
        took.push(started.elapsed());
    }
    verify(client, all, rows).await;
    took
}

#[tokio::test(flavor = "multi_thread")]
async fn o_25_a_definition_that_is_killed_is_there_whole_or_not_at_all() {
    let kills = effort("NVCARACAL_DEFINITION_KILLS", 8);
    let rows = effort("NVCARACAL_DEFINITION_ROWS", 30_000) as i64;
    let seed = effort("NVCARACAL_FIRST_SEED", 43);
    eprintln!("NVCARACAL_FIRST_SEED={seed}");
    let (room, mut random) = (Room::new(), Random::new(seed));
    let (store, all) = (room.text("store"), &*changes(rows).leak());
    let mut server = Server::start(&store);
    let took = filled(&server.connect().await.expect("a server"), all, rows).await;
    for kill in 0..kills {
        // Each is taken back first, and made again in the next turn.
        let at = kill as usize / 2 % all.len();
        let was_up = is_up(&server.connect().await.expect("a server"), &all[at]).await;
        let text = if was_up { all[at].down } else { all[at].up };
        let after = took[at].as_micros() as u64;
        let moment = Duration::from_micros(random.below(after + after / 8));
        let was_answered = interrupted(server, text, rows, moment).await;
        server = tokio::task::block_in_place(|| return_to(&store, &mut random));
        let client = server.connect().await.expect("a server");
        if random.percent(50) {
            // Otherwise what is left of it is still being cleared when it runs again.
            verify(&client, all, rows).await;
        }
        let is_done = is_up(&client, &all[at]).await != was_up;
        eprintln!(
            "kill {kill} after {} of {} ms: {text}: answered {was_answered}, done {is_done}",
            moment.as_millis(),
            took[at].as_millis(),
        );
        assert!(is_done || !was_answered, "{text} was answered");
        if !is_done {
            make(&client, text, rows).await.unwrap_or_else(|error| panic!("{text}: {error}"));
        }
        verify(&client, all, rows).await;
    }
}
