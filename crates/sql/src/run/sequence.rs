//! The numbers of sequences, by how many were given before.

use crate::catalog::Sequence;
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

/// Counts from here on stand for numbers that a call did not get: it says how many it takes, and
/// nothing that it computes remains. No sequence has given so many.
pub const STAND_INS: u64 = 1 << 62;

/// The number, if these are the arguments; the one behind it if the first was given before.
pub(super) fn call(arguments: &[Datum], is_called: bool) -> Option<Result<Datum>> {
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
    let count = count.checked_add(i64::from(is_called))?;
    Some(rule.number(count).map(Datum::Int8))
}

impl Rule {
    fn of(sequence: &Sequence) -> Rule {
        let Sequence { last, increment, minimum, maximum, cycle, .. } = *sequence;
        Rule { start: last, increment, minimum, maximum, cycle }
    }
}

/// The number that a sequence gives after so many others.
pub(crate) fn sequence_number(sequence: &Sequence, before: u64) -> Result<i64> {
    let count = i64::try_from(before).unwrap_or(i64::MAX);
    let number = Rule::of(sequence).number(count.saturating_add(i64::from(sequence.is_called)));
    number.map_err(|error| {
        let named = format!("sequence \"{}\"", sequence.name);
        Error::new(error.state(), error.message().replacen("sequence", &named, 1))
    })
}

/// The number that a sequence gave last, after so many others. Those that were asked for behind its
/// end were counted, too.
pub(crate) fn last_number(sequence: &Sequence, before: u64) -> i64 {
    let end = if sequence.increment > 0 { sequence.maximum } else { sequence.minimum };
    sequence_number(sequence, before).unwrap_or_else(|_| Rule::of(sequence).last_before(end))
}

impl Rule {
    /// The last number up to the end.
    fn last_before(&self, end: i64) -> i64 {
        let (start, end) = (i128::from(self.start), i128::from(end));
        let (increment, distance) = (i128::from(self.increment), end - start);
        (start + distance / increment * increment) as i64
    }

    /// The number after `count` others.
    fn number(&self, count: i64) -> Result<i64> {
        let (start, increment) = (i128::from(self.start), i128::from(self.increment));
        let (low, high) = (i128::from(self.minimum), i128::from(self.maximum));
        if let Some(before) = count.checked_sub(STAND_INS as i64).filter(|before| *before >= 0) {
            // One of the sequence, so that the call goes on, and from the end, where rows are few.
            let place = i128::from(before) % (high - low + 1);
            return Ok(if increment > 0 { high - place } else { low + place } as i64);
        }
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
    fn the_last_number_of_a_sequence_is_one_of_it() {
        let rule = |increment| Rule { start: 3, increment, minimum: 1, maximum: 8, cycle: false };
        assert_eq!(rule(2).last_before(8), 7);
        assert_eq!(rule(-2).last_before(1), 1);
        assert_eq!(rule(9).last_before(8), 3);
    }

    #[test]
    fn sequences_end_or_cycle() {
        let number = |count, start, increment, cycle| {
            Rule { start, increment, minimum: 1, maximum: 5, cycle }.number(count)
        };
        let up: Vec<i64> = (0..8).map(|count| number(count, 4, 2, true).unwrap()).collect();
        assert_eq!(up, [4, 1, 3, 5, 1, 3, 5, 1]);
        let down: Vec<i64> = (0..6).map(|count| number(count, 2, -1, true).unwrap()).collect();
        assert_eq!(down, [2, 1, 5, 4, 3, 2]);
        let stand_in = |increment, before| {
            let rule = Rule { start: 3, increment, minimum: 1, maximum: 5, cycle: false };
            rule.number(STAND_INS as i64 + before).unwrap()
        };
        assert_eq!([0, 1, 4, 5].map(|before| stand_in(2, before)), [5, 4, 1, 5]);
        assert_eq!([0, 1, 4, 5].map(|before| stand_in(-2, before)), [1, 2, 5, 1]);
        assert_eq!(number(1, 5, 1, false).unwrap_err().state(), SqlState::SEQUENCE_LIMIT);
    }
}
