//! Recovery's view of the log: which epochs are committed, and what is in them.

use std::collections::BTreeMap;
use std::sync::Arc;

use pmem::sync::Mutex;
use pmem::{AnyDevice, Device, LogSpace};
use zerocopy::FromBytes;

use super::archive::start;
use super::error::LogError;
use super::format::{
    CommitEntry, CommitHeader, HEADER_BYTES, Kind, PROGRAM_EPOCH, SEGMENT_BYTES_MAX,
    SEGMENT_BYTES_MIN, SegmentHeader, commit_bytes,
};
use super::geometry::Geometry;
use super::holdings::Holding;
use super::index::{CommittedEpoch, Index};
use super::log::{InputLog, Scratch};
use super::scan::{Lack, Scan};
use super::space::Space;
use super::summary::{CommitInfo, CommittedRange, EpochSummary, StreamSummary};
use super::verdict::{Verdict, Verdicts};
use crate::digest::StateHash;
use crate::ids::EpochNumber;

/// What [`InputLog::open`] found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovered {
    /// The committed epochs after the checkpoint, without gaps: those to replay, in order (O-25).
    pub committed: Vec<EpochSummary>,
    /// Epochs of which something was logged but that count as never started (O-24).
    pub uncommitted: Vec<EpochNumber>,
    /// Bytes of log space that were read to find out.
    pub scanned_bytes: u64,
    /// Calls of committed epochs that replay must not run.
    pub verdicts: Vec<Verdict>,
    /// The store that most of the log belongs to, if that is another one.
    pub foreign: Option<u64>,
    /// Timestamp that no later epoch may be before: the largest of these epochs, or that of the
    /// checkpoint.
    pub timestamp_ns: u64,
}

impl Recovered {
    /// The last epoch that is committed, or the checkpoint.
    #[must_use]
    pub fn last(&self, checkpoint: EpochNumber) -> EpochNumber {
        self.committed.last().map_or(checkpoint, |epoch| epoch.epoch)
    }
}

/// A committed epoch, read back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoggedEpoch {
    /// The bytes of each stream, by number.
    pub streams: Vec<Vec<u8>>,
    /// What was committed.
    pub commit: CommitInfo,
}

impl InputLog {
    /// Finds what the log of the store `instance` holds of the epochs after `checkpoint_epoch`.
    ///
    /// Changes nothing on the device, but first makes durable what an earlier process wrote and did
    /// not sync: what is found committed here must not be lost by a power cut later (O-13).
    /// `segment_bytes` must be the same for all the life of the store.
    ///
    /// # Errors
    /// [`LogError::Gap`], [`LogError::Damaged`], [`LogError::DeferredCallsDamaged`],
    /// [`LogError::ProgramLost`] or [`LogError::Conflict`] when the log has lost what no crash can
    /// take away; [`LogError::Codec`] and [`LogError::OtherSegmentBytes`] when it was written by
    /// another build or with another option; the device's errors. A torn end is none of these: it
    /// reads as an epoch that was never started.
    pub fn open(
        device: Arc<AnyDevice>,
        instance: u64,
        segment_bytes: u64,
        checkpoint_epoch: EpochNumber,
    ) -> Result<(Self, Recovered), LogError> {
        let (min, max) = (SEGMENT_BYTES_MIN, SEGMENT_BYTES_MAX);
        if !segment_bytes.is_power_of_two() || !(min..=max).contains(&segment_bytes) {
            return Err(LogError::SegmentBytes { given: segment_bytes, min, max });
        }
        device.log_sync()?;
        let geometry = Geometry { instance, segment_bytes };
        let found = recover(&*device, geometry, checkpoint_epoch)?;
        let range = CommittedRange { checkpoint: checkpoint_epoch, last: found.space.committed };
        let archive = start(&device, geometry, range)?;
        let log = Self {
            device,
            archive,
            geometry,
            space: Mutex::new(found.space),
            index: Mutex::new(Arc::new(found.index)),
            scratch: Mutex::new(Scratch::new(segment_bytes)),
            program: Mutex::new(found.program),
            verdicts: Mutex::new(found.verdicts),
        };
        Ok((log, found.recovered))
    }

