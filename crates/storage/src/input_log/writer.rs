//! The streams of the workers.

use pmem::{Device, Port};

use super::error::LogError;
use super::format::{HEADER_BYTES, Kind, StreamDigest, commit_bytes};
use super::log::InputLog;
use super::segment::{OnlyStream, SegmentPlace, write_segment};
use super::space::Run;
use super::summary::{CommitInfo, StreamSummary};
use crate::ids::EpochNumber;

/// Most segments that a stream takes at once. A stream starts with one and doubles.
const RUN_SEGMENTS_MAX: u32 = 8;

/// Writes one stream after the other for one worker. Keeps its buffer from epoch to epoch.
#[derive(Debug)]
pub struct StreamWriter {
    /// Room for a header, then payload; one segment long.
    buffer: Vec<u8>,
    /// Bytes of the buffer in use, the header included.
    filled: usize,
    /// Segments allocated and not written yet.
    run: Run,
    run_len_next: u32,
    started: bool,
    epoch: EpochNumber,
    attempt: u64,
    digest: StreamDigest,
    summary: StreamSummary,
}

impl StreamWriter {
    pub(super) fn new(segment_bytes: u64) -> Self {
        assert!(segment_bytes > HEADER_BYTES as u64, "a segment has room behind its header");
        Self {
            buffer: vec![0; segment_bytes as usize],
            filled: HEADER_BYTES,
            run: Run::default(),
            run_len_next: 1,
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
    pub fn start<D: Device>(&mut self, log: &InputLog<D>, epoch: EpochNumber, stream: u16) {
        assert!(
            self.buffer.len() as u64 == log.segment_bytes(),
            "a writer stays with the log that made it"
        );
        self.attempt = log.space().open_epoch(epoch).attempt;
        self.epoch = epoch;
        self.filled = HEADER_BYTES;
        self.run = Run::default();
        self.run_len_next = 1;
        self.digest = StreamDigest::default();
        self.summary = StreamSummary { stream, ..StreamSummary::default() };
        self.started = true;
    }

    /// Appends bytes to the stream. Full segments are written on the way.
    ///
    /// # Errors
    /// [`LogError::Full`], after which the epoch can only be abandoned; the device's.
    ///
    /// # Panics
    /// If no stream is started.
    #[inline]
    pub fn append<D: Device>(
        &mut self,
        log: &InputLog<D>,
        port: &mut Port<D>,
        bytes: &[u8],
    ) -> Result<(), LogError> {
        assert!(self.started, "a stream is started before it is appended to");
        match self.buffer[self.filled..].get_mut(..bytes.len()) {
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
    fn append_in_pieces<D: Device>(
        &mut self,
        log: &InputLog<D>,
        port: &mut Port<D>,
        mut bytes: &[u8],
    ) -> Result<(), LogError> {
        loop {
            let (now, later) = bytes.split_at(bytes.len().min(self.buffer.len() - self.filled));
            self.buffer[self.filled..self.filled + now.len()].copy_from_slice(now);
            self.filled += now.len();
            if later.is_empty() {
                return Ok(());
            }
            self.write_buffer(log, port)?;
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
    pub fn finish<D: Device>(
        &mut self,
        log: &InputLog<D>,
        port: &mut Port<D>,
    ) -> Result<StreamSummary, LogError> {
        assert!(self.started, "a stream is started before it is finished");
        if self.filled > HEADER_BYTES {
            self.write_buffer(log, port)?;
        }
        let unused = std::mem::take(&mut self.run);
        if unused.len > 0 {
            log.space().give_back(self.attempt, unused);
        }
        port.log_fence();
        self.started = false;
        self.summary.digest = self.digest.value();
        Ok(self.summary)
    }

    /// Finishes the only stream of an epoch and commits the epoch: with one write, if both fit in a
    /// segment. `commit` names no stream yet. The epoch counts once [`InputLog::make_durable`]
    /// returned; `syncs_next` says that the caller does nothing else before.
    ///
    /// # Errors
    /// As [`StreamWriter::finish`] and [`InputLog::commit`].
    ///
    /// # Panics
    /// As [`StreamWriter::finish`] and [`InputLog::commit`]; if another stream was written.
    pub fn finish_and_commit<D: Device>(
        &mut self,
        log: &InputLog<D>,
        port: &mut Port<D>,
        mut commit: CommitInfo,
        syncs_next: bool,
    ) -> Result<(), LogError> {
        assert!(commit.streams.is_empty(), "the only stream of an epoch is not named yet");
        assert!(commit.epoch == self.epoch, "a stream is committed with its own epoch");
        let is_whole =
            self.summary.segments == 0 && self.filled + commit_bytes(1) <= self.buffer.len();
        if !is_whole {
            commit.streams.push(self.finish(log, port)?);
            return log.commit(port, &commit);
        }
        assert!(self.started, "a stream is started before it is finished");
        self.started = false;
        self.summary.bytes = (self.filled - HEADER_BYTES) as u64;
        commit.streams.push(self.summary);
        log.commit_whole(
            port,
            &commit,
            OnlyStream { buffer: &mut self.buffer, filled: self.filled, syncs_next },
        )
    }

    #[cold]
    fn write_buffer<D: Device>(
        &mut self,
        log: &InputLog<D>,
        port: &mut Port<D>,
    ) -> Result<(), LogError> {
        assert!(self.filled > HEADER_BYTES, "no empty segment is written");
        if self.run.len == 0 {
            self.run = log.take(self.epoch, self.attempt, self.run_len_next)?;
            self.run_len_next = (self.run_len_next * 2).min(RUN_SEGMENTS_MAX);
        }
        let segment = self.run.pop().expect("a run has at least one segment");
        let payload_bytes = self.filled - HEADER_BYTES;
        let place = SegmentPlace {
            kind: Kind::Stream,
            epoch: self.epoch,
            attempt: self.attempt,
            stream: self.summary.stream,
            ordinal: self.summary.segments,
            total_bytes: 0,
        };
        let buffer = &mut self.buffer[..self.filled];
        let payload_crc = write_segment(port, log.geometry(), segment, place, buffer)?;
        self.digest.add(payload_bytes as u32, payload_crc);
        if self.summary.segments == 0 {
            self.summary.first_segment = segment;
        }
        self.summary.segments += 1;
        self.summary.bytes += payload_bytes as u64;
        self.filled = HEADER_BYTES;
        Ok(())
    }
}

impl<D: Device> InputLog<D> {
    /// A writer for one worker, to be reused in every epoch.
    pub fn stream_writer(&self) -> StreamWriter {
        StreamWriter::new(self.geometry.segment_bytes)
    }
}
