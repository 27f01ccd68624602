//! Values of any size, by names that stand in cases.

use values::{Array, Datum, Json, Type};

/// The type of a named value in a statement, and the value with about so many bytes.
pub(crate) fn of(name: &str, bytes: usize) -> (&'static str, Datum) {
    let text = |part: &str| Datum::text(part.repeat((bytes / part.len()).max(1)));
    match name {
        "words" => ("text", text("Abc def, ")),
        "lower" => ("text", text("abc def, ")),
        "same" => ("text", text("a")),
        "half" => ("text", Datum::text("a".repeat((bytes / 2).max(1)))),
        "behind" => ("text", Datum::text("a".repeat((bytes / 2).max(1)) + "b")),
        "blanks" => ("text", text(" ")),
        "letters" => ("text", Datum::text(letters(bytes.min(2_000)))),
        "percents" => ("text", text("%a_")),
        "list" => ("text", text("12,345,")),
        "json_text" => ("json", Datum::Json(numbers(bytes).to_string().into())),
        "json_string" => ("text", Datum::text(numbers(bytes).to_string())),
        "array_string" => {
            let items = vec!["7"; (bytes / 2).max(1)];
            ("text", Datum::text(format!("{{{}}}", items.join(","))))
        }
        "bytes" => ("bytea", Datum::Bytea(vec![7; bytes].into())),
        "bytes_string" => ("text", Datum::text("\\x".to_owned() + &"0a".repeat(bytes / 2))),
        "digits" => ("numeric", digits(bytes)),
        "fraction" => ("numeric", fraction(bytes)),
        "digits_string" => ("text", Datum::text("7".repeat(bytes.clamp(1, 990)))),
        "ints" => ("int[]", array(Type::Int4, bytes, |at| Datum::Int4(at as i32))),
        "texts" => ("text[]", array(Type::Text, bytes, |at| Datum::text(format!("item {at}")))),
        "path" => ("text[]", array(Type::Text, bytes.min(3_000), |_| Datum::text("a"))),
        "numbers" => ("jsonb", Datum::Jsonb(Box::new(numbers(bytes)))),
        "strings" => ("jsonb", Datum::Jsonb(Box::new(strings(bytes)))),
        "object" => ("jsonb", Datum::Jsonb(Box::new(object(bytes)))),
        "deep" => ("jsonb", Datum::Jsonb(Box::new(deep(bytes)))),
        _ => panic!("no large value is called {name}"),
    }
}

/// Each character once.
fn letters(count: usize) -> String {
    (0x100..).filter_map(char::from_u32).take(count.max(1)).collect()
}

fn array(element: Type, bytes: usize, item: impl Fn(usize) -> Datum) -> Datum {
    let count = (bytes / size_of::<Datum>()).max(1);
    Datum::Array(Box::new(Array::new(element, (0..count).map(item).collect()).unwrap()))
}

/// A whole number: no more than a numeric has.
fn digits(bytes: usize) -> Datum {
    Datum::Numeric("7".repeat(bytes.clamp(1, 990)).parse().unwrap())
}

/// A number a little above 1.
fn fraction(bytes: usize) -> Datum {
    Datum::Numeric(format!("1.{}1", "0".repeat(bytes.clamp(1, 450))).parse().unwrap())
}

fn numbers(bytes: usize) -> Json {
    let number = |at: usize| Json::Number((at as i64).into());
    Json::Array((0..(bytes / size_of::<Json>()).max(1)).map(number).collect())
}

fn strings(bytes: usize) -> Json {
    let text = |at: usize| Json::String(format!("text {at}").into());
    Json::Array((0..(bytes / size_of::<Json>()).max(1)).map(text).collect())
}

fn object(bytes: usize) -> Json {
    let member = |at: usize| (format!("key {at}").into(), Json::Number((at as i64).into()));
    Json::object((0..(bytes / 64).max(1)).map(member).collect())
}

/// Objects within each other, all of whose bytes are in the innermost one.
fn deep(bytes: usize) -> Json {
    let mut json = object(bytes);
    for _ in 0..80 {
        json = Json::object(vec![("a".into(), json)]);
    }
    json
}
