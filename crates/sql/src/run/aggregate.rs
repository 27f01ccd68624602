//! Groups and aggregates. Groups come by first appearance, rows in canonical order, so that sums of
//! floats do not depend on the plan.

use super::budget::{bytes_of, bytes_of_entry};
use super::compute;
use super::context::Context;
use super::evaluate::Evaluator;
use super::order::compare;
use super::scan::Each;
use super::{json, json_text, statistics, weight};
use crate::ir::{Aggregate, AggregateKind, Function, Group, Op, Relation};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use values::{Array, Datum, Error, Numeric, Result, SqlState, Type};

/// What an aggregate has seen so far.
pub(super) struct State {
    count: i64,
    value: Datum,
    items: Vec<Datum>,
    seen: BTreeSet<Vec<u8>>,
    /// The memory that it takes beside itself.
    pub(super) bytes: usize,
}

impl State {
    pub(super) fn new() -> State {
        State { count: 0, value: Datum::Null, items: Vec::new(), seen: BTreeSet::new(), bytes: 0 }
    }

    /// Another value.
    fn set(&mut self, value: Datum) {
        self.bytes = self.bytes + value.memory_bytes() - self.value.memory_bytes();
        self.value = value;
    }
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
        let key = evaluator.identity(&keys, self.places.len())?;
        let key_bytes = bytes_of_entry(&key, size_of::<usize>());
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
                keys.push(finish(aggregate, state, evaluator)?);
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
            AggregateKind::BitAnd | AggregateKind::BitOr | AggregateKind::BitXor => true,
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
    let arguments = evaluator.values(&aggregate.arguments, row)?;
    accumulate(aggregate, state, arguments, evaluator)
}

/// Counts a row whose arguments are these.
pub(super) fn accumulate(
    aggregate: &Aggregate,
    state: &mut State,
    arguments: Vec<Datum>,
    evaluator: &mut Evaluator<'_>,
) -> Result<()> {
    let AggregateKind::Ordered(kind, directions) = &aggregate.kind else {
        let kind = &aggregate.kind;
        if !matters(kind, &arguments)?
            || aggregate.distinct && !is_new(state, compared(kind, &arguments), evaluator)?
        {
            return Ok(());
        }
        return take(kind, state, arguments, evaluator);
    };
    let own = arguments.len().checked_sub(directions.len()).ok_or_else(malformed)?;
    let (values, _) = arguments.split_at(own);
    if matters(&kind.kind(), values)? && (!aggregate.distinct || is_new(state, values, evaluator)?)
    {
        state.bytes += bytes_of(&arguments);
        state.items.extend(arguments);
    }
    Ok(())
}

/// What DISTINCT compares.
fn compared<'v>(kind: &AggregateKind, arguments: &'v [Datum]) -> &'v [Datum] {
    match kind {
        AggregateKind::Statistic(_) => arguments,
        _ => &arguments[..1],
    }
}

/// Whether an aggregate counts a row with these arguments.
fn matters(kind: &AggregateKind, arguments: &[Datum]) -> Result<bool> {
    use AggregateKind::{ArrayAggregate, CountRows, First, Statistic};
    let takes_nulls = makes_json(kind) || matches!(kind, ArrayAggregate | First);
    match (kind, arguments.first()) {
        (CountRows, _) => Ok(true),
        (Statistic(_), _) => Ok(!arguments.iter().any(Datum::is_null)),
        (_, Some(value)) => Ok(takes_nulls || !value.is_null()),
        (_, None) => Err(malformed()),
    }
}

/// Whether an aggregate makes JSON of each value.
fn makes_json(kind: &AggregateKind) -> bool {
    use AggregateKind::{JsonAggregate, JsonObjectAggregate, JsonObjectText, JsonText};
    matches!(kind, JsonAggregate | JsonObjectAggregate | JsonText | JsonObjectText)
}

/// Whether these values were not there before.
fn is_new(state: &mut State, values: &[Datum], evaluator: &mut Evaluator<'_>) -> Result<bool> {
    let identity = evaluator.identity(values, state.seen.len())?;
    let bytes = bytes_of_entry(&identity, 0);
    let is_new = state.seen.insert(identity);
    if is_new {
        state.bytes += bytes;
    }
    Ok(is_new)
}

