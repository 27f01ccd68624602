//! How engines are made: what the paper leaves out is an option with a default.

use crate::ground::Modelled;

/// How an engine is made.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Transactions whose changes become durable together, where an engine commits groups.
    pub group_transactions: u64,
    /// Transactions between two checkpoints (InP).
    pub checkpoint_transactions: u64,
    /// Level of compression of a checkpoint, 0 to 9 (InP).
    pub gzip_level: u32,
    /// Bytes of a node of the B+trees.
    pub node_bytes: u64,
    /// Bytes of a page of the copy-on-write trees.
    pub page_bytes: u64,
    /// Pages that the page cache holds (CoW).
    pub cached_pages: usize,
    /// Bytes of entries in a MemTable before it becomes a run (Log, NVM-Log).
    pub memtable_bytes: u64,
    /// How many times as large a level is as the one above (Log, NVM-Log).
    pub growth: u64,
    /// Runs of the first level before they are merged (Log, NVM-Log).
    pub first_level_runs: usize,
    /// Bits of a Bloom filter for each key (Log, NVM-Log).
    pub bloom_bits: u64,
    /// What is modelled beside the device.
    pub modelled: Modelled,
    #[cfg(test)]
    pub(crate) fault: Option<Fault>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            group_transactions: 100,
            checkpoint_transactions: 100_000,
            gzip_level: 6,
            node_bytes: 512,
            page_bytes: 4096,
            cached_pages: 16_384,
            memtable_bytes: 16 << 20,
            growth: 10,
            first_level_runs: 4,
            bloom_bits: 10,
            modelled: Modelled::default(),
            #[cfg(test)]
            fault: None,
        }
    }
}

/// A mistake that tests make on purpose, to see that their checks find it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A group is answered before the log's file is synced.
    AnswerBeforeSync,
    /// A log or its file is cut before what replaces it is durable.
    CutEarly,
    /// Slots are marked persisted before the log knows them.
    PersistBeforeLog,
    /// A change in place is made before its before image is durable.
    ChangeBeforeLog,
    /// The master record is stored before what it leads to is durable.
    MasterFirst,
    /// What was replaced is reused before the master record is durable.
    EarlyReuse,
}

impl Options {
    /// Whether a mistake is made; never outside of tests.
    #[inline(always)]
    pub(crate) fn has(&self, fault: Fault) -> bool {
        #[cfg(test)]
        return self.fault == Some(fault);
        #[cfg(not(test))]
        {
            let _ = fault;
            false
        }
    }
}
