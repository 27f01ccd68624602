//! From a value to text.

use crate::{Array, Datum, Zone, float};
use std::fmt::Write;

/// The text of a value; that of NULL is empty, and callers tell it apart. `zone` is the session's.
pub fn print(datum: &Datum, zone: &Zone) -> String {
    match datum {
        Datum::Null => String::new(),
        Datum::Bool(value) => if *value { "t" } else { "f" }.to_owned(),
        Datum::Int2(value) => value.to_string(),
        Datum::Int4(value) => value.to_string(),
        Datum::Int8(value) => value.to_string(),
        Datum::Float4(value) => float::print_f32(*value),
        Datum::Float8(value) => float::print_f64(*value),
        Datum::Numeric(value) => value.to_string(),
        Datum::Text(text) | Datum::Char(text) => text.to_string(),
        Datum::Bytea(bytes) => print_bytes(bytes),
        Datum::Bits(bits) => bits.to_string(),
        Datum::Network(network) => network.to_string(),
        Datum::Uuid(uuid) => print_uuid(uuid),
        Datum::Date(date) => date.to_string(),
        Datum::Timestamp(at) => at.print(),
        Datum::Timestamptz(at) => at.print_zoned(zone),
        Datum::Interval(interval) => interval.to_string(),
        Datum::Jsonb(json) => json.to_string(),
        Datum::Json(text) | Datum::Jsonpath(text) => text.to_string(),
        Datum::Time(time) => time.to_string(),
        Datum::Enum(value) => value.label().to_owned(),
        Datum::Array(array) => print_array(array, zone),
        Datum::Record(fields) => print_record(fields, zone),
    }
}

fn print_record(fields: &[Datum], zone: &Zone) -> String {
    let field = |field: &Datum| match field {
        Datum::Null => String::new(),
        field => quoted_field(&print(field, zone)),
    };
    format!("({})", fields.iter().map(field).collect::<Vec<_>>().join(","))
}

/// The text of a field, in quotes if a reader would take it for something else.
fn quoted_field(text: &str) -> String {
    let special =
        |c: char| matches!(c, '"' | '\\' | '(' | ')' | ',' | '\x0b') || c.is_ascii_whitespace();
    if !text.is_empty() && !text.contains(special) {
        return text.to_owned();
    }
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\"\""))
}

/// `\x` and two hexadecimal digits for each byte.
pub fn print_bytes(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 + bytes.len() * 2);
    text.push_str("\\x");
    push_hex(&mut text, bytes);
    text
}

fn push_hex(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        write!(text, "{byte:02x}").expect("a string takes all");
    }
}

fn print_uuid(uuid: &[u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (at, part) in [0..4, 4..6, 6..8, 8..10, 10..16].into_iter().enumerate() {
        if at > 0 {
            text.push('-');
        }
        push_hex(&mut text, &uuid[part]);
    }
    text
}

fn print_array(array: &Array, zone: &Zone) -> String {
    let mut text = String::new();
    let dimensions = array.dimensions();
    if dimensions.is_empty() {
        return "{}".to_owned();
    }
    if dimensions.iter().any(|dimension| dimension.lower != 1) {
        for dimension in dimensions {
            let upper = i64::from(dimension.lower) + i64::from(dimension.length) - 1;
            write!(text, "[{}:{upper}]", dimension.lower).expect("a string takes all");
        }
        text.push('=');
    }
    // The number of items below one subscript of each dimension, from the outermost.
    let mut sizes: Vec<usize> = Vec::new();
    let mut size = 1;
    for dimension in dimensions.iter().rev() {
        size *= dimension.length as usize;
        sizes.insert(0, size);
    }
    for (at, item) in array.items().iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        sizes.iter().filter(|size| at % **size == 0).for_each(|_| text.push('{'));
        match item {
            Datum::Null => text.push_str("NULL"),
            item => push_item(&mut text, &print(item, zone)),
        }
        sizes.iter().filter(|size| (at + 1) % **size == 0).for_each(|_| text.push('}'));
    }
    text
}

fn push_item(text: &mut String, item: &str) {
    let special =
        |c: char| matches!(c, '{' | '}' | '"' | ',' | '\\' | '\x0b') || c.is_ascii_whitespace();
    if !item.is_empty() && !item.eq_ignore_ascii_case("null") && !item.contains(special) {
        text.push_str(item);
        return;
    }
    text.push('"');
    for c in item.chars() {
        if matches!(c, '"' | '\\') {
            text.push('\\');
        }
        text.push(c);
    }
    text.push('"');
}
