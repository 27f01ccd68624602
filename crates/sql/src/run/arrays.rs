//! Functions and operators of arrays.

use super::strings::bounded;
use crate::ir::Function;
use values::{Array, Datum, Error, ITEMS_MAX, Result, SqlState, Type, Zone, text};

/// The most comparisons of one call.
pub(super) const COMPARISONS_MAX: usize = 1 << 26;

fn array(element: Type, items: Vec<Datum>) -> Result<Datum> {
    Array::new(element, items).map(shared)
}

fn shared(array: Array) -> Datum {
    Datum::Array(Box::new(array))
}

/// Functions for which NULL is an argument as others are.
pub(super) fn with_nulls(
    function: Function,
    arguments: &[Datum],
    zone: &Zone,
) -> Option<Result<Datum>> {
    Some(match (function, arguments) {
        (Function::ArrayToString, [Datum::Array(array), Datum::Text(between), nothing @ ..]) => {
            joined(array, between, nothing.first(), zone)
        }
        (Function::StringToArray, [Datum::Text(text), between, nothing @ ..]) => {
            split(text, between, nothing.first())
        }
        (Function::ArrayConcat, [Datum::Null, other] | [other, Datum::Null]) => Ok(other.clone()),
        (Function::ArrayConcat, [Datum::Array(left), Datum::Array(right)]) => {
            left.concat(right).map(shared)
        }
        (Function::ArrayAppend, [Datum::Array(own), item]) => {
            own.extended(item.clone(), own.items().len()).map(shared)
        }
        (Function::ArrayPrepend, [item, Datum::Array(own)]) => {
            own.extended(item.clone(), 0).map(shared)
        }
        (Function::ArrayRemove, [Datum::Array(own), item]) => {
            own.filtered(|own| own.is_null() != item.is_null() || own != item).map(shared)
        }
        (Function::ArrayPosition, [Datum::Array(array), _]) if array.dimensions().len() > 1 => {
            let message = "searching for elements in multidimensional arrays is not supported";
            Err(Error::unsupported(message, ""))
        }
        (Function::ArrayPosition, [Datum::Array(array), item]) => {
            let same = |own: &Datum| own.is_null() == item.is_null() && own == item;
            let at = array.items().iter().position(same);
            let lower = array.dimensions().first().map_or(1, |dimension| dimension.lower);
            Ok(at.map_or(Datum::Null, |at| Datum::Int4(at as i32 + lower)))
        }
        _ => return None,
    })
}

/// The result, if the function is one of arrays and takes these types.
pub(super) fn call(function: Function, arguments: &[Datum]) -> Option<Result<Datum>> {
    let dimension = |array: &Array, at: &i32| {
        let at = usize::try_from(*at).ok()?.checked_sub(1)?;
        array.dimensions().get(at).copied()
    };
    let number = |value: Option<i32>| value.map_or(Datum::Null, Datum::Int4);
    Some(Ok(match (function, arguments) {
        (Function::ArrayUpper, [Datum::Array(array), Datum::Int4(at)]) => {
            number(dimension(array, at).map(|own| own.lower + own.length as i32 - 1))
        }
        (Function::ArrayLower, [Datum::Array(array), Datum::Int4(at)]) => {
            number(dimension(array, at).map(|own| own.lower))
        }
        (Function::ArrayLength, [Datum::Array(array), Datum::Int4(at)]) => {
            number(dimension(array, at).map(|own| own.length as i32))
        }
        (Function::ArrayCount, [Datum::Array(array)]) => {
            Datum::Int4(i32::try_from(array.items().len()).unwrap_or(i32::MAX))
        }
        (Function::ArrayContains, [Datum::Array(all), Datum::Array(some)]) => {
            return Some(
                compared(all, some)
                    .map(|()| Datum::Bool(some.items().iter().all(|item| has(all, item)))),
            );
        }
        (Function::ArrayOverlaps, [Datum::Array(left), Datum::Array(right)]) => {
            return Some(
                compared(left, right)
                    .map(|()| Datum::Bool(left.items().iter().any(|item| has(right, item)))),
            );
        }
        _ => return None,
    }))
}

/// Refuses what would take long: each item is compared with each.
fn compared(left: &Array, right: &Array) -> Result<()> {
    if left.items().len().saturating_mul(right.items().len()) > COMPARISONS_MAX {
        let message = "arrays are too long to compare each item with each";
        return Err(Error::new(SqlState::LIMIT_EXCEEDED, message));
    }
    Ok(())
}

/// Whether an item is in an array; NULL is in none.
fn has(array: &Array, item: &Datum) -> bool {
    !item.is_null() && array.items().iter().any(|own| !own.is_null() && own == item)
}

fn joined(array: &Array, between: &str, nothing: Option<&Datum>, zone: &Zone) -> Result<Datum> {
    let parts = array.items().iter().filter_map(|item| match (item, nothing) {
        (Datum::Null, Some(Datum::Text(text))) => Some(text.to_string()),
        (Datum::Null, _) => None,
        (item, _) => Some(text::print(item, zone)),
    });
    let mut joined = String::new();
    for (at, part) in parts.enumerate() {
        joined.push_str(if at == 0 { "" } else { between });
        joined.push_str(&part);
        bounded(joined.len())?;
    }
    Ok(Datum::text(joined))
}

/// The parts of a text; its characters if nothing is between them.
fn split(text: &str, between: &Datum, nothing: Option<&Datum>) -> Result<Datum> {
    let item = |part: &str| match nothing {
        Some(Datum::Text(nothing)) if **nothing == *part => Datum::Null,
        _ => Datum::text(part.to_owned()),
    };
    // One more than an array may have is enough to refuse it.
    let enough = ITEMS_MAX + 1;
    let items = match between {
        _ if text.is_empty() => Vec::new(),
        Datum::Null => {
            let mut room = [0; 4];
            text.chars().take(enough).map(|char| item(char.encode_utf8(&mut room))).collect()
        }
        Datum::Text(between) if between.is_empty() => vec![item(text)],
        Datum::Text(between) => text.split(&**between).take(enough).map(item).collect(),
        _ => {
            let message = "plan splits text at what is no text";
            return Err(Error::new(SqlState::DATA_CORRUPTED, message));
        }
    };
    array(Type::Text, items)
}
