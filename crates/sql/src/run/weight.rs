//! What work weighs in steps. A step stands for at most two microseconds of one core, so work that
//! takes longer for larger values takes steps for their bytes.
//!
//! Each value that an expression comes to takes steps for its bytes (`Evaluator::push`), and that
//! pays for what goes through it once at the speed of a copy. Here is what takes longer. It is
//! counted before it is done, so that no step is long.
//!
//! Weights are a part of what logged calls mean: a change of them changes where a call ends.

use super::strings::TEXT_BYTES_MAX;
use crate::ir::{
    ArrayFunction, ByteFunction, Function, Kind, MathFunction, PatternFunction, TimeFunction,
};
use values::made::{self, PART_BYTES};
use values::{Datum, ITEMS_MAX, Type};

/// The bytes that are copied in a step.
const STEP_BYTES: usize = 1_024;
/// The bytes in which two values are compared, for a byte that is copied.
const COMPARED: usize = 8;
/// The bytes that are copied while a byte becomes JSON, or comes from it.
pub(super) const JSON_TIMES: usize = 16;
/// The same while a byte of a row is read.
pub(super) const READ_TIMES: usize = 4;
/// The same while a byte of a row is written.
pub(super) const WRITE_TIMES: usize = 4;
/// The steps of what loads a time zone, or is computed from the calendar.
const ZONE_STEPS: u64 = 2;
/// The bytes that are copied while a match is found and replaced.
const MATCH_BYTES: usize = 32;
/// The bytes of a number that needs no memory beside itself.
const SHORT_NUMBER_BYTES: usize = 16;
/// The most bytes of a number, of 1,000 digits.
const NUMBER_BYTES_MAX: usize = 450;
/// The deepest that a path leads into JSON.
const DEPTH_MAX: usize = 100;

/// The bytes of values beside their places in a row.
pub(super) fn heap_bytes(values: &[Datum]) -> usize {
    values.iter().map(Datum::heap_bytes).sum()
}

/// The steps of copying so many bytes.
#[inline]
pub(super) fn of_bytes(bytes: usize) -> u64 {
    (bytes / STEP_BYTES) as u64
}

/// The steps of finding a value of so many bytes among sorted others.
pub(super) fn of_search(bytes: usize, others: usize) -> u64 {
    let compared = bytes.saturating_mul(1 + others.max(1).ilog2() as usize);
    of_bytes(bytes.saturating_add(compared / COMPARED))
}

/// The steps of making the bytes that stand for values.
pub(super) fn of_identity(values: &[Datum]) -> u64 {
    let bytes = |value: &Datum| match value {
        Datum::Jsonb(_) | Datum::Array(_) => value.heap_bytes().saturating_mul(4),
        _ => 0,
    };
    of_bytes(values.iter().map(bytes).sum())
}

/// The steps of sorting so many values, of so many bytes together.
pub(super) fn of_sort(bytes: usize, count: usize) -> u64 {
    of_bytes(bytes.saturating_mul(count.max(1).ilog2() as usize) / COMPARED)
}

/// How the time of a function depends on the bytes of its arguments.
enum Cost {
    /// At most that of copying arguments and result.
    Copied,
    /// A multiple of it.
    Times(usize),
    /// That of making text of values.
    Printed,
    /// That of products and quotients of long numbers.
    Digits,
    /// Something of its own.
    Special,
}