    /// Reads a committed epoch that was found when the log was opened. Checksums are checked again.
    ///
    /// # Errors
    /// [`LogError::NotLogged`] for any other epoch; [`LogError::Damaged`] if the bytes have changed
    /// since they were found; the device's.
    pub fn read_epoch(&self, epoch: EpochNumber) -> Result<LoggedEpoch, LogError> {
        let index = self.index();
        let committed = index.epochs.get(&epoch).ok_or(LogError::NotLogged { epoch })?;
        if committed.is_whole {
            let belongs = Belongs::record(Kind::Epoch, epoch, committed.attempt);
            let segments = &committed.commit_segments;
            let mut bytes = read_segments(self.device(), self.geometry(), belongs, segments)?;
            bytes.truncate(bytes.len().saturating_sub(commit_bytes(1)));
            return Ok(LoggedEpoch { streams: vec![bytes], commit: committed.info.clone() });
        }
        let mut streams = Vec::with_capacity(committed.streams.len());
        for (number, segments) in committed.streams.iter().enumerate() {
            let belongs = Belongs {
                kind: Kind::Stream,
                epoch,
                attempt: committed.attempt,
                stream: number as u16,
            };
            streams.push(read_segments(self.device(), self.geometry(), belongs, segments)?);
        }
        Ok(LoggedEpoch { streams, commit: committed.info.clone() })
    }

    /// Reads the calls that were deferred to `epoch`; `None` if there are none in the log. A record
    /// of deferred calls that a crash tore reads as none: the engine that took the checkpoint of
    /// `epoch - 1` knows whether there must be one. (If `epoch` itself is committed,
    /// [`InputLog::open`] has checked that.)
    ///
    /// # Errors
    /// [`LogError::DeferredCallsDamaged`] if the bytes have changed since they were found; the
    /// device's.
    pub fn deferred_calls(&self, epoch: EpochNumber) -> Result<Option<Vec<u8>>, LogError> {
        let index = self.index();
        let Some((attempt, deferred_calls)) = index.deferred_calls(epoch) else { return Ok(None) };
        let belongs = Belongs::record(Kind::Deferred, epoch, attempt);
        let bytes =
            read_segments(self.device(), self.geometry(), belongs, &deferred_calls.segments)?;
        if (bytes.len() as u64, crc32fast::hash(&bytes))
            != (deferred_calls.bytes, deferred_calls.crc)
        {
            return Err(LogError::DeferredCallsDamaged { epoch, bytes: deferred_calls.bytes });
        }
        Ok(Some(bytes))
    }
}

/// What segments that are read together have in common.
#[derive(Debug, Clone, Copy)]
struct Belongs {
    kind: Kind,
    epoch: EpochNumber,
    attempt: u64,
    stream: u16,
}

impl Belongs {
    fn record(kind: Kind, epoch: EpochNumber, attempt: u64) -> Self {
        Self { kind, epoch, attempt, stream: 0 }
    }
}

/// Reads and joins the payloads of segments whose ordinals are their positions in the list.
fn read_segments<L: LogSpace>(
    log: &L,
    geometry: Geometry,
    belongs: Belongs,
    segments: &[u32],
) -> Result<Vec<u8>, LogError> {
    let mut bytes = Vec::new();
    let mut buffer = vec![0; geometry.segment_bytes as usize];
    for (ordinal, segment) in segments.iter().enumerate() {
        let offset = geometry.offset(*segment);
        log.log_read(offset, &mut buffer)?;
        let payload = checked_payload(&buffer, geometry, belongs, ordinal as u32);
        let payload = payload.ok_or(LogError::Damaged {
            epoch: belongs.epoch,
            stream: belongs.stream,
            ordinal: ordinal as u32,
            offset,
            what: "it was intact when the log was opened and is not any more",
        })?;
        bytes.extend_from_slice(payload);
    }
    Ok(bytes)
}

