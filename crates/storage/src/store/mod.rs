//! A store: opening and creating, tables, sub-pools, checkpoints.

pub mod checkpoint;
mod end_mark;
pub mod settle;
pub(crate) mod superblock;

mod options;
mod table;
mod verify;

mod create;
mod sub_pools;

mod opened;

pub use end_mark::EndMark;
pub use opened::{Opened, Store, snapshot_image};
pub use options::StoreOptions;
pub use table::StoredTable;

pub(crate) use superblock::good_copy;

#[cfg(test)]
pub(crate) use opened::tests;
