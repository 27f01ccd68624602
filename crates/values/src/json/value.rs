//! A value of JSON: its order, its parts, its text.

use crate::Numeric;
use std::cmp::Ordering;
use std::fmt::{self, Write};

/// A value of JSON.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Json {
    /// `null`
    Null,
    /// Text.
    String(Box<str>),
    /// A number; never NaN or infinite.
    Number(Numeric),
    /// `true` or `false`
    Bool(bool),
    /// An array.
    Array(Vec<Json>),
    /// An object: members in canonical order, each key once.
    Object(Vec<(Box<str>, Json)>),
}

impl Json {
    /// An object of these members, put in canonical order; the last of equal keys stays.
    pub fn object(members: Vec<(Box<str>, Json)>) -> Json {
        let mut members = members;
        members.sort_by(|left, right| compare_keys(&left.0, &right.0));
        members.reverse();
        members.dedup_by(|later, earlier| later.0 == earlier.0);
        members.reverse();
        let sorted = members.is_sorted_by(|left, right| compare_keys(&left.0, &right.0).is_lt());
        assert!(sorted, "look-ups and comparisons take each key once, in order");
        Json::Object(members)
    }

    /// The member with this key, of an object.
    pub fn get(&self, key: &str) -> Option<&Json> {
        let Json::Object(members) = self else { return None };
        let at = members.binary_search_by(|(member, _)| compare_keys(member, key)).ok()?;
        Some(&members[at].1)
    }

    /// The item at an index, of an array; below zero from its end.
    pub fn item(&self, index: i64) -> Option<&Json> {
        let Json::Array(items) = self else { return None };
        let index = if index < 0 { index.checked_add(items.len() as i64)? } else { index };
        items.get(usize::try_from(index).ok()?)
    }

    /// PostgreSQL's order of kinds: objects are above arrays, and so on down to null.
    fn rank(&self) -> u8 {
        match self {
            Json::Null => 1,
            Json::String(_) => 2,
            Json::Number(_) => 3,
            Json::Bool(_) => 4,
            Json::Array(_) => 5,
            Json::Object(_) => 6,
        }
    }

    /// The order of values within others.
    fn compare_inner(&self, other: &Json) -> Ordering {
        match (self, other) {
            (Json::String(left), Json::String(right)) => left.cmp(right),
            (Json::Number(left), Json::Number(right)) => left.cmp(right),
            (Json::Bool(left), Json::Bool(right)) => left.cmp(right),
            (Json::Array(left), Json::Array(right)) => {
                let items = || {
                    let pairs = left.iter().zip(right);
                    pairs.map(|(left, right)| left.compare_inner(right)).find(|it| it.is_ne())
                };
                left.len().cmp(&right.len()).then_with(|| items().unwrap_or(Ordering::Equal))
            }
            (Json::Object(left), Json::Object(right)) => {
                let members = || {
                    let pairs = left.iter().zip(right);
                    pairs
                        .map(|(left, right)| {
                            left.0.cmp(&right.0).then_with(|| left.1.compare_inner(&right.1))
                        })
                        .find(|order| order.is_ne())
                };
                left.len().cmp(&right.len()).then_with(|| members().unwrap_or(Ordering::Equal))
            }
            _ => self.rank().cmp(&other.rank()),
        }
    }

    fn is_empty_array(&self) -> bool {
        matches!(self, Json::Array(items) if items.is_empty())
    }
}

/// The order in which an object has its keys; values are ordered by the texts of their keys.
fn compare_keys(left: &str, right: &str) -> Ordering {
    left.len().cmp(&right.len()).then_with(|| left.as_bytes().cmp(right.as_bytes()))
}

impl PartialOrd for Json {
    fn partial_cmp(&self, other: &Json) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// PostgreSQL's order: objects, arrays, truth values, numbers, texts, null, from above; arrays and
/// objects by their length first. An empty array is below all others, but not within them.
impl Ord for Json {
    fn cmp(&self, other: &Json) -> Ordering {
        match (self.is_empty_array(), other.is_empty_array()) {
            (false, false) => self.compare_inner(other),
            (left, right) => right.cmp(&left),
        }
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Json::Null => f.write_str("null"),
            Json::Bool(value) => write!(f, "{value}"),
            Json::Number(number) => write!(f, "{number}"),
            Json::String(text) => print_string(text, f),
            Json::Array(items) => {
                f.write_char('[')?;
                for (at, item) in items.iter().enumerate() {
                    f.write_str(if at == 0 { "" } else { ", " })?;
                    write!(f, "{item}")?;
                }
                f.write_char(']')
            }
            Json::Object(members) => {
                f.write_char('{')?;
                for (at, (key, value)) in members.iter().enumerate() {
                    f.write_str(if at == 0 { "" } else { ", " })?;
                    print_string(key, f)?;
                    write!(f, ": {value}")?;
                }
                f.write_char('}')
            }
        }
    }
}

fn print_string(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            '\x08' => f.write_str("\\b")?,
            '\x0c' => f.write_str("\\f")?,
            c if c < ' ' => write!(f, "\\u{:04x}", c as u32)?,
            c => f.write_char(c)?,
        }
    }
    f.write_char('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_postgresqls() {
        let sorted = [
            "[]",
            "null",
            "\"a\"",
            "\"b\"",
            "1",
            "2.0",
            "false",
            "true",
            "[3]",
            "[[]]",
            "[1, 1]",
            "{}",
            "{\"a\": 1}",
            "{\"a\": 2}",
            "{\"aa\": 1}",
            "{\"b\": 1}",
            "{\"b\": []}",
        ];
        let values: Vec<Json> = sorted.iter().map(|text| Json::parse(text).unwrap()).collect();
        assert!(values.is_sorted());
        assert!(values.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(values[13].get("a"), Some(&Json::Number(Numeric::from(2))));
        assert_eq!(values[10].item(-1), Some(&Json::Number(Numeric::ONE)));
    }
}
