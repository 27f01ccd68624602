//! Window functions. Rows keep the order in which they came: the windows' orders only say what the
//! functions see.

use super::aggregate::{State, accumulate, result};
use super::budget::bytes_of;
use super::evaluate::{Evaluator, malformed};
use super::order::{compare, directions};
use super::scan::Each;
use super::weight;
use super::window_frame::{Frames, Partition};
use crate::ir::{Aggregate, Expression, Window, WindowCall, WindowFunction, Windows};
use std::ops::{ControlFlow, Range};
use values::{Datum, Error, Result, SqlState};

/// Gives the rows of a query, each with the results of window functions behind, to `each`.
pub(super) fn windowed(
    plan: &Windows,
    is_once: bool,
    evaluator: &mut Evaluator<'_>,
    each: &mut Each<'_, Vec<Datum>>,
) -> Result<()> {
    let mut rows: Vec<Vec<Datum>> = Vec::new();
    let mut held = 0;
    evaluator.visit_query(plan.rows, is_once, &mut |row, evaluator| {
        held += bytes_of(&row);
        evaluator.memory.add(&row)?;
        rows.push(row);
        Ok(ControlFlow::Continue(()))
    })?;
    let mut columns = vec![Vec::new(); plan.calls.len()];
    for (number, window) in plan.windows.iter().enumerate() {
        let sorted = Sorted::of(window, &rows, evaluator)?;
        for (call, column) in plan.calls.iter().zip(&mut columns) {
            if usize::from(call.window) == number {
                *column = sorted.column(call, &rows, evaluator)?;
                held += bytes_of(column);
            }
        }
        evaluator.memory.subtract(sorted.held);
    }
    for (at, mut row) in rows.into_iter().enumerate() {
        for column in &mut columns {
            let value = column.get_mut(at).ok_or_else(malformed)?;
            row.push(std::mem::replace(value, Datum::Null));
        }
        if each(row, evaluator)?.is_break() {
            break;
        }
    }
    evaluator.memory.subtract(held);
    Ok(())
}

/// Rows as a window sees them.
struct Sorted<'p> {
    window: &'p Window,
    rows: Vec<Place>,
    /// The memory that this takes.
    held: usize,
}

/// A row's place in a window.
struct Place {
    partition: Vec<u8>,
    keys: Vec<Datum>,
    /// Which row it is.
    row: usize,
}

impl<'p> Sorted<'p> {
    fn of(
        window: &'p Window,
        rows: &[Vec<Datum>],
        evaluator: &mut Evaluator<'_>,
    ) -> Result<Sorted<'p>> {
        let mut places = Vec::with_capacity(rows.len());
        let (mut held, mut compared) = (0, 0);
        for (at, row) in rows.iter().enumerate() {
            evaluator.rows.steps(1)?;
            let partition = evaluator.values(&window.partition, row)?;
            let partition = evaluator.identity(&partition, 1)?;
            let keys = window.order.iter().map(|key| evaluator.value(&key.value, row));
            let keys = keys.collect::<Result<Vec<_>>>()?;
            let bytes = size_of::<Place>() + partition.len() + bytes_of(&keys);
            held += bytes;
            compared += partition.len() + weight::heap_bytes(&keys);
            evaluator.memory.add_bytes(bytes)?;
            places.push(Place { partition, keys, row: at });
        }
        evaluator.count_sort(compared, places.len())?;
        // Stable: rows that are equal here stay in canonical order.
        places.sort_by(|left, right| {
            let partitions = left.partition.cmp(&right.partition);
            partitions.then_with(|| compare(&left.keys, &right.keys, directions(&window.order)))
        });
        Ok(Sorted { window, rows: places, held })
    }

    /// The results of a function, by the places of the rows.
    fn column(
        &self,
        call: &WindowCall,
        rows: &[Vec<Datum>],
        evaluator: &mut Evaluator<'_>,
    ) -> Result<Vec<Datum>> {
        let mut column = vec![Datum::Null; rows.len()];
        evaluator.memory.add(&column)?;
        for places in self.rows.chunk_by(|left, right| left.partition == right.partition) {
            let partition = self.partition(places, rows);
            let values = values(call, self.window, &partition, evaluator)?;
            for (place, value) in places.iter().zip(values) {
                column[place.row] = value;
            }
        }
        Ok(column)
    }

    fn partition<'r>(&self, places: &[Place], rows: &'r [Vec<Datum>]) -> Partition<'r> {
        let mut partition = Partition {
            rows: places.iter().map(|place| &rows[place.row][..]).collect(),
            peers: Vec::with_capacity(places.len()),
            begins: Vec::new(),
        };
        let order = &self.window.order;
        for (at, place) in places.iter().enumerate() {
            let is_peer =
                |before: &Place| compare(&before.keys, &place.keys, directions(order)).is_eq();
            if at == 0 || !is_peer(&places[at - 1]) {
                partition.begins.push(at);
            }
            partition.peers.push(partition.begins.len() - 1);
        }
        partition.begins.push(places.len());
        partition
    }
}

