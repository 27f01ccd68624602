//! What engines are made of.

mod batch;
mod bloom;
mod btree;
mod levels;
mod memtable;
mod pages;
mod sstable;
mod tuple;
mod undo;
mod wal;

pub(crate) use batch::{Batch, Order, recover_batch};
pub(crate) use bloom::Bloom;
pub(crate) use btree::BTree;
pub(crate) use levels::{RunSize, choose};
pub(crate) use memtable::{Change, Coalesced, Plan, change_bytes, plan};
pub(crate) use pages::{PageTree, Pages};
pub(crate) use sstable::{Sorted, SsTable};
pub(crate) use tuple::{
    column_at, field_slots, flush_slots, make_word, read_tuple, slots_of, tuple_bytes, write_tuple,
};
pub(crate) use undo::{NO_TUPLE, Undo, UndoLog, WordChange};
pub(crate) use wal::{Record, Wal};
