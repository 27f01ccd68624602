//! What tables, indexes and sequences there are. A catalog never changes: a definition makes a
//! [`Delta`], the delta's rows go into the store, and [`Catalog::with`] makes the next catalog of
//! it.

mod casts;
mod comments;
mod delta;
mod path;
mod schema;
mod schemas;
mod snapshot;
mod temporary;

pub use crate::ir::Deferral;
pub use casts::{Cast, CastUse};
pub use comments::{Comment, Commented};
pub use delta::{Delta, in_pieces_key, prefix};
pub use path::{NAME, Path, Place, SYSTEM_SCHEMAS, Written};
pub use schema::{
    ColumnInfo, ForeignKey, Identity, RowSecurity, Sequence, Table, Used, View, ViewColumn,
};
pub use schemas::missing_schema;
pub use snapshot::{Catalog, Objects};
pub use temporary::{OnCommit, Temporary, mixed};
