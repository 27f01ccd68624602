//! Random scenarios: a seed becomes a list of steps. Nothing here knows the servers; what is made
//! depends on the seed alone.

mod changes;
mod definitions;
mod dice;
mod expressions;
mod keys;
mod messages;
mod queries;
mod scenario;
mod schema;
mod script;
mod sequences;
mod signatures;
mod statement;
mod strict;

pub(crate) use scenario::{TOPICS, scenario};
pub(crate) use script::Script;
pub(crate) use statement::{Extended, Order, Sending, Statement, Step};
