//! Indexes in memory: from a key to the number of its row entry.
//!
//! Their memory is their own, and recovery makes them anew; or it is a part of the image, where a
//! snapshot keeps them with the rows ([`IndexSpace`]).
//!
//! The module knows neither rows nor keys: a key is a
//! `word` of 64 bits, and where two keys may share a word the caller compares them through a
//! closure or a [`KeyOrder`]. A table whose keys all have exactly 8 bytes uses the key itself,
//! read big-endian, as its word: such words are *exact* and no comparison is ever needed.
//!
//! # The rule of phases
//!
//! The structure changes only in two places of an epoch: in the *insert step*, where all
//! workers add keys, and *after execution*, where keys of deleted rows are removed. Everything
//! between, append and execution, reads with plain loads and no locks. Barriers with acquire
//! and release order separate the phases, so that whatever one phase wrote is *published* to
//! the next. All methods take `&self`; a caller that mixed reading and changing would break the
//! rule, which debug builds detect and panic on.

mod arena;
mod hash;
mod memory;
mod ordered;
mod phase;
mod space;

pub use hash::{HashIndex, Home, KeptShard, Slots, VacantEntry};
pub use ordered::{ExactWords, KeptOrder, KeyOrder, OrderedIndex, Range, SearchKey, SortRoom};
pub use space::IndexSpace;

/// The number of a row entry in a slab that the caller owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(pub u32);
