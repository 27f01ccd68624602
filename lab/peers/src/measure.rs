//! Measuring: callers on threads of their own, and the disk by itself.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::peer::{Error, Peer, Result, Settings};

/// What the callers of one database came to.
pub(crate) struct Measured {
    pub(crate) updates: u64,
    pub(crate) took: Duration,
    pub(crate) waited_ns: Histogram<u64>,
}

/// Digits of a time that are kept.
const DIGITS: u8 = 3;

fn histogram() -> Histogram<u64> {
    Histogram::new(DIGITS).expect("so many digits are allowed")
}

/// Lets callers update rows until the time is over.
pub(crate) fn measure(peer: &dyn Peer, settings: &Settings, clients: usize) -> Result<Measured> {
    let started = Instant::now();
    let until = started + settings.time;
    let results: Vec<Result<Histogram<u64>>> = std::thread::scope(|scope| {
        let callers: Vec<_> = (0..clients as u64)
            .map(|caller| scope.spawn(move || call(peer, settings.rows, caller, until)))
            .collect();
        callers.into_iter().map(|caller| caller.join().expect("callers do not panic")).collect()
    });
    let took = started.elapsed();
    let mut waited_ns = histogram();
    for result in results {
        waited_ns.add(result?).expect("they have the same digits");
    }
    Ok(Measured { updates: waited_ns.len(), took, waited_ns })
}

/// One caller; how long it waited each time.
fn call(peer: &dyn Peer, rows: u64, caller: u64, until: Instant) -> Result<Histogram<u64>> {
    let mut waited = histogram();
    let mut random = (caller + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    while Instant::now() < until {
        // The generator of Marsaglia: shifts and exclusive or.
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let begun = Instant::now();
        peer.update(random % rows)?;
        waited += u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
    }
    Ok(waited)
}

/// Bytes that are made durable at once to compare with: about what a small update takes of a log.
const BYTES: usize = 4096;
const SYNCS: usize = 300;

/// The median time that the disk takes to make a few bytes durable, in a file whose space is there.
pub(crate) fn fdatasync(directory: &Path) -> Result<u64> {
    let path = directory.join("fdatasync");
    let failed = |error: std::io::Error| Error::of(&path.display().to_string(), error);
    let file = File::create(&path).map_err(failed)?;
    file.write_all_at(&vec![0; BYTES * SYNCS], 0).map_err(failed)?;
    file.sync_all().map_err(failed)?;
    let mut times = histogram();
    for at in 0..SYNCS {
        let begun = Instant::now();
        file.write_all_at(&[1; BYTES], (at * BYTES) as u64).map_err(failed)?;
        file.sync_data().map_err(failed)?;
        times += u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
    }
    Ok(times.value_at_quantile(0.5))
}

/// Whether a directory is in memory, where nothing is durable.
pub(crate) fn is_memory(directory: &Path) -> bool {
    const TMPFS: i64 = 0x0102_1994;
    rustix::fs::statfs(directory).is_ok_and(|fs| fs.f_type == TMPFS)
}
