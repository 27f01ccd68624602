//! What all callers of a life share: the database, its disk, clocks, and numbers for calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::{Duration, Instant};

use nvcaracal::Database;
use sim::disk::Disk;
use sim::history::Random;

use crate::items::Image;
use crate::program::{Act, LEDGER, PROCEDURES, WHATS, of_program};
use crate::records::{Content, Moment};

/// Longer than any life takes: who is not done by then waits for ever.
pub(crate) fn patience() -> Duration {
    let seconds = std::env::var("NVCARACAL_PATIENCE").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(60))
}

/// Does something on a thread of its own; the error is that it does not end.
pub(crate) fn begin<R: Send + 'static>(
    what: &'static str,
    run: impl FnOnce() -> R + Send + 'static,
) -> impl FnOnce() -> Result<R, String> {
    let (sender, receiver) = sync_channel(1);
    let handle = thread::spawn(move || drop(sender.send(run())));
    move || match receiver.recv_timeout(patience()) {
        Ok(result) => Ok(result),
        Err(_) if handle.is_finished() => Err(format!("{what} panicked")),
        Err(_) => Err(format!("{what} waits for ever")),
    }
}

/// The clock of the databases, which callers set.
static NOW_NS: AtomicU64 = AtomicU64::new(1 << 60);

/// What time it is.
pub(crate) fn now_ns() -> u64 {
    NOW_NS.fetch_add(1, Ordering::Relaxed)
}

/// What a case lets its callers do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Habits {
    /// Rows that there are.
    pub(crate) keys: u64,
    /// Longest arguments.
    pub(crate) filler: u64,
    /// Calls of a batch, at most.
    pub(crate) batch: u64,
    /// The program is the later one of two (`program.rs`).
    pub(crate) is_later: bool,
}

/// What callers share.
pub(crate) struct World {
    pub(crate) db: Database,
    pub(crate) disk: Option<Arc<Disk>>,
    pub(crate) habits: Habits,
    pub(crate) numbers: Arc<Numbers>,
}

/// Numbers over all lives of a case.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    ticks: AtomicU64,
    ids: AtomicU64,
    batches: AtomicU64,
}

impl Numbers {
    pub(crate) fn batch(&self) -> u64 {
        self.batches.fetch_add(1, Ordering::Relaxed)
    }
}

impl World {
    /// Now. The changes of the disk are counted first where something begins, so that it has made
    /// none of them.
    pub(crate) fn moment(&self) -> Moment {
        let changes = self.disk.as_ref().map_or(0, |disk| disk.changes());
        Moment { tick: self.numbers.ticks.fetch_add(1, Ordering::SeqCst), changes }
    }

    /// Any call.
    pub(crate) fn act(&self, random: &mut Random) -> Act {
        let Habits { keys, filler, is_later, .. } = self.habits;
        let bytes = if random.percent(30) { random.below(filler + 1) } else { 0 };
        Act {
            id: self.numbers.ids.fetch_add(1, Ordering::Relaxed),
            procedure: of_program(random.below(PROCEDURES), is_later),
            what: random.pick(&WHATS),
            a: random.below(keys),
            b: random.below(keys),
            keys,
            cents: random.below(20) as i64,
            filler: vec![7; bytes as usize],
        }
    }

    /// Sets the clock, forwards or back.
    pub(crate) fn set_clock(random: &mut Random) {
        let now = NOW_NS.load(Ordering::Relaxed);
        let by = random.below(1 << 40);
        let to = if random.percent(50) { now + by } else { now - by };
        NOW_NS.store(to, Ordering::Relaxed);
    }

    /// Everything that is in the database.
    pub(crate) fn content(&self) -> Result<Content, String> {
        let until = Instant::now() + patience();
        loop {
            match self.try_content() {
                Ok(content) => return Ok(content),
                // The snapshot has ended: calls that nobody waits for still run.
                Err(error) if error.is_limit() && Instant::now() < until => {}
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    fn try_content(&self) -> nvcaracal::Result<Content> {
        let snapshot = self.db.snapshot()?;
        let image = Image::read(&snapshot)?;
        let ledger = snapshot.range(LEDGER, ..).collect::<nvcaracal::Result<_>>()?;
        Ok(Content { image, ledger })
    }

    /// Waits until no call waits.
    pub(crate) fn wait_until_idle(&self) -> Result<(), String> {
        let until = Instant::now() + patience();
        while self.db.stats().queued_calls > 0 {
            if Instant::now() > until {
                return Err("calls wait for ever".into());
            }
            thread::yield_now();
        }
        Ok(())
    }
}
