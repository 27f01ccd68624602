//! Rows that are longer than the store takes, in pieces.
//!
//! ```text
//! at the row's key   0    a byte that begins no row
//!                    1..5 the length of the row
//!                    5..  its hash
//! at a piece's key   0..8 the hash
//!                    8..  a part of the row, 262,120 bytes but for the last
//! ```
//!
//! The key of a piece is that of the row with a bit set in the table's id, and the piece's number
//! (u16) behind it. Numbers are little endian, but for that of keys. The hash says whether a reader
//! of the newest state has pieces of one row.

use sql::ir::{ObjectId, Space};
use values::row::IN_PIECES;
use values::{Error, Result, SqlState};
use xxhash_rust::xxh3::xxh3_64;

/// The longest row that the store takes whole.
pub(super) const WHOLE_BYTES_MAX: usize = 262_128;
/// Where pieces are.
pub(super) const SPACE: Space = Space::Row256;
/// The first key of pieces: ids of tables are smaller.
pub(super) const FIRST_KEY: [u8; ObjectId::BYTES] = PIECES_BIT.to_be_bytes();

const PIECES_BIT: u32 = 1 << 31;
const HASH_BYTES: usize = size_of::<u64>();
const PIECE_BYTES: usize = WHOLE_BYTES_MAX - HASH_BYTES;
const HEAD_BYTES: usize = 1 + size_of::<u32>() + HASH_BYTES;
const KEY_BYTES_MAX: usize = 256;

/// What is at the key of a row in pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    bytes: u32,
    hash: u64,
}

