//! Clients that send anything, too much, half of it, or do not read: the server goes on, answers
//! others, and does not grow.

use crate::support::{
    Client, PATIENCE, Server, bind, execute, message, parse, query, run, startup, sync,
};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use std::io::{Read, Write};
use std::process::Command;
use std::time::{Duration, Instant};

/// Bytes of memory of this process that are resident.
fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

/// Whether this is the process of the test `name` alone. Otherwise it is run in one, so that the
/// memory of the tests beside it is not counted.
fn is_alone(name: &str) -> bool {
    const MARK: &str = "NVCARACAL_TEST_ALONE";
    if std::env::var_os(MARK).is_some() {
        return true;
    }
    let done = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(MARK, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(
        done.status.success() && said.contains("1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&done.stderr)
    );
    false
}

#[test]
fn garbage_ends_its_own_connection_only() {
    let server = Server::start();
    let mut random = ChaCha8Rng::seed_from_u64(43);
    // Fewer than there may be at a time: the server may see their ends late.
    for round in 0..150 {
        let mut socket = server.socket();
        if round % 2 == 1 {
            socket.write_all(&startup(&[("user", "nvcaracal")])).unwrap();
        }
        let mut bytes = vec![0; random.next_u32() as usize % 300];
        random.fill_bytes(&mut bytes);
        // What it says may not be wanted any more.
        let _ = socket.write_all(&bytes);
    }
    server.works();
}

#[test]
fn messages_that_are_changed_anywhere_are_answered_or_refused() {
    let server = Server::start();
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let good = [
        parse("s", "SELECT $1::int"),
        bind("p", "s", &[Some("1")]),
        message(b'D', b"Pp\0"),
        execute("p", 1),
        message(b'C', b"Sp\0"),
        sync(),
        query("SELECT 1"),
    ]
    .concat();
    for _ in 0..300 {
        let mut bytes = good.clone();
        for _ in 0..=random.next_u32() % 3 {
            let at = random.next_u32() as usize % bytes.len();
            bytes[at] = random.next_u32() as u8;
        }
        let mut client = server.client();
        client.send(&bytes);
        client.0.shutdown(std::net::Shutdown::Write).unwrap();
        while client.next().is_some() {}
    }
    server.works();
}

#[test]
fn lengths_of_a_gibibyte_are_refused_at_once() {
    let server = Server::start();
    let mut first = Client(server.socket());
    first.send(&[0x40, 0, 0, 0, 0, 3, 0, 0]);
    assert_eq!(first.next().unwrap().field(b'C').as_deref(), Some("08P01"));
    for kind in *b"QPBDCEHSdp" {
        let mut client = server.client();
        client.send(&[kind, 0x40, 0, 0, 0]);
        let said = client.next().unwrap();
        assert_eq!(said.field(b'S').as_deref(), Some("FATAL"));
        assert_eq!(said.field(b'C').as_deref(), Some("08P01"));
        assert!(client.next().is_none());
    }
    server.works();
}

#[test]
fn a_promised_length_takes_no_memory() {
    if !is_alone("hostile::a_promised_length_takes_no_memory") {
        return;
    }
    let server = Server::start();
    let mut clients: Vec<Client> = (0..100).map(|_| server.client()).collect();
    let before = resident_bytes();
    for client in &mut clients {
        client.send(&[b'Q', 0, 0xff, 0, 0, b'S']);
    }
    server.works();
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < 64 << 20, "100 promises of 16 MB took {grown} bytes");
}

#[test]
fn statements_are_utf8_and_not_deep() {
    let server = Server::start();
    let mut client = server.client();
    client.send(&message(b'Q', b"SELECT '\xff\xfe'\0"));
    assert_eq!(client.answers(), ["error 22021", "ready"]);
    client.send(&message(b'P', b"\0SELECT '\xc3'\0\0\0"));
    client.send(&sync());
    assert_eq!(client.answers(), ["error 22021", "ready"]);
    for deep in [
        format!("SELECT {}1{}", "(".repeat(100_000), ")".repeat(100_000)),
        format!("SELECT 1{}", "+1".repeat(100_000)),
        format!("SELECT {}true", "NOT ".repeat(100_000)),
        "SELECT CASE WHEN ".repeat(10_000),
        format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(100_000)),
    ] {
        let answers = client.query(&deep);
        assert!(answers[0].starts_with("error 54001"), "{answers:?}");
        let answers = client.segment(&[parse("", &deep)]);
        assert!(answers[0].starts_with("error 54001"), "{answers:?}");
    }
    // At the limit it is parsed, planned and dropped.
    let chain = format!("SELECT 1{}", "+1".repeat(1_900));
    assert_eq!(client.query(&chain), ["row 1901", "SELECT 1", "ready"]);
}

