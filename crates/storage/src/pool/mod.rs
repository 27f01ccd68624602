//! Pools of fixed-size slots: a bump allocator and a free list for each sub-pool, undone by epoch
//! (NV 5.4, 5.5).
//!
//! Invariants:
//! 1. Offsets are counters that only grow. In DRAM they run ahead; on the device there are two
//!    sets, of which the newest checkpoint's parity names the valid one. A crash drops the DRAM
//!    ones: what was allocated since is free again, what was freed is allocated again (O-38).
//! 2. The head never passes the tail of the last checkpoint, or of the last major collection, whose
//!    frees are never reverted: nothing freed by a transaction is reused before the next checkpoint
//!    (O-39).
//! 3. The free list is a queue over segments, position by position, so it cannot overflow (O-40). A
//!    segment whose entries lie before the checkpointed head is reused for later positions.
//! 4. When all slots of all sub-pools of a pool are free at a checkpoint, all are emptied: nothing
//!    is in use, and nothing in the free lists. The checkpoint after that needs only the segments
//!    that were begun again; all others are given back, for any pool ([`SubPool::give_back`]).
//!
//! A sub-pool belongs to one worker, so nothing here is shared. Knows slots, not what is in them.

mod classes;
mod segments;

mod sub_pool;

pub use classes::{class_bytes, class_of, class_pool};
pub use segments::{SegmentKind, SegmentUse, SegmentUses, Segments};
pub use sub_pool::SubPool;
