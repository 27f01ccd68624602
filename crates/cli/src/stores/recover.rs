//! `recover`: replays what a store's log holds, and shows how long each part took and what it read.

use std::sync::Arc;

use bench::{BenchError, ImageReads, Limits, Maker, RecoverSummary};
use pmem::{AnyDevice, DeviceSpec};

use super::repair::{self, Decision};
use super::{check, salvage};
use crate::args::{RecoverArguments, StoreArguments};
use crate::output::{Done, Failure, show};
use crate::rows::Looked;
use crate::runs::workers;

/// Runs a `recover` command.
pub(crate) fn run(arguments: &RecoverArguments) -> Done {
    if let Some(epoch) = arguments.accept_loss_after {
        return repair::run(arguments, Decision::AcceptLossAfter(epoch));
    }
    if let Some((epoch, position)) = arguments.skip_call {
        return repair::run(arguments, Decision::SkipCall(epoch, position));
    }
    if arguments.die_at.is_some() {
        return Err(Failure::usage("--die-at is for --accept-loss-after and --skip-call only"));
    }
    if let Some(target) = &arguments.salvage {
        return salvage::run(&arguments.store, target);
    }
    let spec = bench::spec_of_path(&arguments.store.path)?;
    let path = &arguments.store.path.to_string();
    match bench::maker_of(&spec)? {
        Some(Maker::Library) => {
            let summary = bench::recover(&spec, workers(arguments.workers))?;
            show_recovered(&summary, arguments.store.json)
        }
        Some(Maker::Engine) => {
            let who = format!(" (`{} recover` does)", Maker::Engine.binary());
            of_other_program(&spec, path, &arguments.store, &who)
        }
        None => of_other_program(&spec, path, &arguments.store, ""),
    }
}

/// Whether a command asks for a recovery, and not for a decision or a salvage.
#[must_use]
pub fn is_recovery(arguments: &RecoverArguments) -> bool {
    let RecoverArguments { accept_loss_after, skip_call, salvage, die_at, .. } = arguments;
    accept_loss_after.is_none() && skip_call.is_none() && salvage.is_none() && die_at.is_none()
}

/// Shows what a recovery did.
///
/// # Errors
/// Standard output cannot be written to.
pub fn show_recovered(summary: &RecoverSummary, as_json: bool) -> Done {
    show(summary, as_json, || text(summary))
}

/// A store of another program: what its log holds only that program can run. Where nothing is left
/// to run, its rows are held against the state hash, and nothing else is to be done.
fn of_other_program(spec: &DeviceSpec, path: &str, store: &StoreArguments, who: &str) -> Done {
    match left_to_run(bench::open_device(spec, Limits::read_only(spec))?)? {
        None => check::run(store),
        Some(left) => Err(Failure::new(format!("{path}: {left}{who}"))),
    }
}

/// Says what is left to run, if something is.
fn left_to_run(device: Arc<AnyDevice>) -> Result<Option<String>, BenchError> {
    let store = Looked::open(device)?;
    let procedures = store.procedures()?;
    Ok(store.later().map(|later| format!("{later}; its procedures are {}", procedures.join(", "))))
}

fn text(summary: &RecoverSummary) -> String {
    let RecoverSummary { epoch, checkpoint_epoch, state_digest, rows, workload, .. } = summary;
    let mut lines = vec![
        format!("{workload} recovered to epoch {epoch}, state digest {state_digest}, {rows} rows"),
        format!(
            "from the checkpoint of epoch {checkpoint_epoch} on, {} epochs with {} calls replayed \
             by {} workers",
            summary.epochs_replayed, summary.calls_replayed, summary.workers,
        ),
        format!(
            "{} epochs were compared with what they came to before, {} calls wait for the next one",
            summary.epochs_verified, summary.deferred,
        ),
    ];
    match summary.recovered_hash {
        "verified" => {}
        "kept" => lines.push("the indexes were kept: no row was visited".into()),
        _ => lines
            .push("the store did not know its state hash: its rows were compared with none".into()),
    }
    for skipped in &summary.skipped {
        lines.push(format!("left out, because it was decided so: {skipped}"));
    }
    let heading = format!("{:<26}{:>12}{:>14}{:>14}", "part", "ms", "lines read", "blocks read");
    lines.extend([String::new(), heading]);
    for (part, ms, reads) in summary.parts() {
        let reads = reads.map_or_else(String::new, |ImageReads { lines_read, blocks_read }| {
            format!("{lines_read:>14}{blocks_read:>14}")
        });
        lines.push(format!("{part:<26}{ms:>12.3}{reads}"));
    }
    lines.join("\n") + "\n"
}
