//! Reading in place, and room for rows.

use std::ops::ControlFlow;

use nvcaracal::{
    Before, Data, Database, DeviceSpec, Procedure, Stop, Table, Transaction, procedure,
};

const ROWS: Table<u64, Vec<u8>> = Table::ordered("rows");

/// Rows with keys 10, 20, 30 and the greatest of all.
#[procedure]
fn fill(tx: &mut Transaction) -> Result<(), Stop> {
    for key in [10, 20, 30, u64::MAX] {
        tx.insert(ROWS, key, &vec![key as u8; 3])?;
    }
    Ok(())
}

/// The keys that a visit of some keys sees, of at most so many rows; a row in the range was
/// written just before.
#[procedure]
fn visit(
    tx: &mut Transaction,
    from: u64,
    to: u64,
    is_descending: bool,
    most: u32,
) -> Result<Vec<u64>, Stop> {
    tx.insert(ROWS, 15, &vec![15; 3])?;
    let mut seen = Vec::new();
    tx.visit_bytes(ROWS, from..=to, is_descending, |key, value| {
        let key = u64::from_be_bytes(key.try_into().expect("8 bytes"));
        assert_eq!(value, [key as u8; 3]);
        seen.push(key);
        match seen.len() == most as usize {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    })?;
    tx.delete(ROWS, 15)?;
    Ok(seen)
}

/// The lengths of what is there.
#[procedure]
fn lengths(tx: &mut Transaction, keys: &[u64]) -> Result<Vec<Option<u64>>, Stop> {
    let mut lengths = Vec::new();
    tx.get_many_bytes(ROWS, keys, |found| lengths.push(found.map(|bytes| bytes.len() as u64)))?;
    let many = tx.get_many(ROWS, keys)?;
    assert_eq!(
        many.iter().map(|v| v.as_ref().map(|v| v.len() as u64)).collect::<Vec<_>>(),
        lengths
    );
    Ok(lengths)
}

fn open() -> Database {
    let options = Database::options().table(ROWS).workers(2).data_bytes_max(1 << 28);
    let options = options.procedure::<Fill>().procedure::<Visit>().procedure::<Lengths>();
    let db = options.log_bytes_max(1 << 26).open_device(DeviceSpec::Dram).unwrap();
    db.call(Fill {}).unwrap();
    db
}

#[test]
fn visits_see_ranges_in_both_directions_and_stop_where_they_are_told() {
    const LAST: u64 = u64::MAX;
    let db = open();
    let visit =
        |from, to, is_descending, most| db.call(Visit { from, to, is_descending, most }).unwrap();
    assert_eq!(visit(0, LAST, false, 9), [10, 15, 20, 30, LAST]);
    assert_eq!(visit(0, LAST, true, 9), [LAST, 30, 20, 15, 10]);
    assert_eq!(visit(0, LAST, true, 1), [LAST]);
    assert_eq!(visit(0, LAST, true, 2), [LAST, 30]);
    assert_eq!(visit(15, 20, false, 9), [15, 20]);
    assert_eq!(visit(11, LAST, false, 3), [15, 20, 30]);
    assert_eq!(visit(LAST, LAST, false, 3), [LAST]);
    assert_eq!(visit(31, 40, false, 3), [0; 0]);
}

#[test]
fn many_rows_are_read_in_place_in_the_order_of_the_keys() {
    let db = open();
    let keys = vec![30, 11, 10, 30, u64::MAX];
    assert_eq!(db.call(Lengths { keys }).unwrap(), [Some(3), None, Some(3), Some(3), Some(3)]);
    assert_eq!(db.call(Lengths { keys: Vec::new() }).unwrap(), []);
}

#[derive(Debug, Clone, PartialEq, Data)]
#[data(was = u64)]
struct New(String);

impl From<u64> for New {
    fn from(was: u64) -> Self {
        Self(was.to_string())
    }
}

const CHANGED: Table<u64, New> = Table::ordered("changed");

/// Bytes of a type with versions may be of any.
#[procedure]
fn of_versions(tx: &mut Transaction, in_many: bool) -> Result<(), Stop> {
    match in_many {
        true => tx.get_many_bytes(CHANGED, [1], |_| {}),
        false => tx.visit_bytes(CHANGED, .., false, |_, _| ControlFlow::Continue(())),
    }
}

#[test]
fn bytes_of_types_with_versions_are_not_given() {
    let _: Option<Before<New>> = New::BEFORE;
    let options = Database::options().table(CHANGED).procedure::<OfVersions>();
    let db = options.open_device(DeviceSpec::Dram).unwrap();
    for in_many in [false, true] {
        let error = db.call(OfVersions { in_many }).unwrap_err().to_string();
        assert!(error.contains("the type of its values has versions"), "{error}");
    }
    assert_eq!(OfVersions::NAME, "of_versions");
}

#[test]
fn room_for_rows_is_made_beforehand_or_refused() {
    let db = open();
    let before = db.memory().unwrap();
    db.reserve(ROWS, 100_000).unwrap();
    let after = db.memory().unwrap();
    assert!(after.index > before.index + 1_000_000, "{before:?} {after:?}");
    let full = db.reserve(ROWS, 10_000_000).unwrap_err();
    assert!(full.is_limit() || full.is_full(), "{full}");
    const OTHER: Table<u64, u64> = Table::ordered("other");
    assert!(db.reserve(OTHER, 1).unwrap_err().is_mistake());
    assert_eq!(db.call(Lengths { keys: vec![10] }).unwrap(), [Some(3)]);
}

/// Items without bytes cannot be counted by them.
#[test]
fn lists_of_nothing_are_read_where_their_length_is_known() {
    assert_eq!(Vec::<()>::from_bytes(&[]), Some(Vec::new()));
    assert_eq!(Vec::<()>::from_bytes(&[1]), None);
    assert_eq!(Vec::<u16>::from_bytes(&[1, 0, 2, 0]), Some(vec![1, 2]));
    // Not aligned, not whole, not all of them values.
    assert_eq!(Vec::<u16>::from_bytes(&[9, 1, 0, 2, 0][1..]), Some(vec![1, 2]));
    assert_eq!(Vec::<u16>::from_bytes(&[1, 0, 2]), None);
    assert_eq!(Vec::<bool>::from_bytes(&[1, 0, 2]), None);
    assert_eq!(Vec::<bool>::from_bytes(&[1, 0]), Some(vec![true, false]));
    // The same without making one.
    let are = [Vec::<bool>::is_value(&[1, 0]), Vec::<u8>::is_value(&[1, 2])];
    assert_eq!((are, Vec::<u16>::is_value(&[1, 0])), ([true; 2], true));
    let are_not = [Vec::<bool>::is_value(&[1, 2]), Vec::<u16>::is_value(&[1])];
    assert_eq!((are_not, Vec::<()>::is_value(&[1])), ([false; 2], false));
}
