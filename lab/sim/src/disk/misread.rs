//! Disks that return other bytes than were written: an open fails and says why, or the state is
//! right; never another state, never a panic (O-48, O-54).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use engine::EngineError;
use pmem::{AnyDevice, DiskFile, File};

use super::contents::{Arrival, DiskContents};
use super::hook::{BAD_READ_KINDS, BadRead, BadReadKind, Lab};
use super::recover::{recover, run_on};
use super::report::{Options, Report};
use super::story::{Progress, Recording, Story, fast_dir};
use crate::history::{Pair, Random};

/// Opens what a cut left with bad reads.
pub(crate) fn explore_reads(
    story: &Story,
    recording: &Recording,
    random: &mut Random,
    options: &Options,
    report: &mut Report,
) -> Result<(), String> {
    if !story.setup.state_hash {
        // A sector of another moment or place is found by nothing else.
        return Ok(());
    }
    for _ in 0..options.bad_reads {
        let (at, progress, contents) = match random.below(3) {
            0 => recording.cut_before_root(random),
            _ => recording.any_cut(random),
        };
        if !progress.opened {
            continue;
        }
        let how = random.pick(&BAD_READ_KINDS);
        let left = contents.cut(Arrival::Everything);
        let donor = if how == BadReadKind::Earlier {
            let earlier = random.below(at as u64 + 1) as usize;
            Progress::after(&recording.events[..earlier]).1.cut(Arrival::Everything)
        } else {
            left.clone()
        };
        let reads = list_reads(story, &left)?;
        let bad = BadRead { at: any_read(&reads, random), how, seed: random.word(), donor };
        let text = format!("{how:?} in read {} of {} after {at} calls", bad.at, reads.len());
        one_read(story, progress, &left, bad, random, report)
            .map_err(|error| format!("{text}, {:?}: {error}", story.setup))?;
    }
    Ok(())
}

/// Any of the reads; half of the time one of the page table, which has few.
fn any_read(reads: &[DiskFile], random: &mut Random) -> u64 {
    let table = |read: &u64| reads[*read as usize] == DiskFile::Table;
    let of_table: Vec<u64> = (0..reads.len() as u64).filter(table).collect();
    match of_table.is_empty() || random.percent(50) {
        true => random.below(reads.len().max(1) as u64),
        false => random.pick(&of_table),
    }
}

/// The file of each read of an open.
fn list_reads(story: &Story, left: &DiskContents) -> Result<Vec<DiskFile>, String> {
    let dir = fast_dir()?;
    left.write_to(dir.path()).map_err(|error| error.to_string())?;
    let lab = Lab::recording();
    let device = super::story::open_device(dir.path(), Some(lab.clone()))?;
    story.setup.open(&device).map_err(|error| format!("open: {error}"))?;
    Ok(lab.reads())
}

/// How an open ended that the caller may look at.
enum Opening {
    Open(Box<Pair>),
    Refused,
}

fn one_read(
    story: &Story,
    progress: Progress,
    left: &DiskContents,
    bad: BadRead,
    random: &mut Random,
    report: &mut Report,
) -> Result<(), String> {
    let dir = fast_dir()?;
    left.write_to(dir.path()).map_err(|error| error.to_string())?;
    let lab = Lab::misreading(bad);
    report.bad_reads += 1;
    let opened = catch_unwind(AssertUnwindSafe(|| open(story, progress, &dir, left, &lab)));
    let opened = opened.map_err(|_| "the open panicked".to_string())??;
    if !lab.read_changed() {
        report.unchanged_reads += 1;
    }
    match opened {
        Opening::Refused => {
            report.refused_opens += 1;
            // The disk itself is well, and a refused open changes nothing.
            recover(dir.path(), story, progress, random)
                .map_err(|error| format!("after a refused open: {error}"))?;
        }
        Opening::Open(mut pair) => {
            if pair.model.epoch < progress.answered {
                report.older_states += 1;
            }
            let on = catch_unwind(AssertUnwindSafe(|| run_on(&mut pair, random, 10)));
            on.map_err(|_| "running on panicked".to_string())??;
        }
    }
    Ok(())
}

fn open(
    story: &Story,
    progress: Progress,
    dir: &tempfile::TempDir,
    left: &DiskContents,
    lab: &Arc<Lab>,
) -> Result<Opening, String> {
    let options = pmem::FileOptions { hook: Some(lab.clone()), ..super::story::options() };
    let device = match File::open(dir.path(), &options) {
        Ok(device) => AnyDevice::new(device),
        Err(error) => {
            let same = left.is_in(dir.path()).map_err(|error| error.to_string())?;
            let changed = || format!("a file was changed by an open that ended with: {error}");
            return if same { Ok(Opening::Refused) } else { Err(changed()) };
        }
    };
    match story.setup.open(&device) {
        Ok(engine) => {
            let epoch = engine.epoch().0;
            if epoch > progress.started {
                return Err(format!("epoch {epoch} was never begun"));
            }
            let pair = Pair::new(engine, story.models[epoch as usize].clone());
            pair.compare_state()?;
            Ok(Opening::Open(Box::new(pair)))
        }
        Err(EngineError::Poisoned(why)) => Err(format!("the open ended with a bug: {why}")),
        Err(_) => Ok(Opening::Refused),
    }
}