/// The time of a function. Each function is named, so that a new one is given some.
#[inline]
fn cost(function: Function) -> Cost {
    use Function as F;
    match function {
        F::Add | F::Subtract | F::Negate | F::Abs | F::Sign => Cost::Copied,
        F::Equal | F::NotEqual | F::Less | F::LessEqual | F::Greater | F::GreaterEqual => {
            Cost::Copied
        }
        F::And | F::Or | F::Not | F::IsNull | F::IsNotNull | F::IsTrue | F::IsFalse => Cost::Copied,
        F::IsDistinct | F::In | F::EqualAny | F::Greatest | F::Least | F::NullIf => Cost::Copied,
        F::BitAnd | F::BitOr | F::BitXor | F::BitNot | F::ShiftLeft | F::ShiftRight => Cost::Copied,
        F::Concat | F::OctetLength | F::StartsWith | F::ToHex | F::CharOf | F::CodeOf => {
            Cost::Copied
        }
        F::Now | F::Extract | F::Age | F::MakeDate | F::MakeTime | F::MakeTimestamp => Cost::Copied,
        F::DateBin | F::IsFinite | F::FromEpoch | F::Scale | F::ScaleDown => Cost::Copied,
        F::SequenceNumber | F::SequenceNumberAfter | F::EnumRange => Cost::Copied,
        F::MakeArray
        | F::MakeRecord
        | F::TableRow
        | F::Subscript
        | F::ArrayUpper
        | F::ArrayLower
        | F::ArrayLength => Cost::Copied,
        F::ArrayPosition | F::ArrayCount | F::JsonType | F::JsonArrayLength => Cost::Copied,
        F::ArrayConcat | F::ArrayAppend | F::ArrayPrepend | F::ArrayRemove => Cost::Times(4),
        F::Length | F::Lower | F::Upper | F::Position => Cost::Times(4),
        F::Substring | F::Left | F::Right | F::Reverse | F::Overlay => Cost::Times(8),
        F::SplitPart | F::InitCap | F::EscapedPattern | F::Like | F::ILike => Cost::Times(4),
        F::Translate => Cost::Times(16),
        F::StringToArray | F::TimeText | F::NumberText => Cost::Times(32),
        F::ConcatAll | F::ConcatSeparated | F::ArrayToString => Cost::Printed,
        F::JsonField | F::JsonFieldText | F::JsonPath | F::JsonPathText => Cost::Printed,
        F::ToJson | F::JsonBuildObject | F::JsonBuildArray => Cost::Times(16),
        F::ToJsonText | F::JsonTextBuildObject | F::JsonTextBuildArray | F::JsonRow => {
            Cost::Times(16)
        }
        // The steps of the search are counted as it goes.
        F::Network(_) => Cost::Copied,
        F::JsonQuery(_) => Cost::Times(16),
        F::JsonContains | F::JsonHasKey | F::JsonConcat | F::JsonDelete | F::JsonStripNulls => {
            Cost::Times(4)
        }
        F::Multiply | F::Divide | F::Modulo | F::DivideWhole | F::SquareRoot => Cost::Digits,
        F::Floor | F::Ceiling | F::Round | F::Truncate => Cost::Digits,
        F::Power | F::PowerRounded | F::Repeat | F::PadLeft | F::PadRight => Cost::Special,
        F::Replace => Cost::Special,
        F::Notify => Cost::Times(4),
        F::Trim | F::TrimLeft | F::TrimRight | F::DateTrunc | F::AtTimeZone => Cost::Special,
        F::ArrayContains | F::ArrayOverlaps | F::JsonHasAny | F::JsonHasAll => Cost::Special,
        F::JsonDeletePath | F::JsonSet => Cost::Special,
        F::Math(function) => of_math(function),
        F::Bytes(function) => of_bytes_function(function),
        F::Text(_) => Cost::Printed,
        F::Time(function) => match function {
            TimeFunction::ToDate | TimeFunction::ToTimestamp => Cost::Times(64),
            TimeFunction::MakeZoned => Cost::Special,
            TimeFunction::MakeInterval
            | TimeFunction::JustifyDays
            | TimeFunction::JustifyHours
            | TimeFunction::JustifyInterval
            | TimeFunction::IsFiniteInterval => Cost::Copied,
        },
        F::Pattern(_) => Cost::Times(8),
        F::Array(ArrayFunction::CompareAny | ArrayFunction::CompareAll) => Cost::Copied,
        F::Array(_) => Cost::Times(4),
    }
}

/// The time of a function of numbers.
fn of_math(function: MathFunction) -> Cost {
    use MathFunction as M;
    match function {
        M::Exp | M::Ln | M::Log10 | M::Log | M::Power | M::Factorial => Cost::Special,
        M::GreatestDivisor | M::LeastMultiple => Cost::Special,
        M::Scale | M::MinScale | M::TrimScale | M::WidthBucket => Cost::Digits,
        M::BucketOfBounds => Cost::Copied,
        M::CubeRoot | M::Degrees | M::Radians => Cost::Copied,
        M::Sin | M::Cos | M::Tan | M::Cot | M::Asin | M::Acos | M::Atan | M::Atan2 => Cost::Copied,
        M::SinOfDegrees | M::CosOfDegrees | M::TanOfDegrees | M::CotOfDegrees => Cost::Copied,
        M::AsinInDegrees | M::AcosInDegrees | M::AtanInDegrees | M::Atan2InDegrees => Cost::Copied,
        M::Sinh | M::Cosh | M::Tanh | M::Asinh | M::Acosh | M::Atanh => Cost::Copied,
    }
}

/// The time of a function of bytes.
fn of_bytes_function(function: ByteFunction) -> Cost {
    use ByteFunction as B;
    match function {
        B::Md5 | B::Sha224 | B::Sha256 | B::Sha384 | B::Sha512 => Cost::Times(16),
        B::Encode | B::Decode | B::ConvertFrom | B::ConvertTo => Cost::Times(64),
        B::GetByte | B::SetByte | B::GetBit | B::SetBit | B::Substring | B::Overlay => Cost::Copied,
        B::BitCount => Cost::Times(4),
        B::Trim | B::TrimLeft | B::TrimRight | B::Position => Cost::Special,
    }
}

