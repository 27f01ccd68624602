//! Groups and aggregates. Groups come by first appearance, rows in canonical order, so that sums of
//! floats do not depend on the plan.

use super::evaluate::Evaluator;
use crate::ir::{Aggregate, AggregateKind, Function, Group};
use std::collections::{BTreeMap, BTreeSet};
use values::{Array, Datum, Error, Numeric, Result, SqlState, Type, row};

/// What an aggregate has seen so far.
struct State {
    count: i64,
    value: Datum,
    items: Vec<Datum>,
    seen: BTreeSet<Vec<u8>>,
}

impl State {
    fn new() -> State {
        State { count: 0, value: Datum::Null, items: Vec::new(), seen: BTreeSet::new() }
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

/// The rows of the groups: keys, then aggregates.
pub(super) fn groups(
    group: &Group,
    rows: impl Iterator<Item = Vec<Datum>>,
    evaluator: &mut Evaluator<'_>,
) -> Result<Vec<Vec<Datum>>> {
    let mut places: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
    let mut groups: Vec<(Vec<Datum>, Vec<State>)> = Vec::new();
    let states = || group.aggregates.iter().map(|_| State::new()).collect::<Vec<_>>();
    if group.keys.is_empty() {
        places.insert(Vec::new(), 0);
        groups.push((Vec::new(), states()));
    }
    for row in rows {
        let keys = evaluator.values(&group.keys, &row)?;
        let place = *places.entry(identity(&keys)).or_insert(groups.len());
        if place == groups.len() {
            evaluator.memory.add(&keys)?;
            groups.push((keys, states()));
        }
        for (aggregate, state) in group.aggregates.iter().zip(&mut groups[place].1) {
            add(aggregate, state, &row, evaluator)?;
        }
    }
    groups
        .into_iter()
        .map(|(mut keys, states)| {
            for (aggregate, state) in group.aggregates.iter().zip(states) {
                keys.push(finish(aggregate, state)?);
            }
            Ok(keys)
        })
        .collect()
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
            state.value = value.clone();
        }
        state.count += 1;
        return Ok(());
    }
    if value.is_null() && aggregate.kind != AggregateKind::ArrayAggregate {
        return Ok(());
    }
    if aggregate.distinct {
        if !state.seen.insert(identity(&arguments[..1])) {
            return Ok(());
        }
        evaluator.memory.add(&arguments[..1])?;
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
            state.value = value.clone();
        }
        AggregateKind::Maximum if state.value.is_null() || value.compare(&state.value).is_gt() => {
            state.value = value.clone();
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
            evaluator.memory.add(&arguments)?;
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
