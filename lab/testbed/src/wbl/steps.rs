//! Groups: when the versions of many transactions become durable together.
//!
//! A group ends when one worker has run enough transactions: it asks for the next *round*. Every
//! worker that runs transactions takes part in it once, between two of them:
//!
//! 1. It flushes what it wrote since the last round (its *dirty tuple table*) and fences.
//! 2. It tells its *low* timestamp: the last one that was given out then. Its transactions up to it
//!    are flushed, and all later ones get a larger one.
//!
//! A worker that finds that all have done so writes the group record: durable are all transactions
//! up to the smallest low. Workers go on meanwhile, none waits for another. A worker without a
//! session, or whose session has finished, has nothing to flush and does not take part.
//!
//! Invariant: a worker tells that it is running, with the last timestamp that was given out, before
//! its transactions get timestamps. So one that is not seen when a record is written gets larger
//! ones than the record's.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use pmem::{Device, Port};

use super::log::{Gap, Log};
use crate::error::{Error, Result};
use crate::grace::{Grace, Padded};
use crate::image::layout::Header;
use crate::memory::{prefetch_slot, store_words};
use crate::occ::{Between, Old, Putting, Steps, Write};
use crate::pause;
use crate::rival::Fault;
use crate::transaction::Kind;

/// Timestamps that may be given out before the next group record.
const PROMISED: u64 = 1 << 32;
/// What a worker tells that does not run transactions.
const RESTS: u64 = u64::MAX;
/// Transactions of a worker between two ticks of the clock for reuse.
const CALLS_BETWEEN_TICKS: u64 = 16;

/// What all workers know of groups.
pub struct WblSteps {
    log: Mutex<Log>,
    /// The newest round that was asked for.
    round: Padded<AtomicU64>,
    /// The newest round whose group record is durable.
    closed: Padded<AtomicU64>,
    /// By worker: the low timestamp that it told last.
    lows: Box<[Padded<AtomicU64>]>,
    /// By worker: the newest round that it took part in.
    rounds: Box<[Padded<AtomicU64>]>,
    durable: Padded<AtomicU64>,
    /// No transaction may get this timestamp or a later one.
    promised: Padded<AtomicU64>,
}

/// One worker's group.
#[derive(Debug, Default)]
pub struct WblLocal {
    /// Slots that were written in this group, with their bytes.
    dirty: Vec<(u64, u64)>,
    /// Versions that newer ones took the place of.
    old: VecDeque<Old>,
    is_running: bool,
    round: u64,
    calls_of_group: u64,
    calls: u64,
}

impl WblSteps {
    /// Steps for so many workers, over a log whose newest record says that everything up to `base`
    /// is durable.
    pub(super) fn new(log: Log, workers: usize) -> Self {
        let words = |value| (0..workers).map(|_| Padded(AtomicU64::new(value))).collect();
        let Gap { after, end } = log.newest();
        Self {
            log: Mutex::new(log),
            round: Padded(AtomicU64::new(1)),
            closed: Padded(AtomicU64::new(1)),
            lows: words(RESTS),
            rounds: words(0),
            durable: Padded(AtomicU64::new(after)),
            promised: Padded(AtomicU64::new(end)),
        }
    }

    /// A group record that says that everything up to `durable` is.
    pub(super) fn record(durable: u64) -> Gap {
        Gap { after: durable, end: durable + PROMISED }
    }

