//! Changing a part of a row.

use engine::{
    Abort, Answer, Calls, Engine, EngineConfig, EpochInfo, ProcedureDefinition, ProcedureTable,
};
use pmem::{AnyDevice, Dram};
use storage::TableId;

use crate::support::rows;

const ROW: [u8; 8] = [7; 8];
const LEN: usize = 200;

/// The first byte says what is done.
fn procedures() -> ProcedureTable {
    let mut table = ProcedureTable::new();
    table.add(ProcedureDefinition {
        name: "parts",
        sequences: None,
        write_set: |args, set| {
            if args[0] == 0 {
                set.insert(TableId(0), &ROW)
            } else {
                set.update(TableId(0), &ROW)
            }
            Ok(())
        },
        body: |args, tx| {
            match args[0] {
                0 => tx.insert(TableId(0), &ROW, &[1; LEN])?,
                // Each sees what was there before, all of it, and what this call has made of it.
                1 => {
                    for by in [1, 2] {
                        tx.modify_part(TableId(0), &ROW, 63..130, |row, part| {
                            assert_eq!((row.len(), part.len()), (LEN, 67));
                            assert_eq!(&row[63..130], &*part);
                            part.iter_mut().for_each(|byte| *byte += by);
                            assert_eq!(row[0], 1);
                        })?;
                        let row = tx.get(TableId(0), &ROW)?.map(<[u8]>::to_vec);
                        tx.output().extend(row.unwrap());
                    }
                }
                2 => drop(tx.modify_part(TableId(0), &ROW, 190..LEN + 1, |_, _| ())?),
                #[expect(clippy::reversed_empty_ranges)]
                3 => drop(tx.modify_part(TableId(0), &ROW, 9..8, |_, _| ())?),
                4 => {
                    tx.modify_part(TableId(0), &ROW, 0..1, |_, part| part[0] = 99)?;
                    return Err(Abort::code(4).into());
                }
                5 => {
                    tx.delete(TableId(0), &ROW)?;
                    let there = tx.modify_part(TableId(0), &ROW, 0..1, |_, _| {
                        panic!("it is no longer there")
                    })?;
                    tx.output().push(there.into());
                }
                _ => drop(tx.modify_part(TableId(0), &[9; 8], 0..1, |_, _| ())?),
            }
            Ok(())
        },
        pieces: None,
    });
    table
}

fn run(engine: &mut Engine, calls: &[u8]) -> Vec<Result<Vec<u8>, String>> {
    let mut batch = Calls::new();
    calls.iter().for_each(|&call| batch.push(0, &[call]).unwrap());
    let outcome = engine.run_epoch(&batch, EpochInfo::default()).unwrap();
    let told = |position| match outcome.answer(position) {
        Answer::Committed(bytes) => Ok(bytes.to_vec()),
        other => Err(format!("{other:?}")),
    };
    (0..calls.len()).map(told).collect()
}

/// O-03, O-06: a part is changed in a copy, seen by the call itself, and by others when it commits.
#[test]
fn o_06_a_part_is_seen_as_any_write_is() {
    let device = AnyDevice::new(Dram::new(64 << 20, 16 << 20).unwrap());
    let tables = vec![rows(LEN as u32)];
    let config = EngineConfig { workers: 2, ..EngineConfig::default() };
    let mut engine = Engine::open(device, config, &tables, procedures()).unwrap().0;
    let row = |times: u8| {
        let mut row = vec![1; LEN];
        row[63..130].fill(1 + times);
        row
    };
    let both = |before: u8| Ok([row(before + 1), row(before + 3)].concat());
    run(&mut engine, &[0]);
    // Alone, as the last of several versions, and beside one that aborts.
    assert_eq!(run(&mut engine, &[1]), [both(0)]);
    let answers = run(&mut engine, &[1, 4, 1]);
    assert_eq!((&answers[0], &answers[2]), (&both(3), &both(6)));
    assert!(answers[1].is_err());
    assert_eq!(engine.get(TableId(0), &ROW).unwrap().unwrap(), row(9));

    let mistakes = [
        (2, "bytes 190 to 201 of a value of 200 bytes"),
        (3, "bytes 9 to 8 of a value of 200 bytes"),
    ];
    for (call, text) in mistakes {
        let answers = run(&mut engine, &[call]);
        assert!(answers[0].as_ref().is_err_and(|what| what.contains(text)), "{answers:?}");
    }
    assert_eq!(engine.get(TableId(0), &ROW).unwrap().unwrap(), row(9));
    assert_eq!(run(&mut engine, &[5]), [Ok(vec![0])]);
    assert_eq!(run(&mut engine, &[6]), [Ok(vec![])], "there is no such row to change");
}
