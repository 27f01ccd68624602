//! Functions and operators: from arguments to a result. NULL in gives NULL out but for the few that
//! ask for it.

use super::arithmetic;
use super::context::Context;
use super::rows::Rows;
use super::{
    arrays, bits, bytes, formatted, json, json_change, json_parts, json_query, json_text, math,
    networks, number_text, sequence, strings, texts, times, weight,
};
use crate::ir::{ArrayFunction, Function};
use std::cmp::Ordering;
use values::time::{Field, truncate, truncate_interval, truncate_zoned};
use values::{Array, Datum, Error, RECORD_DEPTH_MAX, Result, SqlState, Zone, record_depth};

/// The result of a function. The steps of what takes longer than copies of its values are counted
/// in `rows`.
pub(super) fn call(
    function: Function,
    arguments: &[Datum],
    context: &Context,
    rows: &mut dyn Rows,
) -> Result<Datum> {
    let steps = weight::of_call(function, arguments);
    if steps > 0 {
        rows.steps(steps)?;
    }
    if let Some(result) = with_nulls(function, arguments)? {
        return Ok(result);
    }
    if let Some(result) = to_json(function, arguments, &context.zone) {
        return result;
    }
    if let Some(result) = arrays::with_nulls(function, arguments, &context.zone) {
        return result;
    }
    let of_nulls = match function {
        Function::Text(function) => formatted::with_nulls(function, arguments, &context.zone),
        Function::Array(function @ (ArrayFunction::CompareAny | ArrayFunction::CompareAll)) => {
            let is_any = function == ArrayFunction::CompareAny;
            Some(arrays::compared_items(arguments, is_any, rows))
        }
        Function::Array(function) => arrays::parts_with_nulls(function, arguments),
        Function::ConcatSeparated => Some(texts::concat_separated(arguments, &context.zone)),
        _ => None,
    };
    if let Some(result) = of_nulls {
        return result;
    }
    match function {
        Function::Notify => return notify(arguments, rows),
        Function::Now => return Ok(Datum::Timestamptz(context.now)),
        _ => {}
    }
    if arguments.iter().any(Datum::is_null) {
        return Ok(Datum::Null);
    }
    without_nulls(function, arguments, context, rows)
}

/// The result of a function of no NULLs.
fn without_nulls(
    function: Function,
    arguments: &[Datum],
    context: &Context,
    rows: &mut dyn Rows,
) -> Result<Datum> {
    match (function, arguments) {
        (Function::Equal, [left, right]) => Ok(Datum::Bool(left == right)),
        (Function::NotEqual, [left, right]) => Ok(Datum::Bool(left != right)),
        (Function::Less, [left, right]) => Ok(Datum::Bool(left.compare(right).is_lt())),
        (Function::LessEqual, [left, right]) => Ok(Datum::Bool(left.compare(right).is_le())),
        (Function::Greater, [left, right]) => Ok(Datum::Bool(left.compare(right).is_gt())),
        (Function::GreaterEqual, [left, right]) => Ok(Datum::Bool(left.compare(right).is_ge())),
        (Function::Not, [Datum::Bool(value)]) => Ok(Datum::Bool(!value)),
        (Function::Extract, [_, Datum::Timestamp(_) | Datum::Timestamptz(_)]) => extract(arguments),
        (Function::DateTrunc, _) => date_trunc(arguments, context),
        (Function::AtTimeZone, _) => at_time_zone(arguments),
        (Function::Like | Function::ILike, [text, pattern]) => {
            strings::matches(function, text, pattern, rows)
                .unwrap_or_else(|| Err(mismatch(function)))
        }
        (Function::JsonQuery(query), _) => {
            json_query::call(query, arguments, &mut |steps| rows.steps(steps))
        }
        (Function::JsonContains, [Datum::Jsonb(all), Datum::Jsonb(part)]) => {
            json_change::contained(all, part, rows).map(Datum::Bool)
        }
        (
            Function::JsonField
            | Function::JsonFieldText
            | Function::JsonPath
            | Function::JsonPathText,
            [json @ (Datum::Jsonb(_) | Datum::Json(_)), keys],
        ) => json_parts::part(function, json, keys).unwrap_or_else(|| Err(mismatch(function))),
        (Function::Subscript, [Datum::Array(array), Datum::Int4(at)]) => Ok(array.at(*at)),
        (Function::SequenceNumber | Function::SequenceNumberAfter, _) => {
            let is_called = function == Function::SequenceNumberAfter;
            sequence::call(arguments, is_called).unwrap_or_else(|| Err(mismatch(function)))
        }
        _ => bits::call(function, arguments)
            .or_else(|| networks::call(function, arguments))
            .or_else(|| of_family(function, arguments, context))
            .or_else(|| arithmetic::call(function, arguments, &context.zone))
            .or_else(|| strings::call(function, arguments))
            .or_else(|| texts::call(function, arguments))
            .or_else(|| number_text::call(function, arguments))
            .or_else(|| json_change::call(function, arguments))
            .or_else(|| arrays::call(function, arguments))
            .or_else(|| times::call(function, arguments, context))
            .unwrap_or_else(|| Err(mismatch(function))),
    }
}

