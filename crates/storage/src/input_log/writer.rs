//! The streams of the workers.

use std::ops::Range;

use pmem::Port;

use super::error::LogError;
use super::format::{HEADER_BYTES, Kind, StreamDigest, commit_bytes};
use super::geometry::Geometry;
use super::log::InputLog;
use super::segment::{OnlyStream, SegmentPlace, complete_header};
use super::space::Run;
use super::summary::{CommitInfo, StreamSummary};
use crate::ids::EpochNumber;

/// So many bytes of a stream are written at once, if a segment has no more.
const BUFFER_BYTES: usize = 64 << 10;

/// Writes one stream after the other for one worker. Keeps its buffer from epoch to epoch.
#[derive(Debug)]
pub struct StreamWriter {
    /// Segments as they are written: each has room for its header, then payload.
    buffer: Vec<u8>,
    segment_bytes: usize,
    /// Bytes of the buffer in use, headers included.
    filled: usize,
    /// Where in the buffer the segment ends that is being filled.
    segment_end: usize,
    started: bool,
    epoch: EpochNumber,
    attempt: u64,
    digest: StreamDigest,
    summary: StreamSummary,
}

impl StreamWriter {
    pub(super) fn new(segment_bytes: u64) -> Self {
        assert!(segment_bytes > HEADER_BYTES as u64, "a segment has room behind its header");
        let segment_bytes = segment_bytes as usize;
        Self {
            buffer: vec![0; segment_bytes.max(BUFFER_BYTES)],
            segment_bytes,
            filled: HEADER_BYTES,
            segment_end: segment_bytes,
            started: false,
            epoch: EpochNumber(0),
            attempt: 0,
            digest: StreamDigest::default(),
            summary: StreamSummary::default(),
        }
    }

    /// Starts a stream of an epoch that was begun. Whatever the writer had not finished is
    /// forgotten, which is right if its epoch was abandoned.
    ///
    /// # Panics
    /// If the epoch is not begun, or is committed or abandoned.
    pub fn start(&mut self, log: &InputLog, epoch: EpochNumber, stream: u16) {
        assert!(
            self.segment_bytes as u64 == log.segment_bytes(),
            "a writer stays with the log that made it"
        );
        self.attempt = log.space().open_epoch(epoch).attempt;
        self.epoch = epoch;
        self.empty_buffer();
        self.digest = StreamDigest::default();
        self.summary = StreamSummary { stream, ..StreamSummary::default() };
        self.started = true;
    }

    fn empty_buffer(&mut self) {
        self.filled = HEADER_BYTES;
        self.segment_end = self.segment_bytes;
    }

    /// Appends bytes to the stream. Full buffers are written on the way.
    ///
    /// # Errors
    /// [`LogError::Full`], after which the epoch can only be abandoned; the device's.
    ///
    /// # Panics
    /// If no stream is started.
    #[inline]
    pub fn append(
        &mut self,
        log: &InputLog,
        port: &mut Port,
        bytes: &[u8],
    ) -> Result<(), LogError> {
        assert!(self.started, "a stream is started before it is appended to");
        match self.buffer[self.filled..self.segment_end].get_mut(..bytes.len()) {
            Some(place) => {
                place.copy_from_slice(bytes);
                self.filled += bytes.len();
                Ok(())
            }
            None => self.append_in_pieces(log, port, bytes),
        }
    }

    /// [`StreamWriter::append`] beyond the end of a segment.
    #[cold]
    fn append_in_pieces(
        &mut self,
        log: &InputLog,
        port: &mut Port,
        mut bytes: &[u8],
    ) -> Result<(), LogError> {
        loop {
            let (now, later) = bytes.split_at(bytes.len().min(self.segment_end - self.filled));
            self.buffer[self.filled..self.filled + now.len()].copy_from_slice(now);
            self.filled += now.len();
            if later.is_empty() {
                return Ok(());
            }
            if self.segment_end == self.buffer.len() {
                self.write_buffer(log, port)?;
            } else {
                self.filled = self.segment_end + HEADER_BYTES;
                self.segment_end += self.segment_bytes;
            }
            bytes = later;
        }
    }

    /// Writes what is left, and fences the port, so that the next [`InputLog::make_durable`] covers
    /// the stream (O-22). A stream without bytes has no segments.
    ///
    /// # Errors
    /// As [`StreamWriter::append`].
    ///
    /// # Panics
    /// If no stream is started.
    pub fn finish(&mut self, log: &InputLog, port: &mut Port) -> Result<StreamSummary, LogError> {
        assert!(self.started, "a stream is started before it is finished");
        if self.filled > HEADER_BYTES {
            self.write_buffer(log, port)?;
        }
        port.log_fence();
        self.started = false;
        self.summary.digest = self.digest.value();
        Ok(self.summary)
    }

