//! Operators and functions that look into `jsonb` or make another one of it.

use super::arrays::COMPARISONS_MAX;
use super::json::whole;
use super::rows::Rows;
use crate::ir::Function;
use std::collections::BTreeSet;
use values::{Array, Datum, Error, Json, Result, SqlState};

fn invalid(message: impl Into<String>) -> Error {
    Error::new(SqlState::INVALID_PARAMETER, message.into())
}

/// The result, if the function is one of these and takes these types.
pub(super) fn call(function: Function, arguments: &[Datum]) -> Option<Result<Datum>> {
    let [Datum::Jsonb(json), rest @ ..] = arguments else { return None };
    Some(match (function, rest) {
        (Function::JsonHasKey, [Datum::Text(key)]) => Ok(Datum::Bool(has_key(json, key))),
        (Function::JsonHasAny, [Datum::Array(keys)]) => {
            checked(json, keys).map(|()| Datum::Bool(texts(keys).any(|key| has_key(json, key))))
        }
        (Function::JsonHasAll, [Datum::Array(keys)]) => {
            checked(json, keys).map(|()| Datum::Bool(texts(keys).all(|key| has_key(json, key))))
        }
        (Function::JsonConcat, [Datum::Jsonb(other)]) => whole(joined(json, other)),
        (Function::JsonDelete, [Datum::Text(key)]) => without_keys(json, [&**key]),
        (Function::JsonDelete, [Datum::Array(keys)]) => without_keys(json, texts(keys)),
        (Function::JsonDelete, [Datum::Int4(at)]) => without_item(json, i64::from(*at)),
        (Function::JsonDeletePath, [Datum::Array(path)]) => changed(json, path, None, false),
        (Function::JsonSet, [Datum::Array(path), Datum::Jsonb(new), Datum::Bool(creates)]) => {
            changed(json, path, Some(new), *creates)
        }
        (Function::JsonType, []) => Ok(Datum::text(type_name(json))),
        (Function::JsonArrayLength, []) => match &**json {
            Json::Array(items) => Ok(Datum::Int4(items.len() as i32)),
            Json::Object(_) => Err(invalid("cannot get array length of a non-array")),
            _ => Err(invalid("cannot get array length of a scalar")),
        },
        (Function::JsonStripNulls, []) => whole(without_nulls(json)),
        _ => return None,
    })
}

/// Refuses keys that would be looked for in too many items.
fn checked(json: &Json, keys: &Array) -> Result<()> {
    match json {
        Json::Array(items) if items.len().saturating_mul(keys.items().len()) > COMPARISONS_MAX => {
            Err(too_long())
        }
        _ => Ok(()),
    }
}

/// The texts of an array, without its NULLs.
fn texts(array: &Array) -> impl Iterator<Item = &str> {
    array.items().iter().filter_map(|item| match item {
        Datum::Text(text) => Some(&**text),
        _ => None,
    })
}

/// `@>`. What it compares is counted in `rows`.
pub(super) fn contained(all: &Json, part: &Json, rows: &mut dyn Rows) -> Result<bool> {
    contains(all, part, true, &mut Compared { count: 0, weight: 0, rows })
}

/// The comparisons that are counted as a step; one of long texts counts as several.
const STEP_COMPARISONS: usize = 64;
/// The bytes of texts that count as a comparison.
const COMPARED_BYTES: usize = 64;

/// The comparisons of one search.
struct Compared<'r> {
    count: usize,
    /// What is not counted as steps yet.
    weight: usize,
    rows: &'r mut dyn Rows,
}

impl Compared<'_> {
    /// Counts a comparison of a part.
    fn count(&mut self, part: &Json) -> Result<()> {
        self.count += 1;
        if self.count > COMPARISONS_MAX {
            return Err(too_long());
        }
        self.weight += match part {
            Json::String(text) => 1 + text.len() / COMPARED_BYTES,
            _ => 1,
        };
        if self.weight >= STEP_COMPARISONS {
            self.rows.steps((self.weight / STEP_COMPARISONS) as u64)?;
            self.weight %= STEP_COMPARISONS;
        }
        Ok(())
    }
}

fn too_long() -> Error {
    let message = "jsonb is too large to compare each part with each";
    Error::new(SqlState::LIMIT_EXCEEDED, message)
}

/// Whether one contains another: an array also a value without the brackets, but only outside.
///
/// # Errors
/// That it takes too many comparisons, or steps.
fn contains(
    all: &Json,
    part: &Json,
    is_outside: bool,
    compared: &mut Compared<'_>,
) -> Result<bool> {
    compared.count(part)?;
    Ok(match (all, part) {
        (Json::Object(_), Json::Object(members)) => {
            for (key, value) in members {
                let Some(own) = all.get(key) else { return Ok(false) };
                if !contains(own, value, false, compared)? {
                    return Ok(false);
                }
            }
            true
        }
        (Json::Array(items), Json::Array(wanted)) => {
            for wanted in wanted {
                if !has_item(items, wanted, compared)? {
                    return Ok(false);
                }
            }
            true
        }
        (Json::Array(_), Json::Object(_)) | (Json::Object(_), _) => false,
        (Json::Array(items), scalar) => is_outside && has_item(items, scalar, compared)?,
        (scalar, other) => scalar == other,
    })
}

