//! The system catalog: `pg_catalog` and `information_schema` as relations that are made of the
//! immutable [`Catalog`](crate::catalog::Catalog) when a query reads them, and the functions that
//! look at it. Names and columns are those of PostgreSQL 15, which clients ask for.
//!
//! Only queries see it. A statement that writes does not, as its replay has neither the catalog of
//! then nor the session. Knows nothing of rows in the store.

mod classes;
mod comments;
mod constraints;
mod conversions;
mod databases;
mod definitions;
mod families;
mod fixed;
mod functions;
mod names;
mod objects;
mod read;
mod relations;
mod rows;
mod services;
mod session;
mod shown;
mod shown_calls;
mod standard;
mod type_names;
mod types;

pub use names::quoted;
pub(crate) use names::{literal, name_parts, relation_named};
pub(crate) use relations::{Known, TABLE_ID};
pub use services::{AdvisoryLock, Services, SessionActivity};
pub use session::{
    NAME, OpenCursor, PreparedStatement, SERVER_VERSION, Session, SessionValues, System, version,
};
pub(crate) use shown::{ColumnName, Columns, Names, Writer, expression_text, key_text};
pub(crate) use type_names::named as type_named;