/// Takes the arguments of a row that counts.
fn take(
    kind: &AggregateKind,
    state: &mut State,
    arguments: Vec<Datum>,
    evaluator: &mut Evaluator<'_>,
) -> Result<()> {
    state.count += 1;
    if *kind == AggregateKind::CountRows {
        return Ok(());
    }
    let Some(value) = arguments.first() else { return Err(malformed()) };
    let context = evaluator.context;
    if makes_json(kind) {
        evaluator.count_bytes(weight::JSON_TIMES * weight::heap_bytes(&arguments))?;
    }
    match kind {
        AggregateKind::CountRows | AggregateKind::Count => {}
        AggregateKind::Sum | AggregateKind::Average => {
            let wide = widen(value);
            state.value = match std::mem::replace(&mut state.value, Datum::Null) {
                Datum::Null => wide,
                sum => compute::call(Function::Add, &[sum, wide], context, evaluator.rows)?,
            };
        }
        AggregateKind::Minimum if state.value.is_null() || value.compare(&state.value).is_lt() => {
            state.set(value.clone());
        }
        AggregateKind::Maximum if state.value.is_null() || value.compare(&state.value).is_gt() => {
            state.set(value.clone());
        }
        AggregateKind::First if state.count == 1 => state.set(value.clone()),
        AggregateKind::Minimum | AggregateKind::Maximum | AggregateKind::First => {}
        AggregateKind::BoolAnd | AggregateKind::BoolOr => {
            let wins = Datum::Bool(*kind == AggregateKind::BoolOr);
            if state.value != wins {
                state.value = value.clone();
            }
        }
        AggregateKind::StringAggregate | AggregateKind::ArrayAggregate => {
            if *kind == AggregateKind::StringAggregate && state.count > 1 {
                state.items.push(arguments.get(1).cloned().unwrap_or(Datum::Null));
            }
            state.bytes += bytes_of(&arguments);
            state.items.push(value.clone());
        }
        AggregateKind::JsonAggregate => {
            let json = Datum::Jsonb(Box::new(json::of(value, &context.zone)?));
            state.bytes += json.memory_bytes();
            state.items.push(json);
        }
        AggregateKind::JsonText => {
            let json = json_text::item(value, state.items.is_empty(), &context.zone)?;
            state.bytes += json.memory_bytes();
            state.items.push(json);
        }
        AggregateKind::JsonObjectText => {
            let json = json_text::member(&arguments, &context.zone)?;
            state.bytes += json.memory_bytes();
            state.items.push(json);
        }
        AggregateKind::JsonObjectAggregate => take_member(state, &arguments, context)?,
        AggregateKind::Ordered(..) => return Err(malformed()),
        _ => return take_number(kind, state, arguments, evaluator),
    }
    Ok(())
}

/// Takes the arguments of an aggregate of numbers, or of places in an order.
fn take_number(
    kind: &AggregateKind,
    state: &mut State,
    mut arguments: Vec<Datum>,
    evaluator: &mut Evaluator<'_>,
) -> Result<()> {
    match kind {
        AggregateKind::Statistic(statistic) => {
            let steps = weight::of_squares(state.items.iter().chain(&arguments));
            evaluator.rows.steps(steps)?;
            let before = bytes_of(&state.items);
            statistics::take(*statistic, &mut state.items, &arguments)?;
            state.bytes = state.bytes + bytes_of(&state.items) - before;
        }
        AggregateKind::BitAnd | AggregateKind::BitOr | AggregateKind::BitXor => {
            let both = match kind {
                AggregateKind::BitAnd => |left, right| left & right,
                AggregateKind::BitOr => |left, right| left | right,
                _ => |left: i64, right: i64| left ^ right,
            };
            let value = arguments.swap_remove(0);
            state.value = match &state.value {
                Datum::Null => value,
                before => statistics::bits(before, &value, both)?,
            };
        }
        AggregateKind::Interpolated | AggregateKind::Percentile | AggregateKind::Mode => {
            state.bytes += bytes_of(&arguments);
            if let Some(fraction) = arguments.get(1) {
                state.value = fraction.clone();
            }
            state.items.push(arguments.swap_remove(0));
        }
        _ => return Err(malformed()),
    }
    Ok(())
}