/// The results of a function for the rows of a partition. What they take beside their places is
/// added to the memory.
fn values(
    call: &WindowCall,
    window: &Window,
    partition: &Partition<'_>,
    evaluator: &mut Evaluator<'_>,
) -> Result<Vec<Datum>> {
    let count = partition.len();
    evaluator.rows.steps(count as u64)?;
    let ranks = |rank: &dyn Fn(usize) -> Datum| Ok((0..count).map(rank).collect());
    match &call.function {
        WindowFunction::RowNumber => ranks(&|at| number(at + 1)),
        WindowFunction::Rank => ranks(&|at| number(partition.peers_begin(at) + 1)),
        WindowFunction::DenseRank => ranks(&|at| number(partition.peers[at] + 1)),
        WindowFunction::PercentRank => ranks(&|at| match count {
            1 => Datum::Float8(0.0),
            _ => Datum::Float8(partition.peers_begin(at) as f64 / (count - 1) as f64),
        }),
        WindowFunction::CumulativeDistribution => {
            ranks(&|at| Datum::Float8(partition.peers_end(at) as f64 / count as f64))
        }
        WindowFunction::Tile => tiles(call, partition, evaluator),
        WindowFunction::Lag => shifted(call, partition, evaluator, -1),
        WindowFunction::Lead => shifted(call, partition, evaluator, 1),
        WindowFunction::FirstValue | WindowFunction::LastValue | WindowFunction::NthValue => {
            let frames = Frames::of(&call.frame, window, partition, evaluator)?;
            let mut values = Vec::with_capacity(count);
            for at in 0..count {
                let value = framed(call, &frames, partition, evaluator, at)?;
                evaluator.memory.add_bytes(value.heap_bytes())?;
                values.push(value);
            }
            Ok(values)
        }
        WindowFunction::Aggregate(aggregate) => {
            let frames = Frames::of(&call.frame, window, partition, evaluator)?;
            aggregated(aggregate, &frames, partition, evaluator)
        }
    }
}

fn number(count: usize) -> Datum {
    Datum::Int8(count as i64)
}

fn argument(call: &WindowCall, at: usize) -> Result<&Expression> {
    call.arguments.get(at).ok_or_else(malformed)
}

/// `ntile`: the first parts have one row more.
fn tiles(
    call: &WindowCall,
    partition: &Partition<'_>,
    evaluator: &mut Evaluator<'_>,
) -> Result<Vec<Datum>> {
    let count = partition.len();
    let parts = match evaluator.value(argument(call, 0)?, partition.rows[0])? {
        Datum::Null => return Ok(vec![Datum::Null; count]),
        Datum::Int4(parts) if parts > 0 => parts as usize,
        Datum::Int4(_) => {
            let message = "argument of ntile must be greater than zero";
            return Err(Error::new(SqlState::INVALID_NTILE, message));
        }
        _ => return Err(malformed()),
    };
    let (size, longer) = (count / parts, count % parts);
    let part = |at: usize| match at.checked_sub(longer * (size + 1)) {
        None => at / (size + 1),
        Some(rest) => longer + rest / size,
    };
    Ok((0..count).map(|at| Datum::Int4(part(at) as i32 + 1)).collect())
}

