//! Lines of values: what is compared, hashed and written together.

/// Bytes of a cache line.
pub(crate) const LINE: usize = pmem::LINE_BYTES as usize;

/// The last bytes of a value, less than a line or one, with zeros behind their end.
///
/// Every final write does this several times, so the bytes are copied in two pieces of a constant
/// length that may overlap, which takes a few instructions and no call.
#[inline(always)]
pub(crate) fn padded_line(rest: &[u8]) -> [u8; LINE] {
    let mut line = [0; LINE];
    match rest.len() {
        32.. => copy_ends::<32>(&mut line, rest),
        16.. => copy_ends::<16>(&mut line, rest),
        8.. => copy_ends::<8>(&mut line, rest),
        _ => line.iter_mut().zip(rest).for_each(|(to, from)| *to = *from),
    }
    line
}

/// Copies the first and the last `N` bytes of at least `N` and at most `2 * N`.
#[inline(always)]
fn copy_ends<const N: usize>(line: &mut [u8; LINE], rest: &[u8]) {
    let (Some(first), Some(last)) = (rest.first_chunk::<N>(), rest.last_chunk::<N>()) else {
        unreachable!("there are at least {N} bytes");
    };
    line[..N].copy_from_slice(first);
    line[rest.len() - N..][..N].copy_from_slice(last);
}

#[cfg(test)]
mod tests {
    use super::*;

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
