//! Comments on objects. A comment names its object, as the ids of tables and sequences change.

use crate::ir::{ColumnNumber, Name, ObjectId, SchemaId};
use serde::{Deserialize, Serialize};

/// What COMMENT ON says about an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comment {
    /// Its own id.
    pub id: ObjectId,
    /// The object.
    pub on: Commented,
    /// The text. An empty one of the schema hides the comment that the schema has by itself.
    pub text: String,
}

/// An object that may have a comment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Commented {
    /// A table.
    Table(Name),
    /// A column of a table or view.
    Column(Name, ColumnNumber),
    /// An index.
    Index(Name),
    /// A sequence.
    Sequence(Name),
    /// A view.
    View(Name),
    /// A type.
    Type(Name),
    /// A constraint: the name of its table, and its own.
    Constraint(Name, String),
    /// Schema `public`.
    Schema,
    /// The database.
    Database,
    /// Another schema than `public`.
    OtherSchema(SchemaId),
}
