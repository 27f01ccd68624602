//! pgbench as it is: its tables, made by `pgbench -i`, and its own script, a block of five
//! statements, in all its modes.

use crate::support::{Client, Server};
use server::ServerOptions;
use server::store::StoreOptions;
use std::process::Command;

const ACCOUNTS: i64 = 100_000;
const CLIENTS: i64 = 8;
const BLOCKS: i64 = 25;

/// What pgbench said; `None` if there is no pgbench.
fn pgbench(server: &Server, arguments: &[&str]) -> Option<String> {
    let mut pgbench = Command::new("pgbench");
    pgbench
        .args(["-h", "127.0.0.1", "-U", "nvcaracal", "-p", &server.address.port().to_string()])
        .args(arguments)
        .arg("nvcaracal");
    let Ok(output) = pgbench.output() else {
        eprintln!("SKIPPED: pgbench is not installed");
        return None;
    };
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}{complaints}");
    Some(said + &complaints)
}

fn number(client: &mut Client, query: &str) -> i64 {
    let row = &client.query(query)[0];
    row.strip_prefix("row ").and_then(|number| number.parse().ok()).expect(row)
}

fn count(client: &mut Client, table: &str) -> i64 {
    number(client, &format!("SELECT count(*) FROM {table}"))
}

/// What a COPY in a block and a definition write is many times what one call has, as with a table
/// of another scale.
#[test]
fn pgbench_makes_tables_in_parts() {
    let store =
        StoreOptions { copy_bytes_max: 1 << 20, part_bytes: 1 << 18, ..StoreOptions::memory() };
    let server = Server::on(ServerOptions::at("127.0.0.1:0"), store);
    let mut client = server.client();
    for steps in ["dtgvpf", "dtgvp"] {
        let Some(said) = pgbench(&server, &["-i", "-I", steps]) else { return };
        assert!(said.contains("done in"), "{said}");
        assert_eq!(count(&mut client, "pgbench_accounts"), ACCOUNTS);
        assert_eq!(number(&mut client, "SELECT sum(aid) FROM pgbench_accounts"), 5_000_050_000);
        let twice = client.query("INSERT INTO pgbench_accounts VALUES (99999, 1, 0)");
        assert_eq!(twice, ["error 23505", "ready"]);
    }
    let Some(said) = pgbench(&server, &["-n", "-c", "2", "-t", "20"]) else { return };
    assert!(said.contains("number of failed transactions: 0"), "{said}");
    assert_eq!(count(&mut client, "pgbench_history"), 40);
}

#[test]
fn pgbench_makes_its_tables_and_runs_its_own_script() {
    let server = Server::start();
    let mut client = server.client();
    // The second time they are there.
    for steps in ["dtgvp", "dtgvpf"] {
        let Some(said) = pgbench(&server, &["-i", "-I", steps]) else { return };
        assert!(said.contains("done in"), "{said}");
        assert_eq!(count(&mut client, "pgbench_accounts"), ACCOUNTS);
        let twice = client.query("INSERT INTO pgbench_accounts VALUES (7, 1, 0)");
        assert_eq!(twice, ["error 23505", "ready"]);
    }
    let orphan = client.query("INSERT INTO pgbench_tellers VALUES (11, 2, 0)");
    assert_eq!(orphan, ["error 23503", "ready"]);
    let mut total = 0;
    for mode in ["simple", "extended", "prepared"] {
        let (clients, blocks) = (CLIENTS.to_string(), BLOCKS.to_string());
        let arguments = ["-j", "2", "--max-tries=100", "-M", mode, "-c", &clients, "-t", &blocks];
        // Without -n it vacuums and truncates before: the history is this mode's.
        let Some(said) = pgbench(&server, &arguments) else { return };
        assert!(said.contains("number of failed transactions: 0"), "{said}");
        let retried = said.lines().find(|line| line.starts_with("number of transactions retried"));
        println!("{mode}: {}", retried.unwrap_or("nothing was retried"));
        assert_eq!(count(&mut client, "pgbench_history"), CLIENTS * BLOCKS);
        total += number(&mut client, "SELECT sum(delta) FROM pgbench_history");
        for (column, table) in
            [("bbalance", "branches"), ("tbalance", "tellers"), ("abalance", "accounts")]
        {
            let sum = format!("SELECT sum({column}) FROM pgbench_{table}");
            assert_eq!(number(&mut client, &sum), total, "{table}, {mode}");
        }
    }
}
