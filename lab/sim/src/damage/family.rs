//! A few stores at several moments of their lives: what damage is done to.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use pmem::AnyDevice;
use storage::StateHash;
use tempfile::TempDir;

use crate::disk::{fast_dir, open_device};
use crate::history::{Mix, Random, Setup, batch, info, to_calls};

/// The files of a store at a moment.
pub(super) type Files = BTreeMap<String, Vec<u8>>;

/// A store as it was at a moment, and what was answered until then.
#[derive(Debug)]
pub(super) struct Moment {
    pub(super) files: Files,
    /// The last epoch that was answered.
    pub(super) epoch: u64,
    /// Whether it was closed; else it is what a killed process leaves.
    pub(super) closed: bool,
}

/// A store's life.
#[derive(Debug)]
pub(super) struct Life {
    pub(super) moments: Vec<Moment>,
    /// The state after each epoch, from 0.
    pub(super) hashes: Vec<StateHash>,
}

/// Two stores of one setup.
#[derive(Debug)]
pub(super) struct Family {
    pub(super) setup: Setup,
    pub(super) lives: [Life; 2],
}

impl Family {
    pub(super) fn random(random: &mut Random) -> Result<Self, String> {
        let mut setup = Setup::random(random);
        setup.state_hash = true;
        setup.segment_bytes = random.pick(&[16 << 10, 64 << 10]);
        setup.row_bytes = Setup::default().row_bytes;
        let lives = [live(&setup, random)?, live(&setup, random)?];
        Ok(Self { setup, lives })
    }
}

/// The files of a directory.
pub(super) fn read_files(dir: &Path) -> Result<Files, String> {
    let wrong = |error: std::io::Error| format!("{}: {error}", dir.display());
    let mut files = Files::new();
    for entry in fs::read_dir(dir).map_err(wrong)? {
        let path = entry.map_err(wrong)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        files.insert(name, fs::read(&path).map_err(wrong)?);
    }
    Ok(files)
}

/// Puts files into a new directory.
pub(super) fn write_files(files: &Files) -> Result<TempDir, String> {
    let dir = fast_dir()?;
    for (name, bytes) in files {
        fs::write(dir.path().join(name), bytes).map_err(|error| format!("{name}: {error}"))?;
    }
    Ok(dir)
}

/// Runs a store through a few epochs, and takes its files on the way and at the end.
fn live(setup: &Setup, random: &mut Random) -> Result<Life, String> {
    let dir = fast_dir()?;
    let device: Arc<AnyDevice> = open_device(dir.path(), None)?;
    let open = |device| setup.open(device).map_err(|error| format!("first open: {error}"));
    let mut engine = open(&device)?;
    let mut life = Life { moments: Vec::new(), hashes: vec![engine.state_hash()] };
    let mix = Mix { keys: random.pick(&[6, 20]), long_values: random.percent(70), lookups: 10 };
    let epochs = 6 + random.below(10);
    for epoch in 1..=epochs {
        let calls = 1 + random.below(12);
        let calls = to_calls(&batch(random, &mix, calls));
        let outcome = engine.run_epoch(&calls, info(epoch));
        outcome.map_err(|error| format!("epoch {epoch}: {error}"))?;
        life.hashes.push(engine.state_hash());
        if epoch == epochs || random.percent(40) {
            // Nothing runs but perhaps the writer of an image snapshot, which would tear the copy.
            pmem::Device::settle(device.as_ref()).map_err(|error| error.to_string())?;
            life.moments.push(Moment { files: read_files(dir.path())?, epoch, closed: false });
        }
    }
    engine.close().map_err(|error| format!("close: {error}"))?;
    drop(device);
    life.moments.push(Moment { files: read_files(dir.path())?, epoch: epochs, closed: true });
    Ok(life)
}
