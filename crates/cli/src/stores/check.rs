//! `check`: reads a whole store and says what is wrong with it.

use std::sync::Arc;

use bench::{BenchError, Limits};
use pmem::AnyDevice;
use serde::Serialize;
use storage::check::{CheckReport, check};
use storage::{Store, StoreOptions};

use crate::args::StoreArguments;
use crate::output::{Done, Failure, show};

/// What the checker found, as shown.
#[derive(Debug, Default, Serialize)]
struct Found {
    /// Epoch of the checkpoint; absent if the store cannot be read.
    epoch: Option<u64>,
    /// Digest of all tables as of the checkpoint, computed from the rows.
    state_digest: Option<String>,
    /// Whether the checkpoint knows its digest, so that the two could be compared; absent if the
    /// store cannot be read.
    state_digest_stored: Option<bool>,
    /// Whether the checkpoint keeps the indexes of the tables, which were compared with the rows;
    /// absent if the rows are damaged.
    indexes_kept: Option<bool>,
    clean: bool,
    problems: Vec<String>,
    /// Rows of each table.
    tables: Vec<TableRows>,
    /// What it remembers of the programs that opened it; absent if the store cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    remembered: Option<Past>,
    /// Epochs after the checkpoint that the next open replays.
    committed_epochs: Vec<u64>,
    /// Epoch that a recovery comes to.
    recovers_to_epoch: Option<u64>,
}

#[derive(Debug, Serialize)]
struct TableRows {
    table: String,
    rows: u64,
}

/// What a store remembers of the programs that opened it.
#[derive(Debug, Default, Serialize)]
struct Past {
    /// Tables that the last program left alone.
    ignored_tables: Vec<String>,
    /// Names that tables had.
    names: Vec<FormerName>,
    /// Procedures that have been in a later version than the first.
    procedures: Vec<LastVersion>,
}

#[derive(Debug, Serialize)]
struct FormerName {
    name: String,
    /// The name that the table has now; absent if it was dropped.
    now: Option<String>,
}

#[derive(Debug, Serialize)]
struct LastVersion {
    procedure: String,
    version: u32,
}

impl Past {
    fn text(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for table in &self.ignored_tables {
            lines.push(format!("  table {table:?} was ignored by the last program"));
        }
        for FormerName { name, now } in &self.names {
            lines.push(match now {
                Some(now) => format!("  table {name:?} was renamed, and is {now:?} now"),
                None => format!("  table {name:?} was dropped"),
            });
        }
        for LastVersion { procedure, version } in &self.procedures {
            lines.push(format!("  procedure {procedure:?}: version {version} or later"));
        }
        lines
    }
}

/// Reads it; what makes no sense is a problem.
fn past(device: Arc<AnyDevice>, problems: &mut Vec<String>) -> Option<Past> {
    let options = StoreOptions { create: false, ..StoreOptions::default() };
    let opened = Store::open(device, &options).map_err(engine::EngineError::from);
    match opened.and_then(|opened| engine::past_in_words(&opened.store)) {
        Ok(engine::PastInWords { gone, versions, ignored }) => Some(Past {
            ignored_tables: ignored,
            names: gone.into_iter().map(|(name, now)| FormerName { name, now }).collect(),
            procedures: versions
                .into_iter()
                .map(|(procedure, version)| LastVersion { procedure, version })
                .collect(),
        }),
        Err(error) => {
            problems.push(error.to_string());
            None
        }
    }
}

fn check_device(device: Arc<AnyDevice>) -> Result<Found, BenchError> {
    let mut found = found(check(Arc::clone(&device))?);
    found.remembered = past(Arc::clone(&device), &mut found.problems);
    found.clean = found.problems.is_empty();
    if found.problems.is_empty() {
        match engine::check_kept_indexes(device) {
            Ok(are_kept) => found.indexes_kept = Some(are_kept),
            Err(error) => found.problems.push(error.to_string()),
        }
        found.clean = found.problems.is_empty();
    }
    Ok(found)
}

/// Runs a `check` command.
pub(crate) fn run(arguments: &StoreArguments) -> Done {
    let spec = bench::spec_of_path(&arguments.path)?;
    let found = match bench::open_device(&spec, Limits::read_only(&spec)).and_then(check_device) {
        Ok(found) => found,
        // Damage is what this command is asked for; anything else keeps it from answering.
        Err(error) if error.is_corrupt() => {
            Found { problems: vec![error.to_string()], ..Found::default() }
        }
        Err(error) => return Err(error.into()),
    };
    show(&found, arguments.json, || text(&found, &arguments.path.to_string()))?;
    if found.clean {
        return Ok(());
    }
    let messages = found.problems.iter().map(|problem| format!("{}: {problem}", arguments.path));
    Err(Failure::all(messages.collect()))
}

fn found(report: CheckReport) -> Found {
    let last = report.committed_epochs.last().copied().unwrap_or(report.epoch);
    let tables = report.rows.into_iter().map(|(table, rows)| TableRows { table, rows });
    Found {
        epoch: Some(report.epoch.0),
        state_digest: Some(report.state_hash.to_string()),
        state_digest_stored: Some(report.hash_is_stored),
        indexes_kept: None,
        clean: report.problems.is_empty(),
        problems: report.problems,
        tables: tables.collect(),
        remembered: None,
        recovers_to_epoch: Some(last.0),
        committed_epochs: report.committed_epochs.iter().map(|epoch| epoch.0).collect(),
    }
}

fn text(found: &Found, path: &str) -> String {
    let mut lines = Vec::new();
    if let (Some(epoch), Some(digest)) = (found.epoch, &found.state_digest) {
        lines.push(format!("checkpoint of epoch {epoch}, state digest {digest}"));
        if found.state_digest_stored == Some(false) {
            let why = "the store was run without the state hash";
            lines.push(format!("that digest was compared with none: {why}"));
        }
    }
    for TableRows { table, rows } in &found.tables {
        lines.push(format!("  {table}: {rows} rows"));
    }
    lines.extend(found.remembered.iter().flat_map(Past::text));
    if found.indexes_kept == Some(true) {
        lines.push("the kept indexes are those of the rows".into());
    }
    match (found.committed_epochs.as_slice(), found.recovers_to_epoch) {
        ([], _) | (_, None) => {}
        (committed, Some(last)) => {
            lines.push(format!(
                "{} committed epochs to replay, up to epoch {last}",
                committed.len()
            ));
        }
    }
    lines.push(match found.problems.len() {
        0 => format!("{path} is clean"),
        n => format!("{path} is NOT clean: {n} problems"),
    });
    lines.join("\n") + "\n"
}
