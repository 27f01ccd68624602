//! Looking through a store that is not in use: whether it is whole, and what is done if not.

mod checker;
pub mod repair;
pub mod salvage;

pub use checker::{CheckReport, check, check_opened};
