//! What protocols differ in while a transaction runs.

use workloads::TableId;

use super::buffers::Buffers;
use crate::image::layout::Layout;
use crate::index::{Found, Range};
use crate::rival::Stop;

/// How the sessions of a protocol get at rows. `Accesses` is made of these.
pub(crate) trait Protocol: Sized {
    /// What is noted of a version that was read.
    type Version: Copy;
    /// What is kept of the versions of a row that will be written.
    type Versions: Copy;

    /// The sets of the running transaction.
    fn tx(&mut self) -> &mut Buffers<Self::Version, Self::Versions>;

    /// The sizes of a table's rows.
    fn layout(&self, table: TableId) -> Layout;

    /// Reads the first node of a range of an index; false if it is not ordered.
    fn search(&mut self, table: TableId, range: Range<'_>, found: &mut Found) -> bool;

    /// The record of a row; that there is none is noted.
    fn find(&mut self, table: TableId, key: &[u8]) -> Result<Option<u32>, Stop>;

    /// The same of a row that the transaction is about to write, which gets a record unless it must
    /// exist.
    fn find_to_write(
        &mut self,
        table: TableId,
        key: &[u8],
        must_exist: bool,
    ) -> Result<Option<u32>, Stop>;

    /// The record of a row that an index has at a place.
    fn record_at(&mut self, table: TableId, key: &[u8], place: u64) -> Result<u32, Stop>;

    /// Claims a row for the transaction before it reads it to write it.
    fn claim(&mut self, table: TableId, record: u32) -> Result<(), Stop> {
        let _ = (table, record);
        Ok(())
    }

    /// Copies a row behind what is in `into`, and notes that it was read; `None` if there is none.
    fn read(
        &mut self,
        table: TableId,
        record: u32,
        into: &mut Vec<u64>,
    ) -> Result<Option<Self::Versions>, Stop>;

    /// Looks at a row that will be written whole; `None` if it must exist and does not.
    fn look(
        &mut self,
        table: TableId,
        record: u32,
        must_exist: bool,
    ) -> Result<Option<Self::Versions>, Stop>;
}
