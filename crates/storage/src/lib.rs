//! What is on the device: format, superblock, persistent rows, pools, input log, scan and checker.
//!
//! What survives a power cut is here; what is rebuilt is in `engine`. This crate never knows how an
//! epoch runs, what a version array is, or what a procedure does. It is generic over the device,
//! and every store to the device goes through a [`pmem::Port`].

mod catalog;
pub mod check;
pub mod checkpoint;
mod classes;
mod digest;
mod end_mark;
mod error;
pub mod format;
mod ids;
pub mod input_log;
pub mod lines;
mod new_value;
mod owners;
mod pool;
pub mod repair;
pub mod row;
pub mod rows;
pub mod salvage;
pub mod scan;
mod segments;
pub mod settle;
mod store;
mod superblock;

pub use catalog::{
    CatalogChange, CatalogRequest, IndexKind, TableDefinition, TableRequest, TypesMark,
};
pub use classes::{class_bytes, class_of, class_pool};
pub use digest::{
    RowChange, StateHash, changed_lines, lines_gain, only_line_gain, only_line_hash, row_change,
    row_hash, word_gain,
};
pub use end_mark::EndMark;
pub use error::StorageError;
pub use format::{SerialId, ValuePointer};
pub use ids::{EpochNumber, Position, TableId};
pub use lines::ALL_LINES;
pub use new_value::{NewValue, lines_around};
pub use owners::Owners;
pub use pool::SubPool;
pub use row::{RowLayout, Shape};
pub use segments::{SegmentKind, SegmentUse, Segments};
pub use store::{Opened, Store, StoreOptions, StoredTable, snapshot_image};

/// Result of this crate.
pub type Result<T> = std::result::Result<T, StorageError>;
