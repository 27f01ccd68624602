//! The scripts of crate `sql` on a store.

use crate::client::{Client, copy, memory, on_disk};
use crate::script::{Target, run_script, scripts};

#[test]
fn scripts_have_their_answers_on_a_store_in_memory() {
    for (name, script) in scripts() {
        run_script(&name, &script, Client::new(&memory()));
    }
}

#[test]
fn o_25_what_scripts_did_is_there_after_a_crash_and_after_a_close() {
    for (name, script) in scripts() {
        let dir = tempfile::tempdir().unwrap();
        let (path, killed) = (dir.path().join("store"), dir.path().join("killed"));
        let store = on_disk(&path);
        let client = run_script(&name, &script, Client::new(&store));
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
