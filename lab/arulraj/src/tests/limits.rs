//! What an engine refuses, and that it changes nothing then.

use std::sync::Arc;

use pmem::Dram;

use super::history::{options, schema, state_of};
use crate::engines::Engine;
use crate::{Changes, Cow, Error, Inp, Key, Log, NvmCow, NvmInp, NvmLog, Partition, Row};

fn refuses<E: Engine<Dram>>() {
    pmem::small_pages_only();
    let device = Arc::new(Dram::new(64 << 20, 0).unwrap());
    let mut partition = Partition::<_, E>::create(device, &schema(), &options(None)).unwrap();
    let key = Key::of_u64(1);
    let row: Row = vec![vec![7; 8], vec![1; 33], vec![2; 3]];
    assert!(partition.insert(0, &key, &row).unwrap());
    partition.commit().unwrap();
    let before = state_of(&mut partition).unwrap();
    let other = Key::of_u64(2);
    for row in [vec![vec![7; 8], vec![1; 33]], vec![vec![7; 8], vec![1; 41], vec![2; 3]]] {
        assert!(matches!(partition.insert(0, &other, &row), Err(Error::Limit(_))));
    }
    // The indexed column is of 8 bytes, the second one of 40 at most.
    let refused: [Changes<'_>; 5] = [
        &[(0, &[8; 7])],
        &[(0, &[8; 20])],
        &[(0, &[8; 8]), (1, &[8; 41])],
        &[(0, &[8; 8]), (0, &[9; 8])],
        &[(1, &[8; 20]), (1, &[9; 20])],
    ];
    for changes in refused {
        let said = partition.update(0, &key, changes);
        assert!(matches!(said, Err(Error::Limit(_))), "{}: {changes:?}", E::NAME);
        assert!(state_of(&mut partition).unwrap() == before, "{}: {changes:?}", E::NAME);
    }
    assert!(partition.update(0, &key, &[]).unwrap());
    assert!(!partition.update(0, &other, &[(0, &[8; 8])]).unwrap());
    partition.commit().unwrap();
    partition.flush().unwrap();
    assert!(state_of(&mut partition).unwrap() == before);
    assert_eq!(partition.engine_mut().lost_slots().unwrap(), 0, "{}", E::NAME);
}

#[test]
fn all_engines_refuse_what_does_not_fit_and_change_nothing() {
    refuses::<Inp<Dram>>();
    refuses::<Cow<Dram>>();
    refuses::<Log<Dram>>();
    refuses::<NvmInp<Dram>>();
    refuses::<NvmCow<Dram>>();
    refuses::<NvmLog<Dram>>();
}
