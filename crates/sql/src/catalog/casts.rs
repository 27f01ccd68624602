//! Casts between types that statements have made.

use crate::ir::ObjectId;
use serde::{Deserialize, Serialize};
use values::{Oid, Type};

/// CREATE CAST ... WITH INOUT: a value becomes one of another type by its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cast {
    /// Its object id.
    pub id: ObjectId,
    /// The object id of the type that is cast.
    pub from: u32,
    /// The object id of the type that it becomes.
    pub to: u32,
    /// Where it is done without being written.
    pub use_in: CastUse,
}

/// Where a cast is done without being written; each with those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum CastUse {
    /// Nowhere.
    Explicit,
    /// Where a column gets a value.
    Assignment,
    /// Anywhere.
    Implicit,
}

impl Cast {
    /// Whether it is between these types.
    pub fn is_of(&self, from: Type, to: Type) -> bool {
        (Oid::new(self.from), Oid::new(self.to)) == (from.oid(), to.oid())
    }

    /// Whether it is from or to this type.
    pub fn names(&self, ty: Type) -> bool {
        [self.from, self.to].contains(&ty.oid().number())
    }
}
