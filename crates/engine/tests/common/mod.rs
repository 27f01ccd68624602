//! What the engine's tests share: programs, an oracle for them, and a bench that runs both side by
//! side.

#![allow(dead_code, unused_imports, reason = "each test uses a part of it")]

pub(crate) mod bench;
pub(crate) mod generate;
pub(crate) mod model;
pub(crate) mod procedures;
pub(crate) mod program;
pub(crate) mod random;
pub(crate) mod shrink;

pub(crate) use bench::{Bench, Setup, check_clean};
pub(crate) use generate::{Mix, batch};
pub(crate) use model::{Expected, Model};
pub(crate) use program::{HASHED, LONG, ORDERED, Op, Program, SEQUENCES, Step};
pub(crate) use random::Random;

/// A number from the environment, to run more than the default.
pub(crate) fn effort(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}
