//! A partition of a window in its order, and which of its rows a frame has.

use super::compute;
use super::evaluate::{Evaluator, malformed};
use crate::ir::{Expression, Frame, FrameBound, FrameUnit, Function, Window};
use std::ops::Range;
use values::{Datum, Error, Interval, Numeric, Result, SqlState};

/// The rows of a partition in the window's order. A position is a place in that order.
pub(super) struct Partition<'r> {
    pub(super) rows: Vec<&'r [Datum]>,
    /// The set of peers of each position.
    pub(super) peers: Vec<usize>,
    /// Where each set of peers begins, and the end of the last one.
    pub(super) begins: Vec<usize>,
}

impl Partition<'_> {
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The position of the first peer.
    pub(super) fn peers_begin(&self, at: usize) -> usize {
        self.begins[self.peers[at]]
    }

    /// The position behind the last peer.
    pub(super) fn peers_end(&self, at: usize) -> usize {
        self.begins[self.peers[at] + 1]
    }
}

/// The frames of the rows of a partition.
pub(super) struct Frames<'p, 'r> {
    partition: &'p Partition<'r>,
    unit: Unit,
    begin: Edge,
    end: Edge,
}

enum Unit {
    Rows,
    Groups,
    Range(Values),
}

/// The values of a partition's rows that offsets are counted from.
#[derive(Default)]
struct Values {
    all: Vec<Datum>,
    /// Those that are not NULL.
    known: Range<usize>,
    descending: bool,
}

/// Where a frame begins or ends, with its offset.
enum Edge {
    First,
    Before(Datum),
    Current,
    After(Datum),
    Last,
}

/// Which end of a frame an edge is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Begin,
    End,
}

impl<'p, 'r> Frames<'p, 'r> {
    pub(super) fn of(
        frame: &Frame,
        window: &Window,
        partition: &'p Partition<'r>,
        evaluator: &mut Evaluator<'_>,
    ) -> Result<Frames<'p, 'r>> {
        let unit = match &frame.unit {
            FrameUnit::Rows => Unit::Rows,
            FrameUnit::Groups => Unit::Groups,
            FrameUnit::Range(None) => Unit::Range(Values::default()),
            FrameUnit::Range(Some(value)) => {
                let descending = window.order.first().ok_or_else(malformed)?.descending;
                Unit::Range(Values::of(value, descending, partition, evaluator)?)
            }
        };
        let counts = !matches!(unit, Unit::Range(_));
        let begin = edge(&frame.begin, counts, "starting", evaluator)?;
        let end = edge(&frame.end, counts, "ending", evaluator)?;
        Ok(Frames { partition, unit, begin, end })
    }

    /// The positions that the frame of one has.
    pub(super) fn around(&self, at: usize, evaluator: &mut Evaluator<'_>) -> Result<Range<usize>> {
        let begin = self.edge(&self.begin, at, Side::Begin, evaluator)?;
        let end = self.edge(&self.end, at, Side::End, evaluator)?;
        Ok(begin..end.max(begin))
    }

    fn edge(
        &self,
        edge: &Edge,
        at: usize,
        side: Side,
        evaluator: &mut Evaluator<'_>,
    ) -> Result<usize> {
        let partition = self.partition;
        let behind = usize::from(side == Side::End);
        Ok(match (&self.unit, edge) {
            (_, Edge::First) => 0,
            (_, Edge::Last) => partition.len(),
            (Unit::Rows, Edge::Current) => at + behind,
            (Unit::Rows, Edge::Before(offset)) => (at + behind).saturating_sub(count(offset)?),
            (Unit::Rows, Edge::After(offset)) => {
                (at + behind).saturating_add(count(offset)?).min(partition.len())
            }
            (_, Edge::Current) => partition.begins[partition.peers[at] + behind],
            (Unit::Groups, Edge::Before(offset)) => {
                let peers = (partition.peers[at] + behind).saturating_sub(count(offset)?);
                partition.begins[peers]
            }
            (Unit::Groups, Edge::After(offset)) => {
                let peers = (partition.peers[at] + behind).saturating_add(count(offset)?);
                partition.begins.get(peers).copied().unwrap_or(partition.len())
            }
            (Unit::Range(values), Edge::Before(offset) | Edge::After(offset)) => {
                let own = values.all.get(at).ok_or_else(malformed)?;
                if own.is_null() {
                    return Ok(partition.begins[partition.peers[at] + behind]);
                }
                let is_less = matches!(edge, Edge::Before(_)) != values.descending;
                let function = if is_less { Function::Subtract } else { Function::Add };
                let both = [own.clone(), offset.clone()];
                let limit = compute::call(function, &both, evaluator.context, evaluator.rows)?;
                values.place(&limit, side)
            }
        })
    }
}

impl Values {
    fn of(
        value: &Expression,
        descending: bool,
        partition: &Partition<'_>,
        evaluator: &mut Evaluator<'_>,
    ) -> Result<Values> {
        let rows = partition.rows.iter();
        let all = rows.map(|row| evaluator.value(value, row)).collect::<Result<Vec<_>>>()?;
        let begin = all.iter().take_while(|value| value.is_null()).count();
        let known = all[begin..].iter().take_while(|value| !value.is_null()).count();
        Ok(Values { all, known: begin..begin + known, descending })
    }

    /// The first position within the limit, or behind all that are.
    fn place(&self, limit: &Datum, side: Side) -> usize {
        let is_before = |value: &Datum| {
            let order = value.compare(limit);
            let order = if self.descending { order.reverse() } else { order };
            order.is_lt() || side == Side::End && order.is_eq()
        };
        self.known.start + self.all[self.known.clone()].partition_point(is_before)
    }
}

fn edge(
    bound: &FrameBound,
    counts: bool,
    which: &str,
    evaluator: &mut Evaluator<'_>,
) -> Result<Edge> {
    let mut offset = |expression| {
        let offset = evaluator.value(expression, &[])?;
        if offset.is_null() {
            let message = format!("frame {which} offset must not be null");
            return Err(Error::new(SqlState::NULL_NOT_ALLOWED, message));
        }
        if is_negative(&offset)? {
            let message = match counts {
                true => format!("frame {which} offset must not be negative"),
                false => "invalid preceding or following size in window function".to_owned(),
            };
            return Err(Error::new(SqlState::INVALID_FRAME_OFFSET, message));
        }
        Ok(offset)
    };
    Ok(match bound {
        FrameBound::UnboundedPreceding => Edge::First,
        FrameBound::Preceding(expression) => Edge::Before(offset(expression)?),
        FrameBound::CurrentRow => Edge::Current,
        FrameBound::Following(expression) => Edge::After(offset(expression)?),
        FrameBound::UnboundedFollowing => Edge::Last,
    })
}

fn is_negative(offset: &Datum) -> Result<bool> {
    let zero = match offset {
        Datum::Int8(_) => Datum::Int8(0),
        Datum::Numeric(_) => Datum::Numeric(Numeric::from(0)),
        Datum::Float8(value) if value.is_nan() => return Ok(true),
        Datum::Float8(_) => Datum::Float8(0.0),
        Datum::Interval(_) => Datum::Interval(Interval::default()),
        _ => return Err(malformed()),
    };
    Ok(offset.compare(&zero).is_lt())
}

fn count(offset: &Datum) -> Result<usize> {
    match offset {
        Datum::Int8(count) => Ok(usize::try_from(*count).unwrap_or(usize::MAX)),
        _ => Err(malformed()),
    }
}
