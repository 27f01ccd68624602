//! Which pages of an image are in memory, where it may be larger.

/// What is in memory of an image that may be larger, and what was done for it since the open.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct PageUse {
    /// Bytes of memory that the store may use.
    pub limit_bytes: u64,
    /// Bytes of the image that may be in memory beside all else, whatever is written.
    pub pages_bytes: u64,
    /// The same with what is written now.
    pub pages_bytes_now: u64,
    /// Bytes of the image that are in memory.
    pub resident_bytes: u64,
    /// Pages that were read because an epoch declared a row in them, or a reader from outside was
    /// about to touch them.
    pub fetched: u64,
    /// Pages that a thread touched before they were there, and waited for.
    pub faults: u64,
    /// Pages that were read, besides, behind those that a thread touched one after the other.
    pub guessed: u64,
    /// Pages that went from memory.
    pub evicted: u64,
}