/// What is stored of a row in pieces: the head, and each piece with its key.
pub(super) struct Split {
    pub(super) head: Vec<u8>,
    pub(super) pieces: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Head {
    /// The head that these bytes of a space are; `None` if they are a whole row, an entry of an
    /// index, or of the catalog.
    pub(super) fn read(space: Space, stored: &[u8]) -> Option<Head> {
        if space == Space::Catalog {
            return None;
        }
        let (&IN_PIECES, rest) = stored.split_first().filter(|_| stored.len() == HEAD_BYTES)?
        else {
            return None;
        };
        let (bytes, hash) = rest.split_first_chunk()?;
        let (bytes, hash) = (u32::from_le_bytes(*bytes), u64::from_le_bytes(hash.try_into().ok()?));
        Some(Head { bytes, hash })
    }

    fn write(self) -> Vec<u8> {
        let hash = self.hash.to_le_bytes();
        [&[IN_PIECES][..], &self.bytes.to_le_bytes(), &hash].concat()
    }

    /// How many pieces there are.
    fn count(self) -> usize {
        (self.bytes as usize).div_ceil(PIECE_BYTES)
    }

    /// The keys of the pieces of the row with this key.
    pub(super) fn keys(self, key: &[u8]) -> impl Iterator<Item = Vec<u8>> {
        (0..self.count()).map(move |at| piece_key(key, at))
    }

    /// The row, from pieces that `get` finds by their keys; `None` if they are of several rows.
    ///
    /// # Errors
    /// Those of `get`.
    pub(super) fn gather(
        self,
        key: &[u8],
        mut get: impl FnMut(&[u8]) -> Result<Option<Vec<u8>>>,
    ) -> Result<Option<Vec<u8>>> {
        let mut row = Vec::with_capacity(self.bytes as usize);
        for key in self.keys(key) {
            match get(&key)? {
                Some(piece) if piece.starts_with(&self.hash.to_le_bytes()) => {
                    row.extend_from_slice(&piece[HASH_BYTES..]);
                }
                Some(_) | None => return Ok(None),
            }
        }
        let is_whole = row.len() == self.bytes as usize && xxh3_64(&row) == self.hash;
        Ok(is_whole.then_some(row))
    }
}

/// The key of a piece of the row with this key.
fn piece_key(key: &[u8], at: usize) -> Vec<u8> {
    let (id, rest) = key.split_first_chunk().expect("keys of rows begin with their tables' ids");
    let number = u16::try_from(at).expect("rows are limited");
    [&pieces_of(*id)[..], rest, &number.to_be_bytes()].concat()
}

/// What the keys of pieces begin with, of the table of whose rows the keys begin with this.
pub(super) fn pieces_of(id: [u8; ObjectId::BYTES]) -> [u8; ObjectId::BYTES] {
    (u32::from_be_bytes(id) | PIECES_BIT).to_be_bytes()
}

/// Divides a row, if the store does not take it whole.
///
/// # Errors
/// That its key is too long for pieces.
pub(super) fn split(key: &[u8], row: &[u8]) -> Result<Option<Split>> {
    if row.len() <= WHOLE_BYTES_MAX {
        return Ok(None);
    }
    if key.len() + size_of::<u16>() > KEY_BYTES_MAX {
        let message = format!(
            "row has {} bytes, at most {WHOLE_BYTES_MAX} are stored with a key of so many bytes",
            row.len()
        );
        return Err(Error::new(SqlState::LIMIT_EXCEEDED, message));
    }
    let bytes = u32::try_from(row.len()).expect("rows are limited");
    let head = Head { bytes, hash: xxh3_64(row) };
    let hash = head.hash.to_le_bytes();
    let piece = |(key, part): (Vec<u8>, &[u8])| (key, [&hash[..], part].concat());
    let pieces = head.keys(key).zip(row.chunks(PIECE_BYTES)).map(piece).collect();
    Ok(Some(Split { head: head.write(), pieces }))
}

/// Checks that the store takes a row of the catalog whole.
///
/// # Errors
/// `LIMIT_EXCEEDED`, if it does not.
pub(super) fn check_whole(row: &[u8]) -> Result<()> {
    if row.len() <= WHOLE_BYTES_MAX {
        return Ok(());
    }
    let bytes = row.len();
    let message = format!("definition has {bytes} bytes, at most {WHOLE_BYTES_MAX} are stored");
    Err(Error::new(SqlState::LIMIT_EXCEEDED, message).with_hint("Use shorter constants in it."))
}

/// The error of a row of which pieces are missing or of other rows.
pub(super) fn damaged() -> Error {
    Error::corrupted("row is damaged: its pieces are not those of one row")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const KEY: [u8; 8] = [0, 0, 64, 1, 128, 0, 0, 7];

    #[test]
    fn a_row_is_what_its_pieces_are() {
        for bytes in [WHOLE_BYTES_MAX + 1, 2 * PIECE_BYTES, 2 * PIECE_BYTES + 1, 16 << 20] {
            let row: Vec<u8> = (0..bytes).map(|at| (at * at / 7) as u8).collect();
            let split = split(&KEY, &row).unwrap().unwrap();
            assert!(split.pieces.iter().all(|(_, piece)| piece.len() <= WHOLE_BYTES_MAX));
            let head = Head::read(Space::Key64, &split.head).unwrap();
            let mut pieces: BTreeMap<_, _> = split.pieces.into_iter().collect();
            assert!(pieces.keys().all(|key| key[..] >= FIRST_KEY[..]));
            let found = head.gather(&KEY, |key| Ok(pieces.get(key).cloned())).unwrap();
            assert_eq!(found.unwrap(), row);
            // Pieces of another row, or of none.
            let last = pieces.pop_last().unwrap();
            assert_eq!(head.gather(&KEY, |key| Ok(pieces.get(key).cloned())).unwrap(), None);
            let other = last.1.iter().map(|byte| !byte).collect();
            pieces.insert(last.0, other);
            assert_eq!(head.gather(&KEY, |key| Ok(pieces.get(key).cloned())).unwrap(), None);
        }
    }

    #[test]
    fn rows_that_the_store_takes_stay_whole() {
        assert!(split(&KEY, &vec![1; WHOLE_BYTES_MAX]).unwrap().is_none());
        assert!(split(&[1; 255], &vec![1; WHOLE_BYTES_MAX + 1]).is_err());
        for row in [&[][..], &[1; HEAD_BYTES], &[IN_PIECES; HEAD_BYTES - 1], &KEY] {
            assert_eq!(Head::read(Space::Key64, row), None);
        }
    }
}
