//! Replay (NV 4.3): every committed epoch after the checkpoint runs again, and is held against what
//! it came to before the crash.
//!
//! What is compared, and from where it is known, is in docs/recovery.md; the comparison of an epoch
//! itself is at its end (`epoch/checkpoint.rs`), before anything of it is made durable.

use std::sync::Arc;
use std::time::Duration;

use pmem::Device;
use storage::input_log::Recovered;
use storage::{EndMark, EpochNumber, Position, StorageError, Store};

use crate::call::answers::EpochOutcome;
use crate::call::batch::{Calls, EpochInfo};
use crate::call::deaths::Deaths;
use crate::engine::Engine;
use crate::engine::worker_choice::WorkerChoice;
use crate::epoch::decode_calls;
use crate::error::hex;
use crate::error::{EngineError, Result};
use crate::stats::RecoveryReport;
use crate::worker::Past;

/// Runs the committed epochs again.
pub(crate) fn replay(
    engine: &mut Engine,
    log: &Recovered,
    end_mark: Option<EndMark>,
    report: &mut RecoveryReport,
) -> Result<()> {
    let store = Arc::clone(&engine.store);
    check_beginning(&store, log)?;
    let last_logged = last_logged(engine, log);
    let deaths = look_for_deaths(engine, log)?;
    report.deaths_unnoted = deaths.are_lost();
    // The record of the program, too, may be a killed process's, and the next commit records will
    // name it.
    if !log.committed.is_empty() || store.device().may_show_undurable() {
        store.log().harden(&mut engine.workers[0].row_store.port)?;
    }
    let mut choice = WorkerChoice::beginning_with_all(engine.workers());
    for (index, committed) in log.committed.iter().enumerate() {
        let after = log.committed.get(index + 1).map(|next| next.hash_before);
        let marked =
            end_mark.filter(|mark| mark.epoch == committed.epoch).and_then(|mark| mark.hash);
        let verdicts = log.verdicts.iter().filter(|verdict| verdict.epoch == committed.epoch);
        let mut skipped: Vec<Position> = verdicts.clone().map(|verdict| verdict.position).collect();
        skipped.sort_unstable();
        let past = Past {
            hash: after.flatten().or(marked),
            skipped: &skipped,
            deaths: &deaths,
            last: index + 1 == log.committed.len(),
        };
        replay_epoch(engine, committed.epoch, past, &mut choice, report)?;
        report.skipped.extend(verdicts.cloned());
    }
    engine.limit_workers(engine.workers());
    if engine.store.device().takes_snapshots() {
        engine.store.device().settle()?;
    }
    assert!(engine.epoch() == last_logged, "replay ends where the log does");
    judge_deferred(engine, deaths, last_logged)
}

/// What earlier replays left that ended in the death of their process.
///
/// # Errors
/// `StuckCall` if two did at the same call, and there is no verdict on it.
fn look_for_deaths(engine: &mut Engine, log: &Recovered) -> Result<Deaths> {
    if log.committed.is_empty() && engine.deferred() == 0 {
        return Ok(Deaths::default());
    }
    let mut deaths = Deaths::open(engine.store.device().as_ref())?;
    let left_out = |epoch: EpochNumber, position: Position| {
        log.verdicts.iter().any(|v| (v.epoch, v.position) == (epoch, position))
    };
    match deaths.stuck() {
        // It was not logged: a replay of all that is comes to have the call.
        Some((epoch, _)) if epoch > last_logged(engine, log) => Ok(deaths),
        Some((epoch, position)) if !left_out(epoch, position) => {
            deaths.keep();
            Err(stuck(engine, epoch, position)?)
        }
        _ => Ok(deaths),
    }
}

/// The last epoch that is in the log or in the checkpoint.
fn last_logged(engine: &Engine, log: &Recovered) -> EpochNumber {
    let checkpoint_epoch = engine.store.checkpoint_epoch();
    log.committed.last().map_or(checkpoint_epoch, |committed| committed.epoch)
}

