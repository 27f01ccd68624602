//! Rows that are in no table: those of the system catalog, and of functions in FROM.

use super::evaluate::{Evaluator, malformed};
use super::scan::Each;
use crate::ir::{RowsCall, RowsFunction};
use values::{Array, Datum, Error, Result, SqlState, Type};

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
        all.push(Results::of(call.function, arguments)?);
    }
    for number in 1.. {
        let values: Vec<Option<Datum>> = all.iter_mut().map(Iterator::next).collect();
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

/// The results of one function, one after the other.
enum Results {
    Nothing,
    Items(Box<Array>, usize),
    Pairs(Box<Array>, usize),
    Numbers { next: Option<i64>, last: i64, step: i64, is_long: bool },
}

impl Results {
    fn of(function: RowsFunction, arguments: Vec<Datum>) -> Result<Results> {
        if arguments.iter().any(Datum::is_null) {
            return Ok(Results::Nothing);
        }
        let numbers = |first: i64, last: i64, step: i64, is_long| {
            if step == 0 {
                let message = "step size cannot equal zero";
                return Err(Error::new(SqlState::INVALID_PARAMETER, message));
            }
            Ok(Results::Numbers { next: Some(first), last, step, is_long })
        };
        match (function, &arguments[..]) {
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

impl Iterator for Results {
    type Item = Datum;

    fn next(&mut self) -> Option<Datum> {
        match self {
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
                    return Some(Datum::Int8(number));
                }
                i32::try_from(number).ok().map(Datum::Int4)
            }
        }
    }
}
