//! Lines of values, which are compared, hashed and written together, and masks of them: a bit for
//! each of the first 63 lines of a value, and one for all further ones.

use pmem::Line;

/// Bytes of a cache line.
pub const LINE: usize = size_of::<Line>();

/// The last bytes of a value, less than a line or one, with zeros behind their end.
///
/// Every final write does this several times, so the bytes are copied in two pieces of a constant
/// length that may overlap, which takes a few instructions and no call.
#[inline(always)]
pub fn padded_line(rest: &[u8]) -> Line {
    debug_assert!(rest.len() <= LINE, "{} bytes are more than a line", rest.len());
    let mut line = [0; LINE];
    match rest.len() {
        32.. => copy_ends::<32>(&mut line, rest),
        16.. => copy_ends::<16>(&mut line, rest),
        8.. => copy_ends::<8>(&mut line, rest),
        4.. => copy_ends::<4>(&mut line, rest),
        _ => line.iter_mut().zip(rest).for_each(|(to, from)| *to = *from),
    }
    line
}

/// Copies the first and the last `N` bytes of at least `N` and at most `2 * N`.
#[inline(always)]
fn copy_ends<const N: usize>(line: &mut Line, rest: &[u8]) {
    let (Some(first), Some(last)) = (rest.first_chunk::<N>(), rest.last_chunk::<N>()) else {
        unreachable!("there are at least {N} bytes");
    };
    line[..N].copy_from_slice(first);
    line[rest.len() - N..][..N].copy_from_slice(last);
}

/// All lines of a value.
pub const ALL_LINES: u64 = u64::MAX;

/// Lines that have a bit of their own.
pub const LINES_SINGLE: usize = 63;

/// The lines that some bytes of a value touch.
#[inline(always)]
pub fn lines_of(at: usize, len: usize) -> u64 {
    if len == 0 {
        return 0;
    }
    let (first, last) = (at / LINE, (at + len - 1) / LINE);
    ALL_LINES << first.min(LINES_SINGLE) & up_to(last)
}

/// The lines up to one.
#[inline(always)]
fn up_to(last: usize) -> u64 {
    ALL_LINES >> LINES_SINGLE.saturating_sub(last)
}

/// The lines of a mask that a value of so many lines has; none of a value of more than 64.
#[inline(always)]
pub(crate) fn single_lines(mask: u64, count: usize) -> Option<u64> {
    match count {
        0 => Some(0),
        1..=64 => Some(mask & up_to(count - 1)),
        _ => None,
    }
}

/// Calls `each` with the lines of a mask, of a value of so many, in runs of consecutive ones: the
/// first and the one after the last.
#[inline(always)]
pub fn for_each_run(mask: u64, count: usize, mut each: impl FnMut(usize, usize)) {
    let mut left = if count == 0 { 0 } else { mask & up_to(count - 1) };
    while left != 0 {
        let from = left.trailing_zeros() as usize;
        let to = from + (!(left >> from)).trailing_zeros() as usize;
        left &= !up_to(to - 1);
        // The last bit stands for all lines from there on.
        each(from, if to > LINES_SINGLE { count } else { to });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_has_the_lines_that_bytes_touch() {
        for first in 0..70 {
            for last in first..70 {
                let mask = lines_of(first * LINE + 5, (last - first) * LINE + 1);
                let bits = (first..=last).fold(0_u64, |bits, line| bits | 1 << line.min(63));
                assert_eq!(mask, bits, "{first} to {last}");
                let rounded = lines_of(first * LINE, (last - first + 1) * LINE);
                assert_eq!(rounded, bits, "{first} to {last}, whole lines");
            }
        }
        assert_eq!(lines_of(0, 0), 0);
    }

    #[test]
    fn runs_cover_the_lines_of_the_mask_and_no_others() {
        let masks = [0, 1, 0b1011, 1 << 62, 1 << 63, 3 << 62, u64::MAX, 0xf0f0_f0f0_f0f0_f0f0];
        for mask in masks {
            for count in [0, 1, 4, 16, 62, 63, 64, 65, 100] {
                let mut runs = Vec::new();
                for_each_run(mask, count, |from, to| runs.push((from, to)));
                let lines: Vec<usize> = runs.iter().flat_map(|&(from, to)| from..to).collect();
                let of_mask = |line: &usize| mask >> (*line).min(63) & 1 != 0;
                assert_eq!(lines, (0..count).filter(of_mask).collect::<Vec<_>>(), "{mask:x}");
                assert!(runs.windows(2).all(|two| two[0].1 < two[1].0), "as few as there can be");
            }
        }
    }

    #[test]
    fn every_length_is_copied_and_padded() {
        let bytes: [u8; LINE] = std::array::from_fn(|i| i as u8 + 1);
        for len in 0..=LINE {
            let mut expected = [0; LINE];
            expected[..len].copy_from_slice(&bytes[..len]);
            assert_eq!(padded_line(&bytes[..len]), expected, "{len} bytes");
        }
    }
}