/// Everything is replayed: a deferred call in which the process died twice is refused; if it died
/// in it once, that is kept for the next open.
fn judge_deferred(engine: &mut Engine, mut deaths: Deaths, last_logged: EpochNumber) -> Result<()> {
    match deaths.stuck() {
        Some((epoch, position))
            if epoch > last_logged && (position.index()) < engine.deferred() =>
        {
            engine.refuse_deferred(position.index())?;
        }
        _ if deaths.last_epoch().is_some_and(|epoch| epoch > last_logged) => deaths.keep(),
        _ => {}
    }
    Ok(())
}

/// A call in which the process died in two replays.
fn stuck(engine: &Engine, epoch: EpochNumber, position: Position) -> Result<EngineError> {
    let logged = engine.store.log().read_epoch(epoch)?;
    let calls = decode_calls(&logged, engine.procedures.len())?;
    if position.index() >= calls.len() {
        let what = format!("the file of replay marks names call {position} of epoch {epoch}");
        return Err(
            StorageError::Corrupt(format!("{what}, which has {} calls", calls.len())).into()
        );
    }
    let (number, arguments) = calls.get(position.index());
    let name = engine.procedures.get(number).map_or("?", |procedure| procedure.name());
    Ok(EngineError::StuckCall {
        epoch,
        position,
        what: format!(
            "it ended the process ({name}) in two replays, by an abort, a stack overflow or \
             another fault; its arguments are {}",
            hex(arguments)
        ),
    })
}

fn replay_epoch(
    engine: &mut Engine,
    epoch: EpochNumber,
    past: Past<'_>,
    choice: &mut WorkerChoice,
    report: &mut RecoveryReport,
) -> Result<()> {
    let logged = engine.store.log().read_epoch(epoch)?;
    let calls = decode_calls(&logged, engine.procedures.len())?;
    if calls.deferred() > engine.deferred() {
        let (are, were) = (calls.deferred(), engine.deferred());
        let what = format!("epoch {epoch} has {are} calls that were deferred to it, of {were}");
        return Err(StorageError::Corrupt(what).into());
    }
    let info = EpochInfo { timestamp_ns: logged.commit.timestamp_ns, seed: logged.commit.seed };
    assert!(past.skipped.is_sorted(), "verdicts are found by halving");
    assert!(engine.epoch().next() == epoch, "epoch {epoch} is replayed after {}", engine.epoch());
    let is_durable = engine.store.log().is_durable(epoch);
    assert!(is_durable, "what is replayed was made durable: what follows is built on it (O-29)");
    past.deaths.begin(epoch);
    let outcome = run_timed(engine, &calls, info, past, choice)?;
    assert_eq!(outcome.epoch, epoch, "epochs are replayed in order");
    engine.core.config.watch.replayed(&outcome);
    report.replay.add(&outcome.stats.device);
    report.epochs_replayed += 1;
    report.epochs_verified += u64::from(past.hash.is_some() && outcome.state_hash.is_some());
    report.calls_replayed += calls.len() as u64;
    Ok(())
}

/// Runs an epoch on as many workers as seem best, and notes how long it took.
fn run_timed(
    engine: &mut Engine,
    calls: &Calls,
    info: EpochInfo,
    past: Past<'_>,
    choice: &mut WorkerChoice,
) -> Result<EpochOutcome> {
    if calls.are_few() {
        return engine.run(calls, info, Some(past));
    }
    engine.limit_workers(choice.next_number());
    let clock = engine.core.config.clock;
    let started_ns = clock();
    let outcome = engine.run(calls, info, Some(past))?;
    choice.ran(calls.len(), Duration::from_nanos(clock().saturating_sub(started_ns)));
    Ok(outcome)
}

/// The first committed epoch must have begun where the checkpoint ends.
fn check_beginning(store: &Store, log: &Recovered) -> Result<()> {
    let checkpoint = store.checkpoint();
    let logged = log.committed.first().and_then(|first| first.hash_before);
    match (logged, checkpoint.state_hash()) {
        (Some(was), Some(is)) if was != is => Err(StorageError::Corrupt(format!(
            "epoch {} was logged after a state with hash {was}, the checkpoint before it has {is}: \
             the input log belongs to another copy of the store than the image",
            checkpoint.epoch + 1
        ))
        .into()),
        _ => Ok(()),
    }
}
