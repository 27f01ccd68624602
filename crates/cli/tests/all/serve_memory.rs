//! The memory of a server in a process of its own, for loads of all kinds: at its peak within what
//! statements may have, and given back when the load is over.

use std::error::Error as Failure;
use std::io::{Cursor, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use futures_util::SinkExt;
use tokio::runtime::Builder;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{Format, IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, Error};

use crate::served::Server;
use crate::support::{PAUSE, Room};

const MIB: u64 = 1 << 20;
/// What all statements may have together.
const STATEMENTS: u64 = 64 * MIB;
/// What may stay of a load: texts and plans for those who come again, and pages with them.
const STAYS_MAX: u64 = STATEMENTS * 3 / 4;
/// How long until the memory is given back at most.
const SETTLES: Duration = Duration::from_secs(10);
/// What a load may take at its peak: they, and as much freed memory that is on its way back to the
/// system or lies in pages with what is in use.
const PEAK_MAX: u64 = STATEMENTS * 2;
/// Clients of a load at a time.
const CLIENTS: usize = 24;

/// A value of the server's `/proc/PID/status`, in bytes.
fn status(server: &Server, name: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)).expect(name);
    line.trim_matches([':', ' ', '\t', 'k', 'B']).parse::<u64>().unwrap() << 10
}

/// Begins to measure the peak anew.
fn forget_peak(server: &Server) {
    std::fs::write(format!("/proc/{}/clear_refs", server.id()), "5").unwrap();
}

/// Texts that are all different, of about 4 KiB each.
async fn distinct_texts(client: &Client, number: usize) {
    for n in 0..150 {
        let columns: Vec<_> = (0..200).map(|at| format!("{n} + {at} - {number}")).collect();
        let _ = client.simple_query(&format!("SELECT {}", columns.join(","))).await;
    }
}

/// Texts of half a megabyte.
async fn wide_texts(client: &Client, number: usize) {
    let rows: Vec<_> = (0..20_000).map(|n| format!("({n},'{number} {n}')")).collect();
    let text = format!("SELECT count(*) FROM (VALUES {}) v", rows.join(","));
    for _ in 0..3 {
        let _ = client.simple_query(&text).await;
    }
}

/// Aggregates that collect some 30 MB.
async fn aggregates(client: &Client, _: usize) {
    let text = "SELECT cardinality(array_agg(repeat('x', 1000) || g)) \
                FROM generate_series(1, 30000) g";
    for _ in 0..2 {
        let _ = client.simple_query(text).await;
    }
}

/// JSON of more and more rows, made by one client.
async fn json(client: &Client, number: usize) {
    if number > 0 {
        return;
    }
    let made = [
        "json_agg(r)::text",
        "json_object_agg(r.g, r.t)::text",
        "jsonb_agg(r)::text",
        "jsonb_agg(r ORDER BY r.g DESC)::text",
        "string_agg(r.t, ',')",
    ];
    for aggregate in made {
        for rows in (1..=8).map(|times| times * 40_000) {
            let rows =
                format!("SELECT g, repeat('x', 60) || g AS t FROM generate_series(1, {rows}) g");
            let text = format!("SELECT length({aggregate}) FROM ({rows}) r");
            check_answer(client.simple_query(&text).await.map(|_| ()));
        }
    }
}

async fn sorts(client: &Client, _: usize) {
    let text = "SELECT * FROM (SELECT repeat('x', 1000) || g FROM generate_series(1, 30000) g \
                ORDER BY 1 DESC OFFSET 29990) x";
    for _ in 0..2 {
        let _ = client.simple_query(text).await;
    }
}

/// Sets of 30 MB: groups, distinct values, maps of joins.
async fn sets(client: &Client, number: usize) {
    let from = "FROM generate_series(1, 30000) g";
    let value = "repeat('x', 1000) || g";
    let text = match number % 3 {
        0 => format!("SELECT count(DISTINCT {value}) {from}"),
        1 => format!("SELECT count(*) FROM (SELECT {value} {from} GROUP BY 1) x"),
        _ => format!("SELECT count(*) {from} JOIN generate_series(1, 9) h ON {value} = h::text"),
    };
    let _ = client.simple_query(&text).await;
}

