//! A small run with several snapshots, growth and log writes, and what must be left of it.

use std::path::Path;
use std::sync::Arc;

use pmem::{Device, DeviceError, DiskHook, EpochNumber, File, FileOptions, PAGE_BYTES, PortState};

pub(crate) const IMAGE_LIMIT_BYTES: u64 = 1 << 20;
pub(crate) const LOG_LIMIT_BYTES: u64 = 1 << 20;
/// Snapshots of the scenario, in order. Numbers may have gaps.
pub(crate) const EPOCHS: [u64; 5] = [3, 4, 7, 8, 20];

/// A directory in memory if the system has one: these tests make thousands of syncs.
pub(crate) fn fast_dir() -> tempfile::TempDir {
    let shm = Path::new("/dev/shm");
    if shm.is_dir() { tempfile::tempdir_in(shm).unwrap() } else { tempfile::tempdir().unwrap() }
}

pub(crate) fn options(hook: Option<Arc<dyn DiskHook>>) -> FileOptions {
    FileOptions { hook, ..FileOptions::new(IMAGE_LIMIT_BYTES, LOG_LIMIT_BYTES) }
}

pub(crate) fn open(dir: &Path) -> Result<File, DeviceError> {
    File::open(dir, &options(None))
}

/// Bytes of the image in use before a snapshot.
pub(crate) fn image_bytes(epoch: u64) -> u64 {
    if epoch < 7 { 6 * PAGE_BYTES } else { 11 * PAGE_BYTES }
}

/// Stores made for one snapshot: some in pages that every snapshot changes, some across pages.
fn stores(epoch: u64) -> Vec<(u64, Vec<u8>)> {
    let last = image_bytes(epoch) - 16;
    let mut stores = vec![
        (0, epoch.to_le_bytes().to_vec()),
        (PAGE_BYTES * (1 + epoch % 4) - 100, vec![epoch as u8; 200]),
        (last, vec![epoch as u8; 16]),
    ];
    if epoch == 8 {
        stores.clear(); // A snapshot without changes.
    }
    stores
}

/// The whole image as it was at a snapshot.
pub(crate) fn image_at(epoch: Option<u64>) -> Vec<u8> {
    let mut image = vec![0; IMAGE_LIMIT_BYTES as usize];
    for made in EPOCHS.into_iter().take_while(|made| Some(*made) <= epoch) {
        for (offset, bytes) in stores(made) {
            image[offset as usize..][..bytes.len()].copy_from_slice(&bytes);
        }
    }
    image
}

/// What a run made durable before it ended or failed.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Progress {
    /// The newest snapshot that the device said is durable.
    pub(crate) saved: Option<u64>,
    /// The newest log record that was synced.
    pub(crate) logged: Option<u64>,
}

fn log_record(epoch: u64) -> Vec<u8> {
    vec![epoch as u8; 700]
}

fn log_offset(epoch: u64) -> u64 {
    epoch * 1000
}

/// Accepts what was opened and runs all snapshots from `from` on; stops at the first error.
pub(crate) fn run(
    device: &File,
    from: Option<u64>,
    progress: &mut Progress,
) -> Result<(), DeviceError> {
    let mut port = PortState::default();
    device.accept()?;
    for epoch in EPOCHS.into_iter().filter(|epoch| Some(*epoch) > from) {
        device.grow_image(image_bytes(epoch))?;
        device.grow_log((log_offset(epoch) + 1000).next_multiple_of(4 * PAGE_BYTES))?;
        device.log_write(&mut port, log_offset(epoch), &log_record(epoch))?;
        device.log_sync()?;
        progress.logged = Some(epoch);
        for (offset, bytes) in stores(epoch) {
            // SAFETY: the run owns the device.
            unsafe { device.store_bytes(&mut port, offset, &bytes) };
        }
        for part in 0..3 {
            device.snapshot_part(part, 3)?;
        }
        device.snapshot_commit(EpochNumber(epoch))?;
        // Every other snapshot goes on in the background while the next one is collected.
        if epoch % 2 == 0 {
            device.settle()?;
        }
        progress.saved = device.snapshot_epoch().map(|epoch| epoch.0);
    }
    device.settle()?;
    progress.saved = device.snapshot_epoch().map(|epoch| epoch.0);
    Ok(())
}

/// Checks that a device holds exactly what it says it holds.
pub(crate) fn check(device: &File, what: &str) -> Option<u64> {
    let epoch = device.snapshot_epoch().map(|epoch| epoch.0);
    let usable = device.image_bytes();
    if let Some(epoch) = epoch {
        assert!(EPOCHS.contains(&epoch), "{what}: snapshot {epoch} was never made");
        assert!(usable >= image_bytes(epoch), "{what}: {usable} bytes at snapshot {epoch}");
    }
    // SAFETY: no thread stores.
    let image = unsafe { device.image().slice(0, usable) };
    let expected = image_at(epoch);
    let wrong = image.iter().zip(&expected).position(|(a, b)| a != b);
    assert_eq!(wrong, None, "{what}: first wrong byte of snapshot {epoch:?}");
    epoch
}

/// Checks that every record up to `logged` is in the log.
pub(crate) fn check_log(device: &File, logged: Option<u64>, what: &str) {
    for epoch in EPOCHS.into_iter().filter(|epoch| Some(*epoch) <= logged) {
        let mut record = log_record(0);
        device.log_read(log_offset(epoch), &mut record).unwrap();
        assert_eq!(record, log_record(epoch), "{what}: log record of {epoch}");
    }
}
