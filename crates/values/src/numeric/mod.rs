//! `numeric`: exact decimal numbers of up to [`DIGITS_MAX`] digits. The scale, the number of digits
//! after the point, is part of the value that is shown (`1.50`) and not of what it is worth (`1.5 =
//! 1.50`).
//!
//! A number is an integer of units of 10^-scale: an `i128` where it fits, else a
//! [`num_bigint::BigInt`]. Nothing wraps or loses digits without a word: what does not fit is an
//! error.

mod arithmetic;
mod convert;
mod digits;
mod form;
mod number;
mod shown;
mod transcendental;
mod whole;

pub use digits::Digits;
pub use number::{DIGITS_MAX, Numeric, SCALE_MAX};
pub use shown::NumberForm;
pub(crate) use shown::quoted_text;
