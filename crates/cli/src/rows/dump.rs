//! `dump`: the rows of a store as JSON lines or CSV.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use bench::{Limits, Progress};
use nvcaracal::dynamic::Value;
use storage::TableId;
use storage::{StateHash, TableDefinition, row_hash};

use super::dump_files::{UNFINISHED_NAME, file_name};
use super::ending::{Contents, Ending, Hashed};
use super::load::state_hash_of_files;
use super::looked::{Looked, Table};
use crate::args::{DumpArguments, Format};
use crate::output::{Done, Failure};

/// Runs a `dump` command.
pub(crate) fn run(arguments: &DumpArguments) -> Done {
    let spec = bench::spec_of_path(&arguments.path)?;
    let device = bench::open_device(&spec, Limits::read_only(&spec))?;
    dump(&Looked::open(device)?, arguments)
}

fn dump(store: &Looked, arguments: &DumpArguments) -> Done {
    if let Some(later) = store.later() {
        if !arguments.at_checkpoint {
            let advice = "or leave that out with --at-checkpoint";
            return Err(Failure::new(format!("{}: {later}, {advice}", arguments.path)));
        }
        eprintln!("note: {later}");
    }
    let tables: Vec<&Table> = match arguments.table.as_slice() {
        [] => store.tables().iter().collect(),
        names => {
            let tables = names.iter().map(|name| store.table(name));
            tables.collect::<Result<_, _>>().map_err(Failure::usage)?
        }
    };
    match &arguments.out {
        Some(directory) => dump_into(store, &tables, arguments, directory),
        None => dump_to_standard_output(store, &tables, arguments.format),
    }
}

fn dump_to_standard_output(store: &Looked, tables: &[&Table], format: Format) -> Done {
    if format == Format::Csv && tables.len() > 1 {
        return Err(Failure::usage(
            "tables have different columns: choose one with --table, or a directory with --out",
        ));
    }
    let mut to = BufWriter::new(io::stdout().lock());
    let written = match format {
        Format::Csv => match tables.first() {
            Some(table) => write_table(store, table, format, &mut to)?.and_then(|_| to.flush()),
            None => Ok(()),
        },
        Format::Jsonl => write_lines(store, tables, to)?.map(drop),
    };
    match written {
        Ok(()) => Ok(()),
        // A reader that went away is no error.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Failure::new(format!("cannot write to standard output: {error}"))),
    }
}

/// Writes tables as JSON lines, and the line that ends them. The outer result is the store's, the
/// inner one that of writing.
fn write_lines(
    store: &Looked,
    tables: &[&Table],
    to: impl Write,
) -> Result<io::Result<Written>, Failure> {
    let (mut to, mut all) = (Ending::new(to), Written::default());
    for table in tables {
        match write_table(store, table, Format::Jsonl, &mut to)? {
            Ok(written) => all.add(written),
            Err(error) => return Ok(Err(error)),
        }
        to.section.tables += 1;
        to.section.rows = all.rows;
    }
    Ok(to.end().map(|()| all))
}

fn dump_into(
    store: &Looked,
    tables: &[&Table],
    arguments: &DumpArguments,
    directory: &Path,
) -> Done {
    let unfinished = write_files(store, tables, arguments.format, directory)?;
    unfinished.finish(store, arguments.no_verify)
}

/// Files that were written, and still have the mark beside them.
struct Unfinished<'a> {
    directory: &'a Path,
    mark: PathBuf,
    contents: Contents,
    hash: StateHash,
}

