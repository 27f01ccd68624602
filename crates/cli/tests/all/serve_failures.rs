//! What a server does when the system fails it: files that cannot be written, addresses that are
//! taken, a terminal that closes, files that it may not open; and who may read what it makes.

use std::collections::BTreeMap;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use nvcaracal::{DeviceSpec, Options};
use pmem::{DiskCall, DiskFile, DiskHook, DiskOperation, Outcome};
use rustix::process::Signal;
use server::store::{Store, StoreOptions};
use server::{ServeError, ServerOptions};
use tokio_postgres::{Client, Config, NoTls};

use crate::served::Server;
use crate::support::{PATIENCE, Room, run};

const EIO: i32 = 5;

/// Which of [`FILES`] fails from now on; no one at first.
static FAILS: AtomicUsize = AtomicUsize::new(usize::MAX);
const FILES: [(DiskFile, &str); 3] =
    [(DiskFile::Log, "log"), (DiskFile::Data, "data"), (DiskFile::Meta, "meta")];

#[derive(Debug)]
struct Failing;

impl DiskHook for Failing {
    fn before(&self, call: &DiskCall<'_>) -> Outcome {
        let failing = FILES.get(FAILS.load(Ordering::SeqCst));
        let writes = matches!(call.operation, DiskOperation::Write { .. } | DiskOperation::Sync);
        match failing {
            Some((file, _)) if *file == call.file && writes => Outcome::Fail(EIO),
            _ => Outcome::Proceed,
        }
    }
}

/// Writes until the server ends; the code that clients are told first.
async fn write_until_it_fails(port: u16, file: usize) -> String {
    let mut config = Config::new();
    config.host("127.0.0.1").port(port).user("nvcaracal").dbname("nvcaracal");
    let (client, connection) = config.connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, v text)").await.unwrap();
    FAILS.store(file, Ordering::SeqCst);
    for id in 0.. {
        let insert = format!("INSERT INTO t VALUES ({id}, repeat('x', 100000))");
        if let Err(error) = client.batch_execute(&insert).await {
            let code = error.code().map(|code| code.code().to_owned());
            return code.unwrap_or_else(|| "closed".to_owned());
        }
    }
    unreachable!("an insert fails before there are no numbers left")
}

/// Serves a store of which one file fails; why the server has ended.
fn serve_failing(store: &Path, file: usize) -> ServeError {
    FAILS.store(usize::MAX, Ordering::SeqCst);
    let adjust = |options: Options| options.disk_hook(Arc::new(Failing));
    let options = StoreOptions { adjust, ..StoreOptions::at(DeviceSpec::File(store.to_owned())) };
    let store = Store::open(options).unwrap();
    let (sender, ready) = mpsc::channel();
    let server = std::thread::spawn(move || {
        let told = |listening: &server::Listening| sender.send(listening.addresses[0]).unwrap();
        server::serve(&ServerOptions::at("127.0.0.1:0"), store, told, || false)
    });
    let port = ready.recv_timeout(PATIENCE).unwrap().port();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let code = runtime.block_on(write_until_it_fails(port, file));
    assert!(["58030", "57P01", "closed"].contains(&&code[..]), "{code}");
    // Nobody asks it to end.
    server.join().unwrap().unwrap_err()
}

#[test]
fn a_server_ends_when_a_file_of_its_store_fails() {
    for (number, (_, name)) in FILES.iter().enumerate() {
        let room = Room::new();
        let store = room.path("store");
        let ended = serve_failing(&store, number);
        assert!(matches!(ended, ServeError::Stopped(_)), "{name}: {ended:?}");
        let said = ended.to_string();
        let path = store.join(name);
        assert!(said.contains(path.to_str().unwrap()), "{name}: {said}");
        assert!(said.contains("start the server again"), "{said}");
        // What was answered is there.
        FAILS.store(usize::MAX, Ordering::SeqCst);
        run(&format!("check {}", store.display())).succeeded();
    }
}

