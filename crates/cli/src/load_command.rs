//! `load`: rows from JSON lines or CSV, as `dump` writes them, into a new store or one that is
//! closed.
//!
//! The engine inserts them as it does all rows: calls of a procedure of this command, in epochs,
//! and a checkpoint at the end. The program whose tables these are finds them there.

mod csv;
mod lines;
mod tables;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bench::{BenchError, DeviceVisitor, Limits, Progress};
use engine::{
    Abort, Answer, Calls, Definitions, Draws, Engine, EngineConfig, EpochInfo, ProcedureDefinition,
    ProcedureTable, Stop, Transaction, WriteSet,
};
use pmem::{Device, DeviceSpec};
use serde::Serialize;

use crate::args::LoadArguments;
use crate::dump_command::table_of_file;
use crate::output::{Done, Failure, show};
use lines::{Head, Line, Lines};
use tables::Tables;

/// Bytes of rows in a call, and calls in an epoch.
const CALL_BYTES: usize = 64 << 10;
const EPOCH_CALLS: usize = 200;
/// Draws of a call: a sequence is brought to its next number by drawing.
const DRAWS: u64 = 10_000;

/// What was loaded.
#[derive(Debug, Serialize)]
struct Loaded {
    tables: Vec<LoadedTable>,
    state_digest: String,
}

#[derive(Debug, Serialize)]
struct LoadedTable {
    table: String,
    rows: u64,
}

/// Carries a `load` command out.
pub(crate) fn run(arguments: &LoadArguments) -> Done {
    let files = files(&arguments.files)?;
    let is_new = !Path::new(&arguments.path).exists();
    let spec = match is_new && !arguments.path.contains(':') {
        true => DeviceSpec::File(PathBuf::from(&arguments.path)),
        false => bench::spec_of_path(&arguments.path)?,
    };
    let limits = match is_new {
        true => Limits::new(bench::IMAGE_LIMIT_BYTES_DEFAULT, bench::LOG_LIMIT_BYTES_DEFAULT),
        false => Limits::existing(&spec),
    };
    let heads = lines::heads(files.iter().filter(|file| !is_csv(file)))?;
    if is_new {
        // All of what is to be loaded is read once before anything is created.
        let described = Tables::of_heads(&heads)?;
        let check = |file: &PathBuf| each_row(file, &described, &heads, |_, _, _| Ok(()));
        files.iter().try_for_each(check)?;
    }
    let load = Load { files: &files, heads, is_new };
    let loaded = bench::open_device(&spec, limits, load).map_err(Failure::from).flatten();
    if let (Err(_), true, DeviceSpec::File(directory)) = (&loaded, is_new, &spec) {
        // A part of the rows is nobody's store.
        let _ = std::fs::remove_dir_all(directory);
    }
    let loaded = loaded?;
    show(&loaded, arguments.json, || {
        let lines = loaded.tables.iter().map(|of| format!("  {}: {} rows\n", of.table, of.rows));
        let rows: String = lines.collect();
        format!("loaded into {}\n{rows}state digest {}\n", arguments.path, loaded.state_digest)
    })
}

/// Whether a file is of comma-separated values, else it is of JSON lines.
fn is_csv(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "csv")
}

/// The files, and those in the directories, by their names.
fn files(named: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in named {
        let failed = |error| Failure::new(format!("cannot read {}: {error}", path.display()));
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        for entry in std::fs::read_dir(path).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if is_csv(&path) || path.extension().is_some_and(|extension| extension == "jsonl") {
                files.push(path);
            }
        }
    }
    files.sort();
    match files.is_empty() {
        true => Err(Failure::usage("there is no file that ends in .jsonl or .csv")),
        false => Ok(files),
    }
}

struct Load<'a> {
    files: &'a [PathBuf],
    heads: Vec<Head>,
    is_new: bool,
}

impl DeviceVisitor for Load<'_> {
    /// Not all that can go wrong is the store's fault.
    type Output = Result<Loaded, Failure>;

    fn visit<D: Device>(self, device: Arc<D>) -> Result<Self::Output, BenchError> {
        Ok(self.load(device))
    }
}

