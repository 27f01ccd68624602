//! Rows with one inline value, on a device that takes image snapshots: a final write is stored over
//! the version before, which others still see.

use std::sync::{Mutex, mpsc};

use engine::{
    Answer, Calls, Engine, EngineConfig, EpochInfo, ProcedureDefinition, ProcedureTable,
    ReadOutcome,
};
use pmem::{AnyDevice, Device, Dram, File, FileOptions};
use storage::{TableDefinition, TableId};

use crate::support::rows;

const ROWS: TableId = TableId(0);
const KEY: [u8; 8] = [7; 8];

/// A call.
#[derive(Clone, Copy)]
enum Call<'c> {
    /// Writes the row.
    Put(&'c [u8]),
    /// Sets one byte of it.
    Change { at: u8, to: u8 },
    /// Waits, where there is somebody to wait for.
    Wait,
}

/// Whom a call that waits tells so, and what it waits for.
struct Meeting {
    is_there: mpsc::Sender<()>,
    may_go: mpsc::Receiver<()>,
}

static MEETING: Mutex<Option<Meeting>> = Mutex::new(None);

fn procedures() -> ProcedureTable {
    let mut table = ProcedureTable::new();
    table.add(ProcedureDefinition {
        name: "put",
        sequences: None,
        write_set: |_, set| {
            set.insert(ROWS, &KEY);
            Ok(())
        },
        body: |args, tx| tx.insert(ROWS, &KEY, args),
        pieces: None,
    });
    table.add(ProcedureDefinition {
        name: "change",
        sequences: None,
        write_set: |_, set| {
            set.update(ROWS, &KEY);
            Ok(())
        },
        body: |args, tx| {
            let at = usize::from(args[0]);
            tx.modify_part(ROWS, &KEY, at..at + 1, |_, part| part[0] = args[1])?;
            Ok(())
        },
        pieces: None,
    });
    table.add(ProcedureDefinition {
        name: "wait",
        sequences: None,
        write_set: |_, _| Ok(()),
        body: |_, _| {
            if let Some(meeting) = MEETING.lock().unwrap().take() {
                meeting.is_there.send(()).unwrap();
                meeting.may_go.recv().unwrap();
            }
            Ok(())
        },
        pieces: None,
    });
    table
}

fn open(device: impl Device, definition: &TableDefinition) -> Engine {
    let config = EngineConfig { workers: 1, ..EngineConfig::default() };
    let tables = std::slice::from_ref(definition);
    Engine::open(AnyDevice::new(device), config, tables, procedures()).unwrap().0
}

fn file(directory: &std::path::Path) -> File {
    File::open(directory, &FileOptions::new(1 << 28, 1 << 26)).unwrap()
}

fn run(engine: &mut Engine, calls: &[Call<'_>]) {
    let mut batch = Calls::new();
    for call in calls {
        match *call {
            Call::Put(value) => batch.push(0, value),
            Call::Change { at, to } => batch.push(1, &[at, to]),
            Call::Wait => batch.push(2, &[]),
        }
        .unwrap();
    }
    let outcome = engine.run_epoch(&batch, EpochInfo::default()).unwrap();
    for position in 0..calls.len() {
        assert_eq!(outcome.answer(position), Answer::Committed(&[]), "call {position}");
    }
}

/// The row as it was before the epoch is what readers see, and what snapshots do, when its final
/// write is stored already: the next call waits until they have read.
#[test]
fn o_106_a_version_that_is_written_over_is_seen_until_its_epoch_has_ended() {
    let directory = tempfile::tempdir().unwrap();
    let mut engine = open(file(directory.path()), &rows(200));
    run(&mut engine, &[Call::Put(&[1; 200])]);
    let (reader, snapshot) = (engine.reader(), engine.snapshot());
    let get = || {
        let mut value = Vec::new();
        assert_eq!(reader.get(0, ROWS, &KEY, &mut value).unwrap(), ReadOutcome::Found);
        value
    };
    for (at, to) in [(199, 2), (64, 3)] {
        let before = get();
        std::thread::scope(|scope| {
            // Dropped where a check fails, so that no call waits for ever.
            let ((is_there, written), (have_read, may_go)) = (mpsc::channel(), mpsc::channel());
            *MEETING.lock().unwrap() = Some(Meeting { is_there, may_go });
            let epoch = scope.spawn(|| run(&mut engine, &[Call::Change { at, to }, Call::Wait]));
            written.recv().unwrap();
            assert_eq!(get(), before, "byte {at}");
            let at_snapshot = reader.get_at(0, snapshot, ROWS, &KEY).unwrap();
            assert_eq!(at_snapshot.as_deref(), Some(&[1; 200][..]), "byte {at}");
            have_read.send(()).unwrap();
            epoch.join().unwrap();
        });
        let mut after = before;
        after[usize::from(at)] = to;
        assert_eq!(get(), after, "byte {at}");
    }
    engine.close().unwrap();
}

/// Rows of a file are shorter, where two values would take more lines than one, and the catalog
/// says the same of tables on any device. Values may be of any length, in the heap and in pools.
#[test]
fn rows_have_one_inline_value_where_a_crash_leads_back_to_a_snapshot() {
    for (definition, of_two, of_one) in [
        (rows(8), 64, 64),
        (rows(32), 128, 128),
        (rows(48), 192, 128),
        (rows(1000), 2112, 1088),
        (TableDefinition { row_bytes: 512, ..rows(5000) }, 512, 256),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let longest = definition.value_bytes_max as usize;
        let mut on_file = open(file(directory.path()), &definition);
        let mut on_dram = open(Dram::new(1 << 28, 1 << 26).unwrap(), &definition);
        let row_bytes = [on_file.store().tables(), on_dram.store().tables()]
            .map(|tables| tables[0].layout.row_bytes);
        assert_eq!(row_bytes, [of_one, of_two], "{definition:?}");
        let [here, there] =
            [on_file.store().tables(), on_dram.store().tables()].map(|t| t[0].definition.clone());
        assert_eq!(here, there);
        let lengths = [longest, longest / 2, 0, longest, 8.min(longest), longest, longest];
        for (epoch, len) in lengths.into_iter().enumerate() {
            let value = vec![epoch as u8; len];
            let changes = [99, 98].map(|to| Call::Change { at: 0, to });
            let epochs = [&[Call::Put(&value)][..], if len > 0 { &changes } else { &[] }];
            for calls in epochs {
                run(&mut on_file, calls);
                run(&mut on_dram, calls);
            }
            assert_eq!(on_file.state_hash(), on_dram.state_hash(), "epoch {epoch}: {len} bytes");
        }
        let hash = on_file.state_hash();
        on_file.close().unwrap();
        let again = open(file(directory.path()), &definition);
        assert_eq!(again.state_hash(), hash);
    }
}
