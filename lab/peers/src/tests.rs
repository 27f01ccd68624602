//! Comparisons without processes: of the databases, and of one that loses what it answered.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use crate::compare::compare;
use crate::host::{Host, Open};
use crate::link::Link;
use crate::order::{Answer, Order};
use crate::peer::{Caller, Does, Operation, Peer, Shape};
use crate::{
    Chosen, Database, Error, Load, Memory, Report, Result, Settings, databases, render, value,
};

/// A database in this process.
struct Direct(Host);

impl Link for Direct {
    fn ask(&mut self, order: &Order) -> Result<Answer> {
        match self.0.obey(order) {
            Answer::Failed(error) => Err(error),
            answer => Ok(answer),
        }
    }
}

fn settings(databases: Vec<Database>) -> Settings {
    let load = |clients, read_ratio, rows| Load { clients, read_ratio, rows };
    Settings {
        directory: ".".into(),
        databases,
        time: Duration::from_millis(20),
        rounds: 2,
        rows: 60,
        value_bytes: 50,
        operations: 1,
        loads: vec![load(1, 0, Chosen::All), load(4, 5, Chosen::Hot(3)), load(2, 10, Chosen::Zipf)],
        memory: None,
    }
}

/// Compares with databases that are opened in this way.
fn compared(settings: &Settings, open: Open) -> Result<Report> {
    let room = tempfile::tempdir().unwrap();
    let mut connect = |_| Ok(Box::new(Direct(Host::new(open))) as Box<dyn Link>);
    compare(settings, room.path(), &mut connect, &mut |_| ())
}

/// Everything is there of a run of all databases.
fn check(settings: &Settings) {
    let report = compared(settings, databases::open).unwrap();
    assert_eq!(report.rows.len(), settings.databases.len() * settings.loads.len());
    for row in &report.rows {
        assert!(row.figures.is_some() && row.does_not_run.is_none(), "{row:#?}");
        assert!(row.transactions > 0, "{row:#?}");
    }
    for of in &report.at_end {
        assert_eq!(of.checked_rows, Some(settings.rows), "{of:#?}");
        assert!(of.updates > Some(0) && of.disk_bytes > Some(0), "{of:#?}");
    }
    let text = render(&report);
    assert!(text.contains("2 callers, reads, of all"), "{text}");
}

#[test]
fn every_database_holds_what_it_answered() {
    check(&settings(Database::built()));
}

#[test]
fn every_database_runs_transactions_of_several_rows() {
    let mut settings = settings(Database::built());
    (settings.operations, settings.value_bytes) = (3, 3000);
    check(&settings);
}

#[test]
fn a_comparison_that_cannot_be_is_refused() {
    let error_of = |change: fn(&mut Settings)| {
        let mut settings = settings(vec![Database::Redb]);
        change(&mut settings);
        compared(&settings, databases::open).unwrap_err().to_string()
    };
    assert!(error_of(|of| of.databases.clear()).contains("nothing to measure"));
    assert!(error_of(|of| of.operations = 4).contains("4 operations on 3 of 60 rows"));
    assert!(error_of(|of| of.loads[0].rows = Chosen::Hot(61)).contains("on 61 of 60 rows"));
    assert!(error_of(|of| of.value_bytes = 15).contains("values of 15 bytes"));
    assert!(error_of(|of| of.loads[0].read_ratio = 11).contains("a load cannot be"));
}

/// What a made-up database does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Nothing,
    /// The tenth update is answered, and does not take place.
    LostUpdate,
    /// An update takes place twice.
    UpdateTwice,
    /// What is answered last is not there after the close.
    LostAtClose,
    /// A row is not there after the close.
    LostRow,
    /// A row that was never made is there after the close.
    NewRow,
    /// The end of a value is not what was written with its beginning.
    Torn,
    /// There is too much data.
    Refuses,
    /// It fails, but not for want of memory.
    Fails,
}

/// A database in memory, written to a file when it is closed.
struct Fake {
    path: PathBuf,
    shape: Shape,
    fault: Fault,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    rows: Vec<Vec<u8>>,
    updates: u64,
    last: Option<(u64, Vec<u8>)>,
}

impl Fake {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

impl Peer for Fake {
    fn load(&self) -> Result<()> {
        match self.fault {
            Fault::Refuses => return Err(Error::refused("fake", "too much data")),
            Fault::Fails => return Err(Error::of("fake", "broken")),
            _ => {}
        }
        let values = (0..self.shape.rows).map(|row| value::value(row, 0, self.shape.value_bytes));
        self.state().rows = values.collect();
        Ok(())
    }

    fn caller(&self) -> Result<Box<dyn Caller + '_>> {
        Ok(Box::new(self))
    }

    fn rows(&self, each: &mut dyn FnMut(u64, &[u8]) -> Result<()>) -> Result<()> {
        self.state().rows.iter().zip(0..).try_for_each(|(value, row)| each(row, value))
    }

