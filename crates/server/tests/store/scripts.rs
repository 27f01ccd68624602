//! The scripts of crate `sql` on a store.

use crate::client::{Client, copy, memory, on_disk};
use crate::script::{Target, check, scripts};

#[test]
fn scripts_have_their_answers_on_a_store_in_memory() {
    for (name, records) in scripts() {
        let mut client = Client::new(&memory());
        for record in &records {
            check(&name, record, &mut client);
        }
    }
}

#[test]
fn o_25_what_scripts_did_is_there_after_a_crash_and_after_a_close() {
    for (name, records) in scripts() {
        let dir = tempfile::tempdir().unwrap();
        let (path, killed) = (dir.path().join("store"), dir.path().join("killed"));
        let store = on_disk(&path);
        let mut client = Client::new(&store);
        for record in &records {
            check(&name, record, &mut client);
        }
        let state = client.state();
        copy(&store, &path, &killed);
        drop(client);
        store.close().unwrap();
        for path in [&killed, &path] {
            let store = on_disk(path);
            assert!(Client::new(&store).state() == state, "{name}: {}", path.display());
            store.close().unwrap();
        }
    }
}
