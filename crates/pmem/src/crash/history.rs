//! The stores that are not durable yet, line by line.

use std::collections::{BTreeMap, HashMap};

use super::adversary::{Adversary, SpaceKind, UndurableLine};
use crate::units::LINE_BYTES;

pub(super) const LINE: usize = LINE_BYTES as usize;

/// A line: its space and the offset of its first byte.
pub(super) type Key = (SpaceKind, u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Ordinary,
    /// By the port with this number, whose fence makes it durable.
    PastCache(u32),
}

/// A store to (a part of) one aligned 8-byte word.
#[derive(Debug, Clone, Copy)]
struct Store {
    /// Position among all stores.
    sequence: u64,
    kind: Kind,
    durable: bool,
    /// Whether the process that made it was killed: no port will fence it, and any port's flush
    /// covers it, non-temporal or not.
    orphaned: bool,
    /// First byte in the line.
    at: u8,
    len: u8,
    bytes: [u8; 8],
}

impl Store {
    fn is_flushable(&self) -> bool {
        self.kind == Kind::Ordinary || self.orphaned
    }

    fn apply(&self, line: &mut [u8; LINE]) {
        let (at, len) = (usize::from(self.at), usize::from(self.len));
        line[at..at + len].copy_from_slice(&self.bytes[..len]);
    }
}

#[derive(Debug, Clone)]
struct Line {
    /// What the device holds for certain, under `stores`.
    base: [u8; LINE],
    /// In program order. Durable ones stay while an older one is not.
    stores: Vec<Store>,
}

impl Line {
    /// Moves leading durable stores into the base; true if nothing is left.
    fn compact(&mut self) -> bool {
        let done = self.stores.iter().take_while(|store| store.durable).count();
        for store in self.stores.drain(..done) {
            store.apply(&mut self.base);
        }
        self.stores.is_empty()
    }

    fn after_power_cut(&self, info: &UndurableLine, adversary: &mut dyn Adversary) -> [u8; LINE] {
        let prefix = adversary.prefix(info);
        assert!(prefix <= info.ordinary, "an adversary cannot invent stores");
        let (mut ordinary, mut past_cache) = (0, 0);
        let mut content = self.base;
        for store in &self.stores {
            let arrived = store.durable
                || match store.kind {
                    Kind::Ordinary => {
                        ordinary += 1;
                        ordinary <= prefix
                    }
                    Kind::PastCache(_) => {
                        past_cache += 1;
                        adversary.past_cache(info, past_cache - 1)
                    }
                };
            if arrived {
                store.apply(&mut content);
            }
        }
        content
    }
}

/// What a port's next fence makes durable.
#[derive(Debug, Default, Clone)]
struct Pending {
    /// Flushed lines, with the number of the first store that the flush did not see.
    flushed: Vec<(Key, u64)>,
    /// Lines that were stored to non-temporally.
    past_cache: Vec<Key>,
}

/// All stores that are not durable.
#[derive(Debug, Default, Clone)]
pub(super) struct History {
    stores_count: u64,
    lines: BTreeMap<Key, Line>,
    pending: HashMap<u32, Pending>,
}

impl History {
    /// Records a store, before it is made; `line_now` gives what memory holds at a line's offset.
    pub(super) fn store(
        &mut self,
        space: SpaceKind,
        line_now: impl Fn(u64) -> [u8; LINE],
        offset: u64,
        bytes: &[u8],
        past_cache_of: Option<u32>,
    ) {
        let mut at = offset;
        let mut rest = bytes;
        while !rest.is_empty() {
            let (piece, later) = rest.split_at(rest.len().min(8 - (at % 8) as usize));
            self.store_word(space, &line_now, at, piece, past_cache_of);
            at += piece.len() as u64;
            rest = later;
        }
    }