/// One file for each table. The directory has a mark from before the first to after the last, so
/// that a dump that was cut short does not pass for a whole one.
fn write_files<'a>(
    store: &Looked,
    tables: &[&Table],
    format: Format,
    directory: &'a Path,
) -> Result<Unfinished<'a>, Failure> {
    let mark = begin(directory)?;
    let bar = Progress::Shown.bar("dumping", tables.len() as u64, "tables");
    let (mut contents, mut heads, mut all) = (Contents::new(), Vec::new(), Written::default());
    for table in tables {
        let path = directory.join(file_name(&table.definition.name, format));
        let written = write_file(&path, &mut contents, |to| match format {
            Format::Csv => write_table(store, table, format, to),
            Format::Jsonl => write_lines(store, &[table], to),
        })?;
        if format == Format::Csv {
            write_head(&mut heads, table, &format!("\"rows\":0,\"csv_rows\":{}", written.rows))
                .expect("memory takes it");
        }
        all.add(written);
        bar.step("");
    }
    if format == Format::Csv {
        // What CSV cannot say: of which types the columns are.
        let path = directory.join("tables.jsonl");
        write_file(&path, &mut contents, |to| {
            let mut to = Ending::new(to);
            to.section.tables = tables.len() as u64;
            let written = to.write_all(&heads).and_then(|()| to.end());
            Ok(written.map(|()| Written::default()))
        })?;
    }
    (contents.tables, contents.rows) = (tables.len() as u64, all.rows);
    sync(directory)?;
    if tables.len() == store.tables().len() {
        compare("the rows of the store", all.hash, store.state_hash())?;
    }
    Ok(Unfinished { directory, mark, contents, hash: all.hash })
}

impl Unfinished<'_> {
    /// Reads the files back, and removes the mark if they say what was in the store.
    fn finish(self, store: &Looked, no_verify: bool) -> Done {
        let Self { directory, mark, contents, hash } = self;
        if no_verify {
            eprintln!("note: the files were not read back");
        } else {
            // Before the mark is removed, which would be in the way.
            let read = state_hash_of_files(directory, store)?;
            compare("what was read back from the files", read, Some(hash))?;
        }
        contents.write(directory)?;
        sync(directory)?;
        let failed = |error| Failure::new(format!("cannot remove {}: {error}", mark.display()));
        fs::remove_file(&mark).map_err(failed)?;
        sync(directory)?;
        let Contents { tables, rows, .. } = contents;
        let verified = if no_verify { "" } else { ", read back" };
        eprintln!("note: {tables} tables with {rows} rows dumped{verified}, state digest {hash}");
        Ok(())
    }
}

/// A dump says what is in the store, or nothing.
fn compare(what: &str, found: StateHash, wanted: Option<StateHash>) -> Done {
    match wanted {
        Some(wanted) if wanted != found => Err(Failure::new(format!(
            "{what} have state digest {found}, not {wanted}: this dump is not finished; check the \
             store with `nvcaracal check`"
        ))),
        _ => Ok(()),
    }
}

/// What was written of a table.
#[derive(Debug, Clone, Copy, Default)]
struct Written {
    rows: u64,
    hash: StateHash,
}

impl Written {
    fn add(&mut self, more: Self) {
        self.rows += more.rows;
        self.hash.merge(more.hash);
    }
}

/// Makes a file, and adds it to the contents of its directory; the outer result of what writes it
/// is the store's.
fn write_file(
    path: &Path,
    contents: &mut Contents,
    write: impl FnOnce(&mut dyn Write) -> Result<io::Result<Written>, Failure>,
) -> Result<Written, Failure> {
    let failed = |error| Failure::new(format!("cannot write {}: {error}", path.display()));
    let file = pmem::private::create_new_file(path).map_err(failed)?;
    let mut to = Hashed::new(BufWriter::new(file));
    let written = write(&mut to)?.map_err(failed)?;
    contents.add(path, to.sha);
    let file = to.to.into_inner().map_err(|error| failed(error.into_error()))?;
    file.sync_all().map_err(failed)?;
    Ok(written)
}

fn sync(directory: &Path) -> Done {
    let failed = |error| Failure::new(format!("cannot sync {}: {error}", directory.display()));
    File::open(directory).and_then(|directory| directory.sync_all()).map_err(failed)
}