fn has_item(items: &[Json], wanted: &Json, compared: &mut Compared<'_>) -> Result<bool> {
    for own in items {
        if contains(own, wanted, false, compared)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// `?`: a key of an object, a text in an array, or the text itself.
fn has_key(json: &Json, key: &str) -> bool {
    let is_it = |item: &Json| matches!(item, Json::String(text) if **text == *key);
    match json {
        Json::Array(items) => items.iter().any(is_it),
        Json::Object(_) => json.get(key).is_some(),
        own => is_it(own),
    }
}

/// `||`: what is no array becomes one of it alone, but for two objects.
fn joined(left: &Json, right: &Json) -> Json {
    if let (Json::Object(left), Json::Object(right)) = (left, right) {
        return Json::object(left.iter().chain(right).cloned().collect());
    }
    let items = |json: &Json| match json {
        Json::Array(items) => items.clone(),
        own => vec![own.clone()],
    };
    Json::Array([items(left), items(right)].concat())
}

fn without_keys<'k>(json: &Json, keys: impl IntoIterator<Item = &'k str>) -> Result<Datum> {
    let keys: BTreeSet<&str> = keys.into_iter().collect();
    let is_one = |text: &str| keys.contains(text);
    match json {
        Json::Object(members) => {
            let stays = members.iter().filter(|(key, _)| !is_one(key));
            whole(Json::Object(stays.cloned().collect()))
        }
        Json::Array(items) => {
            let goes = |item: &Json| matches!(item, Json::String(text) if is_one(text));
            whole(Json::Array(items.iter().filter(|item| !goes(item)).cloned().collect()))
        }
        _ => Err(invalid("cannot delete from scalar")),
    }
}

fn without_item(json: &Json, at: i64) -> Result<Datum> {
    match json {
        Json::Array(items) => {
            let mut items = items.clone();
            if let Some(at) = place(at, items.len()) {
                items.remove(at);
            }
            whole(Json::Array(items))
        }
        Json::Object(_) => Err(invalid("cannot delete from object using integer index")),
        _ => Err(invalid("cannot delete from scalar")),
    }
}

/// The place of an item, which is counted from the end below zero.
fn place(at: i64, length: usize) -> Option<usize> {
    let at = if at < 0 { at.checked_add(length as i64)? } else { at };
    usize::try_from(at).ok().filter(|at| *at < length)
}

/// Another value, or none, at the end of a path.
fn changed(json: &Json, path: &Array, new: Option<&Json>, creates: bool) -> Result<Datum> {
    if !matches!(json, Json::Array(_) | Json::Object(_)) {
        let verb = if new.is_some() { "set" } else { "delete" };
        return Err(invalid(format!("cannot {verb} path in scalar")));
    }
    let is_empty = matches!(json, Json::Array(items) if items.is_empty())
        || matches!(json, Json::Object(members) if members.is_empty());
    if is_empty && !(new.is_some() && creates) {
        // PostgreSQL does not look at the path then.
        return whole(json.clone());
    }
    let mut steps = Vec::new();
    for (at, step) in path.items().iter().enumerate() {
        match step {
            Datum::Text(step) => steps.push(&**step),
            _ => {
                let message = format!("path element at position {} is null", at + 1);
                return Err(Error::new(SqlState::NULL_NOT_ALLOWED, message));
            }
        }
    }
    match steps.is_empty() {
        true => whole(json.clone()),
        false => whole(at_path(json, &steps, 0, &Wanted { new, creates })?),
    }
}

/// What comes at the end of a path.
struct Wanted<'j> {
    new: Option<&'j Json>,
    /// Whether it comes where nothing is yet.
    creates: bool,
}

fn at_path(json: &Json, path: &[&str], depth: usize, wanted: &Wanted<'_>) -> Result<Json> {
    let is_last = depth + 1 == path.len();
    let added = wanted.new.filter(|_| is_last && wanted.creates);
    match json {
        Json::Object(members) => {
            let mut members = members.clone();
            match members.iter().position(|(key, _)| **key == *path[depth]) {
                Some(at) => match (is_last, wanted.new) {
                    (true, Some(new)) => members[at].1 = new.clone(),
                    (true, None) => drop(members.remove(at)),
                    (false, _) => members[at].1 = at_path(&members[at].1, path, depth + 1, wanted)?,
                },
                None => members.extend(added.map(|new| (path[depth].into(), new.clone()))),
            }
            Ok(Json::object(members))
        }
        Json::Array(items) => {
            let mut items = items.clone();
            let at: i32 = path[depth].parse().map_err(|_| {
                let (at, step) = (depth + 1, path[depth]);
                let message =
                    format!("path element at position {at} is not an integer: \"{step}\"");
                Error::new(SqlState::INVALID_TEXT, message)
            })?;
            match (place(i64::from(at), items.len()), is_last, wanted.new) {
                (Some(at), true, Some(new)) => items[at] = new.clone(),
                (Some(at), true, None) => drop(items.remove(at)),
                (Some(at), false, _) => items[at] = at_path(&items[at], path, depth + 1, wanted)?,
                (None, ..) => {
                    let end = if at < 0 { 0 } else { items.len() };
                    if let Some(new) = added {
                        items.insert(end, new.clone());
                    }
                }
            }
            Ok(Json::Array(items))
        }
        scalar => Ok(scalar.clone()),
    }
}

