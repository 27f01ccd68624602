//! The records that the coordinator writes: the commit record of an epoch, and calls deferred to
//! the next.

use pmem::{Device, Port};
use zerocopy::IntoBytes;
use zerocopy::little_endian::{U16, U32, U64};

use super::error::LogError;
use super::format::{CommitEntry, CommitHeader, HEADER_BYTES, Kind, SegmentHeader};
use super::log::{InputLog, Scratch};
use super::segment::{OnlyStream, SegmentPlace, complete_header, write_segment};
use super::space::Run;
use super::summary::CommitInfo;
use crate::digest::StateHash;
use crate::ids::EpochNumber;

impl InputLog {
    /// Writes the commit record of an epoch whose streams are all finished. The epoch counts once
    /// [`InputLog::make_durable`] returned.
    ///
    /// # Errors
    /// [`LogError::Full`] if the space was not reserved, with the epoch still open; the device's.
    ///
    /// # Panics
    /// If the epoch is not begun, does not follow the one committed before, or that one is not
    /// durable yet; if the streams are not numbered from 0 without gaps. Each would let a crash
    /// lose an epoch before a committed one.
    pub fn commit(&self, port: &mut Port, info: &CommitInfo) -> Result<(), LogError> {
        let mut scratch = self.scratch();
        let (attempt, deferred_calls) = self.check_order(info);
        encode_commit(&mut scratch.payload, info, deferred_calls, self.program_attempt());
        let Scratch { segment, payload, segments } = &mut *scratch;
        let place = SegmentPlace::of_record(Kind::Commit, info.epoch, attempt, payload.len());
        self.take_record(info.epoch, attempt, payload.len(), segments)?;
        self.write_record(port, place, payload, segments, segment)?;
        port.log_fence();
        self.note_committed(info);
        Ok(())
    }

    /// Commits an epoch whose only stream was not written yet and fits in a segment with the
    /// record: as one record.
    pub(super) fn commit_whole(
        &self,
        port: &mut Port,
        info: &CommitInfo,
        stream: OnlyStream<'_>,
    ) -> Result<(), LogError> {
        let OnlyStream { filled, .. } = stream;
        assert!(info.streams.len() == 1, "one stream is in a segment with its commit record");
        assert!(filled >= HEADER_BYTES, "there is room for a header");
        let mut scratch = self.scratch();
        let (attempt, deferred_calls) = self.check_order(info);
        let Scratch { payload, segments, .. } = &mut *scratch;
        encode_commit(payload, info, deferred_calls, self.program_attempt());
        let end = filled + payload.len();
        assert!(end as u64 <= self.segment_bytes(), "stream and commit record fit in a segment");
        stream.buffer[filled..end].copy_from_slice(payload);
        let bytes = end - HEADER_BYTES;
        self.take_record(info.epoch, attempt, bytes, segments)?;
        assert!(segments.len() == 1, "a whole epoch is in one segment");
        let place = SegmentPlace::of_record(Kind::Epoch, info.epoch, attempt, bytes);
        complete_header(self.geometry(), place, &mut stream.buffer[..end]);
        self.write_only(port, segments[0], OnlyStream { filled: end, ..stream })?;
        self.note_committed(info);
        Ok(())
    }

    /// Commits an epoch whose only stream was not written yet, but has its headers: stream and
    /// record go to neighbouring segments, with one write.
    pub(super) fn commit_behind(
        &self,
        port: &mut Port,
        info: &CommitInfo,
        stream: OnlyStream<'_>,
        run: Run,
    ) -> Result<(), LogError> {
        let OnlyStream { filled, .. } = stream;
        let mut scratch = self.scratch();
        let (attempt, deferred_calls) = self.check_order(info);
        let payload = &mut scratch.payload;
        encode_commit(payload, info, deferred_calls, self.program_attempt());
        let at = self.geometry().offset(run.len - 1) as usize;
        assert!(filled <= at, "the stream ends before its commit record");
        let end = at + HEADER_BYTES + payload.len();
        stream.buffer[filled..at].fill(0);
        stream.buffer[at + HEADER_BYTES..end].copy_from_slice(payload);
        let place = SegmentPlace::of_record(Kind::Commit, info.epoch, attempt, payload.len());
        complete_header(self.geometry(), place, &mut stream.buffer[at..end]);
        self.write_only(port, run.first, OnlyStream { filled: end, ..stream })?;
        self.note_committed(info);
        Ok(())
    }

    /// Writes all of an epoch, padded with zeros to what the device writes without reading.
    fn write_only(
        &self,
        port: &mut Port,
        segment: u32,
        epoch: OnlyStream<'_>,
    ) -> Result<(), LogError> {
        let OnlyStream { buffer, filled, syncs_next } = epoch;
        let written = filled.next_multiple_of(self.device().log_unit(syncs_next));
        buffer[filled..written].fill(0);
        let (at, bytes) = (self.geometry().offset(segment), &buffer[..written]);
        if syncs_next { port.log_write_now(at, bytes) } else { port.log_write(at, bytes) }?;
        port.log_fence();
        Ok(())
    }

