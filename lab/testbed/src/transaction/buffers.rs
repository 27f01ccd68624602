//! What a running transaction has read and is going to write. Kept from one transaction to the
//! next, so that their memory is.

use workloads::TableId;

use crate::image::layout::Layout;
use crate::index::{Found, Inserted, Seen};

/// A row that was read, and what was noted of its version.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Read<V> {
    pub(crate) table: TableId,
    pub(crate) record: u32,
    pub(crate) version: V,
}

/// What a write leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A row.
    Put,
    /// None.
    Delete,
}

/// A row that will be written, with what the protocol keeps of its versions.
#[derive(Debug, Clone, Copy)]
pub struct Write<W> {
    pub(crate) table: TableId,
    pub(crate) record: u32,
    pub(crate) kind: Kind,
    /// Where the payload is among those of the transaction.
    pub(crate) payload_at: u32,
    pub(crate) versions: W,
}

/// The sets of one transaction.
pub(crate) struct Buffers<V, W> {
    pub(crate) reads: Vec<Read<V>>,
    pub(crate) writes: Vec<Write<W>>,
    /// Nodes of indexes that were scanned, or in which something was not found.
    pub(crate) nodes: Vec<(TableId, Seen)>,
    /// Payloads of the writes.
    pub(crate) payloads: Vec<u64>,
    /// The row that was read last.
    pub(crate) row: Vec<u64>,
    pub(super) found: Found,
    pub(super) part: Vec<u8>,
}

impl<V, W> Default for Buffers<V, W> {
    fn default() -> Self {
        Self {
            reads: Vec::new(),
            writes: Vec::new(),
            nodes: Vec::new(),
            payloads: Vec::new(),
            row: Vec::new(),
            found: Found::default(),
            part: Vec::new(),
        }
    }
}

impl<V, W> Buffers<V, W> {
    pub(crate) fn clear(&mut self) {
        self.reads.clear();
        self.writes.clear();
        self.nodes.clear();
        self.payloads.clear();
    }

    /// The transaction's own write of a row.
    pub(crate) fn own(&mut self, table: TableId, record: u32) -> Option<&mut Write<W>> {
        // Few rows are written, and often the one that was read last.
        self.writes.iter_mut().rev().find(|own| own.record == record && own.table == table)
    }

    /// The payload of a write.
    pub(crate) fn payload(&self, write: &Write<W>, layout: &Layout) -> &[u64] {
        &self.payloads[write.payload_at as usize..][..layout.payload_words]
    }

    /// The transaction itself changed a node; whether it had looked at it.
    pub(crate) fn changed_node(&mut self, table: TableId, inserted: Inserted) -> bool {
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
}
