//! One damaged store, opened.

use std::path::Path;
use std::sync::Arc;

use pmem::{AnyDevice, Device, DeviceError, File};
use storage::EndMark;

use super::edit::{Edit, damage};
use super::family::{Family, Files, Life, read_files, write_files};
use crate::disk::options;
use crate::history::{Random, info, to_calls};

/// How a damaged store ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// Not opened, and every byte as it was.
    Refused,
    /// At the last epoch that was answered.
    Recovered,
    /// At an older one, of which nothing that is left says so.
    Older,
}

/// What was done, and how it ended or what was wrong.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) edits: Vec<Edit>,
    pub(super) store: String,
    pub(super) end: Result<End, String>,
}

/// Damages a store of a family once or twice and opens it.
pub(super) fn run(family: &Family, random: &mut Random) -> Result<Case, String> {
    let life = &family.lives[0];
    let moment = &life.moments[random.below(life.moments.len() as u64) as usize];
    let mut files = moment.files.clone();
    let many = 1 + u64::from(random.percent(25));
    let edits: Vec<Edit> = (0..many).map(|_| damage(&mut files, family, random)).collect();
    // A file of the moment that replaced another may put the store at an earlier or later one.
    let dir = write_files(&files)?;
    let end = judge(dir.path(), family, life, &files, moment.epoch);
    let state = if moment.closed { "closed" } else { "killed" };
    let store = format!("{state} after epoch {}, {:?}", moment.epoch, family.setup);
    Ok(Case { edits, store, end })
}

fn judge(
    dir: &Path,
    family: &Family,
    life: &Life,
    files: &Files,
    answered: u64,
) -> Result<End, String> {
    let (mark, opened) = open(dir, family);
    let (device, mut engine) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            let now = read_files(dir)?;
            let changed = files.iter().find(|(name, bytes)| now.get(*name) != Some(bytes));
            return match changed {
                None => Ok(End::Refused),
                Some((name, _)) => Err(format!("{name} was changed by a refused open ({error})")),
            };
        }
    };
    let (epoch, hash) = (engine.epoch().0, engine.state_hash());
    let expected = life.hashes.get(epoch as usize).copied();
    if expected != Some(hash) {
        return Err(format!("recovered to epoch {epoch} with state {hash}, not {expected:?}"));
    }
    if epoch < answered && mark.is_some_and(|mark| mark > epoch) {
        return Err(format!("recovered to epoch {epoch}, though the end mark names {mark:?}"));
    }
    // It goes on, and what it goes on with is there at the next open.
    let outcome = engine.run_epoch(&to_calls(&[]), info(epoch + 1));
    outcome.map_err(|error| format!("it does not go on: {error}"))?;
    // Calls that were deferred have run.
    let hash = engine.state_hash();
    drop((engine, device));
    let again = open(dir, family).1.map_err(|error| format!("it does not open again: {error}"))?;
    if (again.1.epoch().0, again.1.state_hash()) != (epoch + 1, hash) {
        let (again, after) = (again.1.epoch().0, again.1.state_hash());
        return Err(format!("it opens again at epoch {again} with state {after}, not {hash}"));
    }
    Ok(if epoch < answered { End::Older } else { End::Recovered })
}

type Open = (Arc<AnyDevice>, engine::Engine);

/// The epoch that the end mark names, and the store, if it opens.
fn open(dir: &Path, family: &Family) -> (Option<u64>, Result<Open, String>) {
    let device: Result<File, DeviceError> = File::open(dir, &options());
    let device = match device {
        Ok(device) => AnyDevice::new(device),
        Err(error) => return (None, Err(error.to_string())),
    };
    let mark = device.mark().and_then(|_| EndMark::read(&device)).map(|mark| mark.epoch.0);
    let opened = family.setup.open(&device).map_err(|error| error.to_string());
    (mark, opened.map(|engine| (device, engine)))
}
