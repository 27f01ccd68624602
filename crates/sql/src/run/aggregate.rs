//! Groups and aggregates. Groups come by first appearance, rows in canonical order, so that sums of
//! floats do not depend on the plan.

use super::budget::bytes_of;
use super::evaluate::Evaluator;
use super::scan::Each;
use crate::ir::{Aggregate, AggregateKind, Function, Group, Op, Relation};
use std::collections::{BTreeMap, BTreeSet};
use values::{Array, Datum, Error, Numeric, Result, SqlState, Type, row};

/// What an aggregate has seen so far.
struct State {
    count: i64,
    value: Datum,
    items: Vec<Datum>,
    seen: BTreeSet<Vec<u8>>,
    /// The memory that it takes beside itself.
    bytes: usize,
}

impl State {
    fn new() -> State {
        State { count: 0, value: Datum::Null, items: Vec::new(), seen: BTreeSet::new(), bytes: 0 }
    }

    /// Another value.
    fn set(&mut self, value: Datum) {
        self.bytes = self.bytes + value.memory_bytes() - self.value.memory_bytes();
        self.value = value;
    }
}

/// Bytes that are the same for equal values, and different for others.
pub(super) fn identity(values: &[Datum]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for value in values {
        let begin = bytes.len();
        bytes.extend_from_slice(&[0; 5]);
        match value {
            Datum::Null => {}
            value if value.kind().is_some_and(Type::may_be_key) => {
                values::key::push(&mut bytes, value, values::key::Order::default());
            }
            value => row::push_value(value, &mut bytes),
        }
        let length = (bytes.len() - begin - 5) as u32;
        bytes[begin] = u8::from(!value.is_null());
        bytes[begin + 1..begin + 5].copy_from_slice(&length.to_le_bytes());
    }
    bytes
}

/// The groups of rows that come one after the other.
pub(super) struct Groups<'p> {
    group: &'p Group,
    places: BTreeMap<Vec<u8>, usize>,
    groups: Vec<(Vec<Datum>, Vec<State>)>,
    /// The memory that they take.
    held: usize,
}