#[test]
fn a_server_that_cannot_listen_makes_no_store() {
    let room = Room::new();
    let store = room.text("store");
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = other.local_addr().unwrap();
    for line in [
        format!("serve {store} --listen {taken}"),
        format!("serve {store} --listen 127.0.0.1:0 --listen {taken}"),
        format!("serve {store} --listen 127.0.0.1:0 --socket-dir {store}/none"),
    ] {
        run(&line).failed(1, &["cannot listen at"]);
        assert!(!room.path("store").exists(), "{line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_that_closes_ends_no_server() {
    let room = Room::new();
    let server = Server::start(&room.text("store"));
    let client = server.connect().await.expect("a server");
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY)").await.unwrap();
    for _ in 0..2 {
        server.signal(Signal::HUP);
        client.batch_execute("INSERT INTO t VALUES (1); DELETE FROM t").await.unwrap();
    }
    server.signal(Signal::TERM);
    assert_eq!(tokio::task::block_in_place(|| server.ended()), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn few_files_are_few_clients() {
    let room = Room::new();
    let line = format!(
        "ulimit -n 200; exec {} serve {} --listen 127.0.0.1:0 --json",
        env!("CARGO_BIN_EXE_nvcaracal"),
        room.text("store")
    );
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &line]).stdin(Stdio::null()).stderr(Stdio::piped());
    let server = Server::of(&mut shell);
    let mut clients = Vec::new();
    let refused = loop {
        match server.try_connect().await {
            Ok(client) => clients.push(client),
            Err(error) => break error,
        }
    };
    assert_eq!(refused.code().map(|code| code.code()), Some("53300"), "{refused:?}");
    assert_eq!(clients.len(), 50);
    clients[0].batch_execute("CREATE TABLE t (id int PRIMARY KEY)").await.unwrap();
    server.signal(Signal::TERM);
    let said = tokio::task::block_in_place(|| server.ended_with().1);
    assert!(said.contains("enough for 50 clients at a time, not 200"), "{said}");
}

/// Regression: SIGXFSZ ended the server where a file came to its limit.
#[tokio::test(flavor = "multi_thread")]
async fn a_limit_on_file_sizes_is_an_error_and_ends_nothing() {
    let room = Room::new();
    let store = room.text("store");
    let line = format!(
        "ulimit -f 24576; exec {} serve {store} --listen 127.0.0.1:0 --json",
        env!("CARGO_BIN_EXE_nvcaracal")
    );
    let mut shell = std::process::Command::new("bash");
    let server = Server::of(shell.args(["-c", &line]).stdin(Stdio::null()));
    let client = server.connect().await.expect("a server");
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, v text)").await.unwrap();
    let mut id: i64 = 0;
    let error = loop {
        let insert = format!("INSERT INTO t VALUES ({id}, repeat('x', 100000))");
        match client.batch_execute(&insert).await {
            Ok(()) => id += 1,
            Err(error) => break error,
        }
        assert!(id < 1000, "100 MB are in files of 24 MB");
    };
    assert_eq!(error.code().map(|code| code.code()), Some("53100"), "{error:?}");
    let row = client.query_one("SELECT count(*) FROM t", &[]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), id);
    server.signal(Signal::TERM);
    assert_eq!(tokio::task::block_in_place(|| server.ended()), Some(0));
    let server = Server::start(&store);
    let client = server.connect().await.expect("a server");
    let row = client.query_one("SELECT count(*) FROM t", &[]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), id);
}

/// Checks all files below a directory, and itself.
fn check_private(path: &Path) {
    let found = path.symlink_metadata().unwrap();
    let mode = found.permissions().mode() & 0o777;
    let expected = if found.is_dir() { 0o700 } else { 0o600 };
    assert_eq!(mode, expected, "{} has mode {mode:o}", path.display());
    if found.is_dir() {
        for entry in path.read_dir().unwrap() {
            check_private(&entry.unwrap().path());
        }
    }
}

#[test]
fn what_the_product_makes_is_for_its_user_alone() {
    let room = Room::new();
    let (store, archive) = (room.text("store"), room.text("archive"));
    let line = format!("{store} --archive {archive}");
    let server = Server::start(&line);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = server.connect().await.expect("a server");
        client.batch_execute("CREATE TABLE t (id int PRIMARY KEY)").await.unwrap();
        client.batch_execute("INSERT INTO t VALUES (1), (2)").await.unwrap();
    });
    server.signal(Signal::TERM);
    assert_eq!(server.ended(), Some(0));
    run(&format!("backup {store} {}", room.text("backup"))).succeeded();
    run(&format!("dump {store} --out {}", room.text("dump"))).succeeded();
    run(&format!("restore {} {}", room.text("backup"), room.text("restored"))).succeeded();
    for name in ["store", "archive", "backup", "dump", "restored"] {
        check_private(&room.path(name));
    }
}

