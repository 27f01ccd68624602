//! Which free slots go from worker to worker before an epoch takes new segments.
//!
//! Each worker takes and frees slots in sub-pools of its own, so slots pile up where rows or values
//! go, while others begin segments where they come. So a worker that is short of slots gets free
//! ones of those that have more than they need. The image then never grows for rows while there are
//! as many free slots of their table as rows to be made. Who takes the slots of values is not known
//! before calls run: for these it does not grow where there are as many for each worker.

use pmem::sync::Mutex;

use super::Stock;

/// How many free slots of a pool go from worker to worker.
#[derive(Debug)]
pub(crate) struct Handover {
    pub(crate) pool: usize,
    pub(crate) shares: Shares,
    /// What was given and not received yet.
    pub(crate) slots: Mutex<Vec<u64>>,
}

impl Handover {
    pub(crate) fn new(pool: usize, shares: Shares) -> Self {
        let received: u64 = shares.takes.iter().sum();
        assert!(shares.count() == received, "as many slots are received as given");
        Self { pool, shares, slots: Mutex::default() }
    }
}

/// What each worker gives and gets, those that have no part in the epoch at the end; both add up to
/// the same.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Shares {
    pub(crate) gives: Vec<u64>,
    pub(crate) takes: Vec<u64>,
}

impl Shares {
    /// Slots that are handed over.
    pub(crate) fn count(&self) -> u64 {
        self.gives.iter().sum()
    }

    /// For `count` values, of which any of the workers that take part may take any number. Each of
    /// them gets as many slots as there are values, if there are enough. If not, slots are dealt
    /// evenly, where one of them has less than half of an even share: what is not used has to be
    /// put back. Workers that have no part need none.
    pub(crate) fn of_values(stocks: &[Stock], of_idle: &[Stock], count: u64) -> Option<Self> {
        assert!(!stocks.is_empty(), "some worker takes part in an epoch");
        let all: u64 = stocks.iter().chain(of_idle).map(Stock::slots).sum();
        let share = all / stocks.len() as u64;
        let least = stocks.iter().map(Stock::slots).min()?;
        let needed = if share >= count {
            count
        } else if least < share.div_ceil(2) {
            share
        } else {
            return None;
        };
        let needs = stocks.iter().map(|stock| Stock { needed, ..*stock });
        Self::of_needs(&needs.chain(of_idle.iter().copied()).collect::<Vec<_>>())
    }

    /// Each worker gets what it needs, as far as others have it to spare.
    pub(crate) fn of_needs(stocks: &[Stock]) -> Option<Self> {
        let short = |stock: &Stock| stock.needed.saturating_sub(stock.slots());
        let spare = |stock: &Stock| stock.free.min(stock.slots().saturating_sub(stock.needed));
        let wanted: u64 = stocks.iter().map(short).sum();
        let count = wanted.min(stocks.iter().map(spare).sum());
        let deal = |share: &dyn Fn(&Stock) -> u64| {
            let mut left = count;
            let part = |stock| {
                let part = share(stock).min(left);
                left -= part;
                part
            };
            stocks.iter().map(part).collect()
        };
        (count > 0).then(|| Self { gives: deal(&spare), takes: deal(&short) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stock((free, fresh, needed): (u64, u64, u64)) -> Stock {
        Stock { free, fresh, needed, ..Stock::default() }
    }

    fn shares(gives: &[u64], takes: &[u64]) -> Option<Shares> {
        Some(Shares { gives: gives.to_vec(), takes: takes.to_vec() })
    }

    #[test]
    fn who_creates_rows_gets_what_others_can_spare() {
        let plan = |stocks: &[_]| {
            let stocks: Vec<Stock> = stocks.iter().copied().map(stock).collect();
            Shares::of_needs(&stocks)
        };
        assert_eq!(plan(&[(0, 5, 5), (9, 0, 0)]), None, "no worker is short");
        assert_eq!(plan(&[(0, 5, 6), (0, 9, 0)]), None, "only free slots can be handed over");
        assert_eq!(plan(&[(0, 5, 7), (9, 0, 0)]), shares(&[0, 2], &[2, 0]));
        assert_eq!(plan(&[(0, 0, 7), (9, 0, 4)]), shares(&[0, 5], &[5, 0]), "it needs some itself");
        assert_eq!(plan(&[(0, 0, 7), (9, 6, 4)]), shares(&[0, 7], &[7, 0]), "it has fresh ones");
        let four = [(0, 0, 3), (2, 0, 0), (0, 1, 4), (2, 0, 0)];
        assert_eq!(plan(&four), shares(&[0, 2, 0, 2], &[3, 0, 1, 0]), "as far as they go");
    }

    #[test]
    fn slots_of_values_are_for_every_worker() {
        let plan = |stocks: &[_], count| {
            let stocks: Vec<Stock> =
                stocks.iter().map(|&(free, fresh)| stock((free, fresh, 0))).collect();
            Shares::of_values(&stocks, &[], count)
        };
        assert_eq!(plan(&[(3, 0), (0, 3)], 3), None, "each may write all three");
        assert_eq!(plan(&[(8, 0), (1, 0)], 3), shares(&[2, 0], &[0, 2]));
        assert_eq!(plan(&[(0, 8), (0, 1)], 3), None, "only free slots can be handed over");
        assert_eq!(plan(&[(8, 0), (0, 0)], 100), shares(&[4, 0], &[0, 4]), "an even share");
        assert_eq!(plan(&[(6, 0), (2, 0)], 100), None, "it is not worth it");
        assert_eq!(plan(&[(7, 0), (1, 0)], 100), shares(&[3, 0], &[0, 3]));
        assert_eq!(plan(&[(1, 0), (0, 0)], 100), None, "there is nothing to be dealt");
    }

    #[test]
    fn workers_that_have_no_part_give_what_they_have() {
        let plan = |stocks: &[_], of_idle: &[_], count| {
            let [stocks, of_idle] = [stocks, of_idle]
                .map(|stocks| stocks.iter().map(|&free| stock((free, 0, 0))).collect::<Vec<_>>());
            Shares::of_values(&stocks, &of_idle, count)
        };
        assert_eq!(plan(&[3, 3], &[9], 3), None, "both have enough");
        assert_eq!(plan(&[3, 1], &[9], 3), shares(&[0, 0, 2], &[0, 2, 0]));
        assert_eq!(plan(&[0, 1], &[2, 5], 100), shares(&[0, 0, 2, 5], &[4, 3, 0, 0]));
    }
}