    /// Finishes the only stream of an epoch and commits the epoch: with one write, if the log has
    /// room for both in one place. `commit` names no stream yet. The epoch counts once
    /// [`InputLog::make_durable`] returned; `syncs_next` says that the caller does nothing else
    /// before.
    ///
    /// # Errors
    /// As [`StreamWriter::finish`] and [`InputLog::commit`].
    ///
    /// # Panics
    /// As [`StreamWriter::finish`] and [`InputLog::commit`]; if another stream was written.
    pub fn finish_and_commit(
        &mut self,
        log: &InputLog,
        port: &mut Port,
        mut commit: CommitInfo,
        syncs_next: bool,
    ) -> Result<(), LogError> {
        assert!(commit.streams.is_empty(), "the only stream of an epoch is not named yet");
        assert!(commit.epoch == self.epoch, "a stream is committed with its own epoch");
        assert!(self.started, "a stream is started before it is finished");
        let is_unwritten = self.summary.segments == 0;
        if is_unwritten && self.filled + commit_bytes(1) <= self.segment_bytes {
            self.summary.bytes = (self.filled - HEADER_BYTES) as u64;
            let stream = self.only_stream(&mut commit, syncs_next);
            return log.commit_whole(port, &commit, stream);
        }
        if is_unwritten && let Some(run) = self.take_with_record(log) {
            self.complete(log.geometry(), run.first, 0..self.filled);
            self.summary.digest = self.digest.value();
            let stream = self.only_stream(&mut commit, syncs_next);
            return log.commit_behind(port, &commit, stream, run);
        }
        commit.streams.push(self.finish(log, port)?);
        log.commit(port, &commit)
    }

    /// Finishes the stream, and names it; the log writes it.
    fn only_stream(&mut self, commit: &mut CommitInfo, syncs_next: bool) -> OnlyStream<'_> {
        self.started = false;
        commit.streams.push(self.summary);
        OnlyStream { buffer: &mut self.buffer, filled: self.filled, syncs_next }
    }

    /// Takes neighbouring segments for all of the stream and a commit record, if there are such.
    fn take_with_record(&self, log: &InputLog) -> Option<Run> {
        let count = self.filled.div_ceil(self.segment_bytes) + 1;
        let fits = count * self.segment_bytes <= self.buffer.len();
        log.space().take_in_one(self.attempt, fits.then_some(count as u32)?)
    }

    #[cold]
    fn write_buffer(&mut self, log: &InputLog, port: &mut Port) -> Result<(), LogError> {
        let geometry = log.geometry();
        let (mut at, filled) = (0, self.filled);
        while at < filled {
            let count = (filled - at).div_ceil(self.segment_bytes);
            let run = log.take(self.epoch, self.attempt, count as u32)?;
            let end = filled.min(at + run.len as usize * self.segment_bytes);
            self.complete(geometry, run.first, at..end);
            port.log_write(geometry.offset(run.first), &self.buffer[at..end])?;
            at = end;
        }
        self.empty_buffer();
        Ok(())
    }

    /// Completes the headers of a part of the buffer, which is written to the segments from `first`
    /// on, and adds it to what is known of the stream.
    fn complete(&mut self, geometry: Geometry, first: u32, part: Range<usize>) {
        if self.summary.segments == 0 {
            self.summary.first_segment = first;
        }
        for segment in self.buffer[part].chunks_mut(self.segment_bytes) {
            assert!(segment.len() > HEADER_BYTES, "no empty segment is written");
            let payload_bytes = segment.len() - HEADER_BYTES;
            let place = SegmentPlace {
                kind: Kind::Stream,
                epoch: self.epoch,
                attempt: self.attempt,
                stream: self.summary.stream,
                ordinal: self.summary.segments,
                total_bytes: 0,
            };
            let payload_crc = complete_header(geometry, place, segment);
            self.digest.add(payload_bytes as u32, payload_crc);
            self.summary.segments += 1;
            self.summary.bytes += payload_bytes as u64;
        }
    }
}

impl InputLog {
    /// A writer for one worker, to be reused in every epoch.
    pub fn stream_writer(&self) -> StreamWriter {
        StreamWriter::new(self.geometry.segment_bytes)
    }
}
