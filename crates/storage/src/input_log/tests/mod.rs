//! Tests of the input log. `device` is a log space that records what was written and can lose it;
//! the other files each check one group of properties against it.

mod crash;
mod damage;
mod deferred_calls;
mod device;
mod devices;
mod free_map;
mod full;
mod give_up;
mod order;
mod promises;
mod reuse;
mod round_trip;
mod summary;
mod whole;

use crate::ids::EpochNumber;
use std::sync::Arc;

use pmem::{AnyDevice, Device, Port};

use super::format::HEADER_BYTES;
use super::*;

const INSTANCE: u64 = 0x1234_5678_9abc_def0;
const SEGMENT_BYTES: u64 = 4096;
const PAYLOAD_BYTES: usize = SEGMENT_BYTES as usize - HEADER_BYTES;

/// A small generator, so that a failing seed is enough to repeat a test.
#[derive(Debug, Clone)]
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 8) % limit
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }
}

fn open<D: Device>(device: &Arc<D>, checkpoint: u64) -> Result<(InputLog, Recovered), LogError> {
    InputLog::open(AnyDevice::of(device), INSTANCE, SEGMENT_BYTES, EpochNumber(checkpoint))
}

fn demand(streams: &[Vec<u8>]) -> Demand {
    let bytes = streams.iter().map(|stream| stream.len() as u64).sum();
    Demand { streams: streams.len() as u16, bytes, deferred_bytes: 0 }
}

/// Logs streams without committing them; each worker uses its own port, the coordinator port 0.
fn log_streams<D: Device>(
    log: &InputLog,
    device: &Arc<D>,
    epoch: u64,
    streams: &[Vec<u8>],
) -> Result<CommitInfo, LogError> {
    log.begin(EpochNumber(epoch), demand(streams))?;
    let mut summaries = Vec::new();
    for (number, bytes) in streams.iter().enumerate() {
        let mut port = Port::new(AnyDevice::of(device), number as u32 + 1);
        let mut writer = log.stream_writer();
        writer.start(log, EpochNumber(epoch), number as u16);
        for piece in bytes.chunks(700) {
            writer.append(log, &mut port, piece)?;
        }
        summaries.push(writer.finish(log, &mut port)?);
    }
    Ok(CommitInfo {
        epoch: EpochNumber(epoch),
        calls: epoch * 10,
        timestamp_ns: epoch * 1000,
        seed: epoch * 7,
        hash_before: None,
        streams: summaries,
    })
}

/// Logs and commits an epoch of one stream, with one write if that is possible.
fn log_whole<D: Device>(
    log: &InputLog,
    device: &Arc<D>,
    epoch: u64,
    bytes: &[u8],
) -> Result<(), LogError> {
    log.begin(EpochNumber(epoch), demand(&[bytes.to_vec()]))?;
    let mut port = Port::new(AnyDevice::of(device), 0);
    let mut writer = log.stream_writer();
    writer.start(log, EpochNumber(epoch), 0);
    for piece in bytes.chunks(700) {
        writer.append(log, &mut port, piece)?;
    }
    let streams = Vec::new();
    let (calls, timestamp_ns, seed) = (epoch * 10, epoch * 1000, epoch * 7);
    let commit = CommitInfo {
        epoch: EpochNumber(epoch),
        calls,
        timestamp_ns,
        seed,
        hash_before: None,
        streams,
    };
    writer.finish_and_commit(log, &mut port, commit, true)
}

/// Logs, commit records and makes durable a whole epoch.
fn log_epoch<D: Device>(
    log: &InputLog,
    device: &Arc<D>,
    epoch: u64,
    streams: &[Vec<u8>],
) -> Result<CommitInfo, LogError> {
    let info = log_streams(log, device, epoch, streams)?;
    log.commit(&mut Port::new(AnyDevice::of(device), 0), &info)?;
    log.make_durable()?;
    Ok(info)
}

fn committed(recovered: &Recovered) -> Vec<u64> {
    recovered.committed.iter().map(|summary| summary.epoch.0).collect()
}
