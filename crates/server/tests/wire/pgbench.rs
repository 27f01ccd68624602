//! pgbench's own script, a block of five statements, in all its modes.

use crate::support::{Client, Server};
use std::process::Command;

const ACCOUNTS: usize = 100_000;
const CLIENTS: usize = 8;
const BLOCKS: usize = 25;

fn tables(client: &mut Client) {
    client.query(
        "CREATE TABLE pgbench_branches (bid int PRIMARY KEY, bbalance int, filler char(88))",
    );
    client.query("CREATE TABLE pgbench_tellers (tid int PRIMARY KEY, bid int, tbalance int)");
    client.query("CREATE TABLE pgbench_accounts (aid int PRIMARY KEY, bid int, abalance int)");
    client.query(
        "CREATE TABLE pgbench_history \
         (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22))",
    );
    client.query("INSERT INTO pgbench_branches VALUES (1, 0)");
    for tid in 1..=10 {
        client.query(&format!("INSERT INTO pgbench_tellers VALUES ({tid}, 1, 0)"));
    }
    for from in (0..ACCOUNTS).step_by(1_000) {
        let rows: Vec<String> = (1..=1_000).map(|at| format!("({}, 1, 0)", from + at)).collect();
        let insert = format!("INSERT INTO pgbench_accounts VALUES {}", rows.join(", "));
        assert_eq!(client.query(&insert), ["INSERT 0 1000", "ready"]);
    }
}

#[test]
fn pgbench_runs_its_own_script() {
    let server = Server::start();
    let mut client = server.client();
    tables(&mut client);
    for (at, mode) in ["simple", "extended", "prepared"].into_iter().enumerate() {
        let mut pgbench = Command::new("pgbench");
        pgbench
            .args(["-n", "-h", "127.0.0.1", "-U", "nvcaracal", "-j", "2", "--max-tries=100"])
            .args(["-p", &server.address.port().to_string(), "-M", mode])
            .args(["-c", &CLIENTS.to_string(), "-t", &BLOCKS.to_string(), "nvcaracal"]);
        let Ok(output) = pgbench.output() else {
            eprintln!("SKIPPED: pgbench is not installed");
            return;
        };
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}{complaints}");
        assert!(said.contains("number of failed transactions: 0"), "{said}{complaints}");
        let retried = said.lines().find(|line| line.starts_with("number of transactions retried"));
        println!("{mode}: {}", retried.unwrap_or("nothing was retried"));
        let count = format!("row {}", (at + 1) * CLIENTS * BLOCKS);
        assert_eq!(client.query("SELECT count(*) FROM pgbench_history")[0], count);
        let sums = [
            "SELECT sum(delta) FROM pgbench_history",
            "SELECT sum(bbalance) FROM pgbench_branches",
            "SELECT sum(tbalance) FROM pgbench_tellers",
            "SELECT sum(abalance) FROM pgbench_accounts",
        ];
        let sums = sums.map(|query| client.query(query)[0].clone());
        assert!(sums.iter().all(|sum| *sum == sums[0]), "{sums:?}");
    }
}
