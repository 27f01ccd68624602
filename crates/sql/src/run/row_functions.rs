//! Rows that are in no table: those of the system catalog, and of functions in FROM.

use super::evaluate::{Evaluator, malformed};
use super::patterns::Patterns;
use super::scan::Each;
use super::{arrays, json_query, weight};
use crate::ir::{Function, RowsCall, RowsFunction};
use values::{Array, Datum, Error, Interval, Json, Result, SqlState, Timestamp, Type, Zone};

/// The rows of a relation of the system catalog.
pub(super) fn system_rows(name: &str, evaluator: &mut Evaluator<'_>) -> Result<Vec<Vec<Datum>>> {
    let system = evaluator.context.system.as_deref().ok_or_else(malformed)?;
    let rows = system.rows(name).ok_or_else(malformed)?;
    evaluator.rows.steps(rows.len() as u64)?;
    for row in &rows {
        evaluator.memory.add(row)?;
    }
    Ok(rows)
}

/// Gives the rows of functions side by side to `each`, the shorter ones filled up with NULL.
pub(super) fn function_rows(
    calls: &[RowsCall],
    numbered: bool,
    evaluator: &mut Evaluator<'_>,
    each: &mut Each<'_, Vec<Datum>>,
) -> Result<()> {
    let mut all = Vec::with_capacity(calls.len());
    for call in calls {
        let arguments = evaluator.values(&call.arguments, &[])?;
        let times = if matches!(arguments[..], [Datum::Jsonb(_)]) { weight::JSON_TIMES } else { 4 };
        evaluator.count_bytes(weight::heap_bytes(&arguments).saturating_mul(times))?;
        let of_parts = arguments.iter().map(weight::of_parts).sum::<usize>();
        evaluator.reserve(of_parts.saturating_add(of_items(call.function, &arguments)))?;
        all.push(Results::of(call.function, arguments, evaluator)?);
    }
    for number in 1.. {
        let values = all.iter_mut().map(|results| results.next().transpose());
        let values = values.collect::<Result<Vec<Option<Datum>>>>()?;
        if values.iter().all(Option::is_none) {
            break;
        }
        let mut row: Vec<Datum> =
            values.into_iter().map(|value| value.unwrap_or(Datum::Null)).collect();
        if numbered {
            row.push(Datum::Int8(number));
        }
        evaluator.rows.steps(1)?;
        if each(row, evaluator)?.is_break() {
            break;
        }
    }
    Ok(())
}

/// About how many bytes the parts have that a function makes of a text.
fn of_items(function: RowsFunction, arguments: &[Datum]) -> usize {
    match (function, arguments) {
        (
            RowsFunction::RegexMatches | RowsFunction::RegexParts | RowsFunction::TextParts,
            [Datum::Text(text), ..],
        ) => weight::of_items(text),
        _ => 0,
    }
}

/// The results of one function, one after the other.
enum Results {
    Nothing,
    Items(Box<Array>, usize),
    Pairs(Box<Array>, usize),
    Numbers { next: Option<i64>, last: i64, step: i64, is_long: bool },
    Times(Box<Times>),
    Made(std::vec::IntoIter<Datum>),
}

/// Points in time, each so much later than the one before.
struct Times {
    next: Option<Timestamp>,
    last: Timestamp,
    step: Interval,
    /// Whose days are counted, of `timestamptz`.
    zone: Option<Zone>,
}

impl Times {
    fn next(&mut self) -> Option<Result<Datum>> {
        let at = self.next.take()?;
        let is_over = if self.step.length() > 0 { at > self.last } else { at < self.last };
        if is_over {
            return None;
        }
        let next = match &self.zone {
            Some(zone) => at.add_zoned(self.step, zone),
            None => at.add_interval(self.step),
        };
        match next {
            // An infinity has no next one.
            Ok(next) if next != at => self.next = Some(next),
            Ok(_) => {}
            Err(error) => return Some(Err(error)),
        }
        let datum = if self.zone.is_some() { Datum::Timestamptz } else { Datum::Timestamp };
        Some(Ok(datum(at)))
    }
}