impl<'p> Groups<'p> {
    /// No rows yet.
    pub(super) fn of(group: &'p Group) -> Groups<'p> {
        let (places, groups) = (BTreeMap::new(), Vec::new());
        let mut all = Groups { group, places, groups, held: 0 };
        if group.keys.is_empty() {
            all.places.insert(Vec::new(), 0);
            all.groups.push((Vec::new(), all.states()));
        }
        all
    }

    fn states(&self) -> Vec<State> {
        self.group.aggregates.iter().map(|_| State::new()).collect()
    }

    /// Counts a row.
    pub(super) fn add(&mut self, row: &[Datum], evaluator: &mut Evaluator<'_>) -> Result<()> {
        let group = self.group;
        let keys = evaluator.values(&group.keys, row)?;
        let key = identity(&keys);
        let key_bytes = key.len();
        let place = *self.places.entry(key).or_insert(self.groups.len());
        if place == self.groups.len() {
            let bytes = bytes_of(&keys) + key_bytes + group.aggregates.len() * size_of::<State>();
            evaluator.memory.add_bytes(bytes)?;
            self.held += bytes;
            self.groups.push((keys, self.states()));
        }
        for (aggregate, state) in group.aggregates.iter().zip(&mut self.groups[place].1) {
            let before = state.bytes;
            add(aggregate, state, row, evaluator)?;
            evaluator.memory.add_bytes(state.bytes.saturating_sub(before))?;
            evaluator.memory.subtract(before.saturating_sub(state.bytes));
            self.held = self.held + state.bytes - before;
        }
        Ok(())
    }

    /// Gives each group to `each`: keys, then aggregates.
    pub(super) fn finish(
        self,
        evaluator: &mut Evaluator<'_>,
        each: &mut Each<'_, Vec<Datum>>,
    ) -> Result<()> {
        for (mut keys, states) in self.groups {
            for (aggregate, state) in self.group.aggregates.iter().zip(states) {
                keys.push(finish(aggregate, state)?);
            }
            if each(keys, evaluator)?.is_break() {
                break;
            }
        }
        evaluator.memory.subtract(self.held);
        Ok(())
    }
}

/// Whether the aggregates of all rows come to the same in any order of these.
pub(super) fn has_no_order(group: &Group, relation: Option<&Relation>) -> bool {
    let is_exact = |aggregate: &Aggregate| {
        let ty = match aggregate.arguments.first().map(|argument| &argument.code[..]) {
            None => return aggregate.kind == AggregateKind::CountRows,
            Some([Op::Column(column)]) => {
                let columns = relation.map(|relation| &relation.columns[..]).unwrap_or_default();
                columns.get(usize::from(*column)).map(|column| column.kind.ty)
            }
            Some(_) => return false,
        };
        match aggregate.kind {
            AggregateKind::Count | AggregateKind::BoolAnd | AggregateKind::BoolOr => true,
            AggregateKind::Sum | AggregateKind::Average => ty.is_some_and(Type::is_integer),
            AggregateKind::Minimum | AggregateKind::Maximum => matches!(
                ty,
                Some(
                    Type::Int2
                        | Type::Int4
                        | Type::Int8
                        | Type::Text
                        | Type::Date
                        | Type::Timestamp
                        | Type::Timestamptz
                )
            ),
            _ => false,
        }
    };
    group.keys.is_empty()
        && group.aggregates.iter().all(|each| each.filter.is_none() && is_exact(each))
}

fn add(
    aggregate: &Aggregate,
    state: &mut State,
    row: &[Datum],
    evaluator: &mut Evaluator<'_>,
) -> Result<()> {
    if !evaluator.holds(&aggregate.filter, row)? {
        return Ok(());
    }
    if aggregate.kind == AggregateKind::CountRows {
        state.count += 1;
        return Ok(());
    }
    let arguments = evaluator.values(&aggregate.arguments, row)?;
    let Some(value) = arguments.first() else { return Err(malformed()) };
    if aggregate.kind == AggregateKind::First {
        if state.count == 0 {
            state.set(value.clone());
        }
        state.count += 1;
        return Ok(());
    }
    if value.is_null() && aggregate.kind != AggregateKind::ArrayAggregate {
        return Ok(());
    }
    if aggregate.distinct {
        let identity = identity(&arguments[..1]);
        let bytes = size_of::<Vec<u8>>() + identity.len();
        if !state.seen.insert(identity) {
            return Ok(());
        }
        state.bytes += bytes;
    }
    state.count += 1;
    match aggregate.kind {
        AggregateKind::CountRows | AggregateKind::Count => {}
        AggregateKind::Sum | AggregateKind::Average => {
            let wide = widen(value);
            state.value = match std::mem::replace(&mut state.value, Datum::Null) {
                Datum::Null => wide,
                sum => super::compute::call(Function::Add, &[sum, wide], evaluator.context)?,
            };
        }
        AggregateKind::Minimum if state.value.is_null() || value.compare(&state.value).is_lt() => {
            state.set(value.clone());
        }
        AggregateKind::Maximum if state.value.is_null() || value.compare(&state.value).is_gt() => {
            state.set(value.clone());
        }
        AggregateKind::Minimum | AggregateKind::Maximum | AggregateKind::First => {}
        AggregateKind::BoolAnd | AggregateKind::BoolOr => {
            let wins = Datum::Bool(aggregate.kind == AggregateKind::BoolOr);
            if state.value != wins {
                state.value = value.clone();
            }
        }
        AggregateKind::StringAggregate | AggregateKind::ArrayAggregate => {
            if aggregate.kind == AggregateKind::StringAggregate && state.count > 1 {
                state.items.push(arguments.get(1).cloned().unwrap_or(Datum::Null));
            }
            state.bytes += bytes_of(&arguments);
            state.items.push(value.clone());
        }
    }
    Ok(())
}

/// Sums of integers are exact in a numeric; those of floats stay floats.
fn widen(value: &Datum) -> Datum {
    match value {
        Datum::Int2(value) => Datum::Numeric(Numeric::from(i64::from(*value))),
        Datum::Int4(value) => Datum::Numeric(Numeric::from(i64::from(*value))),
        Datum::Int8(value) => Datum::Numeric(Numeric::from(*value)),
        other => other.clone(),
    }
}

fn malformed() -> Error {
    Error::new(SqlState::DATA_CORRUPTED, "plan has a malformed aggregate")
}

/// The binder casts the result to its type.
fn finish(aggregate: &Aggregate, state: State) -> Result<Datum> {
    Ok(match aggregate.kind {
        AggregateKind::CountRows | AggregateKind::Count => Datum::Int8(state.count),
        AggregateKind::Average => match state.value {
            Datum::Numeric(sum) => Datum::Numeric(sum.divide(&Numeric::from(state.count))?),
            Datum::Float4(sum) => Datum::Float8(f64::from(sum) / state.count as f64),
            Datum::Float8(sum) => Datum::Float8(sum / state.count as f64),
            Datum::Null => Datum::Null,
            _ => return Err(malformed()),
        },
        AggregateKind::StringAggregate if state.items.is_empty() => Datum::Null,
        AggregateKind::StringAggregate => {
            let parts = state.items.iter().map(|item| match item {
                Datum::Text(text) => text,
                _ => "",
            });
            Datum::text(parts.collect::<String>())
        }
        AggregateKind::ArrayAggregate => match state.items.iter().find_map(Datum::kind) {
            Some(element) => Datum::Array(Box::new(Array::new(element, state.items)?)),
            None if state.items.is_empty() => Datum::Null,
            None => Datum::Array(Box::new(Array::new(Type::Text, state.items)?)),
        },
        _ => state.value,
    })
}
