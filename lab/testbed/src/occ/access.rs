//! How a transaction gets at rows: finds them, brings them in, copies them, and notes that it did.

use pmem::Device;
use workloads::{TableId, Visit};

use super::buffers::{Kind, NewRow, Read};
use super::session::OccSession;
use super::shared::{Steps, place_of, record_at, settled};
use crate::error::{Error, Result};
use crate::index::{Found, Seen};
use crate::layout::{Header, Layout};
use crate::memory::load_words;
use crate::records::{Older, Version};
use crate::rival::{Fault, Stop};

/// Whether a row is in an index, and if not, where it is not.
pub(super) type Place = Result<u32, Seen>;

/// Where the versions of a row begin that are older than its newest, and the snapshot that wants
/// one.
struct Past {
    older: Older,
    snapshot: u64,
}

impl<D: Device, P: Steps<D>> OccSession<D, P> {
    pub(super) fn layout(&self, table: TableId) -> Layout {
        self.shared.heap.layouts[usize::from(table.0)]
    }

    /// The record of a row; if the index leads to a slot, the row is brought in first.
    pub(super) fn find(&mut self, table: TableId, key: &[u8]) -> Result<Place, Stop> {
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
        let Self { shared, worker, port, pool, row, counts, .. } = self;
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
    pub(super) fn find_or_create(&mut self, table: TableId, key: &[u8]) -> Result<u32, Stop> {
        loop {
            if let Ok(record) = self.find(table, key)? {
                return Ok(record);
            }
            let number = usize::from(table.0);
            let Self { shared, worker, pool, tx, .. } = self;
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
                let at = tx.payloads.len() as u32;
                shared.heap.layouts[number].begin_payload(key, 0, &mut tx.payloads);
                tx.created.push((table.0, record, at));
                return Ok(record);
            }
            of_record.set_version(Version::GONE);
            pool.give_back(number, record);
        }
    }

    /// Copies a row behind what is in `into`, and notes that it was read; false if there is none.
    pub(super) fn read(
        &mut self,
        table: TableId,
        record: u32,
        into: &mut Vec<u64>,
    ) -> Result<bool, Stop> {
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
            if let Some(snapshot) = tx.snapshot.filter(is_newer) {
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

    /// As [`Self::read`], of the version that a snapshot is of.
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

    /// The record of a row that the transaction is about to change; that there is none is checked
    /// when it commits.
    fn find_to_change(&mut self, table: TableId, key: &[u8]) -> Result<Option<u32>, Stop> {
        self.tx.snapshot = None;
        match self.find(table, key)? {
            Ok(record) => Ok(Some(record)),
            Err(seen) => {
                self.tx.nodes.push((table, seen));
                Ok(None)
            }
        }
    }

    /// The place of the payload of a row that will be changed; `None` if there is no such row.
    pub(super) fn read_to_write(
        &mut self,
        table: TableId,
        key: &[u8],
    ) -> Result<Option<usize>, Stop> {
        let Some(record) = self.find_to_change(table, key)? else { return Ok(None) };
        if let Some(own) = self.tx.own(table, record) {
            return Ok((own.kind == Kind::Put).then_some(own.payload_at as usize));
        }
        let at = self.tx.payloads.len();
        let mut payloads = std::mem::take(&mut self.tx.payloads);
        let read = self.read(table, record, &mut payloads);
        self.tx.payloads = payloads;
        if !read? {
            return Ok(None);
        }
        self.tx.add(table, record, Kind::Put, at as u32);
        Ok(Some(at))
    }

    /// The record of a row that must be there to be written without being read; `None` if it is
    /// not.
    pub(super) fn find_existing(
        &mut self,
        table: TableId,
        key: &[u8],
    ) -> Result<Option<u32>, Stop> {
        let Some(record) = self.find_to_change(table, key)? else { return Ok(None) };
        if let Some(own) = self.tx.own(table, record) {
            return Ok((own.kind == Kind::Put).then_some(record));
        }
        let version = settled(self.shared.tables[usize::from(table.0)].records.get(record));
        if version.is_dead() {
            return Err(Stop::Conflict);
        }
        if version.is_absent() {
            self.tx.reads.push(Read { table, record, version });
            return Ok(None);
        }
        Ok(Some(record))
    }

    /// Notes a write of a row; `must_exist` if the transaction has seen that it is there.
    pub(super) fn write(
        &mut self,
        table: TableId,
        record: u32,
        row: NewRow<'_>,
        must_exist: bool,
    ) -> Result<(), Stop> {
        let NewRow { key, value } = row;
        let layout = self.layout(table);
        let bytes = value.map_or(0, <[u8]>::len);
        if bytes > layout.value_bytes_max || key.len() > layout.key_bytes_max {
            let what = format!("a row of {bytes} bytes is too long for table {}", table.0);
            return Err(Error::Limit(what).into());
        }
        let at = self.tx.payloads.len();
        layout.begin_payload(key, bytes, &mut self.tx.payloads);
        if let Some(value) = value {
            layout.value_mut(&mut self.tx.payloads[at..]).copy_from_slice(value);
        }
        let kind = if value.is_some() { Kind::Put } else { Kind::Delete };
        if let Some(own) = self.tx.own(table, record) {
            (own.kind, own.payload_at) = (kind, at as u32);
            return Ok(());
        }
        self.tx.add(table, record, kind, at as u32);
        if must_exist && let Some(own) = self.tx.writes.last_mut() {
            own.must_exist = true;
        }
        Ok(())
    }

    /// Visits the rows that an index gave; true if the visitor has had enough.
    pub(super) fn visit(
        &mut self,
        table: TableId,
        found: &Found,
        each: Visit<'_>,
    ) -> Result<bool, Stop> {
        let layout = self.layout(table);
        for i in 0..found.len() {
            let (key, place) = found.get(i);
            let record = match self.bring_in(table, key, place)? {
                Some(record) => record,
                // It moved: the index knows where to, or that it is no longer there, which its node
                // tells.
                None => match self.find(table, key)? {
                    Ok(record) => record,
                    Err(_) => return Err(Stop::Conflict),
                },
            };
            let flow = if let Some(own) = self.tx.own(table, record) {
                if own.kind == Kind::Delete {
                    continue;
                }
                let at = own.payload_at as usize;
                each(key, layout.value(&self.tx.payloads[at..][..layout.payload_words]))
            } else {
                let mut row = std::mem::take(&mut self.row);
                row.clear();
                let read = self.read(table, record, &mut row);
                self.row = row;
                if !read? {
                    continue;
                }
                each(key, layout.value(&self.row))
            };
            if flow.is_break() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
