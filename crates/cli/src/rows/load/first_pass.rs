//! Reading all files: once to find what cannot be loaded, before anything is changed, and again to
//! load them.

use std::collections::HashMap;
use std::path::PathBuf;

use bench::Progress;
use storage::TableId;
use storage::{StateHash, row_hash};

use super::lines::Head;
use super::reading::{Read, each_row};
use super::tables::Tables;
use crate::output::{Done, Failure};

/// What is in the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Checked {
    /// Rows of each table.
    pub(super) rows: Vec<u64>,
    /// A hash of all of them, whatever their order is.
    pub(super) hash: StateHash,
}

/// Where a key came first.
type Seen<'f> = HashMap<Box<[u8]>, (&'f PathBuf, u64)>;

/// Reads all files, and finds the first row that cannot be loaded.
pub(super) fn check(
    files: &[PathBuf],
    tables: &Tables,
    heads: &[Head],
) -> Result<Checked, Failure> {
    let mut seen: Vec<Seen<'_>> = vec![HashMap::new(); tables.schemas.len()];
    each(files, tables, heads, "checking", |row| {
        let at = row.at;
        let file = files.iter().find(|file| *file == at.path).expect("one of the files is read");
        check_lengths(&row, tables).map_err(|what| at.failure(&what))?;
        let key = row.stored.0.clone().into_boxed_slice();
        match seen[usize::from(row.table)].insert(key, (file, at.line)) {
            None => Ok(()),
            Some((first, line)) if first == file => {
                Err(at.failure(&format!("its key came in line {line} before")))
            }
            Some((first, line)) => {
                let first = first.display();
                Err(at.failure(&format!("its key came in {first}, line {line}, before")))
            }
        }
    })
}

/// Reads all files, does something with each row, and says what was there.
pub(super) fn each(
    files: &[PathBuf],
    tables: &Tables,
    heads: &[Head],
    what: &'static str,
    mut each: impl FnMut(Read<'_>) -> Done,
) -> Result<Checked, Failure> {
    let mut found = Checked { rows: vec![0; tables.schemas.len()], hash: StateHash::default() };
    let bar = Progress::Shown.bar(what, files.len() as u64, "files");
    for file in files {
        each_row(file, tables, heads, &mut |row| {
            found.rows[usize::from(row.table)] += 1;
            found.hash.add(row_hash(TableId(row.table), &row.stored.0, &row.stored.1));
            each(row)
        })?;
        bar.step("");
    }
    Ok(found)
}

/// What the engine would refuse.
fn check_lengths(row: &Read<'_>, tables: &Tables) -> Result<(), String> {
    let definition = &tables.schemas[usize::from(row.table)].definition;
    let (key, value) = (row.stored.0.len() as u64, row.stored.1.len() as u64);
    if row.is_sequence {
        return match (key, value) {
            (8, 8) => Ok(()),
            _ => Err("numbers of a sequence have 8 bytes".to_string()),
        };
    }
    let most = u64::from(definition.key_bytes_max);
    match most {
        8 if key != 8 => return Err(format!("key: {key} bytes, all keys of the table have 8")),
        _ if !(1..=most).contains(&key) => {
            return Err(format!("key: {key} bytes, must be 1 to {most}"));
        }
        _ => {}
    }
    let most = u64::from(definition.value_bytes_max);
    match value > most {
        true => Err(format!("value: {value} bytes, at most {most}")),
        false => Ok(()),
    }
}
