//! Functions and operators of arrays.

use super::rows::Rows;
use super::strings::{bounded, matches};
use crate::ir::{ArrayFunction, Function};
use values::{Array, Datum, Dimension, Error, ITEMS_MAX, Result, SqlState, Type, Zone, text};

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

/// Functions of parts of arrays, for which NULL is an argument as others are.
pub(super) fn parts_with_nulls(
    function: ArrayFunction,
    arguments: &[Datum],
) -> Option<Result<Datum>> {
    let same = |left: &Datum, right: &Datum| left.is_null() == right.is_null() && left == right;
    Some(match (function, arguments) {
        (ArrayFunction::Replace, [Datum::Array(own), from, to]) => {
            let items = own.items().iter().map(|item| if same(item, from) { to } else { item });
            let items = items.cloned().collect();
            Array::with_dimensions(own.element(), own.dimensions().to_vec(), items).map(shared)
        }
        (ArrayFunction::Positions, [Datum::Array(own), _]) if own.dimensions().len() > 1 => {
            let message = "searching for elements in multidimensional arrays is not supported";
            Err(Error::unsupported(message, ""))
        }
        (ArrayFunction::Positions, [Datum::Array(own), item]) => {
            let lower = own.dimensions().first().map_or(1, |dimension| dimension.lower);
            let found = own.items().iter().enumerate().filter(|(_, one)| same(one, item));
            let places = found.map(|(at, _)| Datum::Int4(at as i32 + lower));
            array(Type::Int4, places.collect())
        }
        (ArrayFunction::Nest, arrays) => nested(arrays),
        _ => return None,
    })
}

/// Whether a value compares with an item, or with all items: the comparison is less, less or equal,
/// equal, not equal, greater or equal, or greater, from 0; then LIKE, ILIKE, and NOT of each.
pub(super) fn compared_items(
    arguments: &[Datum],
    is_any: bool,
    rows: &mut dyn Rows,
) -> Result<Datum> {
    let [value, Datum::Int4(how), Datum::Array(array)] = arguments else { return Ok(Datum::Null) };
    let how = *how;
    let mut is_unknown = false;
    for item in array.items() {
        if value.is_null() || item.is_null() {
            is_unknown = true;
            continue;
        }
        let order = || value.compare(item);
        let holds = match how {
            0 => order().is_lt(),
            1 => order().is_le(),
            2 => value == item,
            3 => value != item,
            4 => order().is_ge(),
            5 => order().is_gt(),
            6..=9 => is_like(value, item, how, rows)?,
            _ => {
                let message = "plan has an unknown comparison";
                return Err(Error::new(SqlState::DATA_CORRUPTED, message));
            }
        };
        if holds == is_any {
            return Ok(Datum::Bool(is_any));
        }
    }
    Ok(if is_unknown { Datum::Null } else { Datum::Bool(!is_any) })
}

/// Whether text is like a pattern, or is not.
fn is_like(text: &Datum, pattern: &Datum, how: i32, rows: &mut dyn Rows) -> Result<bool> {
    let function = if how % 2 == 0 { Function::Like } else { Function::ILike };
    match matches(function, text, pattern, rows) {
        Some(found) => Ok((found? == Datum::Bool(true)) == (how < 8)),
        None => Err(Error::new(SqlState::DATA_CORRUPTED, "plan compares no text by LIKE")),
    }
}

/// Functions of parts and dimensions of arrays; `None` of other types.
pub(super) fn parts(function: ArrayFunction, arguments: &[Datum]) -> Option<Result<Datum>> {
    Some(match (function, arguments) {
        (ArrayFunction::DimensionCount, [Datum::Array(own)]) => Ok(match own.dimensions().len() {
            0 => Datum::Null,
            count => Datum::Int4(count as i32),
        }),
        (ArrayFunction::Dimensions, [Datum::Array(own)]) if own.dimensions().is_empty() => {
            Ok(Datum::Null)
        }
        (ArrayFunction::Dimensions, [Datum::Array(own)]) => {
            let shown = own.dimensions().iter().map(|dimension| {
                let upper = i64::from(dimension.lower) + i64::from(dimension.length) - 1;
                format!("[{}:{upper}]", dimension.lower)
            });
            Ok(Datum::text(shown.collect::<String>()))
        }
        (ArrayFunction::Trim, [Datum::Array(own), Datum::Int4(count)]) => trimmed(own, *count),
        (ArrayFunction::Item, [Datum::Array(own), subscripts @ ..]) => Ok(item(own, subscripts)?),
        (ArrayFunction::Slice, [Datum::Array(own), bounds @ ..]) => slice(own, bounds)?,
        _ => return None,
    })
}

