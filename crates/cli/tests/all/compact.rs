//! `compact`, and `restore` from an archive.

use std::time::{SystemTime, UNIX_EPOCH};

use rustix::process::Signal;

use crate::served::Server;
use crate::support::{Background, PAUSE, Room, run};

/// S6: a store is as short as its pages, and the same.
#[test]
fn s_6_a_compacted_store_is_short_and_the_same() {
    let room = Room::new();
    let store = room.text("store");
    let line = "bench ycsb --rows 20000 --value-bytes 1000 --epoch-size 4000 --epochs 8 \
                --checkpoint-every 1 --no-progress --device";
    run(&format!("{line} file:{store}")).succeeded();
    let digest = |epoch: &str| {
        let checked = run(&format!("check {store} --json")).succeeded().json();
        (checked["state_digest"].clone(), checked[epoch].clone())
    };
    let before = digest("epoch");
    let shown = run(&format!("inspect {store} superblock --json")).succeeded().json();
    let length = std::fs::metadata(room.path("store/data")).expect("a file").len();
    assert_eq!(shown["superblock"]["data_file_bytes"], length);
    let compacted = run(&format!("compact {store} --json")).succeeded().json();
    let bytes = |field: &str| compacted[field].as_u64().expect("bytes");
    assert_eq!(bytes("data_bytes_before"), length);
    assert_eq!(shown["superblock"]["data_used_bytes"], bytes("used_bytes"));
    assert!(bytes("data_bytes") * 100 <= bytes("used_bytes") * 115, "{compacted}");
    assert!(bytes("data_bytes") < length, "{compacted}");
    let length = std::fs::metadata(room.path("store/data")).expect("a file").len();
    assert_eq!(bytes("data_bytes"), length);
    assert_eq!(digest("epoch"), before);
    let said = run(&format!("compact {store}")).succeeded().stdout;
    assert!(said.contains(&format!("data before  {length} bytes\n")), "{said}");
    assert!(said.contains("moved        0 bytes\n"), "{said}");
}

#[test]
fn what_cannot_be_compacted_is_refused_in_words() {
    let room = Room::new();
    let (store, acks) = (room.text("store"), room.text("acks"));
    run(&format!("compact {store}")).failed(1, &["holds no database"]);
    std::fs::write(room.path("file"), "text").expect("a file");
    run(&format!("compact {}", room.text("file"))).failed(2, &["is no directory"]);
    let mut process = Background::start(&format!(
        "bench smallbank --customers 3600 --epoch-size 400 --epochs 100000 --no-progress \
         --device file:{store} --ack-log {acks}"
    ));
    // An epoch is acknowledged: the store is there.
    while std::fs::metadata(room.path("acks")).map_or(0, |file| file.len()) == 0 {
        assert!(process.status().is_none(), "the process goes on");
        std::thread::sleep(PAUSE);
    }
    run(&format!("compact {store}")).failed(1, &["is locked: another process"]);
    process.kill();
}

/// S23: a served store is restored to a time, from a copy of before and the archive.
#[tokio::test(flavor = "multi_thread")]
async fn s_23_a_served_store_is_restored_to_a_time() {
    let room = Room::new();
    let [store, copy, archive] = ["store", "copy", "archive"].map(|name| room.text(name));
    let serve = || Server::start(&format!("{store} --archive {archive}"));
    let server = serve();
    let client = server.connect().await.expect("a server");
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY)").await.unwrap();
    // The copy has a checkpoint, that of its close.
    server.signal(Signal::TERM);
    assert_eq!(tokio::task::block_in_place(|| server.ended()), Some(0));
    let server = serve();
    let client = server.connect().await.expect("a server");
    tokio::task::block_in_place(|| run(&format!("backup {store} {copy}")).succeeded());
    client.batch_execute("INSERT INTO t VALUES (1), (2)").await.unwrap();
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time");
    let time = cli::args::time::show(since.as_nanos() as u64);
    client.batch_execute("INSERT INTO t VALUES (3)").await.unwrap();
    server.signal(Signal::TERM);
    assert_eq!(tokio::task::block_in_place(|| server.ended()), Some(0));
    let restore = |name: &str, more: &str| {
        run(&format!("restore {copy} {} --archive {archive} {more} --json", room.text(name)))
    };
    let made = restore("then", &format!("--to-time {time}")).succeeded().json();
    assert!(made["time"].as_str().expect("a time") <= time.as_str(), "{made}");
    restore("newest", "").succeeded();
    for (name, rows) in [("then", 2), ("newest", 3)] {
        let server = Server::start(&room.text(name));
        let client = server.connect().await.expect("a server");
        let row = client.query_one("SELECT count(*) FROM t", &[]).await.unwrap();
        assert_eq!(row.get::<_, i64>(0), rows, "{name}");
        server.signal(Signal::TERM);
        assert_eq!(tokio::task::block_in_place(|| server.ended()), Some(0));
    }
    restore("never", "--to-epoch 100000").failed(1, &["lacks epochs", "to 100000"]);
    restore("never", "--to-time 1999-01-01T00:00:00Z").failed(1, &["is of a later time"]);
    restore("never", "--to-time yesterday").failed(2, &["is no time, for example"]);
}
