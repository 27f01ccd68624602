//! The calls that the log of a damaged store holds after the checkpoint. Only their program can run
//! them, and only on a store that is whole: a salvage lists them.

use std::collections::BTreeMap;

use engine::LoggedCall;
use nvcaracal::dynamic::RowTypes;
use serde::Serialize;

use super::json;
use crate::rows::Looked;

/// How many epochs the text names.
const EPOCHS_SHOWN: usize = 20;

/// The calls that are in the log and not in the new store.
#[derive(Debug, Serialize)]
pub(super) struct NotReplayed {
    /// How many: those of the epochs, and those that were deferred up to the checkpoint.
    pub(super) calls: u64,
    epochs: Vec<OfEpoch>,
    /// Why calls are counted only.
    #[serde(skip_serializing_if = "Option::is_none")]
    unreadable: Option<String>,
}

#[derive(Debug, Default, Serialize)]
struct OfEpoch {
    epoch: u64,
    calls: u64,
    /// What they are, in their serial order.
    list: Vec<OfCall>,
}

#[derive(Debug, Serialize)]
struct OfCall {
    position: u32,
    /// Whether the epoch before deferred it.
    is_deferred: bool,
    procedure: String,
    arguments: serde_json::Value,
}

impl NotReplayed {
    pub(super) fn of(store: &Looked) -> Self {
        match engine::logged_calls(store.opened()) {
            Ok(calls) => Self::listed(calls),
            Err(error) => Self::counted(store, error.to_string()),
        }
    }

    fn listed(calls: Vec<LoggedCall>) -> Self {
        let mut epochs = BTreeMap::<u64, OfEpoch>::new();
        let count = calls.len() as u64;
        for call in calls {
            let of = epochs.entry(call.epoch.0).or_default();
            (of.epoch, of.calls) = (call.epoch.0, of.calls + 1);
            of.list.push(OfCall {
                position: call.position.0,
                is_deferred: call.is_deferred,
                arguments: arguments(&call),
                procedure: call.procedure,
            });
        }
        Self { calls: count, epochs: epochs.into_values().collect(), unreadable: None }
    }

    fn counted(store: &Looked, why: String) -> Self {
        let opened = store.opened();
        let of = |epoch, calls| OfEpoch { epoch, calls, list: Vec::new() };
        let committed = opened.log.committed.iter();
        let mut epochs: Vec<_> =
            committed.map(|committed| of(committed.epoch.0, committed.calls)).collect();
        let checkpoint = opened.store.checkpoint();
        if epochs.is_empty() && checkpoint.deferred_calls > 0 {
            epochs.push(of(checkpoint.epoch + 1, checkpoint.deferred_calls.into()));
        }
        let calls = epochs.iter().map(|of| of.calls).sum();
        Self { calls, epochs, unreadable: Some(why) }
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let (Some(first), Some(last)) = (self.epochs.first(), self.epochs.last()) else {
            return Vec::new();
        };
        let mut lines = vec![format!(
            "NOT REPLAYED, and not in the new store: {} calls of epochs {} to {}, after the \
             checkpoint, which only their program can run",
            self.calls, first.epoch, last.epoch
        )];
        for of in self.epochs.iter().take(EPOCHS_SHOWN) {
            let procedures = of.procedures();
            let procedures = procedures.iter().map(|(name, calls)| format!("{calls} of {name:?}"));
            let procedures = procedures.collect::<Vec<_>>().join(", ");
            let colon = if procedures.is_empty() { "" } else { ": " };
            lines.push(format!("  epoch {}: {} calls{colon}{procedures}", of.epoch, of.calls));
        }
        if self.epochs.len() > EPOCHS_SHOWN {
            lines.push(format!("  and {} more epochs", self.epochs.len() - EPOCHS_SHOWN));
        }
        lines.push(match &self.unreadable {
            None => "  --json lists each of them with its arguments".into(),
            Some(why) => format!("  they cannot be listed: {why}"),
        });
        lines
    }
}

impl OfEpoch {
    /// How many calls there are of each procedure.
    fn procedures(&self) -> BTreeMap<&str, u64> {
        let mut procedures = BTreeMap::new();
        for call in &self.list {
            *procedures.entry(call.procedure.as_str()).or_default() += 1;
        }
        procedures
    }
}

/// The arguments of a call by their types, or as bytes.
fn arguments(call: &LoggedCall) -> serde_json::Value {
    let types = call.types.split_once(" -> ").map(|(arguments, _)| format!("() -> {arguments}"));
    let types = types.and_then(|types| RowTypes::parse(&[types]).ok());
    match types {
        Some(types) => json(&types.value(&call.arguments).to_string()),
        None => call.arguments.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into(),
    }
}
