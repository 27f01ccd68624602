//! What was explored, counted.

use super::points::{Class, DEPTH_MAX, Point};

/// Images that came to what few of them come to, and what follows from them.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Seldom {
    /// Recovered with calls that are to be made again.
    pub deferred: u64,
    /// Recovered by a replay of an epoch without calls.
    pub empty: u64,
    /// Opened only after a user decided about an epoch that a call has ended.
    pub decided: u64,
    /// Ran on after the loss of an epoch, with one of fewer calls in its place.
    pub smaller: u64,
}

impl Seldom {
    pub(super) fn add(&mut self, other: &Self) {
        self.deferred += other.deferred;
        self.empty += other.empty;
        self.decided += other.decided;
        self.smaller += other.smaller;
    }
}

/// Counts of an exploration. Those by class are by depth too: 0 is a run, 1 the recovery after a
/// crash, and so on.
#[derive(Debug, Default, Clone)]
pub struct Counts {
    /// Histories that were explored, or begun to be.
    pub cases: u64,
    /// Of these, the histories that were explored deeply.
    pub cases_deep: u64,
    /// Records of runs and recoveries that crash points were chosen from.
    pub lives: u64,
    /// Processes that were killed, whose stores stayed visible.
    pub kills: u64,
    /// Lives that a call ended which could not be undone.
    pub ended: u64,
    /// Epochs that were run or replayed, in all engines.
    pub epochs: u64,
    /// Epochs that were refused because a device was full.
    pub refused: u64,
    /// Of these, the epochs for which only the log was too small.
    pub refused_by_log: u64,
    /// Images that were recovered and compared.
    pub images: u64,
    /// Images that had the bytes of another one of the same record and class, and were skipped.
    pub same: u64,
    /// Crash points, by class and depth: none is counted twice.
    pub points: [[u64; DEPTH_MAX + 1]; Class::ALL.len()],
    /// Images, by class and depth.
    pub images_of: [[u64; DEPTH_MAX + 1]; Class::ALL.len()],
    /// Images that came to what few of them come to.
    pub seldom: Seldom,
    /// Violations found.
    pub violations: u64,
}

impl Counts {
    /// Adds another counts.
    pub fn add(&mut self, other: &Self) {
        self.cases += other.cases;
        self.cases_deep += other.cases_deep;
        self.lives += other.lives;
        self.kills += other.kills;
        self.ended += other.ended;
        self.seldom.add(&other.seldom);
        self.epochs += other.epochs;
        self.refused += other.refused;
        self.refused_by_log += other.refused_by_log;
        self.images += other.images;
        self.same += other.same;
        self.violations += other.violations;
        for (mine, theirs) in
            [(&mut self.points, &other.points), (&mut self.images_of, &other.images_of)]
        {
            for (sum, more) in mine.iter_mut().flatten().zip(theirs.iter().flatten()) {
                *sum += more;
            }
        }
    }

    /// Crash points in all.
    #[must_use]
    pub fn points_total(&self) -> u64 {
        self.points.iter().flatten().sum()
    }

    /// Rows of the crash matrix, by class and depth, that must be hit: how many were, and how many
    /// there are.
    #[must_use]
    pub fn rows_hit(&self) -> (usize, usize) {
        let at = |class: Class| (0..=DEPTH_MAX).filter(move |&depth| class.is_at(depth)).count();
        let rows = Class::ALL.into_iter().map(at).sum();
        (rows - self.never_hit().len(), rows)
    }

    /// Classes and depths that must be hit and were not.
    #[must_use]
    pub fn never_hit(&self) -> Vec<(Class, usize)> {
        let all = Class::ALL.into_iter().flat_map(|class| (0..=DEPTH_MAX).map(move |d| (class, d)));
        all.filter(|&(class, depth)| {
            class.is_at(depth) && self.images_of[class as usize][depth] == 0
        })
        .collect()
    }

    pub(super) fn count_point(&mut self, point: &Point) {
        self.points[point.class as usize][point.depth] += 1;
    }

    pub(super) fn count_image(&mut self, point: &Point) {
        self.images += 1;
        self.images_of[point.class as usize][point.depth] += 1;
    }
}
