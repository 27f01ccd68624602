//! The records that one worker gives out, and the clock that takes those back which are not used.
//!
//! A worker owns whole blocks of records. What it may give out is in its list; a record that was
//! removed from the index goes there once no transaction can know it any more. Where rows are
//! cached and the cache is full, the worker's hand goes round its blocks between transactions: a
//! record that was used since its last visit stays, another one is removed from the index, which
//! then leads to the row's slot. There is always room for a transaction that runs: it may go beyond
//! the limit.

use std::sync::atomic::Ordering;

use pmem::Device;

use super::records::{BLOCK_RECORDS, Version};
use super::shared::{Shared, Steps, place_of};
use super::versions::Links;
use crate::error::{Error, Result};
use crate::grace::Limbo;

/// Records that a worker wants to have at hand when a transaction begins.
const RESERVE: usize = 256;
/// Records that the hand visits at most between two transactions.
const VISITS: usize = 512;

/// Transactions of a worker between two looks at what it deleted.
const CALLS_BETWEEN_DROPS: u64 = 16;

/// See the module's documentation.
pub(super) struct Pool {
    tables: Box<[TablePool]>,
    pub(super) evictions: u64,
    calls: u64,
}

#[derive(Default)]
struct TablePool {
    free: Vec<u32>,
    limbo: Limbo<u32>,
    /// First records of the worker's blocks.
    blocks: Vec<u32>,
    hand: usize,
    links: Vec<u64>,
    links_limbo: Limbo<u64>,
    /// Records of rows that were deleted, as they were then.
    deleted: Limbo<(u32, Version)>,
    /// Blocks that the worker got though the cache was full.
    blocks_beyond: usize,
    payload: Vec<u64>,
}

impl Pool {
    pub(super) fn new(tables: usize) -> Self {
        let tables = (0..tables).map(|_| TablePool::default()).collect();
        Self { tables, evictions: 0, calls: 0 }
    }

    /// A record that stands for no row.
    pub(super) fn take<D: Device, P: Steps<D>>(
        &mut self,
        shared: &Shared<D, P>,
        table: usize,
    ) -> Result<u32> {
        let pool = &mut self.tables[table];
        if let Some(record) = pool.free.pop() {
            return Ok(record);
        }
        let unknown = shared.grace.unknown_before();
        while let Some(record) = pool.limbo.pop_before(unknown) {
            pool.free.push(record);
        }
        if pool.free.is_empty() {
            let records = &shared.tables[table].records;
            let bytes = records.block_bytes();
            let cached = shared.cached_bytes.0.fetch_add(bytes, Ordering::Relaxed) + bytes;
            pool.blocks_beyond += usize::from(P::CACHES && cached > shared.options.cache_bytes);
            let full = || Error::Limit("a table has more rows than records".into());
            let first = records.add_block().ok_or_else(full)?;
            pool.blocks.push(first);
            pool.free.extend((first..first + BLOCK_RECORDS).rev());
        }
        Ok(pool.free.pop().expect("a block has records"))
    }

    /// Takes back a record that no other thread got to know.
    pub(super) fn give_back(&mut self, table: usize, record: u32) {
        self.tables[table].free.push(record);
    }

    /// Takes back a record that is in no index any more.
    pub(super) fn retire<D: Device, P: Steps<D>>(
        &mut self,
        shared: &Shared<D, P>,
        table: usize,
        record: u32,
    ) {
        self.tables[table].limbo.push(&shared.grace, record);
    }

    /// A link that is in no chain.
    pub(super) fn take_link<D: Device, P: Steps<D>>(
        &mut self,
        shared: &Shared<D, P>,
        table: usize,
        links: &Links,
    ) -> Result<u64> {
        let pool = &mut self.tables[table];
        if let Some(link) = pool.links.pop() {
            return Ok(link);
        }
        let unknown = shared.grace.unknown_before();
        while let Some(link) = pool.links_limbo.pop_before(unknown) {
            pool.links.push(link);
        }
        if pool.links.is_empty() {
            pool.links.extend(links.add_block()?.rev());
        }
        Ok(pool.links.pop().expect("a block has links"))
    }

    /// The version of a link has a newer one.
    pub(super) fn retire_link<D: Device, P: Steps<D>>(
        &mut self,
        shared: &Shared<D, P>,
        table: usize,
        link: u64,
    ) {
        self.tables[table].links_limbo.push(&shared.grace, link);
    }

