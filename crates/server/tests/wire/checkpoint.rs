//! CHECKPOINT, as a client gives it.

use crate::support::Server;
use server::ServerOptions;
use server::store::{DeviceSpec, StoreOptions};
use std::fs;
use std::time::Duration;

/// What was answered is in the archive before CHECKPOINT is. Where it cannot be, an error says so.
#[test]
fn a_checkpoint_has_all_in_the_archive() {
    let dir = tempfile::tempdir().unwrap();
    let archive = dir.path().join("archive");
    let store = StoreOptions {
        archive: Some(archive.clone()),
        archive_delay: Duration::from_secs(3600),
        ..StoreOptions::at(DeviceSpec::File(dir.path().join("store")))
    };
    let server = Server::on(ServerOptions::at("127.0.0.1:0"), store);
    let mut client = server.client();
    client.query("CREATE TABLE a (id int PRIMARY KEY)");
    let files = || fs::read_dir(&archive).unwrap().count();
    for id in 0..3 {
        let before = files();
        let insert = format!("INSERT INTO a VALUES ({id})");
        assert_eq!(client.query(&insert), ["INSERT 0 1", "ready"]);
        assert_eq!(files(), before, "it waits for an hour");
        assert_eq!(client.query("CHECKPOINT"), ["CHECKPOINT", "ready"]);
        assert!(files() > before, "{id}: {before} files");
    }
    fs::remove_dir_all(&archive).unwrap();
    fs::write(&archive, "no directory").unwrap();
    client.query("INSERT INTO a VALUES (7)");
    assert_eq!(client.query("CHECKPOINT"), ["error 58030", "ready"]);
    assert_eq!(client.query("SELECT count(*) FROM a"), ["row 4", "SELECT 1", "ready"]);
}
