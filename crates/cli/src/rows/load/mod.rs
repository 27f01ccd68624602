//! `load`: rows from JSON lines or CSV, as `dump` writes them, into a new store or one that is
//! closed.
//!
//! 1. All files are read and checked: lines, types, lengths, keys that come twice.
//! 2. The store is opened under its lock, and gets a mark that says what is being loaded. Any
//!    program else is refused a store with a mark.
//! 3. The engine inserts the rows as it does all rows: calls of procedures of this command, in
//!    epochs. At the end there is a checkpoint, whose state hash must be that of the rows.
//! 4. The mark is removed.
//!
//! A load that ends in between is repeated: the rows that are there already are found. Nothing is
//! ever removed but the mark.

mod csv;
mod first_pass;
mod input;
mod lines;
mod loading;
mod mark;
mod of_server;
mod reading;
mod tables;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use storage::TableId;

use bench::{BenchError, Limits};
use engine::{Definitions, Engine, EngineConfig};
use first_pass::Checked;
use lines::Head;
use loading::{Counts, Loading};
use mark::{Kind, Mark};
use pmem::{AnyDevice, Device, DeviceSpec, Dram};
use reading::is_csv;
use serde::Serialize;
use tables::Tables;

use crate::args::LoadArguments;
use crate::output::{Done, Failure, show};
use crate::rows::dump_files::UNFINISHED_NAME;
use crate::rows::ending::{Contents, END_NAME};
use crate::rows::looked::Looked;

/// What was loaded.
#[derive(Debug, Serialize)]
struct Loaded {
    /// Whether the store was made by this.
    new: bool,
    /// Whether a load that was cut short was brought to its end.
    finished_an_earlier_one: bool,
    tables: Vec<LoadedTable>,
    state_digest: String,
}

#[derive(Debug, Serialize)]
struct LoadedTable {
    table: String,
    /// In the files.
    rows: u64,
    #[serde(flatten)]
    counts: Counts,
}

/// Runs a `load` command.
pub(crate) fn run(arguments: &LoadArguments) -> Done {
    let must_end = !arguments.without_end;
    let files = files(&arguments.files, must_end)?;
    let heads = lines::heads(files.iter().filter(|file| !is_csv(file)), must_end)?;
    let path: &Path = arguments.path.as_ref();
    let spec = match path.exists() || arguments.path.to_string().contains(':') {
        true => bench::spec_of_path(path)?,
        false => DeviceSpec::File(path.to_path_buf()),
    };
    let load = Load { files: &files, heads: &heads, checked_for_new: None, arguments };
    let die_at = arguments.die_at.clone();
    let existing = Limits { loading: true, die_at, ..Limits::existing(&spec) };
    let loaded = match bench::open_device(&spec, existing) {
        Err(error) if error.is_missing() => load.into_new(&spec)?,
        device => load.load(device?)?,
    };
    show(&loaded, arguments.json, || text(&loaded, &arguments.path.to_string()))
}

fn text(loaded: &Loaded, path: &str) -> String {
    let mut text = match (loaded.new, loaded.finished_an_earlier_one) {
        (true, false) => format!("loaded into {path}, which is new\n"),
        (false, false) => format!("loaded into {path}\n"),
        (_, true) => format!("loaded into {path}, where a load had been cut short\n"),
    };
    for LoadedTable { table, rows, counts } in &loaded.tables {
        let Counts { inserted, replaced, unchanged } = counts;
        text.push_str(&format!(
            "  {table}: {rows} rows: {inserted} inserted, {replaced} replaced, {unchanged} were \
             there\n"
        ));
    }
    text + &format!("state digest {}\n", loaded.state_digest)
}