    fn close(self: Box<Self>) -> Result<()> {
        let mut state = self.state();
        match (self.fault, state.last.take()) {
            (Fault::LostAtClose, Some((row, before))) => state.rows[row as usize] = before,
            (Fault::LostRow, _) => drop(state.rows.pop()),
            (Fault::NewRow, _) => {
                let value = value::value(self.shape.rows, 0, self.shape.value_bytes);
                state.rows.push(value);
            }
            (Fault::Torn, _) => *state.rows[1].last_mut().unwrap() ^= 1,
            _ => {}
        }
        fs::write(&self.path, serde_json::to_vec(&state.rows).unwrap()).unwrap();
        Ok(())
    }
}

impl Caller for &Fake {
    fn transact(&mut self, operations: &[Operation]) -> Result<()> {
        let mut state = self.state();
        for &Operation { row, .. } in operations.iter().filter(|of| of.does == Does::Update) {
            state.updates += 1;
            let before = state.rows[row as usize].clone();
            let mut after = value::updated(row, &before).unwrap();
            match (self.fault, state.updates) {
                (Fault::LostUpdate, 10) => continue,
                (Fault::UpdateTwice, 10) => after = value::updated(row, &after).unwrap(),
                _ => {}
            }
            state.rows[row as usize] = after;
            state.last = Some((row, before));
        }
        Ok(())
    }
}

/// Opens a fake with a fault, for [`Open`], which is a plain function.
fn open<const FAULT: u8>(_: Database, path: &Path, shape: Shape) -> Result<Box<dyn Peer>> {
    let rows = match fs::read(path) {
        Ok(kept) => serde_json::from_slice(&kept).unwrap(),
        Err(_) => {
            fs::write(path, "[]").unwrap();
            Vec::new()
        }
    };
    let fault = FAULTS[usize::from(FAULT)];
    let state = Mutex::new(State { rows, ..State::default() });
    Ok(Box::new(Fake { path: path.into(), shape, fault, state }))
}

const FAULTS: [Fault; 9] = [
    Fault::Nothing,
    Fault::LostUpdate,
    Fault::UpdateTwice,
    Fault::LostAtClose,
    Fault::LostRow,
    Fault::NewRow,
    Fault::Torn,
    Fault::Refuses,
    Fault::Fails,
];

fn with_fault(fault: Fault, change: fn(&mut Settings)) -> Result<Report> {
    let opens: [Open; 9] = [
        open::<0>, open::<1>, open::<2>, open::<3>, open::<4>, open::<5>, open::<6>, open::<7>,
        open::<8>,
    ];
    let mut settings = settings(vec![Database::Redb]);
    settings.rounds = 1;
    settings.loads.truncate(1);
    change(&mut settings);
    let number = FAULTS.iter().position(|of| *of == fault).unwrap();
    compared(&settings, opens[number])
}

#[test]
fn a_database_without_a_fault_passes() {
    let report = with_fault(Fault::Nothing, |_| ()).unwrap();
    assert_eq!(report.at_end[0].checked_rows, Some(60));
}

#[test]
fn a_database_that_loses_what_it_answered_is_found_out() {
    let lost = |fault, words: &str| match with_fault(fault, |_| ()) {
        Err(Error::Lost(found)) => assert!(found.contains(words), "{fault:?}: {found}"),
        other => panic!("{fault:?}: {other:#?}"),
    };
    lost(Fault::LostUpdate, "were answered, and it holds");
    lost(Fault::UpdateTwice, "were answered, and it holds");
    lost(Fault::LostAtClose, "were answered, and it holds");
    lost(Fault::LostRow, "59 of 60 rows are there");
    lost(Fault::NewRow, "row 60 is there");
    lost(Fault::Torn, "row 1 holds what was not written");
}

#[test]
fn a_database_that_refuses_data_larger_than_memory_stays_in_the_report() {
    let limit = |of: &mut Settings| of.memory = Some(Memory { bytes: 1 << 20, group: None });
    let report = with_fault(Fault::Refuses, limit).unwrap();
    assert_eq!(report.rows.len(), 1);
    for row in &report.rows {
        assert!(row.figures.is_none(), "{row:#?}");
        assert_eq!(row.does_not_run.as_deref(), Some("fake: too much data"));
    }
    assert!(report.at_end[0].checked_rows.is_none());
    let text = render(&report);
    assert!(text.contains("does not run: fake: too much data"), "{text}");
    assert!(text.contains("1 did not run to the end"), "{text}");
    // Without a limit of memory, and for any other reason, it is an error.
    assert!(matches!(with_fault(Fault::Refuses, |_| ()), Err(Error::Refused(_))));
    assert!(matches!(with_fault(Fault::Fails, limit), Err(Error::Failed(_))));
}
