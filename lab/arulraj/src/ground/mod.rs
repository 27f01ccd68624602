//! The ground that all engines stand on: memory behind a processor's cache, an allocator whose
//! offsets stay valid, and files.
//!
//! A partition has a device of its own, with one port, and is used by one thread at a time: nothing
//! here locks.

mod cache;
mod files;
mod heap;
mod ledger;
mod memory;
mod nvm;

pub use cache::{CacheCounts, CacheShape};
pub(crate) use files::FileId;
pub use heap::{Area, Footprint};
pub use ledger::{Ledger, Part, Spent, Task, WrittenLines};
pub(crate) use nvm::Nvm;
pub use nvm::{Modelled, Traffic, Written};
