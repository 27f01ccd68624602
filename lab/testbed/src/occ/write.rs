//! A row that will be written, and what is kept of its versions.

use super::records::Version;
use crate::image::layout::Header;
use crate::transaction::{self, Kind};

/// The versions of a row that will be written.
#[derive(Debug, Clone, Copy)]
pub struct Versions {
    /// The transaction relies on the row being there.
    pub(crate) must_exist: bool,
    /// The version under the lock.
    pub(crate) was: Version,
    /// The slot of that version.
    pub(crate) old: (u64, Header),
    /// The slot of the new version; 0 if it needs none.
    pub(crate) new: (u64, Header),
    /// The link for the version that was, where there are snapshots.
    pub(crate) link: Option<u64>,
}

impl Versions {
    /// Before the row is locked.
    pub(super) fn unknown(must_exist: bool) -> Self {
        let none = (0, Header::default());
        Self { must_exist, was: Version::NOT_YET, old: none, new: none, link: None }
    }
}

/// A row that will be written.
pub(crate) type Write = transaction::Write<Versions>;

impl Write {
    /// Whether a version must be written: not of a row that came and went in the transaction.
    pub(crate) fn needs_version(&self) -> bool {
        self.kind == Kind::Put || !self.versions.was.is_absent()
    }
}
