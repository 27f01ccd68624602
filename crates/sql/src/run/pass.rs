//! Passes of definitions over rows: what takes long of them. Who runs a definition may run it a
//! second time, with what came of its passes, if those were of the same.

use super::rows::Rows;
use crate::ir::{ObjectId, from_bytes, to_bytes};
use serde::Serialize;
use serde::de::DeserializeOwned;
use values::Result;

/// A part of a definition that goes through rows of tables, or runs a query.
#[derive(Clone, Debug, PartialEq)]
pub struct Pass {
    /// The tables whose rows may not change until the definition takes place.
    pub tables: Vec<ObjectId>,
    /// All that it depends on beside rows.
    pub of: Vec<u8>,
}

impl Pass {
    /// A pass of `what` over tables, which depends on `of`.
    pub(crate) fn new(what: &str, tables: &[ObjectId], of: &impl Serialize) -> Pass {
        Pass { tables: tables.to_vec(), of: to_bytes(&(what, of)) }
    }

    /// Runs the pass, or takes what came of it before.
    pub(crate) fn run<T: Serialize + DeserializeOwned>(
        self,
        rows: &mut dyn Rows,
        run: impl FnOnce(&mut dyn Rows) -> Result<T>,
    ) -> Result<T> {
        if let Some(outcome) = rows.pass(&self)? {
            return from_bytes(&outcome, "outcome of a pass");
        }
        let outcome = run(rows)?;
        rows.passed(to_bytes(&outcome));
        Ok(outcome)
    }
}