impl Results {
    fn of(
        function: RowsFunction,
        arguments: Vec<Datum>,
        evaluator: &mut Evaluator<'_>,
    ) -> Result<Results> {
        match function {
            RowsFunction::Value => return Ok(Results::Made(arguments.into_iter())),
            RowsFunction::TextParts => return text_parts(&arguments, &evaluator.context.zone),
            _ if arguments.iter().any(Datum::is_null) => return Ok(Results::Nothing),
            _ => {}
        }
        let numbers = |first: i64, last: i64, step: i64, is_long| {
            if step == 0 {
                let message = "step size cannot equal zero";
                return Err(Error::new(SqlState::INVALID_PARAMETER, message));
            }
            Ok(Results::Numbers { next: Some(first), last, step, is_long })
        };
        let times = |next: &Timestamp, last: &Timestamp, step: &Interval, zone| {
            if step.length() == 0 {
                let message = "step size cannot equal zero";
                return Err(Error::new(SqlState::INVALID_PARAMETER, message));
            }
            let (next, last, step) = (Some(*next), *last, *step);
            Ok(Results::Times(Box::new(Times { next, last, step, zone })))
        };
        match (function, &arguments[..]) {
            (
                RowsFunction::Series,
                [Datum::Timestamp(first), Datum::Timestamp(last), Datum::Interval(step)],
            ) => times(first, last, step, None),
            (
                RowsFunction::Series,
                [Datum::Timestamptz(first), Datum::Timestamptz(last), Datum::Interval(step)],
            ) => times(first, last, step, Some(evaluator.context.zone.clone())),
            (_, [Datum::Jsonb(json)]) => Ok(Results::Made(json_parts(function, json)?.into_iter())),
            (RowsFunction::JsonQuery, _) => found_by_path(&arguments, evaluator),
            (RowsFunction::RegexMatches | RowsFunction::RegexParts, _) => {
                let count = &mut |steps| evaluator.rows.steps(steps);
                let is_parts = function == RowsFunction::RegexParts;
                let made = Patterns::default().rows(&arguments, is_parts, count)?;
                Ok(Results::Made(made.into_iter()))
            }
            (RowsFunction::ListeningChannels, _) => listening_channels(evaluator),
            (RowsFunction::Nothing, _) => Ok(Results::Nothing),
            (RowsFunction::Unnest, [Datum::Array(array)]) => Ok(Results::Items(array.clone(), 0)),
            (RowsFunction::Expanded, [Datum::Array(array)]) => Ok(Results::Pairs(array.clone(), 0)),
            (RowsFunction::Subscripts, [Datum::Array(array), Datum::Int4(at)]) => {
                let dimension = usize::try_from(*at).ok().and_then(|at| at.checked_sub(1));
                let found = dimension.and_then(|at| array.dimensions().get(at));
                let Some(found) = found else { return Ok(Results::Nothing) };
                let first = i64::from(found.lower);
                numbers(first, first + i64::from(found.length) - 1, 1, false)
            }
            (RowsFunction::Series, [Datum::Int8(first), Datum::Int8(last)]) => {
                numbers(*first, *last, 1, true)
            }
            (RowsFunction::Series, [Datum::Int8(first), Datum::Int8(last), Datum::Int8(step)]) => {
                numbers(*first, *last, *step, true)
            }
            (RowsFunction::Series, [Datum::Int4(first), Datum::Int4(last)]) => {
                numbers(i64::from(*first), i64::from(*last), 1, false)
            }
            (RowsFunction::Series, [Datum::Int4(first), Datum::Int4(last), Datum::Int4(step)]) => {
                numbers(i64::from(*first), i64::from(*last), i64::from(*step), false)
            }
            _ => Err(malformed()),
        }
    }
}

