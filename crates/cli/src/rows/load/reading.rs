//! The rows of a file, whatever form it has.

use std::path::Path;

use super::csv;
use super::input::At;
use super::lines::{Head, Line, Lines};
use super::tables::Tables;
use crate::output::{Done, Failure};
use crate::rows::dump_files::table_of_file;
use crate::rows::typed::Stored;

/// Whether a file is of comma-separated values, else it is of JSON lines.
pub(super) fn is_csv(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "csv")
}

/// A row of a file.
pub(super) struct Read<'r> {
    pub(super) at: At<'r>,
    /// Its table's number among those that the engine is opened with.
    pub(super) table: u16,
    pub(super) is_sequence: bool,
    /// As it is stored.
    pub(super) stored: &'r Stored,
}

/// What is done with a row.
pub(super) type Each<'e> = &'e mut dyn FnMut(Read<'_>) -> Done;

/// Reads a file, and does something with each row.
pub(super) fn each_row(path: &Path, tables: &Tables, heads: &[Head], each: Each<'_>) -> Done {
    match is_csv(path) {
        true => each_row_of_csv(path, tables, heads, each),
        false => each_row_of_lines(path, tables, each),
    }
}

fn each_row_of_lines(path: &Path, tables: &Tables, each: Each<'_>) -> Done {
    // How it ends was looked at when its tables were.
    let mut lines = Lines::open(path, false)?;
    let (mut of_head, mut only_version) = (None, None);
    while let Some(line) = lines.next()? {
        match line {
            Line::Head(head) => {
                of_head = tables.find(&head.table);
                // The file is from before there was a second version, and says nothing of it.
                let has_versions = of_head.is_some_and(|(_, of)| of.has_versions());
                only_version = (has_versions && head.types.len() == 1).then_some(0);
            }
            Line::Row(mut row) => {
                let (table, of) = of_head.expect("there is no row without a head before it");
                row.version = row.version.or(only_version.filter(|_| row.value.is_shown()));
                let stored = of.bytes(&row).map_err(|what| lines.failure(&what))?;
                let (at, is_sequence) = (lines.at(), of.is_sequence());
                each(Read { at, table, is_sequence, stored: &stored })?;
            }
        }
    }
    Ok(())
}

/// The rows of the table after which the file is named.
fn each_row_of_csv(path: &Path, tables: &Tables, heads: &[Head], each: Each<'_>) -> Done {
    let name = table_of_file(path);
    let Some((table, of)) = tables.find(&name) else {
        return Err(Failure::new(format!(
            "{}: there is no table {name:?}, and CSV does not say of which types its columns are: \
             load it into a store that has the table, or with the tables.jsonl of its dump",
            path.display()
        )));
    };
    let mut rows = csv::Rows::open(path, of.columns())?;
    let mut count = 0;
    while let Some(cells) = rows.next()? {
        let row = of.row_of_cells(&rows.columns, &cells).map_err(|what| rows.failure(&what))?;
        let stored = of.bytes(&row).map_err(|what| rows.failure(&what))?;
        each(Read { at: rows.at(), table, is_sequence: of.is_sequence(), stored: &stored })?;
        count += 1;
    }
    let announced = heads.iter().find(|head| head.table == name).and_then(|head| head.csv_rows);
    match announced {
        Some(announced) if announced != count => {
            Err(rows.failure(&format!("the file ends after {count} rows of {announced}")))
        }
        None if count == 0 => Err(rows.failure("the file ends, and there is no row in it")),
        _ => Ok(()),
    }
}
