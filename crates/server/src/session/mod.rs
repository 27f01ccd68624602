//! A connection from its first message to its last: one task reads, decodes and submits, one sends
//! answers in order.
//!
//! The unit of atomicity is what is between two Syncs, or one simple Query, unless BEGIN has begun
//! a block. From the first write on its statements are held until its end, and are one call then.
//! What must be answered earlier makes a block of them (`segment`).

mod about;
mod block;
mod changes;
mod channels;
mod conversation;
mod copy;
mod copying;
mod cursor;
mod database;
mod explain;
mod extended;
mod locks;
mod modes;
#[cfg(test)]
mod panics;
mod planned;
mod portal;
mod portal_rows;
mod queue;
mod segment;
mod sending;
mod settings;
mod simple;
mod standing;
mod startup;
mod transaction;
mod units;
mod within;
mod zones;

pub(crate) use startup::serve;