impl Load<'_> {
    fn load<D: Device>(self, device: Arc<D>) -> Result<Loaded, Failure> {
        let tables = match self.is_new {
            true => Tables::of_heads(&self.heads)?,
            false => {
                let tables = Tables::of_store(Arc::clone(&device), &self.heads)?;
                // The same before anything is changed.
                let check = |file: &PathBuf| each_row(file, &tables, &self.heads, |_, _, _| Ok(()));
                self.files.iter().try_for_each(check)?;
                tables
            }
        };
        let config = EngineConfig { workers: 1, ..EngineConfig::default() };
        let mut procedures = |_: &[u16]| Ok(procedures());
        let definitions = Definitions::new(&tables.schemas, &mut procedures);
        let opened = Engine::open_with(device, config, definitions).map_err(BenchError::from)?;
        let mut loading = Loading {
            engine: opened.0,
            calls: Calls::new(),
            arguments: Vec::new(),
            rows: vec![0; tables.schemas.len()],
        };
        let bar = Progress::Shown.bar("loading", self.files.len() as u64, "files");
        for file in self.files {
            each_row(file, &tables, &self.heads, |of, key, value| loading.row(of, key, value))?;
            bar.step("");
        }
        loading.end(&tables)
    }
}

/// What is done with a row: its table's number and whether that is a sequence, its key and its
/// value as they are stored.
type Each<'e> = &'e mut dyn FnMut((u16, bool), &[u8], &[u8]) -> Done;

/// Reads a file, and does something with each row.
fn each_row(
    path: &Path,
    tables: &Tables,
    heads: &[Head],
    mut each: impl FnMut((u16, bool), &[u8], &[u8]) -> Done,
) -> Done {
    match is_csv(path) {
        true => each_row_of_csv(path, tables, heads, &mut each),
        false => each_row_of_lines(path, tables, &mut each),
    }
}

fn each_row_of_lines(path: &Path, tables: &Tables, each: Each<'_>) -> Done {
    let mut lines = Lines::open(path)?;
    let mut table = None;
    while let Some(line) = lines.next()? {
        match line {
            Line::Head(head) => table = tables.find(&head.table),
            Line::Row(row) => {
                let (number, of) = table.expect("there is no row without a head before it");
                let (key, value) = of.bytes(&row).map_err(|what| lines.failure(&what))?;
                each((number, of.is_sequence), &key, &value)?;
            }
        }
    }
    Ok(())
}

/// The rows of the table after which the file is named.
fn each_row_of_csv(path: &Path, tables: &Tables, heads: &[Head], each: Each<'_>) -> Done {
    let name = table_of_file(path);
    let Some((number, of)) = tables.find(&name) else {
        return Err(Failure::new(format!(
            "{}: there is no table {name:?}, and CSV does not say of which types its columns are: \
             load it into a store that has the table, or with the tables.jsonl of its dump",
            path.display()
        )));
    };
    let mut rows = csv::Rows::open(path, of.columns())?;
    let mut count = 0;
    while let Some(row) = rows.next()? {
        let (key, value) = of.bytes(&row).map_err(|what| rows.failure(&what))?;
        each((number, of.is_sequence), &key, &value)?;
        count += 1;
    }
    let announced = heads.iter().find(|head| head.table == name).and_then(|head| head.csv_rows);
    match announced {
        Some(announced) if announced != count => {
            Err(rows.failure(&format!("the file ends after {count} rows of {announced}")))
        }
        _ => Ok(()),
    }
}

struct Loading<D: Device> {
    engine: Engine<D>,
    calls: Calls,
    /// Of the call that is being filled.
    arguments: Vec<u8>,
    /// Of each table.
    rows: Vec<u64>,
}

impl<D: Device> Loading<D> {
    fn row(&mut self, (table, is_sequence): (u16, bool), key: &[u8], value: &[u8]) -> Done {
        self.rows[usize::from(table)] += 1;
        if is_sequence {
            return self.draw(table, key, value);
        }
        let len = |bytes: &[u8]| (bytes.len() as u32).to_le_bytes();
        self.arguments.extend_from_slice(&table.to_le_bytes());
        for bytes in [key, value] {
            self.arguments.extend_from_slice(&len(bytes));
            self.arguments.extend_from_slice(bytes);
        }
        if self.arguments.len() >= CALL_BYTES { self.push(INSERT) } else { Ok(()) }
    }