/// The steps of calling a function with these arguments, beside those of its values.
#[inline]
pub(super) fn of_call(function: Function, arguments: &[Datum]) -> u64 {
    match cost(function) {
        Cost::Copied => 0,
        Cost::Times(times) => of_bytes(heap_bytes(arguments).saturating_mul(times)),
        Cost::Printed => arguments.iter().map(of_print).sum(),
        Cost::Digits => of_digits(arguments),
        Cost::Special => of_special(function, arguments),
    }
}

/// The steps of making text of a value.
fn of_print(value: &Datum) -> u64 {
    of_bytes(value.heap_bytes().saturating_mul(match value {
        Datum::Text(_) | Datum::Char(_) => 1,
        Datum::Numeric(_) => 64,
        _ => 16,
    }))
}

/// The steps of a product or quotient: of numbers of any length, if one is long.
#[inline]
fn of_digits(arguments: &[Datum]) -> u64 {
    match heap_bytes(arguments) {
        0 => 0,
        bytes => of_product(bytes),
    }
}

/// The steps of a product or quotient of long numbers of so many bytes together.
#[cold]
fn of_product(bytes: usize) -> u64 {
    1 + of_bytes(bytes.saturating_mul(bytes) / 8)
}

/// The steps of a function that is like no other.
fn of_special(function: Function, arguments: &[Datum]) -> u64 {
    use Function as F;
    match (function, arguments) {
        (F::Repeat, [text, Datum::Int4(count)]) => {
            let count = usize::try_from(*count).unwrap_or(0);
            of_filled(text.heap_bytes().saturating_mul(count))
        }
        (F::Replace, [text, from, ..]) => {
            let matches = text.heap_bytes() / from.heap_bytes().max(1);
            of_bytes(text.heap_bytes().saturating_mul(4).saturating_add(matches * MATCH_BYTES))
        }
        (F::PadLeft | F::PadRight, [text, Datum::Int4(length), ..]) => {
            let length = usize::try_from(*length).unwrap_or(0);
            of_bytes(4 * text.heap_bytes()) + 16 * of_filled(length)
        }
        (F::Trim | F::TrimLeft | F::TrimRight, [text, set]) => {
            of_bytes(text.heap_bytes().saturating_mul(4 + set.heap_bytes()))
        }
        (F::Power | F::PowerRounded, [base @ Datum::Numeric(_), exponent]) => {
            of_power(base, exponent)
        }
        (F::DateTrunc | F::AtTimeZone | F::Time(_), _) => ZONE_STEPS,
        (F::Bytes(_), [bytes, set]) => {
            of_bytes(bytes.heap_bytes().saturating_mul(4 + set.heap_bytes()))
        }
        (F::Math(function), _) => of_numbers(function, arguments),
        (F::ArrayContains | F::ArrayOverlaps, [Datum::Array(left), Datum::Array(right)]) => {
            let (left, right) = (left.items(), right.items());
            let bytes = |items: &[Datum]| heap_bytes(items) + size_of_val(items);
            let ways = [left.len() * bytes(right), right.len() * bytes(left)];
            of_bytes(ways[0].min(ways[1]) / 2)
        }
        (F::JsonHasAny | F::JsonHasAll, [json, Datum::Array(keys)]) => {
            of_bytes(json.heap_bytes().saturating_mul(keys.items().len()))
        }
        (F::JsonDeletePath | F::JsonSet, [json, Datum::Array(path), rest @ ..]) => {
            let depth = path.items().len().min(DEPTH_MAX);
            of_bytes(json.heap_bytes().saturating_mul(4 * depth) + 4 * heap_bytes(rest))
        }
        _ => 0,
    }
}

/// About how many bytes what is read of a text by a cast has, beside itself.
pub(super) fn of_cast_result(value: &Datum, kind: Kind) -> usize {
    match value {
        Datum::Text(text) | Datum::Char(text) | Datum::Json(text) => {
            made::of_text(kind.ty, text.as_bytes())
        }
        other => other.heap_bytes(),
    }
}

/// About how many bytes a value has that a function has read.
pub(super) fn of_parts(value: &Datum) -> usize {
    match value {
        Datum::Json(text) => made::of_tree(text.as_bytes()),
        other => other.heap_bytes(),
    }
}

/// Whether a function makes long values of short ones.
#[inline]
pub(super) fn fills(function: Function) -> bool {
    matches!(function, Function::Repeat | Function::PadLeft | Function::PadRight)
}

