//! `recover --accept-loss-after` and `recover --skip-call`: what a person decides about a store
//! that every open refuses.

use std::sync::Arc;

use bench::{BenchError, Limits, open_device};
use pmem::AnyDevice;
use serde::Serialize;
use storage::EpochNumber;
use storage::Position;
use storage::repair;

use crate::args::RecoverArguments;
use crate::output::{Done, show};

/// What was decided.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Decision {
    /// Everything after an epoch is given up.
    AcceptLossAfter(u64),
    /// A call of the last epoch is left out.
    SkipCall(u64, u32),
}

/// What was done.
#[derive(Debug, Serialize)]
pub(crate) struct Outcome {
    decision: &'static str,
    epoch: u64,
    /// Epochs of which something was in the log and is given up.
    given_up_epochs: Vec<u64>,
    erased_segments: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped_position: Option<u32>,
}

/// Runs a decision.
pub(crate) fn run(arguments: &RecoverArguments, decision: Decision) -> Done {
    let store = &arguments.store;
    let spec = bench::spec_of_path(&store.path)?;
    let die_at = arguments.die_at.clone();
    let limits = Limits { die_at, ..Limits::existing(&spec) };
    let outcome = decide(decision, &open_device(&spec, limits)?)?;
    show(&outcome, store.json, || text(&outcome, &store.path.to_string()))
}

fn decide(decision: Decision, device: &Arc<AnyDevice>) -> Result<Outcome, BenchError> {
    match decision {
        Decision::AcceptLossAfter(epoch) => {
            let given_up = repair::accept_loss(device, EpochNumber(epoch))?;
            Ok(Outcome {
                decision: "accept_loss_after",
                epoch,
                given_up_epochs: given_up.epochs.into_iter().map(|epoch| epoch.0).collect(),
                erased_segments: given_up.segments,
                skipped_position: None,
            })
        }
        Decision::SkipCall(epoch, position) => {
            repair::skip_call(device, EpochNumber(epoch), Position(position))?;
            Ok(Outcome {
                decision: "skip_call",
                epoch,
                given_up_epochs: Vec::new(),
                erased_segments: 0,
                skipped_position: Some(position),
            })
        }
    }
}

fn text(outcome: &Outcome, path: &str) -> String {
    let epoch = outcome.epoch;
    match (outcome.skipped_position, outcome.given_up_epochs.as_slice()) {
        (Some(position), _) => format!(
            "call {position} of epoch {epoch} is left out of every replay: it counts as failed\n"
        ),
        (None, []) => format!(
            "{path} ends after epoch {epoch} now; of what came later nothing was left in the log\n"
        ),
        (None, [first, .., last]) => format!(
            "{path} ends after epoch {epoch} now; epochs {first} to {last}, of which something was \
             left in the log, are given up, with whatever came after them\n"
        ),
        (None, [one]) => format!(
            "{path} ends after epoch {epoch} now; epoch {one}, of which something was left in the \
             log, is given up, with whatever came after it\n"
        ),
    }
}
