//! The write-ahead log of InP and Log: a file with what committed transactions changed (the paper's
//! 3.1 and 3.3).
//!
//! Records wait in memory until their group is written: one write and one fsync. A group is a
//! frame: its length, its checksum, its records. A transaction that aborts takes its records back,
//! so that the file has committed transactions only. A record has the images of the tuple before
//! and after, or of the fields that changed.

use pmem::Device;

use super::buffer::Buffer;
use crate::ground::{FileId, Nvm, Part};
use crate::options::{Fault, Options};
use crate::schema::{Entry, Key, Table, decode_key, encode_key, take, take_u64};
use crate::{Error, Result};

/// A change of a tuple.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub(crate) table: usize,
    pub(crate) key: Key,
    pub(crate) after: Entry,
}

/// The log.
#[derive(Debug)]
pub(crate) struct Wal {
    pub(crate) file: FileId,
    buffer: Buffer,
    /// Where the running transaction's records begin.
    transaction_at: u64,
}

impl Wal {
    pub(crate) fn new(file: FileId) -> Self {
        Self { file, buffer: Buffer::default(), transaction_at: 0 }
    }

    /// Goes on in another file; nothing waits for its group.
    pub(crate) fn begin_file(&mut self, file: FileId) {
        debug_assert_eq!(self.buffer.len(), 0, "a group ends with its file");
        self.file = file;
    }

    /// Adds a record.
    pub(crate) fn log<D: Device>(
        &mut self,
        nvm: &mut Nvm<D>,
        tables: &[Table],
        record: &Record,
        before: &Entry,
    ) -> Result<()> {
        let mut bytes = (record.table as u64).to_le_bytes().to_vec();
        encode_key(&tables[record.table], &record.key, &mut bytes);
        before.encode(&mut bytes);
        record.after.encode(&mut bytes);
        nvm.written.log += bytes.len() as u64;
        self.buffer.push(nvm, &bytes)
    }

    /// The running transaction has committed.
    pub(crate) fn commit(&mut self) {
        self.transaction_at = self.buffer.len();
    }

    /// It has not.
    pub(crate) fn abort(&mut self) {
        self.buffer.truncate(self.transaction_at);
    }

    /// Makes the group durable.
    pub(crate) fn sync<D: Device>(&mut self, nvm: &mut Nvm<D>, options: &Options) -> Result<()> {
        nvm.within(Part::Log, |nvm| {
            self.write(nvm)?;
            if !options.has(Fault::AnswerBeforeSync) {
                nvm.sync_file(self.file);
            }
            Ok(())
        })
    }

    /// Writes the group; it is durable once the file is synced.
    fn write<D: Device>(&mut self, nvm: &mut Nvm<D>) -> Result<()> {
        if self.buffer.len() == 0 {
            return Ok(());
        }
        let mut records = self.buffer.take(nvm);
        let mut frame = (records.len() as u64).to_le_bytes().to_vec();
        frame.extend_from_slice(&u64::from(crc32fast::hash(&records)).to_le_bytes());
        frame.append(&mut records);
        self.transaction_at = 0;
        let end = nvm.file_size(self.file);
        nvm.write_file(self.file, end, &frame)
    }

    /// All records of a log's file, in order.
    pub(crate) fn read<D: Device>(
        nvm: &mut Nvm<D>,
        file: FileId,
        tables: &[Table],
    ) -> Result<Vec<Record>> {
        let bytes = nvm.read_whole_file(file)?;
        let mut rest = bytes.as_slice();
        let mut records = Vec::new();
        while !rest.is_empty() {
            let (len, crc) = (take_u64(&mut rest)?, take_u64(&mut rest)?);
            let mut frame = take(&mut rest, len as usize)?;
            if u64::from(crc32fast::hash(frame)) != crc {
                return Err(Error::Corrupt("a group of the log has a wrong checksum".into()));
            }
            while !frame.is_empty() {
                records.push(read_record(tables, &mut frame)?);
            }
        }
        Ok(records)
    }
}

fn read_record(tables: &[Table], frame: &mut &[u8]) -> Result<Record> {
    let table = take_u64(frame)? as usize;
    let of = tables.get(table);
    let of = of.ok_or_else(|| Error::Corrupt(format!("a record of table {table}")))?;
    let key = decode_key(of, frame)?;
    Entry::decode(of.columns.len(), frame)?;
    let after = Entry::decode(of.columns.len(), frame)?;
    Ok(Record { table, key, after })
}
