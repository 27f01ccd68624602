//! What was before what.

/// Why one transaction is before another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// Its append to this row is the one before the other's.
    Appended(u64),
    /// The other one read its append to this row.
    Read(u64),
    /// It read this row without the other one's append.
    Overwritten(u64),
    /// It had ended when the other one began.
    Ended,
}

/// A transaction is a node, and so is each moment at which one ended: a chain, so that the order of
/// the clock needs few edges.
#[derive(Debug)]
pub(super) struct Graph {
    transactions: usize,
    /// For each node: those after it.
    edges: Vec<Vec<(usize, Why)>>,
}

impl Graph {
    pub(super) fn new(transactions: usize) -> Graph {
        Graph { transactions, edges: vec![Vec::new(); transactions] }
    }

    pub(super) fn add(&mut self, from: usize, to: usize, why: Why) {
        self.edges[from].push((to, why));
    }

    /// The order of the clock: of each transaction its begin, and its end if it is known.
    pub(super) fn add_clock(&mut self, times: impl Iterator<Item = (usize, u64, Option<u64>)>) {
        let times: Vec<_> = times.collect();
        let ends = times.iter().filter_map(|(at, _, ended)| Some(((*ended)?, *at)));
        let mut ends: Vec<(u64, usize)> = ends.collect();
        ends.sort_unstable();
        let first = self.edges.len();
        self.edges.resize(first + ends.len(), Vec::new());
        for (place, (_, at)) in ends.iter().enumerate() {
            self.add(*at, first + place, Why::Ended);
            if place + 1 < ends.len() {
                self.add(first + place, first + place + 1, Why::Ended);
            }
        }
        for (at, began, _) in &times {
            let before = ends.partition_point(|(ended, _)| ended < began);
            if before > 0 {
                self.add(first + before - 1, *at, Why::Ended);
            }
        }
    }

    /// Transactions each of which is before the next one, and the last one before the first.
    pub(super) fn cycle(&self) -> Option<Vec<(usize, Why)>> {
        let mut counts = vec![0_usize; self.edges.len()];
        for (to, _) in self.edges.iter().flatten() {
            counts[*to] += 1;
        }
        let mut free: Vec<usize> = (0..counts.len()).filter(|node| counts[*node] == 0).collect();
        let mut left = counts.len();
        while let Some(node) = free.pop() {
            left -= 1;
            for (to, _) in &self.edges[node] {
                counts[*to] -= 1;
                if counts[*to] == 0 {
                    free.push(*to);
                }
            }
        }
        (left > 0).then(|| self.cycle_of(&counts))
    }

    /// A cycle of nodes that have one that is left before them: backwards from any of them, until
    /// one comes again.
    fn cycle_of(&self, counts: &[usize]) -> Vec<(usize, Why)> {
        let mut before = vec![None; counts.len()];
        for from in (0..counts.len()).filter(|node| counts[*node] > 0) {
            for (to, why) in &self.edges[from] {
                before[*to] = Some((from, *why));
            }
        }
        let mut place_of = vec![None; counts.len()];
        let mut path = Vec::new();
        let mut node = counts.iter().position(|count| *count > 0).expect("some are left");
        loop {
            place_of[node] = Some(path.len());
            let (from, why) = before[node].expect("one that is left is before it");
            path.push((from, why));
            if let Some(place) = place_of[from] {
                let mut cycle = path.split_off(place);
                cycle.retain(|(node, _)| *node < self.transactions);
                cycle.reverse();
                return cycle;
            }
            node = from;
        }
    }
}
