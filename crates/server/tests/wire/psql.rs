//! What psql prints is what it prints on PostgreSQL 15, by the golden files that
//! `scripts/golden_sql.sh` made there. They hold for psql 15: 15.18 and 15.20 print the same of
//! these scripts, although what it does behind a refused COPY FROM STDIN has changed between them.
//! Scripts have `\copy ... FROM /dev/null` for a COPY that is refused.

use crate::support::Server;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

/// What is missing for the comparison: psql of the version of the golden files.
fn missing() -> Option<String> {
    let Ok(said) = Command::new("psql").arg("--version").output() else {
        return Some("psql is not installed".to_owned());
    };
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let is_known = said.starts_with("psql (PostgreSQL) 15.");
    (!is_known).then(|| format!("the golden files are of psql 15, and this is {}", said.trim()))
}

/// Runs a script through psql in the script's folder.
fn psql(server: &Server, script: &Path) -> String {
    let mut psql = Command::new("psql");
    psql.args(["-X", "-h", "127.0.0.1", "-U", "nvcaracal", "-f"])
        .arg(script.file_name().unwrap())
        .args(["-p", &server.address.port().to_string()])
        .current_dir(script.parent().unwrap())
        .env("PGTZ", "UTC")
        .stdin(Stdio::null());
    let (mut reader, writer) = std::io::pipe().unwrap();
    let both = writer.try_clone().unwrap();
    let mut child = psql.stdout(writer).stderr(both).spawn().unwrap();
    // The command keeps its end of the pipe open until it is dropped.
    drop(psql);
    let mut said = String::new();
    reader.read_to_string(&mut said).unwrap();
    assert!(child.wait().unwrap().success(), "{said}");
    said
}

#[test]
fn psql_prints_what_it_prints_on_postgresql() {
    if let Some(why) = missing() {
        eprintln!("SKIPPED: {why}: no script was run");
        return;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sql");
    let mut scripts: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "sql"))
        .collect();
    scripts.sort();
    assert!(!scripts.is_empty());
    for script in scripts {
        let server = Server::start();
        let found = psql(&server, &script);
        let golden = std::fs::read_to_string(script.with_extension("out")).unwrap();
        let mut lines = found.lines().zip(golden.lines()).enumerate();
        let differs = lines.find(|(_, (found, golden))| found != golden);
        assert_eq!(differs, None, "{}: {found}", script.display());
        assert_eq!(found.lines().count(), golden.lines().count(), "{found}");
    }
}
