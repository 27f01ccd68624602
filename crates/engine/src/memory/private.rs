//! What the running call has written, before anybody sees it.

use crate::declaration::Span;
use crate::version::ValueWord;

/// A private write of the running call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PrivateWrite {
    /// Not written.
    None,
    /// Not written, but read: the row exists.
    Seen,
    /// A value in the scratch buffer.
    Value(Span),
    /// Lines that replace some of a value: which of [`Local::parts`].
    Lines(u32),
    /// Deleted.
    Tombstone,
    /// Already visible, after a commit point.
    Published,
}

/// Lines that the running call replaces in a value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PrivatePart {
    /// The value that it saw.
    pub(crate) seen: ValueWord,
    /// Where the lines belong in it.
    pub(crate) at: u32,
    /// The lines, in the scratch buffer.
    pub(crate) lines: Span,
}
