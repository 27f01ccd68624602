//! Working tables of recursive queries, and where they are named.

use std::collections::BTreeSet;
use values::{Error, Position, SqlState};

/// What is known of recursive queries while their steps are bound.
#[derive(Default)]
pub(super) struct Recursion {
    /// The working tables that the current query needs.
    pub(super) working: BTreeSet<u16>,
    /// In how many queries of expressions the current one is.
    pub(super) expressions: usize,
    /// Where working tables of queries that are bound were named.
    pub(super) uses: Vec<Use>,
    /// How many working tables there are.
    pub(super) count: u16,
    /// A query was named that is behind the one that is bound.
    pub(super) named_later: bool,
}

/// A place where a working table is named.
pub(super) struct Use {
    pub(super) working: u16,
    pub(super) name: String,
    pub(super) position: Option<Position>,
}

/// What naming a query of WITH means.
#[derive(Clone)]
pub(super) enum Reference {
    /// Its rows, which need these working tables.
    Rows(BTreeSet<u16>),
    /// Those of the last step, from a query in so many of expressions.
    Working(u16, usize),
    /// It must not be named there.
    Refused(&'static str),
    /// It does not have the form of a recursive query.
    Malformed(Option<Position>),
    /// It is behind.
    Later,
    /// It is a part that writes, and returns no rows.
    Silent,
}

impl Recursion {
    /// How often working tables were named.
    pub(super) fn uses_count(&self) -> usize {
        self.uses.len()
    }

    /// The error of one that was named, counted from 0, where it must not be.
    pub(super) fn refused(&self, at: usize, place: &str) -> Error {
        let (name, position) = match self.uses.get(at) {
            Some(found) => (found.name.as_str(), found.position),
            None => ("", None),
        };
        reference_error(name, place).at(position)
    }
}

pub(super) fn error(message: String) -> Error {
    Error::new(SqlState::INVALID_RECURSION, message)
}

pub(super) fn reference_error(name: &str, place: &str) -> Error {
    error(format!("recursive reference to query \"{name}\" must not appear {place}"))
}

/// The error of an aggregate over a working table.
pub(super) fn aggregated() -> Error {
    error("aggregate functions are not allowed in a recursive query's recursive term".to_owned())
}
