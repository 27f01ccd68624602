//! Group commit: a thread that writes the log (section 2.1 of the paper).
//!
//! Transactions belong to *epochs*. One that ends
//!
//! 1. announces the epoch that runs,
//! 2. goes through its region,
//! 3. puts its record into the buffer of its worker and epoch, and takes back its announcement.
//!
//! The thread begins the next epoch, waits until no worker announces the old one, takes what is in
//! the old one's buffers, and writes it as one record. When that is durable all transactions of the
//! epoch may be answered, those that wrote nothing, too.
//!
//! A transaction that depends on another one announces its epoch after the other has, so the
//! other's epoch is not later. The paper has a transaction take its epoch when it begins; then it
//! may read, while it runs, what one of the next epoch wrote, and become durable before it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use pmem::{Counters, Device, Port};

use super::log::{Log, Writer};
use crate::error::{Error, Result};
use crate::grace::Padded;
use crate::pause;

/// The writer of groups.
pub(super) const WRITER: u64 = u64::MAX - 1;
/// Announced by a worker whose transaction does not end.
const NONE: u64 = u64::MAX;

/// Records of one worker's transactions, by the last bit of the epoch.
#[derive(Default)]
struct Buffer {
    entries: [Vec<u64>; 2],
    longest: usize,
}

/// What was asked of the thread.
#[derive(Default)]
struct Asked {
    /// An epoch that must end.
    epoch: u64,
    stops: bool,
}

/// See the module's documentation.
pub(super) struct Group {
    epoch: Padded<AtomicU64>,
    durable: Padded<AtomicU64>,
    announced: Box<[Padded<AtomicU64>]>,
    buffers: Box<[Padded<Mutex<Buffer>>]>,
    /// How long an epoch runs if nothing ends it earlier; `None`: without end.
    length: Option<Duration>,
    asked: Mutex<Asked>,
    wakes: Condvar,
    ended: Condvar,
    failed: AtomicBool,
    /// Why.
    failure: Mutex<String>,
    /// What went through the thread's port.
    counters: Mutex<Counters>,
}

impl Group {
    pub(super) fn new(workers: usize, length_us: u64) -> Self {
        Self {
            epoch: Padded(AtomicU64::new(1)),
            durable: Padded::default(),
            announced: (0..workers).map(|_| Padded(AtomicU64::new(NONE))).collect(),
            buffers: (0..workers).map(|_| Padded::default()).collect(),
            length: (length_us > 0).then(|| Duration::from_micros(length_us)),
            asked: Mutex::default(),
            wakes: Condvar::new(),
            ended: Condvar::new(),
            failed: AtomicBool::new(false),
            failure: Mutex::default(),
            counters: Mutex::default(),
        }
    }

    /// Step 1; the epoch.
    pub(super) fn announce(&self, worker: usize) -> u64 {
        loop {
            let epoch = self.epoch.0.load(Ordering::SeqCst);
            self.announced[worker].0.store(epoch, Ordering::SeqCst);
            if self.epoch.0.load(Ordering::SeqCst) == epoch {
                return epoch;
            }
        }
    }

    /// Step 3.
    pub(super) fn put(&self, worker: usize, epoch: u64, entries: &[u64], longest: usize) {
        if !entries.is_empty() {
            let mut buffer = crate::lock(&self.buffers[worker].0);
            buffer.entries[epoch as usize % 2].extend_from_slice(entries);
            buffer.longest = buffer.longest.max(longest);
        }
        self.announced[worker].0.store(NONE, Ordering::Release);
    }

    /// The newest epoch whose transactions may be answered.
    pub(super) fn durable(&self) -> u64 {
        self.durable.0.load(Ordering::Acquire)
    }

    /// What the thread did since it was asked last.
    pub(super) fn take_counters(&self) -> Counters {
        std::mem::take(&mut *crate::lock(&self.counters))
    }

    /// Ends an epoch that runs.
    pub(super) fn ask(&self, epoch: u64) {
        let mut asked = crate::lock(&self.asked);
        asked.epoch = asked.epoch.max(epoch);
        self.wakes.notify_one();
    }

    /// Ends all epochs that have begun, and waits until they are durable.
    pub(super) fn end_all(&self) -> Result<()> {
        self.wait_for(self.epoch.0.load(Ordering::SeqCst))
    }

    /// Ends an epoch and waits until it is durable.
    pub(super) fn wait_for(&self, epoch: u64) -> Result<()> {
        self.ask(epoch);
        let mut asked = crate::lock(&self.asked);
        while self.durable() < epoch {
            self.check()?;
            if asked.stops {
                return Err(Error::Broken("the thread that writes the log has ended".into()));
            }
            asked = self.ended.wait(asked).unwrap_or_else(PoisonError::into_inner);
        }
        Ok(())
    }

    /// Whether the thread could write everything so far.
    pub(super) fn check(&self) -> Result<()> {
        if self.failed.load(Ordering::Acquire) {
            return Err(Error::Limit(crate::lock(&self.failure).clone()));
        }
        Ok(())
    }

    /// The thread's end, without another group.
    pub(super) fn stop(&self) {
        crate::lock(&self.asked).stops = true;
        self.wakes.notify_one();
    }

    /// Runs the thread.
    pub(super) fn run<D: Device>(&self, device: Arc<D>, log: &Log<D>) {
        let mut port = Port::new(device, self.announced.len() as u32 + 1);
        let mut writer = Writer::new(WRITER);
        while self.wait() {
            let ended = self.end_epoch(&mut port, log, &mut writer);
            crate::lock(&self.counters).add(&port.take_counters());
            if let Err(error) = ended {
                *crate::lock(&self.failure) = error.to_string();
                self.failed.store(true, Ordering::Release);
            }
            // Under the lock: one who waits has looked before, or looks behind this.
            drop(crate::lock(&self.asked));
            self.ended.notify_all();
            if self.failed.load(Ordering::Acquire) {
                return;
            }
        }
        self.ended.notify_all();
    }

    /// Waits until the epoch shall end; false if the thread shall.
    fn wait(&self) -> bool {
        let epoch = self.epoch.0.load(Ordering::SeqCst);
        let asked = crate::lock(&self.asked);
        let goes_on = |asked: &mut Asked| !asked.stops && asked.epoch < epoch;
        let asked = match self.length {
            Some(length) => {
                let waited = self.wakes.wait_timeout_while(asked, length, goes_on);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
            None => {
                let waited = self.wakes.wait_while(asked, goes_on);
                waited.unwrap_or_else(PoisonError::into_inner)
            }
        };
        !asked.stops
    }

    /// Ends the running epoch.
    fn end_epoch<D: Device>(
        &self,
        port: &mut Port<D>,
        log: &Log<D>,
        writer: &mut Writer,
    ) -> Result<()> {
        let old = self.epoch.0.load(Ordering::SeqCst);
        self.epoch.0.store(old + 1, Ordering::SeqCst);
        for announced in &self.announced {
            let mut turns = 0;
            while announced.0.load(Ordering::SeqCst) <= old {
                pause(&mut turns);
            }
        }
        let (mut entries, mut longest) = (Vec::new(), 0);
        for buffer in &self.buffers {
            let mut buffer = crate::lock(&buffer.0);
            entries.append(&mut buffer.entries[old as usize % 2]);
            longest = longest.max(buffer.longest);
        }
        if !entries.is_empty() {
            writer.reserve(log, entries.len(), longest)?;
            writer.append(log, port, &entries)?;
            log.fence(port)?;
        }
        self.durable.0.store(old, Ordering::Release);
        Ok(())
    }
}
