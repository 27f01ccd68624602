//! Recovery: all logs are read, by all workers, and the newest version of each row counts (section
//! 3.1.3 refers to SiloR for it).
//!
//! A deleted row leaves a record without content until everything has been read: an older entry of
//! its key may come later. Versions are even again, and grow from where they were.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use pmem::{Counters, Device, Port};
use workloads::TableSpec;

use super::design::{Design, Durable};
use super::log::{Entry, Opened, entries};
use super::shared::{Left, Shared, fingerprint};
use super::tables::{Pool, Redo};
use crate::error::{Error, Result};
use crate::rival::{Fault, Options, RecoveryReport, RegionCounts};
use crate::run::calls::on_workers;

/// What one worker read.
#[derive(Default)]
struct Part {
    versions: u64,
    cut: u64,
    /// Largest version of any row.
    newest: u64,
    counters: Counters,
}

/// Reads what is on the device.
pub(super) fn recover<D: Device, N: Design>(
    device: Arc<D>,
    specs: &[TableSpec],
    options: &Options,
) -> Result<(Shared<D, N>, RecoveryReport)> {
    if N::DURABLE == Durable::Never {
        return Err(Error::Broken(format!("{} keeps nothing to recover from", N::NAME)));
    }
    let start = Instant::now();
    let tables = fingerprint(specs, options);
    let opened = Opened::open(Arc::clone(&device), N::WAY, options.page_bytes, tables)?;
    let found = Instant::now();
    let Opened { log, chains, segments } = opened;
    let shared = Shared::<D, N>::new(device, specs, Some(log), options)?;
    let next = AtomicUsize::new(0);
    let parts = on_workers(options.workers, |worker| {
        let mut part = Part::default();
        let mut port = Port::new(Arc::clone(&shared.device), worker as u32 + 1);
        let Left { mut pools, writer, own } = shared.take_left(worker);
        while let Some(chain) = chains.get(next.fetch_add(1, Ordering::Relaxed)) {
            let Some(log) = &shared.log else { break };
            let trusts = options.has(Fault::NoChecksum);
            let cut = log.read_chain(&mut port, chain, trusts, &mut |record| {
                redo(&shared, worker, &mut pools, record, &mut part)
            })?;
            part.cut += cut;
        }
        part.counters = port.take_counters();
        shared.leave(worker, Left { pools, writer, own });
        Ok(part)
    })?;
    let built = Instant::now();
    let newest = parts.iter().map(|part| part.newest).max().unwrap_or(0);
    shared.snapshots.start_behind(newest);
    let rows = AtomicU64::new(0);
    for table in &shared.tables {
        table.raise_floor(newest);
        let mut payload = Vec::new();
        table.index.for_each(|_, place| {
            let is_there = table.read_alone(place as u32, &mut payload);
            rows.fetch_add(u64::from(is_there), Ordering::Relaxed);
        });
    }
    let mut report = RecoveryReport {
        pages: segments,
        versions: parts.iter().map(|part| part.versions).sum(),
        rows: rows.into_inner(),
        uncommitted: parts.iter().map(|part| part.cut).sum(),
        find_committed_ns: (found - start).as_nanos() as u64,
        build_ns: (built - found).as_nanos() as u64,
        finish_ns: built.elapsed().as_nanos() as u64,
        ..RecoveryReport::default()
    };
    parts.iter().for_each(|part| report.counters.add(&part.counters));
    Ok((shared, report))
}

/// Puts the rows of a log record into their places, if they are newer than what is there.
fn redo<D: Device, N: Design>(
    shared: &Shared<D, N>,
    worker: usize,
    pools: &mut [Pool],
    record: &[u64],
    part: &mut Part,
) -> Result<()> {
    let Shared { tables, grace, regions, .. } = shared;
    let corrupt = || Error::Corrupt("a log record has an impossible entry".into());
    let mut counts = RegionCounts::default();
    let mut whole = Vec::new();
    for entry in entries(record) {
        let Entry { table: number, version, is_deleted, payload } = entry.ok_or_else(corrupt)?;
        let table = tables.get(number).ok_or_else(corrupt)?;
        let pool = &mut pools[number];
        whole.clear();
        whole.extend_from_slice(payload);
        whole.resize(table.layout.payload_words.max(payload.len()), 0);
        if payload.len() > table.layout.payload_words || !table.layout.is_possible(&whole) {
            return Err(corrupt());
        }
        let key = table.layout.key(&whole);
        let place = loop {
            if let Ok(place) = table.index.get(worker, key) {
                break place as u32;
            }
            let (record, _) = pool.take_record(table, grace)?;
            match table.index.insert(worker, key, u64::from(record)) {
                Ok(_) => break record,
                Err(_) => pool.give_back_record(record),
            }
        };
        let content = match is_deleted {
            true => 0,
            false => pool.take_content(table, grace, &whole)?,
        };
        let mut redo = Redo { record: table.record(place), version, content };
        // No other thread reads contents now, so that what is left over can be used at once.
        if let Some(ended) = regions.run(&mut counts, &mut redo) {
            pool.give_back_content(ended.output);
        }
        if is_deleted {
            pool.note_absent(grace, place, version, key);
        }
        part.versions += 1;
        part.newest = part.newest.max(version);
    }
    Ok(())
}