/// The result of a function of a family; `None` of others, and of other types.
fn of_family(function: Function, arguments: &[Datum], context: &Context) -> Option<Result<Datum>> {
    match function {
        Function::Math(function) => math::call(function, arguments),
        Function::Bytes(function) => bytes::call(function, arguments),
        Function::Text(function) => formatted::call(function, arguments, &context.zone),
        Function::Time(function) => times::more(function, arguments, context),
        Function::Array(function) => arrays::parts(function, arguments),
        _ => None,
    }
}

/// The longest channel and payload of a notification, in bytes.
const CHANNEL_BYTES_MAX: usize = 63;
const PAYLOAD_BYTES_MAX: usize = 7_999;

/// `pg_notify`: what is NULL is empty.
fn notify(arguments: &[Datum], rows: &mut dyn Rows) -> Result<Datum> {
    let text = |argument: &Datum| match argument {
        Datum::Text(text) => Ok(text.to_string()),
        Datum::Null => Ok(String::new()),
        _ => Err(mismatch(Function::Notify)),
    };
    let [channel, payload] = arguments else { return Err(mismatch(Function::Notify)) };
    let (channel, payload) = (text(channel)?, text(payload)?);
    let message = if channel.is_empty() {
        "channel name cannot be empty"
    } else if channel.len() > CHANNEL_BYTES_MAX {
        "channel name too long"
    } else if payload.len() > PAYLOAD_BYTES_MAX {
        "payload string too long"
    } else {
        rows.notify(&channel, &payload)?;
        return Ok(Datum::text(""));
    };
    Err(Error::new(SqlState::INVALID_PARAMETER, message))
}

/// The binder never makes this.
fn mismatch(function: Function) -> Error {
    Error::new(SqlState::DATA_CORRUPTED, format!("plan calls {function:?} with other types"))
}

fn truth(value: Option<bool>) -> Datum {
    value.map_or(Datum::Null, Datum::Bool)
}

fn as_truth(datum: &Datum) -> Option<bool> {
    match datum {
        Datum::Bool(value) => Some(*value),
        _ => None,
    }
}

/// Functions for which NULL is an argument as others are.
fn with_nulls(function: Function, arguments: &[Datum]) -> Result<Option<Datum>> {
    let result = match (function, arguments) {
        (Function::IsNull, [value]) => Datum::Bool(value.is_null()),
        (Function::IsNotNull, [value]) => Datum::Bool(!value.is_null()),
        (Function::IsTrue, [value]) => Datum::Bool(as_truth(value) == Some(true)),
        (Function::IsFalse, [value]) => Datum::Bool(as_truth(value) == Some(false)),
        (Function::IsDistinct, [left, right]) => Datum::Bool(left != right),
        (Function::And, [left, right]) => truth(match (as_truth(left), as_truth(right)) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), Some(true)) => Some(true),
            _ => None,
        }),
        (Function::Or, [left, right]) => truth(match (as_truth(left), as_truth(right)) {
            (Some(true), _) | (_, Some(true)) => Some(true),
            (Some(false), Some(false)) => Some(false),
            _ => None,
        }),
        (Function::In, [needle, items @ ..]) => truth(is_in(needle, items)),
        (Function::EqualAny, [needle, Datum::Array(array)]) => truth(is_in(needle, array.items())),
        (Function::Greatest, _) => extreme(arguments, Ordering::Greater),
        (Function::Least, _) => extreme(arguments, Ordering::Less),
        (Function::NullIf, [value, other]) => {
            if !value.is_null() && value == other {
                Datum::Null
            } else {
                value.clone()
            }
        }
        (Function::ConcatAll, _) => strings::concat_all(arguments),
        (Function::MakeArray, [Datum::Int4(code), items @ ..]) => {
            let element = u8::try_from(*code).ok().and_then(values::Type::from_code);
            let element = element.ok_or_else(|| mismatch(function))?;
            Datum::Array(Box::new(Array::new(element, items.to_vec())?))
        }
        (Function::MakeArray, [Datum::Array(like), items @ ..]) => {
            Datum::Array(Box::new(Array::new(like.element(), items.to_vec())?))
        }
        (Function::TableRow, fields) if fields.iter().all(Datum::is_null) => Datum::Null,
        (Function::MakeRecord | Function::TableRow, fields) => {
            if fields.iter().map(record_depth).max() >= Some(RECORD_DEPTH_MAX) {
                let message = format!("records are nested deeper than {RECORD_DEPTH_MAX} levels");
                return Err(Error::new(SqlState::STATEMENT_TOO_COMPLEX, message));
            }
            Datum::Record(fields.into())
        }
        (Function::EnumRange, [Datum::Array(all), low, high]) => {
            let is_within = |value: &&Datum| {
                (low.is_null() || value.compare(low).is_ge())
                    && (high.is_null() || value.compare(high).is_le())
            };
            let within = all.items().iter().filter(is_within).cloned().collect();
            Datum::Array(Box::new(Array::new(all.element(), within)?))
        }
        _ => return Ok(None),
    };
    Ok(Some(result))
}

