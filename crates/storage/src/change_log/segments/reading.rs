//! Reads a file of the change log.

use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::{HEAD_OF_FILE_BYTES, MAGIC, Segment};
use crate::change_log::record::{self, EpochChanges, HEAD_BYTES};
use crate::ids::EpochNumber;

/// The records of a file, up to a length.
pub(crate) struct Reading {
    file: File,
    path: PathBuf,
    before: EpochNumber,
    /// Where the records end.
    end: u64,
}

/// An epoch, its changes, and the bytes of its record.
pub(crate) type Record = (EpochNumber, EpochChanges, u64);

/// Whether a file begins as one whose first epoch follows `before`.
pub(super) fn has_head(path: &Path, before: EpochNumber) -> io::Result<bool> {
    let mut head = [0; HEAD_OF_FILE_BYTES as usize];
    match File::open(path)?.read_exact(&mut head) {
        Ok(()) => Ok(head[..8] == MAGIC && head[8..] == before.0.to_le_bytes()),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

impl Segment {
    /// All that the file has.
    pub(super) fn reading(&self) -> io::Result<Reading> {
        let end = self.path.metadata()?.len();
        self.reading_up_to(end)
    }

    /// The whole records that were found or written.
    pub(super) fn reading_whole(&self) -> io::Result<Reading> {
        self.reading_up_to(self.bytes)
    }

    fn reading_up_to(&self, end: u64) -> io::Result<Reading> {
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(HEAD_OF_FILE_BYTES))?;
        Ok(Reading { file, path: self.path.clone(), before: self.before, end })
    }
}

impl Reading {
    /// The records in their order; an error is the last item.
    pub(crate) fn records(self) -> impl Iterator<Item = io::Result<Record>> {
        let Self { file, path, mut before, end } = self;
        let mut input = BufReader::new(file);
        let (mut at, mut has_failed) = (HEAD_OF_FILE_BYTES, false);
        std::iter::from_fn(move || {
            if at >= end || has_failed {
                return None;
            }
            let found = read_record(&mut input, end - at).transpose();
            let next = found
                .filter(|found| found.as_ref().map_or(true, |(epoch, ..)| *epoch == before.next()));
            let record = next.unwrap_or_else(|| {
                let what = format!("{} is damaged at byte {at}", path.display());
                Err(io::Error::new(ErrorKind::InvalidData, what))
            });
            match &record {
                Ok((epoch, _, bytes)) => (before, at) = (*epoch, at + bytes),
                Err(_) => has_failed = true,
            }
            Some(record)
        })
    }
}

/// The next record; `None` if it is damaged.
fn read_record(input: &mut impl Read, left: u64) -> io::Result<Option<Record>> {
    let mut head = [0; HEAD_BYTES];
    if left < HEAD_BYTES as u64 || !fill(input, &mut head)? {
        return Ok(None);
    }
    let (len, crc) = record::head(head);
    let bytes = (HEAD_BYTES + len) as u64;
    if bytes > left {
        return Ok(None);
    }
    let mut body = vec![0; len];
    if !fill(input, &mut body)? {
        return Ok(None);
    }
    Ok(record::decode(&body, crc).map(|(epoch, changes)| (epoch, changes, bytes)))
}

/// Whether there was enough to be read.
fn fill(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match input.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}
