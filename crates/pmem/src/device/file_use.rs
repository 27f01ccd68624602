//! What a store's files take of the disk.

/// How long the files of a store are, and what has become of them since it was opened.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct FileUse {
    /// Length of the file with the pages.
    pub data_bytes: u64,
    /// Pages that are in use.
    pub pages: u64,
    /// Pages that were written because they had changed.
    pub pages_written: u64,
    /// Pages that were written besides, into slots nearer to the front, so that the file can become
    /// shorter.
    pub pages_moved: u64,
    /// By so many bytes the file became shorter.
    pub data_given_back_bytes: u64,
    /// Length of the log.
    pub log_bytes: u64,
    /// By so many bytes it became shorter.
    pub log_given_back_bytes: u64,
    /// Why a page could not be moved, if there was one: it is damaged where it lies.
    pub not_moved: Option<String>,
}
