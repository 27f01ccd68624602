//! Histories: random programs, an oracle that runs them one by one, and a pair that runs engine and
//! oracle side by side.

pub mod compare_indexes;
pub mod corners;
pub mod generate;
pub mod indexes;
pub mod model;
pub mod pair;
pub mod pieces;
pub mod procedures;
pub mod program;
pub mod random;
pub mod shrink;
pub mod snapshots;

pub use compare_indexes::compare_indexes;
pub use corners::{add_corners, churn, fatal, flood, long_call, long_stale_looks, turns};
pub use generate::{BatchShape, Mix, batch, batch_with, stale_look};
pub use indexes::{INDEXES, index_definitions, insert_under};
pub use model::{Expected, Model, info, serial_order};
pub use pair::{Pair, Setup, check_clean, compare_answers, compare_hash, compare_state, to_calls};
pub use program::{
    HASHED, INDEXED, LONG, ORDERED, Op, Program, ROW_TABLES, SEQUENCES, Step, WORDS, edited,
    for_serial_part, is_serial,
};
pub use random::Random;

/// A number from the environment, to run more than the default.
#[must_use]
pub fn effort(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}
