//! Histories against a model, with restarts.

use std::ops::ControlFlow;
use std::sync::Arc;

use pmem::{Device, Dram};

use super::history::{
    State, apply, apply_to_model, history, options, schema, state_of, with_indexes,
};
use crate::engines::Engine;
use crate::{Cow, Inp, Key, Log, NvmCow, NvmInp, NvmLog, Partition};

fn device() -> Arc<Dram> {
    pmem::small_pages_only();
    Arc::new(Dram::new(64 << 20, 0).unwrap())
}

fn check<D: Device, E: Engine<D>>(partition: &mut Partition<D, E>, model: &State) {
    assert!(state_of(partition).unwrap() == with_indexes(model), "the state is another one");
    let keys: Vec<Key> = model.keys().filter(|(table, _)| *table == 0).map(|(_, k)| *k).collect();
    for key in &keys {
        assert_eq!(partition.get(0, key).unwrap().as_ref(), model.get(&(0, *key)));
    }
    for value in 0..3u64 {
        let value = value.to_le_bytes();
        let of: Vec<Key> =
            keys.iter().filter(|key| model[&(0, **key)][0] == value).copied().collect();
        assert_eq!(partition.find(0, 0, &value).unwrap(), of);
    }
    let (from, to) = (Key::of_u64(5), Key::of_u64(9));
    let mut seen = Vec::new();
    partition
        .scan(0, &from, Some(&to), &mut |key, _| {
            seen.push(*key);
            ControlFlow::Continue(())
        })
        .unwrap();
    let expected: Vec<Key> = keys.into_iter().filter(|key| (from..to).contains(key)).collect();
    assert_eq!(seen, expected);
}

/// A history, with restarts and all answers compared.
fn follows_the_model<E: Engine<Dram>>() {
    for (seed, keys) in [(1, 12), (2, 60)] {
        let device = device();
        let mut partition =
            Partition::<_, E>::create(Arc::clone(&device), &schema(), &options(None)).unwrap();
        let mut model = State::new();
        for (number, transaction) in history(seed, 400, keys).iter().enumerate() {
            let expected = apply_to_model(transaction, &mut model);
            let said = apply(transaction, &mut partition).unwrap();
            assert_eq!(said, expected, "{} transaction {number}: {transaction:?}", E::NAME);
            match transaction.aborts {
                true => partition.abort().unwrap(),
                false => {
                    partition.commit().unwrap();
                }
            }
            if number % 40 == 39 {
                check(&mut partition, &model);
                partition.flush().unwrap();
                drop(partition);
                let opened = Partition::open(Arc::clone(&device), &schema(), &options(None));
                partition = opened.unwrap().0;
                check(&mut partition, &model);
                assert_eq!(partition.engine_mut().lost_slots().unwrap(), 0, "{}", E::NAME);
            }
        }
    }
}

#[test]
fn inp_follows_the_model() {
    follows_the_model::<Inp<Dram>>();
}

#[test]
fn nvm_inp_follows_the_model() {
    follows_the_model::<NvmInp<Dram>>();
}

#[test]
fn cow_follows_the_model() {
    follows_the_model::<Cow<Dram>>();
}

#[test]
fn nvm_cow_follows_the_model() {
    follows_the_model::<NvmCow<Dram>>();
}

#[test]
fn log_follows_the_model() {
    follows_the_model::<Log<Dram>>();
}

#[test]
fn nvm_log_follows_the_model() {
    follows_the_model::<NvmLog<Dram>>();
}
