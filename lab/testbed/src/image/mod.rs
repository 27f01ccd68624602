//! What is on a device: pages of slots (`heap`), and the bytes of a superblock, a page, a slot and
//! the row in it (`layout`). Nothing here knows when a version counts.

pub(crate) mod heap;
pub(crate) mod layout;
