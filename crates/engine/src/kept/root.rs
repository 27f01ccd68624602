//! The root: where everything of the kept indexes is, as words.
//!
//! | word | |
//! |---|---|
//! | 0 | magic, another one since it says what slots have |
//! | 1 | how many words follow the header |
//! | 2 | CRC-32 of them |
//! | 3.. | the epoch; the ids of rows; rows with stale values; each table's indexes |

use crate::index::{KeptOrder, KeptShard, Slots};
use crate::version::KeptIds;

const MAGIC: u64 = u64::from_le_bytes(*b"NVCRIND2");

/// Words before the content.
pub(super) const HEADER_WORDS: u64 = 3;

/// What a root says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Root {
    /// Of the snapshot.
    pub(crate) epoch: u64,
    pub(crate) ids: KeptIds,
    /// Rows whose stale external version the next epoch collects.
    pub(crate) stale: Vec<u64>,
    /// By the number of the table.
    pub(crate) tables: Vec<KeptTable>,
}

/// The indexes of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeptTable {
    pub(crate) slots: Slots,
    pub(crate) hash: Vec<KeptShard>,
    pub(crate) order: Option<KeptOrder>,
}

fn crc(content: &[u64]) -> u64 {
    let mut crc = crc32fast::Hasher::new();
    content.iter().for_each(|word| crc.update(&word.to_le_bytes()));
    crc.finalize().into()
}

impl Root {
    /// As words.
    pub(crate) fn encode(&self) -> Vec<u64> {
        let mut words = vec![MAGIC, 0, 0, self.epoch, self.ids.groups];
        put(&mut words, &self.ids.segments);
        put(&mut words, &self.ids.spare);
        put(&mut words, &self.stale.iter().map(|&id| [id]).collect::<Vec<_>>());
        words.push(self.tables.len() as u64);
        for table in &self.tables {
            words.push(u64::from(table.slots == Slots::Tags));
            put(&mut words, &table.hash);
            words.push(u64::from(table.order.is_some()));
            if let Some(order) = &table.order {
                words.push(order.len);
                put(&mut words, &order.slabs);
                put(&mut words, &order.chunks);
            }
        }
        let content = &words[HEADER_WORDS as usize..];
        (words[1], words[2]) = (content.len() as u64, crc(content));
        words
    }

    /// How many words of content follow a header.
    pub(super) fn content_words(header: [u64; HEADER_WORDS as usize]) -> Option<u64> {
        (header[0] == MAGIC).then_some(header[1])
    }

    /// Reads the words of a root; `None` if it is none.
    pub(crate) fn decode(words: &[u64]) -> Option<Self> {
        let (header, content) = words.split_first_chunk::<{ HEADER_WORDS as usize }>()?;
        let is_whole = Self::content_words(*header) == Some(content.len() as u64);
        if !is_whole || header[2] != crc(content) {
            return None;
        }
        let mut left = content;
        let left = &mut left;
        let (epoch, groups) = (take(left)?, take(left)?);
        let ids = KeptIds { groups, segments: list(left)?, spare: list(left)? };
        let stale = list(left)?.into_iter().map(|[id]| id).collect();
        let count = take(left)?;
        let tables = (0..count).map(|_| {
            let slots = match take(left)? {
                0 => Slots::Words,
                1 => Slots::Tags,
                _ => return None,
            };
            let hash = list(left)?;
            let order = match take(left)? {
                0 => None,
                _ => Some(KeptOrder { len: take(left)?, slabs: list(left)?, chunks: list(left)? }),
            };
            Some(KeptTable { slots, hash, order })
        });
        let tables = tables.collect::<Option<_>>()?;
        left.is_empty().then_some(Self { epoch, ids, stale, tables })
    }
}

/// Appends a list with its length.
fn put<const N: usize>(words: &mut Vec<u64>, list: &[[u64; N]]) {
    words.push(list.len() as u64);
    words.extend(list.iter().flatten());
}

fn take(left: &mut &[u64]) -> Option<u64> {
    let (first, rest) = left.split_first()?;
    *left = rest;
    Some(*first)
}

fn list<const N: usize>(left: &mut &[u64]) -> Option<Vec<[u64; N]>> {
    let count = usize::try_from(take(left)?).ok()?;
    let (list, rest) = left.split_at_checked(count.checked_mul(N)?)?;
    *left = rest;
    Some(list.as_chunks().0.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> Root {
        let order =
            KeptOrder { len: 3, slabs: vec![[4096, 2]], chunks: vec![[1, 2, 4096], [7, 5, 6144]] };
        Root {
            epoch: 77,
            ids: KeptIds { groups: 9, segments: vec![[1, 2, 3]], spare: vec![[2, 4], [1, 6]] },
            stale: vec![5, 8],
            tables: vec![
                KeptTable { slots: Slots::Tags, hash: vec![[64, 2, 5]; 256], order: None },
                KeptTable { slots: Slots::Words, hash: vec![[0; 3]; 256], order: Some(order) },
            ],
        }
    }

    #[test]
    fn a_root_comes_back_and_every_changed_word_makes_it_none() {
        let words = root().encode();
        assert_eq!(Root::decode(&words), Some(root()));
        for at in 0..words.len() {
            let mut other = words.clone();
            other[at] ^= 1 << (at % 64);
            assert_eq!(Root::decode(&other), None, "word {at}");
            assert_eq!(Root::decode(&words[..at]), None, "{at} words");
        }
    }

    /// A count that is too large, in words with the right checksum, is no panic.
    #[test]
    fn a_root_with_wrong_counts_is_none() {
        for at in HEADER_WORDS as usize..root().encode().len() {
            let mut words = root().encode();
            words[at] = u64::MAX / 2;
            words[2] = crc(&words[HEADER_WORDS as usize..]);
            let _ = Root::decode(&words);
        }
    }
}