/// Makes a directory, or finds it empty: nothing of an earlier dump passes for this one. Returns
/// the mark, which keeps a second dump away.
fn begin(directory: &Path) -> Result<PathBuf, Failure> {
    let path = directory.display();
    let failed = |error| Failure::new(format!("cannot create {path}: {error}"));
    pmem::check_outside(directory).map_err(|error| Failure::new(error.to_string()))?;
    pmem::private::create_directories(directory).map_err(failed)?;
    let mark = directory.join(UNFINISHED_NAME);
    let is_empty = fs::read_dir(directory).map_err(failed)?.next().is_none();
    match pmem::private::create_new_file(&mark) {
        Ok(file) if is_empty => {
            file.sync_all().map_err(failed)?;
            sync(directory)?;
            Ok(mark)
        }
        Ok(_) => {
            // It was not there before.
            fs::remove_file(&mark).map_err(failed)?;
            Err(Failure::new(format!("{path} is not empty: choose a new directory")))
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(Failure::new(format!(
            "{path} is not empty: {UNFINISHED_NAME} is of a dump that goes on or was cut short; \
             choose a new directory"
        ))),
        Err(error) => Err(failed(error)),
    }
}

/// The outer result is the store's, the inner one that of writing.
fn write_table(
    store: &Looked,
    table: &Table,
    format: Format,
    to: &mut dyn Write,
) -> Result<io::Result<Written>, Failure> {
    let rows = store.rows(table)?;
    let columns = table.types.columns();
    let begun = match format {
        Format::Jsonl => write_head(to, table, &format!("\"rows\":{}", rows.len())),
        Format::Csv => write_line(to, columns.iter().map(|column| Some(column.name.clone()))),
    };
    if let Err(error) = begun {
        return Ok(Err(error));
    }
    let mut written = Written { rows: rows.len() as u64, hash: StateHash::default() };
    for row in &rows {
        let value = store.value(row);
        written.hash.add(row_hash(TableId(table.number()), &row.key, value));
        let done = match format {
            Format::Jsonl => writeln!(to, "{}", table.types.line(&row.key, value)),
            Format::Csv => {
                let cells = table.types.cells(&columns, &row.key, value).ok_or_else(|| {
                    Failure::new(format!(
                        "table {:?}: the row with key {} cannot be written as CSV so that it could \
                         be had again: use --format jsonl",
                        table.definition.name,
                        table.types.key(&row.key)
                    ))
                })?;
                write_line(to, cells.into_iter())
            }
        };
        if let Err(error) = done {
            return Ok(Err(error));
        }
    }
    Ok(Ok(written))
}

/// The line that describes a table, and says how many rows follow.
fn write_head(to: &mut dyn Write, table: &Table, rows: &str) -> io::Result<()> {
    let Table { index, words, .. } = table;
    let TableDefinition {
        name,
        key_bytes_max: key,
        value_bytes_max: value,
        row_bytes: row,
        shared_heap_bytes: heap,
        ..
    } = &table.definition;
    // Most tables have none.
    let heap = if *heap > 0 { format!("\"shared_heap_bytes\":{heap},") } else { String::new() };
    let types = Value::List(words.iter().map(|words| Value::Text(words.clone())).collect());
    let name = Value::Text(name.clone());
    writeln!(
        to,
        "{{\"table\":{name},\"index\":\"{index}\",\"key_bytes_max\":{key},\
         \"value_bytes_max\":{value},\"row_bytes\":{row},{heap}\"types\":{types},{rows}}}"
    )
}

/// A line of comma-separated values, by RFC 4180. An empty text is quoted, nothing is not, so that
/// they can be told apart.
fn write_line(to: &mut dyn Write, cells: impl Iterator<Item = Option<String>>) -> io::Result<()> {
    for (i, cell) in cells.enumerate() {
        let comma = if i > 0 { "," } else { "" };
        match cell {
            None => write!(to, "{comma}")?,
            Some(cell) if cell.is_empty() || cell.contains([',', '"', '\n', '\r']) => {
                write!(to, "{comma}\"{}\"", cell.replace('"', "\"\""))?;
            }
            Some(cell) => write!(to, "{comma}{cell}")?,
        }
    }
    write!(to, "\r\n")
}

#[cfg(test)]
mod tests;
