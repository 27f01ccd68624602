//! Which rows the transactions of a caller read and update.

use crate::peer::{Does, Operation, Shape};
use crate::settings::{Load, TEN};
use crate::value::Random;

/// The transactions of one caller, one after the other.
pub(super) struct Stream {
    random: Random,
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
        Self { random, load, rows: shape.rows, operations, count }
    }

    /// The next transaction: different rows in ascending order. Of each ten operations as many read
    /// as the load says.
    pub(super) fn next(&mut self, into: &mut Vec<Operation>) {
        into.clear();
        let choices = self.load.hot_rows.unwrap_or(self.rows);
        let distance = self.rows / choices;
        while into.len() < self.operations {
            let row = self.random.next() % choices * distance;
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
            let load = Load { clients: 1, read_ratio, hot_rows: None };
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
        let rows_of = |hot_rows| {
            let load = Load { clients: 1, read_ratio: 0, hot_rows };
            let mut rows: Vec<_> = transactions(load, 1, 5000).concat();
            rows.sort_unstable();
            rows.dedup();
            rows.into_iter().map(|operation| operation.row).collect::<Vec<_>>()
        };
        assert_eq!(rows_of(Some(1)), [0]);
        assert_eq!(rows_of(Some(4)), [0, 250, 500, 750]);
        assert!(rows_of(None).len() > 900);
    }
}
