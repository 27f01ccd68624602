//! SQL on the library: the same answers and rows as in memory, whatever the workers and epochs;
//! after a crash, beside definitions, and in the order of each connection.

#[path = "../../../sql/tests/script/mod.rs"]
mod script;
#[path = "../../../sql/tests/session/mod.rs"]
mod session;

mod blocks;
mod claims;
mod client;
mod copy;
mod copy_in_blocks;
mod crashes;
mod deferred_keys;
mod definitions;
mod determinism;
mod foreign_keys;
mod indexes;
mod large_definitions;
mod limits;
mod long_rows;
mod memory;
mod notices;
mod order;
mod random_values;
mod schemas;
mod scripts;
mod shared_memory;
mod system;
mod temporary;
mod told;
mod views;