/// `lag` and `lead`: the value of another row, or a default.
fn shifted(
    call: &WindowCall,
    partition: &Partition<'_>,
    evaluator: &mut Evaluator<'_>,
    sign: i64,
) -> Result<Vec<Datum>> {
    let mut values = Vec::with_capacity(partition.len());
    for (at, row) in partition.rows.iter().enumerate() {
        let offset = match call.arguments.get(1) {
            Some(offset) => evaluator.value(offset, row)?,
            None => Datum::Int4(1),
        };
        let offset = match offset {
            Datum::Null => {
                values.push(Datum::Null);
                continue;
            }
            Datum::Int4(offset) => sign * i64::from(offset),
            _ => return Err(malformed()),
        };
        let other = usize::try_from(at as i64 + offset).ok();
        let other = other.and_then(|at| partition.rows.get(at));
        let value = match (other, call.arguments.get(2)) {
            (Some(other), _) => evaluator.value(argument(call, 0)?, other)?,
            (None, Some(default)) => evaluator.value(default, row)?,
            (None, None) => Datum::Null,
        };
        evaluator.memory.add_bytes(value.heap_bytes())?;
        values.push(value);
    }
    Ok(values)
}

/// `first_value`, `last_value` and `nth_value`
fn framed(
    call: &WindowCall,
    frames: &Frames<'_, '_>,
    partition: &Partition<'_>,
    evaluator: &mut Evaluator<'_>,
    at: usize,
) -> Result<Datum> {
    let frame = frames.around(at, evaluator)?;
    let place = match call.function {
        WindowFunction::FirstValue => 0,
        WindowFunction::LastValue => frame.len().wrapping_sub(1),
        _ => match evaluator.value(argument(call, 1)?, partition.rows[at])? {
            Datum::Null => return Ok(Datum::Null),
            Datum::Int4(nth) if nth > 0 => nth as usize - 1,
            Datum::Int4(_) => {
                let message = "argument of nth_value must be greater than zero";
                return Err(Error::new(SqlState::INVALID_NTH_VALUE, message));
            }
            _ => return Err(malformed()),
        },
    };
    match frame.clone().nth(place) {
        Some(other) => evaluator.value(argument(call, 0)?, partition.rows[other]),
        None => Ok(Datum::Null),
    }
}

/// The results of an aggregate: while frames only grow, it goes on.
fn aggregated(
    aggregate: &Aggregate,
    frames: &Frames<'_, '_>,
    partition: &Partition<'_>,
    evaluator: &mut Evaluator<'_>,
) -> Result<Vec<Datum>> {
    let before = evaluator.taken_bytes();
    let mut arguments = Vec::with_capacity(partition.len());
    for row in &partition.rows {
        let counts = evaluator.holds(&aggregate.filter, row)?;
        let own = match counts {
            true => Some(evaluator.values(&aggregate.arguments, row)?),
            false => None,
        };
        evaluator.memory.add(own.as_deref().unwrap_or_default())?;
        arguments.push(own);
    }
    let waiting = evaluator.taken_bytes();
    let mut running = Running { aggregate, state: State::new(), seen: 0..0, value: Datum::Null };
    let mut values = Vec::with_capacity(partition.len());
    let mut held = 0;
    for at in 0..partition.len() {
        let frame = frames.around(at, evaluator)?;
        if at == 0 || frame != running.seen {
            running.turn_to(frame, &arguments, evaluator)?;
        }
        held += running.value.heap_bytes();
        evaluator.release_to(waiting);
        evaluator.memory.add_bytes(held + running.state.bytes)?;
        evaluator.count_bytes(running.value.heap_bytes())?;
        values.push(running.value.clone());
    }
    evaluator.release_to(before);
    evaluator.memory.add_bytes(held)?;
    Ok(values)
}

/// An aggregate of a frame.
struct Running<'p> {
    aggregate: &'p Aggregate,
    state: State,
    seen: Range<usize>,
    value: Datum,
}

impl Running<'_> {
    fn turn_to(
        &mut self,
        frame: Range<usize>,
        arguments: &[Option<Vec<Datum>>],
        evaluator: &mut Evaluator<'_>,
    ) -> Result<()> {
        if frame.start != self.seen.start || frame.end < self.seen.end {
            self.state = State::new();
            self.seen = frame.start..frame.start;
        }
        let added = arguments.get(self.seen.end..frame.end).ok_or_else(malformed)?;
        evaluator.rows.steps(added.len() as u64)?;
        for own in added.iter().flatten() {
            let own = evaluator.copy(own)?;
            accumulate(self.aggregate, &mut self.state, own, evaluator)?;
        }
        self.value = result(&self.aggregate.kind, &self.state, evaluator)?;
        self.seen = frame;
        Ok(())
    }
}
