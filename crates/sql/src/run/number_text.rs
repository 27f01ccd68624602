//! Numbers as text of a stated form.

use crate::ir::Function;
use values::numeric::NumberForm;
use values::{Datum, Error, Numeric, Result, SqlState};

/// The longest form of `to_char`.
const FORM_BYTES_MAX: usize = 10_000;
/// The digits that floating-point numbers have, as in PostgreSQL.
const FLOAT4_DIGITS: usize = 6;
const FLOAT8_DIGITS: usize = 15;

/// The result, if the function is one of these and takes these types.
pub(super) fn call(function: Function, arguments: &[Datum]) -> Option<Result<Datum>> {
    let (Function::NumberText, [number, Datum::Text(form)]) = (function, arguments) else {
        return None;
    };
    let text = match number {
        Datum::Numeric(number) => text(number, form),
        Datum::Float4(number) => float_text(f64::from(*number), FLOAT4_DIGITS, form),
        Datum::Float8(number) => float_text(*number, FLOAT8_DIGITS, form),
        _ => return None,
    };
    Some(text.map(Datum::text))
}

fn form_of(form: &str) -> Result<NumberForm> {
    if form.len() > FORM_BYTES_MAX {
        let message = format!("a form of to_char has at most {FORM_BYTES_MAX} bytes");
        return Err(Error::new(SqlState::LIMIT_EXCEEDED, message));
    }
    NumberForm::parse(form)
}

fn not_finite() -> Error {
    Error::unsupported("to_char of what is no finite number is not supported", "Use ::text.")
}

fn text(number: &Numeric, form: &str) -> Result<String> {
    let form = form_of(form)?;
    if !number.is_finite() {
        return Err(not_finite());
    }
    let rounded = number.round(form.part_digits() as i32)?;
    Ok(form.shown(rounded.signum() < 0, &rounded.abs().to_string()))
}

fn float_text(number: f64, digits_max: usize, form: &str) -> Result<String> {
    let form = form_of(form)?;
    if !number.is_finite() {
        return Err(not_finite());
    }
    let whole = format!("{:.0}", number.abs()).len();
    let form = form.with_part_of(digits_max.saturating_sub(whole));
    let digits = format!("{:.*}", form.part_digits(), number.abs());
    Ok(form.shown(number < 0.0, &digits))
}
