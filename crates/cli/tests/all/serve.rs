//! `serve`, as a user sees it: options and signals.

use std::os::unix::fs::PermissionsExt;

use rustix::process::Signal;

use crate::served::Server;
use crate::support::{Room, run};

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
    let open = run(&format!("serve {store} --password-file {}", room.text("empty")));
    open.failed(2, &["chmod 600"]);
    let private = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(room.path("empty"), private).unwrap();
    let empty = run(&format!("serve {store} --password-file {}", room.text("empty")));
    empty.failed(2, &["a password has 1 to 1000 characters"]);
    let delay = run(&format!("serve {store} --archive-delay 5"));
    delay.failed(2, &["--archive <DIR>"]);
    let apart = [("store", "is the directory"), ("store/archive", "is inside"), ("", "has the")];
    for (archive, how) in apart {
        let archive = room.text(archive);
        let refused = run(&format!("serve {store} --listen 127.0.0.1:0 --archive {archive}"));
        refused.failed(1, &[how, "choose a directory beside it"]);
    }
    let file = room.text("empty");
    let archive = run(&format!("serve {store} --listen 127.0.0.1:0 --archive {file}"));
    archive.failed(1, &["is no directory", &file]);
    let small = run(&format!("serve {store} --memory-limit-bytes 16777216"));
    small.failed(2, &["the least is 33554432"]);
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

/// O-25: CHECKPOINT is answered when the archive has all that was answered before, or with an error
/// that says why not; a time that nothing reaches is refused.
#[tokio::test(flavor = "multi_thread")]
async fn checkpoint_is_answered_when_all_is_archived() {
    let room = Room::new();
    let [store, copy, archive, again] =
        ["store", "copy", "archive", "again"].map(|name| room.text(name));
    let server = Server::start(&format!("{store} --archive {archive} --archive-delay 3600"));
    let client = server.connect().await.expect("a server");
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY)").await.unwrap();
    run(&format!("backup {store} {copy}")).succeeded();
    client.batch_execute("INSERT INTO t VALUES (1), (2)").await.unwrap();
    client.batch_execute("INSERT INTO t VALUES (3)").await.unwrap();
    client.batch_execute("CHECKPOINT").await.unwrap();
    let restore = format!("restore {copy} {again} --archive {archive}");
    run(&format!("{restore} --to-time 2100-01-01T00:00:00Z"))
        .failed(1, &["2100-01-01T00:00:00.000000000Z", "the newest is", "--to-epoch"]);
    assert!(!room.path("again").exists(), "nothing is made");
    run(&restore).succeeded();
    let restored = Server::start(&again);
    let row = restored.connect().await.expect("a server");
    let row = row.query_one("SELECT count(*) FROM t", &[]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), 3);
    // What is in the way of the archive is told.
    std::fs::remove_dir_all(room.path("archive")).unwrap();
    std::fs::write(room.path("archive"), "").unwrap();
    client.batch_execute("INSERT INTO t VALUES (4)").await.unwrap();
    let error = client.batch_execute("CHECKPOINT").await.unwrap_err();
    assert_eq!(error.code().map(|code| code.code()), Some("58030"), "{error:?}");
    std::fs::remove_file(room.path("archive")).unwrap();
    std::fs::create_dir(room.path("archive")).unwrap();
    client.batch_execute("CHECKPOINT").await.unwrap();
}