    /// A row was deleted. Its key stays in the index as long as a transaction may want an old
    /// version.
    pub(super) fn retire_deleted<D: Device, P: Steps<D>>(
        &mut self,
        shared: &Shared<D, P>,
        table: usize,
        record: u32,
        version: Version,
    ) {
        self.tables[table].deleted.push(&shared.grace, (record, version));
    }

    /// Takes the keys of rows out of indexes that were deleted long ago.
    fn drop_deleted<D: Device, P: Steps<D>>(&mut self, shared: &Shared<D, P>, worker: usize) {
        let unknown = shared.grace.unknown_before();
        for (table, pool) in self.tables.iter_mut().enumerate() {
            while let Some((number, version)) = pool.deleted.pop_before(unknown) {
                let Shared { tables, heap, .. } = shared;
                let record = tables[table].records.get(number);
                // Unless the row is inserted again.
                if record.try_lock(version) {
                    pool.payload.clear();
                    record.copy_payload(&mut pool.payload);
                    let key = heap.layouts[table].key(&pool.payload);
                    tables[table].index.remove(worker, key, place_of(number));
                    record.set_version(Version::GONE);
                    pool.limbo.push(&shared.grace, number);
                }
            }
        }
    }

    /// Makes room for the next transaction, if the cache is full. No transaction of this worker
    /// runs.
    pub(super) fn refill<D: Device, P: Steps<D>>(&mut self, shared: &Shared<D, P>, worker: usize) {
        self.calls += 1;
        if P::SNAPSHOTS && self.calls.is_multiple_of(CALLS_BETWEEN_DROPS) {
            self.drop_deleted(shared, worker);
        }
        for (table, pool) in self.tables.iter_mut().enumerate() {
            let wanted = pool.wanted();
            if pool.free.len() >= wanted {
                continue;
            }
            let unknown = shared.grace.unknown_before();
            while let Some(record) = pool.limbo.pop_before(unknown) {
                pool.free.push(record);
            }
            // What is on its way to the list counts, or everything would be removed while another
            // worker's transaction runs.
            if pool.free.len() + pool.limbo.len() < wanted {
                self.evictions += pool.turn(shared, table, worker);
                shared.grace.tick();
            }
        }
    }
}

impl TablePool {
    /// How many records must be free: as many as the worker has beyond the limit, but for some that
    /// every table may have.
    fn wanted(&self) -> usize {
        let (block, all) = (BLOCK_RECORDS as usize, self.blocks.len() * BLOCK_RECORDS as usize);
        match self.blocks_beyond {
            0 => 0,
            beyond => (beyond * block).min(all + RESERVE - block).max(RESERVE),
        }
    }

    /// The hand goes on; how many records it took out.
    fn turn<D: Device, P: Steps<D>>(
        &mut self,
        shared: &Shared<D, P>,
        table: usize,
        worker: usize,
    ) -> u64 {
        let mut evicted = 0;
        let all = self.blocks.len() * BLOCK_RECORDS as usize;
        for _ in 0..VISITS.min(all) {
            self.hand = (self.hand + 1) % all;
            let block = self.blocks[self.hand / BLOCK_RECORDS as usize];
            let record = block + self.hand as u32 % BLOCK_RECORDS;
            if self.evict(shared, table, worker, record) {
                self.limbo.push(&shared.grace, record);
                evicted += 1;
                if evicted == RESERVE as u64 {
                    break;
                }
            }
        }
        evicted
    }

    /// Lets the index lead to the row's slot, unless the record was used.
    fn evict<D: Device, P: Steps<D>>(
        &mut self,
        shared: &Shared<D, P>,
        table: usize,
        worker: usize,
        number: u32,
    ) -> bool {
        let Shared { tables, heap, .. } = shared;
        let record = tables[table].records.get(number);
        let version = record.version();
        if version.is_locked() || version.is_dead() || version.is_absent() || record.take_used() {
            return false;
        }
        if !record.try_lock(version) {
            return false;
        }
        self.payload.clear();
        record.copy_payload(&mut self.payload);
        let key = heap.layouts[table].key(&self.payload);
        let is_out = tables[table].index.swap(worker, key, place_of(number), record.slot().0);
        record.set_version(if is_out { Version::GONE } else { version });
        is_out
    }
}
