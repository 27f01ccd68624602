//! What a log holds when it is opened.

use std::sync::Arc;

use pmem::{Device, Port};

use super::super::design::Way;
use super::record::{HEAD_WORDS, Part};
use super::segment::{CHECKPOINT, Head, LINE_WORDS, Log};
use super::write::{padded, start};
use crate::error::{Error, Result};

/// A segment that counts, and what is in its head.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    at: u64,
    head: Head,
}

/// A log with its segments.
pub(crate) struct Opened<D: Device> {
    pub(crate) log: Log<D>,
    /// Of each writer, in the order in which they began. The checkpoint's are one by one.
    pub(crate) chains: Vec<Vec<Found>>,
    pub(crate) segments: u64,
}

impl<D: Device> Opened<D> {
    /// Opens the log on a device, however its use ended. What it shows is durable then.
    pub(crate) fn open(device: Arc<D>, way: Way, segment_bytes: u64, tables: u64) -> Result<Self> {
        let log = Log::new(Arc::clone(&device), way, segment_bytes, tables);
        let mut port = Port::new(device, 0);
        log.area.settle(&mut port)?;
        let Some(root) = log.read_root(&mut port)? else {
            return Err(Error::Corrupt("there is no log".into()));
        };
        let (mut used, mut words) = (Vec::new(), Vec::new());
        let mut newest = root;
        {
            let mut segments = log.lock();
            segments.count = log.area.bytes() / segment_bytes;
            for number in 1..segments.count {
                let at = number * segment_bytes;
                log.area.read(&mut port, at, LINE_WORDS, &mut words)?;
                let head = Head::read(&words);
                if let Some(head) = head {
                    segments.lives = segments.lives.max(head.life);
                    newest = newest.max(head.turn);
                }
                // A checkpoint of a later turn has not come to its end.
                let counts = |head: &Head| {
                    head.turn == root || head.turn > root && head.writer != CHECKPOINT
                };
                match head.filter(counts) {
                    Some(head) => used.push((at, head)),
                    None => segments.free.push(at),
                }
            }
            segments.used.clone_from(&used);
        }
        log.set_turn(newest);
        used.sort_unstable_by_key(|(_, head)| (head.writer, head.life));
        let all: Vec<Found> = used.into_iter().map(|(at, head)| Found { at, head }).collect();
        let is_one = |a: &Found, b: &Found| a.head.writer == b.head.writer;
        let chains = all.chunk_by(is_one).map(<[Found]>::to_vec).collect();
        Ok(Self { log, segments: all.len() as u64, chains })
    }
}

impl<D: Device> Log<D> {
    /// Reads the records of one writer in their order; `trusts` is for a fault. How many lost
    /// a part of several.
    pub(crate) fn read_chain(
        &self,
        port: &mut Port<D>,
        chain: &[Found],
        trusts: bool,
        each: &mut dyn FnMut(&[u64]) -> Result<()>,
    ) -> Result<u64> {
        let way = self.area.way();
        let (mut record, mut parts, mut cut) = (Vec::new(), 0, 0);
        let mut words = Vec::new();
        for Found { at, head } in chain {
            self.area.read(port, *at, self.segment_words(), &mut words)?;
            port.end_step();
            let mut used = LINE_WORDS;
            while let Some((from, part)) = next(way, head.life, &words, used, trusts) {
                used = from + padded(way, part.words);
                if part.number != parts {
                    // The record before, or this one, lost a part.
                    cut += 1;
                    record.clear();
                    parts = 0;
                    if part.number != 0 {
                        continue;
                    }
                }
                record.extend_from_slice(&words[from + HEAD_WORDS..from + part.words]);
                parts += 1;
                if !part.more {
                    each(&record)?;
                    record.clear();
                    parts = 0;
                }
            }
        }
        Ok(cut)
    }
}

/// The next part behind so many words, and where it is.
fn next(way: Way, life: u64, words: &[u64], used: usize, trusts: bool) -> Option<(usize, Part)> {
    // Long records begin at the next block, if the others' padding does not lead there.
    let places = [used, start(way, used, words.len())];
    places.into_iter().find_map(|from| {
        let part = Part::read(life, words.get(from..)?, trusts)?;
        (from == start(way, used, part.words)).then_some((from, part))
    })
}

#[cfg(test)]
mod tests {
    use pmem::Dram;

    use super::super::write::Writer;
    use super::*;

    const SEGMENT: u64 = 4 << 10;

    fn read(device: &Arc<Dram>) -> Vec<u64> {
        let opened = Opened::open(Arc::clone(device), Way::Blocks, SEGMENT, 1).unwrap();
        let (mut port, mut values) = (Port::new(Arc::clone(device), 0), Vec::new());
        for chain in &opened.chains {
            let mut each = |record: &[u64]| {
                values.push(record[2]);
                Ok(())
            };
            opened.log.read_chain(&mut port, chain, false, &mut each).unwrap();
        }
        values
    }

    /// Records of one entry, whose words after the second one are `value`.
    fn append(log: &Log<Dram>, port: &mut Port<Dram>, writer: &mut Writer, value: u64, words: u64) {
        let mut entry = vec![value; words as usize];
        (entry[0], entry[1]) = (words << 32, 2);
        writer.reserve(log, entry.len(), entry.len()).unwrap();
        writer.append(log, port, &entry).unwrap();
        log.fence(port).unwrap();
    }

    #[test]
    fn what_a_segment_held_in_an_earlier_life_does_not_count() {
        let device = Arc::new(Dram::new(1 << 20, 0).unwrap());
        let log = Log::create(Arc::clone(&device), Way::Blocks, SEGMENT, 1).unwrap();
        let mut port = Port::new(Arc::clone(&device), 0);
        let mut writer = Writer::new(0);
        // Short ones and long ones, in several segments.
        for value in 1..=40 {
            append(&log, &mut port, &mut writer, value, if value % 3 == 0 { 50 } else { 5 });
        }
        assert_eq!(read(&device), (1..=40).collect::<Vec<_>>());
        let used = log.lock().used.len();
        assert!(used > 2, "{used} segments");
        log.next_turn();
        log.end_checkpoint(&mut port).unwrap();
        assert_eq!(read(&device), [0; 0]);
        // All segments are used again, by one record each at first.
        for value in 0..used as u64 {
            let mut writer = Writer::new(value);
            append(&log, &mut port, &mut writer, 100 + value, 5);
        }
        let again: Vec<u64> = (0..used as u64).map(|value| 100 + value).collect();
        assert_eq!(read(&device), again);
    }
}