/// The files, and those in the directories, by their names. With `must_end` all files of a dump
/// have to be among them, also where each is named.
fn files(named: &[PathBuf], must_end: bool) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in named {
        let directory = if path.is_dir() { path } else { directory_of(path) };
        let beside = directory.join(UNFINISHED_NAME);
        if beside.exists() {
            let what = "this dump goes on, or did not come to its end: it is not loaded";
            return Err(Failure::new(format!("{}: {what}", beside.display())));
        }
        if path.is_dir() {
            let mut found = files_in(path)?;
            if must_end && !found.is_empty() {
                Contents::check(path, &found)?;
            }
            files.append(&mut found);
        } else if !path.ends_with(END_NAME) {
            files.push(path.clone());
        }
    }
    files.sort();
    if let Some(duplicate) = files.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Failure::usage(format!("{} is named twice", duplicate[0].display())));
    }
    if must_end {
        check_named(named, &files)?;
    }
    match files.is_empty() {
        true => Err(Failure::usage("there is no file that ends in .jsonl or .csv")),
        false => Ok(files),
    }
}

/// Checks that files which were named one by one are all of their dumps.
fn check_named(named: &[PathBuf], files: &[PathBuf]) -> Done {
    let directories: BTreeSet<_> =
        named.iter().filter(|path| !path.is_dir()).map(|path| directory_of(path)).collect();
    for directory in directories {
        if directory.join(END_NAME).is_file() {
            let of_it = files.iter().filter(|file| directory_of(file) == directory);
            Contents::check(directory, &of_it.cloned().collect::<Vec<_>>())?;
        }
    }
    Ok(())
}

fn directory_of(file: &Path) -> &Path {
    match file.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// The files of rows in a directory.
fn files_in(directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    let failed = |error| Failure::new(format!("cannot read {}: {error}", directory.display()));
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if is_csv(&path) || path.extension().is_some_and(|extension| extension == "jsonl") {
            files.push(path);
        }
    }
    Ok(files)
}

#[derive(Clone)]
struct Load<'a> {
    files: &'a [PathBuf],
    heads: &'a [Head],
    /// What was found in the files, if there was no store and one is to be made.
    checked_for_new: Option<Checked>,
    arguments: &'a LoadArguments,
}

