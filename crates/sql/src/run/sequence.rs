//! The numbers of sequences, by how many were given before.

use values::{Datum, Error, Result, SqlState};

/// What a sequence counts by. The arguments of a call may be any numbers: what no sequence has is
/// refused.
struct Rule {
    start: i64,
    increment: i64,
    minimum: i64,
    maximum: i64,
    cycle: bool,
}

/// The number, if these are the arguments.
pub(super) fn call(arguments: &[Datum]) -> Option<Result<Datum>> {
    let [
        Datum::Int8(count),
        Datum::Int8(start),
        Datum::Int8(increment),
        Datum::Int8(minimum),
        Datum::Int8(maximum),
        Datum::Bool(cycle),
    ] = *arguments
    else {
        return None;
    };
    let rule = Rule { start, increment, minimum, maximum, cycle };
    if count < 0 || increment == 0 || !(minimum..=maximum).contains(&start) {
        return None;
    }
    Some(rule.number(count).map(Datum::Int8))
}

impl Rule {
    /// The number after `count` others.
    fn number(&self, count: i64) -> Result<i64> {
        let (start, increment) = (i128::from(self.start), i128::from(self.increment));
        let (low, high) = (i128::from(self.minimum), i128::from(self.maximum));
        let at = start + i128::from(count) * increment;
        if (low..=high).contains(&at) {
            return Ok(at as i64);
        }
        if !self.cycle {
            let (name, bound) = if increment > 0 { ("maximum", high) } else { ("minimum", low) };
            let message = format!("nextval: reached {name} value of sequence ({bound})");
            return Err(Error::new(SqlState::SEQUENCE_LIMIT, message));
        }
        // Rounds after the first begin at the other end.
        let step = increment.abs();
        let (first, begin, end) =
            if increment > 0 { (start, low, high) } else { (-start, -high, -low) };
        let of_first = (end - first) / step + 1;
        let of_round = (end - begin) / step + 1;
        let value = begin + (i128::from(count) - of_first) % of_round * step;
        assert!((begin..=end).contains(&value), "a number is between the sequence's bounds");
        Ok(if increment > 0 { value } else { -value } as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_end_or_cycle() {
        let number = |count, start, increment, cycle| {
            Rule { start, increment, minimum: 1, maximum: 5, cycle }.number(count)
        };
        let up: Vec<i64> = (0..8).map(|count| number(count, 4, 2, true).unwrap()).collect();
        assert_eq!(up, [4, 1, 3, 5, 1, 3, 5, 1]);
        let down: Vec<i64> = (0..6).map(|count| number(count, 2, -1, true).unwrap()).collect();
        assert_eq!(down, [2, 1, 5, 4, 3, 2]);
        assert_eq!(number(1, 5, 1, false).unwrap_err().state(), SqlState::SEQUENCE_LIMIT);
    }
}
