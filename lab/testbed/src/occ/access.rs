//! How a transaction gets at rows: finds them, brings them in, copies them, and notes that it did.

use pmem::Device;
use workloads::TableId;

use super::records::{Older, Version};
use super::session::{Created, OccSession};
use super::shared::{Steps, place_of, record_at, settled};
use super::write::Versions;
use crate::error::Result;
use crate::image::layout::{Header, Layout};
use crate::index::{Found, Range, Seen};
use crate::memory::load_words;
use crate::rival::{Fault, Stop};
use crate::transaction::{Buffers, Protocol, Read};

/// Whether a row is in an index, and if not, where it is not.
type Place = Result<u32, Seen>;

/// Where the versions of a row begin that are older than its newest, and the snapshot that wants
/// one.
struct Past {
    older: Older,
    snapshot: u64,
}

impl<D: Device, P: Steps<D>> OccSession<D, P> {
    /// The record of a row; if the index leads to a slot, the row is brought in first.
    fn look_up(&mut self, table: TableId, key: &[u8]) -> Result<Place, Stop> {
        loop {
            let index = &self.shared.tables[usize::from(table.0)].index;
            match index.get(self.worker, key) {
                Err(seen) => return Ok(Err(seen)),
                Ok(place) => {
                    if let Some(record) = self.bring_in(table, key, place)? {
                        return Ok(Ok(record));
                    }
                }
            }
        }
    }

    /// The record of a place; `None` if another one was faster, or the row moved.
    fn bring_in(&mut self, table: TableId, key: &[u8], place: u64) -> Result<Option<u32>, Stop> {
        let slot = match record_at(place) {
            Ok(record) => return Ok(Some(record)),
            Err(slot) => slot,
        };
        let number = usize::from(table.0);
        let Self { shared, worker, port, pool, tx, counts, .. } = self;
        let row = &mut tx.row;
        let words = if P::CACHES { 1 + shared.heap.layouts[number].payload_words } else { 1 };
        // If the slot is reused meanwhile, which some engines keep from happening, the row has
        // moved and what is read here is thrown away.
        row.clear();
        load_words(port, slot, words, row);
        let header = Header(row[0]);
        let record = pool.take(shared, number)?;
        let of_record = shared.tables[number].records.get(record);
        of_record.set_slot(slot, header);
        of_record.set_older(Older::FORGOTTEN);
        if P::CACHES {
            of_record.set_payload(&row[1..]);
            counts.cache_misses += 1;
        }
        of_record.set_version(Version::of(header.timestamp()));
        if shared.tables[number].index.swap(*worker, key, slot, place_of(record)) {
            return Ok(Some(record));
        }
        of_record.set_version(Version::GONE);
        pool.give_back(number, record);
        Ok(None)
    }

    /// The record of a row that will be inserted: the one that there is, or a new one.
    fn find_or_create(&mut self, table: TableId, key: &[u8]) -> Result<u32, Stop> {
        loop {
            if let Ok(record) = self.look_up(table, key)? {
                return Ok(record);
            }
            let number = usize::from(table.0);
            let Self { shared, worker, pool, tx, created, .. } = self;
            let record = pool.take(shared, number)?;
            let of_record = shared.tables[number].records.get(record);
            of_record.set_slot(0, Header::default());
            of_record.set_older(Older::NONE);
            of_record.set_version(Version::NOT_YET);
            let inserted = shared.tables[number].index.insert(*worker, key, place_of(record));
            if let Ok(inserted) = inserted {
                if tx.changed_node(table, inserted) {
                    // It may rely on the row not being there, which the node does not tell any
                    // more: another transaction may find this record and insert the row first.
                    let version = Version::NOT_YET;
                    tx.reads.push(Read { table, record, version });
                }
                let payload_at = tx.payloads.len() as u32;
                shared.heap.layouts[number].begin_payload(key, 0, &mut tx.payloads);
                created.push(Created { table, record, payload_at });
                return Ok(record);
            }
            of_record.set_version(Version::GONE);
            pool.give_back(number, record);
        }
    }

