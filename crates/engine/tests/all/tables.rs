//! Tables that a program has and the store has not are added when it is opened.

use std::sync::Arc;

use engine::{Engine, EngineConfig, ProcedureTable};
use pmem::{AnyDevice, File, FileOptions};
use storage::TableDefinition;

use crate::support::rows;

/// On a device of image snapshots they are saved at once: a process that is killed before its first
/// epoch leaves them behind, as on memory.
#[test]
fn tables_that_are_added_outlive_a_process_that_ran_no_epoch() {
    let dir = tempfile::tempdir().unwrap();
    let options = FileOptions::new(64 << 20, 16 << 20);
    let file = || Arc::new(File::open(dir.path(), &options).unwrap());
    let table = |name: &str| TableDefinition { name: name.into(), ..rows(8) };
    let tables = ["a", "b", "c"].map(table);
    for count in 1..=tables.len() {
        let engine = Engine::open(
            AnyDevice::of(&file()),
            EngineConfig::default(),
            &tables[..count],
            ProcedureTable::new(),
        );
        drop(engine.unwrap());
        let report = storage::check::check(AnyDevice::of(&file())).unwrap();
        assert_eq!(report.problems, Vec::<String>::new());
        let found: Vec<_> = report.rows.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(found, ["a", "b", "c"][..count]);
    }
}
