//! The memory that all statements share: one that needs more than is left is refused, others go on,
//! and all of it is given back.

use crate::client::{Client, block_on, options};
use server::store::{BlockOperation, CopyIn, Modes, Store, StoreOptions};
use std::fmt::Write;
use values::{Datum, SqlState};

const MIB: usize = 1 << 20;
const READ_COMMITTED: Modes = Modes { keeps_snapshot: false, is_read_only: false };

/// About a mebibyte of rows in 1,024.
const LARGE: &str = "SELECT g, repeat('x', 1000) FROM generate_series(1, 1024) g";

/// A store whose statements share `bytes`, and a table of 2,048 rows of a kilobyte.
fn store(bytes: usize) -> Store {
    let of = StoreOptions { statement_memory_bytes: bytes, ..StoreOptions::memory() };
    let store = Store::open(options(of)).unwrap();
    let mut client = Client::new(&store);
    client.run("CREATE TABLE t (a int PRIMARY KEY, b text)").unwrap();
    for half in [0, 1_024] {
        client.run(&format!("INSERT INTO t SELECT g + {half}, b FROM ({LARGE}) x (g, b)")).unwrap();
    }
    store
}

#[test]
fn an_answer_has_its_memory_until_it_is_gone() {
    let store = store(4 * MIB);
    let before = store.statement_memory();
    let (mut first, mut second) = (Client::new(&store), Client::new(&store));
    let all = "SELECT * FROM t";
    let answer = first.run(all).unwrap();
    assert!(store.statement_memory() > before + 2 * MIB, "{}", store.statement_memory());
    let refused = second.run(all).unwrap_err();
    assert_eq!(refused.state(), SqlState::OUT_OF_MEMORY);
    assert_eq!(refused.message(), "the memory for statements is used up");
    assert_eq!(second.value("SELECT a FROM t WHERE a = 7"), "7", "small ones go on");
    assert_eq!(second.value("SELECT sum(a) FROM t"), "2098176");
    drop(answer);
    assert_eq!(second.run(all).unwrap().rows.len(), 2_048);
    let left = "SELECT count(*) FROM (SELECT b FROM t WHERE a <= 1024 ORDER BY b, a OFFSET 10) x";
    let answer = second.run(left).unwrap();
    assert!(store.statement_memory() < before + MIB / 4, "what was sorted is gone");
    drop(answer);
}

#[test]
fn a_long_value_has_memory_while_an_expression_has_it() {
    let store = store(4 * MIB);
    let (mut first, mut second) = (Client::new(&store), Client::new(&store));
    let answer = first.run("SELECT * FROM t").unwrap();
    let before = store.statement_memory();
    let long = "SELECT length(repeat('x', 1500000 + a) || a) FROM t WHERE a + 0 = 1";
    let by_key = "SELECT length(repeat('x', 1500000 + a) || a) FROM t WHERE a = 1";
    for text in [long, by_key] {
        assert_eq!(second.run(text).unwrap_err().state(), SqlState::OUT_OF_MEMORY);
        assert!(store.statement_memory() < before + MIB / 4, "what was refused is gone");
    }
    drop(answer);
    assert_eq!(second.value(long), "1500002");
    assert_eq!(second.value(by_key), "1500002");
    // What a function is given is there beside what it makes.
    let both = "SELECT length(repeat('x', 2500000 + a) || a) FROM t WHERE a + 0 = 1";
    assert_eq!(second.run(both).unwrap_err().state(), SqlState::OUT_OF_MEMORY);
    // The second of two values of a row, of which the first one is no longer computed with.
    let two = "SELECT count(*) FROM (SELECT DISTINCT repeat('x', 2500000 + a), \
               repeat('y', 2500000 + a) FROM t WHERE a + 0 = 1) x";
    assert_eq!(second.run(two).unwrap_err().state(), SqlState::OUT_OF_MEMORY);
    second.begin(READ_COMMITTED);
    assert_eq!(second.within(long).unwrap().rows.len(), 1);
    second.commit().unwrap();
}

/// A text of half a megabyte, of which 200,000 items are made: they have some 20.
#[test]
fn items_have_memory_before_they_are_made() {
    let store = store(4 * MIB);
    let mut client = Client::new(&store);
    for (whole, few) in [
        ("cardinality(string_to_array(repeat('x,', {}), ','))", "9"),
        ("cardinality(('{' || repeat('1,', {}) || '1}')::int[])", "9"),
        ("jsonb_array_length(('[' || repeat('1,', {}) || '1]')::jsonb)", "9"),
        ("('[' || repeat('1,', {}) || '1]')::json ->> 5", "1"),
    ] {
        let text =
            |count: &str| format!("SELECT {} FROM t WHERE a + 0 = 1", whole.replace("{}", count));
        let refused = client.run(&text("200000")).unwrap_err();
        assert_eq!(refused.state(), SqlState::OUT_OF_MEMORY, "{whole}");
        assert_eq!(client.value(&text("8")), few, "{whole}");
    }
}

