//! `bench.json` beside a durable store: what the store was made for.
//!
//! The engine's log names procedures, not workloads; without the parameters no run could generate
//! the rest of the stream, nor register the right procedures for a recovery. The file is written
//! once, before the store, so a store without it is not one of ours.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::parameters::Parameters;
use crate::{BenchError, Result};

/// Version of the file's shape.
const FORMAT: u32 = 3;

/// What runs a store's procedures: stores of one are nothing for the other, which has other types.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Maker {
    /// The engine alone: `nvcaracal-lab bench`.
    #[default]
    Engine,
    /// The library: `nvcaracal bench`.
    Library,
}

impl Maker {
    /// The binary that goes on with its stores.
    #[must_use]
    pub fn binary(self) -> &'static str {
        match self {
            Self::Engine => "nvcaracal-lab",
            Self::Library => "nvcaracal",
        }
    }
}

/// What a store was made for, and by what.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Made {
    /// What runs its procedures.
    pub(super) by: Maker,
    /// Everything that its data and stream depend on.
    pub(super) parameters: Parameters,
}

#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    format: u32,
    #[serde(default)]
    made_by: Maker,
    parameters: Parameters,
}

/// Writes the file so that it is there whole or not at all.
pub(super) fn write(path: &Path, made: &Made) -> Result<()> {
    let parameters = made.parameters.clone();
    let manifest = Manifest { format: FORMAT, made_by: made.by, parameters };
    let text = serde_json::to_string_pretty(&manifest)
        .map_err(|e| BenchError::Store(format!("cannot describe the parameters: {e}")))?;
    let mut temporary = path.as_os_str().to_os_string();
    temporary.push(".tmp");
    let temporary = Path::new(&temporary);
    let written = File::create(temporary)
        .and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.write_all(b"\n")?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(temporary, path));
    written.map_err(|e| BenchError::io("write", path, e))?;
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let sync = File::open(parent).and_then(|directory| directory.sync_all());
    sync.map_err(|e| BenchError::io("sync directory", parent, e))
}

/// Reads the file; `None` if there is none.
pub(super) fn read(path: &Path) -> Result<Option<Made>> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(BenchError::io("read", path, error)),
    };
    let wrong = |why: String| {
        let path = path.display();
        BenchError::Store(format!("{path} does not describe a benchmark's store: {why}"))
    };
    let manifest: Manifest = serde_json::from_str(&text).map_err(|e| wrong(e.to_string()))?;
    if manifest.format != FORMAT {
        let found = manifest.format;
        return Err(wrong(format!("it has format {found}, this program reads format {FORMAT}")));
    }
    Ok(Some(Made { by: manifest.made_by, parameters: manifest.parameters }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Contention, WorkloadParameters};

    #[test]
    fn what_is_written_is_read_and_anything_else_is_named() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("bench.json");
        assert!(read(&path).expect("no file is fine").is_none());
        let workload = WorkloadParameters::ycsb(1_000, Contention::Low);
        let parameters = Parameters::new(workload, Contention::Low);
        for by in [Maker::Engine, Maker::Library] {
            let made = Made { by, parameters: parameters.clone() };
            write(&path, &made).expect("a written file");
            assert_eq!(read(&path).expect("a good file"), Some(made));
        }
        let text = fs::read_to_string(&path).expect("the file");
        let format = format!("\"format\": {FORMAT}");
        assert!(text.contains(&format), "{text}");
        let other = text.replace(&format, "\"format\": 9");
        for bad in ["", "{}", &text[..text.len() / 2], &other] {
            fs::write(&path, bad).expect("a written file");
            let message = read(&path).expect_err("a bad file").to_string();
            assert!(message.contains("bench.json"), "{message}");
        }
    }
}
