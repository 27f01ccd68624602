//! The log of write-behind logging: pairs of timestamps, in the log space of the device.
//!
//! A *group record* says: all transactions up to its first timestamp are durable, and none gets the
//! second one or a later one before the next record. So what a crash leaves of transactions between
//! the two does not count: a *gap*. Recovery writes the gap that it finds into a list in front of
//! the group records, where it stays, for versions from the gap may stay in their slots. Only the
//! newest group record matters, so they are written one after the other into a ring.

use pmem::{Device, Port};
use xxhash_rust::xxh3::xxh3_64;

use crate::error::{Error, Result};

/// Bytes of a record.
const RECORD_BYTES: usize = 32;
/// Places for gaps, one for each crash.
const GAPS: u64 = 1 << 11;
/// Places for group records.
const RING: u64 = 1 << 11;
const RING_AT: u64 = GAPS * RECORD_BYTES as u64;
const LOG_BYTES: u64 = (GAPS + RING) * RECORD_BYTES as u64;

/// Timestamps after `after` and before `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gap {
    pub(super) after: u64,
    pub(super) end: u64,
}

impl Gap {
    pub(super) fn contains(self, timestamp: u64) -> bool {
        self.after < timestamp && timestamp < self.end
    }
}

/// Where the next record goes.
#[derive(Debug)]
pub(super) struct Log {
    /// Number of the newest group record.
    sequence: u64,
    gaps: Vec<Gap>,
    /// The newest group record.
    newest: Gap,
}

fn encode(sequence: u64, gap: Gap) -> [u8; RECORD_BYTES] {
    let mut bytes = [0; RECORD_BYTES];
    for (i, word) in [sequence, gap.after, gap.end].into_iter().enumerate() {
        bytes[i * 8..i * 8 + 8].copy_from_slice(&word.to_le_bytes());
    }
    let check = xxh3_64(&bytes[..24]);
    bytes[24..].copy_from_slice(&check.to_le_bytes());
    bytes
}

/// Number and timestamps of a record, if it is whole. A place that was never written is not.
fn decode(bytes: &[u8]) -> Option<(u64, Gap)> {
    let word = |i: usize| Some(u64::from_le_bytes(bytes.get(i * 8..i * 8 + 8)?.try_into().ok()?));
    let is_whole = word(3)? == xxh3_64(bytes.get(..24)?);
    is_whole.then_some((word(0)?, Gap { after: word(1)?, end: word(2)? }))
}

impl Log {
    /// An empty log. The first record must follow.
    pub(super) fn create<D: Device>(device: &D) -> Result<Self> {
        device.grow_log(LOG_BYTES)?;
        Ok(Self { sequence: 0, gaps: Vec::new(), newest: Gap { after: 0, end: 0 } })
    }

    /// Reads what such a log holds.
    pub(super) fn open<D: Device>(device: &D) -> Result<Self> {
        let mut bytes = vec![0; LOG_BYTES as usize];
        device.log_read(0, &mut bytes)?;
        let (gaps, ring) = bytes.split_at(RING_AT as usize);
        let records = ring.chunks(RECORD_BYTES).filter_map(decode);
        let Some((sequence, newest)) = records.max_by_key(|(sequence, _)| *sequence) else {
            return Err(Error::Corrupt("the log has no group record".into()));
        };
        let gaps = gaps.chunks(RECORD_BYTES).map_while(decode).map(|(_, gap)| gap).collect();
        Ok(Self { sequence, gaps, newest })
    }

    pub(super) fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    pub(super) fn newest(&self) -> Gap {
        self.newest
    }

    /// Makes a gap count for all times.
    pub(super) fn add_gap<D: Device>(&mut self, port: &mut Port<D>, gap: Gap) -> Result<()> {
        // After a crash right behind this the same gap is found again.
        if self.gaps.contains(&gap) {
            return Ok(());
        }
        let number = self.gaps.len() as u64;
        if number == GAPS {
            return Err(Error::Limit(format!("there is no room for more than {GAPS} gaps")));
        }
        write(port, number * RECORD_BYTES as u64, &encode(number, gap))?;
        self.gaps.push(gap);
        Ok(())
    }

    /// Writes a group record; durable when this returns.
    pub(super) fn append<D: Device>(&mut self, port: &mut Port<D>, group: Gap) -> Result<()> {
        let sequence = self.sequence + 1;
        let at = RING_AT + sequence % RING * RECORD_BYTES as u64;
        write(port, at, &encode(sequence, group))?;
        (self.sequence, self.newest) = (sequence, group);
        Ok(())
    }
}

fn write<D: Device>(port: &mut Port<D>, at: u64, record: &[u8]) -> Result<()> {
    port.log_write(at, record)?;
    port.log_fence();
    port.device().log_sync()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmem::Dram;
    use std::sync::Arc;

    #[test]
    fn the_newest_group_and_all_gaps_come_back() {
        let device = Arc::new(Dram::new(1 << 16, 1 << 20).unwrap());
        let mut port = Port::new(Arc::clone(&device), 0);
        let mut log = Log::create(&*device).unwrap();
        assert!(Log::open(&*device).is_err());
        for i in 0..RING + 7 {
            log.append(&mut port, Gap { after: i, end: i + 10 }).unwrap();
        }
        let gaps = [Gap { after: 3, end: 9 }, Gap { after: 20, end: 30 }];
        for gap in [gaps[0], gaps[1], gaps[0]] {
            log.add_gap(&mut port, gap).unwrap();
        }
        let opened = Log::open(&*device).unwrap();
        assert_eq!(opened.newest(), Gap { after: RING + 6, end: RING + 16 });
        assert_eq!(opened.gaps(), gaps);
        assert_eq!(opened.sequence, RING + 7);
    }

    #[test]
    fn a_torn_record_is_none() {
        let mut record = encode(7, Gap { after: 1, end: 2 });
        assert_eq!(decode(&record), Some((7, Gap { after: 1, end: 2 })));
        record[8] ^= 1;
        assert_eq!(decode(&record), None);
        assert_eq!(decode(&[0; RECORD_BYTES]), None);
    }

    #[test]
    fn ends_are_not_in_a_gap() {
        let gap = Gap { after: 5, end: 8 };
        assert_eq!([4, 5, 6, 7, 8].map(|t| gap.contains(t)), [false, false, true, true, false]);
    }
}
