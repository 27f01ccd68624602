//! The calls that a store's log holds after its checkpoint, for tools that have not their program:
//! they are read, and never run.

use storage::{EpochNumber, Opened, Position};

use crate::call::batch::Calls;
use crate::epoch::{decode_calls, decode_deferred_calls};
use crate::error::Result;
use crate::program::record::logged_types;

/// A call that a replay would run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedCall {
    /// The epoch of the log that has it, or that a deferred call waits for.
    pub epoch: EpochNumber,
    /// Its position there.
    pub position: Position,
    /// Whether the epoch before deferred it.
    pub is_deferred: bool,
    /// The name of its procedure.
    pub procedure: String,
    /// The types of arguments and answer in words, as `ARGUMENTS -> ANSWER`.
    pub types: String,
    /// Its arguments.
    pub arguments: Vec<u8>,
}

/// The calls after the checkpoint of a store that was just opened, each once: a call that an epoch
/// of the log defers to the next one is listed with the first of them. Those that were deferred up
/// to the checkpoint come first.
///
/// # Errors
/// `Corrupt` if records do not add up although their checksums were right; the log's.
pub fn logged_calls(opened: &Opened) -> Result<Vec<LoggedCall>> {
    let procedures = logged_types(&opened.store)?;
    let (log, checkpoint) = (opened.store.log(), opened.store.checkpoint());
    let mut found = Vec::new();
    let mut list = |epoch: EpochNumber, calls: &Calls, from: usize| {
        found.extend((from..calls.len()).map(|position| {
            let call = calls.call(position);
            let (procedure, types) = procedures[usize::from(call.procedure)].clone();
            let is_deferred = call.part.was_deferred();
            let (position, arguments) = (Position::from_index(position), call.arguments.to_vec());
            LoggedCall { epoch, position, is_deferred, procedure, types, arguments }
        }));
    };
    let next = checkpoint.epoch + 1;
    if checkpoint.deferred_calls > 0
        && let Some(bytes) = log.deferred_calls(EpochNumber(next))?
    {
        list(EpochNumber(next), &decode_deferred_calls(&bytes, procedures.len())?, 0);
    }
    for committed in &opened.log.committed {
        let calls = decode_calls(&log.read_epoch(committed.epoch)?, procedures.len())?;
        list(committed.epoch, &calls, calls.deferred());
    }
    Ok(found)
}
