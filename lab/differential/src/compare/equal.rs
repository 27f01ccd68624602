//! Values as they are compared: as they are, or as one of all values that are equal to them.

use crate::wire::Column;

const OWN_TYPES: u32 = 16_384;

/// A value for the comparison. Where any of several equal values may stand (`is_loose`), all
/// of them become one.
pub(crate) fn canonical(value: &[u8], column: Option<&Column>, is_loose: bool) -> Vec<u8> {
    let Some(column) = column else { return value.to_vec() };
    if column.is_binary {
        return without_own_types(value, column.type_number);
    }
    if !is_loose {
        return value.to_vec();
    }
    let text = String::from_utf8_lossy(value);
    match column.type_number {
        // Numbers, JSON, and arrays of them.
        700 | 701 | 1700 | 114 | 3802 | 1021 | 1022 | 1231 | 199 | 3807 => {
            numbers(&text).into_bytes()
        }
        1186 => interval(&text).into_bytes(),
        1187 => {
            let elements = text.split(['{', '}', ',', '"']);
            elements.map(interval).collect::<Vec<_>>().join(",").into_bytes()
        }
        _ => value.to_vec(),
    }
}

/// An array in binary names the type of its elements, whose number each server gives by itself.
fn without_own_types(value: &[u8], type_number: u32) -> Vec<u8> {
    let mut value = value.to_vec();
    if type_number >= OWN_TYPES && value.len() >= 12 && value[..2] == [0, 0] {
        value[8..12].fill(0);
    }
    value
}

/// A text in which each number has no zeros behind it, and zero no sign.
fn numbers(text: &str) -> String {
    let mut found = String::new();
    let mut number = String::new();
    for letter in text.chars().chain(['\n']) {
        if letter.is_ascii_digit() || letter == '.' || letter == '-' {
            number.push(letter);
            continue;
        }
        if number.contains('.') {
            number.truncate(number.trim_end_matches('0').trim_end_matches('.').len());
        }
        found.push_str(if number == "-0" { "0" } else { &number });
        number.clear();
        found.push(letter);
    }
    found
}

/// An interval by its length, a month as 30 days; other texts as they are.
fn interval(text: &str) -> String {
    length(text).map_or_else(|| text.to_owned(), |length| length.to_string())
}

fn length(text: &str) -> Option<i128> {
    const DAY: i128 = 86_400_000_000;
    let mut total = 0;
    let mut words = text.split_whitespace();
    let mut any = false;
    while let Some(word) = words.next() {
        any = true;
        if word.contains(':') {
            total += clock(word)?;
            continue;
        }
        let count: i128 = word.parse().ok()?;
        total += count
            * match words.next()? {
                "year" | "years" => 360 * DAY,
                "mon" | "mons" => 30 * DAY,
                "day" | "days" => DAY,
                _ => return None,
            };
    }
    any.then_some(total)
}

fn clock(word: &str) -> Option<i128> {
    let (sign, word) = match word.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, word.trim_start_matches('+')),
    };
    let mut parts = word.split(':');
    let (hours, minutes): (i128, i128) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let seconds = parts.next()?;
    let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, "0"));
    let micros: i128 = format!("{fraction:0<6}").parse().ok()?;
    let whole: i128 = whole.parse().ok()?;
    Some(sign * (((hours * 60 + minutes) * 60 + whole) * 1_000_000 + micros))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_become_one() {
        assert_eq!(numbers("{1.50,-0,2.00,10}"), numbers("{1.5,0,2,10}"));
        assert_ne!(numbers("100"), numbers("1"));
        assert_eq!(interval("1 mon"), interval("30 days"));
        assert_eq!(interval("1 day"), interval("24:00:00"));
        assert_ne!(interval("1 day 00:00:00.5"), interval("1 day"));
        assert_eq!(interval("-00:00:01.5"), "-1500000");
    }
}
