//! Covering arrays: few rows in which every choice of three factors meets every choice of two
//! others. What breaks only where three features meet, one of these rows comes to.

/// How many factors meet.
pub const STRENGTH: usize = 3;

/// A level for each factor.
pub type Row = Vec<usize>;

/// Three factors, in order, with a level of each.
type Triple = [(usize, usize); STRENGTH];

/// Rows in which every three levels of three factors are together at least once. The same levels
/// give the same rows.
///
/// Greedy: each row begins with the first triple that is left, and every other factor gets the
/// level with which most triples that are left become whole.
#[must_use]
pub fn covering(levels: &[usize]) -> Vec<Row> {
    let mut left = triples(levels);
    let mut rows = Vec::new();
    while let Some(first) = left.first().copied() {
        let mut row: Vec<Option<usize>> = vec![None; levels.len()];
        first.iter().for_each(|&(factor, level)| row[factor] = Some(level));
        for factor in 0..levels.len() {
            if row[factor].is_none() {
                row[factor] = Some(best(&left, &row, factor, levels[factor], rows.len()));
            }
        }
        let row: Row = row.into_iter().flatten().collect();
        left.retain(|triple| !covers(&row, triple));
        rows.push(row);
    }
    rows
}

/// Whether a row has the levels of a triple.
fn covers(row: &[usize], triple: &Triple) -> bool {
    triple.iter().all(|&(factor, level)| row[factor] == level)
}

/// Every three levels of three factors.
fn triples(levels: &[usize]) -> Vec<Triple> {
    let mut all = Vec::new();
    for a in 0..levels.len() {
        for b in a + 1..levels.len() {
            for c in b + 1..levels.len() {
                for number in 0..levels[a] * levels[b] * levels[c] {
                    let (x, rest) = (number % levels[a], number / levels[a]);
                    all.push([(a, x), (b, rest % levels[b]), (c, rest / levels[b])]);
                }
            }
        }
    }
    all
}

/// The level of a factor that makes most triples whole, or brings most of them nearer to that; of
/// equal ones another for each row.
fn best(
    left: &[Triple],
    row: &[Option<usize>],
    factor: usize,
    levels: usize,
    turn: usize,
) -> usize {
    let mut gains = vec![0u64; levels];
    for triple in left {
        let Some(&(_, level)) = triple.iter().find(|(of, _)| *of == factor) else { continue };
        let mut others = triple.iter().filter(|(of, _)| *of != factor);
        if others.clone().any(|&(of, level)| row[of].is_some_and(|chosen| chosen != level)) {
            continue;
        }
        let is_whole = others.all(|&(of, _)| row[of].is_some());
        gains[level] += if is_whole { 1000 } else { 1 };
    }
    (0..levels).map(|level| (level + turn) % levels).max_by_key(|&level| gains[level]).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counted anew, row by row.
    #[test]
    fn every_three_levels_meet() {
        for levels in [vec![2, 2, 2], vec![5, 3, 3, 3, 2, 3, 3], vec![4; 6], vec![1, 7, 1, 2]] {
            let rows = covering(&levels);
            assert_eq!(rows, covering(&levels));
            assert!(rows.iter().all(|row| row.len() == levels.len()));
            for triple in triples(&levels) {
                assert!(rows.iter().any(|row| covers(row, &triple)), "{triple:?} of {levels:?}");
            }
            let mut sorted = levels.clone();
            sorted.sort_unstable_by(|a, b| b.cmp(a));
            let least: usize = sorted[..STRENGTH].iter().product();
            assert!((least..=3 * least).contains(&rows.len()), "{} rows", rows.len());
        }
    }

    #[test]
    fn triples_are_all_there_are() {
        assert_eq!(triples(&[2, 3, 4]).len(), 24);
        assert_eq!(triples(&[2, 3, 4, 5]).len(), 24 + 30 + 40 + 60);
    }
}
