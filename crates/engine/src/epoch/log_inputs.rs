//! Logging: every worker writes its calls to its stream; the commit record makes the epoch count
//! (NV 4.3, O-13).
//!
//! A stream is a sequence of records, which are what [`Calls`] holds: procedure (2 bytes), in which
//! part of the epoch it runs and its submitter (2), argument bytes (4), arguments, padded to a
//! multiple of 8. Stream
//! s of S holds the calls that worker s of S owns, in order. What the numbers mean is in the log's
//! record of the program (`program.rs`).

use pmem::Device;
use storage::input_log::{CommitInfo, LogError, LoggedEpoch, StreamSummary};

use crate::call::batch::{Call, Calls, HEADER_BYTES, Header, Part, RUN_CALLS, owned_runs};
use crate::error::{EngineError, Result};
use crate::worker::{Epoch, Leave, Worker};

/// Bytes of a call's record.
pub(super) fn record_bytes(argument_bytes: usize) -> u64 {
    (HEADER_BYTES + argument_bytes.next_multiple_of(8)) as u64
}

/// Writes this worker's stream; the first worker commits the epoch and begins to make it durable. A
/// worker that is alone does both with one write, if it can. No reader is inside the gate
/// afterwards: what follows changes indexes and row entries.
pub(super) fn run(epoch: &Epoch<'_>, worker: &mut Worker) -> Result<(), Leave> {
    if epoch.replay.is_none() {
        epoch.core.check_missing()?;
    }
    if epoch.replay.is_some() || !epoch.core.config.lab.design.logs() {
        epoch.close_gate(worker);
        return Ok(epoch.barrier()?);
    }
    if epoch.workers == 1 {
        write_calls(epoch, worker)?;
        let (stream, port) = (&mut worker.log, &mut worker.row_store.port);
        let (info, syncs_next) = (commit(epoch, Vec::new()), syncs_at_once(epoch));
        stream.finish_and_commit(epoch.store.log(), port, info, syncs_next)?;
        begin_sync(epoch)?;
        epoch.close_gate(worker);
        return Ok(());
    }
    write_stream(epoch, worker)?;
    epoch.close_gate(worker);
    epoch.barrier()?;
    if epoch.leads(worker) {
        let mut streams =
            std::mem::take(&mut *epoch.shared.streams.lock().expect("no panic while locked"));
        assert!(streams.len() == epoch.workers, "each worker has written its stream");
        streams.sort_unstable_by_key(|s| s.stream);
        let bytes: u64 = streams.iter().map(|s| s.bytes).sum();
        assert!(bytes == epoch.calls.records_bytes() as u64, "every call is in a stream");
        epoch.store.log().commit(&mut worker.row_store.port, &commit(epoch, streams))?;
        begin_sync(epoch)?;
    }
    Ok(())
}

/// Whether the log is synced when it is written: there is no other work for the worker meanwhile,
/// or it takes no time.
fn syncs_at_once(epoch: &Epoch<'_>) -> bool {
    let is_alone = epoch.workers == 1 && epoch.calls.are_few();
    is_alone || !epoch.store.device().takes_snapshots()
}

/// Begins to make the log durable. Where that is a sync, it takes milliseconds and runs beside
/// initialization and execution: what these write is in memory only, and readers from outside see
/// the epoch before. But where the serial part is all there is, these have next to nothing to do.
fn begin_sync(epoch: &Epoch<'_>) -> Result<(), Leave> {
    let store = std::sync::Arc::clone(epoch.store);
    if syncs_at_once(epoch) {
        return Ok(store.log().make_durable()?);
    }
    let sync = pmem::sync::thread::spawn(move || store.log().make_durable());
    let before = epoch.shared.sync.lock().expect("no panic while locked").replace(sync);
    assert!(before.is_none(), "the sync of the epoch before was waited for");
    Ok(())
}

/// What is logged beside the streams.
fn commit(epoch: &Epoch<'_>, streams: Vec<StreamSummary>) -> CommitInfo {
    CommitInfo {
        epoch: epoch.number,
        calls: epoch.calls.len() as u64,
        timestamp_ns: epoch.info.timestamp_ns,
        seed: epoch.info.seed,
        hash_before: epoch.core.config.lab.state_hash.then_some(epoch.before.hash),
        streams,
    }
}

fn write_stream(epoch: &Epoch<'_>, worker: &mut Worker) -> Result<(), LogError> {
    write_calls(epoch, worker)?;
    let summary = worker.log.finish(epoch.store.log(), &mut worker.row_store.port)?;
    epoch.shared.streams.lock().expect("no panic while locked").push(summary);
    Ok(())
}

/// Puts this worker's calls into its stream.
fn write_calls(epoch: &Epoch<'_>, worker: &mut Worker) -> Result<(), LogError> {
    let log = epoch.store.log();
    assert!(epoch.replay.is_none(), "replayed calls are in the log");
    let (stream, port) = (&mut worker.log, &mut worker.row_store.port);
    stream.start(log, epoch.number, worker.local.worker.0 as u16);
    for run in owned_runs(worker.local.worker, epoch.workers, epoch.calls.len()) {
        stream.append(log, port, epoch.calls.records(run))?;
    }
    Ok(())
}

