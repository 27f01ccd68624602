//! What is on the device: format, superblock, persistent rows, pools, input log, scan and checker.
//!
//! What survives a power cut is here; what is rebuilt is in `engine`. This crate never knows how an
//! epoch runs, what a version array is, or what a procedure does. It knows the device as
//! [`pmem::AnyDevice`], and every store to it goes through a [`pmem::Port`].

mod error;
pub mod format;
mod ids;

mod digest;
mod value;

mod catalog;
pub mod change_log;
pub mod input_log;
mod pool;
pub mod row;

mod store;

pub mod scan;

pub mod check;

mod copy;

pub use catalog::{
    CatalogChange, CatalogRequest, IndexKind, TableDefinition, TableRequest, TypesMark,
};
pub use change_log::{
    Change, ChangeLog, ChangeLogCall, ChangeLogHook, ConsumerPosition, EpochChanges,
};
pub use check::{repair, salvage};
pub use copy::{Copied, CopyKind, Restore, copy_store};
pub use digest::{
    RowChange, StateHash, changed_lines, lines_gain, only_line_gain, only_line_hash, row_change,
    row_hash, word_gain,
};
pub use error::{Result, StorageError};
pub use format::{SerialId, ValuePointer};
pub use ids::{EpochNumber, Position, TableId};
pub use pool::{
    SegmentKind, SegmentUse, SegmentUses, Segments, SubPool, class_bytes, class_of, class_pool,
};
pub use row::{RowLayout, Shape};
pub use scan::{Owners, rows};
pub use store::{
    EndMark, Opened, Store, StoreOptions, StoredTable, checkpoint, settle, snapshot_image,
};
pub use value::lines::ALL_LINES;
pub use value::{NewValue, lines, lines_around};
