//! Many rows read with one call are what they are read one by one.

use engine::{Calls, Engine, EngineConfig, EpochInfo, ProcedureDefinition, ProcedureTable};
use pmem::{AnyDevice, Dram};
use storage::{IndexKind, TableDefinition, TableId};

const ROWS: u64 = 100;

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

/// Writes what the arguments say (key and value, 0 deletes), shows it early if the first byte says
/// so, then reads all rows in both ways and fails where they differ. Answers the sum of all rows.
fn procedures() -> ProcedureTable {
    let mut table = ProcedureTable::new();
    table.add(ProcedureDefinition {
        name: "write_and_read",
        sequences: None,
        write_set: |args, set| {
            args[1..].chunks(16).for_each(|write| set.insert(TableId(0), &write[..8]));
            Ok(())
        },
        body: |args, tx| {
            for write in args[1..].chunks(16) {
                if write[8..] == [0; 8] {
                    tx.delete(TableId(0), &write[..8])?;
                } else {
                    tx.insert(TableId(0), &write[..8], &write[8..])?;
                }
            }
            if args[0] != 0 {
                tx.commit_point()?;
            }
            let keys: Vec<[u8; 8]> = (0..ROWS).map(key).collect();
            let mut one_by_one = Vec::new();
            for key in &keys {
                one_by_one.push(tx.get(TableId(0), key)?.map(<[u8]>::to_vec));
            }
            let mut many = Vec::new();
            tx.get_many(TableId(0), keys.iter().map(<[u8; 8]>::as_slice), |value| {
                many.push(value.map(<[u8]>::to_vec));
            })?;
            assert_eq!(many, one_by_one);
            let values = many.iter().flatten();
            let sum: u64 = values.map(|v| u64::from_le_bytes(v[..8].try_into().unwrap())).sum();
            tx.output().extend_from_slice(&sum.to_le_bytes());
            Ok(())
        },
        pieces: None,
    });
    table
}

fn call(early: bool, writes: &[(u64, u64)]) -> Vec<u8> {
    let mut args = vec![u8::from(early)];
    for &(number, value) in writes {
        args.extend_from_slice(&key(number));
        args.extend_from_slice(&value.to_le_bytes());
    }
    args
}

/// O-06: rows of others, own writes, own deletes, rows that are not there, and own writes that are
/// visible already, in both parts of an epoch.
#[test]
fn o_06_many_rows_are_seen_as_one_by_one() {
    for (workers, is_serial) in [(1, false), (3, false), (1, true), (3, true)] {
        let device = AnyDevice::new(Dram::new(1 << 30, 1 << 28).unwrap());
        let definition = TableDefinition {
            name: "numbers".into(),
            index: IndexKind::Hash,
            key_bytes_max: 8,
            value_bytes_max: 8,
            row_bytes: 0,
            shared_heap_bytes: 0,
        };
        let config = EngineConfig { workers, ..EngineConfig::default() };
        let (mut engine, _) = Engine::open(device, config, &[definition], procedures()).unwrap();
        let mut state = [0_u64; ROWS as usize];
        for epoch in 0..20_u64 {
            let (mut calls, mut sums) = (Calls::new(), Vec::new());
            for position in 0..30_u64 {
                let mix = |salt: u64| (epoch * 31 + position).wrapping_mul(salt) >> 7;
                let writes: Vec<(u64, u64)> = (0..position % 4)
                    .map(|i| ((mix(0x9e37_79b9) + 7 * i) % ROWS, mix(0x85eb_ca6b) % 5))
                    .collect();
                let args = call(position % 3 == 0, &writes);
                match is_serial {
                    true => calls.push_serial(0, &args).unwrap(),
                    false => calls.push(0, &args).unwrap(),
                }
                writes.iter().for_each(|&(number, value)| state[number as usize] = value);
                sums.push(state.iter().sum::<u64>());
            }
            let outcome = engine.run_epoch(&calls, EpochInfo { timestamp_ns: 1, seed: 1 }).unwrap();
            for (position, sum) in sums.into_iter().enumerate() {
                let answer = outcome.answer(position);
                let engine::Answer::Committed(bytes) = answer else { panic!("{answer:?}") };
                assert_eq!(bytes, sum.to_le_bytes(), "epoch {epoch}, position {position}");
            }
        }
    }
}