/// Takes a member of `jsonb_object_agg`: its key and its value.
fn take_member(state: &mut State, arguments: &[Datum], context: &Context) -> Result<()> {
    let [key @ Datum::Text(_), value] = arguments else {
        let message = "field name must not be null";
        return Err(Error::new(SqlState::INVALID_PARAMETER, message));
    };
    let json = Datum::Jsonb(Box::new(json::of(value, &context.zone)?));
    state.bytes += key.memory_bytes() + json.memory_bytes();
    state.items.extend([key.clone(), json]);
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

/// What an aggregate comes to. The binder casts the result to its type.
fn finish(aggregate: &Aggregate, mut state: State, evaluator: &mut Evaluator<'_>) -> Result<Datum> {
    let AggregateKind::Ordered(kind, directions) = &aggregate.kind else {
        return last_result(&aggregate.kind, state, evaluator);
    };
    let (kind, width) = (kind.kind(), aggregate.arguments.len());
    let own = width.checked_sub(directions.len()).filter(|own| *own > 0).ok_or_else(malformed)?;
    let mut rows: Vec<&mut [Datum]> = state.items.chunks_exact_mut(width).collect();
    evaluator.count_sort(state.bytes, rows.len())?;
    // Stable: rows that are equal here stay in canonical order.
    rows.sort_by(|left, right| compare(&left[own..], &right[own..], directions.iter().copied()));
    let mut state = State::new();
    for row in rows {
        evaluator.count_bytes(weight::heap_bytes(&row[..own]))?;
        let values = row[..own].iter_mut().map(|value| std::mem::replace(value, Datum::Null));
        take(&kind, &mut state, values.collect(), evaluator)?;
        evaluator.memory.reserve(state.bytes)?;
    }
    last_result(&kind, state, evaluator)
}

/// What an aggregate that needs no order comes to so far.
pub(super) fn result(
    kind: &AggregateKind,
    state: &State,
    evaluator: &mut Evaluator<'_>,
) -> Result<Datum> {
    count_result(kind, state, evaluator)?;
    if state.items.is_empty() || is_computed(kind) {
        computed(kind, state, evaluator)
    } else {
        made_of_items(kind, Cow::Borrowed(&state.items))
    }
}

/// What an aggregate that needs no order comes to at its end.
fn last_result(kind: &AggregateKind, state: State, evaluator: &mut Evaluator<'_>) -> Result<Datum> {
    count_result(kind, &state, evaluator)?;
    if state.items.is_empty() || is_computed(kind) {
        computed(kind, &state, evaluator)
    } else {
        made_of_items(kind, Cow::Owned(state.items))
    }
}

/// Counts the work of making a result, and takes memory for it beside what it is made of.
fn count_result(kind: &AggregateKind, state: &State, evaluator: &mut Evaluator<'_>) -> Result<()> {
    let times = if makes_json(kind) { weight::JSON_TIMES } else { 1 };
    evaluator.count_bytes(state.bytes.saturating_mul(times))?;
    let copied = match kind {
        AggregateKind::StringAggregate
        | AggregateKind::JsonText
        | AggregateKind::JsonObjectText => weight::heap_bytes(&state.items),
        // What was collected becomes a part of the result.
        _ => 0,
    };
    if copied > 0 { evaluator.reserve(copied) } else { Ok(()) }
}

/// A value of all items that an aggregate has collected, at least one.
fn made_of_items(kind: &AggregateKind, items: Cow<'_, [Datum]>) -> Result<Datum> {
    Ok(match kind {
        AggregateKind::StringAggregate => {
            let parts: Vec<&str> = items.iter().map(text_of).collect();
            Datum::text(parts.concat())
        }
        AggregateKind::ArrayAggregate => {
            let element = items.iter().find_map(Datum::kind).unwrap_or(Type::Text);
            Datum::Array(Box::new(Array::new(element, items.into_owned())?))
        }
        AggregateKind::JsonAggregate => json::array(items.into_owned())?,
        AggregateKind::JsonObjectAggregate => json::object(items.into_owned())?,
        AggregateKind::JsonText => json_text::joined(&items, "[", "]")?,
        AggregateKind::JsonObjectText => json_text::joined(&items, "{ ", " }")?,
        _ => return Err(malformed()),
    })
}

fn text_of(item: &Datum) -> &str {
    match item {
        Datum::Text(text) => text,
        _ => "",
    }
}

/// Whether an aggregate is a value that is computed, also of the items that it has collected.
fn is_computed(kind: &AggregateKind) -> bool {
    use AggregateKind::{Interpolated, Mode, Percentile, Statistic};
    matches!(kind, Statistic(_) | Interpolated | Percentile | Mode)
}

/// What an aggregate comes to whose value is computed, or that has collected no items.
fn computed(kind: &AggregateKind, state: &State, evaluator: &mut Evaluator<'_>) -> Result<Datum> {
    let items = &state.items;
    Ok(match kind {
        AggregateKind::CountRows | AggregateKind::Count => Datum::Int8(state.count),
        AggregateKind::Average => match &state.value {
            Datum::Numeric(sum) => Datum::Numeric(sum.divide(&Numeric::from(state.count))?),
            Datum::Float4(sum) => Datum::Float8(f64::from(*sum) / state.count as f64),
            Datum::Float8(sum) => Datum::Float8(sum / state.count as f64),
            sum @ Datum::Interval(_) => {
                let both = [sum.clone(), Datum::Float8(state.count as f64)];
                compute::call(Function::ScaleDown, &both, evaluator.context, evaluator.rows)?
            }
            Datum::Null => Datum::Null,
            _ => return Err(malformed()),
        },
        AggregateKind::Statistic(statistic) => {
            evaluator.rows.steps(weight::of_squares(items.iter()))?;
            statistics::result(*statistic, items, state.count)?
        }
        AggregateKind::Interpolated => statistics::at_fraction(items, &state.value, true)?,
        AggregateKind::Percentile => statistics::at_fraction(items, &state.value, false)?,
        AggregateKind::Mode => statistics::most_frequent(items),
        _ => state.value.clone(),
    })
}
