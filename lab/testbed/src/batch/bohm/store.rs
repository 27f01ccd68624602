//! What differs between engines whose calls read and write versions of a batch: where the versions
//! are, and when the old ones are freed.

use super::super::engine::BatchCounts;
use super::super::phases::{Halt, Waits};
use super::super::rows::{Pool, RowId};
use super::super::tables::Tables;
use super::versions::{Content, Version};
use crate::error::Result;

/// A batch, as the store of versions sees it.
#[derive(Clone, Copy)]
pub(super) struct Batched<'a> {
    pub(super) tables: &'a Tables,
    /// Number of the batch.
    pub(super) batch: u32,
}

/// The versions of a row that calls of a batch may see.
pub(super) struct Array<'v> {
    /// In the order of the batch.
    pub(super) versions: &'v [Version],
    /// What the row was before the batch; if it is not there, that is the row's value.
    pub(super) initial: Option<Content>,
}

/// A call that has shown what it wrote.
pub(super) struct Ending<'a> {
    pub(super) tables: &'a Tables,
    pub(super) batch: u32,
    pub(super) call: u32,
    pub(super) halt: &'a Halt,
    pub(super) waits: &'a mut Waits,
    pub(super) pool: &'a mut Pool,
}

/// The versions of one owner's rows.
pub(super) trait Store: Default + Send + Sync {
    /// Name of the engine.
    const NAME: &'static str;
    /// Whether a thread that meets a pending version whose call does not run yet runs that call.
    const RUNS_PRODUCERS: bool;

    /// Makes pending versions of all writes, which come in the order of the batch.
    fn make<'d, I: Iterator<Item = &'d (RowId, u32)>>(
        &mut self,
        batched: Batched<'_>,
        pool: &mut Pool,
        counts: &mut BatchCounts,
        writes: impl Fn() -> I,
    );

    /// The versions of a row in a batch; none if no call of the batch may write it.
    fn array<'v>(owners: &'v [Self], batched: Batched<'_>, row: RowId) -> Array<'v>;

    /// A call that may write a row has shown its version, or that it made none.
    ///
    /// # Errors
    /// Another worker failed; no room.
    fn ended(owners: &[Self], row: RowId, ending: Ending<'_>) -> Result<()>;

    /// The batch has ended.
    fn end(&mut self, batched: Batched<'_>, pool: &mut Pool, counts: &mut BatchCounts);
}