    /// Brings a sequence to its next number.
    fn draw(&mut self, table: u16, key: &[u8], next: &[u8]) -> Done {
        self.push(INSERT)?;
        let next = next.try_into().map_or(0, u64::from_le_bytes);
        for first in (0..next).step_by(DRAWS as usize) {
            self.arguments.extend_from_slice(&table.to_le_bytes());
            self.arguments.extend_from_slice(key);
            self.arguments.extend_from_slice(&(next - first).min(DRAWS).to_le_bytes());
            self.push(DRAW)?;
        }
        Ok(())
    }

    /// Ends a call; runs an epoch of those that are there, if they are many.
    fn push(&mut self, procedure: u16) -> Done {
        if !self.arguments.is_empty() {
            self.calls.push(procedure, &self.arguments).map_err(BenchError::from)?;
            self.arguments.clear();
        }
        if self.calls.len() >= EPOCH_CALLS { self.run() } else { Ok(()) }
    }

    fn run(&mut self) -> Done {
        let info = EpochInfo { timestamp_ns: 0, seed: 0 };
        let outcome = self.engine.run_epoch(&self.calls, info).map_err(BenchError::from)?;
        for position in 0..outcome.len() {
            match outcome.answer(position) {
                Answer::Committed(_) => {}
                other => return Err(Failure::new(format!("rows were not inserted: {other:?}"))),
            }
        }
        self.calls.clear();
        Ok(())
    }

    fn end(mut self, tables: &Tables) -> Result<Loaded, Failure> {
        self.push(INSERT)?;
        self.run()?;
        let state_digest = self.engine.state_hash().to_string();
        self.engine.close().map_err(BenchError::from)?;
        let rows = tables
            .schemas
            .iter()
            .zip(self.rows)
            .map(|(schema, rows)| LoadedTable { table: schema.definition.name.clone(), rows });
        Ok(Loaded { tables: rows.filter(|of| of.rows > 0).collect(), state_digest })
    }
}

/// Numbers of the procedures.
const INSERT: u16 = 0;
const DRAW: u16 = 1;

fn procedures() -> ProcedureTable {
    let mut table = ProcedureTable::new();
    table.add(ProcedureDefinition {
        name: "nvcaracal load rows",
        draws: None,
        write_set: |arguments, set: &mut WriteSet<'_>| {
            for (table, key, _) in rows_in(arguments) {
                set.insert(table, key);
            }
            Ok(())
        },
        body: |arguments, tx: &mut Transaction<'_>| {
            rows_in(arguments).try_for_each(|(table, key, value)| tx.insert(table, key, value))
        },
        pieces: None,
    });
    table.add(ProcedureDefinition {
        name: "nvcaracal load sequence",
        draws: Some(|arguments, draws: &mut Draws<'_>| -> Result<(), Abort> {
            let word = |at: usize| arguments[at..at + 8].try_into().expect("8 bytes");
            let table = u16::from_le_bytes([arguments[0], arguments[1]]);
            for _ in 0..u64::from_le_bytes(word(10)) {
                draws.draw(table, u64::from_be_bytes(word(2)));
            }
            Ok(())
        }),
        write_set: |_, _| Ok(()),
        body: |_, _| -> Result<(), Stop> { Ok(()) },
        pieces: None,
    });
    table
}

/// The rows of a call.
fn rows_in(mut rest: &[u8]) -> impl Iterator<Item = (u16, &[u8], &[u8])> {
    fn take<'r>(rest: &mut &'r [u8]) -> &'r [u8] {
        let (len, after) = rest.split_first_chunk().expect("written by this command");
        let (bytes, after) = after.split_at(u32::from_le_bytes(*len) as usize);
        *rest = after;
        bytes
    }
    std::iter::from_fn(move || {
        let (table, after) = rest.split_first_chunk()?;
        rest = after;
        Some((u16::from_le_bytes(*table), take(&mut rest), take(&mut rest)))
    })
}
