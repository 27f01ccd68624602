//! What is read without types is what was written with them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use nvcaracal_derive::{Data, Key};

use super::RowTypes;
use crate::data::stored;
use crate::data::value::Data;
use crate::key::bytes::Key;

/// A value and a key of these types, as JSON.
#[track_caller]
fn shows<K: Key + ?Sized, V: Data>(key: &K, value: &V, json: (&str, &str)) {
    let words: Vec<_> =
        stored::versions::<V>().iter().map(|of| format!("{} -> {of}", K::describe())).collect();
    let types = RowTypes::parse(&words).unwrap_or_else(|error| panic!("{error}"));
    let bytes = stored::with_stored(value, <[u8]>::to_vec).expect("it ends");
    let value = types.value(&bytes);
    let key_bytes = key.with_key(<[u8]>::to_vec);
    let key = types.key(&key_bytes);
    // And back: from what a reader of JSON makes of it, which knows no types.
    let untyped =
        |value: &super::Value| untyped(&serde_json::from_str(&value.to_string()).unwrap());
    assert_eq!(types.value_bytes(&untyped(&value)).as_deref(), Ok(&bytes[..]), "{words:?} {value}");
    assert_eq!(types.key_bytes(&untyped(&key)).as_deref(), Ok(&key_bytes[..]), "{words:?} {key}");
    assert_eq!((key.to_string().as_str(), value.to_string().as_str()), json, "{words:?}");
}

fn untyped(json: &serde_json::Value) -> super::Value {
    use super::Value;
    use serde_json::Value as Json;
    match json {
        Json::Null => Value::Null,
        Json::Bool(flag) => Value::Bool(*flag),
        Json::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(number), _) => Value::Unsigned(number.into()),
            (None, Some(number)) => Value::Signed(number.into()),
            (None, None) => Value::Float(number.as_f64().unwrap()),
        },
        Json::String(text) => Value::Text(text.clone()),
        Json::Array(items) => Value::List(items.iter().map(untyped).collect()),
        Json::Object(fields) => {
            Value::Struct(fields.iter().map(|(name, of)| (name.clone(), untyped(of))).collect())
        }
    }
}

#[derive(Debug, Clone, PartialEq, Data)]
struct Seat {
    row: u32,
    holder: Option<String>,
    state: State,
    past: Vec<State>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Data, Key)]
struct UserId(u64);

#[derive(Debug, Clone, PartialEq, Data)]
enum State {
    Free,
    Held { by: UserId, until: SystemTime },
    Sold(UserId, i16),
}

#[derive(Debug, Clone, PartialEq, Data)]
struct Tree {
    name: String,
    below: Vec<Tree>,
}

#[derive(Debug, Clone, PartialEq, Eq, Data, Key)]
enum Place {
    Standing,
    Row { number: i32, side: bool },
}

#[derive(Debug, Clone, PartialEq, Data)]
struct Pair<T> {
    both: (T, T),
}

crate::plain! {
    struct Account { cents: i64, branch: u32, marks: [u8; 4] }
}

