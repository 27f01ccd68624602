//! Old versions of rows, for transactions that read the state as it was when they began.
//!
//! An old version stays in its slot until every transaction has ended that was running when a newer
//! one came. A *link* in DRAM says what its header is, where its slot is, and which version came
//! before it. The links of a record are followed from new to old until a version is found that was
//! there at the time; that one is still linked, and no transaction follows the links behind it. So
//! links and slots of versions that no transaction can want any more may be reused without a change
//! of the chain.

use std::sync::atomic::{AtomicU64, Ordering};

use super::records::Older;
use crate::error::{Error, Result};
use crate::image::layout::Header;
use crate::memory::Words;

const LINK_WORDS: usize = 4;
/// Links that a worker gets at a time.
pub(super) const BLOCK_LINKS: u64 = 1 << 10;
/// Address space of a table's links, and what there must be at least.
const RESERVED_BYTES: u64 = 1 << 38;
const RESERVED_BYTES_MIN: u64 = 1 << 28;

/// An old version.
#[derive(Debug, Clone, Copy)]
pub(super) struct Link {
    pub(super) header: Header,
    pub(super) slot: u64,
    pub(super) older: Older,
}

/// The links of a table.
pub(crate) struct Links {
    words: Words,
    next_block: AtomicU64,
}

impl Links {
    pub(super) fn new() -> Result<Self> {
        let words = Words::reserve(RESERVED_BYTES, RESERVED_BYTES_MIN)?;
        Ok(Self { words, next_block: AtomicU64::new(0) })
    }

    /// Numbers of links that are not in use.
    pub(super) fn add_block(&self) -> Result<std::ops::Range<u64>> {
        let first = self.next_block.fetch_add(1, Ordering::Relaxed) * BLOCK_LINKS;
        let links = first..first + BLOCK_LINKS;
        if links.end * LINK_WORDS as u64 * 8 > self.words.bytes() {
            return Err(Error::Limit("a table has more old versions than links".into()));
        }
        Ok(links)
    }

    fn words(&self, number: u64) -> &[AtomicU64] {
        self.words.get(number as usize * LINK_WORDS, LINK_WORDS)
    }

    /// Sets a link that is in no chain, before it is put into one; its place in the chain.
    pub(super) fn set(&self, number: u64, link: Link) -> Older {
        let words = self.words(number);
        words[0].store(link.header.0, Ordering::Relaxed);
        words[1].store(link.slot, Ordering::Relaxed);
        words[2].store(link.older.0, Ordering::Relaxed);
        Older(number + 1)
    }

    /// The link at a place in a chain, if there is one.
    pub(super) fn get(&self, older: Older) -> Option<Link> {
        if older == Older::NONE || older == Older::FORGOTTEN {
            return None;
        }
        let words = self.words(older.0 - 1);
        let [header, slot, before] = [0, 1, 2].map(|i| words[i].load(Ordering::Relaxed));
        Some(Link { header: Header(header), slot, older: Older(before) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_leads_from_new_to_old() {
        let links = Links::new().unwrap();
        let mut numbers = links.add_block().unwrap();
        let mut chain = Older::NONE;
        for timestamp in 1..=3 {
            let header = Header::new(timestamp, 0, false);
            let link = Link { header, slot: timestamp * 64, older: chain };
            chain = links.set(numbers.next().unwrap(), link);
        }
        let mut seen = Vec::new();
        while let Some(link) = links.get(chain) {
            seen.push((link.header.timestamp(), link.slot));
            chain = link.older;
        }
        assert_eq!(seen, [(3, 192), (2, 128), (1, 64)]);
        assert_eq!(links.add_block().unwrap().start, BLOCK_LINKS);
        assert!(links.get(Older::FORGOTTEN).is_none());
    }
}
