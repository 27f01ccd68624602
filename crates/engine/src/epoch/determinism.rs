//! A debug mode: the calls of the serial part run twice, and must do the same both times.
//!
//! The serial part is private until the epoch is accepted, so that all that the first run did can
//! be taken back as if the epoch were refused. The second run then begins with the same state, the
//! same timestamp and the same seeds. What a call does is its answer, the rows that it leaves, the
//! numbers that it allocates and the writes that it predicts; the first call that does something
//! else is to blame, because all before it left the same. Nothing of the epoch has been logged or
//! answered then.

use std::collections::BTreeMap;

use pmem::Device;

use super::sequences;
use crate::call::batch::{Abort, Failure};
use crate::contention::rows::RowName;
use crate::declaration::local::{Declarations, Declared, DeclaredKind, Local};
use crate::declaration::overlay::{Now, Overlay, OverlayRow};
use crate::error::EngineError;
use crate::error::hex;
use crate::program::procedure::Registered;
use crate::worker::{Epoch, Worker};

/// How a call ended.
#[derive(Debug, PartialEq, Eq)]
enum Ending {
    Answered(Box<[u8]>),
    Aborted(Abort),
    Failed(String),
}

/// What a call did.
#[derive(Debug, PartialEq, Eq)]
struct Did {
    ending: Ending,
    /// The rows that it wrote and their values; nothing for one that it deleted.
    writes: BTreeMap<RowName, Option<Box<[u8]>>>,
    /// Sequences and numbers.
    allocations: Vec<(u16, u64, u64)>,
    /// The keys and ranges that it declared.
    declared: Vec<(RowName, Box<[u8]>)>,
}

/// What the calls of the first run did, and how many of them have done the same again.
#[derive(Debug, Default)]
pub(super) struct DeterminismCheck {
    first: Vec<Did>,
    again: Option<usize>,
}

impl DeterminismCheck {
    /// Takes the first run back. The next calls are those of the second one.
    pub(super) fn begin_again<D: Device>(
        &mut self,
        epoch: &Epoch<'_, D>,
        worker: &mut Worker<D>,
        overlay: &mut Overlay,
    ) {
        sequences::undo(epoch, worker);
        epoch.core.secondary.roll_back(&mut overlay.index_undo, true);
        overlay.begin(&epoch.core.tables);
        let Local { sequences, answers, work, .. } = &mut worker.local;
        sequences.clear();
        *answers = Default::default();
        *work = Default::default();
        self.again = Some(0);
    }

    /// A call has run: with this failure, or with what it put out. In the second run it must have
    /// done what it did in the first one.
    ///
    /// # Errors
    /// What it did instead.
    pub(super) fn ran<D: Device>(
        &mut self,
        epoch: &Epoch<'_, D>,
        (failure, put_out): (Option<&Failure>, &[u8]),
        lists: &Declarations,
        overlay: &Overlay,
        position: u32,
    ) -> Result<(), EngineError> {
        let did = Did {
            ending: match failure {
                None => Ending::Answered(put_out.into()),
                Some(Failure::Aborted(abort)) => Ending::Aborted(abort.clone()),
                Some(Failure::Failed(why)) => Ending::Failed(why.clone()),
                Some(Failure::Deferred) => unreachable!("no call of the serial part is deferred"),
            },
            writes: if failure.is_none() { writes(overlay) } else { BTreeMap::new() },
            allocations: allocations(lists),
            declared: declared(lists),
        };
        let Some(again) = &mut self.again else {
            self.first.push(did);
            return Ok(());
        };
        let first = &self.first[*again];
        *again += 1;
        match *first == did {
            true => Ok(()),
            false => Err(blame(epoch, position, (first, &did))),
        }
    }
}

/// The rows that the running call has written.
fn writes(overlay: &Overlay) -> BTreeMap<RowName, Option<Box<[u8]>>> {
    let written = overlay.written_by_running();
    let row = |row: &OverlayRow| {
        let key = overlay.key(row, &mut [0; 8]).into();
        let value = match row.now {
            Now::Value(kept) => Some(overlay.bytes(kept).into()),
            Now::Unchanged | Now::Deleted => None,
        };
        ((row.table, key), value)
    };
    written.map(row).collect()
}

/// The order of allocations from different sequences means nothing.
fn allocations(lists: &Declarations) -> Vec<(u16, u64, u64)> {
    let mut allocations: Vec<_> =
        lists.allocations.iter().map(|d| (d.table, d.key, d.value)).collect();
    allocations.sort_unstable();
    allocations
}

/// Nor does the order of what is declared. What is only read is a hint.
fn declared(lists: &Declarations) -> Vec<(RowName, Box<[u8]>)> {
    let mut room = [0; 8];
    let mut key_of = |of: &Declared| lists.key_of(of, &mut room).into();
    let writes = lists.declared.iter().filter(|of| of.kind != DeclaredKind::Read);
    let keys = writes.map(|of| ((of.table, key_of(of)), [].into()));
    let ranges = lists.ranges.iter().map(|range| {
        let (low, high) = (&lists.keys[range.low.range()], &lists.keys[range.high.range()]);
        ((range.table, low.into()), high.into())
    });
    let mut all: Vec<(RowName, Box<[u8]>)> = keys.chain(ranges).collect();
    all.sort_unstable();
    all
}

/// What a call of a procedure did the first time and the second time, in words.
fn difference<D: Device>(
    epoch: &Epoch<'_, D>,
    procedure: &Registered,
    (first, again): (&Did, &Did),
) -> String {
    if first.ending != again.ending {
        let shown = |answer: &[u8]| procedure.show(answer).unwrap_or_else(|| hex(answer));
        let [first, again] = [&first.ending, &again.ending].map(|ending| match ending {
            Ending::Answered(answer) => format!("answered {}", shown(answer)),
            Ending::Aborted(abort) => format!("gave up ({abort})"),
            Ending::Failed(why) => format!("failed ({why})"),
        });
        return format!("{first} and, run again, {again}");
    }
    let rows = first.writes.keys().chain(again.writes.keys());
    let mut differ = rows.filter(|row| first.writes.get(*row) != again.writes.get(*row));
    if let Some(row) = differ.next() {
        let [first, again] = [first, again].map(|did| match did.writes.get(row) {
            None => "did not write".to_string(),
            Some(None) => "deleted".to_string(),
            Some(Some(value)) => format!("wrote {} to", hex(value)),
        });
        let (table, key) = (&epoch.core.tables[usize::from(row.0)].name, hex(&row.1));
        return format!("{first} row {key} of table {table:?} and, run again, {again} it");
    }
    if first.allocations != again.allocations {
        return "allocated from sequences and, run again, drew others or other numbers".into();
    }
    "predicted what it may write and, run again, predicted something else".into()
}

fn blame<D: Device>(epoch: &Epoch<'_, D>, position: u32, did: (&Did, &Did)) -> EngineError {
    let number = epoch.calls.get(position as usize).0;
    let procedure = epoch.procedures.get(number).expect("checked before the epoch began");
    EngineError::NotDeterministic {
        procedure: procedure.name().to_string(),
        epoch: epoch.number,
        position,
        what: difference(epoch, procedure, did),
    }
}