fn checked_payload(
    segment: &[u8],
    geometry: Geometry,
    belongs: Belongs,
    ordinal: u32,
) -> Option<&[u8]> {
    let header = SegmentHeader::parse(segment)?;
    let payload = segment[HEADER_BYTES..].get(..header.payload_bytes.get() as usize)?;
    let same = header.instance.get() == geometry.instance
        && header.kind.get() == belongs.kind as u16
        && header.epoch.get() == belongs.epoch.0
        && header.attempt.get() == belongs.attempt
        && header.stream.get() == belongs.stream
        && header.ordinal.get() == ordinal
        && header.payload_crc.get() == crc32fast::hash(payload);
    same.then_some(payload)
}

/// Everything that `open` needs.
struct Recovery {
    space: Space,
    index: Index,
    recovered: Recovered,
    /// Attempt and bytes.
    program: Option<(u64, Vec<u8>)>,
    verdicts: Verdicts,
}

/// Finds the committed epochs and the records of deferred calls that are still needed; everything
/// else is free.
fn recover<L: LogSpace>(
    log: &L,
    geometry: Geometry,
    checkpoint: EpochNumber,
) -> Result<Recovery, LogError> {
    let scan = Scan::read(log, geometry, checkpoint)?;
    let (epochs, lacks) = find_committed(log, geometry, &scan)?;
    let last = check_order(geometry, checkpoint, &epochs, &lacks)?;
    check_end(&scan, checkpoint, last)?;
    let program = read_program(log, geometry, &scan)?;
    check_program(&epochs, program.as_ref())?;
    let verdicts = read_verdicts(log, geometry, &scan, last)?;
    let mut index = Index { epochs, deferred_records: BTreeMap::new() };
    for (epoch, attempt) in scan.attempts(Kind::Deferred) {
        // A record of deferred calls belongs to the end of an epoch that is durable, so none can be
        // newer than this.
        let needed = epoch <= last.next();
        let Some(segments) = scan.record(epoch, Kind::Deferred, attempt).filter(|_| needed) else {
            continue;
        };
        let belongs = Belongs::record(Kind::Deferred, epoch, attempt);
        let bytes = read_segments(log, geometry, belongs, &segments)?;
        index.add_deferred_record(
            epoch,
            attempt,
            &segments,
            bytes.len() as u64,
            crc32fast::hash(&bytes),
        );
    }
    // Space was promised for one record of deferred calls of an epoch, however often a crash made
    // it again.
    index.keep_one_deferred_record_each();
    // Replay of an epoch makes the record of deferred calls of the next one again; only the first
    // has to find it here.
    if let Some((bytes, _)) =
        index.epochs.get(&(checkpoint.next())).and_then(|committed| committed.deferred_calls)
        && index.deferred_calls(checkpoint.next()).is_none()
    {
        return Err(LogError::DeferredCallsDamaged { epoch: checkpoint.next(), bytes });
    }
    let records: Vec<&Record> = program.iter().chain(&verdicts).collect();
    let space = hold_found(&scan, &index, &records, CommittedRange { checkpoint, last });
    let decode = |record: &Record| {
        let known = Verdict::decode_all(record.epoch, &record.bytes);
        (record.epoch, (record.attempt, known))
    };
    let verdicts: Verdicts = verdicts.iter().map(decode).collect();
    let recovered = Recovered {
        verdicts: verdicts.values().flat_map(|(_, known)| known).cloned().collect(),
        foreign: scan.foreign.filter(|_| scan.found.is_empty()),
        ..summarize(&scan, &index)
    };
    let program = program.map(|p| (p.attempt, p.bytes));
    Ok(Recovery { space, index, recovered, program, verdicts })
}

/// Whether the epochs of a range can be read back from the segments of a scan, and none after it.
///
/// # Errors
/// As [`InputLog::open`]; [`LogError::NotLogged`] with the first epoch that is not there.
pub(super) fn check_up_to<L: LogSpace>(
    log: &L,
    geometry: Geometry,
    range: CommittedRange,
    scan: &Scan,
) -> Result<bool, LogError> {
    let (epochs, lacks) = find_committed(log, geometry, scan)?;
    let found = check_order(geometry, range.checkpoint, &epochs, &lacks)?;
    if found != range.last {
        return Err(LogError::NotLogged { epoch: found.next() });
    }
    let program = read_program(log, geometry, scan)?;
    check_program(&epochs, program.as_ref())?;
    Ok(program.is_some())
}

