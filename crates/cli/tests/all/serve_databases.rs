//! `serve --databases`: databases that statements make and drop, also over a kill.

use std::path::Path;
use std::process::Stdio;

use rustix::process::Signal;
use tokio_postgres::{Client, Config, NoTls};

use crate::served::Server;
use crate::support::{PATIENCE, Room, run};

/// Connects to a database.
async fn connect(server: &Server, database: &str) -> Result<Client, tokio_postgres::Error> {
    let (host, port) = server.address();
    let mut config = Config::new();
    config.host(host).port(port).user("nvcaracal").dbname(database).connect_timeout(PATIENCE);
    let (client, connection) = config.connect(NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

fn start(room: &Room) -> Server {
    Server::start(&format!("--databases {}", room.text("all")))
}

fn code(error: &tokio_postgres::Error) -> &str {
    error.code().expect("an error of the server").code()
}

/// Runs statements, of which one fails with this code.
async fn fails(client: &Client, text: &str, expected: &str) {
    let error = client.batch_execute(text).await.expect_err(text);
    assert_eq!(code(&error), expected, "{text}: {error:?}");
}

async fn one_text(client: &Client, query: &str) -> String {
    client.query_one(query, &[]).await.expect(query).get(0)
}

fn folders(of: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(of).expect("a directory");
    let name = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.expect("an entry").file_name().into_string().expect("ASCII")
    };
    let mut all: Vec<String> = entries.map(name).collect();
    all.sort_unstable();
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn databases_outlive_a_kill() {
    let room = Room::new();
    let server = start(&room);
    let maintenance = connect(&server, "postgres").await.expect("the default database");
    assert_eq!(one_text(&maintenance, "SELECT current_database()::text").await, "nvcaracal");
    maintenance.batch_execute("CREATE TABLE t (a int PRIMARY KEY)").await.unwrap();
    maintenance.batch_execute("CREATE DATABASE \"Test shop\"").await.unwrap();
    fails(&maintenance, "CREATE DATABASE \"Test shop\"", "42P04").await;
    let shop = connect(&server, "Test shop").await.expect("the new database");
    assert_eq!(one_text(&shop, "SELECT current_database()::text").await, "Test shop");
    fails(&shop, "SELECT * FROM t", "42P01").await;
    shop.batch_execute("CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (1), (2)")
        .await
        .unwrap();
    let schema = "SELECT table_catalog::text FROM information_schema.tables WHERE table_name = 't'";
    assert_eq!(one_text(&shop, schema).await, "Test shop");
    shop.batch_execute("SELECT t.a FROM \"Test shop\".public.t").await.unwrap();
    for text in ["SELECT a FROM", "DROP TABLE IF EXISTS", "TRUNCATE", "VACUUM", "DROP VIEW"] {
        fails(&shop, &format!("{text} nvcaracal.public.t"), "0A000").await;
    }
    server.signal(Signal::KILL);
    tokio::task::block_in_place(|| server.ended());
    // What another process has half made, and half dropped.
    for left in ["%-new-a", "%-old-b"] {
        std::fs::create_dir(room.path("all").join(left)).unwrap();
    }
    let server = start(&room);
    assert_eq!(folders(&room.path("all")), ["Test%20shop", "nvcaracal"]);
    let shop = connect(&server, "Test shop").await.expect("the database");
    let count = shop.query_one("SELECT count(*) FROM t", &[]).await.unwrap();
    assert_eq!(count.get::<_, i64>(0), 2);
    let names = "SELECT string_agg(datname::text, ',' ORDER BY datname) FROM pg_database";
    assert_eq!(one_text(&shop, names).await, "Test shop,nvcaracal,template0,template1");
    server.signal(Signal::TERM);
    assert_eq!(tokio::task::block_in_place(|| server.ended()), Some(0));
    for store in ["Test%20shop", "nvcaracal"] {
        let path = format!("{}/{store}", room.text("all"));
        let checked = run(&format!("check {path} --json")).succeeded().json();
        assert_eq!(checked["committed_epochs"], serde_json::json!([]), "{checked}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_is_dropped_when_nobody_uses_it() {
    let room = Room::new();
    let server = start(&room);
    let client = connect(&server, "nvcaracal").await.expect("a server");
    client.batch_execute("CREATE DATABASE a").await.unwrap();
    let other = connect(&server, "a").await.expect("the database");
    fails(&other, "DROP DATABASE a", "55006").await;
    fails(&client, "DROP DATABASE a", "55006").await;
    let sessions = "SELECT count(*) FROM pg_stat_activity a JOIN pg_database d \
                    ON a.datid = d.oid WHERE d.datname = 'a'";
    assert_eq!(client.query_one(sessions, &[]).await.unwrap().get::<_, i64>(0), 1);
    client.batch_execute("DROP DATABASE a WITH (FORCE)").await.unwrap();
    let ended = other.batch_execute("SELECT 1").await.unwrap_err();
    assert!(ended.is_closed() || code(&ended) == "57P01", "{ended:?}");
    let gone = connect(&server, "a").await.expect_err("no such database");
    assert_eq!(code(&gone), "3D000");
    assert_eq!(folders(&room.path("all")), ["nvcaracal"]);
    fails(&client, "DROP DATABASE a", "3D000").await;
    client.batch_execute("DROP DATABASE IF EXISTS a").await.unwrap();
    // A session that has just ended is waited for.
    client.batch_execute("CREATE DATABASE a").await.unwrap();
    let other = connect(&server, "a").await.expect("the database");
    other.batch_execute("CREATE TABLE t (a int)").await.unwrap();
    drop(other);
    client.batch_execute("DROP DATABASE a").await.unwrap();
    client.batch_execute("CREATE DATABASE a").await.unwrap();
    let other = connect(&server, "a").await.expect("a new database");
    fails(&other, "SELECT * FROM t", "42P01").await;
}

/// Directories come and go while the server runs.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_is_the_store_in_its_directory() {
    let room = Room::new();
    let server = start(&room);
    let client = connect(&server, "nvcaracal").await.expect("a server");
    client.batch_execute("CREATE DATABASE a").await.unwrap();
    let names = "SELECT string_agg(datname::text, ',' ORDER BY datname) FROM pg_database \
                 WHERE datname LIKE '_'";
    // One that is away is missed, not made again.
    std::fs::rename(room.path("all/a"), room.path("away")).unwrap();
    assert_eq!(code(&connect(&server, "a").await.expect_err("it is away")), "3D000");
    assert_eq!(folders(&room.path("all")), ["nvcaracal"]);
    // It may come back, also under another name.
    std::fs::rename(room.path("away"), room.path("all/b")).unwrap();
    fails(&client, "CREATE DATABASE b", "42P04").await;
    assert_eq!(one_text(&client, names).await, "b");
    connect(&server, "b").await.expect("it is back");
    // Another process serves it: it stays.
    client.batch_execute("CREATE DATABASE c").await.unwrap();
    let other = Server::start(&format!("{}/c", room.text("all")));
    fails(&client, "DROP DATABASE c", "55006").await;
    let inside = other.connect().await.expect("the other server");
    inside.batch_execute("CREATE TABLE t (a int); INSERT INTO t VALUES (1)").await.unwrap();
    other.signal(Signal::TERM);
    assert_eq!(tokio::task::block_in_place(|| other.ended()), Some(0));
    let own = connect(&server, "c").await.expect("it is free");
    own.batch_execute("SELECT * FROM t").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn few_files_are_few_databases() {
    let room = Room::new();
    let line = format!(
        "ulimit -n 400; exec {} serve --databases {} --listen 127.0.0.1:0 --json",
        env!("CARGO_BIN_EXE_nvcaracal"),
        room.text("all")
    );
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &line]).stdin(Stdio::null()).stderr(Stdio::null());
    let server = Server::of(&mut shell);
    let client = connect(&server, "nvcaracal").await.expect("a server");
    for number in 0..20 {
        client.batch_execute(&format!("CREATE DATABASE d{number}")).await.unwrap();
        // It stays open behind its last session, until another one needs its place.
        connect(&server, &format!("d{number}")).await.expect("the database");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_is_refused() {
    let room = Room::new();
    let server = start(&room);
    let client = connect(&server, "nvcaracal").await.expect("a server");
    for (text, expected) in [
        ("BEGIN; CREATE DATABASE a", "25001"),
        ("ROLLBACK; BEGIN; DROP DATABASE a", "25001"),
        ("ROLLBACK", ""),
        ("CREATE DATABASE \"a/b\"", "42602"),
        ("CREATE DATABASE \"..\"", "42602"),
        ("CREATE DATABASE nvcaracal", "42P04"),
        ("CREATE DATABASE template1", "42P04"),
        ("CREATE DATABASE a TEMPLATE b", "0A000"),
        ("CREATE DATABASE a ENCODING 'LATIN1'", "0A000"),
        ("CREATE DATABASE a OWNER nobody", "42704"),
        ("CREATE DATABASE a COLOUR red", "42601"),
        ("DROP DATABASE template0", "42809"),
        ("DROP DATABASE nvcaracal", "55006"),
    ] {
        match expected {
            "" => client.batch_execute(text).await.unwrap(),
            expected => fails(&client, text, expected).await,
        }
    }
    client
        .batch_execute(
            "CREATE DATABASE a WITH OWNER nvcaracal ENCODING = 'UTF-8' LC_COLLATE 'C' \
             LC_CTYPE 'en_US.UTF-8' TEMPLATE template0 CONNECTION LIMIT -1",
        )
        .await
        .unwrap();
    let template = connect(&server, "template0").await.expect_err("no connections");
    assert_eq!(code(&template), "55000");
    let store = room.text("store");
    let one = Server::start(&store);
    let alone = one.connect().await.expect("a server of one store");
    let error = alone.batch_execute("CREATE DATABASE a").await.unwrap_err();
    let hint = error.as_db_error().and_then(|error| error.hint()).unwrap_or_default();
    assert!(hint.contains("--databases"), "{error:?}");
    drop(one);
    run(&format!("serve --databases {store} --listen 127.0.0.1:0"))
        .failed(1, &["has the files of a store"]);
    run("serve --listen 127.0.0.1:0").failed(2, &["<PATH>"]);
    let all = room.text("all");
    run(&format!("serve {store} --databases {all}")).failed(2, &["cannot be used with"]);
    run(&format!("serve --databases {all} --memory-limit-bytes 67108864"))
        .failed(2, &["which need 134217728"]);
}

/// With a limit of memory few databases are open: one that nobody uses is closed for another.
#[tokio::test(flavor = "multi_thread")]
async fn an_idle_database_makes_room() {
    let room = Room::new();
    let limits = "--memory-limit-bytes 268435456 --statement-memory-bytes 67108864";
    let server = Server::start(&format!("--databases {} {limits}", room.text("all")));
    let client = connect(&server, "nvcaracal").await.expect("a server");
    let mut open = Vec::new();
    for name in ["a", "b", "c", "d", "e"] {
        client.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
    }
    for name in ["a", "b", "c", "d"] {
        let own = connect(&server, name).await.expect(name);
        own.batch_execute("CREATE TABLE t (a int); INSERT INTO t VALUES (1)").await.unwrap();
        open.push(own);
    }
    let full = connect(&server, "e").await.expect_err("too many databases");
    assert_eq!(code(&full), "53300");
    drop(open.remove(1));
    let began = std::time::Instant::now();
    let other = loop {
        // The session of `b` ends in a moment.
        match connect(&server, "e").await {
            Ok(other) => break other,
            Err(error) => assert!(began.elapsed() < PATIENCE, "{error:?}"),
        }
    };
    drop((other, open));
    let again = loop {
        match connect(&server, "b").await {
            Ok(again) => break again,
            Err(error) => assert!(began.elapsed() < PATIENCE, "{error:?}"),
        }
    };
    let count = again.query_one("SELECT count(*) FROM t", &[]).await.unwrap();
    assert_eq!(count.get::<_, i64>(0), 1);
}