/// The results of `jsonb_path_query`.
fn found_by_path(arguments: &[Datum], evaluator: &mut Evaluator<'_>) -> Result<Results> {
    let count = &mut |steps| evaluator.rows.steps(steps);
    let found = json_query::found(arguments, count)?.unwrap_or_default();
    let made = found.into_iter().map(|json| Datum::Jsonb(Box::new(json)));
    Ok(Results::Made(made.collect::<Vec<_>>().into_iter()))
}

fn listening_channels(evaluator: &Evaluator<'_>) -> Result<Results> {
    let system = evaluator.context.system.as_deref().ok_or_else(malformed)?;
    let channels = system.channels()?.into_iter().map(Datum::text);
    Ok(Results::Made(channels.collect::<Vec<_>>().into_iter()))
}

/// The results of `string_to_table`, which NULL divides into characters.
fn text_parts(arguments: &[Datum], zone: &Zone) -> Result<Results> {
    let parts = arrays::with_nulls(Function::StringToArray, arguments, zone);
    Ok(match parts.transpose()? {
        Some(Datum::Array(array)) => Results::Items(array, 0),
        _ => Results::Nothing,
    })
}

/// The results of a function of JSON.
fn json_parts(function: RowsFunction, json: &Json) -> Result<Vec<Datum>> {
    let refused = |message: &str| Err(Error::new(SqlState::INVALID_PARAMETER, message.to_owned()));
    let value = |json: &Json| Datum::Jsonb(Box::new(json.clone()));
    let text = |json: &Json| match json {
        Json::Null => Datum::Null,
        Json::String(text) => Datum::Text(text.clone()),
        other => Datum::text(other.to_string()),
    };
    Ok(match (function, json) {
        (RowsFunction::JsonItems, Json::Array(items)) => items.iter().map(value).collect(),
        (RowsFunction::JsonItemsText, Json::Array(items)) => items.iter().map(text).collect(),
        (RowsFunction::JsonKeys, Json::Object(members)) => {
            members.iter().map(|(key, _)| Datum::Text(key.clone())).collect()
        }
        (RowsFunction::JsonValues, Json::Object(members)) => {
            members.iter().map(|(_, json)| value(json)).collect()
        }
        (RowsFunction::JsonValuesText, Json::Object(members)) => {
            members.iter().map(|(_, json)| text(json)).collect()
        }
        (RowsFunction::JsonItems | RowsFunction::JsonItemsText, Json::Object(_)) => {
            return refused("cannot extract elements from an object");
        }
        (RowsFunction::JsonItems | RowsFunction::JsonItemsText, _) => {
            return refused("cannot extract elements from a scalar");
        }
        (RowsFunction::JsonKeys | RowsFunction::JsonValues | RowsFunction::JsonValuesText, _) => {
            return refused("cannot take keys of what is no JSON object");
        }
        _ => return Err(malformed()),
    })
}

impl Iterator for Results {
    type Item = Result<Datum>;

    fn next(&mut self) -> Option<Result<Datum>> {
        let found = match self {
            Results::Times(times) => return times.next(),
            Results::Made(made) => made.next(),
            Results::Nothing => None,
            Results::Items(array, at) => {
                let item = array.items().get(*at).cloned();
                *at += 1;
                item
            }
            Results::Pairs(array, at) => {
                let item = match array.items().get(*at)? {
                    Datum::Int2(item) => Datum::Int4(i32::from(*item)),
                    item => item.clone(),
                };
                *at += 1;
                let pair = vec![item, Datum::Int4(i32::try_from(*at).unwrap_or(i32::MAX))];
                Array::new(Type::Int4, pair).ok().map(|pair| Datum::Array(Box::new(pair)))
            }
            Results::Numbers { next, last, step, is_long } => {
                let number = (*next)?;
                if (*step > 0 && number > *last) || (*step < 0 && number < *last) {
                    *next = None;
                    return None;
                }
                *next = number.checked_add(*step);
                if *is_long {
                    return Some(Ok(Datum::Int8(number)));
                }
                i32::try_from(number).ok().map(Datum::Int4)
            }
        };
        found.map(Ok)
    }
}
