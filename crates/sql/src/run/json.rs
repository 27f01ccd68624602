//! JSON made of values.

use values::{Array, Datum, Error, Json, Result, SqlState, Zone, text};

/// Arrays and objects within each other, as in JSON that is read.
const DEPTH_MAX: usize = 100;

/// A value as JSON.
pub(super) fn of(value: &Datum, zone: &Zone) -> Result<Json> {
    Ok(match value {
        Datum::Null => Json::Null,
        Datum::Bool(value) => Json::Bool(*value),
        Datum::Jsonb(json) => (**json).clone(),
        Datum::Json(text) => Json::parse(text)?,
        Datum::Array(array) => of_array(array, zone)?,
        Datum::Record(fields) => {
            let member = |(at, field): (usize, &Datum)| {
                Ok((format!("f{}", at + 1).into(), of(field, zone)?))
            };
            Json::object(fields.iter().enumerate().map(member).collect::<Result<_>>()?)
        }
        Datum::Int2(_)
        | Datum::Int4(_)
        | Datum::Int8(_)
        | Datum::Float4(_)
        | Datum::Float8(_)
        | Datum::Numeric(_) => number(&text::print(value, zone)),
        Datum::Timestamp(_) | Datum::Timestamptz(_) => {
            Json::String(with_t(&text::print(value, zone)).into())
        }
        other => Json::String(text::print(other, zone).into()),
    })
}

/// An array of JSON that was made of values.
pub(super) fn array(items: Vec<Datum>) -> Result<Datum> {
    let items = items.into_iter().map(own).collect::<Result<Vec<_>>>()?;
    whole(Json::Array(items))
}

/// An object of keys, each with its JSON behind it.
pub(super) fn object(items: Vec<Datum>) -> Result<Datum> {
    let mut members = Vec::with_capacity(items.len() / 2);
    let mut items = items.into_iter();
    while let Some(key) = items.next() {
        let (Datum::Text(key), Some(value)) = (key, items.next()) else { return Err(malformed()) };
        members.push((key, own(value)?));
    }
    whole(Json::object(members))
}

/// `json_build_array`
pub(super) fn build_array(items: &[Datum], zone: &Zone) -> Result<Datum> {
    let items = items.iter().map(|item| of(item, zone)).collect::<Result<Vec<_>>>()?;
    whole(Json::Array(items))
}

/// `json_build_object`: the binder makes keys text.
pub(super) fn build_object(items: &[Datum], zone: &Zone) -> Result<Datum> {
    if !items.len().is_multiple_of(2) {
        let message = "argument list must have even number of elements";
        return Err(Error::new(SqlState::INVALID_PARAMETER, message).with_hint(
            "The arguments of jsonb_build_object() must consist of alternating keys and values.",
        ));
    }
    let mut members = Vec::with_capacity(items.len() / 2);
    for (at, pair) in items.chunks(2).enumerate() {
        match pair {
            [Datum::Text(key), value] => members.push((key.clone(), of(value, zone)?)),
            [Datum::Null, _] => {
                let message = format!("argument {}: key must not be null", 2 * at + 1);
                return Err(Error::new(SqlState::INVALID_PARAMETER, message));
            }
            _ => return Err(malformed()),
        }
    }
    whole(Json::object(members))
}

fn own(item: Datum) -> Result<Json> {
    match item {
        Datum::Jsonb(json) => Ok(*json),
        _ => Err(malformed()),
    }
}

fn malformed() -> Error {
    Error::new(SqlState::DATA_CORRUPTED, "plan makes malformed JSON")
}

/// Refuses what is nested too deep: JSON is walked by calls of calls.
pub(super) fn whole(json: Json) -> Result<Datum> {
    if is_deeper(&json, DEPTH_MAX) {
        let message = format!("JSON is nested deeper than {DEPTH_MAX} levels");
        return Err(Error::new(SqlState::STATEMENT_TOO_COMPLEX, message));
    }
    Ok(Datum::Jsonb(Box::new(json)))
}

fn is_deeper(json: &Json, levels: usize) -> bool {
    let Some(rest) = levels.checked_sub(1) else {
        return matches!(json, Json::Array(_) | Json::Object(_));
    };
    match json {
        Json::Array(items) => items.iter().any(|item| is_deeper(item, rest)),
        Json::Object(members) => members.iter().any(|(_, value)| is_deeper(value, rest)),
        _ => false,
    }
}

/// NaN and what is infinite are no numbers of JSON.
fn number(text: &str) -> Json {
    match text.parse::<values::Numeric>() {
        Ok(number) if text.ends_with(|c: char| c.is_ascii_digit()) => Json::Number(number),
        _ => Json::String(text.into()),
    }
}

/// A date and time as JSON has it: `T` between both, and the minutes of a zone.
pub(super) fn with_t(text: &str) -> String {
    let (text, era) = match text.strip_suffix(" BC") {
        Some(text) => (text, " BC"),
        None => (text, ""),
    };
    let Some((date, time)) = text.split_once(' ') else { return text.to_owned() };
    let zone = time.find(['+', '-']).map_or("", |at| &time[at..]);
    let minutes = if zone.len() == 3 { ":00" } else { "" };
    format!("{date}T{time}{minutes}{era}")
}

fn of_array(array: &Array, zone: &Zone) -> Result<Json> {
    let mut level = array.items().iter().map(|item| of(item, zone)).collect::<Result<Vec<_>>>()?;
    let lengths: Vec<usize> =
        array.dimensions().iter().map(|dimension| dimension.length as usize).collect();
    // The last dimension is the innermost one.
    for length in lengths.iter().skip(1).rev() {
        let chunks = level.chunks((*length).max(1));
        level = chunks.map(|chunk| Json::Array(chunk.to_vec())).collect();
    }
    Ok(Json::Array(level))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_that_is_nested_too_deep_is_refused() {
        let mut value = Datum::Null;
        for _ in 0..DEPTH_MAX {
            value = build_array(&[value], &Zone::utc()).unwrap();
        }
        let error = build_array(&[value], &Zone::utc()).unwrap_err();
        assert_eq!(error.state(), SqlState::STATEMENT_TOO_COMPLEX);
    }

    #[test]
    fn times_have_a_t_and_minutes() {
        let check = |text: &str, expected| assert_eq!(with_t(text), expected);
        check("2024-02-29 12:00:00", "2024-02-29T12:00:00");
        check("2024-02-29 12:00:00.5+01", "2024-02-29T12:00:00.5+01:00");
        check("2024-02-29 12:00:00-05:30", "2024-02-29T12:00:00-05:30");
        check("0044-03-15 12:00:00 BC", "0044-03-15T12:00:00 BC");
        check("infinity", "infinity");
    }
}
