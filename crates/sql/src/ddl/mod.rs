//! Definitions: CREATE and DROP become a delta of the catalog, and rows that must be written with
//! it.

mod alter;
mod alter_columns;
mod casts;
mod columns;
mod comments;
mod counting;
mod databases;
mod define;
mod definition;
mod describe;
mod door;
mod draft;
mod extensions;
mod foreign;
mod generated;
mod identity;
mod indexes;
mod like;
mod moves;
mod on_commit;
mod rebuild;
mod relation_kind;
mod schemas;
mod sequences;
mod set_value;
mod table;
mod table_as;
mod temporary;
mod types;
mod views;

pub use databases::check_database_options;
pub use define::define;
pub use definition::Definition;
pub use describe::described;
pub use on_commit::dropped_on_commit;
pub(crate) use sequences::next_value;
pub(crate) use set_value::find as find_sequence;
