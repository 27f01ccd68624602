//! Where results go, and how a command fails.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use bench::BenchError;
use serde::Serialize;

/// Why a command ends with an exit code other than 0.
#[derive(Debug)]
pub struct Failure {
    /// What to say, one line each; nothing if the result says it.
    pub messages: Vec<String>,
    /// The exit code.
    pub code: u8,
}

impl Failure {
    /// Something is wrong with a store or a run.
    pub fn new(message: impl Into<String>) -> Self {
        Self::all(vec![message.into()])
    }

    /// Several things are.
    pub fn all(messages: Vec<String>) -> Self {
        Self { messages, code: 1 }
    }

    /// Another command line would help.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { messages: vec![message.into()], code: 2 }
    }
}

impl From<BenchError> for Failure {
    fn from(error: BenchError) -> Self {
        let message = error.to_string();
        if error.is_usage() { Self::usage(message) } else { Self::new(message) }
    }
}

/// Writes a line to standard error. That it cannot be written, as after a terminal was closed, is
/// no failure.
pub fn tell(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Result of a command.
pub type Done = Result<(), Failure>;

/// Writes to standard output; a reader that went away is no error.
pub fn print(text: &str) -> Done {
    match io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// One JSON object, with a line's end.
pub fn json<T: Serialize>(value: &T) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Failure::new(format!("cannot write the result as JSON: {error}")))?;
    Ok(text + "\n")
}

/// Shows a result: as JSON if asked for, else as text.
pub fn show<T: Serialize>(value: &T, as_json: bool, text: impl FnOnce() -> String) -> Done {
    if as_json { print(&json(value)?) } else { print(&text()) }
}

/// A file for the result, opened before the work begins: it would be late to learn after an hour
/// that it cannot be written.
pub enum JsonTarget {
    /// No file was asked for.
    None,
    /// Standard output, instead of text.
    Standard,
    /// A file.
    File(PathBuf, File),
}

impl JsonTarget {
    /// Opens the target; `-` is standard output.
    pub fn open(path: Option<&Path>) -> Result<Self, Failure> {
        match path {
            None => Ok(Self::None),
            Some(path) if path == Path::new("-") => Ok(Self::Standard),
            Some(path) => match File::create(path) {
                Ok(file) => Ok(Self::File(path.to_path_buf(), file)),
                Err(error) => {
                    Err(Failure::new(format!("cannot create {}: {error}", path.display())))
                }
            },
        }
    }

    /// Writes the result, and the text where standard output is free for it.
    pub fn write<T: Serialize>(self, value: &T, text: impl FnOnce() -> String) -> Done {
        match self {
            Self::None => print(&text()),
            Self::Standard => print(&json(value)?),
            Self::File(path, mut file) => {
                file.write_all(json(value)?.as_bytes()).map_err(|error| {
                    Failure::new(format!("cannot write {}: {error}", path.display()))
                })?;
                print(&text())
            }
        }
    }
}