#[test]
fn numbers_and_texts() {
    shows(&7u64, &-5i64, ("7", "-5"));
    shows(&-1i16, &250u8, ("-1", "250"));
    shows(&i64::MIN, &u64::MAX, ("-9223372036854775808", "18446744073709551615"));
    shows(&0u8, &u128::MAX, ("0", "\"340282366920938463463374607431768211455\""));
    shows("a\0b", &"say \"x\"\n".to_string(), (r#""a\u0000b""#, r#""say \"x\"\n""#));
    shows(&true, &0.1f32, ("true", "0.1"));
    shows(&'x', &f64::NAN, ("\"x\"", "\"NaN\""));
    shows(&[1u8, 0xff][..], &vec![0u8, 16], ("\"0x01ff\"", "\"0x0010\""));
    shows(&[1u8, 2, 3], &[1u16, 2], ("\"0x010203\"", "[1,2]"));
    shows(&1u8, &(), ("1", "null"));
}

#[test]
fn what_is_made_of_others() {
    let holder = Some("Ada".to_string());
    let past = vec![State::Free, State::Sold(UserId(9), -3)];
    let until = SystemTime::UNIX_EPOCH + Duration::new(1_700_000_000, 50_000_000);
    let seat = Seat { row: 3, holder, state: State::Held { by: UserId(7), until }, past };
    let json = [
        r#"{"row":3,"holder":"Ada","state":{"Held":{"by":7,"until":"2023-11-14T22:13:20.05Z"}},"#,
        r#""past":["Free",{"Sold":[9,-3]}]}"#,
    ];
    shows(&UserId(4), &seat, ("4", json.concat().as_str()));
    shows(&(1u32, "x".to_string(), -2i8), &None::<u8>, ("[1,\"x\",-2]", "null"));
    shows(&Place::Standing, &Some(None::<u8>), ("\"Standing\"", "{\"some\":null}"));
    let place = Place::Row { number: -4, side: true };
    let answer: Result<u8, String> = Err("no".into());
    shows(&place, &answer, (r#"{"Row":{"number":-4,"side":true}}"#, r#"{"Err":"no"}"#));
    shows(&Some(5u8), &Ok::<_, u8>(5u8), ("5", "{\"Ok\":5}"));
    let map = BTreeMap::from([("b".to_string(), 2u8), ("a".to_string(), 1)]);
    shows(&None::<u8>, &map, ("null", r#"{"a":1,"b":2}"#));
    let pairs = BTreeMap::from([((1u8, 2u8), BTreeSet::from([3u8]))]);
    shows(&Duration::new(1, 500_000_000), &pairs, ("\"1.5s\"", "[[[1,2],[3]]]"));
    let map = BTreeMap::from([(-1i16, 2u8), (3, 4)]);
    shows(&1u8, &map, ("1", r#"{"-1":2,"3":4}"#));
    let map = BTreeMap::from([(false, 1u8), (true, 2)]);
    shows(&1u8, &map, ("1", r#"{"false":1,"true":2}"#));
    let map = BTreeMap::from([(7u8, 1u8), (8, 2)]);
    shows(&1u8, &map, ("1", r#"{"7":1,"8":2}"#));
    let map = BTreeMap::from([(u128::MAX, 1u8)]);
    shows(&1u8, &map, ("1", r#"{"340282366920938463463374607431768211455":1}"#));
    let account = Account { cents: -1, branch: 2, marks: [0, 1, 2, 3] };
    shows(&1u8, &account, ("1", r#"{"cents":-1,"branch":2,"marks":"0x00010203"}"#));
    shows(&1u8, &Pair { both: (1u8, 2u8) }, ("1", r#"{"both":[1,2]}"#));
    let leaf = Tree { name: "leaf".into(), below: Vec::new() };
    let tree = Tree { name: "root".into(), below: vec![leaf.clone(), leaf] };
    let json = r#"{"name":"root","below":[{"name":"leaf","below":[]},{"name":"leaf","below":[]}]}"#;
    shows(&1u8, &tree, ("1", json));
    shows(&1u8, &vec![(1u8, "x".to_string())], ("1", r#"[[1,"x"]]"#));
}

#[test]
fn types_of_other_crates() {
    let decimal = rust_decimal::Decimal::new(-12_345, 2);
    let id = uuid::Uuid::from_u128(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef);
    shows(&id, &decimal, ("\"01234567-89ab-cdef-0123-456789abcdef\"", "\"-123.45\""));
    shows(&1u8, &rust_decimal::Decimal::new(5, 3), ("1", "\"0.005\""));
    shows(&1u8, &(crate::Serde(3u8), 4u8), ("1", "[\"0x03\",4]"));
}

#[test]
fn dates_before_and_after_1970() {
    let second = |seconds: i64| match seconds.try_into() {
        Ok(after) => SystemTime::UNIX_EPOCH + Duration::from_secs(after),
        Err(_) => SystemTime::UNIX_EPOCH - Duration::from_secs(seconds.unsigned_abs()),
    };
    for (seconds, text) in [
        (0, "\"1970-01-01T00:00:00Z\""),
        (-1, "\"1969-12-31T23:59:59Z\""),
        (951_782_400, "\"2000-02-29T00:00:00Z\""),
        (4_107_542_399, "\"2100-02-28T23:59:59Z\""),
        (-2_208_988_800, "\"1900-01-01T00:00:00Z\""),
    ] {
        shows(&1u8, &second(seconds), ("1", text));
    }
}

#[derive(Debug, Clone, PartialEq, Data)]
struct Old {
    cents: u8,
}

#[derive(Debug, Clone, PartialEq, Data)]
#[data(was = Old)]
struct New {
    cents: u64,
    text: String,
}

impl From<Old> for New {
    fn from(old: Old) -> Self {
        Self { cents: old.cents.into(), text: String::new() }
    }
}

/// A value is shown as what it is, of whichever version.
#[test]
fn versions() {
    shows(&1u8, &New { cents: 5, text: "x".into() }, ("1", r#"{"cents":5,"text":"x"}"#));
    let words: Vec<_> = stored::versions::<New>().iter().map(|of| format!("u8 -> {of}")).collect();
    let types = RowTypes::parse(&words).unwrap();
    assert_eq!(types.value(&[9]).to_string(), r#"{"cents":9}"#);
    assert_eq!(types.value(&[9, 9, 9]).to_string(), "\"0x090909\"");
    assert_eq!((types.versions(), types.version_of(&[9])), (2, Some(0)));
    assert_eq!((types.version_of(&[9, 9, 9]), types.fields(0)), (None, vec!["cents"]));
}

#[derive(Debug, Clone, PartialEq, Data)]
#[data(was = Old)]
struct Nothing {}

impl From<Old> for Nothing {
    fn from(_: Old) -> Self {
        Self {}
    }
}

/// One byte is a value of the first version, so the second one, of no bytes, has its version in
/// two.
#[test]
fn a_version_that_looks_like_a_value_of_the_first_stands_there_in_two_bytes() {
    shows(&1u8, &Nothing {}, ("1", "{}"));
    let words: Vec<_> =
        stored::versions::<Nothing>().iter().map(|of| format!("u8 -> {of}")).collect();
    let types = RowTypes::parse(&words).unwrap();
    assert_eq!((types.version_of(&[1, 129]), types.version_of(&[1])), (Some(1), Some(0)));
    for bytes in [[2, 129], [1, 130], [1, 1], [0, 128]] {
        assert_eq!(types.version_of(&bytes), None, "{bytes:?}");
    }
}

#[derive(Debug, Clone, PartialEq, Data)]
#[data(was = Old)]
struct Dollars {
    cents: u32,
}

impl From<Old> for Dollars {
    fn from(old: Old) -> Self {
        Self { cents: old.cents.into() }
    }
}

/// Regression: a value of an older version was written as one of the newest, because both have the
/// same fields.
#[test]
fn a_value_that_may_be_of_two_versions_is_of_the_one_that_is_named() {
    let words: Vec<_> =
        stored::versions::<Dollars>().iter().map(|of| format!("u8 -> {of}")).collect();
    let types = RowTypes::parse(&words).unwrap();
    let value = types.value(&[9]);
    assert_eq!(types.value_bytes_of(&value, 0), Ok(vec![9]));
    assert_eq!(types.value_bytes_of(&value, 1), Ok(vec![9, 0, 0, 0, 1]));
    assert_eq!(types.version_of(&[9, 0, 0, 0, 1]), Some(1));
    assert!(types.value_bytes(&value).unwrap_err().contains("version 0 or 1"));
    assert!(types.value_bytes_of(&value, 2).unwrap_err().contains("no version 2"));
}

#[test]
fn what_is_no_type_is_told_with_its_place_and_what_is_no_value_is_shown_as_bytes() {
    for words in ["u64", "u64 -> ", "u64 -> What", "u64 -> (u8, ", "u64 -> Vec<u8", "u9 -> u8", ""]
    {
        assert!(RowTypes::parse(&[words]).is_err(), "{words:?}");
    }
    assert!(RowTypes::parse(&["u64 -> What"]).unwrap_err().contains("column"));
    let deep = format!("u64 -> {}u8{}", "Option<".repeat(100), ">".repeat(100));
    assert!(RowTypes::parse(&[deep]).is_err());
    assert!(RowTypes::parse::<&str>(&[]).is_err());
    let types = RowTypes::parse(&["bool -> Vec<()>"]).unwrap();
    assert_eq!(types.key(&[0, 0, 0, 0, 0, 0, 0, 2]).to_string(), "\"0x0000000000000002\"");
    assert_eq!(types.key(&[1]).to_string(), "\"0x01\"");
    assert_eq!(types.value(&[1]).to_string(), "\"0x01\"");
    // Types without bytes, and a list inside that says it has four thousand million of them.
    let types = RowTypes::parse(&["u8 -> (Vec<()>, u8)"]).unwrap();
    assert_eq!(types.value(&[0xff, 0xff, 0xff, 0xff, 1]).to_string(), "\"0xffffffff01\"");
    let types = RowTypes::parse(&["u8 -> (Vec<u64>, u8)"]).unwrap();
    assert_eq!(types.value(&[0xff, 0xff, 0xff, 0xff, 1]).to_string(), "\"0xffffffff01\"");
}

/// A whole number is a value of a type with fractions, too: JSON tells them by the point alone.
#[test]
fn whole_numbers_and_texts_are_numbers_with_fractions() {
    use super::Value;
    let types = RowTypes::parse(&["u8 -> f64"]).unwrap();
    for (value, number) in [
        (Value::Signed(-3), -3.0_f64),
        (Value::Unsigned(3), 3.0),
        (Value::Float(-0.5), -0.5),
        (Value::Text("-1.5".into()), -1.5),
    ] {
        assert_eq!(types.value_bytes(&value), Ok(number.to_le_bytes().to_vec()), "{value}");
    }
    for value in [Value::Text("many".into()), Value::Bool(true), Value::Null] {
        let error = types.value_bytes(&value).unwrap_err();
        assert_eq!(error, format!("{value} is not a number"));
    }
}

/// Nanoseconds are less than a second.
#[test]
fn times_of_too_many_nanoseconds_are_shown_as_bytes() {
    for (of, zero) in [("SystemTime", "1970-01-01T00:00:00"), ("Duration", "0")] {
        let types = RowTypes::parse(&[format!("u8 -> {of}")]).unwrap();
        let shown = |nanos: u32| {
            types.value(&[[0; 8].as_slice(), &nanos.to_le_bytes()].concat()).to_string()
        };
        let end = if of == "Duration" { "s" } else { "Z" };
        assert_eq!(shown(999_999_999), format!("\"{zero}.999999999{end}\""));
        assert_eq!(shown(1_000_000_000), "\"0x000000000000000000ca9a3b\"");
        assert_eq!(shown(u32::MAX), "\"0x0000000000000000ffffffff\"");
    }
}

/// What is refused says what it should have been.
#[test]
fn what_is_no_value_of_a_type_says_what_values_are_called() {
    use super::Value;
    for (of, called) in [
        ("()", "null"),
        ("bool", "true or false"),
        ("char", "character, a text"),
        ("String", "text"),
        ("[u16; 2]", "list of the right length"),
        ("(u8, u8)", "list of the right length"),
        ("Vec<u16>", "list of the right length"),
        ("BTreeSet<u8>", "list of the right length"),
        ("Duration", "duration, as \"1.5s\""),
        ("SystemTime", "time, as \"2023-11-14T22:13:20Z\""),
        ("Uuid", "uuid, a text"),
        ("Decimal", "decimal, as \"-1.50\""),
        ("Result<u8, u8>", "object"),
    ] {
        let types = RowTypes::parse(&[format!("u8 -> {of}")]).unwrap();
        let values = match of {
            "String" => vec![Value::Bool(false)],
            _ => vec![Value::Text("???".into()), Value::Unsigned(7)],
        };
        for value in values {
            let error = types.value_bytes(&value).unwrap_err();
            assert_eq!(error, format!("{value} is not a {called}"), "{of}");
        }
    }
}

/// Of the arguments of a generic type nothing is asked: what it consists of follows.
#[test]
fn arguments_of_generic_types_are_passed_over() {
    for (words, bytes, json) in [
        ("(serde Of<Vec<u8>>, u8)", &[1, 0, 0, 0, 9, 4][..], r#"["0x09",4]"#),
        ("Of<u8, Pair<u16>> of 2 bytes", &[1, 2], "\"0x0102\""),
        ("enum Of<Vec<u8>> { A, B(u8) }", &[1, 7], r#"{"B":[7]}"#),
        ("Of<u8> { a: u8 }", &[3], r#"{"a":3}"#),
    ] {
        let types = RowTypes::parse(&[format!("u8 -> {words}")]).unwrap();
        assert_eq!(types.value(bytes).to_string(), json, "{words}");
    }
    assert!(RowTypes::parse(&["u8 -> Of<u8 of 2 bytes"]).is_err());
}
