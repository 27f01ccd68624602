//! Parts of JSON: `->`, `->>`, `#>` and `#>>`. Those of `json` are text as it was given.

use crate::ir::Function;
use values::{Datum, Json, Result, json};

/// A part, or nothing where there is none; `None` if the arguments are of other types.
pub(super) fn part(function: Function, whole: &Datum, keys: &Datum) -> Option<Result<Datum>> {
    let is_text = matches!(function, Function::JsonFieldText | Function::JsonPathText);
    let keys: Vec<&Datum> = match keys {
        Datum::Array(path) => path.items().iter().collect(),
        key => vec![key],
    };
    let is_path = matches!(function, Function::JsonPath | Function::JsonPathText);
    match whole {
        Datum::Jsonb(json) => {
            // A scalar is an array of itself for `->` and `->>` with a number, and for no path.
            if let ([Datum::Int4(at)], false) =
                (&keys[..], is_path || matches!(**json, Json::Array(_) | Json::Object(_)))
            {
                let found = matches!(at, 0 | -1).then_some(&**json);
                return Some(Ok(shown_canonical(found, is_text)));
            }
            let found = keys.iter().try_fold(&**json, |json, key| of_canonical(json, key, is_path));
            Some(Ok(shown_canonical(found, is_text)))
        }
        Datum::Json(text) => {
            let whole = text.trim_ascii();
            let found = keys.iter().try_fold(whole, |text, key| of_text(text, key, is_path));
            Some(shown_text(found, is_text))
        }
        _ => None,
    }
}

/// The index that a step of a path is.
fn index(key: &str) -> Option<i64> {
    key.trim().parse().ok()
}

fn of_canonical<'j>(json: &'j Json, key: &Datum, is_path: bool) -> Option<&'j Json> {
    match (json, key) {
        (Json::Array(_), Datum::Text(key)) if is_path => json.item(index(key)?),
        (_, Datum::Text(key)) => json.get(key),
        (_, Datum::Int4(at)) => json.item(i64::from(*at)),
        _ => None,
    }
}

fn of_text<'j>(text: &'j str, key: &Datum, is_path: bool) -> Option<&'j str> {
    match key {
        Datum::Text(key) if is_path && text.starts_with('[') => {
            json::given::item(text, index(key)?)
        }
        Datum::Text(key) => json::given::member(text, key),
        Datum::Int4(at) => json::given::item(text, i64::from(*at)),
        _ => None,
    }
}

fn shown_canonical(found: Option<&Json>, is_text: bool) -> Datum {
    match (found, is_text) {
        (None, _) | (Some(Json::Null), true) => Datum::Null,
        (Some(Json::String(text)), true) => Datum::Text(text.clone()),
        (Some(value), true) => Datum::text(value.to_string()),
        (Some(value), false) => Datum::Jsonb(Box::new(value.clone())),
    }
}

fn shown_text(found: Option<&str>, is_text: bool) -> Result<Datum> {
    let Some(text) = found else { return Ok(Datum::Null) };
    if !is_text {
        return Ok(Datum::Json(text.into()));
    }
    if text == "null" {
        return Ok(Datum::Null);
    }
    match text.starts_with('"') {
        true => match Json::parse(text)? {
            Json::String(text) => Ok(Datum::Text(text)),
            _ => Ok(Datum::text(text)),
        },
        false => Ok(Datum::text(text)),
    }
}