/// Waits until the log of the epoch is durable: nothing that follows may be seen before (O-13).
/// Only a sync is waited for here: on memory the log is durable before the insert step.
pub(super) fn wait_until_durable(epoch: &Epoch<'_>, worker: &Worker) -> Result<(), Leave> {
    if epoch.leads(worker) {
        let sync = epoch.shared.sync.lock().expect("no panic while locked").take();
        if let Some(sync) = sync {
            sync.join().map_err(|_| EngineError::Poisoned("the log's sync panicked".into()))??;
        }
        assert!(epoch.is_durable(), "the epoch will happen, whatever crashes (O-13)");
    }
    match epoch.store.device().takes_snapshots() {
        true => Ok(epoch.barrier()?),
        false => Ok(()),
    }
}

/// Reads records one by one.
struct Records<'b> {
    rest: &'b [u8],
}

impl<'b> Records<'b> {
    fn next(&mut self) -> Option<Call<'b>> {
        let header = Header(u64::from_le_bytes(*self.rest.first_chunk()?));
        let end = HEADER_BYTES + header.bytes().next_multiple_of(8);
        let (record, rest) = self.rest.split_at_checked(end)?;
        self.rest = rest;
        let arguments = &record[HEADER_BYTES..HEADER_BYTES + header.bytes()];
        let (part, submitter) = (header.part(), header.submitter());
        Some(Call { procedure: header.procedure(), part, submitter, arguments })
    }
}

/// Puts the calls of a logged epoch together again, in serial order.
///
/// # Errors
/// `Corrupt` if records do not add up, or name a procedure that does not exist, although their
/// checksums were right.
pub(crate) fn decode_calls(logged: &LoggedEpoch, procedures: usize) -> Result<Calls> {
    let corrupt = |what: &str| {
        EngineError::Storage(storage::StorageError::Corrupt(format!(
            "input log of epoch {}: {what}",
            logged.commit.epoch
        )))
    };
    let mut streams: Vec<Records<'_>> =
        logged.streams.iter().map(|bytes| Records { rest: bytes }).collect();
    if streams.is_empty() {
        return Err(corrupt("no stream"));
    }
    let mut calls = Calls::new();
    for position in 0..logged.commit.calls as usize {
        let stream = position / RUN_CALLS % streams.len();
        let call = streams[stream].next().ok_or_else(|| corrupt("a stream ends too early"))?;
        let (deferred, serial) = (calls.deferred(), calls.serial());
        let is_late = match call.part {
            Part::Parallel => false,
            Part::Serial => serial < position,
            Part::Deferred | Part::Refused => deferred < position,
        };
        if is_late {
            return Err(corrupt("its calls are in another order than that of an epoch"));
        }
        calls.push_call(&call)?;
    }
    if streams.iter().any(|s| !s.rest.is_empty()) {
        return Err(corrupt("a stream is too long"));
    }
    match calls.find_unknown(procedures) {
        None => Ok(calls),
        Some((position, procedure)) => Err(corrupt(&format!(
            "call {position} is of procedure {procedure}, there are {procedures}"
        ))),
    }
}

/// Deferred calls, one record after the other.
pub(crate) fn encode_deferred_calls(deferred_calls: &Calls) -> Vec<u8> {
    if deferred_calls.is_empty() {
        Vec::new()
    } else {
        deferred_calls.records(0..deferred_calls.len()).to_vec()
    }
}

/// Reads what `encode_deferred_calls` wrote.
///
/// # Errors
/// `Corrupt` if the records do not add up, or name a procedure that does not exist.
pub(crate) fn decode_deferred_calls(bytes: &[u8], procedures: usize) -> Result<Calls> {
    let corrupt = |what: &str| {
        let what = format!("deferred calls: {what}");
        EngineError::Storage(storage::StorageError::Corrupt(what))
    };
    let mut records = Records { rest: bytes };
    let mut calls = Calls::new();
    while let Some(call) = records.next() {
        if !call.part.was_deferred() {
            return Err(corrupt("one was never deferred"));
        }
        calls.push_call(&call)?;
    }
    if !records.rest.is_empty() {
        return Err(corrupt("a record is cut off"));
    }
    match calls.find_unknown(procedures) {
        None => Ok(calls),
        Some(_) => Err(corrupt("one is of a procedure that does not exist")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The room that is kept for calls that may be deferred is what they take (O-43), those
    /// without arguments included.
    #[test]
    fn a_record_has_the_length_that_is_reserved_for_it() {
        let lengths = [0, 1, 7, 8, 9, 16, 1000];
        for length in lengths {
            let mut calls = Calls::new();
            calls.push(0, &vec![1; length]).unwrap();
            let record = encode_deferred_calls(&calls);
            assert_eq!(record.len() as u64, record_bytes(length), "{length} bytes of arguments");
            assert_eq!(calls.records_bytes() as u64, record_bytes(length), "{length} bytes");
        }
    }
}
