//! Which rows the transactions of a caller read and update.

use crate::peer::{Does, Operation, Shape};
use crate::settings::{Chosen, Load, TEN};
use crate::value::Random;
use workloads::random::{Zipf, mix};

/// Of Zipf's law.
const EXPONENT: f64 = 0.9;

/// Chooses rows.
enum Choice {
    /// One of so many, which have this distance from each other.
    Uniform {
        choices: u64,
        distance: u64,
    },
    Zipf(Zipf, workloads::random::Random),
}

impl Choice {
    fn of(rows: u64, chosen: Chosen, seed: u64) -> Self {
        match chosen {
            Chosen::All => Self::Uniform { choices: rows, distance: 1 },
            Chosen::Hot(choices) => Self::Uniform { choices, distance: rows / choices },
            Chosen::Zipf => {
                let random = workloads::random::Random::new(seed, 0, 0);
                Self::Zipf(Zipf::new(rows, EXPONENT), random)
            }
        }
    }

    fn next(&mut self, rows: u64, random: &mut Random) -> u64 {
        match self {
            Self::Uniform { choices, distance } => random.next() % *choices * *distance,
            Self::Zipf(zipf, random) => mix(zipf.sample(random)) % rows,
        }
    }
}

/// The transactions of one caller, one after the other.
pub(super) struct Stream {
    random: Random,
    choice: Choice,
    load: Load,
    rows: u64,
    operations: usize,
    /// Operations until now.
    count: u64,
}

impl Stream {
    pub(super) fn new(shape: Shape, load: Load, operations: usize, seed: u64) -> Self {
        let mut random = Random::new(seed);
        // Callers do not all read at the same time.
        let count = random.next() % TEN;
        let choice = Choice::of(shape.rows, load.rows, seed);
        Self { random, choice, load, rows: shape.rows, operations, count }
    }

    /// The next transaction: different rows in ascending order. Of each ten operations as many read
    /// as the load says.
    pub(super) fn next(&mut self, into: &mut Vec<Operation>) {
        into.clear();
        while into.len() < self.operations {
            let row = self.choice.next(self.rows, &mut self.random);
            if into.iter().all(|operation| operation.row != row) {
                let reads = self.count * self.load.read_ratio % TEN < self.load.read_ratio;
                into.push(Operation { row, does: if reads { Does::Read } else { Does::Update } });
                self.count += 1;
            }
        }
        into.sort_unstable();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::Pace;

    fn transactions(load: Load, operations: usize, count: usize) -> Vec<Vec<Operation>> {
        let shape = Shape {
            rows: 1000,
            value_bytes: 100,
            cache_bytes: 0,
            is_limited: false,
            pace: Pace::Usual,
        };
        let mut stream = Stream::new(shape, load, operations, 7);
        let mut found = vec![Vec::new(); count];
        found.iter_mut().for_each(|into| stream.next(into));
        found
    }

    #[test]
    fn of_ten_operations_as_many_read_as_the_load_says() {
        for read_ratio in 0..=TEN {
            let load = Load { clients: 1, read_ratio, rows: Chosen::All };
            for one in transactions(load, 10, 20) {
                assert_eq!(
                    one.iter().filter(|of| of.does == Does::Read).count() as u64,
                    read_ratio
                );
                assert!(one.windows(2).all(|pair| pair[0].row < pair[1].row), "{one:?}");
            }
            let ones = transactions(load, 1, 100);
            let reads = ones.iter().filter(|one| one[0].does == Does::Read).count() as u64;
            assert_eq!(reads, 10 * read_ratio);
        }
    }

    #[test]
    fn hot_rows_are_as_few_as_the_load_says() {
        let rows_of = |rows| {
            let load = Load { clients: 1, read_ratio: 0, rows };
            let mut rows: Vec<_> = transactions(load, 1, 5000).concat();
            rows.sort_unstable();
            rows.dedup();
            rows.into_iter().map(|operation| operation.row).collect::<Vec<_>>()
        };
        assert_eq!(rows_of(Chosen::Hot(1)), [0]);
        assert_eq!(rows_of(Chosen::Hot(4)), [0, 250, 500, 750]);
        assert!(rows_of(Chosen::All).len() > 900);
    }

    #[test]
    fn by_zipf_few_rows_get_most_and_are_spread() {
        let load = Load { clients: 1, read_ratio: 0, rows: Chosen::Zipf };
        let mut counts = vec![0; 1000];
        for operation in transactions(load, 1, 5000).concat() {
            counts[operation.row as usize] += 1;
        }
        let far_apart = counts.iter().rposition(|count| *count > 100).unwrap();
        assert!(far_apart > 100 && counts[..100].iter().sum::<i32>() < 2500, "{counts:?}");
        counts.sort_unstable_by(|one, other| other.cmp(one));
        assert!(counts[..100].iter().sum::<i32>() > 2500, "{counts:?}");
    }
}
