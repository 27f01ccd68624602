//! A connection from its first message to its last: one task reads, decodes and submits, one sends
//! answers in order.
//!
//! The unit of atomicity is what is between two Syncs, or one simple Query. It may have any number
//! of reads, and one write behind them; anything behind that is refused, as it could not be undone
//! together with it.

mod about;
mod conversation;
mod copy;
mod copying;
mod extended;
mod planned;
mod queue;
mod sending;
mod settings;
mod simple;
mod startup;

pub(crate) use startup::serve;