/// Sets of short texts, beside which as short ones are made and dropped.
async fn short_texts(client: &Client, number: usize) {
    let rows = "SELECT repeat('d', 100) || g FROM generate_series(1, 300000) g";
    let text = match number % 6 {
        0 => format!("SELECT count(*) FROM (SELECT DISTINCT * FROM ({rows}) y) x"),
        1 => format!("SELECT count(*) FROM ({rows} EXCEPT {rows}) x"),
        2 => format!("SELECT count(*) FROM ({rows} INTERSECT {rows}) x"),
        3 => format!("SELECT count(*) FROM ({rows} GROUP BY 1) x"),
        4 => "SELECT count(*) FROM generate_series(1, 300000) g \
              JOIN generate_series(1, 300000) h ON repeat('d', 20) || g = repeat('d', 20) || h"
            .to_owned(),
        _ => "SELECT count(*) FROM generate_series(1, 9) g \
              WHERE g IN (SELECT h + 9 FROM generate_series(1, 300000) h)"
            .to_owned(),
    };
    let _ = client.simple_query(&text).await;
}

/// DISTINCT of short texts alone.
async fn distinct(client: &Client, _: usize) {
    short_texts(client, 0).await;
}

/// A parameter of any type, in the bytes that are sent.
#[derive(Debug)]
struct Raw(Vec<u8>, Format);

impl ToSql for Raw {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Failure + Sync + Send>> {
        out.extend_from_slice(&self.0);
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        self.1
    }

    to_sql_checked!();
}

/// The text of so many items, 1 each.
fn items(begin: &str, count: usize, end: &str) -> String {
    format!("{begin}{}1{end}", "1,".repeat(count - 1))
}

/// Values of many items as parameters and constants; returns the answered rows.
async fn items_given(client: &Client, number: usize) -> Result<usize, Error> {
    const COUNT: usize = 1 << 18;
    let (json, array) = (items("[", COUNT, "]"), items("{", COUNT, "}"));
    let text = |text: String| Raw(text.into_bytes(), Format::Text);
    let (of_json, of_array) = ("SELECT jsonb_array_length($1)", "SELECT cardinality($1::int[])");
    let (query, raw) = match number % 5 {
        0 => (of_json, text(json)),
        1 => (of_json, Raw([b"\x01", json.as_bytes()].concat(), Format::Binary)),
        2 => (of_array, text(array)),
        3 => {
            let head = [1, 0, 23, COUNT as u32, 1].map(u32::to_be_bytes).concat();
            let item = [4_u32, 1].map(u32::to_be_bytes).concat();
            (of_array, Raw([head, item.repeat(COUNT)].concat(), Format::Binary))
        }
        _ => {
            let query = format!("SELECT jsonb_array_length('{json}')");
            return client.simple_query(&query).await.map(|rows| rows.len());
        }
    };
    client.query(query, &[&raw]).await.map(|rows| rows.len())
}

async fn many_items(client: &Client, number: usize) {
    for number in number..number + 3 {
        let _ = items_given(client, number).await;
    }
}

/// Lines of COPY with values of many items.
async fn copied_items(client: &Client, number: usize) {
    let line = format!("{number}\t{}\n", items("[", 1 << 18, "]"));
    let Ok(sink) = client.copy_in::<_, Cursor<Vec<u8>>>("COPY j FROM STDIN").await else { return };
    let mut sink = Box::pin(sink);
    let _ = sink.send(Cursor::new(line.into_bytes())).await;
    let _ = sink.as_mut().finish().await;
}

async fn blocks(client: &Client, number: usize) {
    let from = number * 100_000;
    let insert = format!(
        "INSERT INTO t SELECT {from} + g, repeat('x', 1000) FROM generate_series(1, 10000) g"
    );
    let _ = client.simple_query("BEGIN").await;
    let _ = client.simple_query(&insert).await;
    let _ = client.simple_query("SELECT count(*), max(b) FROM t").await;
    let _ = client.simple_query("ROLLBACK").await;
}

async fn cursors(client: &Client, _: usize) {
    let _ = client.simple_query("BEGIN").await;
    for n in 0..4 {
        let text = format!(
            "DECLARE c{n} CURSOR FOR SELECT repeat('x', 1000) || g FROM generate_series(1, 5000) g"
        );
        let _ = client.simple_query(&text).await;
    }
    let _ = client.simple_query("ROLLBACK").await;
}

async fn prepared(client: &Client, number: usize) {
    for n in 0..200 {
        let columns: Vec<_> = (0..100).map(|at| format!("$1::int + {at} - {number}")).collect();
        let _ = client.simple_query(&format!("PREPARE p{n} AS SELECT {}", columns.join(","))).await;
    }
}

