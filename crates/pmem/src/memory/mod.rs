//! Memory that devices and their callers use: ranges whose bases never move.

mod dirty;
mod mapping;
mod spaces;

pub use mapping::{Mapping, PAGE_BYTES, small_pages_only};

pub(crate) use dirty::{DirtyPages, PagesToSave};
pub(crate) use mapping::{HUGE_PAGE_BYTES, Pages, page_ceil};
pub(crate) use spaces::{Limited, Memory, Space, in_memory};