/// Functions that make JSON, of NULLs, too.
fn to_json(function: Function, arguments: &[Datum], zone: &Zone) -> Option<Result<Datum>> {
    Some(match (function, arguments) {
        (Function::ToJson, [Datum::Null]) => Ok(Datum::Null),
        (Function::ToJson, [value]) => {
            json::of(value, zone).map(|json| Datum::Jsonb(Box::new(json)))
        }
        (Function::JsonBuildObject, _) => json::build_object(arguments, zone),
        (Function::JsonBuildArray, _) => json::build_array(arguments, zone),
        (Function::ToJsonText, [Datum::Null]) => Ok(Datum::Null),
        (Function::ToJsonText, [value]) => json_text::of(value, zone).map(json_text::datum),
        (Function::JsonTextBuildObject, _) => json_text::build_object(arguments, zone),
        (Function::JsonRow, _) => json_text::row(arguments, zone),
        (Function::JsonTextBuildArray, _) => json_text::build_array(arguments, zone),
        _ => return None,
    })
}

fn is_in(needle: &Datum, items: &[Datum]) -> Option<bool> {
    if items.is_empty() {
        return Some(false);
    }
    if needle.is_null() {
        return None;
    }
    let found = items.iter().any(|item| !item.is_null() && item == needle);
    if found {
        return Some(true);
    }
    if items.iter().any(Datum::is_null) { None } else { Some(false) }
}

fn extreme(arguments: &[Datum], wanted: Ordering) -> Datum {
    let mut best = &Datum::Null;
    for value in arguments.iter().filter(|value| !value.is_null()) {
        if best.is_null() || value.compare(best) == wanted {
            best = value;
        }
    }
    best.clone()
}

fn extract(arguments: &[Datum]) -> Result<Datum> {
    let [Datum::Text(name), value] = arguments else { return Err(mismatch(Function::Extract)) };
    let at = match value {
        Datum::Timestamp(at) | Datum::Timestamptz(at) => *at,
        _ => return Err(mismatch(Function::Extract)),
    };
    let field = Field::of_name(name, "timestamp without time zone")?;
    Ok(field.of(at)?.map_or(Datum::Null, Datum::Numeric))
}

fn date_trunc(arguments: &[Datum], context: &Context) -> Result<Datum> {
    match arguments {
        [Datum::Text(unit), Datum::Timestamp(at)] => truncate(unit, *at).map(Datum::Timestamp),
        [Datum::Text(unit), Datum::Timestamptz(at)] => {
            truncate_zoned(unit, *at, &context.zone).map(Datum::Timestamptz)
        }
        [Datum::Text(unit), Datum::Timestamptz(at), Datum::Text(zone)] => {
            truncate_zoned(unit, *at, &Zone::of_values(zone)?).map(Datum::Timestamptz)
        }
        [Datum::Text(unit), Datum::Interval(value)] => {
            truncate_interval(unit, *value).map(Datum::Interval)
        }
        _ => Err(mismatch(Function::DateTrunc)),
    }
}

fn at_time_zone(arguments: &[Datum]) -> Result<Datum> {
    match arguments {
        [Datum::Text(name), Datum::Timestamp(at)] => {
            at.to_utc(&Zone::of_values(name)?).map(Datum::Timestamptz)
        }
        [Datum::Text(name), Datum::Timestamptz(at)] => {
            at.to_local(&Zone::of_values(name)?).map(Datum::Timestamp)
        }
        _ => Err(mismatch(Function::AtTimeZone)),
    }
}