/// The name of a value's type, as `jsonb_typeof` has it.
pub(super) fn type_name(json: &Json) -> &'static str {
    match json {
        Json::Null => "null",
        Json::String(_) => "string",
        Json::Number(_) => "number",
        Json::Bool(_) => "boolean",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    }
}

/// Without the members of objects that are null.
fn without_nulls(json: &Json) -> Json {
    match json {
        Json::Array(items) => Json::Array(items.iter().map(without_nulls).collect()),
        Json::Object(members) => {
            let members = members.iter().filter(|(_, value)| *value != Json::Null);
            Json::Object(members.map(|(key, value)| (key.clone(), without_nulls(value))).collect())
        }
        scalar => scalar.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::Memory;
    use super::*;

    fn contained(all: &Json, part: &Json) -> Result<Datum> {
        super::contained(all, part, &mut Memory::new(u64::MAX)).map(Datum::Bool)
    }

    fn json(text: &str) -> Json {
        Json::parse(text).unwrap()
    }

    #[test]
    fn what_contains_what_is_postgresqls() {
        let check = |all: &str, part: &str, expected| {
            let found = contained(&json(all), &json(part)).unwrap();
            assert_eq!(found, Datum::Bool(expected), "{all} @> {part}");
        };
        check(r#"{"a": 1, "b": {"c": [1, 2]}}"#, r#"{"b": {"c": [2]}}"#, true);
        check(r#"{"a": 1}"#, r#"{"a": 2}"#, false);
        check(r#"{"a": [1]}"#, r#"{"a": 1}"#, false);
        check("[1, [2, 3]]", "[[3]]", true);
        check("[1, [2, 3]]", "[3]", false);
        check("[1, 2]", "1", true);
        check("1", "[1]", false);
        check("1", "1.0", true);
        check("[]", "[]", true);
        check("[]", "{}", false);
        // Nothing takes long: what would is refused.
        let many = json(&format!("[{}]", vec!["[]"; 20_000].join(",")));
        let other = json(&format!("[{}]", vec!["[0]"; 20_000].join(",")));
        assert_eq!(contained(&many, &many).unwrap(), Datum::Bool(true));
        assert_eq!(contained(&many, &other).unwrap(), Datum::Bool(false));
        let numbers: Vec<String> = (0..20_000).map(|at| at.to_string()).collect();
        let numbers = json(&format!("[{}]", numbers.join(",")));
        let refused = contained(&numbers, &numbers).unwrap_err();
        assert_eq!(refused.state(), SqlState::LIMIT_EXCEEDED);
    }

    #[test]
    fn paths_are_changed_as_in_postgresql() {
        let check = |text: &str, path: &[&str], new: Option<&str>, creates, expected: &str| {
            let (own, new) = (json(text), new.map(json));
            let wanted = Wanted { new: new.as_ref(), creates };
            let made = at_path(&own, path, 0, &wanted).unwrap();
            assert_eq!(made, json(expected), "{text} {path:?}");
        };
        check(r#"{"a": 1}"#, &["a"], Some("2"), false, r#"{"a": 2}"#);
        check(r#"{"a": 1}"#, &["b"], Some("2"), true, r#"{"a": 1, "b": 2}"#);
        check(r#"{"a": 1}"#, &["b"], Some("2"), false, r#"{"a": 1}"#);
        check(r#"{"a": 1}"#, &["b", "c"], Some("2"), true, r#"{"a": 1}"#);
        check(r#"{"a": [1, 2]}"#, &["a", "-1"], Some("9"), true, r#"{"a": [1, 9]}"#);
        check("[1, 2]", &["9"], Some("3"), true, "[1, 2, 3]");
        check("[1, 2]", &["-9"], Some("0"), true, "[0, 1, 2]");
        check(r#"{"a": {"b": 1}}"#, &["a", "b"], None, false, r#"{"a": {}}"#);
        check("[1, 2]", &["0"], None, false, "[2]");
        let wanted = Wanted { new: None, creates: false };
        assert!(at_path(&json("[1]"), &["x"], 0, &wanted).is_err());
    }
}
