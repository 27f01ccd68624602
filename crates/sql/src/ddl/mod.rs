//! Definitions: CREATE and DROP become a delta of the catalog, and rows that must be written with
//! it.

mod alter;
mod alter_columns;
mod columns;
mod counting;
mod define;
mod definition;
mod draft;
mod foreign;
mod identity;
mod indexes;
mod rebuild;
mod sequences;
mod set_value;
mod table;
mod views;

pub use define::define;
pub use definition::Definition;
pub(crate) use sequences::next_value;
pub use set_value::described;
