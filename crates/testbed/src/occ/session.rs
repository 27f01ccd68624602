//! Reads and writes of a running transaction.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use pmem::{Counters, Device, Port};
use workloads::{TableId, Visit};

use super::buffers::{Buffers, Read};
use super::pool::Pool;
use super::{Kind, Older, Shared, Steps, place_of, record_at, settled};
use crate::heap::Slots;
use crate::index::{Found, KeyBytes, Range as KeyRange, Seen};
use crate::layout::{Header, Layout};
use crate::memory::load_words;
use crate::records::Version;
use crate::rival::{Error, Planted, Result, Session, Stop, Tally};

/// Rows that a scan takes from an index at first; twice as many each time.
const SCAN_ROWS: usize = 16;

/// One worker's transactions. See [`super`].
pub struct OccSession<D: Device, P: Steps<D>> {
    pub(super) shared: Arc<Shared<D, P>>,
    pub(super) worker: usize,
    pub(super) port: Port<D>,
    pub(super) slots: Slots,
    pub(super) own: P::Local,
    pub(super) pool: Pool,
    pub(super) tx: Buffers,
    pub(super) tally: Tally,
    /// The row that was read last.
    row: Vec<u64>,
    found: Found,
    part: Vec<u8>,
}

/// The place in the serial order of a transaction with a timestamp.
fn place_at(timestamp: u64) -> u64 {
    timestamp * 2
}

/// The place of those that read the state which the transaction with a timestamp left.
fn place_behind(timestamp: u64) -> u64 {
    timestamp.saturating_mul(2).saturating_add(1)
}

/// Whether a row is in an index, and if not, where it is not.
type Place = Result<u32, Seen>;

impl<D: Device, P: Steps<D>> OccSession<D, P> {
    pub(crate) fn new(shared: Arc<Shared<D, P>>, worker: usize) -> Self {
        assert!(worker < shared.options.workers, "there is no worker {worker}");
        let left = std::mem::take(&mut *crate::lock(&shared.left[worker]));
        let tables = shared.tables.len();
        Self {
            worker,
            port: Port::new(Arc::clone(&shared.device), worker as u32 + 1),
            slots: left.slots.unwrap_or_else(|| Slots::new(tables)),
            own: left.own.unwrap_or_else(|| shared.persist.local(worker)),
            pool: left.pool.unwrap_or_else(|| Pool::new(tables)),
            tx: Buffers::default(),
            tally: Tally::default(),
            row: Vec::new(),
            found: Found::default(),
            part: Vec::new(),
            shared,
        }
    }

    fn layout(&self, table: TableId) -> Layout {
        self.shared.heap.layouts[usize::from(table.0)]
    }

