//! YCSB as the paper has it (5.1): one table of a key and ten columns of 100 bytes; a transaction
//! reads one tuple or changes one column of one.
//!
//! All numbers follow from the seed, the partition and the position, so that every engine gets the
//! same work. Values are lowercase letters.

mod calls;

use crate::schema::{Key, Row, Schema, Table};
use crate::{Error, Result};

pub use calls::YcsbCalls;

pub(crate) const COLUMNS: usize = 10;
pub(crate) const COLUMN_BYTES: u32 = 100;

/// How many of the transactions read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mix {
    /// All.
    ReadOnly,
    /// 90 of 100.
    ReadHeavy,
    /// Half of them.
    Balanced,
    /// 10 of 100.
    WriteHeavy,
}

impl Mix {
    /// All, as the paper's figures have them.
    pub const ALL: [Self; 4] = [Self::ReadOnly, Self::ReadHeavy, Self::Balanced, Self::WriteHeavy];

    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::ReadHeavy => "read-heavy",
            Self::Balanced => "balanced",
            Self::WriteHeavy => "write-heavy",
        }
    }

    fn reads_of_100(self) -> u64 {
        match self {
            Self::ReadOnly => 100,
            Self::ReadHeavy => 90,
            Self::Balanced => 50,
            Self::WriteHeavy => 10,
        }
    }
}

/// How much the transactions agree on what they want.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Skew {
    /// Half of them use a fifth of the tuples.
    Low,
    /// 90 of 100 use a tenth of the tuples.
    High,
}

impl Skew {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Low, Self::High];

    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::High => "high",
        }
    }
}

/// The work of one partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ycsb {
    /// Tuples of the partition.
    pub tuples: u64,
    /// How many transactions read.
    pub mix: Mix,
    /// How much they agree.
    pub skew: Skew,
    /// Names the data and the transactions.
    pub seed: u64,
    /// The partition.
    pub partition: u64,
}

/// A transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    Read(u64),
    Update { tuple: u64, column: usize },
}

/// The splitmix64 generator's mixing of a word.
fn mix(word: u64) -> u64 {
    let z = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Ycsb {
    /// The table.
    ///
    /// # Errors
    /// None that can occur.
    pub fn schema() -> Result<Schema> {
        let columns = vec![COLUMN_BYTES; COLUMNS];
        Schema::new(vec![Table { key_bytes_max: 8, columns, indexes: Vec::new() }])
    }

    pub(crate) fn check(&self) -> Result<()> {
        match self.tuples {
            10.. => Ok(()),
            tuples => Err(Error::Limit(format!("{tuples} tuples in a partition, at least 10"))),
        }
    }

    pub(crate) fn key(tuple: u64) -> Key {
        Key::of_u64(tuple)
    }

    fn start(&self) -> u64 {
        mix(self.seed ^ mix(self.partition))
    }

    /// The value of a column after the update at a position, which counts from 1; 0: as loaded.
    pub(crate) fn value(&self, tuple: u64, column: usize, position: u64) -> Vec<u8> {
        let start = mix(self.start() ^ mix(tuple) ^ mix((column as u64) << 56 | position));
        let letters = (0..u64::from(COLUMN_BYTES)).map(|i| {
            let word = mix(start.wrapping_add(i / 8));
            b'a' + ((word >> (i % 8 * 8)) as u8) % 26
        });
        letters.collect()
    }

    pub(crate) fn row(&self, tuple: u64) -> Row {
        (0..COLUMNS).map(|column| self.value(tuple, column, 0)).collect()
    }

    /// The transaction at a position.
    pub(crate) fn transaction(&self, position: u64) -> Work {
        let dice = mix(self.start() ^ mix(position ^ 0xa5a5));
        let (hot_of_100, hot_tuples) = match self.skew {
            Skew::Low => (50, self.tuples / 5),
            Skew::High => (90, self.tuples / 10),
        };
        let place = mix(dice);
        let tuple = match dice % 100 < hot_of_100 {
            true => place % hot_tuples,
            false => hot_tuples + place % (self.tuples - hot_tuples),
        };
        // Hot tuples are anywhere among the keys.
        let tuple = self.spread(tuple);
        let kind = mix(dice ^ 0x5a5a);
        match kind % 100 < self.mix.reads_of_100() {
            true => Work::Read(tuple),
            false => Work::Update { tuple, column: (kind / 100 % COLUMNS as u64) as usize },
        }
    }

    /// A permutation of the tuples: steps of a length that has no factor in common with their
    /// number.
    fn spread(&self, tuple: u64) -> u64 {
        let mut step = (self.tuples * 618 / 1000) | 1;
        while gcd(step, self.tuples) != 1 {
            step += 2;
        }
        (u128::from(tuple) * u128::from(step) % u128::from(self.tuples)) as u64
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn mixes_and_skews_are_those_of_the_paper() {
        for (mix, reads) in Mix::ALL.into_iter().zip([100, 90, 50, 10]) {
            for (skew, hot, of) in [(Skew::Low, 50, 5), (Skew::High, 90, 10)] {
                let ycsb = Ycsb { tuples: 1000, mix, skew, seed: 1, partition: 0 };
                let (mut read, mut uses) = (0, HashMap::new());
                for position in 0..20_000 {
                    let tuple = match ycsb.transaction(position) {
                        Work::Read(tuple) => {
                            read += 1;
                            tuple
                        }
                        Work::Update { tuple, .. } => tuple,
                    };
                    *uses.entry(tuple).or_insert(0) += 1;
                }
                assert!(i32::abs(read / 200 - reads) <= 1, "{read} reads");
                let mut counts: Vec<i32> = uses.into_values().collect();
                counts.sort_unstable_by(|a, b| b.cmp(a));
                let hottest: i32 = counts[..1000 / of].iter().sum();
                assert!(i32::abs(hottest / 200 - hot) <= 3, "{hottest} to the hot ones");
            }
        }
    }

    #[test]
    fn values_are_letters_and_differ() {
        let ycsb = Ycsb { tuples: 10, mix: Mix::Balanced, skew: Skew::Low, seed: 1, partition: 0 };
        let values = [ycsb.value(1, 2, 0), ycsb.value(1, 2, 1), ycsb.value(2, 1, 0)];
        assert!(values[0] != values[1] && values[0] != values[2]);
        assert!(values.iter().flatten().all(u8::is_ascii_lowercase));
    }
}
