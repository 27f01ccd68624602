//! What engines are made of.

mod batch;
mod bloom;
mod btree;
mod buffer;
mod levels;
mod memtable;
mod pages;
mod sstable;
mod tuple;
mod undo;
mod undo_list;
mod wal;

pub(crate) use batch::{Batch, Master};
pub(crate) use bloom::Bloom;
pub(crate) use btree::{BTree, Leaf};
pub(crate) use levels::{RunSize, choose};
pub(crate) use memtable::{Change, Step, change_bytes, coalesce, plan};
pub(crate) use pages::{PageShape, PageTree, Pages};
pub(crate) use sstable::{Sorted, SsTable, TableFile};
pub(crate) use tuple::{
    column_at, field_slots, flush_slots, load_tuple, make_word, read_tuple, slots_of, sync_slots,
    tuple_bytes, word_changes, write_row,
};
pub(crate) use undo::{Undo, UndoLog};
pub(crate) use undo_list::UndoList;
pub(crate) use wal::{Record, Wal};
