//! Which runs of a leveled LSM tree are merged (the paper's 3.3).
//!
//! The first level has a run for each MemTable that became full. Once there are more than a few,
//! they are merged with the run of the level below; if the result is too large for that level, with
//! the next one, too. Each further level has one run, `growth` times as large at most.

use crate::options::Options;

/// A run's level and size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RunSize {
    pub(crate) level: u64,
    pub(crate) bytes: u64,
}

/// The runs that are to be merged: the first `count`, the newest ones, into one of a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Merge {
    pub(crate) count: usize,
    pub(crate) level: u64,
    /// Whether no run is older, so that nothing has to be hidden any more.
    pub(crate) is_last: bool,
}

/// What is to be merged of these runs, the newest first.
pub(crate) fn choose(runs: &[RunSize], options: &Options) -> Option<Merge> {
    let first = runs.iter().take_while(|run| run.level == 0).count();
    if first <= options.first_level_runs {
        return None;
    }
    let (mut count, mut level) = (first, 0);
    let mut bytes: u64 = runs[..first].iter().map(|run| run.bytes).sum();
    let mut limit = options.memtable_bytes;
    loop {
        level += 1;
        limit = limit.saturating_mul(options.growth.max(2));
        if let Some(run) = runs.get(count).filter(|run| run.level == level) {
            bytes += run.bytes;
            count += 1;
        }
        if bytes <= limit {
            return Some(Merge { count, level, is_last: count == runs.len() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(level: u64, bytes: u64) -> RunSize {
        RunSize { level, bytes }
    }

    #[test]
    fn a_full_level_is_merged_into_the_next_that_has_room() {
        let options =
            Options { memtable_bytes: 10, growth: 4, first_level_runs: 2, ..Options::default() };
        let two = [run(0, 10), run(0, 10)];
        assert_eq!(choose(&two, &options), None);
        let three = [run(0, 10), run(0, 10), run(0, 10)];
        let merge = |count, level, is_last| Some(Merge { count, level, is_last });
        assert_eq!(choose(&three, &options), merge(3, 1, true));
        let full = [run(0, 10), run(0, 10), run(0, 10), run(1, 30), run(3, 500)];
        assert_eq!(choose(&full, &options), merge(4, 2, false));
    }
}
