//! `json` made of values: text, in the form that PostgreSQL gives it.

use super::json::with_t;
use values::{Array, Datum, Error, Json, Result, SqlState, Zone, text};

/// A value as text of JSON.
pub(super) fn of(value: &Datum, zone: &Zone) -> Result<String> {
    let string = |text: String| Json::String(text.into()).to_string();
    Ok(match value {
        Datum::Null => "null".to_owned(),
        Datum::Bool(_) | Datum::Jsonb(_) | Datum::Json(_) => match value {
            Datum::Bool(value) => value.to_string(),
            other => text::print(other, zone),
        },
        Datum::Array(array) => of_array(array, zone)?,
        Datum::Record(fields) => of_record(fields, zone)?,
        Datum::Int2(_) | Datum::Int4(_) | Datum::Int8(_) => text::print(value, zone),
        Datum::Float4(_) | Datum::Float8(_) | Datum::Numeric(_) => {
            let shown = text::print(value, zone);
            // NaN and what is infinite are no numbers of JSON.
            if shown.ends_with(|c: char| c.is_ascii_digit()) { shown } else { string(shown) }
        }
        Datum::Timestamp(_) | Datum::Timestamptz(_) => string(with_t(&text::print(value, zone))),
        other => string(text::print(other, zone)),
    })
}

/// An object whose keys say the places of the fields.
fn of_record(fields: &[Datum], zone: &Zone) -> Result<String> {
    let member = |(at, field): (usize, &Datum)| Ok(format!("\"f{}\":{}", at + 1, of(field, zone)?));
    let members = fields.iter().enumerate().map(member).collect::<Result<Vec<_>>>()?;
    Ok(format!("{{{}}}", members.join(",")))
}

/// Text that is JSON.
pub(super) fn datum(json: String) -> Datum {
    Datum::Json(json.into())
}

/// What is nested too deep is refused, as where JSON is read.
fn checked(json: String) -> Result<Datum> {
    Json::check_depth(&json).map(|()| datum(json))
}

fn of_array(array: &Array, zone: &Zone) -> Result<String> {
    let mut level = array.items().iter().map(|item| of(item, zone)).collect::<Result<Vec<_>>>()?;
    let lengths = array.dimensions().iter().map(|dimension| dimension.length as usize);
    let lengths: Vec<usize> = lengths.collect();
    // The last dimension is the innermost one.
    for length in lengths.iter().skip(1).rev() {
        let chunks = level.chunks((*length).max(1));
        level = chunks.map(|chunk| format!("[{}]", chunk.join(","))).collect();
    }
    Ok(format!("[{}]", level.join(",")))
}

/// `json_build_array`
pub(super) fn build_array(items: &[Datum], zone: &Zone) -> Result<Datum> {
    let items = items.iter().map(|item| of(item, zone)).collect::<Result<Vec<_>>>()?;
    checked(format!("[{}]", items.join(", ")))
}

/// A row, of names and values: that of an outer join without a partner has no value.
pub(super) fn row(items: &[Datum], zone: &Zone) -> Result<Datum> {
    if items.chunks(2).all(|pair| pair.last().is_none_or(Datum::is_null)) {
        return Ok(Datum::Null);
    }
    let member = |pair: &[Datum]| match pair {
        [Datum::Text(name), value] => {
            Ok(format!("{}:{}", Json::String(name.clone()), of(value, zone)?))
        }
        _ => Err(Error::new(SqlState::DATA_CORRUPTED, "plan makes malformed JSON")),
    };
    let members = items.chunks(2).map(member).collect::<Result<Vec<_>>>()?;
    checked(format!("{{{}}}", members.join(",")))
}

/// `json_build_object`: the binder makes keys text.
pub(super) fn build_object(items: &[Datum], zone: &Zone) -> Result<Datum> {
    if !items.len().is_multiple_of(2) {
        let message = "argument list must have even number of elements";
        return Err(Error::new(SqlState::INVALID_PARAMETER, message).with_hint(
            "The arguments of json_build_object() must consist of alternating keys and values.",
        ));
    }
    let mut members = Vec::with_capacity(items.len() / 2);
    for (at, pair) in items.chunks(2).enumerate() {
        if pair[0].is_null() {
            let message = format!("argument {} cannot be null", 2 * at + 1);
            let error = Error::new(SqlState::INVALID_PARAMETER, message);
            return Err(error.with_hint("Object keys should be text."));
        }
        members.push(member_text(pair, zone)?);
    }
    checked(format!("{{{}}}", members.join(", ")))
}

fn member_text(pair: &[Datum], zone: &Zone) -> Result<String> {
    let [key @ Datum::Text(_), value] = pair else {
        let message = "field name must not be null";
        return Err(Error::new(SqlState::INVALID_PARAMETER, message));
    };
    Ok(format!("{} : {}", of(key, zone)?, of(value, zone)?))
}

/// An item of `json_agg`: arrays begin lines of their own.
pub(super) fn item(value: &Datum, is_first: bool, zone: &Zone) -> Result<Datum> {
    let begin = if matches!(value, Datum::Array(_)) && !is_first { "\n " } else { "" };
    Ok(datum(format!("{begin}{}", of(value, zone)?)))
}

/// A member of `json_object_agg`.
pub(super) fn member(pair: &[Datum], zone: &Zone) -> Result<Datum> {
    member_text(pair, zone).map(datum)
}

fn text_of(item: &Datum) -> &str {
    match item {
        Datum::Json(text) => text,
        _ => "",
    }
}

/// The items of an aggregate between brackets.
pub(super) fn joined(items: &[Datum], open: &str, close: &str) -> Result<Datum> {
    let bytes = items.iter().map(|item| text_of(item).len() + 2).sum::<usize>();
    let mut json = String::with_capacity(open.len() + bytes + close.len());
    json.push_str(open);
    for (at, item) in items.iter().enumerate() {
        json.push_str(if at > 0 { ", " } else { "" });
        json.push_str(text_of(item));
    }
    json.push_str(close);
    checked(json)
}