/// About how many bytes the result of a function has, beside itself; 0 of what is too long and
/// refused before it is made.
pub(super) fn of_result(function: Function, arguments: &[Datum]) -> usize {
    let bytes = arguments.iter().map(of_parts).sum::<usize>();
    match (function, arguments) {
        (Function::StringToArray, [Datum::Text(text), Datum::Text(between), ..]) => {
            let items = 1 + text.matches(&**between).take(ITEMS_MAX).count();
            bytes.saturating_add(items * PART_BYTES)
        }
        (
            Function::StringToArray | Function::Pattern(PatternFunction::Split),
            [Datum::Text(text), ..],
        ) => bytes.saturating_add(of_items(text)),
        (_, [_, Datum::Int4(count), ..]) if fills(function) => {
            let count = usize::try_from(*count).unwrap_or(0);
            let filled =
                if function == Function::Repeat { bytes.saturating_mul(count) } else { count };
            if filled > TEXT_BYTES_MAX { 0 } else { filled }
        }
        _ => bytes,
    }
}

/// The steps of products of numbers of any length with themselves.
pub(super) fn of_squares<'v>(values: impl Iterator<Item = &'v Datum>) -> u64 {
    match values.map(Datum::heap_bytes).sum::<usize>() {
        0 => 0,
        bytes => 2 * of_product(2 * bytes),
    }
}

/// About how many bytes the most parts of a text have, beside itself.
pub(super) fn of_items(text: &str) -> usize {
    text.len().min(ITEMS_MAX) * PART_BYTES
}

/// The steps of functions of numbers that are computed digit by digit.
fn of_numbers(function: MathFunction, arguments: &[Datum]) -> u64 {
    match (function, arguments) {
        (MathFunction::Factorial, [Datum::Int8(number)]) => (*number).clamp(0, 1_000) as u64 / 16,
        (MathFunction::Exp, [Datum::Numeric(value)]) => of_series(value.digits_of_exp()),
        (MathFunction::Ln, [Datum::Numeric(value)]) => of_series(value.digits_of_ln()),
        (MathFunction::Log10, [Datum::Numeric(value)]) => 3 * of_series(value.digits_of_ln()),
        (MathFunction::Log, [Datum::Numeric(base), Datum::Numeric(value)]) => {
            3 * of_series(base.digits_of_ln() + value.digits_of_ln())
        }
        (MathFunction::Power, [base @ Datum::Numeric(own), exponent @ Datum::Numeric(other)]) => {
            of_power(base, exponent) + 3 * of_series(own.digits_of_power(other))
        }
        (MathFunction::GreatestDivisor | MathFunction::LeastMultiple, _) => {
            16 * of_digits(arguments)
        }
        _ => 0,
    }
}

/// The steps of a series of terms of so many digits.
fn of_series(digits: usize) -> u64 {
    (4 + digits / 8 + digits * digits / 1_000) as u64
}

/// The steps of text that is filled in; none of what is too long and refused before it is made.
fn of_filled(bytes: usize) -> u64 {
    if bytes > TEXT_BYTES_MAX { 0 } else { of_bytes(bytes) }
}

/// The steps of a power: of two products for each bit of the exponent, the numbers of each of which
/// are twice as long as those before.
fn of_power(base: &Datum, exponent: &Datum) -> u64 {
    let Datum::Numeric(exponent) = exponent else { return 0 };
    let bits = match exponent.to_i32() {
        Ok(exponent) => exponent.unsigned_abs().checked_ilog2().unwrap_or(0),
        Err(_) => 0,
    };
    let bytes = SHORT_NUMBER_BYTES + base.heap_bytes();
    (0..=bits).map(|bit| 2 * of_product((bytes << bit.min(16)).min(NUMBER_BYTES_MAX))).sum()
}

/// The steps of a cast, beside those of its values.
#[inline]
pub(super) fn of_cast(value: &Datum, kind: Kind) -> u64 {
    match value.heap_bytes() {
        0 => 0,
        bytes => of_long_cast(value, kind, bytes),
    }
}

/// The steps of a cast of a value of so many bytes.
fn of_long_cast(value: &Datum, kind: Kind, bytes: usize) -> u64 {
    match value {
        Datum::Text(_) | Datum::Char(_) if kind.ty.is_text() => of_bytes(4 * bytes),
        Datum::Text(_) | Datum::Char(_) if kind.ty == Type::Numeric => of_product(bytes.min(2_000)),
        Datum::Numeric(_) => of_product(bytes),
        Datum::Text(_) if matches!(kind.ty, Type::Array(_)) => of_bytes(32 * bytes),
        _ => of_bytes(16 * bytes),
    }
}