    fn store_word(
        &mut self,
        space: SpaceKind,
        line_now: impl Fn(u64) -> [u8; LINE],
        offset: u64,
        piece: &[u8],
        past_cache_of: Option<u32>,
    ) {
        let key = (space, offset / LINE_BYTES * LINE_BYTES);
        let line = self
            .lines
            .entry(key)
            .or_insert_with(|| Line { base: line_now(key.1), stores: Vec::new() });
        let mut bytes = [0; 8];
        bytes[..piece.len()].copy_from_slice(piece);
        line.stores.push(Store {
            sequence: self.stores_count,
            kind: past_cache_of.map_or(Kind::Ordinary, Kind::PastCache),
            durable: false,
            orphaned: false,
            at: (offset % LINE_BYTES) as u8,
            len: piece.len() as u8,
            bytes,
        });
        self.stores_count += 1;
        if let Some(port) = past_cache_of {
            let lines = &mut self.pending.entry(port).or_default().past_cache;
            if lines.last() != Some(&key) {
                lines.push(key);
            }
        }
    }

    /// Records that a port flushed a range.
    pub(super) fn flush(&mut self, space: SpaceKind, offset: u64, len: u64, port: u32) {
        if len == 0 {
            return;
        }
        let first = offset / LINE_BYTES * LINE_BYTES;
        let lines = self.lines.range((space, first)..(space, offset + len));
        let mut lines = lines.map(|(key, _)| (*key, self.stores_count)).peekable();
        if lines.peek().is_some() {
            self.pending.entry(port).or_default().flushed.extend(lines);
        }
    }

    /// The process is killed: its stores stay as visible as they were, and what it had not fenced
    /// is no more durable than before. Flushes without a fence promise nothing.
    pub(super) fn kill(&mut self) {
        self.pending.clear();
        let stores = self.lines.values_mut().flat_map(|line| &mut line.stores);
        stores.for_each(|store| store.orphaned = true);
    }

    /// Makes durable what this port flushed or stored non-temporally.
    pub(super) fn fence(&mut self, port: u32) {
        let Some(pending) = self.pending.remove(&port) else { return };
        for (key, seen) in pending.flushed {
            self.make_durable(key, |s| s.is_flushable() && s.sequence < seen);
        }
        for key in pending.past_cache {
            self.make_durable(key, |s| s.kind == Kind::PastCache(port) && !s.orphaned);
        }
    }

    fn make_durable(&mut self, key: Key, which: impl Fn(&Store) -> bool) {
        // A line that is no longer there was made durable by another port's flush and fence.
        let Some(line) = self.lines.get_mut(&key) else { return };
        for store in line.stores.iter_mut().filter(|store| which(store)) {
            store.durable = true;
        }
        if line.compact() {
            self.lines.remove(&key);
        }
    }

    /// Number of lines with stores that are not durable.
    pub(super) fn undurable_lines(&self) -> u64 {
        self.lines.len() as u64
    }

    /// Number of ways in which an adversary can choose, at most 2^64 - 1.
    pub(super) fn choices(&self) -> u64 {
        let open = |line: &Line, ordinary: bool| {
            let kind = |s: &&Store| !s.durable && (s.kind == Kind::Ordinary) == ordinary;
            line.stores.iter().filter(kind).count() as u64
        };
        self.lines.values().fold(1u64, |product, line| {
            let past_cache = 1u64.checked_shl(open(line, false) as u32).unwrap_or(u64::MAX);
            product.saturating_mul(open(line, true) + 1).saturating_mul(past_cache)
        })
    }

    /// Every such line as the adversary wants it.
    pub(super) fn after_power_cut<'a>(
        &'a self,
        adversary: &'a mut dyn Adversary,
    ) -> impl Iterator<Item = (Key, [u8; LINE])> + 'a {
        self.lines.iter().zip(0..).map(move |((key, line), ordinal)| {
            let open = line.stores.iter().filter(|store| !store.durable);
            let ordinary = open.clone().filter(|s| s.kind == Kind::Ordinary).count();
            let past_cache = open.count() - ordinary;
            let info = UndurableLine { space: key.0, offset: key.1, ordinal, ordinary, past_cache };
            (*key, line.after_power_cut(&info, adversary))
        })
    }
}
