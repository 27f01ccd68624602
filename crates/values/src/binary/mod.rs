//! PostgreSQL's binary forms, both ways: what drivers send and ask for in place of text.

mod decode;
mod encode;

pub use decode::decode;
pub use encode::encode;

/// The sign word of a numeric.
const NUMERIC_POSITIVE: u16 = 0;
const NUMERIC_NEGATIVE: u16 = 0x4000;
const NUMERIC_NAN: u16 = 0xc000;
const NUMERIC_INFINITY: u16 = 0xd000;
const NUMERIC_NEGATIVE_INFINITY: u16 = 0xf000;

/// The first byte of `jsonb`.
const JSONB_VERSION: u8 = 1;
/// The first byte of `jsonpath`.
const JSONPATH_VERSION: u8 = 1;
