//! Rows of a server's store, which are of use only together: one catalog, the rows and index
//! entries of its objects, the numbers of its sequences.

use std::path::PathBuf;

use super::lines::Head;
use super::reading::is_csv;
use crate::output::{Done, Failure};
use crate::rows::dump_files::table_of_file;
use crate::rows::looked::Looked;

/// With this begin the names of the tables of a server's store.
const TABLE_PREFIX: &str = "sql: ";

/// Refuses files with a server's tables, if the store at `path` has rows in such tables: objects of
/// both have the same numbers, and each row would be taken for one of the other's.
pub(super) fn check_alone(store: &Looked, path: &str, files: &[PathBuf], heads: &[Head]) -> Done {
    let Some(loaded) = table_of(files, heads) else { return Ok(()) };
    let of_server = |name: &str| name.starts_with(TABLE_PREFIX);
    for table in store.tables().iter().filter(|table| of_server(&table.definition.name)) {
        let name = &table.definition.name;
        let rows = store.rows(table)?.len();
        if rows > 0 {
            return Err(Failure::new(format!(
                "table {loaded:?} of the files is of a server's database, and {path} has rows of \
                 one already (table {name:?}: {rows} rows): the rows of one would take the place \
                 of the other's, so nothing was loaded. Load the dump into a new directory; to \
                 merge the two, serve both, and move the rows with COPY (\\copy of psql)"
            )));
        }
    }
    Ok(())
}

/// The first table of a server that the files have.
fn table_of(files: &[PathBuf], heads: &[Head]) -> Option<String> {
    let of_csv = files.iter().filter(|file| is_csv(file)).map(|file| table_of_file(file));
    let mut tables = heads.iter().map(|head| head.table.clone()).chain(of_csv);
    tables.find(|table| table.starts_with(TABLE_PREFIX))
}

#[cfg(all(test, feature = "server"))]
mod tests {
    #[test]
    fn the_prefix_is_that_of_the_server() {
        assert_eq!(super::TABLE_PREFIX, server::store::TABLE_PREFIX);
    }
}
