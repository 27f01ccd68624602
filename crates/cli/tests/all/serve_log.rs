//! What `serve` tells on standard error.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::Value;
use tokio_postgres::{Config, NoTls};

use crate::served::Server;
use crate::support::{Room, command};

/// The code that a client gets who says this password.
async fn refused(server: &Server, user: &str, password: &str) -> String {
    let (host, port) = server.address();
    let mut config = Config::new();
    config.host(host).port(port).user(user).password(password);
    let error = config.connect(NoTls).await.err().expect("it is refused");
    error.code().expect("an error of the server").code().to_owned()
}

fn start(line: &str) -> Server {
    let line = format!("serve {line} --listen 127.0.0.1:0 --json");
    Server::of(command(&line).stdin(Stdio::null()).stderr(Stdio::piped()))
}

/// The events that have this message, of a server that is ended.
struct Said(Vec<Value>);

impl Said {
    fn of(server: Server) -> Said {
        server.signal(Signal::TERM);
        let (code, said) = tokio::task::block_in_place(|| server.ended_with());
        assert_eq!(code, Some(0), "{said}");
        let read =
            |line: &str| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        Said(said.lines().map(read).collect())
    }

    fn one(&self, message: &str) -> &Value {
        let is_it = |event: &&Value| event["message"].as_str() == Some(message);
        let mut all = self.0.iter().filter(is_it);
        let found = all.next().unwrap_or_else(|| panic!("no \"{message}\" in {:#?}", self.0));
        assert!(all.next().is_none(), "\"{message}\" twice");
        found
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_lines_of_json() {
    let room = Room::new();
    let (store, password) = (room.text("store"), room.text("password"));
    std::fs::write(&password, "pencil\n").unwrap();
    std::fs::set_permissions(&password, Permissions::from_mode(0o600)).unwrap();
    let line = format!("{store} --password-file {password} --log-format json");
    let server = start(&format!("{line} --log-min-duration-ms 300"));
    assert_eq!(refused(&server, "nvcaracal", "wrong").await, "28P01");
    let (host, port) = server.address();
    let mut config = Config::new();
    config.host(host).port(port).user("nvcaracal").password("pencil").application_name("till");
    let (client, connection) = config.connect(NoTls).await.unwrap();
    let serving = tokio::spawn(connection);
    // The second is slow as a part of a text, whose parts may be told in place of each other.
    let several = "SELECT 1; SELECT pg_sleep(0.5); SELECT 2";
    let texts =
        ["CREATE TABLE t (a int PRIMARY KEY)", "SELECT pg_sleep(0.4)", several, "CHECKPOINT"];
    for text in texts {
        client.batch_execute(text).await.unwrap();
    }
    client.batch_execute("SELECT nonsense").await.unwrap_err();
    drop(client);
    serving.await.unwrap().unwrap();

    let said = Said::of(server);
    let opened = said.one("opened");
    assert_eq!((&opened["level"], &opened["created"]), (&"INFO".into(), &true.into()));
    let refused =
        said.one("a client is refused: password authentication failed for user \"nvcaracal\"");
    assert_eq!((&refused["level"], &refused["state"]), (&"WARN".into(), &"28P01".into()));
    assert_eq!(refused["address"], "127.0.0.1");
    let all = said.0.iter().filter(|event| event["message"] == "a statement took long");
    let all: Vec<_> = all.collect();
    let [slow, part] = &all[..] else { panic!("{all:#?}") };
    assert!(part["ms"].as_u64().is_some_and(|ms| ms >= 500), "{part}");
    assert_eq!((&slow["text"], &slow["level"]), (&"SELECT pg_sleep(0.4)".into(), &"WARN".into()));
    assert_eq!((&slow["application"], &slow["database"]), (&"till".into(), &"nvcaracal".into()));
    assert!(slow["ms"].as_u64().is_some_and(|ms| ms >= 400), "{slow}");
    said.one("checkpoint");
    said.one(&format!("closed file:{store} with a checkpoint"));
    // Errors of statements are for who asks for more.
    let all = format!("{:?}", said.0);
    assert!(!all.contains("nonsense"), "{all}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_for_more_is_told_of_sessions_and_their_errors() {
    let room = Room::new();
    let server = start(&format!("{} --log-format json --log-level debug", room.text("store")));
    let client = server.connect().await.unwrap();
    client.batch_execute("SELECT nonsense").await.unwrap_err();
    let said = Said::of(server);
    let wrong = said.one("column \"nonsense\" does not exist");
    assert_eq!((&wrong["state"], &wrong["text"]), (&"42703".into(), &"SELECT nonsense".into()));
    assert_eq!(said.one("a session begins")["process"], wrong["process"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn want_of_memory_is_told_once_a_second() {
    let room = Room::new();
    let store = room.text("store");
    let server = start(&format!("{store} --log-format json --statement-memory-bytes 16777216"));
    let client = server.connect().await.unwrap();
    let text = "SELECT array_agg(repeat('x', 100) || g) FROM generate_series(1, 900000) g";
    for _ in 0..3 {
        let error = client.batch_execute(text).await.unwrap_err();
        assert_eq!(error.code().map(|code| code.code()), Some("53200"));
    }
    let said = Said::of(server);
    let told = said.0.iter().filter(|event| event["state"] == "53200").collect::<Vec<_>>();
    assert!((1..=3).contains(&told.len()), "{told:?}");
    assert_eq!((&told[0]["level"], &told[0]["text"]), (&"WARN".into(), &text.into()));
}

#[test]
fn a_line_is_for_people_unless_json_is_asked_for() {
    let room = Room::new();
    let server = start(&room.text("store"));
    server.signal(Signal::TERM);
    let (_, said) = server.ended_with();
    let first = said.lines().next().unwrap_or_default();
    assert!(first.contains(" INFO ") && first.contains(": opening file:"), "{said}");
    let server = start(&format!("{} --log-level error", room.text("store")));
    server.signal(Signal::TERM);
    assert_eq!(server.ended_with().1, "");
}
