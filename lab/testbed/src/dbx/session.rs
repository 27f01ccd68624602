//! One worker's transactions: their execution (section 3.1.3 of the paper, phase 1).
//!
//! Reads note the version of the record, writes stay in the session. Every row that is written was
//! read before, also where the procedure did not ask for it, so that the version of what is
//! written is always checked. A key that is not there gets a record of a row that does not exist
//! (*get-with-insert*), whose version stands for its absence.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use pmem::{Counters, Device, Port};
use workloads::{TableId, Visit};

use super::buffers::{Buffers, Kind, Read, Write};
use super::design::{Design, Durable};
use super::log::Writer;
use super::shared::{Left, Shared};
use super::snapshots::Own;
use super::snapshots::place_behind;
use super::tables::{GONE, Pool, ReadRecord, Seen};
use crate::error::{Error, Result};
use crate::index::{Found, KeyBytes, Range as KeyRange};
use crate::layout::Layout;
use crate::rival::{Accesses, Counts, Session, Stop};

/// Rows that a scan takes from an index at first; twice as many each time.
const SCAN_ROWS: usize = 16;

/// One worker's transactions. See [`super`].
pub struct DbxSession<D: Device, N: Design> {
    pub(super) shared: Arc<Shared<D, N>>,
    pub(super) worker: usize,
    pub(super) port: Port<D>,
    pub(super) pools: Box<[Pool]>,
    pub(super) writer: Writer,
    /// Of use where transactions read snapshots.
    pub(super) own: Own,
    pub(super) tx: Buffers,
    /// What the transaction logs.
    pub(super) entries: Vec<u64>,
    pub(super) counts: Counts,
    /// Places of transactions whose epoch, where there are groups, was not durable.
    pub(super) waiting: VecDeque<(u64, u64)>,
    pub(super) calls: u64,
    /// The row that was read last.
    row: Vec<u64>,
    found: Found,
    part: Vec<u8>,
}

impl<D: Device, N: Design> DbxSession<D, N> {
    pub(super) fn new(shared: Arc<Shared<D, N>>, worker: usize) -> Self {
        let Left { pools, writer, own } = shared.take_left(worker);
        Self {
            worker,
            port: Port::new(Arc::clone(&shared.device), worker as u32 + 1),
            pools,
            writer,
            own,
            tx: Buffers::default(),
            entries: Vec::new(),
            counts: Counts::default(),
            waiting: VecDeque::new(),
            calls: 0,
            row: Vec::new(),
            found: Found::default(),
            part: Vec::new(),
            shared,
        }
    }

    fn layout(&self, table: TableId) -> Layout {
        self.shared.tables[usize::from(table.0)].layout
    }

    /// The record of a key: the one that there is, or one of a row that does not exist.
    fn find(&mut self, table: TableId, key: &[u8]) -> Result<u32, Stop> {
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
        if seen.version == GONE {
            return Err(Stop::Conflict);
        }
        if N::DATA_ON_DEVICE {
            shared.charge_record(port, number, record, reads_content.then_some(seen.content));
        }
        // By the time it is validated, what is not durable yet will most likely be.
        let is_odd = N::DURABLE == Durable::ByParity && seen.version % 2 == 1;
        let noted = seen.version + u64::from(is_odd);
        tx.reads.push(Read { table, record, noted });
        Ok(Seen { version: noted, ..seen })
    }

    /// The place of the payload of a row that will be changed; `None` if there is no such row.
    fn read_to_write(&mut self, table: TableId, key: &[u8]) -> Result<Option<usize>, Stop> {
        let record = self.find(table, key)?;
        if let Some(own) = self.tx.own(table, record) {
            return Ok((own.kind == Kind::Put).then_some(own.payload_at as usize));
        }
        if N::SNAPSHOTS {
            self.take_second(table, record)?;
        }
        let at = self.tx.payloads.len();
        let mut payloads = std::mem::take(&mut self.tx.payloads);
        let seen = self.see(table, record, Some(&mut payloads));
        self.tx.payloads = payloads;
        let seen = seen?;
        if seen.content == 0 {
            return Ok(None);
        }
        self.tx.writes.push(Write::new(table, record, seen, Kind::Put, at as u32));
        Ok(Some(at))
    }

    /// Notes a write of a row that need not be read; false if it must exist and does not.
    fn write(
        &mut self,
        table: TableId,
        key: &[u8],
        value: Option<&[u8]>,
        must_exist: bool,
    ) -> Result<bool, Stop> {
        let layout = self.layout(table);
        let bytes = value.map_or(0, <[u8]>::len);
        if bytes > layout.value_bytes_max || key.len() > layout.key_bytes_max {
            let what = format!("a row of {bytes} bytes is too long for table {}", table.0);
            return Err(Error::Limit(what).into());
        }
        let record = self.find(table, key)?;
        let own = self.tx.own(table, record).map(|own| own.kind);
        if must_exist && own == Some(Kind::Delete) {
            return Ok(false);
        }
        if N::SNAPSHOTS {
            self.take_second(table, record)?;
        }
        let seen = match own {
            Some(_) => None,
            None => Some(self.see(table, record, None)?),
        };
        if must_exist && seen.is_some_and(|seen| seen.content == 0) {
            return Ok(false);
        }
        let at = self.tx.payloads.len();
        layout.begin_payload(key, bytes, &mut self.tx.payloads);
        if let Some(value) = value {
            layout.value_mut(&mut self.tx.payloads[at..]).copy_from_slice(value);
        }
        let kind = if value.is_some() { Kind::Put } else { Kind::Delete };
        match (seen, self.tx.own(table, record)) {
            (Some(seen), _) => {
                self.tx.writes.push(Write::new(table, record, seen, kind, at as u32));
            }
            (None, Some(own)) => (own.kind, own.payload_at) = (kind, at as u32),
            (None, None) => unreachable!("it was there"),
        }
        Ok(true)
    }

