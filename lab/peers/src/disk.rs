//! The disk by itself.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

use crate::peer::{Error, Result};

/// Bytes that are made durable at once to compare with: about what a small update takes of a log.
pub(crate) const SYNC_BYTES: usize = 4096;
const SYNCS: usize = 300;

/// The median time that the disk takes to make a few bytes durable, in a file whose space is there.
pub(crate) fn fdatasync_ns(directory: &Path) -> Result<u64> {
    let path = directory.join("fdatasync");
    let failed = |error: std::io::Error| Error::of(&path.display().to_string(), error);
    let file = File::create(&path).map_err(failed)?;
    file.write_all_at(&vec![0; SYNC_BYTES * SYNCS], 0).map_err(failed)?;
    file.sync_all().map_err(failed)?;
    let mut times = Vec::with_capacity(SYNCS);
    for at in 0..SYNCS {
        let begun = Instant::now();
        file.write_all_at(&[1; SYNC_BYTES], (at * SYNC_BYTES) as u64).map_err(failed)?;
        file.sync_data().map_err(failed)?;
        times.push(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX));
    }
    times.sort_unstable();
    Ok(times[SYNCS / 2])
}

/// Whether a directory is in memory, where nothing is durable.
pub(crate) fn is_memory(directory: &Path) -> bool {
    const TMPFS: i64 = 0x0102_1994;
    rustix::fs::statfs(directory).is_ok_and(|fs| fs.f_type == TMPFS)
}
