//! What psql prints is what it prints on PostgreSQL 15, by the golden files that
//! `scripts/golden_sql.sh` made there.

use crate::support::Server;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs a script through psql in the script's folder; `None` if there is no psql.
fn psql(server: &Server, script: &Path) -> Option<String> {
    let mut psql = Command::new("psql");
    psql.args(["-X", "-h", "127.0.0.1", "-U", "nvcaracal", "-f"])
        .arg(script.file_name().unwrap())
        .args(["-p", &server.address.port().to_string()])
        .current_dir(script.parent().unwrap())
        .env("PGTZ", "UTC")
        .stdin(Stdio::null());
    let (mut reader, writer) = std::io::pipe().unwrap();
    let both = writer.try_clone().unwrap();
    let mut child = psql.stdout(writer).stderr(both).spawn().ok()?;
    // The command keeps its end of the pipe open until it is dropped.
    drop(psql);
    let mut said = String::new();
    reader.read_to_string(&mut said).unwrap();
    assert!(child.wait().unwrap().success(), "{said}");
    Some(said)
}

#[test]
fn psql_prints_what_it_prints_on_postgresql() {
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
        let Some(found) = psql(&server, &script) else {
            eprintln!("SKIPPED: psql is not installed, so {} was not run", script.display());
            return;
        };
        let golden = std::fs::read_to_string(script.with_extension("out")).unwrap();
        let mut lines = found.lines().zip(golden.lines()).enumerate();
        let differs = lines.find(|(_, (found, golden))| found != golden);
        assert_eq!(differs, None, "{}: {found}", script.display());
        assert_eq!(found.lines().count(), golden.lines().count(), "{found}");
    }
}
