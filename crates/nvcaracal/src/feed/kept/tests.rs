use super::*;

const TABLE: TableId = TableId(3);
const OTHER: TableId = TableId(5);

fn change(table: TableId, key: u8, bytes: usize) -> Change {
    Change { table, key: [key].into(), before: None, after: Some(vec![0; bytes].into()) }
}

fn changes(rows: Vec<Change>) -> EpochChanges {
    EpochChanges { rows, are_too_many: false }
}

/// Keys and epochs of what is found after an epoch.
fn found(feeds: &Feeds, table: TableId, after: u64) -> Vec<(u64, u8)> {
    let (mut all, mut after) = (Vec::new(), EpochNumber(after));
    while let NextChanges::Changes(epoch, changes) = feeds.find(table, after).unwrap() {
        all.extend(changes.iter().map(|change| (epoch.0, change.key[0])));
        after = epoch;
    }
    all
}

#[test]
fn o_110_each_reader_has_the_changes_of_its_table_from_its_epoch_on() {
    let feeds = Feeds::new(1 << 20);
    feeds.add(EpochNumber(7), changes(vec![change(TABLE, 1, 1)]));
    assert_eq!(feeds.open(TABLE, None, EpochNumber(7)).unwrap(), (EpochNumber(7), vec![TABLE]));
    feeds.add(EpochNumber(8), changes(vec![change(TABLE, 2, 1), change(TABLE, 3, 1)]));
    assert_eq!(
        feeds.open(OTHER, Some(EpochNumber(8)), EpochNumber(8)).unwrap(),
        (EpochNumber(8), vec![TABLE, OTHER])
    );
    feeds.add(EpochNumber(9), changes(vec![]));
    feeds.add(EpochNumber(10), changes(vec![change(TABLE, 4, 1), change(OTHER, 5, 1)]));
    assert_eq!(found(&feeds, TABLE, 7), [(8, 2), (8, 3), (10, 4)]);
    assert_eq!(found(&feeds, TABLE, 8), [(10, 4)]);
    assert_eq!(found(&feeds, OTHER, 8), [(10, 5)]);
    assert!(matches!(
        feeds.find(TABLE, EpochNumber(10)),
        Ok(NextChanges::NothingUpTo(EpochNumber(10)))
    ));
    assert_eq!(
        feeds.open(TABLE, Some(EpochNumber(7)), EpochNumber(10)).unwrap().0,
        EpochNumber(7),
        "another one, from the first on"
    );
    let error = feeds.open(TABLE, Some(EpochNumber(6)), EpochNumber(10)).unwrap_err();
    assert_eq!((error.kept_after(), error.is_limit()), (Some(7), true), "{error}");
    assert!(feeds.open(TABLE, Some(EpochNumber(11)), EpochNumber(10)).unwrap_err().is_mistake());

    assert_eq!(feeds.close(TABLE), [TABLE, OTHER]);
    assert_eq!(feeds.close(TABLE), [OTHER]);
    assert_eq!(
        feeds.open(TABLE, Some(EpochNumber(9)), EpochNumber(10)).unwrap_err().kept_after(),
        Some(10)
    );
    feeds.end(&Error::closed());
    assert_eq!(found_before_the_end(&feeds), [(10, 5)]);
    assert_eq!(feeds.close(OTHER), []);
    assert_eq!(feeds.kept().bytes, 0);
}

/// What is there is read before the end is told.
fn found_before_the_end(feeds: &Feeds) -> Vec<(u64, u8)> {
    let Ok(NextChanges::Changes(epoch, changes)) = feeds.find(OTHER, EpochNumber(8)) else {
        panic!("it is kept")
    };
    assert!(feeds.find(OTHER, epoch).is_err_and(|error| error.is_stopped()));
    changes.iter().map(|change| (epoch.0, change.key[0])).collect()
}

#[test]
fn o_110_what_is_too_much_is_forgotten_and_told() {
    let one = change(TABLE, 0, 100).bytes();
    let feeds = Feeds::new(3 * one);
    feeds.open(TABLE, None, EpochNumber(0)).unwrap();
    feeds.open(OTHER, None, EpochNumber(0)).unwrap();
    feeds.add(EpochNumber(1), changes(vec![change(OTHER, 1, 100)]));
    for epoch in 2..6 {
        feeds.add(EpochNumber(epoch), changes(vec![change(TABLE, epoch as u8, 100)]));
        assert!(feeds.kept().bytes <= 3 * one);
    }
    assert_eq!(feeds.find(OTHER, EpochNumber(0)).err().unwrap().kept_after(), Some(1));
    assert_eq!(found(&feeds, OTHER, 1), []);
    assert_eq!(feeds.find(TABLE, EpochNumber(0)).err().unwrap().kept_after(), Some(2));
    assert!(feeds.check_kept(TABLE, EpochNumber(1)).is_err());
    assert_eq!(found(&feeds, TABLE, 2), [(3, 3), (4, 4), (5, 5)]);

    feeds.add(EpochNumber(6), EpochChanges { rows: vec![], are_too_many: true });
    for table in [TABLE, OTHER] {
        assert_eq!(feeds.find(table, EpochNumber(5)).err().unwrap().kept_after(), Some(6));
        feeds.check_kept(table, EpochNumber(6)).unwrap();
        assert_eq!(found(&feeds, table, 6), []);
    }
    assert!(feeds.check_kept(TABLE, EpochNumber(7)).unwrap_err().is_mistake());
    // One epoch alone that is more than all that may be kept.
    feeds.add(EpochNumber(7), changes((0..4).map(|key| change(TABLE, key, 100)).collect()));
    assert_eq!(feeds.find(TABLE, EpochNumber(6)).err().unwrap().kept_after(), Some(7));
    assert_eq!(feeds.kept().bytes, 0);
}
