//! What a database tells of itself: counts, contended rows, events.

pub(crate) mod contention;
pub(crate) mod events;
mod histogram;
pub(crate) mod procedures;
pub(crate) mod slow_calls;
pub(crate) mod stats;
mod stats_text;