/// Asks for some 30 MB, and reads no more than the first rows.
fn unread(server: &Server) -> TcpStream {
    let mut socket = TcpStream::connect(server.address()).unwrap();
    let mut message = |kind: Option<u8>, body: &[u8]| {
        let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
        let all = [kind.as_slice(), &length, body].concat();
        socket.write_all(&all).unwrap();
    };
    message(None, b"\0\x03\0\0user\0nvcaracal\0database\0nvcaracal\0\0");
    message(Some(b'Q'), b"SELECT repeat('x', 1000) || g FROM generate_series(1, 30000) g\0");
    // The first rows, so that the answer is there; one that is refused is shorter.
    socket.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let _ = socket.read_exact(&mut vec![0; 64 << 10]);
    socket
}

/// What a client does.
trait Load: Sync {
    async fn run(&self, server: &Server, number: usize);
}

impl<F: AsyncFn(&Client, usize) + Sync> Load for F {
    async fn run(&self, server: &Server, number: usize) {
        let client = server.connect().await.expect("a server");
        self(&client, number).await;
    }
}

/// One that reads little.
struct Unread;

impl Load for Unread {
    async fn run(&self, server: &Server, _: usize) {
        drop(unread(server));
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(future)
}

/// Runs a load with all clients at a time. Says so if it has taken too much memory, or too much
/// stays.
fn measured(server: &Server, name: &str, load: &impl Load) -> Option<String> {
    let before = status(server, "VmRSS");
    forget_peak(server);
    std::thread::scope(|scope| {
        for number in 0..CLIENTS {
            scope.spawn(move || block_on(load.run(server, number)));
        }
    });
    let peak = status(server, "VmHWM").saturating_sub(before);
    block_on(async {
        let other = server.connect().await.expect("the server goes on");
        other.simple_query("SELECT 1").await.expect("others go on");
    });
    let now = || status(server, "VmRSS").saturating_sub(before);
    let started = Instant::now();
    while now() > STAYS_MAX && started.elapsed() < SETTLES {
        std::thread::sleep(PAUSE);
    }
    let stays = now();
    let line = format!("{name:15} peak {:4} MiB, stays {:4} MiB", peak / MIB, stays / MIB);
    eprintln!("{line}");
    let is_within = peak <= PEAK_MAX && stays <= STAYS_MAX;
    (!is_within).then_some(line)
}

#[test]
fn all_kinds_of_loads_stay_within_the_memory_of_statements() {
    let room = Room::new();
    let store = room.text("store");
    let server = Server::start(&format!("{store} --statement-memory-bytes {STATEMENTS}"));
    block_on(async {
        let client = server.connect().await.expect("a server");
        client.batch_execute("CREATE TABLE t (a int PRIMARY KEY, b text)").await.unwrap();
        client.batch_execute("CREATE TABLE j (a int PRIMARY KEY, b jsonb)").await.unwrap();
        for number in 0..5 {
            assert!(items_given(&client, number).await.expect("one alone is answered") > 0);
        }
    });
    let before = status(&server, "VmRSS");
    let mut wrong: Vec<String> = [
        measured(&server, "distinct texts", &distinct_texts),
        measured(&server, "wide texts", &wide_texts),
        measured(&server, "aggregates", &aggregates),
        measured(&server, "JSON", &json),
        measured(&server, "sorts", &sorts),
        measured(&server, "sets", &sets),
        measured(&server, "blocks", &blocks),
        measured(&server, "cursors", &cursors),
        measured(&server, "prepared", &prepared),
        measured(&server, "unread answers", &Unread),
        measured(&server, "short texts", &short_texts),
        measured(&server, "DISTINCT", &distinct),
        measured(&server, "many items", &many_items),
        measured(&server, "copied items", &copied_items),
    ]
    .into_iter()
    .flatten()
    .collect();
    let stays = status(&server, "VmRSS").saturating_sub(before);
    eprintln!("all             stays {:4} MiB", stays / MIB);
    if stays > STATEMENTS {
        wrong.push(format!("{} MiB stay of all together", stays / MIB));
    }
    assert!(wrong.is_empty(), "more than was allowed:\n{}", wrong.join("\n"));
}

/// What the store and statements may have together.
const LIMIT: u64 = 128 * MIB;
/// Besides, at the peak: the program itself, the calls that run and their versions.
const BESIDES: u64 = 16 * MIB;
/// What may stay of it behind a load: the store's part, which is what the limit is for.
const STAYS: u64 = LIMIT / 4 * 3;
/// Clients that write at a time.
const WRITERS: usize = 20;

/// A refusal for want of memory is an answer; any other error is not.
fn check_answer(answer: Result<(), Error>) {
    let Err(error) = answer else { return };
    assert_eq!(error.code().map(|code| code.code()), Some("53200"), "{error:?}");
}

async fn copy(client: &Client, number: usize) {
    let rows: String = (0..3000).map(|n| format!("{n}\t{}\n", "x".repeat(500))).collect();
    let copied = async {
        let text = format!("COPY c{number} FROM STDIN");
        let mut sink = Box::pin(client.copy_in::<_, Cursor<Vec<u8>>>(&text).await?);
        sink.send(Cursor::new(rows.into_bytes())).await?;
        sink.as_mut().finish().await.map(drop)
    };
    check_answer(copied.await);
}

/// Rows of so many bytes from a key on.
async fn insert(client: &Client, from: usize, rows: usize, bytes: usize) {
    let value = "y".repeat(bytes);
    let rows: Vec<_> = (from..from + rows).map(|n| format!("({n},'{value}')")).collect();
    let text = format!("INSERT INTO t VALUES {}", rows.join(","));
    check_answer(client.batch_execute(&text).await);
}

async fn wide_rows(client: &Client, number: usize) {
    insert(client, number * 10_000, 1000, 900).await;
}

async fn long_rows(client: &Client, number: usize) {
    insert(client, number * 10_000 + 5000, 100, 15_000).await;
}

async fn updates(client: &Client, number: usize) {
    let from = number / 4 * 40_000;
    let text = format!("UPDATE t SET b = b || 'z' WHERE a BETWEEN {from} AND {}", from + 34_999);
    check_answer(client.batch_execute(&text).await);
}

async fn read(client: &Client, query: &str) {
    check_answer(client.simple_query(query).await.map(drop));
}

async fn long_values(client: &Client, number: usize) {
    let condition = if number.is_multiple_of(2) { "a < 3" } else { "a = 3" };
    let value = "length(repeat('x', 15000000 + a) || a)";
    read(client, &format!("SELECT {value} FROM t WHERE {condition}")).await;
}

/// Runs a load of all writers at a time. Says so if the process has more than the limit and what is
/// besides, or keeps more than the store's part.
fn limited(server: &Server, name: &str, load: &impl Load) -> Option<String> {
    forget_peak(server);
    std::thread::scope(|scope| {
        for number in 0..WRITERS {
            scope.spawn(move || block_on(load.run(server, number)));
        }
    });
    let peak = status(server, "VmHWM");
    block_on(async {
        let other = server.connect().await.expect("the server goes on");
        other.batch_execute("INSERT INTO t VALUES (-1, '')").await.expect("others go on");
        other.batch_execute("DELETE FROM t WHERE a = -1").await.expect("others go on");
    });
    let started = Instant::now();
    while status(server, "RssAnon") > STAYS && started.elapsed() < SETTLES {
        std::thread::sleep(PAUSE);
    }
    let stays = status(server, "RssAnon");
    let line = format!("{name:15} peak {:4} MiB, stays {:4} MiB", peak / MIB, stays / MIB);
    eprintln!("{line}");
    (peak > LIMIT + BESIDES || stays > STAYS).then_some(line)
}

#[test]
fn all_kinds_of_writes_stay_within_the_limit_of_memory() {
    if !pmem::memory_can_be_limited() {
        return eprintln!("SKIPPED: this system has no userfaultfd for this process");
    }
    let room = Room::new();
    let server = Server::start(&format!("{} --memory-limit-bytes {LIMIT}", room.text("store")));
    block_on(async {
        let client = server.connect().await.expect("a server");
        client.batch_execute("CREATE TABLE t (a int PRIMARY KEY, b text)").await.unwrap();
        for number in 0..WRITERS {
            let text = format!("CREATE TABLE c{number} (a int PRIMARY KEY, b text)");
            client.batch_execute(&text).await.unwrap();
        }
    });
    let wrong: Vec<String> = [
        limited(&server, "COPY", &copy),
        limited(&server, "wide rows", &wide_rows),
        limited(&server, "UPDATE", &updates),
        limited(&server, "long rows", &long_rows),
        limited(&server, "long values", &long_values),
    ]
    .into_iter()
    .flatten()
    .collect();
    assert!(wrong.is_empty(), "more than was allowed:\n{}", wrong.join("\n"));
}
