//! Where values are in PostgreSQL's binary form of `jsonb`: `keyvalue()` numbers objects by that.

use values::{Json, Numeric};

/// The bytes of a header, and of an entry behind it.
const WORD_BYTES: usize = 4;
/// The digits of a number that are together, and their bytes.
const GROUP_DIGITS: u32 = 4;
const GROUP_BYTES: usize = 2;
/// The digits behind the point, and the groups before it, up to which a number has a short header.
const SHORT_SCALE_MAX: u16 = 63;
const SHORT_GROUPS_MAX: i32 = 63;

/// The place of an array or object within another, in bytes; `None` if it is not there.
pub(super) fn offset_of(root: &Json, target: &Json) -> Option<i64> {
    let mut at = 0;
    place(root, target, &mut at).map(|at| at as i64)
}

/// Goes behind a value, or to the target.
fn place(value: &Json, target: &Json, at: &mut usize) -> Option<usize> {
    let align = |at: &mut usize| *at = at.next_multiple_of(WORD_BYTES);
    match value {
        Json::Null | Json::Bool(_) => {}
        Json::String(text) => *at += text.len(),
        Json::Number(number) => {
            align(at);
            *at += number_bytes(number);
        }
        Json::Array(_) | Json::Object(_) => {
            align(at);
            if std::ptr::eq(value, target) {
                return Some(*at);
            }
            match value {
                Json::Array(items) => *at += WORD_BYTES * (1 + items.len()),
                Json::Object(members) => {
                    *at += WORD_BYTES * (1 + 2 * members.len());
                    *at += members.iter().map(|(key, _)| key.len()).sum::<usize>();
                }
                _ => {}
            }
            return match value {
                Json::Array(items) => items.iter().find_map(|item| place(item, target, at)),
                Json::Object(members) => {
                    members.iter().find_map(|(_, member)| place(member, target, at))
                }
                _ => None,
            };
        }
    }
    None
}

/// The bytes of a number with its length.
fn number_bytes(number: &Numeric) -> usize {
    let shown = number.abs().to_string();
    let (whole, fraction) = shown.split_once('.').unwrap_or((&shown, ""));
    let whole = whole.trim_start_matches('0');
    let groups_before = whole.len().div_ceil(GROUP_DIGITS as usize);
    // Groups count from the point; those that are 0 at either end are left out.
    let padded = groups_before * GROUP_DIGITS as usize;
    let digits = format!("{whole:0>padded$}{fraction}");
    let padded = digits.len().next_multiple_of(GROUP_DIGITS as usize);
    let digits = format!("{digits:0<padded$}");
    let groups: Vec<&[u8]> = digits.as_bytes().chunks(GROUP_DIGITS as usize).collect();
    let is_used = |group: &&[u8]| group.iter().any(|digit| *digit != b'0');
    let first = groups.iter().position(is_used);
    let count = match (first, groups.iter().rposition(is_used)) {
        (Some(first), Some(last)) => last + 1 - first,
        _ => 0,
    };
    let weight = groups_before as i32 - 1 - first.unwrap_or(0) as i32;
    let is_short = number.scale() <= SHORT_SCALE_MAX
        && (-SHORT_GROUPS_MAX - 1..=SHORT_GROUPS_MAX).contains(&weight);
    let header = if is_short { 2 } else { 4 };
    WORD_BYTES + header + GROUP_BYTES * count
}
