//! A call: its batch and serial order, who runs it, what it comes to, and what ends it early.
//!
//! Knows no table and no device.

pub(crate) mod answers;
pub(crate) mod batch;
pub(crate) mod claimed;
pub(crate) mod deaths;
pub(crate) mod order;
pub(crate) mod panics;
