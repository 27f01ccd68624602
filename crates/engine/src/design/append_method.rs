//! How the append step gives a row that is written more than once in an epoch its versions.

/// How versions are appended to a row that another call of the epoch already writes. The first
/// writer of a row claims it in the same way with both, and answers and state are the same.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum AppendMethod {
    /// Each append locks the row's entry and inserts into the sorted version array, which grows as
    /// it fills up (CA 3.2).
    RowLock,
    /// Appends go to buffers without a lock; then each row with several writers gets one worker,
    /// who makes its version array once, in order and of the size it needs (CA 3.3, 4.1; how it
    /// differs from the paper's is in docs/decisions/0012-one-worker-makes-the-array.md).
    #[default]
    Batch,
}

impl AppendMethod {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::RowLock, Self::Batch];

    /// Name in options and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::RowLock => "row-lock",
            Self::Batch => "batch",
        }
    }

    /// What it does, in a few words.
    pub fn what(self) -> &'static str {
        match self {
            Self::RowLock => "one by one, each under its row's lock (CA 3.2)",
            Self::Batch => "collected, then each row's versions by one worker (CA 3.3)",
        }
    }
}