/// An array of arrays; NULL stands for the empty one.
fn nested(arrays: &[Datum]) -> Result<Datum> {
    let inner = arrays.iter().find_map(|array| match array {
        Datum::Array(array) if !array.dimensions().is_empty() => Some(array),
        _ => None,
    });
    let Some(first) = inner else {
        let element = arrays.iter().find_map(|array| match array {
            Datum::Array(array) => Some(array.element()),
            _ => None,
        });
        return array(element.unwrap_or(Type::Text), Vec::new());
    };
    let mut items = Vec::new();
    for array in arrays {
        match array {
            Datum::Array(array) if array.dimensions() == first.dimensions() => {
                items.extend(array.items().iter().cloned());
            }
            _ => {
                let message =
                    "multidimensional arrays must have array expressions with matching dimensions";
                return Err(Error::new(SqlState::ARRAY_SUBSCRIPT, message));
            }
        }
    }
    let mut dimensions = vec![Dimension { length: arrays.len() as u32, lower: 1 }];
    dimensions.extend_from_slice(first.dimensions());
    Array::with_dimensions(first.element(), dimensions, items).map(shared)
}

/// The item at a subscript for each dimension; NULL beyond the array.
fn item(own: &Array, subscripts: &[Datum]) -> Option<Datum> {
    if subscripts.len() != own.dimensions().len() {
        return Some(Datum::Null);
    }
    let mut place = 0_usize;
    for (dimension, subscript) in own.dimensions().iter().zip(subscripts) {
        let Datum::Int4(subscript) = subscript else { return None };
        let at = i64::from(*subscript) - i64::from(dimension.lower);
        let Some(at) = usize::try_from(at).ok().filter(|at| *at < dimension.length as usize) else {
            return Some(Datum::Null);
        };
        place = place * dimension.length as usize + at;
    }
    Some(own.items().get(place).cloned().unwrap_or(Datum::Null))
}

/// The part between a lower and an upper bound of each dimension, which begins at 1.
fn slice(own: &Array, bounds: &[Datum]) -> Option<Result<Datum>> {
    let empty = || Some(array(own.element(), Vec::new()));
    if bounds.len() / 2 > own.dimensions().len() {
        return empty();
    }
    let mut ranges = Vec::with_capacity(own.dimensions().len());
    for (at, dimension) in own.dimensions().iter().enumerate() {
        let length = i64::from(dimension.length);
        let bound = |place: usize, otherwise: i64| match bounds.get(2 * at + place) {
            Some(Datum::Int4(bound)) => Some(i64::from(*bound) - i64::from(dimension.lower)),
            Some(Datum::Bool(false)) | None => Some(otherwise),
            Some(_) => None,
        };
        let begin = bound(0, 0)?.max(0);
        let end = bound(1, length - 1)?.min(length - 1) + 1;
        if begin >= end {
            return empty();
        }
        ranges.push((begin as usize, end as usize));
    }
    let mut places = vec![0_usize];
    for ((begin, end), dimension) in ranges.iter().zip(own.dimensions()) {
        let length = dimension.length as usize;
        let (begin, end) = (*begin, *end);
        let inner = |place: usize| (begin..end).map(move |at| place * length + at);
        places = places.into_iter().flat_map(inner).collect();
    }
    let dimensions =
        ranges.iter().map(|(begin, end)| Dimension { length: (end - begin) as u32, lower: 1 });
    let items = places.into_iter().filter_map(|place| own.items().get(place).cloned());
    let made = Array::with_dimensions(own.element(), dimensions.collect(), items.collect());
    Some(made.map(shared))
}

/// The array without so many items, or inner arrays, at its end.
fn trimmed(own: &Array, count: i32) -> Result<Datum> {
    let length = own.dimensions().first().map_or(0, |dimension| dimension.length);
    let removed = u32::try_from(count).ok().filter(|count| *count <= length);
    let Some(removed) = removed else {
        let message = format!("number of elements to trim must be between 0 and {length}");
        return Err(Error::new(SqlState::ARRAY_SUBSCRIPT, message));
    };
    let kept = length - removed;
    if kept == 0 {
        return array(own.element(), Vec::new());
    }
    let mut dimensions = own.dimensions().to_vec();
    dimensions[0].length = kept;
    // A slice begins at 1.
    dimensions.iter_mut().for_each(|dimension| dimension.lower = 1);
    let count = own.items().len() / length as usize * kept as usize;
    let items = own.items()[..count].to_vec();
    Array::with_dimensions(own.element(), dimensions, items).map(shared)
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