#[test]
fn half_a_message_holds_up_nothing() {
    let server = Server::start();
    let mut slow: Vec<Client> = (0..50).map(|_| server.client()).collect();
    for (at, client) in slow.iter_mut().enumerate() {
        client.send(&query("SELECT 1")[..at % 14]);
    }
    let waiting: Vec<_> = (0..50).map(|_| server.socket()).collect();
    let started = Instant::now();
    server.works();
    assert!(started.elapsed() < PATIENCE / 2);
    for (at, client) in slow.iter_mut().enumerate() {
        client.send(&query("SELECT 1")[at % 14..]);
        assert_eq!(client.answers(), ["row 1", "SELECT 1", "ready"]);
    }
    drop(waiting);
}

#[test]
fn a_client_that_does_not_read_is_not_read_from() {
    if !is_alone("hostile::a_client_that_does_not_read_is_not_read_from") {
        return;
    }
    let server = Server::start();
    let mut client = server.client();
    client.0.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let before = resident_bytes();
    let many = run(&format!("SELECT '{}'", "x".repeat(50_000)));
    let mut sent = 0_u64;
    // Ends when the server has stopped to read and the sockets are full.
    while sent < 4 << 30 {
        match client.0.write(&[many.clone(), sync()].concat()) {
            Ok(count) => sent += count as u64,
            Err(_) => break,
        }
    }
    assert!(sent < 1 << 30, "{sent} bytes were taken");
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < 200 << 20, "an unread client took {grown} bytes");
    server.works();
}

#[test]
fn connections_are_limited() {
    let server = Server::with(|options| options.connections_max = 3);
    let clients: Vec<Client> = (0..3).map(|_| server.client()).collect();
    let mut fourth = Client(server.socket());
    fourth.send(&startup(&[("user", "nvcaracal")]));
    assert_eq!(fourth.next().unwrap().field(b'C').as_deref(), Some("53300"));
    // More than are told so: some are closed without a word, none is served.
    let crowd: Vec<_> = (0..300).map(|_| server.socket()).collect();
    drop(crowd);
    drop(clients);
    let started = Instant::now();
    loop {
        let mut client = Client(server.socket());
        let _ = client.0.write_all(&startup(&[("user", "nvcaracal")]));
        if client.until_ready().last().is_some_and(|said| said.kind == b'Z') {
            break;
        }
        assert!(started.elapsed() < PATIENCE, "there is no room again");
    }
}

#[test]
fn a_cancel_request_needs_the_secret() {
    let server = Server::start();
    let mut client = server.client();
    for code in 0..20_u32 {
        let mut socket = server.socket();
        let mut bytes = vec![0, 0, 0, 16, 4, 210, 22, 46];
        bytes.extend_from_slice(&code.to_be_bytes());
        bytes.extend_from_slice(&[0; 4]);
        socket.write_all(&bytes).unwrap();
        assert_eq!(socket.read(&mut [0; 1]).unwrap(), 0);
    }
    assert_eq!(client.query("SELECT 1"), ["row 1", "SELECT 1", "ready"]);
}
