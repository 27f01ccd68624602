//! Calls: what procedures declare and do, and how their answers are waited for.

pub(crate) mod declare;
pub(crate) mod group;
pub(crate) mod piece;
pub(crate) mod piece_result;
pub(crate) mod procedure;
pub(crate) mod raw;
pub(crate) mod share;
pub(crate) mod ticket;
pub(crate) mod transaction;