    /// The record of a row; if the index leads to a slot, the row is brought in first.
    fn find(&mut self, table: TableId, key: &[u8]) -> Result<Place, Stop> {
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
        let Self { shared, worker, port, pool, row, tally, .. } = self;
        let words = if P::CACHES { 1 + shared.heap.layouts[number].payload_words } else { 1 };
        // Nobody writes to the slot: it would have to be reused while this transaction runs.
        row.clear();
        load_words(port, slot, words, row);
        let header = Header(row[0]);
        let record = pool.take(shared, number)?;
        let of_record = shared.tables[number].records.get(record);
        of_record.set_slot(slot, header);
        of_record.set_older(Older::FORGOTTEN);
        if P::CACHES {
            of_record.set_payload(&row[1..]);
            tally.cache_misses += 1;
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
                if tx.changed_node(table.0, inserted) {
                    // It may rely on the row not being there, which the node does not tell any
                    // more: another transaction may find this record and insert the row first.
                    let version = Version::NOT_YET;
                    tx.reads.push(Read { table: table.0, record, version });
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
    fn read(&mut self, table: TableId, record: u32, into: &mut Vec<u64>) -> Result<bool, Stop> {
        let Self { shared, port, tx, .. } = self;
        let of_record = shared.tables[usize::from(table.0)].records.get(record);
        let (start, words) = (into.len(), shared.heap.layouts[usize::from(table.0)].payload_words);
        loop {
            let version = settled(of_record);
            if version.is_dead() {
                return Err(Stop::Conflict);
            }
            let is_newer = |snapshot: &u64| {
                version.timestamp() > *snapshot && !shared.options.has(Planted::NewestInSnapshot)
            };
            if let Some(snapshot) = tx.snapshot.filter(is_newer) {
                let older = of_record.older();
                if of_record.is_still(version) {
                    return self.read_older(table, record, (older, snapshot), into);
                }
                continue;
            }
            if version.is_absent() {
                tx.reads.push(Read { table: table.0, record, version });
                return Ok(false);
            }
            if P::CACHES {
                of_record.mark_used();
                of_record.copy_payload(into);
            } else {
                load_words(port, of_record.slot().0 + 8, words, into);
            }
            if of_record.is_still(version) {
                tx.reads.push(Read { table: table.0, record, version });
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
        (mut older, snapshot): (Older, u64),
        into: &mut Vec<u64>,
    ) -> Result<bool, Stop> {
        let Self { shared, port, tx, tally, .. } = self;
        tally.old_versions_read += 1;
        let words = shared.heap.layouts[usize::from(table.0)].payload_words;
        let links = shared.tables[usize::from(table.0)].links.as_ref();
        while let Some(link) = links.and_then(|links| links.get(older)) {
            if link.header.timestamp() > snapshot {
                older = link.older;
                continue;
            }
            // It is not the newest: whoever writes something after this is in conflict.
            let version = Version::of(link.header.timestamp());
            tx.reads.push(Read { table: table.0, record, version });
            if !link.header.is_deleted() {
                load_words(port, link.slot + 8, words, into);
            }
            return Ok(!link.header.is_deleted());
        }
        if older == Older::FORGOTTEN {
            return Err(Stop::Conflict);
        }
        tx.reads.push(Read { table: table.0, record, version: Version::GONE });
        Ok(false)
    }

    /// The place of the payload of a row that will be changed; `None` if there is no such row.
    fn read_to_write(&mut self, table: TableId, key: &[u8]) -> Result<Option<usize>, Stop> {
        self.tx.snapshot = None;
        let record = match self.find(table, key)? {
            Ok(record) => record,
            Err(seen) => {
                self.tx.nodes.push((table.0, seen));
                return Ok(None);
            }
        };
        if let Some(own) = self.tx.own(table.0, record) {
            return Ok((own.kind == Kind::Put).then_some(own.payload_at as usize));
        }
        let at = self.tx.payloads.len();
        let mut payloads = std::mem::take(&mut self.tx.payloads);
        let read = self.read(table, record, &mut payloads);
        self.tx.payloads = payloads;
        if !read? {
            return Ok(None);
        }
        self.tx.add(table.0, record, Kind::Put, at as u32);
        Ok(Some(at))
    }

    /// The record of a row that must be there to be written without being read; `None` if it is
    /// not.
    fn find_existing(&mut self, table: TableId, key: &[u8]) -> Result<Option<u32>, Stop> {
        self.tx.snapshot = None;
        let record = match self.find(table, key)? {
            Ok(record) => record,
            Err(seen) => {
                self.tx.nodes.push((table.0, seen));
                return Ok(None);
            }
        };
        if let Some(own) = self.tx.own(table.0, record) {
            return Ok((own.kind == Kind::Put).then_some(record));
        }
        let version = settled(self.shared.tables[usize::from(table.0)].records.get(record));
        if version.is_dead() {
            return Err(Stop::Conflict);
        }
        if version.is_absent() {
            self.tx.reads.push(Read { table: table.0, record, version });
            return Ok(None);
        }
        Ok(Some(record))
    }

    /// Notes a write of a row; `must_exist` if the transaction has seen that it is there.
    fn write(
        &mut self,
        table: TableId,
        record: u32,
        (key, value): (&[u8], Option<&[u8]>),
        must_exist: bool,
    ) -> Result<(), Stop> {
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
        if let Some(own) = self.tx.own(table.0, record) {
            (own.kind, own.payload_at) = (kind, at as u32);
            return Ok(());
        }
        self.tx.add(table.0, record, kind, at as u32);
        if must_exist && let Some(own) = self.tx.writes.last_mut() {
            own.must_exist = true;
        }
        Ok(())
    }

    /// Visits the rows that an index gave; true if the visitor has had enough.
    fn visit(&mut self, table: TableId, found: &Found, each: Visit<'_>) -> Result<bool, Stop> {
        let layout = self.layout(table);
        for i in 0..found.len() {
            let (key, place) = found.get(i);
            let record = match self.bring_in(table, key, place)? {
                Some(record) => record,
                // It moved: the index knows where to, or that it is gone, which its node tells.
                None => match self.find(table, key)? {
                    Ok(record) => record,
                    Err(_) => return Err(Stop::Conflict),
                },
            };
            let flow = if let Some(own) = self.tx.own(table.0, record) {
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

impl<D: Device, P: Steps<D>> Session for OccSession<D, P> {
    fn begin(&mut self) {
        self.shared.grace.enter(self.worker);
        self.shared.persist.begin(&self.shared.clock.0, self.worker, &mut self.own);
        if P::SNAPSHOTS {
            // After it was announced that this transaction runs: what it may read stays.
            self.tx.snapshot = Some(self.shared.clock.0.load(Ordering::SeqCst));
        }
    }

    fn get(&mut self, table: TableId, key: &[u8]) -> Result<Option<&[u8]>, Stop> {
        let layout = self.layout(table);
        let record = match self.find(table, key)? {
            Ok(record) => record,
            Err(seen) => {
                self.tx.nodes.push((table.0, seen));
                return Ok(None);
            }
        };
        if let Some(own) = self.tx.own(table.0, record) {
            let (kind, at) = (own.kind, own.payload_at as usize);
            let payload = &self.tx.payloads[at..][..layout.payload_words];
            return Ok((kind == Kind::Put).then(|| layout.value(payload)));
        }
        let mut row = std::mem::take(&mut self.row);
        row.clear();
        let read = self.read(table, record, &mut row);
        self.row = row;
        Ok(if read? { Some(layout.value(&self.row)) } else { None })
    }

    fn scan(
        &mut self,
        table: TableId,
        low: &[u8],
        high: &[u8],
        descending: bool,
        each: Visit<'_>,
    ) -> Result<(), Stop> {
        if low >= high {
            return Ok(());
        }
        let [mut low, mut high] = [low, high].map(KeyBytes::from_slice);
        let mut limit = SCAN_ROWS;
        let mut found = std::mem::take(&mut self.found);
        let ended = loop {
            let range = KeyRange { low: &low, high: &high, descending, limit };
            let index = &self.shared.tables[usize::from(table.0)].index;
            if !index.scan(self.worker, range, &mut found) {
                let what = format!("table {} is not ordered and cannot be scanned", table.0);
                break Err(Error::Broken(what).into());
            }
            self.tx.nodes.extend(found.seen.map(|seen| (table.0, seen)));
            match self.visit(table, &found, each) {
                Ok(false) => {}
                ended => break ended,
            }
            match found.rest.take() {
                Some(rest) if descending => high = rest,
                Some(rest) => low = rest,
                None => break Ok(true),
            }
            limit *= 2;
        };
        self.found = found;
        ended.map(|_| ())
    }

    fn insert(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<(), Stop> {
        self.tx.snapshot = None;
        let record = self.find_or_create(table, key)?;
        self.write(table, record, (key, Some(value)), false)
    }

    fn update(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<bool, Stop> {
        let Some(record) = self.find_existing(table, key)? else { return Ok(false) };
        self.write(table, record, (key, Some(value)), true)?;
        Ok(true)
    }

    fn modify(
        &mut self,
        table: TableId,
        key: &[u8],
        change: impl FnOnce(&mut [u8]),
    ) -> Result<bool, Stop> {
        let layout = self.layout(table);
        let Some(at) = self.read_to_write(table, key)? else { return Ok(false) };
        change(layout.value_mut(&mut self.tx.payloads[at..][..layout.payload_words]));
        Ok(true)
    }

    fn modify_part(
        &mut self,
        table: TableId,
        key: &[u8],
        part: Range<usize>,
        change: impl FnOnce(&[u8], &mut [u8]),
    ) -> Result<bool, Stop> {
        let layout = self.layout(table);
        let Some(at) = self.read_to_write(table, key)? else { return Ok(false) };
        let row = layout.value_mut(&mut self.tx.payloads[at..][..layout.payload_words]);
        let Some(old) = row.get(part.clone()) else {
            let what = format!("bytes {part:?} are not in a row of {} bytes", row.len());
            return Err(Error::Broken(what).into());
        };
        self.part.clear();
        self.part.extend_from_slice(old);
        change(row, &mut self.part);
        row[part].copy_from_slice(&self.part);
        Ok(true)
    }

    fn delete(&mut self, table: TableId, key: &[u8]) -> Result<bool, Stop> {
        let Some(record) = self.find_existing(table, key)? else { return Ok(false) };
        self.write(table, record, (key, None), true)?;
        Ok(true)
    }

    fn commit(&mut self) -> Result<u64, Stop> {
        let place = match self.tx.snapshot {
            Some(snapshot) => place_behind(snapshot),
            None => place_at(self.commit_now()?),
        };
        self.end()?;
        Ok(place)
    }

    fn give_up(&mut self) -> Result<u64, Stop> {
        self.tx.writes.clear();
        let place = match self.tx.snapshot {
            Some(snapshot) => place_behind(snapshot),
            None => place_at(self.shared.next_serial()),
        };
        if self.tx.snapshot.is_none() && !self.is_valid() {
            return Err(Stop::Conflict);
        }
        self.take_back();
        self.end()?;
        Ok(place)
    }

    fn roll_back(&mut self) {
        self.take_back();
        // An engine that fails here fails in the next transaction, too.
        let _ = self.end();
    }

    fn durable(&self) -> u64 {
        place_behind(self.shared.persist.durable())
    }

    fn finish(&mut self) -> Result<()> {
        self.finish_now()
    }

    fn take_counters(&mut self) -> Counters {
        self.port.take_counters()
    }

    fn tally(&self) -> Tally {
        Tally { evictions: self.pool.evictions, ..self.tally }
    }
}

impl<D: Device, P: Steps<D>> Drop for OccSession<D, P> {
    fn drop(&mut self) {
        self.pool.evictions = 0;
        let mut left = crate::lock(&self.shared.left[self.worker]);
        left.slots = Some(std::mem::replace(&mut self.slots, Slots::new(0)));
        left.pool = Some(std::mem::replace(&mut self.pool, Pool::new(0)));
        left.own = Some(std::mem::replace(&mut self.own, self.shared.persist.local(self.worker)));
    }
}
