//! Opens what was left, compares it with the oracle, and goes on.

use std::path::Path;

use super::story::{Progress, Story, any_limit, open_before_reading, open_device, open_limited};
use crate::history::{Mix, Model, Pair, Random, batch, check_clean};

/// How many epochs a recovered store must run.
const EPOCHS_AFTER: u64 = 20;
/// So many stores without a limit of memory are opened before their pages are read.
const LOADED_LATER_PERCENT: u64 = 30;

/// O-25, O-29, O-30, O-48: the store in a directory is in a state that the progress allows, runs
/// on, closes clean and comes back once more. Returns the epoch that was found.
pub(crate) fn recover(
    dir: &Path,
    story: &Story,
    progress: Progress,
    random: &mut Random,
) -> Result<u64, String> {
    let device = match any_limit(random) {
        // Looks ahead, so that older seeds go on as they did.
        None if random.clone().percent(LOADED_LATER_PERCENT) => open_before_reading(dir)?,
        limit => open_limited(dir, None, limit)?,
    };
    if progress.opened {
        check_clean(&device, &Model::default())?;
    }
    let setup = story.setup.reopened(random);
    let engine = setup.open(&device).map_err(|error| format!("open: {error}"))?;
    let epoch = engine.epoch().0;
    let Progress { started, answered, .. } = progress;
    if !(answered..=started.max(answered)).contains(&epoch) {
        return Err(format!(
            "recovered epoch {epoch}; {answered} was answered, {started} was begun"
        ));
    }
    let mut pair = Pair::new(engine, story.models[epoch as usize].clone());
    pair.compare_state()?;
    run_on(&mut pair, random, EPOCHS_AFTER)?;
    pair.end_snapshots()?;
    let Pair { engine, model, .. } = pair;
    engine.close().map_err(|error| format!("close: {error}"))?;
    drop(device);
    let device = open_device(dir, None)?;
    check_clean(&device, &model)?;
    Pair::open(&device, &setup, model).map_err(|error| format!("last open: {error}"))?;
    Ok(epoch)
}

/// O-30: the engine goes on.
pub(crate) fn run_on(pair: &mut Pair, random: &mut Random, epochs: u64) -> Result<(), String> {
    let mix = Mix { keys: 6, long_values: true, lookups: 10 };
    for _ in 0..epochs {
        let calls = random.below(6);
        pair.run(&batch(random, &mix, calls)).map_err(|error| format!("afterwards: {error}"))?;
    }
    pair.compare_state().map_err(|error| format!("afterwards: {error}"))
}
