//! The rows of each relation of the system catalog.

use super::rows::Row;
use super::session::{self, System};
use super::{classes, comments, constraints, fixed, relations, standard, types};
use values::Datum;

impl System {
    /// The rows of a relation of the system catalog; `None` if there is none of this name.
    pub(crate) fn rows(&self, name: &str) -> Option<Vec<Vec<Datum>>> {
        let relation = relations::known(name)?;
        let made = match name.split_once('.')? {
            ("information_schema", own) => standard::rows(self, relation, own),
            (_, own) => classes::rows(self, relation, own)
                .or_else(|| constraints::rows(self, relation, own))
                .or_else(|| comments::rows(self, relation, own))
                .or_else(|| types::rows(self, relation, own))
                .or_else(|| fixed::rows(self, relation, own))
                .or_else(|| session::rows(&self.session, relation, own)),
        };
        // The others are of what there is none here.
        Some(made.map(|rows| rows.into_iter().map(Row::done).collect()).unwrap_or_default())
    }
}