impl Load<'_> {
    /// All of what is to be loaded is read once before anything is created.
    fn into_new(mut self, spec: &DeviceSpec) -> Result<Loaded, Failure> {
        self.checked_for_new = Some(self.check_for_new()?);
        let (image, log) = (bench::IMAGE_LIMIT_BYTES_DEFAULT, bench::LOG_LIMIT_BYTES_DEFAULT);
        let die_at = self.arguments.die_at.clone();
        let limits = Limits { loading: true, die_at, ..Limits::new(image, log) };
        self.load(bench::open_device(spec, limits)?)
    }

    fn check_for_new(&self) -> Result<Checked, Failure> {
        let tables = Tables::of_heads(self.heads)?;
        let checked = first_pass::check(self.files, &tables, self.heads)?;
        // A store of these tables can be made: here is one, without rows, in memory.
        let device = Dram::new(1 << 30, 1 << 30).map_err(BenchError::from)?;
        drop(open_engine(AnyDevice::new(device), &tables)?);
        Ok(checked)
    }

    fn load(self, device: Arc<AnyDevice>) -> Result<Loaded, Failure> {
        let Some(file) = device.load_mark() else {
            return Err(Failure::usage("a store is loaded into file:DIR or dax:PATH"));
        };
        let earlier = Mark::parse(file.read().map_err(BenchError::from)?)?;
        let is_there = match Looked::open(Arc::clone(&device)) {
            Ok(_) => true,
            Err(error) if error.is_missing() => false,
            Err(error) => return Err(error.into()),
        };
        let kind = match &earlier {
            Some(earlier) => earlier.kind,
            None if is_there => Kind::Into,
            None => Kind::New,
        };
        if self.checked_for_new.is_some() && (is_there || earlier.is_some()) {
            return Err(Failure::new(
                "a store was made there while the files were read: nothing was loaded; load again \
                 to load into it",
            ));
        }
        let (tables, checked) = match (kind, self.checked_for_new.clone()) {
            (Kind::New, Some(checked)) => (Tables::of_heads(self.heads)?, checked),
            (Kind::New, None) => (Tables::of_heads(self.heads)?, self.check_for_new()?),
            (Kind::Into, _) => {
                let tables = self.tables_of_store(Arc::clone(&device), earlier.is_some())?;
                let checked = first_pass::check(self.files, &tables, self.heads)?;
                tables.check_indexes(&checked.rows, self.arguments.unchecked_indexes)?;
                (tables, checked)
            }
        };
        let mark = Mark { kind, checked };
        if let Some(earlier) = &earlier {
            earlier.check_same(&mark)?;
        }
        file.set(&mark.text()).map_err(BenchError::from)?;
        let inserted = self.insert(Arc::clone(&device), &tables, &mark);
        let (counts, state_digest) = inserted.map_err(|mut failure| {
            failure.messages.push(
                "a part of the rows may be in the store now, and an open of it is refused: run \
                 the same load again"
                    .to_string(),
            );
            failure
        })?;
        file.clear().map_err(BenchError::from)?;
        let rows = tables.schemas.iter().zip(&mark.checked.rows).zip(counts);
        let tables = rows.map(|((schema, &rows), counts)| LoadedTable {
            table: schema.definition.name.clone(),
            rows,
            counts,
        });
        let is_new = kind == Kind::New;
        Ok(Loaded {
            new: is_new,
            finished_an_earlier_one: earlier.is_some(),
            tables: tables.filter(|of| is_new || of.rows > 0).collect(),
            state_digest,
        })
    }

    /// The tables of a store that is there. With `goes_on` a load into it was cut short, and has
    /// left rows of its own.
    fn tables_of_store(&self, device: Arc<AnyDevice>, goes_on: bool) -> Result<Tables, Failure> {
        let store = Looked::open(device)?;
        let tables = Tables::of_store(&store, self.heads, goes_on)?;
        if !goes_on {
            let path = self.arguments.path.to_string();
            of_server::check_alone(&store, &path, self.files, self.heads)?;
        }
        Ok(tables)
    }

    /// What becomes of each table's rows, and the state digest.
    fn insert(
        &self,
        device: Arc<AnyDevice>,
        tables: &Tables,
        mark: &Mark,
    ) -> Result<(Vec<Counts>, String), Failure> {
        let engine = open_engine(device, tables)?;
        let mut loading = Loading::new(engine, tables.schemas.len());
        let again = first_pass::each(self.files, tables, self.heads, "loading", |row| {
            let (key, value) = row.stored;
            loading.row(row.table, row.is_sequence, key, value)
        })?;
        if again != mark.checked {
            return Err(Failure::new(
                "the files were changed while they were loaded: load again with those that were \
                 there first",
            ));
        }
        loading.end()
    }
}

fn open_engine(device: Arc<AnyDevice>, tables: &Tables) -> Result<Engine, Failure> {
    let config = EngineConfig { workers: 1, ..EngineConfig::default() };
    let mut procedures = |_: &[storage::TableId]| Ok(loading::procedures());
    let mut definitions = Definitions::new(&tables.schemas, &mut procedures);
    definitions.indexes = &tables.indexes;
    let opened = Engine::open_with(device, config, definitions).map_err(BenchError::from)?;
    Ok(opened.0)
}

/// The state hash of the rows of files, by the tables of a store: what a dump of it must come to.
pub(crate) fn state_hash_of_files(
    directory: &Path,
    store: &Looked,
) -> Result<storage::StateHash, Failure> {
    let files = files_in(directory)?;
    let heads = lines::heads(files.iter().filter(|file| !is_csv(file)), true)?;
    let tables = Tables::of_dump(store)?;
    let mut hash = storage::StateHash::default();
    first_pass::each(&files, &tables, &heads, "reading back", |row| {
        let (key, value) = row.stored;
        hash.add(storage::row_hash(TableId(tables.numbers[usize::from(row.table)]), key, value));
        Ok(())
    })?;
    Ok(hash)
}
