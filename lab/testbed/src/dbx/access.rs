//! How a transaction gets at rows: their execution (section 3.1.3 of the paper, phase 1).
//!
//! Reads note the version of the record. Every row that is written was read before, also where the
//! procedure did not ask for it, so that the version of what is written is always checked. A key
//! that is not there gets a record of a row that does not exist (*get-with-insert*), whose version
//! stands for its absence.

use pmem::Device;
use workloads::TableId;

use super::design::{Design, Durable};
use super::session::DbxSession;
use super::tables::{REMOVED, ReadRecord, Seen};
use super::write::Versions;
use crate::image::layout::Layout;
use crate::index::{Found, Range};
use crate::rival::Stop;
use crate::transaction::{Buffers, Protocol, Read};

impl<D: Device, N: Design> DbxSession<D, N> {
    /// The record of a key: the one that there is, or one of a row that does not exist.
    fn find_or_create(&mut self, table: TableId, key: &[u8]) -> Result<u32, Stop> {
        let Self { shared, worker, pools, tx, port, .. } = self;
        let number = usize::from(table.0);
        let (of_table, pool) = (&shared.tables[number], &mut pools[number]);
        if N::DATA_ON_DEVICE {
            shared.charge_index(port, number, key);
        }
        loop {
            if let Ok(place) = of_table.index.get(*worker, key) {
                return Ok(place as u32);
            }
            let (record, version) = pool.take_record(of_table, &shared.grace)?;
            match of_table.index.insert(*worker, key, u64::from(record)) {
                Ok(inserted) => {
                    tx.changed_node(table, inserted);
                    pool.note_absent(&shared.grace, record, version, key);
                    return Ok(record);
                }
                Err(_) => pool.give_back_record(record),
            }
        }
    }

    /// Reads a record in a region, and notes that (Figure 7).
    fn see(
        &mut self,
        table: TableId,
        record: u32,
        mut into: Option<&mut Vec<u64>>,
    ) -> Result<Seen, Stop> {
        if N::SNAPSHOTS {
            return self.see_snapshot(table, record, into);
        }
        let Self { shared, tx, counts, port, .. } = self;
        let number = usize::from(table.0);
        let reads_content = into.is_some();
        if let Some(into) = &mut into {
            // Not in the region: memory of the system is no part of it.
            into.reserve(shared.tables[number].layout.payload_words);
        }
        let mut body = ReadRecord { table: &shared.tables[number], record, into };
        let ended = shared.regions.run(&mut counts.regions, &mut body);
        let seen = ended.expect("a region that reads does not give up").output;
        if seen.version == REMOVED {
            return Err(Stop::Conflict);
        }
        if N::DATA_ON_DEVICE {
            shared.charge_record(port, number, record, reads_content.then_some(seen.content));
        }
        // By the time it is validated, what is not durable yet will most likely be.
        let is_odd = N::DURABLE == Durable::ByParity && seen.version % 2 == 1;
        let version = seen.version + u64::from(is_odd);
        tx.reads.push(Read { table, record, version });
        Ok(Seen { version, ..seen })
    }
}

impl<D: Device, N: Design> Protocol for DbxSession<D, N> {
    type Version = u64;
    type Versions = Versions;

    #[inline]
    fn tx(&mut self) -> &mut Buffers<u64, Versions> {
        &mut self.tx
    }

    fn layout(&self, table: TableId) -> Layout {
        self.shared.tables[usize::from(table.0)].layout
    }

    fn search(&mut self, table: TableId, range: Range<'_>, found: &mut Found) -> bool {
        let number = usize::from(table.0);
        if N::DATA_ON_DEVICE {
            self.shared.charge_index(&mut self.port, number, range.low);
        }
        self.shared.tables[number].index.scan(self.worker, range, found)
    }

    fn find(&mut self, table: TableId, key: &[u8]) -> Result<Option<u32>, Stop> {
        self.find_or_create(table, key).map(Some)
    }

    fn find_to_write(&mut self, table: TableId, key: &[u8], _: bool) -> Result<Option<u32>, Stop> {
        self.find_or_create(table, key).map(Some)
    }

    fn record_at(&mut self, _: TableId, _: &[u8], place: u64) -> Result<u32, Stop> {
        Ok(place as u32)
    }

    fn claim(&mut self, table: TableId, record: u32) -> Result<(), Stop> {
        if N::SNAPSHOTS { self.take_second(table, record) } else { Ok(()) }
    }

    fn read(
        &mut self,
        table: TableId,
        record: u32,
        into: &mut Vec<u64>,
    ) -> Result<Option<Versions>, Stop> {
        let seen = self.see(table, record, Some(into))?;
        Ok((seen.content != 0).then(|| Versions::of(seen)))
    }

    fn look(
        &mut self,
        table: TableId,
        record: u32,
        must_exist: bool,
    ) -> Result<Option<Versions>, Stop> {
        let seen = self.see(table, record, None)?;
        Ok((seen.content != 0 || !must_exist).then(|| Versions::of(seen)))
    }
}
