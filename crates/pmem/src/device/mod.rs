//! The interface between the engine and whatever keeps its bytes.
//!
//! A device has two spaces. The **image** is byte-addressed memory: rows, values, pools,
//! superblock; it is always mapped, so loads are plain loads. The **log** is written front to back
//! in records and read only at recovery. Every change of either goes through a [`Port`], so that a
//! device can count it, slow it down, mark a page dirty, or record it for crash exploration. The
//! engine is compiled for [`AnyDevice`]: what it does most is a branch and the access itself.
//!
//! This module knows nothing of rows, versions or epochs, except that a snapshot has a number.

mod any;
mod combining;
mod counters;
mod file_use;
mod owed_time;
mod page_use;
mod step;

mod interface;
mod port;

pub use any::{AnyDevice, Shortcuts};
pub use counters::{Counters, LineCount, Loads};
pub use file_use::FileUse;
pub use interface::{
    BringsPages, Description, Device, LogSpace, MARK_BYTES, Needed, NotesOfStores, PortState,
};
pub use page_use::PageUse;
pub use port::Port;

pub(crate) use any::Kind;
pub(crate) use owed_time::{OwedTime, PAY_ABOVE_NS};