/// Damages pages of a store all over the file.
fn damage(store: &Path) {
    let mut options = std::fs::OpenOptions::new();
    let data = options.write(true).open(store.join("data")).unwrap();
    let slots = data.metadata().unwrap().len() / 4096;
    for slot in (slots / 4..slots / 4 * 3).step_by(7) {
        data.write_all_at(b"damaged!", slot * 4096 + 500).unwrap();
    }
}

/// A server of a new store with a table `t` of 8,000 rows of 2,000 bytes, and a client of it.
async fn started_with_rows(store: &str) -> (Server, Client) {
    let server = Server::start(store);
    let client = server.connect().await.expect("a server");
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, v text)").await.unwrap();
    let insert = "INSERT INTO t SELECT n, repeat('x', 2000) FROM generate_series(1, 8000) AS n";
    client.batch_execute(insert).await.unwrap();
    (server, client)
}

/// The process of an open that replays, and comes to a damaged page, leaves the store as it was.
/// Regression: a file `replay` stayed.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_page_in_a_replay_leaves_the_store_as_it_was() {
    if !pmem::memory_can_be_limited() {
        eprintln!("SKIPPED: this system has no userfaultfd for this process");
        return;
    }
    let room = Room::new();
    let store = room.text("store");
    let (server, client) = started_with_rows(&store).await;
    client.batch_execute("CHECKPOINT").await.unwrap();
    client.batch_execute("UPDATE t SET v = v || 'y' WHERE id % 7 = 0").await.unwrap();
    server.signal(Signal::KILL);
    assert_eq!(tokio::task::block_in_place(|| server.ended()), None);
    damage(&room.path("store"));
    let files = || {
        let entries = std::fs::read_dir(room.path("store")).unwrap().map(|entry| entry.unwrap());
        entries
            .map(|e| (e.file_name(), std::fs::read(e.path()).unwrap()))
            .collect::<BTreeMap<_, _>>()
    };
    let before = files();
    let line = format!("serve {store} --listen 127.0.0.1:0 --json --memory-limit-bytes 67108864");
    let refused = tokio::task::block_in_place(|| run(&line));
    assert!(refused.stderr.contains("store/data is corrupt: page "), "{}", refused.stderr);
    let after = files();
    assert!(after == before, "{:?}", after.keys());
}

/// A page that cannot be read, and that a statement waits for with a limit of memory, ends the
/// server as any failure of a file does. Regression: SIGABRT.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_page_ends_a_server_in_order() {
    if !pmem::memory_can_be_limited() {
        eprintln!("SKIPPED: this system has no userfaultfd for this process");
        return;
    }
    for statement in ["SELECT sum(length(v)) FROM t", "UPDATE t SET v = v || 'y' WHERE id % 7 = 0"]
    {
        let room = Room::new();
        let store = room.text("store");
        let (server, _client) = started_with_rows(&store).await;
        server.signal(Signal::TERM);
        assert_eq!(tokio::task::block_in_place(|| server.ended()), Some(0));
        damage(&room.path("store"));
        // Nothing half-made is left of a copy.
        let refused = run(&format!("backup {store} {}", room.text("copy")));
        refused.failed(1, &["store/data is corrupt: page ", "restore the whole directory"]);
        assert_eq!(std::fs::read_dir(room.path("")).unwrap().count(), 1);

        let line =
            format!("serve {store} --listen 127.0.0.1:0 --json --memory-limit-bytes 67108864");
        let mut serve = crate::support::command(&line);
        let server = Server::of(serve.stdin(Stdio::null()).stderr(Stdio::piped()));
        let (client, idle) = (server.connect().await.unwrap(), server.connect().await.unwrap());
        idle.batch_execute("SELECT 1").await.unwrap();
        let error = client.batch_execute(statement).await.unwrap_err();
        assert_eq!(error.code().map(|code| code.code()), Some("57P01"), "{statement}: {error:?}");
        assert!(idle.batch_execute("SELECT 1").await.is_err(), "{statement}");
        let (code, said) = tokio::task::block_in_place(|| server.ended_with());
        assert_eq!(code, Some(4), "{statement}: {said}");
        assert!(said.contains("error: a page of the store cannot be read"), "{said}");
        assert!(said.contains("store/data is corrupt: page "), "{said}");
    }
}