    /// The commit record of an epoch is written.
    fn note_committed(&self, info: &CommitInfo) {
        let mut space = self.space();
        let holding = space.close(info.epoch);
        assert!(!holding.segments.is_empty(), "what is committed has segments");
        holding.streams = info.streams.len() as u32;
        holding.calls = info.calls;
        holding.hash_before = info.hash_before;
        holding.bytes = info.streams.iter().map(|stream| stream.bytes).sum();
        space.committed = info.epoch;
        space.timestamp_ns = space.timestamp_ns.max(info.timestamp_ns);
        assert!(space.durable < space.committed, "epoch {} is not durable yet", info.epoch);
    }

    /// Keeps the calls that the end of `epoch - 1` hands over to `epoch`. To be made durable, with
    /// [`InputLog::make_durable`], before the checkpoint of `epoch - 1`; released with `epoch`.
    /// Replay of `epoch - 1` writes it again, into the room of the first one: `epoch - 1` has no
    /// checkpoint then, so that one is not needed, and there may be no room for two.
    ///
    /// # Errors
    /// [`LogError::Full`], with nothing written; the device's.
    ///
    /// # Panics
    /// If `epoch - 1` is not durably committed: nothing may follow from an epoch that a crash could
    /// undo.
    pub fn write_deferred_calls(
        &self,
        port: &mut Port,
        epoch: EpochNumber,
        bytes: &[u8],
    ) -> Result<(), LogError> {
        self.erase_leftovers()?;
        let mut scratch = self.scratch();
        let attempt = {
            let mut space = self.space();
            let durable = space.durable;
            assert!(
                epoch <= durable.next(),
                "record of deferred calls to epoch {epoch} but only {durable} is durable"
            );
            assert!(
                epoch > space.released,
                "record of deferred calls to epoch {epoch}, which has a checkpoint"
            );
            if space.released.next() < epoch {
                space.drop_deferred_records(epoch);
                self.change_index(|index| index.drop_deferred_records(epoch));
            }
            let attempt = space.hold(Kind::Deferred, epoch);
            space.inherit_deferred_promise(epoch, attempt);
            attempt
        };
        let Scratch { segment, segments, .. } = &mut *scratch;
        if let Err(error) = self.take_record(epoch, attempt, bytes.len(), segments) {
            self.space().drop_holding(attempt);
            return Err(error);
        }
        let place = SegmentPlace::of_record(Kind::Deferred, epoch, attempt, bytes.len());
        self.write_record(port, place, bytes, segments, segment)?;
        port.log_fence();
        let crc = crc32fast::hash(bytes);
        let mut space = self.space();
        let holding = space.close_deferred_record(attempt);
        (holding.bytes, holding.crc) = (bytes.len() as u64, crc);
        drop(space);
        self.change_index(|index| {
            index.add_deferred_record(epoch, attempt, segments, bytes.len() as u64, crc)
        });
        Ok(())
    }

    /// Writes everything that was found at open again, in place and with the same bytes, and makes
    /// it durable. Recovery calls it before it replays, so that an epoch that was read from a cache
    /// (after a killed process, or after a failed sync that the kernel forgot) is on the device
    /// before anything is built on it. A crash on the way leaves the same bytes.
    ///
    /// # Errors
    /// [`LogError::Damaged`] if a segment does not read as it did at open; the device's.
    pub fn harden(&self, port: &mut Port) -> Result<(), LogError> {
        let mut scratch = self.scratch();
        let segments: Vec<(EpochNumber, u64, u32)> = {
            let space = self.space();
            let each = space.holdings.iter().flat_map(|holding| {
                holding.segments.iter().map(|segment| (holding.epoch, holding.attempt, *segment))
            });
            each.collect()
        };
        for (epoch, attempt, segment) in segments {
            let offset = self.geometry().offset(segment);
            self.device().log_read(offset, &mut scratch.segment)?;
            // A bad read must not be written over what is still right on the device.
            let used = self.intact_bytes(epoch, attempt, offset, &scratch.segment)?;
            port.log_write(offset, &scratch.segment[..used])?;
        }
        port.log_fence();
        self.make_durable()
    }