    /// The log, when everything is durable and no worker runs transactions.
    pub(super) fn log(&self) -> std::sync::MutexGuard<'_, Log> {
        crate::lock(&self.log)
    }

    /// Takes part in a round: steps 1 and 2.
    fn take_part<D: Device>(&self, at: &mut Between<'_, D>, own: &mut WblLocal) -> Result<()> {
        let round = self.round.0.load(Ordering::SeqCst);
        for (slot, bytes) in own.dirty.drain(..) {
            at.port.flush(slot, bytes);
        }
        if !at.options.has(Fault::NoFenceBeforeMark) {
            at.port.fence();
        }
        self.lows[at.worker].0.store(at.clock.load(Ordering::SeqCst), Ordering::SeqCst);
        self.rounds[at.worker].0.store(round, Ordering::SeqCst);
        own.round = round;
        own.calls_of_group = 0;
        self.close(at.port, at.clock, round)
    }

    /// Writes the group record of a round if all who run transactions took part in it.
    fn close<D: Device>(&self, port: &mut Port<D>, clock: &AtomicU64, round: u64) -> Result<()> {
        if self.closed.0.load(Ordering::Acquire) >= round {
            return Ok(());
        }
        // Before it is known who runs transactions, see the module's documentation.
        let mut durable = clock.load(Ordering::SeqCst);
        for (low, of_worker) in self.lows.iter().zip(&self.rounds) {
            let low = low.0.load(Ordering::SeqCst);
            if low != RESTS && of_worker.0.load(Ordering::SeqCst) < round {
                return Ok(());
            }
            durable = durable.min(low);
        }
        let mut log = crate::lock(&self.log);
        if self.closed.0.load(Ordering::Acquire) >= round {
            return Ok(());
        }
        // Another round may have got further.
        let durable = durable.max(log.newest().after);
        let group = Self::record(durable);
        log.append(port, group)?;
        self.promised.0.store(group.end, Ordering::SeqCst);
        self.durable.0.store(durable, Ordering::SeqCst);
        self.closed.0.store(round, Ordering::SeqCst);
        Ok(())
    }

    /// Asks for the next round, if the one before has ended.
    fn ask(&self) {
        let closed = self.closed.0.load(Ordering::SeqCst);
        // If it fails another worker asked for it.
        let _ =
            self.round.0.compare_exchange(closed, closed + 1, Ordering::SeqCst, Ordering::Relaxed);
    }

    /// Gives slots back whose versions no transaction needs, with what took their place being
    /// durable.
    fn reuse<D: Device>(&self, at: &mut Between<'_, D>, own: &mut WblLocal) {
        let durable = self.durable.0.load(Ordering::Acquire);
        let early = at.options.has(Fault::EarlyReuse);
        while let Some(old) = own.old.pop_front_if(|old| old.serial <= durable || early) {
            at.slots.give_back(usize::from(old.table.0), old.slot);
        }
    }
}

impl<D: Device> Steps<D> for WblSteps {
    type Local = WblLocal;
    const CACHES: bool = false;
    const SNAPSHOTS: bool = false;

    fn local(&self, _: usize) -> WblLocal {
        WblLocal::default()
    }

    fn begin(&self, clock: &AtomicU64, worker: usize, own: &mut WblLocal) {
        if !own.is_running {
            own.is_running = true;
            self.lows[worker].0.store(clock.load(Ordering::SeqCst), Ordering::SeqCst);
        }
    }

    fn put(&self, at: &mut Putting<'_, D>, own: &mut WblLocal, writes: &mut [Write]) -> Result<()> {
        if at.serial >= self.promised.0.load(Ordering::SeqCst) {
            let what = format!("timestamp {} is beyond what the last group promised", at.serial);
            return Err(Error::Broken(what));
        }
        for write in writes.iter_mut().filter(|write| write.needs_version()) {
            let table = usize::from(write.table.0);
            let layout = &at.heap.layouts[table];
            let slot = at.slots.take(at.heap, at.port, table)?;
            prefetch_slot(at.port, slot, layout.used_bytes());
            let header = Header::new(at.serial, at.worker, write.kind == Kind::Delete);
            write.versions.new = (slot, header);
            let payload = &at.payloads[write.payload_at as usize..][..layout.payload_words];
            // The header first, so that no key is ever found under that of another version.
            store_words(at.port, slot, &[header.0]);
            store_words(at.port, slot + 8, payload);
            own.dirty.push((slot, layout.used_bytes()));
        }
        Ok(())
    }

    fn retire(&self, _: &Grace, own: &mut WblLocal, old: Old) {
        own.old.push_back(old);
    }

    fn ended(&self, at: &mut Between<'_, D>, own: &mut WblLocal) -> Result<()> {
        own.calls += 1;
        own.calls_of_group += 1;
        if own.calls.is_multiple_of(CALLS_BETWEEN_TICKS) {
            at.grace.tick();
        }
        if own.calls_of_group >= at.options.group_calls {
            self.ask();
        }
        if own.round < self.round.0.load(Ordering::SeqCst) {
            self.take_part(at, own)?;
        }
        self.reuse(at, own);
        Ok(())
    }

    fn durable(&self) -> u64 {
        self.durable.0.load(Ordering::Acquire)
    }

    fn finish(&self, at: &mut Between<'_, D>, own: &mut WblLocal) -> Result<()> {
        let last = at.clock.load(Ordering::SeqCst);
        self.take_part(at, own)?;
        own.is_running = false;
        self.lows[at.worker].0.store(RESTS, Ordering::SeqCst);
        let mut turns = 0;
        while self.durable.0.load(Ordering::SeqCst) < last {
            self.ask();
            self.close(at.port, at.clock, self.round.0.load(Ordering::SeqCst))?;
            pause(&mut turns);
        }
        self.reuse(at, own);
        Ok(())
    }
}
