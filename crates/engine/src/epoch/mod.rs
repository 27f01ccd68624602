//! One epoch: every worker runs [`run`], which names the phases in order (NV Algorithm 1).
//!
//! The papers log first. Here the write sets are declared before, so that an epoch for which there
//! is no space is refused while nothing is logged yet (O-43); the log still is durable before the
//! first final write and before any answer (O-13). docs/epoch.md has the steps and what a crash in
//! each leaves behind.

mod append;
mod checkpoint;
mod declare;
mod draw;
mod evict_cache;
mod execute;
mod insert;
mod log_inputs;
mod major_gc;
mod remove;
mod reserve;
mod staged;

use pmem::Device;

pub(crate) use log_inputs::{decode_calls, decode_carry, encode_carry};
pub(crate) use reserve::SpaceDemand;

use crate::stats::Phase;
use crate::worker::{Epoch, Leave, Worker};

/// Runs one epoch as one of its workers.
pub(crate) fn run<D: Device>(epoch: &Epoch<'_, D>, worker: &mut Worker<D>) -> Result<(), Leave> {
    worker.lap_ns = (epoch.core.config.clock)();
    worker.local.start_epoch();

    draw::run(epoch, worker)?;
    declare::run(epoch, worker)?;
    epoch.lap(worker, Phase::Declare);

    log_inputs::run(epoch, worker)?;
    epoch.lap(worker, Phase::LogInputs);

    insert::run(epoch, worker)?;
    epoch.lap(worker, Phase::Insert);

    major_gc::run(epoch, worker)?;
    epoch.lap(worker, Phase::MajorGc);

    evict_cache::run(epoch, worker);
    epoch.barrier()?;
    epoch.lap(worker, Phase::EvictCache);

    append::run(epoch, worker)?;
    epoch.barrier()?;
    epoch.lap(worker, Phase::Append);

    log_inputs::wait_until_durable(epoch, worker)?;
    epoch.lap(worker, Phase::LogInputs);

    execute::run(epoch, worker)?;
    epoch.lap(worker, Phase::Execute);

    remove::run(epoch, worker)?;
    epoch.lap(worker, Phase::Remove);

    checkpoint::run(epoch, worker)?;
    epoch.lap(worker, Phase::Checkpoint);
    Ok(())
}
