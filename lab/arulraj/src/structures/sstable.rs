//! An SSTable: a run of entries in a file, which never changes (the paper's 3.3).
//!
//! The file has the entries of all tables in the order of their keys, each inlined; behind them for
//! each table where its entries are; the Bloom filter; and where these begin, with their checksum.
//! Index and filter are in memory while the file is open.

use pmem::Device;

use super::bloom::Bloom;
use super::btree::BTree;
use super::levels::RunSize;
use crate::ground::{FileId, Nvm};
use crate::options::Options;
use crate::schema::{Entry, Key, Table, decode_key, encode_key, take, take_u64};
use crate::{Error, Result};

const FOOTER_BYTES: u64 = 32;
/// An entry's place in the index: the offset above its length.
const LEN_BITS: u32 = 24;

/// The file of a table, and what the manifest says of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TableFile {
    pub(crate) file: FileId,
    /// The number in the file's name.
    pub(crate) number: u64,
    pub(crate) level: u64,
}

/// A table in a file.
#[derive(Debug)]
pub(crate) struct SsTable {
    pub(crate) at: TableFile,
    /// Of all entries.
    bytes: u64,
    indexes: Vec<BTree>,
    bloom: Bloom,
}

/// The entries of all tables, in order.
pub(crate) type Sorted = Vec<Vec<(Key, Entry)>>;

impl SsTable {
    /// Writes entries into an empty file, which is not synced.
    pub(crate) fn write<D: Device>(
        nvm: &mut Nvm<D>,
        tables: &[Table],
        options: &Options,
        at: TableFile,
        entries: &Sorted,
    ) -> Result<Self> {
        let keys = entries.iter().map(|entries| entries.len() as u64).sum();
        let bloom = Bloom::create(nvm, keys, options.bloom_bits)?;
        let (mut bytes, mut index, mut indexes) = (Vec::new(), Vec::new(), Vec::new());
        for (number, (table, entries)) in tables.iter().zip(entries).enumerate() {
            let tree = BTree::create(nvm, table.key_words(), options.node_bytes, false)?;
            index.extend_from_slice(&(entries.len() as u64).to_le_bytes());
            for (key, entry) in entries {
                let at = bytes.len() as u64;
                entry.encode(&mut bytes);
                let place = at << LEN_BITS | (bytes.len() as u64 - at);
                encode_key(table, key, &mut index);
                index.extend_from_slice(&place.to_le_bytes());
                tree.insert(nvm, key, place)?;
                bloom.add(nvm, number, key);
            }
            indexes.push(tree);
        }
        let index_at = bytes.len() as u64;
        let bloom_at = index.len() as u64;
        index.extend(bloom.read(nvm));
        let crc = u64::from(crc32fast::hash(&index));
        bytes.append(&mut index);
        for word in [index_at, bloom_at, bloom.bits, crc] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        nvm.written.table += bytes.len() as u64;
        nvm.write_file(at.file, 0, &bytes)?;
        Ok(Self { at, bytes: index_at, indexes, bloom })
    }

    /// Loads index and filter.
    pub(crate) fn open<D: Device>(
        nvm: &mut Nvm<D>,
        tables: &[Table],
        options: &Options,
        at: TableFile,
    ) -> Result<Self> {
        let TableFile { file, number, .. } = at;
        let size = nvm.file_size(file);
        let short = || Error::Corrupt(format!("table {number} is cut"));
        let footer_at = size.checked_sub(FOOTER_BYTES).ok_or_else(short)?;
        let mut footer = [0; FOOTER_BYTES as usize];
        nvm.read_file(file, footer_at, &mut footer)?;
        let words: Vec<u64> =
            footer.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let index_bytes = footer_at.checked_sub(words[0]).ok_or_else(short)?;
        let mut index = vec![0; index_bytes as usize];
        nvm.read_file(file, words[0], &mut index)?;
        if u64::from(crc32fast::hash(&index)) != words[3] {
            return Err(Error::Corrupt(format!("the index of table {number} is damaged")));
        }
        let mut rest = index.as_slice();
        let mut indexes = Vec::new();
        for table in tables {
            let tree = BTree::create(nvm, table.key_words(), options.node_bytes, false)?;
            for _ in 0..take_u64(&mut rest)? {
                let key = decode_key(table, &mut rest)?;
                tree.insert(nvm, &key, take_u64(&mut rest)?)?;
            }
            indexes.push(tree);
        }
        let filter = take(&mut rest, (words[2] / 8) as usize)?;
        let bloom = Bloom::load(nvm, filter, options.bloom_bits)?;
        Ok(Self { at, bytes: words[0], indexes, bloom })
    }

    pub(crate) fn size(&self) -> RunSize {
        RunSize { level: self.at.level, bytes: self.bytes }
    }

    /// The entry of a key, if there is one.
    pub(crate) fn get<D: Device>(
        &self,
        nvm: &mut Nvm<D>,
        tables: &[Table],
        table: usize,
        key: &Key,
    ) -> Result<Option<Entry>> {
        if !self.bloom.may_have(nvm, table, key) {
            return Ok(None);
        }
        let Some(place) = self.indexes[table].get(nvm, key) else { return Ok(None) };
        let mut bytes = vec![0; (place & ((1 << LEN_BITS) - 1)) as usize];
        nvm.read_file(self.at.file, place >> LEN_BITS, &mut bytes)?;
        let columns = tables[table].columns.len();
        Entry::decode(columns, &mut bytes.as_slice()).map(Some)
    }

    /// The keys in a range.
    pub(crate) fn keys<D: Device>(
        &self,
        nvm: &mut Nvm<D>,
        table: usize,
        from: &Key,
        to: Option<&Key>,
    ) -> Vec<Key> {
        self.indexes[table].keys(nvm, from, to)
    }

    /// All entries of a table, read at once.
    pub(crate) fn entries<D: Device>(
        &self,
        nvm: &mut Nvm<D>,
        tables: &[Table],
        table: usize,
    ) -> Result<Vec<(Key, Entry)>> {
        let places = self.indexes[table].range(nvm, &Key::MIN, None);
        let Some((_, first)) = places.first() else { return Ok(Vec::new()) };
        let start = first >> LEN_BITS;
        let end = places
            .last()
            .map_or(start, |(_, last)| (last >> LEN_BITS) + (last & ((1 << LEN_BITS) - 1)));
        let mut bytes = vec![0; (end - start) as usize];
        nvm.read_file(self.at.file, start, &mut bytes)?;
        let mut rest = bytes.as_slice();
        let columns = tables[table].columns.len();
        places.into_iter().map(|(key, _)| Ok((key, Entry::decode(columns, &mut rest)?))).collect()
    }

    /// Removes the file, and what is in memory.
    pub(crate) fn remove<D: Device>(self, nvm: &mut Nvm<D>) {
        for tree in &self.indexes {
            let slots = tree.slots(nvm);
            nvm.recycle_all(slots);
        }
        nvm.recycle_all(self.bloom.parts);
        nvm.remove_file(self.at.file);
    }
}