    /// Visits the rows that an index gave; true if the visitor has had enough.
    fn visit(&mut self, table: TableId, found: &Found, each: Visit<'_>) -> Result<bool, Stop> {
        let layout = self.layout(table);
        for i in 0..found.len() {
            let (key, place) = found.get(i);
            let record = place as u32;
            let flow = if let Some(own) = self.tx.own(table, record) {
                if own.kind == Kind::Delete {
                    continue;
                }
                let at = own.payload_at as usize;
                each(key, layout.value(&self.tx.payloads[at..][..layout.payload_words]))
            } else {
                let mut row = std::mem::take(&mut self.row);
                row.clear();
                let seen = self.see(table, record, Some(&mut row));
                self.row = row;
                if seen?.content == 0 {
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

impl<D: Device, N: Design> Accesses for DbxSession<D, N> {
    fn get(&mut self, table: TableId, key: &[u8]) -> Result<Option<&[u8]>, Stop> {
        let layout = self.layout(table);
        let record = self.find(table, key)?;
        if let Some(own) = self.tx.own(table, record) {
            let (kind, at) = (own.kind, own.payload_at as usize);
            let payload = &self.tx.payloads[at..][..layout.payload_words];
            return Ok((kind == Kind::Put).then(|| layout.value(payload)));
        }
        let mut row = std::mem::take(&mut self.row);
        row.clear();
        let seen = self.see(table, record, Some(&mut row));
        self.row = row;
        Ok(if seen?.content == 0 { None } else { Some(layout.value(&self.row)) })
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
            let number = usize::from(table.0);
            if N::DATA_ON_DEVICE {
                self.shared.charge_index(&mut self.port, number, &low);
            }
            if !self.shared.tables[number].index.scan(self.worker, range, &mut found) {
                let what = format!("table {} is not ordered and cannot be scanned", table.0);
                break Err(Error::Broken(what).into());
            }
            self.tx.nodes.extend(found.seen.map(|seen| (table, seen)));
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
        self.write(table, key, Some(value), false)?;
        Ok(())
    }

    fn update(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<bool, Stop> {
        self.write(table, key, Some(value), true)
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
        self.write(table, key, None, true)
    }
}

impl<D: Device, N: Design> Session for DbxSession<D, N> {
    fn begin(&mut self) {
        self.shared.grace.enter(self.worker);
        if N::SNAPSHOTS {
            self.begin_snapshot();
        }
    }

    fn commit(&mut self) -> Result<u64, Stop> {
        let place = if N::SNAPSHOTS { self.commit_snapshot()? } else { self.commit_now()? };
        self.end()?;
        Ok(place)
    }

    fn give_up(&mut self) -> Result<u64, Stop> {
        self.tx.writes.clear();
        self.commit()
    }

    fn roll_back(&mut self) {
        // An engine that fails here fails in the next transaction, too.
        let _ = self.end();
    }

    fn durable(&self) -> u64 {
        let Some(group) = &self.shared.group else { return u64::MAX };
        let durable = group.durable();
        let may_go = self.waiting.partition_point(|(_, epoch)| *epoch <= durable);
        match may_go {
            all if all == self.waiting.len() => u64::MAX,
            0 => 0,
            some => self.waiting[some - 1].0,
        }
    }

    fn finish(&mut self) -> Result<()> {
        match (&self.shared.group, self.waiting.back()) {
            (Some(group), Some((_, epoch))) => group.wait_for(*epoch),
            _ => Ok(()),
        }
    }

    fn snapshot(&self) -> Option<u64> {
        N::SNAPSHOTS.then(|| place_behind(self.own.snapshot))
    }

    fn take_counters(&mut self) -> Counters {
        let mut counters = self.port.take_counters();
        if let (Some(group), 0) = (&self.shared.group, self.worker) {
            counters.add(&group.take_counters());
        }
        counters
    }

    fn count(&self) -> Counts {
        self.counts
    }
}

impl<D: Device, N: Design> Drop for DbxSession<D, N> {
    fn drop(&mut self) {
        let pools = std::mem::take(&mut self.pools);
        let writer = std::mem::replace(&mut self.writer, Writer::new(self.worker as u64));
        let own = std::mem::take(&mut self.own);
        self.shared.leave(self.worker, Left { pools, writer, own });
    }
}
