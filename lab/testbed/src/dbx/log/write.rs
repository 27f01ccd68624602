//! One writer's way to a log.

use pmem::{Device, Port};

use super::super::design::Way;
use super::record::{HEAD_WORDS, PARTS_MAX, Part, entry_words};
use super::segment::{LINE_WORDS, Log};
use crate::error::{Error, Result};
use crate::memory::WORD_BYTES;

/// Words of a block of the device.
const BLOCK_WORDS: usize = (pmem::BLOCK_BYTES / WORD_BYTES) as usize;

/// See the module's documentation.
pub(crate) struct Writer {
    /// Who writes.
    writer: u64,
    /// Where its segment is, its turn, its life, and the words of it that are used.
    at: u64,
    turn: u64,
    life: u64,
    used: usize,
    /// Segments for what was reserved.
    ready: Vec<u64>,
    part: Vec<u64>,
}

/// Words of a part with padding: nothing, whole lines, or whole blocks for long ones (section 3.4
/// of the paper).
pub(super) fn padded(way: Way, words: usize) -> usize {
    match way {
        Way::File | Way::Stores => words,
        Way::Blocks if words >= BLOCK_WORDS => words.next_multiple_of(BLOCK_WORDS),
        Way::Lines | Way::PastCache | Way::Blocks => words.next_multiple_of(LINE_WORDS),
    }
}

/// Where a part begins that comes behind so many words.
pub(super) fn start(way: Way, used: usize, words: usize) -> usize {
    match way {
        Way::Blocks if words >= BLOCK_WORDS => used.next_multiple_of(BLOCK_WORDS),
        _ => used,
    }
}

impl Writer {
    /// A writer without a segment.
    pub(crate) fn new(writer: u64) -> Self {
        let (at, turn, life, used) = (0, 0, 0, usize::MAX);
        Self { writer, at, turn, life, used, ready: Vec::new(), part: Vec::new() }
    }

    /// Whether a part fits into the running segment.
    fn fits<D: Device>(&self, log: &Log<D>, words: usize) -> bool {
        let way = log.area.way();
        self.used != usize::MAX
            && start(way, self.used, words) + padded(way, words) <= log.segment_words()
    }

    /// Most words of the entries of a part.
    fn entries_max<D: Device>(log: &Log<D>) -> usize {
        log.segment_words() - BLOCK_WORDS - HEAD_WORDS
    }

    /// Sees to it that entries of so many words, none of them longer than `longest`, can be written
    /// without asking for space, in segments of the turn that runs now.
    pub(crate) fn reserve<D: Device>(
        &mut self,
        log: &Log<D>,
        words: usize,
        longest: usize,
    ) -> Result<()> {
        let max = Self::entries_max(log);
        if longest > max {
            let segment = log.segment_bytes;
            let what =
                format!("a row of {longest} words does not fit a segment of {segment} bytes");
            return Err(Error::Limit(what));
        }
        let turn = log.turn();
        if turn != self.turn {
            (self.turn, self.used) = (turn, usize::MAX);
        }
        let needed = match self.fits(log, HEAD_WORDS + words) {
            true => 0,
            // A part is left where the next entry does not fit.
            false => words.div_ceil(max - longest + 1),
        };
        if needed as u64 > PARTS_MAX {
            return Err(Error::Limit(format!("a record of {words} words has too many parts")));
        }
        while self.ready.len() < needed {
            self.ready.push(log.take()?);
        }
        Ok(())
    }

    /// Writes a record, for which there is space; durable after the next fence of the log.
    pub(crate) fn append<D: Device>(
        &mut self,
        log: &Log<D>,
        port: &mut Port<D>,
        entries: &[u64],
    ) -> Result<()> {
        let (mut rest, mut number) = (entries, 0);
        while !rest.is_empty() {
            let mut here = rest.len();
            if !self.fits(log, HEAD_WORDS + here) {
                here = 0;
                while here < rest.len() {
                    let next = here + entry_words(&rest[here..]);
                    if next > Self::entries_max(log) {
                        break;
                    }
                    here = next;
                }
                self.next_segment(log, port)?;
            }
            let (part, more) = rest.split_at(here);
            rest = more;
            let head = Part { number, more: !rest.is_empty(), words: HEAD_WORDS + part.len() };
            self.write_part(log, port, head, part)?;
            number += 1;
        }
        Ok(())
    }

    fn next_segment<D: Device>(&mut self, log: &Log<D>, port: &mut Port<D>) -> Result<()> {
        self.at = match self.ready.pop() {
            Some(at) => at,
            None => log.take()?,
        };
        let head = log.begin(port, self.at, self.writer, self.turn)?;
        (self.life, self.used) = (head.life, LINE_WORDS);
        Ok(())
    }

    fn write_part<D: Device>(
        &mut self,
        log: &Log<D>,
        port: &mut Port<D>,
        head: Part,
        entries: &[u64],
    ) -> Result<()> {
        let (way, words) = (log.area.way(), head.words);
        self.part.clear();
        self.part.resize(HEAD_WORDS, 0);
        self.part.extend_from_slice(entries);
        head.write_head(self.life, &mut self.part);
        self.part.resize(padded(way, words), 0);
        let start = start(way, self.used, words);
        self.used = start + self.part.len();
        log.area.write(port, self.at + start as u64 * WORD_BYTES, &self.part)
    }
}