    /// Copies a row behind what is in `into`, and notes that it was read; false if there is none.
    fn read_row(&mut self, table: TableId, record: u32, into: &mut Vec<u64>) -> Result<bool, Stop> {
        let Self { shared, port, tx, .. } = self;
        let of_record = shared.tables[usize::from(table.0)].records.get(record);
        let (start, words) = (into.len(), shared.heap.layouts[usize::from(table.0)].payload_words);
        loop {
            let version = settled(of_record);
            if version.is_dead() {
                return Err(Stop::Conflict);
            }
            let is_newer = |snapshot: &u64| {
                version.timestamp() > *snapshot && !shared.options.has(Fault::NewestInSnapshot)
            };
            if let Some(snapshot) = self.snapshot.filter(is_newer) {
                let older = of_record.older();
                if of_record.is_still(version) {
                    return self.read_older(table, record, Past { older, snapshot }, into);
                }
                continue;
            }
            if version.is_absent() {
                tx.reads.push(Read { table, record, version });
                return Ok(false);
            }
            if P::CACHES {
                of_record.mark_used();
                of_record.copy_payload(into);
            } else {
                load_words(port, of_record.slot().0 + 8, words, into);
            }
            if of_record.is_still(version) {
                tx.reads.push(Read { table, record, version });
                return Ok(true);
            }
            into.truncate(start);
        }
    }

    /// As [`Self::read_row`], of the version that a snapshot is of.
    #[cold]
    fn read_older(
        &mut self,
        table: TableId,
        record: u32,
        past: Past,
        into: &mut Vec<u64>,
    ) -> Result<bool, Stop> {
        let Past { mut older, snapshot } = past;
        let Self { shared, port, tx, counts, .. } = self;
        counts.old_versions_read += 1;
        let words = shared.heap.layouts[usize::from(table.0)].payload_words;
        let links = shared.tables[usize::from(table.0)].links.as_ref();
        while let Some(link) = links.and_then(|links| links.get(older)) {
            if link.header.timestamp() > snapshot {
                older = link.older;
                continue;
            }
            // It is not the newest: a transaction that writes something after this is in conflict.
            let version = Version::of(link.header.timestamp());
            tx.reads.push(Read { table, record, version });
            if !link.header.is_deleted() {
                load_words(port, link.slot + 8, words, into);
            }
            return Ok(!link.header.is_deleted());
        }
        if older == Older::FORGOTTEN {
            return Err(Stop::Conflict);
        }
        tx.reads.push(Read { table, record, version: Version::GONE });
        Ok(false)
    }
}

impl<D: Device, P: Steps<D>> Protocol for OccSession<D, P> {
    type Version = Version;
    type Versions = Versions;

    #[inline]
    fn tx(&mut self) -> &mut Buffers<Version, Versions> {
        &mut self.tx
    }

    fn layout(&self, table: TableId) -> Layout {
        self.shared.heap.layouts[usize::from(table.0)]
    }

    fn search(&mut self, table: TableId, range: Range<'_>, found: &mut Found) -> bool {
        self.shared.tables[usize::from(table.0)].index.scan(self.worker, range, found)
    }

    fn find(&mut self, table: TableId, key: &[u8]) -> Result<Option<u32>, Stop> {
        match self.look_up(table, key)? {
            Ok(record) => Ok(Some(record)),
            Err(seen) => {
                self.tx.nodes.push((table, seen));
                Ok(None)
            }
        }
    }

    fn find_to_write(
        &mut self,
        table: TableId,
        key: &[u8],
        must_exist: bool,
    ) -> Result<Option<u32>, Stop> {
        self.snapshot = None;
        match must_exist {
            true => self.find(table, key),
            false => self.find_or_create(table, key).map(Some),
        }
    }

    fn record_at(&mut self, table: TableId, key: &[u8], place: u64) -> Result<u32, Stop> {
        if let Some(record) = self.bring_in(table, key, place)? {
            return Ok(record);
        }
        // It moved: the index knows where to, or that it is no longer there, which its node tells.
        self.look_up(table, key)?.map_err(|_| Stop::Conflict)
    }

    fn read(
        &mut self,
        table: TableId,
        record: u32,
        into: &mut Vec<u64>,
    ) -> Result<Option<Versions>, Stop> {
        let is_there = self.read_row(table, record, into)?;
        Ok(is_there.then_some(Versions::unknown(false)))
    }

    fn look(
        &mut self,
        table: TableId,
        record: u32,
        must_exist: bool,
    ) -> Result<Option<Versions>, Stop> {
        if must_exist {
            let of_record = self.shared.tables[usize::from(table.0)].records.get(record);
            let version = settled(of_record);
            if version.is_dead() {
                return Err(Stop::Conflict);
            }
            if version.is_absent() {
                self.tx.reads.push(Read { table, record, version });
                return Ok(None);
            }
        }
        Ok(Some(Versions::unknown(must_exist)))
    }
}