/// A whole record of the log that belongs to no stream.
struct Record {
    kind: Kind,
    epoch: EpochNumber,
    attempt: u64,
    segments: Vec<u32>,
    bytes: Vec<u8>,
}

fn read_record<L: LogSpace>(
    log: &L,
    geometry: Geometry,
    scan: &Scan,
    belongs: Belongs,
) -> Result<Option<Record>, LogError> {
    let Belongs { kind, epoch, attempt, .. } = belongs;
    let Some(segments) = scan.record(epoch, kind, attempt) else { return Ok(None) };
    let bytes = read_segments(log, geometry, belongs, &segments)?;
    Ok(Some(Record { kind, epoch, attempt, segments, bytes }))
}

/// The newest program that is whole: a new one is durable before the one before it is released.
fn read_program<L: LogSpace>(
    log: &L,
    geometry: Geometry,
    scan: &Scan,
) -> Result<Option<Record>, LogError> {
    for (epoch, attempt) in scan.attempts(Kind::Program).into_iter().rev() {
        let found =
            read_record(log, geometry, scan, Belongs::record(Kind::Program, epoch, attempt))?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// The newest whole record of verdicts of each committed epoch: a new one holds those of the one
/// before, and is durable before that is released.
fn read_verdicts<L: LogSpace>(
    log: &L,
    geometry: Geometry,
    scan: &Scan,
    last: EpochNumber,
) -> Result<Vec<Record>, LogError> {
    let mut newest = BTreeMap::new();
    for (epoch, attempt) in scan.attempts(Kind::Verdict) {
        if epoch <= last
            && let Some(record) =
                read_record(log, geometry, scan, Belongs::record(Kind::Verdict, epoch, attempt))?
        {
            newest.insert(epoch, record);
        }
    }
    Ok(newest.into_values().collect())
}

/// Checks that every committed epoch was logged under the program that was found.
fn check_program(
    epochs: &BTreeMap<EpochNumber, CommittedEpoch>,
    program: Option<&Record>,
) -> Result<(), LogError> {
    let found = program.map_or(0, |program| program.attempt);
    match epochs.iter().find(|(_, committed)| committed.program != found) {
        None => Ok(()),
        Some((epoch, _)) => Err(LogError::ProgramLost { epoch: *epoch }),
    }
}

/// Checks that nothing of a later epoch follows the first one that is not committed. The log of an
/// epoch is not begun before the one before is durable, so a crash leaves a torn end and nothing
/// after it.
fn check_end(scan: &Scan, checkpoint: EpochNumber, last: EpochNumber) -> Result<(), LogError> {
    let epochs = scan.found.keys().map(|key| key.epoch).filter(|epoch| *epoch != PROGRAM_EPOCH);
    match epochs.max().filter(|newest| *newest > last.next()) {
        None => Ok(()),
        Some(committed) => Err(LogError::Gap { missing: last.next(), committed, checkpoint }),
    }
}

/// What a committed epoch lacks, by epoch.
type Lacks = BTreeMap<EpochNumber, Lack>;

/// The epochs whose logs are whole, and what others lack.
pub(super) fn find_committed<L: LogSpace>(
    log: &L,
    geometry: Geometry,
    scan: &Scan,
) -> Result<(BTreeMap<EpochNumber, CommittedEpoch>, Lacks), LogError> {
    let mut epochs: BTreeMap<EpochNumber, CommittedEpoch> = BTreeMap::new();
    let mut lacks = Lacks::new();
    let commits = scan.attempts(Kind::Commit).into_iter().map(|found| (found, Kind::Commit));
    let wholes = scan.attempts(Kind::Epoch).into_iter().map(|found| (found, Kind::Epoch));
    for ((epoch, attempt), kind) in commits.chain(wholes) {
        let Some(commit_segments) = scan.record(epoch, kind, attempt) else { continue };
        let belongs = Belongs::record(kind, epoch, attempt);
        let payload = read_segments(log, geometry, belongs, &commit_segments)?;
        let is_whole = kind == Kind::Epoch;
        let Some(Commit { info, deferred_calls, program }) =
            decode_commit(epoch, &payload, is_whole)
        else {
            continue;
        };
        let streams: Result<Vec<_>, Lack> = match is_whole {
            true => Ok(vec![Vec::new()]),
            false => {
                info.streams.iter().map(|stream| scan.stream(epoch, attempt, stream)).collect()
            }
        };
        match streams {
            Ok(streams) => {
                let committed = CommittedEpoch {
                    attempt,
                    is_whole,
                    program,
                    info,
                    deferred_calls,
                    commit_segments,
                    streams,
                };
                if let Some(first) = epochs.insert(epoch, committed) {
                    let (first, second) = (first.attempt, attempt);
                    return Err(LogError::Conflict { epoch, first, second });
                }
            }
            Err(lack) => {
                lacks.insert(epoch, lack);
            }
        }
    }
    Ok((epochs, lacks))
}

/// Checks that committed epochs follow the checkpoint without a gap; returns the last.
fn check_order(
    geometry: Geometry,
    checkpoint: EpochNumber,
    epochs: &BTreeMap<EpochNumber, CommittedEpoch>,
    lacks: &Lacks,
) -> Result<EpochNumber, LogError> {
    let mut last = checkpoint;
    for epoch in epochs.keys() {
        let missing = last.next();
        if *epoch != missing {
            return Err(match lacks.get(&missing) {
                None => LogError::Gap { missing, committed: *epoch, checkpoint },
                Some(lack) => LogError::Damaged {
                    epoch: missing,
                    stream: lack.stream,
                    ordinal: lack.ordinal,
                    offset: geometry.offset(lack.segment),
                    what: lack.what,
                },
            });
        }
        last = *epoch;
    }
    Ok(last)
}

/// What a commit record says.
struct Commit {
    info: CommitInfo,
    /// Bytes and checksum of the epoch's record of deferred calls, if it had one.
    deferred_calls: Option<(u64, u32)>,
    program: u64,
}

/// The timestamp of an epoch, if this segment has its commit record or the beginning of it.
pub(super) fn timestamp_of(segment: &[u8]) -> Option<u64> {
    let header = SegmentHeader::parse(segment)?;
    let payload = segment.get(HEADER_BYTES..)?;
    let of_stream = match Kind::from_number(header.kind.get())? {
        Kind::Commit if header.ordinal.get() == 0 => 0,
        Kind::Epoch => payload.len().checked_sub(commit_bytes(1))?,
        _ => return None,
    };
    let (commit, _) = CommitHeader::read_from_prefix(&payload[of_stream..]).ok()?;
    Some(commit.timestamp_ns.get())
}

/// Reads a commit record; that of a whole epoch stands behind its stream.
fn decode_commit(epoch: EpochNumber, payload: &[u8], is_whole: bool) -> Option<Commit> {
    let of_stream = if is_whole { payload.len().checked_sub(commit_bytes(1))? } else { 0 };
    let payload = &payload[of_stream..];
    let (header, rest) = CommitHeader::read_from_prefix(payload).ok()?;
    let entries = <[CommitEntry]>::ref_from_bytes(rest).ok()?;
    if entries.len() != usize::from(header.streams.get()) || is_whole && entries.len() != 1 {
        return None;
    }
    let streams: Vec<StreamSummary> = entries
        .iter()
        .map(|entry| StreamSummary {
            stream: entry.stream.get(),
            bytes: entry.bytes.get(),
            segments: entry.segments.get(),
            digest: entry.digest.get(),
            first_segment: entry.first_segment.get(),
        })
        .collect();
    if is_whole && streams[0].bytes != of_stream as u64 {
        return None;
    }
    let numbered = streams.iter().enumerate().all(|(at, stream)| usize::from(stream.stream) == at);
    let deferred_calls = (header.deferred_bytes.get(), header.deferred_crc.get());
    let hash = u128::from(header.hash_low.get()) | u128::from(header.hash_high.get()) << 64;
    let info = CommitInfo {
        epoch,
        calls: header.calls.get(),
        timestamp_ns: header.timestamp_ns.get(),
        seed: header.seed.get(),
        hash_before: (header.hash_known.get() == 1).then_some(StateHash(hash)),
        streams,
    };
    let deferred_calls = (header.deferred_known.get() == 1).then_some(deferred_calls);
    numbered.then_some(Commit { info, deferred_calls, program: header.program.get() })
}

/// The state of the segments after a scan: held for what is committed or deferred, otherwise free.
fn hold_found(scan: &Scan, index: &Index, records: &[&Record], range: CommittedRange) -> Space {
    let mut space = Space::default();
    let CommittedRange { checkpoint, last } = range;
    assert!(checkpoint <= last, "committed epochs follow the checkpoint");
    let count = index.epochs.len() as u64;
    assert!(count == last.0 - checkpoint.0, "all epochs from {checkpoint} to {last} are there");
    let newest = index.deferred_records.keys().map(|(epoch, _)| *epoch).max();
    assert!(newest <= Some(last.next()), "no record of deferred calls is of a later epoch");
    space.attempt_next = scan.attempt_max.saturating_add(1);
    (space.released, space.committed, space.durable) = (range.checkpoint, range.last, range.last);
    space.timestamp_ns = index.timestamp_ns();
    space.free.grow(scan.segments_total);
    for (epoch, committed) in &index.epochs {
        let mut holding = Holding::new(Kind::Stream, *epoch, committed.attempt);
        holding.committed = true;
        holding.streams = committed.info.streams.len() as u32;
        holding.calls = committed.info.calls;
        holding.hash_before = committed.info.hash_before;
        holding.bytes = committed.info.streams.iter().map(|stream| stream.bytes).sum();
        holding.segments.extend(&committed.commit_segments);
        holding.segments.extend(committed.streams.iter().flatten());
        space.holdings.push(holding);
    }
    for ((epoch, attempt), deferred_calls) in &index.deferred_records {
        let mut holding = Holding::new(Kind::Deferred, *epoch, *attempt);
        holding.committed = true;
        (holding.bytes, holding.crc) = (deferred_calls.bytes, deferred_calls.crc);
        holding.segments.extend(&deferred_calls.segments);
        space.holdings.push(holding);
    }
    for record in records {
        let mut holding = Holding::new(record.kind, record.epoch, record.attempt);
        holding.committed = true;
        holding.segments.extend(&record.segments);
        space.holdings.push(holding);
    }
    for holding in space.holdings.iter() {
        for segment in &holding.segments {
            space.free.remove(*segment);
        }
    }
    let is_free = |segment: &&u32| space.free.contains(**segment);
    space.leftovers = scan.doubtful.iter().filter(is_free).copied().collect();
    space
}

fn summarize(scan: &Scan, index: &Index) -> Recovered {
    let summary = |(epoch, committed): (&EpochNumber, &CommittedEpoch)| {
        let streams = committed.streams.iter().map(Vec::len).sum::<usize>();
        EpochSummary {
            epoch: *epoch,
            streams: committed.streams.len() as u32,
            calls: committed.info.calls,
            bytes: committed.info.streams.iter().map(|stream| stream.bytes).sum(),
            segments: (streams + committed.commit_segments.len()) as u32,
            deferred_bytes: index
                .deferred_calls(*epoch)
                .map(|(_, deferred_calls)| deferred_calls.bytes),
            hash_before: committed.info.hash_before,
        }
    };
    let mut uncommitted: Vec<EpochNumber> = scan.found.keys().map(|key| key.epoch).collect();
    uncommitted.dedup();
    uncommitted.retain(|epoch| {
        let is_known = index.epochs.contains_key(epoch) || index.deferred_calls(*epoch).is_some();
        !is_known && *epoch != PROGRAM_EPOCH
    });
    Recovered {
        committed: index.epochs.iter().map(summary).collect(),
        uncommitted,
        scanned_bytes: scan.read_bytes,
        timestamp_ns: index.timestamp_ns(),
        ..Recovered::default()
    }
}
