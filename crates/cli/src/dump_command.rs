//! `dump`: the rows of a store as JSON lines or CSV.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use bench::{BenchError, DeviceVisitor, Limits, Progress};
use nvcaracal::dynamic::Value;
use pmem::Device;
use storage::TableDefinition;

use crate::args::{DumpArguments, Format};
use crate::output::{Done, Failure};
use crate::rows::{Looked, Table};

/// Carries a `dump` command out.
pub(crate) fn run(arguments: &DumpArguments) -> Done {
    let spec = bench::spec_of_path(&arguments.path)?;
    bench::open_device(&spec, Limits::read_only(&spec), Dump(arguments))?
}

struct Dump<'a>(&'a DumpArguments);

impl DeviceVisitor for Dump<'_> {
    /// Not all that can go wrong is the store's fault.
    type Output = Done;

    fn visit<D: Device>(self, device: Arc<D>) -> Result<Done, BenchError> {
        Ok(dump(&Looked::open(device)?, self.0))
    }
}

fn dump<D: Device>(store: &Looked<D>, arguments: &DumpArguments) -> Done {
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
    let Some(directory) = &arguments.out else {
        if arguments.format == Format::Csv && tables.len() > 1 {
            return Err(Failure::usage(
                "tables have different columns: choose one with --table, or a directory with --out",
            ));
        }
        let mut to = BufWriter::new(io::stdout().lock());
        for table in tables {
            let written = write_table(store, table, arguments.format, &mut to)?;
            match written.and_then(|()| to.flush()) {
                Ok(()) => {}
                // A reader that went away is no error.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
                Err(error) => {
                    return Err(Failure::new(format!("cannot write to standard output: {error}")));
                }
            }
        }
        return Ok(());
    };
    make_empty(directory)?;
    let bar = Progress::Shown.bar("dumping", tables.len() as u64, "tables");
    let mut heads = Vec::new();
    for table in tables {
        let path = directory.join(file_name(&table.definition.name, arguments.format));
        write_file(&path, |to| write_table(store, table, arguments.format, to))?;
        if arguments.format == Format::Csv {
            let rows = store.rows(table)?.len();
            write_head(&mut heads, table, &format!("\"rows\":0,\"csv_rows\":{rows}"))
                .expect("memory takes it");
        }
        bar.step("");
    }
    if arguments.format == Format::Csv {
        // What CSV cannot say: of which types the columns are.
        write_file(&directory.join("tables.jsonl"), |to| Ok(to.write_all(&heads)))?;
    }
    Ok(())
}

/// Makes a file; the outer result of what writes it is the store's.
fn write_file(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<io::Result<()>, Failure>,
) -> Done {
    let failed = |error| Failure::new(format!("cannot write {}: {error}", path.display()));
    let mut to = BufWriter::new(File::create_new(path).map_err(failed)?);
    write(&mut to)?.and_then(|()| to.flush()).map_err(failed)
}

/// Makes a directory, or finds it empty: nothing of an earlier dump is taken for this one.
fn make_empty(directory: &Path) -> Done {
    let path = directory.display();
    let failed = |error| Failure::new(format!("cannot create {path}: {error}"));
    fs::create_dir_all(directory).map_err(failed)?;
    match fs::read_dir(directory).map_err(failed)?.next() {
        None => Ok(()),
        Some(_) => Err(Failure::new(format!("{path} is not empty: choose a new directory"))),
    }
}

/// A file's name for a table's, of which any text is one.
fn file_name(table: &str, format: Format) -> String {
    let mut name = String::new();
    for byte in table.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' => name.push(char::from(byte)),
            other => name.push_str(&format!("%{other:02x}")),
        }
    }
    let extension = match format {
        Format::Jsonl => "jsonl",
        Format::Csv => "csv",
    };
    format!("{name}.{extension}")
}

/// The table whose name a file has.
pub(crate) fn table_of_file(path: &Path) -> String {
    let stem = path.file_stem().map_or_else(Default::default, |stem| stem.to_string_lossy());
    let mut name = Vec::new();
    let mut rest = stem.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let escaped = after.get(..2).filter(|_| byte == b'%');
        let escaped = escaped.and_then(|digits| str::from_utf8(digits).ok());
        match escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(escaped) => {
                name.push(escaped);
                rest = &after[2..];
            }
            None => {
                name.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&name).into_owned()
}

/// The outer result is the store's, the inner one that of writing.
fn write_table<D: Device>(
    store: &Looked<D>,
    table: &Table,
    format: Format,
    to: &mut dyn Write,
) -> Result<io::Result<()>, Failure> {
    let rows = store.rows(table)?;
    let mut write = || {
        match format {
            Format::Jsonl => write_head(to, table, &format!("\"rows\":{}", rows.len()))?,
            Format::Csv => {
                let fields = table.fields();
                let fields = if fields.is_empty() { vec!["value"] } else { fields };
                let names = ["key"].into_iter().chain(fields);
                write_line(to, names.map(|name| Some(name.to_string())))?;
            }
        }
        for row in &rows {
            let (key, value) = (table.key(&row.key), table.value(store.value(row)));
            match format {
                Format::Jsonl => writeln!(to, "{{\"key\":{key},\"value\":{value}}}")?,
                Format::Csv => write_line(to, cells(&key, &value, &table.fields()))?,
            }
        }
        Ok(())
    };
    Ok(write())
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
    let types = words.iter().filter(|words| !words.is_empty());
    let types = Value::List(types.map(|words| Value::Text(words.clone())).collect());
    let name = Value::Text(name.clone());
    writeln!(
        to,
        "{{\"table\":{name},\"index\":\"{index}\",\"key_bytes_max\":{key},\
         \"value_bytes_max\":{value},\"row_bytes\":{row},{heap}\"types\":{types},{rows}}}"
    )
}

/// A row's cells. A value of an older version has no cell for what it did not have, and one that is
/// no struct has all in its first.
fn cells<'v>(
    key: &'v Value,
    value: &'v Value,
    fields: &[&'v str],
) -> impl Iterator<Item = Option<String>> + use<'v> {
    let cells = match value {
        Value::Struct(named) if !fields.is_empty() => fields
            .iter()
            .map(|field| named.iter().find(|(name, _)| name == field))
            .map(|found| found.and_then(|(_, value)| cell(value)))
            .collect(),
        value => vec![cell(value)],
    };
    [cell(key)].into_iter().chain(cells)
}

/// Texts as they are, nothing for null, everything else as JSON.
fn cell(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Text(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
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