    /// Bytes in use of a segment that was intact when the log was opened, if it still is.
    fn intact_bytes(
        &self,
        epoch: EpochNumber,
        attempt: u64,
        offset: u64,
        segment: &[u8],
    ) -> Result<usize, LogError> {
        let header = SegmentHeader::parse(segment);
        let same = header.filter(|header| {
            (header.epoch.get(), header.attempt.get()) == (epoch.0, attempt)
                && header.instance.get() == self.geometry().instance
        });
        let payload = same.and_then(|header| {
            let payload = segment[HEADER_BYTES..].get(..header.payload_bytes.get() as usize)?;
            (crc32fast::hash(payload) == header.payload_crc.get()).then_some(payload)
        });
        match payload {
            Some(payload) => Ok(HEADER_BYTES + payload.len()),
            None => Err(LogError::Damaged {
                epoch,
                stream: header.map_or(0, |header| header.stream.get()),
                ordinal: header.map_or(0, |header| header.ordinal.get()),
                offset,
                what: "it was intact when the log was opened and is not any more",
            }),
        }
    }

    /// Checks the order of commit records; returns the epoch's attempt, and bytes and checksum of
    /// its record of deferred calls.
    fn check_order(&self, info: &CommitInfo) -> (u64, Option<(u64, u32)>) {
        let mut space = self.space();
        let (committed, durable) = (space.committed, space.durable);
        assert!(
            info.epoch == committed.next(),
            "epoch {} is committed after {committed}",
            info.epoch
        );
        assert!(committed == durable, "epoch {committed} is durable before the next is committed");
        for (number, stream) in info.streams.iter().enumerate() {
            assert!(usize::from(stream.stream) == number, "streams are numbered from 0");
        }
        let deferred_calls =
            space.deferred_calls(info.epoch).filter(|deferred_calls| deferred_calls.committed);
        let deferred_calls =
            deferred_calls.map(|deferred_calls| (deferred_calls.bytes, deferred_calls.crc));
        (space.open_epoch(info.epoch).attempt, deferred_calls)
    }

    /// Takes the segments of a record; all of them or none.
    pub(super) fn take_record(
        &self,
        epoch: EpochNumber,
        attempt: u64,
        bytes: usize,
        segments: &mut Vec<u32>,
    ) -> Result<(), LogError> {
        segments.clear();
        for _ in 0..self.geometry().record_segments(bytes as u64) {
            match self.take(epoch, attempt, 1) {
                Ok(run) => segments.push(run.first),
                Err(error) => {
                    let mut space = self.space();
                    for first in segments.drain(..) {
                        space.give_back(attempt, Run { first, len: 1 });
                    }
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    pub(super) fn write_record(
        &self,
        port: &mut Port,
        place: SegmentPlace,
        bytes: &[u8],
        segments: &[u32],
        buffer: &mut [u8],
    ) -> Result<(), LogError> {
        let needed = self.geometry().record_segments(bytes.len() as u64);
        assert!(segments.len() as u64 == needed, "a record has the segments that it needs");
        assert!(place.total_bytes == bytes.len() as u64, "a header says how long its record is");
        assert!(place.ordinal == 0, "a record begins with its first segment");
        let mut rest = bytes;
        for (ordinal, segment) in segments.iter().enumerate() {
            let (now, later) = rest.split_at(rest.len().min(buffer.len() - HEADER_BYTES));
            let used = &mut buffer[..HEADER_BYTES + now.len()];
            used[HEADER_BYTES..].copy_from_slice(now);
            let place = SegmentPlace { ordinal: ordinal as u32, ..place };
            write_segment(port, self.geometry(), *segment, place, used)?;
            rest = later;
        }
        assert!(rest.is_empty(), "the segments hold the whole record");
        Ok(())
    }
}

fn encode_commit(
    payload: &mut Vec<u8>,
    info: &CommitInfo,
    deferred_calls: Option<(u64, u32)>,
    program: u64,
) {
    let streams = info.streams.len();
    assert!(u16::try_from(streams).is_ok(), "a commit record cannot count {streams} streams");
    let (deferred_bytes, deferred_crc) = deferred_calls.unwrap_or_default();
    let StateHash(hash) = info.hash_before.unwrap_or_default();
    let header = CommitHeader {
        calls: U64::new(info.calls),
        timestamp_ns: U64::new(info.timestamp_ns),
        seed: U64::new(info.seed),
        deferred_bytes: U64::new(deferred_bytes),
        deferred_crc: U32::new(deferred_crc),
        streams: U16::new(info.streams.len() as u16),
        deferred_known: U16::new(u16::from(deferred_calls.is_some())),
        program: U64::new(program),
        hash_low: U64::new(hash as u64),
        hash_high: U64::new((hash >> 64) as u64),
        hash_known: U64::new(u64::from(info.hash_before.is_some())),
    };
    payload.clear();
    payload.extend_from_slice(header.as_bytes());
    for stream in &info.streams {
        let entry = CommitEntry {
            bytes: U64::new(stream.bytes),
            segments: U32::new(stream.segments),
            digest: U32::new(stream.digest),
            first_segment: U32::new(stream.first_segment),
            stream: U16::new(stream.stream),
            reserved: U16::ZERO,
        };
        payload.extend_from_slice(entry.as_bytes());
    }
}