#[test]
fn a_block_has_memory_for_what_it_writes_and_cannot_commit_what_was_refused() {
    let store = store(4 * MIB);
    let (mut first, mut second) = (Client::new(&store), Client::new(&store));
    let before = store.statement_memory();
    first.begin(READ_COMMITTED);
    first.within("UPDATE t SET b = b || 'y' WHERE a <= 1400").unwrap();
    assert!(store.statement_memory() > before + MIB, "{}", store.statement_memory());
    let of_others = Client::new(&store).run("SELECT * FROM t WHERE a <= 700").unwrap();
    second.begin(READ_COMMITTED);
    second.within("DELETE FROM t WHERE a = 2000").unwrap();
    second.block(BlockOperation::Savepoint("s".into())).unwrap();
    let refused = second.within("SELECT * FROM t").map(|answer| answer.tag).unwrap_err();
    assert_eq!(refused.state(), SqlState::OUT_OF_MEMORY);
    second.block(BlockOperation::RollBackTo("s".into())).unwrap();
    let barred = second.commit().unwrap_err();
    assert!(barred.message().contains("has met a limit"), "{barred}");
    drop(of_others);
    first.commit().unwrap();
    assert_eq!(first.value("SELECT count(*) FROM t WHERE b LIKE '%y'"), "1400");
    // Texts stay in the cache.
    assert!(store.statement_memory() < before + MIB / 4, "{}", store.statement_memory());
    second.begin(READ_COMMITTED);
    second.within("DELETE FROM t WHERE a = 1").unwrap();
    second.commit().unwrap();
}

#[test]
fn rows_of_a_copy_have_memory_until_they_are_written() {
    let store = store(3 * MIB);
    let mut client = Client::new(&store);
    let before = store.statement_memory();
    let statement = client.prepare("COPY t FROM STDIN").unwrap();
    let begin = |client: &mut Client, mebibytes: i32| {
        let mut rows = CopyIn::new(&statement, false, &client.connection);
        for id in 0..mebibytes * 1_024 {
            let row = [Datum::Int4(10_000 + id), Datum::text("x".repeat(1_000))];
            block_on(rows.push(&mut client.connection, id as u64, &row))?;
        }
        Ok::<_, values::Error>(rows)
    };
    let rows = begin(&mut client, 2).unwrap();
    assert!(store.statement_memory() > before + MIB, "{}", store.statement_memory());
    let mut other = Client::new(&store);
    assert_eq!(begin(&mut other, 2).err().unwrap().state(), SqlState::OUT_OF_MEMORY);
    block_on(rows.finish(&mut client.connection)).unwrap();
    assert!(store.statement_memory() < before + MIB / 4, "{}", store.statement_memory());
    assert_eq!(client.value("SELECT count(*) FROM t"), "4096");
}

/// The longest texts take hundreds of their length in the parser.
#[test]
fn texts_have_memory_before_they_are_parsed() {
    let store = store(8 * MIB);
    let client = Client::new(&store);
    let mut text = "VALUES (1)".to_owned();
    (0..50_000).for_each(|n| write!(text, ",({n})").unwrap());
    let refused = client.prepare(&text).err().unwrap();
    assert_eq!(refused.state(), SqlState::OUT_OF_MEMORY);
    text.truncate(20_000);
    client.prepare(text.trim_end_matches(|char| char != ')')).unwrap();
}

#[test]
fn kept_texts_and_plans_stay_within_their_memory() {
    let of = StoreOptions { plans_bytes_max: 4 * MIB, ..StoreOptions::memory() };
    let store = Store::open(options(of)).unwrap();
    let client = Client::new(&store);
    client.prepare("CREATE TABLE t (a int PRIMARY KEY, b text)").unwrap();
    let mut kept = Vec::new();
    for n in 0..2_000 {
        let columns: Vec<_> = (0..40).map(|at| format!("{n} + {at} AS c{at}")).collect();
        let statement = client.prepare(&format!("SELECT {}", columns.join(", "))).unwrap();
        if n < 100 {
            kept.push(statement);
        }
    }
    let with_clients = store.statement_memory();
    drop(kept);
    let of_caches = store.statement_memory();
    assert!(of_caches < with_clients, "{of_caches}, {with_clients} with those of clients");
    // A text is in one cache by itself and in the other by its statement.
    assert!((MIB..4 * MIB + MIB / 4).contains(&of_caches), "{of_caches}");
}
