//! The ordered index: the entries of all keys in key order, for scans.
//!
//! A flat *directory*, sorted, names *chunks* of entries; a reader searches the one and then
//! the other. Keys are never added one by one: in the insert step each worker collects its new
//! keys in a list of its own, and three sub-steps, with barriers between, make them visible:
//!
//! 1. [`OrderedIndex::sort_part`]: each worker sorts its list.
//! 2. [`OrderedIndex::merge_part`]: each worker merges, from all lists, the keys that fall into
//!    its share of the chunks. It writes no other worker's chunks, reads no other's entries,
//!    and keeps new chunks to itself; the directory stays as it is.
//! 3. [`OrderedIndex::finish_merge`]: one worker brings the directory up to date.
//!
//! Removals after execution go the same way, with [`OrderedIndex::remove_part`] as the second
//! sub-step. Both divide the work by a sample of the lists, which all workers compute alike.

mod chunk;
mod directory;
mod index;
mod insert;
mod order;
mod pool;
mod range;
mod remove;
mod share;
mod sort;
#[cfg(test)]
mod tests;

pub use index::{KeptOrder, OrderedIndex};
pub use order::{ExactWords, KeyOrder, SearchKey};
pub use range::Range;
pub use sort::SortRoom;
