//! The designs of the paper, each a choice of a few options of one engine.

/// When a transaction is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durable {
    /// Never.
    Never,
    /// When a thread of its own has written its group to the log.
    ByGroups,
    /// When it has written its record to the log, before its locks are released: no region can do
    /// that.
    UnderLocks,
    /// When it has written its record to the log, behind its region: until then the versions of
    /// what it wrote are odd.
    ByParity,
    /// When it has written its record to the log, before what it wrote is seen beside what was
    /// there. Transactions read snapshots, without regions.
    BySecondVersion,
}

/// How a log record gets to the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// By writes to a file, and a sync of it.
    File,
    /// By stores to memory, and flushes.
    Stores,
    /// The same, of whole lines.
    Lines,
    /// By stores of whole lines past the cache.
    PastCache,
    /// The same; records of 256 bytes and more are whole blocks of so many.
    Blocks,
}

/// A design of the family.
pub trait Design: Send + Sync + 'static {
    /// Name for reports.
    const NAME: &'static str;
    /// When a transaction is durable.
    const DURABLE: Durable;
    /// How its log records get to the device.
    const WAY: Way;
    /// Whether records, contents and indexes count as memory of the device.
    const DATA_ON_DEVICE: bool = false;
    /// Whether transactions read snapshots, and are not serializable.
    const SNAPSHOTS: bool = matches!(Self::DURABLE, Durable::BySecondVersion);
}

/// Makes a design.
macro_rules! design {
    (
        $(#[$doc:meta])*
        $design:ident, $name:literal, $durable:ident, $way:ident $(, $data:literal)?
    ) => {
        $(#[$doc])*
        pub enum $design {}

        impl Design for $design {
            const NAME: &'static str = $name;
            const DURABLE: Durable = Durable::$durable;
            const WAY: Way = Way::$way;
            $(const DATA_ON_DEVICE: bool = $data;)?
        }
    };
}

design!(
    /// DBX without a log.
    DbxDram, "dbx-dram", Never, Stores
);
design!(
    /// DBX whose groups are logged to a file on a disk.
    DbxDisk, "dbx-disk", ByGroups, File
);
design!(
    /// DBX whose groups are logged to a file in persistent memory.
    DbxNvm, "dbx-nvm", ByGroups, File
);
design!(
    /// Each transaction is logged to a file on a disk.
    DbxSyncDisk, "dbx-sync-disk", UnderLocks, File
);
design!(
    /// Each transaction is logged to persistent memory, as simply as can be.
    DbxNaive, "dbx-naive", UnderLocks, Stores
);
design!(
    /// The same, behind a region.
    DbxnParity, "dbxn-parity", ByParity, Stores
);
design!(
    /// With records of whole lines.
    DbxnLines, "dbxn-64", ByParity, Lines
);
design!(
    /// Stored past the cache.
    DbxnPastCache, "dbxn-nt", ByParity, PastCache
);
design!(
    /// DBXN: long records are whole blocks.
    Dbxn, "dbxn", ByParity, Blocks
);
design!(
    /// DBXN with everything in persistent memory.
    DbxnNvm, "dbxn-nvm", ByParity, Blocks, true
);
design!(
    /// Pisces: at most two versions of a row, and snapshot isolation.
    Pisces, "pisces", BySecondVersion, Lines, true
);
