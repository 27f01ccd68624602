//! What a running transaction has read and is going to write (the paper's context).

use workloads::TableId;

use super::tables::Seen;
use crate::index::{Inserted, Seen as SeenNode};

/// A record that was read, and the version that it must have at the end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Read {
    pub(super) table: TableId,
    pub(super) record: u32,
    pub(super) noted: u64,
}

/// What a write leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A row.
    Put,
    /// None.
    Delete,
}

/// A row that will be written. It is among those that were read, too.
#[derive(Debug, Clone, Copy)]
pub(super) struct Write {
    pub(super) table: TableId,
    pub(super) record: u32,
    pub(super) noted: u64,
    pub(super) kind: Kind,
    /// Where the payload is among those of the transaction.
    pub(super) payload_at: u32,
    /// The content before and after; 0 if there is none.
    pub(super) old: u64,
    pub(super) new: u64,
}

impl Write {
    pub(super) fn new(
        table: TableId,
        record: u32,
        seen: Seen,
        kind: Kind,
        payload_at: u32,
    ) -> Self {
        let Seen { version, content } = seen;
        Self { table, record, noted: version, kind, payload_at, old: content, new: 0 }
    }
}

/// The sets of one transaction. Kept from one to the next, so that their memory is.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    pub(super) reads: Vec<Read>,
    pub(super) writes: Vec<Write>,
    /// Nodes of indexes that were scanned.
    pub(super) nodes: Vec<(TableId, SeenNode)>,
    /// Payloads of the writes.
    pub(super) payloads: Vec<u64>,
}

impl Buffers {
    pub(super) fn clear(&mut self) {
        self.reads.clear();
        self.writes.clear();
        self.nodes.clear();
        self.payloads.clear();
    }

    /// The transaction's own write of a row.
    pub(super) fn own(&mut self, table: TableId, record: u32) -> Option<&mut Write> {
        self.writes.iter_mut().rev().find(|own| own.record == record && own.table == table)
    }

    /// The transaction itself changed a node.
    pub(super) fn changed_node(&mut self, table: TableId, inserted: Inserted) {
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
    }
}
