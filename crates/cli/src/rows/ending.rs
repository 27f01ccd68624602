//! How a dump ends: with a line that says what it has, and in a directory with a file that names
//! all others. What was cut short between two tables or two files does not pass for whole.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::output::{Done, Failure};

/// The file of a directory that names all others.
pub(crate) const END_NAME: &str = "dump.end";
/// What can be done where a dump does not say that it is whole.
pub(crate) const WITHOUT_END: &str = "it was cut short, is of a build before 0.1.0, or was written \
                                      by hand: load what is there with --without-end";
/// The form of a line or file that ends a dump.
const VERSION: u32 = 1;

/// The last line of JSON lines.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct End {
    end_of_dump: u32,
    /// Lines that describe a table.
    tables: u64,
    /// All other lines.
    rows: u64,
    /// Of all lines before this one.
    sha256: String,
}

/// What lies between two ends.
#[derive(Debug, Clone, Default)]
pub(crate) struct Section {
    pub(crate) tables: u64,
    pub(crate) rows: u64,
    sha: Sha256,
}

impl Section {
    /// Takes the text of a line in.
    pub(crate) fn add(&mut self, text: &[u8]) {
        self.sha.update(text);
    }

    /// Whether nothing has come since the last end.
    pub(crate) fn is_empty(&self) -> bool {
        self.tables == 0 && self.rows == 0
    }

    /// The line that ends it.
    fn end(&self) -> End {
        let Self { tables, rows, ref sha } = *self;
        End { end_of_dump: VERSION, tables, rows, sha256: hex(sha.clone()) }
    }

    /// Compares it with the line that ends it.
    pub(crate) fn check(&self, end: &End) -> Result<(), String> {
        let is = self.end();
        if (is.tables, is.rows) != (end.tables, end.rows) {
            return Err(format!(
                "the dump had {} tables with {} rows, here are {} with {}: a part of it is missing",
                end.tables, end.rows, is.tables, is.rows
            ));
        }
        if is != *end {
            return Err("the lines are not those that were dumped, by their SHA-256: they were \
                        changed; if that was meant, remove this line and load with --without-end"
                .to_string());
        }
        Ok(())
    }
}

impl End {
    /// The end that a line is; `None` for any other line.
    pub(crate) fn parse(text: &str) -> Option<Result<Self, String>> {
        if !text.starts_with("{\"end_of_dump\":") {
            return None;
        }
        let end = serde_json::from_str::<Self>(text)
            .map_err(|error| format!("the line that ends the dump is damaged: {error}"));
        Some(match end {
            Ok(end) if end.end_of_dump != VERSION => {
                Err(format!("a later release wrote this: end_of_dump is {}", end.end_of_dump))
            }
            end => end,
        })
    }
}

/// Writes JSON lines, and in the end what there was.
pub(crate) struct Ending<W> {
    to: W,
    pub(crate) section: Section,
}

impl<W: Write> Ending<W> {
    pub(crate) fn new(to: W) -> Self {
        Self { to, section: Section::default() }
    }

    /// Writes the line that ends them.
    pub(crate) fn end(mut self) -> io::Result<()> {
        let line = serde_json::to_string(&self.section.end())?;
        writeln!(self.to, "{line}")?;
        self.to.flush()
    }
}

impl<W: Write> Write for Ending<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.section.add(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// What a directory has.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Contents {
    end_of_dump: u32,
    pub(crate) tables: u64,
    pub(crate) rows: u64,
    /// SHA-256 of each file.
    files: BTreeMap<String, String>,
}

impl Contents {
    /// Nothing yet.
    pub(crate) fn new() -> Self {
        Self { end_of_dump: VERSION, tables: 0, rows: 0, files: BTreeMap::new() }
    }

    /// Adds a file that was written.
    pub(crate) fn add(&mut self, path: &Path, sha: Sha256) {
        self.files.insert(name_of(path), hex(sha));
    }

    /// Writes the file that names all others, durably but for its name.
    pub(crate) fn write(&self, directory: &Path) -> Done {
        let path = directory.join(END_NAME);
        let write = || {
            let mut file = pmem::private::create_new_file(&path)?;
            writeln!(file, "{}", serde_json::to_string(self)?)?;
            file.sync_all()
        };
        write().map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display())))
    }

    /// Checks that a directory has all files that its dump had, as they were, and no others.
    pub(crate) fn check(directory: &Path, found: &[PathBuf]) -> Done {
        let path = directory.join(END_NAME);
        let wrong = |what: String| Failure::new(format!("{}: {what}", path.display()));
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(wrong(format!("a whole dump has this file: {WITHOUT_END}")));
            }
            Err(error) => return Err(wrong(error.to_string())),
        };
        let contents: Self = serde_json::from_str(&text)
            .map_err(|error| wrong(format!("it does not say what the dump has: {error}")))?;
        if contents.end_of_dump != VERSION {
            return Err(wrong("a later release wrote this".to_string()));
        }
        let is_there = |name: &&String| found.iter().any(|path| name_of(path) == **name);
        if let Some(name) = contents.files.keys().find(|name| !is_there(name)) {
            let what =
                "of this dump is missing: load all of it, or what is there with --without-end";
            return Err(wrong(format!("{name} {what}")));
        }
        for file in found {
            let Some(sha256) = contents.files.get(&name_of(file)) else {
                return Err(wrong(format!("{} is not of this dump", file.display())));
            };
            let mut hashed = Hashed::new(io::sink());
            let read = File::open(file).and_then(|mut file| io::copy(&mut file, &mut hashed));
            read.map_err(|error| Failure::new(format!("cannot read {}: {error}", file.display())))?;
            if hex(hashed.sha) != *sha256 {
                let what = "is not as it was dumped, by its SHA-256: it was changed or cut short; \
                            if that was meant, load with --without-end";
                return Err(wrong(format!("{} {what}", file.display())));
            }
        }
        Ok(())
    }
}

/// Takes what is written into a digest.
pub(crate) struct Hashed<W> {
    pub(crate) to: W,
    pub(crate) sha: Sha256,
}

impl<W> Hashed<W> {
    pub(crate) fn new(to: W) -> Self {
        Self { to, sha: Sha256::new() }
    }
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.sha.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

fn hex(sha: Sha256) -> String {
    sha.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
