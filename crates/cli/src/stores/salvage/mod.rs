//! `recover --salvage`: what can be read of a store that is refused goes into a new one, and what
//! cannot is listed. The damaged store is only read.
//!
//! The new store is written beside its place and gets its name when it is whole, so that an
//! interrupted salvage leaves nothing that could pass for one. Where rows or calls of the
//! damaged store are not in it, the exit code is 3.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use bench::{BenchError, Limits};
use pmem::DeviceSpec;
use serde::Serialize;
use storage::TableId;
use storage::salvage::{self, Found};

use crate::args::{StoreArguments, StorePath};
use crate::output::{Done, Failure, show};
use crate::rows::{Looked, Table};

mod not_replayed;

use not_replayed::NotReplayed;

/// How many rows that are lost the text names.
const LOST_SHOWN: usize = 20;
/// The exit code of a salvage after which something is lost.
const LOST_CODE: u8 = 3;

/// What came of it.
#[derive(Debug, Serialize)]
struct Report {
    from: String,
    to: String,
    /// Epoch of the checkpoint whose rows these are.
    epoch: u64,
    state_digest: String,
    /// Whether rows and digest are those of the checkpoint; absent if rows are lost, or the store
    /// did not know its digest.
    is_whole: Option<bool>,
    tables: Vec<OfTable>,
    lost: Vec<Lost>,
    /// The calls after the checkpoint, of which nothing is in the new store.
    not_replayed: NotReplayed,
}

impl Report {
    /// Whether everything that was answered is in the new store, as far as that is known.
    fn is_complete(&self) -> bool {
        self.lost.is_empty() && self.is_whole != Some(false) && self.not_replayed.calls == 0
    }
}

#[derive(Debug, Serialize)]
struct OfTable {
    table: String,
    /// Rows in the new store.
    rows: u64,
    /// How many of them had a pointer that led nowhere, and a value nevertheless.
    restored: u64,
    /// Rows that are not in it.
    lost: u64,
}

#[derive(Debug, Serialize)]
struct Lost {
    table: String,
    /// Absent if the key is damaged, too.
    key: Option<serde_json::Value>,
    /// Where the row is in the image.
    offset: u64,
    why: String,
}

/// Runs `recover --salvage`.
pub(crate) fn run(store: &StoreArguments, target: &Path) -> Done {
    let spec = bench::spec_of_path(&store.path)?;
    if fs::symlink_metadata(target).is_ok() {
        let what = format!("{} is there already: name a new directory", target.display());
        return Err(Failure::usage(what));
    }
    pmem::check_outside(target).map_err(|error| Failure::usage(error.to_string()))?;
    let part = beside(target)?;
    pmem::private::create_directory(&part).map_err(|error| {
        Failure::new(format!(
            "cannot create {}: {error} (if it is left of a salvage that did not end, remove it)",
            part.display()
        ))
    })?;
    let written = write(&spec, store, target, &part);
    if written.is_err() {
        // It was made above, and is known to no other process.
        let _ = fs::remove_dir_all(&part);
    }
    let report = written?;
    show(&report, store.json, || text(&report))?;
    match report.is_complete() {
        true => Ok(()),
        // The report has said what.
        false => Err(Failure { messages: Vec::new(), code: LOST_CODE }),
    }
}

/// Where the new store is written.
fn beside(target: &Path) -> Result<PathBuf, Failure> {
    let Some(name) = target.file_name() else {
        return Err(Failure::usage(format!("{} names no directory", target.display())));
    };
    let mut part = OsString::from(name);
    part.push(".part");
    Ok(target.with_file_name(part))
}

fn write(
    spec: &DeviceSpec,
    store: &StoreArguments,
    target: &Path,
    part: &Path,
) -> Result<Report, Failure> {
    let damaged = Looked::open(bench::open_device(spec, Limits::read_only(spec))?)?;
    let report = salvage_rows(&damaged, &store.path, target, part)?;
    let failed = |error| Failure::new(format!("cannot name {}: {error}", target.display()));
    fs::rename(part, target).map_err(failed)?;
    let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = File::open(parent.unwrap_or(Path::new("."))).map_err(failed)?;
    parent.sync_all().map_err(failed)?;
    Ok(report)
}

/// Writes the rows of a store that are whole to a new one.
fn salvage_rows(
    store: &Looked,
    from: &StorePath,
    target: &Path,
    part: &Path,
) -> Result<Report, BenchError> {
    let found = salvage::find(store.opened());
    let spec = DeviceSpec::File(part.to_path_buf());
    let limits = Limits::new(bench::IMAGE_LIMIT_BYTES_DEFAULT, bench::LOG_LIMIT_BYTES_DEFAULT);
    let hash = salvage::write(store.opened(), &found, bench::open_device(&spec, limits)?)?;
    let of = |number: u16| {
        store.tables().iter().find(|table| table.number() == number).expect("rows have a table")
    };
    let tables = store.tables().iter().map(|table| of_table(table, &found)).collect();
    let lost = found.lost.iter().map(|lost| {
        let table = of(lost.table.0);
        let key = lost.key.as_ref().map(|key| json(&table.types.key(key).to_string()));
        let name = table.definition.name.clone();
        Lost { table: name, key, offset: lost.row, why: lost.why.clone() }
    });
    Ok(Report {
        from: from.to_string(),
        to: target.display().to_string(),
        epoch: store.opened().store.checkpoint_epoch().0,
        state_digest: hash.to_string(),
        is_whole: found.is_whole,
        tables,
        lost: lost.collect(),
        not_replayed: NotReplayed::of(store),
    })
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

fn of_table(table: &Table, found: &Found) -> OfTable {
    let rows = || found.rows.iter().filter(|row| row.table == TableId(table.number()));
    OfTable {
        table: table.definition.name.clone(),
        rows: rows().count() as u64,
        restored: rows().filter(|row| row.is_restored).count() as u64,
        lost: found.lost.iter().filter(|lost| lost.table == TableId(table.number())).count() as u64,
    }
}

fn text(report: &Report) -> String {
    let Report { from, to, epoch, state_digest, .. } = report;
    let mut lines = vec![format!(
        "rows of {from} as of the checkpoint of epoch {epoch}, written to {to}, state digest \
         {state_digest}"
    )];
    for OfTable { table, rows, restored, lost } in &report.tables {
        let mut line = format!("  {table}: {rows} rows");
        if *restored > 0 {
            line += &format!(", {restored} of them with a value that its pointer did not lead to");
        }
        if *lost > 0 {
            line += &format!(", {lost} rows LOST");
        }
        lines.push(line);
    }
    for Lost { table, key, offset, why } in report.lost.iter().take(LOST_SHOWN) {
        let key = key.as_ref().map_or("a key that cannot be read".into(), |key| key.to_string());
        lines.push(format!("lost: table {table:?}, {key}, row at offset {offset}: {why}"));
    }
    if report.lost.len() > LOST_SHOWN {
        lines.push(format!("and {} more rows, which --json lists", report.lost.len() - LOST_SHOWN));
    }
    lines.extend(report.not_replayed.lines());
    lines.push(match report.is_whole {
        Some(true) => "nothing of the checkpoint is lost: its digest is that of these rows".into(),
        Some(false) => "each row can be read, but all of them together do not have the digest of \
                        the checkpoint: bytes of some value are not what was written"
            .into(),
        None if report.lost.is_empty() => {
            "the store did not know its digest: the rows were compared with none".into()
        }
        None => format!("{} rows are lost; all others are in {to}", report.lost.len()),
    });
    lines.join("\n") + "\n"
}
