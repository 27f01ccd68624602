//! One row of the array on its device.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use pmem::{AnyDevice, Device, Emulated, File, FileOptions, Profile};

use super::{Chosen, choose};
use crate::crash::{Counts, Grown, Options, explore_case};
use crate::history::{Model, Pair, Setup, check_clean};

/// Limits of devices other than the crash device.
const IMAGE_BYTES: u64 = 64 << 20;
const LOG_BYTES: u64 = 8 << 20;

/// What rows came to.
#[derive(Debug, Default, Clone, Copy)]
pub struct Seen {
    /// Rows of the array.
    pub rows: u64,
    /// Images of power cuts and kills that were recovered.
    pub images: u64,
    /// Stores that were opened again on other devices.
    pub reopened: u64,
    /// Rows of tables at the end of each history, added up.
    pub left: u64,
}

/// Runs the history of a row of the array, by a seed; of the crash device at most so many images.
///
/// # Errors
/// The first difference from the oracle.
pub fn run(row: &[usize], seed: u64, images_max: u64, seen: &mut Seen) -> Result<(), String> {
    let chosen = choose(row, seed);
    seen.rows += 1;
    match chosen.device {
        0 => explore(&chosen, images_max, seen),
        1 => on_file(&chosen, seen),
        _ => {
            let device = Emulated::new(Profile::None, IMAGE_BYTES, LOG_BYTES);
            let device = AnyDevice::new(device.map_err(|error| error.to_string())?);
            live(&chosen, seen, &mut |alive: Option<Pair>| {
                drop(alive);
                Ok(Arc::clone(&device))
            })
        }
    }
}

fn explore(chosen: &Chosen, images_max: u64, seen: &mut Seen) -> Result<(), String> {
    let options = Options {
        images_max,
        spread: true,
        nest_one_in: 8,
        run_on: 2,
        run_on_one_in: 20,
        kills_max: [0, 1, 3][chosen.kills],
        ..Options::default()
    };
    let mut counts = Counts::default();
    let explored = explore_case(&chosen.case, &options, &mut counts);
    seen.images += counts.images;
    explored.map_err(|failure| format!("{} ({:?})", failure.violation, failure.cuts))
}

/// On `file` a kill is a copy of the files, because the engine would end in a clean way.
fn on_file(chosen: &Chosen, seen: &mut Seen) -> Result<(), String> {
    let room = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut lives = 0;
    let place = |life: u32| room.path().join(life.to_string());
    live(chosen, seen, &mut |alive: Option<Pair>| {
        if let Some(pair) = &alive {
            lives += 1;
            // Nothing is being written while it is copied.
            let settled = pair.engine.store().device().settle();
            settled.map_err(|error| error.to_string())?;
            copy(&place(lives - 1), &place(lives)).map_err(|error| error.to_string())?;
        }
        drop(alive);
        let options = FileOptions::new(IMAGE_BYTES, LOG_BYTES);
        Ok(AnyDevice::new(File::open(place(lives), &options).map_err(|error| error.to_string())?))
    })
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir(to)?;
    for file in fs::read_dir(from)? {
        let file = file?;
        fs::copy(file.path(), to.join(file.file_name()))?;
    }
    Ok(())
}

/// The device as the next process finds it. A process that is killed comes along.
type Next<'n> = &'n mut dyn FnMut(Option<Pair>) -> Result<Arc<AnyDevice>, String>;

/// Lives through a history: the program of before, this one, its end, and the one after it.
fn live(chosen: &Chosen, seen: &mut Seen, next: Next<'_>) -> Result<(), String> {
    let setup = &chosen.case.setup;
    let mut model = Model::default();
    if let Some(Grown { value_bytes_max, batches }) = &chosen.case.grown {
        let made = Setup { value_bytes_max: *value_bytes_max, ..*setup };
        model = close(epochs(open(next, None, &made, model)?, batches)?, next)?;
    }
    let mut pair = epochs(open(next, None, setup, model)?, &chosen.case.batches)?;
    for kill in 0..chosen.kills {
        let model = pair.model.clone();
        pair = epochs(open(next, Some(pair), setup, model)?, &chosen.after[kill..=kill])?;
        seen.reopened += 1;
    }
    let model = close(pair, next)?;
    let pair = epochs(open(next, None, setup, model)?, &chosen.after)?;
    seen.reopened += 1;
    seen.left += close(pair, next)?.rows();
    Ok(())
}

/// Opens the store as the next process does; from then on only the engine has the device.
fn open(next: Next<'_>, killed: Option<Pair>, setup: &Setup, model: Model) -> Result<Pair, String> {
    let device = next(killed)?;
    Pair::open(&device, setup, model)
}

fn epochs(mut pair: Pair, batches: &[Vec<Vec<u8>>]) -> Result<Pair, String> {
    batches.iter().try_for_each(|batch| pair.run(batch))?;
    pair.compare_state()?;
    Ok(pair)
}

/// Closes a store and checks it.
fn close(mut pair: Pair, next: Next<'_>) -> Result<Model, String> {
    pair.end_snapshots()?;
    let Pair { engine, model, .. } = pair;
    engine.close().map_err(|error| format!("close: {error}"))?;
    check_clean(&next(None)?, &model)?;
    Ok(model)
}
