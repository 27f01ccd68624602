//! What a running transaction has read and is going to write. Kept from one transaction to the
//! next, so that their memory is.

use workloads::TableId;

use crate::index::{Inserted, Seen};
use crate::layout::Header;
use crate::records::Version;

/// What a row is to be: no value is its deletion.
#[derive(Clone, Copy)]
pub(super) struct NewRow<'r> {
    pub(super) key: &'r [u8],
    pub(super) value: Option<&'r [u8]>,
}

/// A row that was read, and its version then.
#[derive(Debug, Clone, Copy)]
pub(super) struct Read {
    pub(super) table: TableId,
    pub(super) record: u32,
    pub(super) version: Version,
}

/// What a write leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A row.
    Put,
    /// None.
    Delete,
}

/// A row that will be written.
#[derive(Debug, Clone, Copy)]
pub struct Write {
    pub(crate) table: TableId,
    pub(crate) record: u32,
    pub(crate) kind: Kind,
    /// The transaction relies on the row being there.
    pub(crate) must_exist: bool,
    /// Where the payload is among those of the transaction.
    pub(crate) payload_at: u32,
    /// The version under the lock.
    pub(crate) was: Version,
    /// The slot of that version.
    pub(crate) old: (u64, Header),
    /// The slot of the new version; 0 if it needs none.
    pub(crate) new: (u64, Header),
    /// The link for the version that was, where there are snapshots.
    pub(crate) link: Option<u64>,
}

impl Write {
    /// Whether a version must be written: not of a row that came and went in the transaction.
    pub(crate) fn needs_version(&self) -> bool {
        self.kind == Kind::Put || !self.was.is_absent()
    }
}

/// The sets of one transaction.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    pub(super) reads: Vec<Read>,
    pub(super) writes: Vec<Write>,
    /// Nodes of indexes in which something was not found.
    pub(super) nodes: Vec<(TableId, Seen)>,
    /// Records of rows that the transaction was the first to insert, with the place of the key.
    pub(super) created: Vec<(u16, u32, u32)>,
    /// Payloads of the writes.
    pub(super) payloads: Vec<u64>,
    /// The last transaction before this one began, if it reads the state that this one left.
    pub(super) snapshot: Option<u64>,
}

impl Buffers {
    pub(super) fn clear(&mut self) {
        self.reads.clear();
        self.writes.clear();
        self.nodes.clear();
        self.created.clear();
        self.payloads.clear();
        self.snapshot = None;
    }

    /// The transaction's own write of a row.
    pub(super) fn own(&mut self, table: TableId, record: u32) -> Option<&mut Write> {
        // Few rows are written, and often the one that was read last.
        self.writes.iter_mut().rev().find(|own| own.record == record && own.table == table)
    }

    pub(super) fn add(&mut self, table: TableId, record: u32, kind: Kind, payload_at: u32) {
        self.writes.push(Write {
            table,
            record,
            kind,
            must_exist: false,
            payload_at,
            was: Version::NOT_YET,
            old: (0, Header::default()),
            new: (0, Header::default()),
            link: None,
        });
    }

    /// The transaction itself changed a node; whether it had looked at it.
    pub(super) fn changed_node(&mut self, table: TableId, inserted: Inserted) -> bool {
        let mut had_seen = false;
        for (of, seen) in &mut self.nodes {
            if *of == table && *seen == inserted.before {
                seen.version = inserted.after;
                had_seen = true;
            }
        }
        if let (true, Some(split_off)) = (had_seen, inserted.split_off) {
            self.nodes.push((table, split_off));
        }
        had_seen
    }

    /// Whether the transaction writes a row. Only once the writes are sorted.
    pub(super) fn writes_sorted(&self, table: TableId, record: u32) -> bool {
        self.writes.binary_search_by_key(&(table, record), |own| (own.table, own.record)).is_ok()
    }
}
