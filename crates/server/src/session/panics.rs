//! What clients are told of a panic: the error of a statement, or why their connection ends.

use crate::store::{Store, StoreOptions};
use crate::{ServerOptions, serve};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use tokio_postgres::{Client, Config, NoTls};

async fn connect(port: u16) -> Client {
    let mut config = Config::new();
    config.host("127.0.0.1").port(port).user("nvcaracal").dbname("nvcaracal");
    let (client, connection) = config.connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn code(client: &Client, text: &str) -> String {
    let said = client.simple_query(text).await;
    let error = said.err().and_then(|error| Some(error.as_db_error()?.code().code().to_owned()));
    error.unwrap_or_else(|| "no error".to_owned())
}

async fn conversation(port: u16) {
    let (first, second) = (connect(port).await, connect(port).await);
    assert_eq!(code(&first, "CREATE TABLE a (id int PRIMARY KEY)").await, "no error");
    for place in ["Parse", "Plan", "Query", "LookUp"] {
        let text = format!("SELECT 1 FROM a WHERE id = 1 OR 'panic in {place}' = ''");
        let text = if place == "LookUp" { text.replace(" OR '", " -- '") } else { text };
        assert_eq!(code(&first, &text).await, "XX000", "{text}");
        assert_eq!(code(&first, "INSERT INTO a VALUES (1); DELETE FROM a").await, "no error");
    }
    assert_eq!(code(&first, "BEGIN; SELECT 'panic in Block'").await, "XX000");
    assert_eq!(code(&first, "SELECT 1").await, "25P02");
    assert_eq!(code(&first, "ROLLBACK").await, "no error");
    assert_eq!(code(&first, "INSERT INTO a VALUES (1)").await, "no error");
    // What the session itself has half done is not known: the connection ends.
    assert_eq!(code(&first, "SELECT 'panic in Message'").await, "XX000");
    assert!(first.simple_query("SELECT 1").await.is_err());
    assert_eq!(code(&second, "INSERT INTO a VALUES (2)").await, "no error");
}

#[test]
fn a_panic_is_told_to_its_client_alone() {
    let stop = Arc::new(AtomicBool::new(false));
    let (sender, ready) = mpsc::channel();
    let stops = Arc::clone(&stop);
    let server = std::thread::spawn(move || {
        let store = Store::open(StoreOptions::memory()).unwrap();
        let told = |listening: &crate::Listening| sender.send(listening.addresses[0]).unwrap();
        let options = ServerOptions::at("127.0.0.1:0");
        serve(&options, store, told, || stops.load(Ordering::Relaxed)).unwrap();
    });
    let port = ready.recv().unwrap().port();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(conversation(port));
    drop(runtime);
    stop.store(true, Ordering::Relaxed);
    server.join().unwrap();
}
